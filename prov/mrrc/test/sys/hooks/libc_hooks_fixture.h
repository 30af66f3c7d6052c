/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the tests of hooks share: the real monitor with hooks, and a subscriber
 * that knows of one range and how it was told about it.
 */
#ifndef MRRC_TEST_HOOKS_FIXTURE_H
#define MRRC_TEST_HOOKS_FIXTURE_H

#include "test/race/duel.h"
#include "test/sys/monitor/mon_fixture.h"

struct hooks_watcher {
	struct mrrc_mon_sub sub;
	struct mrrc_range range;
	atomic_uint told;
	atomic_bool here; /* by the thread that unmaps */
	pthread_t thread;
	struct mrrc_lock lock; /* CACHE: what a cache would take */
};

extern struct hooks_watcher watcher; /* subscribed to mon */
extern bool hooked;		     /* hooks are in place */
extern atomic_uint hooks_watched;    /* calls, from hooks_watch() on */
extern atomic_uint hooks_unwatched;  /* calls, ever */

void hooks_setup(void);
void hooks_teardown(void);

#define need_hooks()                           \
	do {                                   \
		need_uffd();                   \
		if (!hooked)                   \
			skip("no hooks here"); \
	} while (0)

/*
 * Calls that take pages away, of four: the first two, or two in the middle. Older
 * kernels refuse those with guards, which are announced as well.
 */
void do_dontneed(char *ptr);
void do_free(char *ptr);
void do_guard(char *ptr);
void do_own_dontneed(char *ptr); /* process_madvise(2) */
void do_own_guard(char *ptr);
void do_shmat(char *ptr); /* makes no event: nothing but the hook tells */

/* From now on the watcher knows of the range, and of nothing else. */
void hooks_watch(char *ptr, size_t pages);
char *hooks_map(void); /* four pages, and the watcher knows of them */

/* By a hook: in this thread, and the kernel had nothing left to report. */
void expect_hook(void);

/* By a hook that could have no lock; the kernel may have reported it, too. */
void expect_event(void);

/* By the kernel, sooner or later. */
void expect_kernel(void);

#endif /* MRRC_TEST_HOOKS_FIXTURE_H */
