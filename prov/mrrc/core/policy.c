/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registry of eviction policies (policy.h).
 */
#include "config.h"
#include "core/policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct mrrc_policy_ops *const mrrc_policies[] = {
	&mrrc_policy_lru_ops,
};

#define MRRC_POLICY_CNT	(sizeof(mrrc_policies) / sizeof(mrrc_policies[0]))

static const char *const mrrc_policy_name_list[MRRC_POLICY_CNT + 1] = {
	"lru",
};

const char *const *mrrc_policy_names(void)
{
	return mrrc_policy_name_list;
}

int mrrc_policy_open(const char *name, struct mrrc_policy **policy)
{
	struct mrrc_policy *pol;
	size_t i;
	int rc;

	if (!name)
		name = MRRC_POLICY_DEFAULT;
	for (i = 0; i < MRRC_POLICY_CNT; i++) {
		if (!strcmp(name, mrrc_policies[i]->name))
			break;
	}
	if (i == MRRC_POLICY_CNT)
		return -ENOENT;

	pol = calloc(1, mrrc_policies[i]->size);
	if (!pol)
		return -ENOMEM;
	pol->ops = mrrc_policies[i];
	rc = pol->ops->init(pol);
	if (rc)
		goto err_free;
	*policy = pol;
	return 0;

err_free:
	free(pol);
	return rc;
}

void mrrc_policy_close(struct mrrc_policy *policy)
{
	policy->ops->fini(policy);
	free(policy);
}
