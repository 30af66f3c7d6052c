/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixture of the tests of sys/cache/cache_mt with a fake monitor. Ranges are
 * given in pages of a window of addresses; no memory is touched, so any
 * addresses will do.
 */
#ifndef MRRC_TEST_MT_FIXTURE_H
#define MRRC_TEST_MT_FIXTURE_H

#include "test/fakes/fake_mon.h"
#include "test/fakes/fake_reg.h"

#define MT_PAGES   64 /* limits of the cache */
#define MT_REGIONS 8

extern size_t page;
extern uintptr_t base; /* start of the window of 64 pages */
extern struct fake_reg fake;
extern struct mrrc_mon *mt_mon;
extern struct mrrc_cache_mt *cache;
extern struct mrrc_plan plan; /* plan of the last request in pieces */

void mt_setup(void);
/* Opens a cache that makes only the pieces and merges that a test asks for. */
void mt_setup_pieces(void);
void mt_teardown(void);

/* Opens a cache with the same limits and monitor, and the default policy. */
int open_cache(struct mrrc_cache_mt **out);
/*
 * Opens a cache with the fixture's monitor, and with the fixture's limits and
 * calls where @attr has no limit or call.
 */
int open_as(struct mrrc_cache_attr attr, struct mrrc_cache_mt **out);

/* Close the fixture's cache and open another: as open_as(), or with @policy. */
void reopen_as(struct mrrc_cache_attr attr);
void reopen(const char *policy);

uint64_t stat_of(enum mrrc_stat id);
/* Returns the number of regions in any state: registered, or about to be. */
unsigned regions_live(void);
/* Whether a range is pending; the range is forgotten, as its thread is gone. */
bool pending_left(void);
/* Returns the number of threads that wait for a registration or the helper. */
unsigned waiting(void);
/* Returns the number of hits of this thread without the lock. */
uint64_t quick(void);

/* These functions also check mrrc_cache_mt_valid(), and registered ranges. */
int try_get(unsigned first, unsigned pages, enum mrrc_access access,
	    struct mrrc_region **region);
struct mrrc_region *get_as(unsigned first, unsigned pages,
			   enum mrrc_access access);
struct mrrc_region *get(unsigned first, unsigned pages); /* for writing */
void put(struct mrrc_region *region);
void touch(unsigned first, unsigned pages); /* get and put */
/* Gets and puts any bytes, in any cache. */
void touch_at(struct mrrc_cache_mt *in, uintptr_t start, size_t len,
	      enum mrrc_access access);

/* Whether the pieces cover the pages in order, and each has a registration. */
bool covered(const struct mrrc_plan *got, unsigned first, unsigned pages,
	     enum mrrc_access access);

/* Gets a range in at most @limit pieces: in `plan`, and all held. */
int try_pieces(unsigned first, unsigned pages, enum mrrc_access access,
	       unsigned limit);
void get_pieces(unsigned first, unsigned pages, enum mrrc_access access,
		unsigned limit);
void put_pieces(void);

/* Checks the pages of piece @i, and its region if @region is not NULL. */
void piece_is(unsigned i, unsigned first, unsigned pages,
	      const struct mrrc_region *region);

#endif /* MRRC_TEST_MT_FIXTURE_H */
