/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The hooking provider, ofi_hook_mrrc (FI_HOOK=mrrc): all registrations made on
 * a core provider's domains, by the application or another provider, come from
 * the cache, and nothing else changes.
 *
 * libfabric's own hooking providers wrap every object. Data calls need no
 * change here, and a wrapped domain would have to be unwrapped wherever an
 * application or a provider passes it on (hints, infos, peers). So the core's
 * objects stay what they are: a fabric and a domain get copies of their
 * tables in which a few calls are ours.
 */
#ifndef MRRC_HOOK_H
#define MRRC_HOOK_H

#include "fi/mrrc_fi.h"

/* Entry for libhook_mrrc-fi.so, which libfabric loads. */
__attribute__((visibility("default"))) struct fi_provider *mrrc_hook_ini(void);

struct mrrc_hook_fabric {
	struct fid_fabric *core;
	const char *core_name;
	/* the core's tables, of which the fabric has copies */
	struct fi_ops *fid_ops;
	struct fi_ops_fabric *fabric_ops;
};

struct mrrc_hook_domain {
	struct fid_domain *core;
	struct mrrc_reg reg;
	struct fi_ops *fid_ops; /* the core's */
	struct mrrc_pool *mrs;	/* open registrations, struct mrrc_hook_mr */
	bool inner;		/* opened by another provider, as ofi_rxm */
	atomic_bool events;	/* registrations are reported, and not cached */
};

/*
 * Copies a core's table of calls in its full length, so that the owner can be
 * found from the copy. NULL: no memory.
 */
void *mrrc_hook_table(const void *table, size_t size, void *owner);
void mrrc_hook_table_free(void *table);

static inline void *mrrc_hook_owner(const void *table)
{
	return ((void *const *) table)[-1];
}

/*
 * hook/domain.c: to be called after the core opened a domain; by_provider:
 * another provider opened the domain
 */
int mrrc_hook_domain_install(struct mrrc_hook_fabric *fabric,
			     const struct fi_info *info,
			     struct fid_domain *core, bool by_provider);
/* The registrations of a hooked domain; NULL: it is not hooked. */
struct mrrc_reg *mrrc_hook_domain_reg(struct fid_domain *domain);
/* Are registrations of a domain with this info and these flags to be cached? */
bool mrrc_hook_domain_wanted(const struct fi_info *info, uint64_t flags);
/* Does the core ask for local registrations? */
bool mrrc_hook_domain_local(const struct fi_info *info);

/* hook/mr.c */
extern const struct fi_ops_mr mrrc_hook_mr_ops;
size_t mrrc_hook_mr_size(void);

#endif /* MRRC_HOOK_H */
