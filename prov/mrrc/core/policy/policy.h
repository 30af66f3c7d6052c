/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Eviction policies, which choose the region to evict: the policy table, and
 * the registry by name.
 *
 * The cache tells a policy of every region that enters the index, is used or
 * leaves, and asks the policy for victims. A policy threads indexed regions by
 * their `link` and keeps its own figures in the regions' `policy` words. Not
 * thread-safe: the owner of the cache guards the policy. Only open allocates.
 *
 * A policy is asked for by a text "name[:key=value]...", where the keys are its
 * parameters, and `pieces`, `batch` and `merge`, which every policy has.
 */
#ifndef MRRC_POLICY_H
#define MRRC_POLICY_H

#include "core/cost/cost.h"
#include "core/index/region.h"

#define MRRC_POLICY_DEFAULT "gdl"
#define MRRC_POLICY_PARAMS  3

struct mrrc_policy;

struct mrrc_policy_attr {
	const struct mrrc_cost *cost; /* outlives the policy */
	size_t max_bytes;
	size_t max_regions;
	void *arg; /* for policies of simulators */
};

struct mrrc_policy_param {
	const char *name;
	const char *help;
	size_t value, min, max;
};

struct mrrc_policy_ops {
	const char *name;
	const char *help;
	size_t pieces; /* maximum number of regions for one request */
	size_t batch;  /* maximum number of victims at a time */
	size_t merge;  /* 1: overlaps are merged by their cost */
	/* bytes of the state, which begins with a struct mrrc_policy */
	size_t size;
	struct mrrc_policy_param param[MRRC_POLICY_PARAMS];
	int (*init)(struct mrrc_policy *policy,
		    const struct mrrc_policy_attr *attr);
	void (*fini)(struct mrrc_policy *policy);
	/* Called for every request, before it is served; NULL: not needed. */
	void (*request)(struct mrrc_policy *policy, uintptr_t start,
			size_t len);
	void (*insert)(struct mrrc_policy *policy, struct mrrc_region *region);
	void (*touch)(struct mrrc_policy *policy, struct mrrc_region *region);
	void (*remove)(struct mrrc_policy *policy, struct mrrc_region *region);
	/*
	 * Returns the region to evict, which is not held at the moment, and is
	 * still known to the policy. NULL if no region can be evicted.
	 */
	struct mrrc_region *(*victim)(struct mrrc_policy *policy);
	/*
	 * Should more than @gone regions be evicted, though there is room
	 * already? NULL: `batch` decides.
	 */
	bool (*more)(struct mrrc_policy *policy, size_t gone);
	/* Whether the policy is sound and knows exactly @count regions. */
	bool (*valid)(const struct mrrc_policy *policy, size_t count);
};

struct mrrc_policy {
	const struct mrrc_policy_ops *ops;
	size_t param[MRRC_POLICY_PARAMS];
	size_t pieces;
	size_t batch;
	size_t merge;
};

extern const struct mrrc_policy_ops mrrc_policy_lru_ops;
extern const struct mrrc_policy_ops mrrc_policy_fmrd_ops; /* of simulators */
extern const struct mrrc_policy_ops mrrc_policy_mre_text_ops;
extern const struct mrrc_policy_ops mrrc_policy_mre_fig4_ops;
extern const struct mrrc_policy_ops mrrc_policy_gdl_ops;

/* The provider's policies, with NULL at the end. */
extern const struct mrrc_policy_ops *const mrrc_policies[];

/*
 * Opens a policy of @list, which ends with NULL; a @list of NULL stands for
 * mrrc_policies, a @spec of NULL for the default policy. -ENOENT: unknown name;
 * -ESRCH: unknown parameter; -EINVAL: a value is missing or not a number;
 * -ERANGE: a value is out of range.
 */
int mrrc_policy_open(const struct mrrc_policy_ops *const *list,
		     const char *spec, const struct mrrc_policy_attr *attr,
		     struct mrrc_policy **policy);
void mrrc_policy_close(struct mrrc_policy *policy);

/* Checks @spec as mrrc_policy_open() does, and opens nothing. */
int mrrc_policy_check(const struct mrrc_policy_ops *const *list,
		      const char *spec);

#endif /* MRRC_POLICY_H */
