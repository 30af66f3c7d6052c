/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of core.
 */
#include "config.h"
#include "suites.h"

int main(void)
{
	static Suite *(*const suites[])(void) = {
		index_suite,	      cost_suite,	 cost_fit_suite,
		gaps_suite,	      history_suite,	 policy_suite,
		policy_mre_suite,     policy_gdsf_suite, plan_suite,
		predict_suite,	      deadline_suite,	 schedule_suite,
		schedule_model_suite, stats_suite,	 cache_suite,
		admit_suite,	      reuse_suite,	 revoke_suite,
		shadow_suite,	      cw_suite,		 cw_wire_suite,
		cw_cancel_suite,      hash_suite,	 heap_arena_suite,
		spans_suite,	      node_core_suite,
	};

	return run_suites(suites, sizeof(suites) / sizeof(suites[0]));
}
