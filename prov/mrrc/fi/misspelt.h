/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Environment variables that look like misspelt parameters. */
#ifndef MRRC_MISSPELT_H
#define MRRC_MISSPELT_H

#include <stddef.h>

#define MRRC_PARAM_PREFIX   "FI_OFI_MRRC_"
#define MRRC_PARAM_NAME_MAX 64 /* with the prefix */

/* The parameter's variable, as libfabric looks it up: all upper case */
void mrrc_param_variable(const char *name, char *variable);

/*
 * Reports that an entry of a list of parameters has an unknown name, with the
 * nearest known name.
 */
void mrrc_misspelt_entry(const char *entry, const char *const *names,
			 size_t cnt);

/* Reports each misspelt variable, with the nearest of @names. */
void mrrc_misspelt_say(const char *const *names, size_t cnt);

#endif /* MRRC_MISSPELT_H */
