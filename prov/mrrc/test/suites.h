/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The suites, and what every test program does with them.
 */
#ifndef MRRC_TEST_SUITES_H
#define MRRC_TEST_SUITES_H

#include <stdbool.h>
#include <stdio.h>
#include <check.h>

Suite *index_suite(void);
Suite *admit_suite(void);
Suite *cost_suite(void);
Suite *cost_fit_suite(void);
Suite *cw_suite(void);
Suite *cw_wire_suite(void);
Suite *cw_cancel_suite(void);
Suite *deadline_suite(void);
Suite *hash_suite(void);
Suite *gaps_suite(void);
Suite *history_suite(void);
Suite *node_core_suite(void);
Suite *policy_suite(void);
Suite *policy_mre_suite(void);
Suite *policy_gdsf_suite(void);
Suite *plan_suite(void);
Suite *predict_suite(void);
Suite *spans_suite(void);
Suite *stats_suite(void);
Suite *reuse_suite(void);
Suite *revoke_suite(void);
Suite *schedule_suite(void);
Suite *schedule_model_suite(void);
Suite *shadow_suite(void);
Suite *cache_suite(void);
Suite *node_shm_suite(void);
Suite *budget_suite(void);
Suite *budget_give_suite(void);
Suite *budget_node_suite(void);
Suite *cache_budget_suite(void);
Suite *cpus_suite(void);
Suite *pool_suite(void);
Suite *lock_suite(void);
Suite *vm_suite(void);
Suite *mon_suite(void);
Suite *mon_child_suite(void);
Suite *mon_close_suite(void);
Suite *mon_event_suite(void);
Suite *uffd_suite(void);
Suite *prepare_suite(void);
Suite *huge_suite(void);
Suite *hooks_suite(void);
Suite *hooks_call_suite(void);
Suite *hooks_signal_suite(void);
Suite *trust_suite(void);
Suite *hooks_event_suite(void);
Suite *hooks_late_suite(void);
Suite *cache_mt_suite(void);
Suite *cache_child_suite(void);
Suite *cache_cost_suite(void);
Suite *cache_pieces_suite(void);
Suite *cache_event_suite(void);
Suite *hit_suite(void);
Suite *hit_threads_suite(void);
Suite *holds_suite(void);
Suite *region_hints_suite(void);
Suite *ahead_suite(void);
Suite *ahead_node_suite(void);
Suite *ahead_life_suite(void);
Suite *helper_suite(void);
Suite *reaper_suite(void);
Suite *cache_revoke_suite(void);
Suite *pieces_event_suite(void);
Suite *cache_uffd_suite(void);
Suite *notifier_suite(void);
Suite *notifier_event_suite(void);
Suite *stats_shm_suite(void);
Suite *trace_file_suite(void);
Suite *trace_child_suite(void);
Suite *threads_suite(void);
Suite *heap_arena_suite(void);
Suite *code_number_suite(void);
Suite *code_pair_suite(void);
Suite *code_filler_suite(void);
Suite *code_gap_suite(void);
Suite *code_over_suite(void);
Suite *code_file_suite(void);
Suite *biased_lock_suite(void);
Suite *heap_suite(void);
Suite *heap_block_suite(void);
Suite *heap_bug_suite(void);
Suite *heap_hot_suite(void);
Suite *heap_shard_suite(void);
Suite *heap_retire_suite(void);
Suite *heap_wait_suite(void);
Suite *lease_suite(void);
Suite *ring_suite(void);
Suite *own_file_suite(void);
Suite *sockets_suite(void);
Suite *pages_suite(void);
Suite *pause_suite(void);

/*
 * With MRRC_TEST=NAME in the environment only tests of this name are added to
 * their cases, as mutate.sh has it.
 */
void add_test(TCase *tcase, const TTest *test, int sig, int exit_value,
	      int start, int end);
#define _tcase_add_test(...) add_test(__VA_ARGS__)

/* Once for each element of a table, by _i. */
#define add_each(tcase, test, table)        \
	tcase_add_loop_test(tcase, test, 0, \
			    (int) (sizeof(table) / sizeof((table)[0])))

/* It translates code, and does not see that libc's has changed. */
bool under_valgrind(void);

/* So many rounds of a model; a tenth under valgrind, which is slow. */
unsigned rounds_of(unsigned all);

/* Without forking: monitors and threads belong to one process. */
int run_suites(Suite *(*const *suites)(void), unsigned count);

/* One. With CK_FORK_GETENV each test has a process, unless CK_FORK=no. */
int run_suite(Suite *suite, enum fork_status fork);

/*
 * Whether a condition becomes true: it is looked at again and again, and given
 * up after a minute, or a tenth of FT_HANGS seconds.
 */
#define comes(condition)                                    \
	({                                                  \
		unsigned tries_ = 0;                        \
                                                            \
		while (!(condition) && look_again(&tries_)) \
			;                                   \
		(condition);                                \
	})
bool look_again(unsigned *tries);

/* A child makes the call, whose result is 0 there. */
#define expect_child(call)                       \
	do {                                     \
		const pid_t pid_ = child_fork(); \
                                                 \
		if (!pid_)                       \
			child_exit(call);        \
		expect_ended(pid_);              \
	} while (0)
/* fork(2) and _exit(2), whose header some tests cannot have */
pid_t child_fork(void);
__attribute__((noreturn)) void child_exit(int status);
void expect_ended(pid_t pid);

/* The calling thread is cancelled where that is possible for the first time. */
void be_cancelled(void);

/* From now on the kernel answers a system call with that error. */
bool kernel_answers(unsigned number, unsigned error);

/*
 * This process ends after so many seconds. Not alarm(): Check's handler of it
 * ends the process group, whatever else is in there.
 */
void end_in(unsigned seconds);

/* Says why and leaves the test, which then counts as passed. */
#define skip(...)                                       \
	do {                                            \
		fprintf(stderr, "skip %s: ", __func__); \
		fprintf(stderr, __VA_ARGS__);           \
		fprintf(stderr, "\n");                  \
		return;                                 \
	} while (0)

/*
 * In a child of a process with threads: ThreadSanitizer refuses it, and
 * AddressSanitizer's allocator may have been locked by one of those.
 */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CHILD_MAY_THREAD 0
#else
#define CHILD_MAY_THREAD 1
#endif

#endif /* MRRC_TEST_SUITES_H */
