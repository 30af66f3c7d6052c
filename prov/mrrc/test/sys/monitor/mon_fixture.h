/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixture of the tests of monitors: the real monitor, where available, and a
 * subscriber that records the ranges that it is told.
 */
#ifndef MRRC_TEST_MON_FIXTURE_H
#define MRRC_TEST_MON_FIXTURE_H

#include "sys/monitor/mon.h"

#define MON_SEEN 80

struct mon_probe {
	struct mrrc_mon_sub sub;
	struct mrrc_lock lock; /* rank CACHE */
	atomic_uint count;
	struct mrrc_range got[MON_SEEN]; /* to be read when all is quiet */
	struct mrrc_range hull;		 /* answer of notify */
	struct mrrc_range keep;		 /* answer of cover */
};

extern size_t mon_page;
extern struct mrrc_mon *mon;	   /* userfaultfd; NULL: not available here */
extern struct mon_probe mon_probe; /* subscriber of mon */

void mon_setup(void);
void mon_teardown(void);

/* Clears the record; the caller subscribes. */
void mon_probe_init(struct mon_probe *probe);

/* Maps private anonymous pages, and writes to them. */
char *mon_map(size_t pages);
int mon_watch(void *ptr, size_t pages);

/*
 * Kinds of memory that are shared, or of a file. mon_map_kind() maps writable
 * pages; NULL: this kind is not available.
 */
enum mon_kind {
	MON_SHARED,
	MON_MEMORY_FILE,
	MON_MEMORY_FILE_PRIVATE,
	MON_FILE,
	MON_FILE_PRIVATE,
	MON_SEGMENT,
	MON_KINDS
};
char *mon_map_kind(enum mon_kind kind, size_t pages);
extern uint64_t mon_token; /* token of the last mon_watch() */

/* Returns the number of events so far, all of which are handled. */
unsigned mon_events(void);

/* Whether an event was of exactly this range. */
bool mon_told(void *ptr, size_t pages);

/* A thread that maps, watches and unmaps until *(atomic_bool *)arg is set. */
void *mon_churn(void *arg);

/* Opens and closes other monitors, hooked or not, and checks for leaks. */
void mon_reopen(bool hook);

/* Whether no event waits to be handled; told events may wait a bit longer. */
bool mon_even(void);

/* Another thread holds the lock from now on, until mon_let_go(). */
void mon_hold(struct mrrc_lock *lock);
void mon_let_go(void); /* callable by any thread, several times */
void mon_hold_end(void);

#define need_uffd()                                  \
	do {                                         \
		if (!mon)                            \
			skip("no userfaultfd here"); \
	} while (0)

#endif /* MRRC_TEST_MON_FIXTURE_H */
