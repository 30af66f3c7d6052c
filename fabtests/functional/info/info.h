/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared by the parts of fi_mrrc_info. */
#ifndef INFO_H
#define INFO_H

#include "ft_mrrc.h"

/* Returns hints that name prov; the caller frees the hints. */
struct fi_info *info_hints(const char *prov);
/* Returns the providers below ofi_mrrc, as a provider list */
const char *info_core_name(void);

/* info_conf.c */
void named_in_conf(void);

/* info_values.c */
void unknown_values(void);

#endif /* INFO_H */
