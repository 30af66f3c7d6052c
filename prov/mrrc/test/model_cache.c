/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/cache against a naive model: random operations, each answered by both,
 * with mrrc_cache_valid() after every one.
 *
 * The model keeps an array from the oldest to the newest use and knows no
 * tree, no counters and no pointers between regions.
 *
 * MRRC_SEED, MRRC_MODEL_OPS: what to run. The seed is printed.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/cache.h"

#define PAGE		4096u
#define SPACE		200u		/* pages that exist */
#define MAX_PAGES	80u
#define MAX_REGIONS	12u
#define POOL		64u		/* regions alive at once */

/* A region as the model sees it, in pages. */
struct entry {
	struct mrrc_region *region;
	unsigned first, pages;
	enum mrrc_access access;
	unsigned held;
};

static struct mrrc_cache cache;
static struct entry entry[POOL];	/* indexed, oldest use first */
static unsigned count;
static struct mrrc_region pool[POOL];
static bool used[POOL];
static unsigned out[POOL];	/* held by the test, by pool slot */
static uint64_t hits, evictions;
static unsigned long seed;
static unsigned long step;

static unsigned pick(unsigned n)
{
	static uint64_t state;

	if (!state)
		state = seed * 2 + 1;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 20) % n;
}

#define check(what)	do {						\
		if (!(what)) {						\
			printf("step %lu: %s (MRRC_SEED=%lu)\n",	\
			       step, #what, seed);			\
			exit(EXIT_FAILURE);				\
		}							\
	} while (0)

static bool overlaps(const struct entry *e, unsigned first, unsigned pages)
{
	return e->first < first + pages && first < e->first + e->pages;
}

static void drop(unsigned i)
{
	memmove(&entry[i], &entry[i + 1], (--count - i) * sizeof(entry[0]));
}

static void renew(unsigned i)
{
	struct entry e = entry[i];

	drop(i);
	entry[count++] = e;
}

static unsigned total(bool held)
{
	unsigned pages = 0;
	unsigned i;

	for (i = 0; i < count; i++)
		pages += !held || entry[i].held ? entry[i].pages : 0;
	return pages;
}

static unsigned held_regions(void)
{
	unsigned n = 0;
	unsigned i;

	for (i = 0; i < count; i++)
		n += entry[i].held != 0;
	return n;
}

/* A victim's place, or count: those in use become the newest. */
static unsigned model_victim(void)
{
	unsigned tries;

	for (tries = count; tries; tries--) {
		if (!entry[0].held)
			return 0;
		renew(0);
	}
	return count;
}

static struct mrrc_region *model_lookup(unsigned first, unsigned pages,
					enum mrrc_access access)
{
	int want;
	unsigned i;

	for (want = MRRC_RW; want >= (int)access; want--) {
		for (i = 0; i < count; i++) {
			if (entry[i].access != (enum mrrc_access)want ||
			    entry[i].first > first ||
			    entry[i].first + entry[i].pages < first + pages)
				continue;
			hits++;
			renew(i);
			return entry[count - 1].region;
		}
	}
	return NULL;
}

static void model_widen(unsigned first, unsigned pages,
			enum mrrc_access access, unsigned *start,
			unsigned *len)
{
	unsigned lo = first;
	unsigned hi = first + pages;
	unsigned i;

	for (i = 0; i < count; i++) {
		if (entry[i].access != access ||
		    !overlaps(&entry[i], first, pages))
			continue;
		if (entry[i].first < lo)
			lo = entry[i].first;
		if (entry[i].first + entry[i].pages > hi)
			hi = entry[i].first + entry[i].pages;
	}
	if (hi - lo > MAX_PAGES / 4) {
		lo = first;
		hi = first + pages;
	}
	*start = lo;
	*len = hi - lo;
}

static int model_insert(struct mrrc_region *region, unsigned first,
			unsigned pages, enum mrrc_access access)
{
	unsigned bytes = total(true);
	unsigned regions = held_regions();
	unsigned i;

	if (pages > MAX_PAGES)
		return -E2BIG;
	for (i = 0; i < count; i++) {
		if (entry[i].access == access && entry[i].held &&
		    overlaps(&entry[i], first, pages)) {
			bytes -= entry[i].pages;
			regions--;
		}
	}
	if (regions >= MAX_REGIONS || bytes + pages > MAX_PAGES)
		return -ENOSPC;
	for (i = 0; i < count;) {
		if (entry[i].access == access &&
		    overlaps(&entry[i], first, pages))
			drop(i);
		else
			i++;
	}
	while (count >= MAX_REGIONS || total(false) + pages > MAX_PAGES) {
		i = model_victim();
		check(i < count);
		drop(i);
		evictions++;
	}
	entry[count++] = (struct entry) {
		region, first, pages, access, region->held,
	};
	return 0;
}

/* The same regions are indexed on both sides, in the same order of use. */
static void compare(void)
{
	struct mrrc_region *region;
	unsigned indexed = 0;
	unsigned i;

	check(mrrc_cache_valid(&cache));
	check(cache.stats.value[MRRC_STAT_HITS] == hits);
	check(cache.stats.value[MRRC_STAT_EVICTIONS] == evictions);
	check(cache.stats.value[MRRC_STAT_BYTES] == total(false) * PAGE);
	check(cache.held_bytes == total(true) * PAGE);
	for (i = 0; i < POOL; i++)
		indexed += used[i] && pool[i].state == MRRC_REGION_INDEXED;
	check(indexed == count);
	for (i = 0; i < count; i++) {
		region = entry[i].region;
		check(region->state == MRRC_REGION_INDEXED);
		check(region->start == entry[i].first * PAGE);
		check(region->len == entry[i].pages * PAGE);
		check(region->held == entry[i].held);
	}
}

/* Deregister: every victim is dead, unheld, and comes once. */
static void reap(struct mrrc_region_list *victims)
{
	struct mrrc_region *region;

	while ((region = TAILQ_FIRST(victims))) {
		TAILQ_REMOVE(victims, region, link);
		check(region->state == MRRC_REGION_DEAD && !region->held);
		check(used[region - pool]);
		used[region - pool] = false;
	}
}

static void hold(struct mrrc_region *region)
{
	unsigned i;

	mrrc_cache_hold(&cache, region);
	out[region - pool]++;
	for (i = 0; i < count; i++)
		entry[i].held += entry[i].region == region;
}

static void put(struct mrrc_region *region)
{
	unsigned slot = region - pool;
	bool last = mrrc_cache_put(&cache, region);
	unsigned i;

	out[slot]--;
	for (i = 0; i < count; i++)
		entry[i].held -= entry[i].region == region;
	check(last == (!out[slot] && region->state != MRRC_REGION_INDEXED));
	if (last)
		used[slot] = false;
}

static unsigned free_slot(void)
{
	unsigned slot;

	for (slot = 0; slot < POOL && used[slot]; slot++)
		;
	return slot;
}

/* Bytes within the pages [first, first + pages), touching each of them. */
static void bytes_of(unsigned first, unsigned pages, uintptr_t *addr,
		     size_t *len)
{
	unsigned head = pick(4) ? 0 : pick(PAGE);
	unsigned tail = pick(4) ? 0 : pick(PAGE);

	if (pages == 1 && head + tail >= PAGE)
		head = tail = 0;
	*addr = (uintptr_t)first * PAGE + head;
	*len = (size_t)pages * PAGE - head - tail;
}

static void do_request(struct mrrc_region_list *victims)
{
	const enum mrrc_access access = pick(2);
	const unsigned first = 1 + pick(SPACE);
	const unsigned pages = 1 + pick(pick(8) ? 6 : MAX_PAGES + 4);
	struct mrrc_region *region;
	unsigned slot, model_first, model_pages;
	uintptr_t addr, start;
	size_t len, range;
	int rc;

	bytes_of(first, pages, &addr, &len);
	region = mrrc_cache_lookup(&cache, addr, len, access);
	check(region == model_lookup(first, pages, access));
	slot = free_slot();
	if (region) {
		if (pick(2))
			hold(region);
		return;
	}
	if (slot == POOL)
		return;
	mrrc_cache_widen(&cache, addr, len, access, &start, &range);
	model_widen(first, pages, access, &model_first, &model_pages);
	check(start == (uintptr_t)model_first * PAGE);
	check(range == (size_t)model_pages * PAGE);

	used[slot] = true;
	pool[slot] = (struct mrrc_region) {
		.start = start, .len = range, .access = access,
	};
	if (pick(2))
		hold(&pool[slot]);
	rc = mrrc_cache_insert(&cache, &pool[slot], victims);
	check(rc == model_insert(&pool[slot], model_first, model_pages,
				 access));
	/* What stays out of the index goes with its last put. */
	if (rc && !pool[slot].held)
		used[slot] = false;
}

static void do_put(void)
{
	const unsigned from = pick(POOL);
	unsigned i;

	for (i = 0; i < POOL; i++) {
		if (out[(from + i) % POOL]) {
			put(&pool[(from + i) % POOL]);
			return;
		}
	}
}

static void do_invalidate(struct mrrc_region_list *victims)
{
	const unsigned first = pick(SPACE);
	const unsigned pages = 1 + pick(pick(10) ? 4 : SPACE);
	unsigned left = 0;
	unsigned i;

	for (i = 0; i < count;) {
		if (overlaps(&entry[i], first, pages)) {
			drop(i);
			left++;
		} else {
			i++;
		}
	}
	check(mrrc_cache_invalidate(&cache, first * PAGE, pages * PAGE,
				    victims) == left);
}

static void do_evict_all(struct mrrc_region_list *victims)
{
	unsigned left = 0;
	unsigned i;

	while ((i = model_victim()) < count) {
		drop(i);
		left++;
	}
	evictions += left;
	check(mrrc_cache_evict_all(&cache, victims) == left);
}

static void run(unsigned long ops)
{
	struct mrrc_region_list victims = TAILQ_HEAD_INITIALIZER(victims);

	for (step = 0; step < ops; step++) {
		switch (pick(16)) {
		case 0:
			do_invalidate(&victims);
			break;
		case 1:
			if (!pick(40))
				do_evict_all(&victims);
			break;
		case 2: case 3: case 4: case 5: case 6:
			do_put();
			break;
		default:
			do_request(&victims);
		}
		reap(&victims);
		compare();
	}
	/* Everything is put, everything leaves, nothing is left. */
	do_evict_all(&victims);
	while (cache.stats.value[MRRC_STAT_HELD])
		do_put();
	do_evict_all(&victims);
	reap(&victims);
	compare();
	check(free_slot() == 0 && !count);
	for (step = 0; step < POOL; step++)
		check(!used[step] && !out[step]);
}

int main(void)
{
	const char *text = getenv("MRRC_SEED");
	const char *ops = getenv("MRRC_MODEL_OPS");

	seed = text ? strtoul(text, NULL, 0) :
		      (unsigned long)time(NULL) ^ (unsigned long)getpid() << 16;
	printf("MRRC_SEED=%lu\n", seed);
	fflush(stdout);
	if (mrrc_cache_init(&cache, MAX_PAGES * PAGE, MAX_REGIONS, PAGE, NULL))
		return EXIT_FAILURE;
	run(ops ? strtoul(ops, NULL, 0) : 400000);
	printf("%lu hits, %lu evictions, %lu invalidations\n", hits,
	       evictions, cache.stats.value[MRRC_STAT_INVALIDATIONS]);
	mrrc_cache_fini(&cache);
	return EXIT_SUCCESS;
}
