/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which region to give up: the policy table and its registry by name.
 *
 * The cache tells a policy of every region that enters the index, is hit and
 * leaves, and asks it for victims. A policy threads regions by their `link`
 * while they are indexed. Not thread-safe: the owner of the cache guards it.
 * Only open allocates.
 */
#ifndef MRRC_POLICY_H
#define MRRC_POLICY_H

#include "core/region.h"

#define MRRC_POLICY_DEFAULT	"lru"

struct mrrc_policy;

struct mrrc_policy_ops {
	const char *name;
	size_t size;		/* of the state, a struct mrrc_policy first */
	int (*init)(struct mrrc_policy *policy);
	void (*fini)(struct mrrc_policy *policy);
	void (*insert)(struct mrrc_policy *policy, struct mrrc_region *region);
	void (*touch)(struct mrrc_policy *policy, struct mrrc_region *region);
	void (*remove)(struct mrrc_policy *policy, struct mrrc_region *region);
	/* A region with held == 0, still known to the policy; NULL if none. */
	struct mrrc_region *(*victim)(struct mrrc_policy *policy);
	/* Whether the policy is sound and knows exactly @count regions. */
	bool (*valid)(const struct mrrc_policy *policy, size_t count);
};

struct mrrc_policy {
	const struct mrrc_policy_ops *ops;
};

extern const struct mrrc_policy_ops mrrc_policy_lru_ops;

/* NULL takes the default; -ENOENT for an unknown name. */
int mrrc_policy_open(const char *name, struct mrrc_policy **policy);
void mrrc_policy_close(struct mrrc_policy *policy);

/* The registered names, NULL-terminated, for messages and --help. */
const char *const *mrrc_policy_names(void);

#endif /* MRRC_POLICY_H */
