/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the tests of monitors share: the real monitor, where there is one, and
 * a subscriber that remembers what it was told.
 */
#ifndef MRRC_TEST_MON_FIXTURE_H
#define MRRC_TEST_MON_FIXTURE_H

#include "sys/monitor/mon.h"

#define MON_SEEN 80

struct mon_probe {
	struct mrrc_mon_sub sub;
	struct mrrc_lock lock; /* CACHE */
	atomic_uint count;
	struct mrrc_range got[MON_SEEN]; /* read once all is quiet */
	struct mrrc_range hull;		 /* what notify answers */
	struct mrrc_range keep;		 /* what cover answers */
};

extern size_t mon_page;
extern struct mrrc_mon *mon;	   /* userfaultfd, NULL: not here */
extern struct mon_probe mon_probe; /* subscribed to it */

void mon_setup(void);
void mon_teardown(void);

/* An empty memory, and a subscription not yet made. */
void mon_probe_init(struct mon_probe *probe);

/* Private anonymous pages, written to. */
char *mon_map(size_t pages);
int mon_watch(void *ptr, size_t pages);

/*
 * Pages to write to that are shared, or of a file, by number; NULL: there are
 * none of that kind.
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
extern uint64_t mon_token; /* of the last */

/* How many events so far, all of them handled. */
unsigned mon_events(void);

/* Whether one of them was of exactly that range. */
bool mon_told(void *ptr, size_t pages);

/* Maps, watches and unmaps until *(atomic_bool *)arg. A thread's function. */
void *mon_churn(void *arg);

/* Meanwhile other monitors come and go, hooked or not, and leave nothing. */
void mon_reopen(bool hook);

/* No event waits to be handled: not yet, perhaps, where one has been told. */
bool mon_even(void);

/* Another thread holds the lock from here on until it is let go. */
void mon_hold(struct mrrc_lock *lock);
void mon_let_go(void); /* any thread, and more than once */
void mon_hold_end(void);

#define need_uffd()                                  \
	do {                                         \
		if (!mon)                            \
			skip("no userfaultfd here"); \
	} while (0)

#endif /* MRRC_TEST_MON_FIXTURE_H */
