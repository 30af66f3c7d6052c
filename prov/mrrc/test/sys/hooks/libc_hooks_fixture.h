/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixture of the tests of hooks: the real monitor with hooks, and a subscriber
 * that knows one range and how changes of the range were announced.
 */
#ifndef MRRC_TEST_HOOKS_FIXTURE_H
#define MRRC_TEST_HOOKS_FIXTURE_H

#include "test/race/duel.h"
#include "test/sys/monitor/mon_fixture.h"

struct hooks_watcher {
	struct mrrc_mon_sub sub;
	struct mrrc_range range;
	atomic_uint told;
	atomic_bool here; /* told by the thread that unmaps */
	pthread_t thread;
	struct mrrc_lock lock; /* rank CACHE, as a cache's lock */
};

extern struct hooks_watcher watcher; /* subscriber of mon */
extern bool hooked;		     /* hooks were placed */
extern atomic_uint hooks_watched;    /* calls of watch since hooks_watch() */
extern atomic_uint hooks_unwatched;  /* calls of unwatch so far */

void hooks_setup(void);
void hooks_teardown(void);

#define need_hooks()                           \
	do {                                   \
		need_uffd();                   \
		if (!hooked)                   \
			skip("no hooks here"); \
	} while (0)

/*
 * Calls that take away two of four pages: the first two pages, or the two pages
 * in the middle. Older kernels refuse the calls with guards, which are
 * announced all the same.
 */
void do_dontneed(char *ptr);
void do_free(char *ptr);
void do_guard(char *ptr);
void do_own_dontneed(char *ptr); /* drops pages by process_madvise(2) */
void do_own_guard(char *ptr);
void do_shmat(char *ptr); /* makes no event: only the hook announces it */

/* From now on the watcher knows this range, and no other one. */
void hooks_watch(char *ptr, size_t pages);
char *hooks_map(void); /* four pages, which the watcher knows */

/* A hook told the watcher, in this thread; the kernel had no more to report. */
void expect_hook(void);

/* A hook told of the range without a lock; the kernel may have told, too. */
void expect_event(void);

/* The kernel told the watcher, sooner or later. */
void expect_kernel(void);

#endif /* MRRC_TEST_HOOKS_FIXTURE_H */
