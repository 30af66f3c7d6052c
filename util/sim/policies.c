/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The list of eviction policies that fi_mrrc_sim accepts.
 */
#include "config.h"
#include "sim/policies.h"

const struct mrrc_policy_ops *const sim_policies[] = {
	&mrrc_policy_lru_ops,
	&mrrc_policy_fmrd_ops,
	&mrrc_policy_mre_text_ops,
	&mrrc_policy_mre_fig4_ops,
	&mrrc_policy_gdsf_ops,
	&mrrc_policy_gdl_ops,
	NULL,
};
