/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The entry of both providers. */
#ifndef MRRC_INIT_H
#define MRRC_INIT_H

#include "fi/mrrc_fi.h"

/*
 * Initialises the state that ofi_mrrc and its hooking provider share. Returns
 * prov, or NULL and logs why.
 */
struct fi_provider *mrrc_prov_ini(struct fi_provider *prov);

/*
 * Returns the registrations of a domain, the provider's or a hooked domain;
 * NULL: the domain is another provider's.
 */
struct mrrc_reg *mrrc_reg_of(struct fid_domain *domain);

#endif /* MRRC_INIT_H */
