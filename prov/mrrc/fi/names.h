/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parses provider names that contain ours: "verbs;ofi_mrrc" in FI_PROVIDER and
 * in hints, and "ofi_mrrc" alone, which stands for the best core available.
 *
 * Any thread.
 */
#ifndef MRRC_NAMES_H
#define MRRC_NAMES_H

#include "fi/mrrc_fi.h"

#define MRRC_NAMES_MAX 16 /* provider names with ours in FI_PROVIDER */

/* Provider names to ask for, each without our name. */
struct mrrc_names {
	char *below[MRRC_NAMES_MAX]; /* "": the best core there is */
	size_t cnt;
	/* FI_PROVIDER has "ofi_mrrc" alone: only that name passes */
	bool alone;
	bool only; /* FI_PROVIDER is a positive list */
};

/*
 * Finds the provider names with ours that the caller asks for; names->cnt is 0
 * if there are none.
 */
int mrrc_names_init(struct mrrc_names *names, const struct fi_info *hints);
void mrrc_names_fini(struct mrrc_names *names);
/* Makes "a;b" of "a;b;ofi_mrrc", to be freed; NULL: no memory */
char *mrrc_prov_name_below(const char *name);

/*
 * The providers that "ofi_mrrc" alone may stand on, in order of preference: a
 * core, and the utility provider for the reliable datagrams that the core
 * lacks. The fabric's name in an info shows which providers the info uses,
 * since libfabric leaves that name to the provider: "192.0.2.0/24|tcp;ofi_rxm".
 * If the info uses the core itself, the fabric's name is unchanged.
 */
#define MRRC_ALONE_CNT 2
#define MRRC_ALONE_MAX 3
extern const char *const mrrc_alone[MRRC_ALONE_CNT][MRRC_ALONE_MAX];
void mrrc_fabric_name_mark(struct fi_fabric_attr *attr);
/*
 * Removes the mark from a fabric's name; returns the providers in the mark, or
 * NULL
 */
const char *mrrc_fabric_name_split(char *name);

#endif /* MRRC_NAMES_H */
