/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The random fi_getinfo() calls of hints.c. */
#ifndef HINTS_CALL_H
#define HINTS_CALL_H

#include "ft_twin.h"

#define INFOS_MAX 1000

/* The place where the provider is named. */
enum naming {
	IN_HINTS, /* by a name such as "tcp", "tcp;ofi_mrrc" */
	UPPER_CASE,
	UNKNOWN_CORE,
	IN_ENVIRONMENT, /* by FI_PROVIDER alone */
	IN_BOTH,
	/*
	 * the hints and FI_PROVIDER name "tcp" on both sides. If asked for
	 * "tcp;ofi_rxm", libfabric does not call other providers.
	 */
	CORE_IN_HINTS,
};

struct call {
	uint32_t version;
	const char *node, *service;
	uint64_t flags;
	struct fi_info *hints; /* NULL is allowed */
	enum naming naming;
};

enum part { INFO, TX, RX, EP, DOMAIN, FABRIC };

enum kind {
	CAPS,
	MODE,
	ORDER,
	OP_FLAGS,
	MR_MODE, /* bits */
	ENUM,
	FORMAT,
	VERSION,
	COUNT,
};

struct attr {
	const char *name;
	enum part part;
	enum kind kind;
	size_t offset, size;
};

extern const struct attr attrs[];
extern const size_t attr_cnt;

/* Returns an attribute; NULL if the info lacks this part. */
void *attr_of(const struct fi_info *info, const struct attr *attr);
uint64_t attr_get(const struct fi_info *info, const struct attr *attr);
/*
 * Collects this side's infos from a list that may have infos of other
 * providers: for the name "tcp" libfabric's own utility providers over tcp
 * answer, too.
 */
unsigned collect(enum ft_side side, struct fi_info *list,
		 struct fi_info *infos[INFOS_MAX]);
/* Makes a random call; env: FI_PROVIDER names the provider */
void make_call(enum ft_side side, bool env, struct call *call);

#endif /* HINTS_CALL_H */
