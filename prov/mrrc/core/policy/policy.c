/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registry of eviction policies, and their parameters (policy.h).
 */
#include "config.h"
#include "core/policy/policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/text.h"

#define MRRC_BATCH_MAX 65536

const struct mrrc_policy_ops *const mrrc_policies[] = {
	&mrrc_policy_lru_ops,
	&mrrc_policy_mre_text_ops,
	&mrrc_policy_mre_fig4_ops,
	&mrrc_policy_gdl_ops,
	NULL,
};

/* Parameters of every policy. */
static const struct mrrc_policy_param mrrc_policy_common[] = {
	{ "pieces", "regions for one request", 0, 1, MRRC_PIECES_MAX },
	{ "batch", "victims at a time", 0, 1, MRRC_BATCH_MAX },
	{ "merge", "1: overlaps are merged by their cost", 0, 0, 1 },
};

#define MRRC_COMMON_CNT 3

static bool policy_named(const char *name, const char *text, size_t len)
{
	return strlen(name) == len && !strncmp(name, text, len);
}

/* The value of a parameter: @len digits. */
static int policy_value(const struct mrrc_policy_param *param, const char *text,
			size_t len, size_t *value)
{
	char digits[24];
	size_t number;
	int ret;

	if (len >= sizeof(digits))
		return strspn(text, "0123456789") < len ? -EINVAL : -ERANGE;
	memcpy(digits, text, len);
	digits[len] = '\0';
	ret = mrrc_text_count(digits, &number);
	if (ret)
		return ret;
	if (number < param->min || number > param->max)
		return -ERANGE;
	*value = number;
	return 0;
}

/* Sets the parameter of one "key=value" of @len characters. */
static int policy_set(struct mrrc_policy *policy, const char *text, size_t len)
{
	const struct mrrc_policy_param *param = policy->ops->param;
	const char *equals = memchr(text, '=', len);
	size_t *const common[MRRC_COMMON_CNT] = {
		&policy->pieces,
		&policy->batch,
		&policy->merge,
	};
	size_t key, i;

	if (!equals)
		return -EINVAL;
	key = equals - text;
	for (i = 0; i < MRRC_COMMON_CNT; i++) {
		if (policy_named(mrrc_policy_common[i].name, text, key))
			return policy_value(&mrrc_policy_common[i], equals + 1,
					    len - key - 1, common[i]);
	}
	for (i = 0; i < MRRC_POLICY_PARAMS && param[i].name; i++) {
		if (policy_named(param[i].name, text, key))
			return policy_value(&param[i], equals + 1,
					    len - key - 1, &policy->param[i]);
	}
	return -ESRCH;
}

static int policy_set_all(struct mrrc_policy *policy, const char *text)
{
	size_t len;
	int ret;

	while (text) {
		len = strcspn(text, ":");
		ret = policy_set(policy, text, len);
		if (ret)
			return ret;
		text = text[len] ? text + len + 1 : NULL;
	}
	return 0;
}

static void policy_defaults(struct mrrc_policy *policy,
			    const struct mrrc_policy_ops *ops)
{
	size_t i;

	policy->ops = ops;
	policy->pieces = ops->pieces;
	policy->batch = ops->batch;
	policy->merge = ops->merge;
	for (i = 0; i < MRRC_POLICY_PARAMS; i++)
		policy->param[i] = ops->param[i].value;
}

/* The policy that the text names; *params: the rest of the text, or NULL. */
static const struct mrrc_policy_ops *
policy_parse(const struct mrrc_policy_ops *const *ops, const char *spec,
	     const char **params)
{
	size_t len;

	if (!ops)
		ops = mrrc_policies;
	if (!spec)
		spec = MRRC_POLICY_DEFAULT;
	len = strcspn(spec, ":");
	*params = spec[len] ? spec + len + 1 : NULL;
	while (*ops && !policy_named((*ops)->name, spec, len))
		ops++;
	return *ops;
}

int mrrc_policy_open(const struct mrrc_policy_ops *const *list,
		     const char *spec, const struct mrrc_policy_attr *attr,
		     struct mrrc_policy **policy)
{
	const struct mrrc_policy_ops *ops;
	struct mrrc_policy *pol;
	const char *params;
	int ret;

	ops = policy_parse(list, spec, &params);
	if (!ops)
		return -ENOENT;
	pol = calloc(1, ops->size);
	if (!pol)
		return -ENOMEM;
	policy_defaults(pol, ops);
	ret = policy_set_all(pol, params);
	if (!ret)
		ret = ops->init(pol, attr);
	if (ret)
		goto err_free;
	*policy = pol;
	return 0;

err_free:
	free(pol);
	return ret;
}

int mrrc_policy_check(const struct mrrc_policy_ops *const *list,
		      const char *spec)
{
	const struct mrrc_policy_ops *ops;
	struct mrrc_policy policy;
	const char *params;

	ops = policy_parse(list, spec, &params);
	if (!ops)
		return -ENOENT;
	policy_defaults(&policy, ops);
	return policy_set_all(&policy, params);
}

void mrrc_policy_close(struct mrrc_policy *policy)
{
	policy->ops->fini(policy);
	free(policy);
}
