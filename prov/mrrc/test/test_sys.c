/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of sys.
 */
#include "config.h"
#include "suites.h"

int main(void)
{
	static Suite *(*const suites[])(void) = {
		lock_suite,	   threads_suite,	 pool_suite,
		vm_suite,	   trust_suite,		 mon_suite,
		mon_child_suite,   mon_close_suite,	 mon_event_suite,
		uffd_suite,	   prepare_suite,	 huge_suite,
		hooks_suite,	   hooks_call_suite,	 hooks_signal_suite,
		hooks_event_suite, hooks_late_suite,	 cache_mt_suite,
		cache_child_suite, cache_cost_suite,	 cache_pieces_suite,
		cache_event_suite, pieces_event_suite,	 hit_suite,
		hit_threads_suite, holds_suite,		 region_hints_suite,
		reaper_suite,	   cache_revoke_suite,	 cache_uffd_suite,
		notifier_suite,	   notifier_event_suite, stats_shm_suite,
		pages_suite,	   pause_suite,		 biased_lock_suite,
		heap_suite,	   own_file_suite,	 sockets_suite,
		heap_block_suite,  heap_bug_suite,	 heap_hot_suite,
		heap_shard_suite,  heap_retire_suite,	 heap_wait_suite,
		trace_file_suite,  trace_child_suite,	 ahead_suite,
		ahead_node_suite,  ahead_life_suite,	 helper_suite,
		lease_suite,	   ring_suite,
	};

	return run_suites(suites, sizeof(suites) / sizeof(suites[0]));
}
