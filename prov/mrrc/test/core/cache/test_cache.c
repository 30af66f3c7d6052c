/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/cache/cache: lookups by access, budget, batches, states and victims.
 * test_plan.c tests the plans of lookups.
 */
#include "config.h"
#include "test/case.h"

#include "core/cache/cache.h"
#include "test/fakes/fault.h"
#include "core/cache/plan.h"

#define PAGE	    4096u
#define MAX_BYTES   (64 * PAGE)
#define MAX_REGIONS 8

static struct mrrc_cache cache;
static struct mrrc_region region[32];
static struct mrrc_region_list victims;

static uint64_t stat(enum mrrc_stat id)
{
	return cache.stats->value[id];
}

static const struct mrrc_cost cost = {
	.reg_page = 1,
	.reg = 4,
	.dereg_page = 1,
	.dereg = 1,
	.page = PAGE,
};

static void open_cache(size_t max_bytes, size_t max_regions, const char *policy)
{
	ck_assert_int_eq(mrrc_cache_init(&cache,
					 &(struct mrrc_cache_conf){
						 .max_bytes = max_bytes,
						 .max_regions = max_regions,
						 .page = PAGE,
						 .policy = policy,
						 .cost = &cost,
					 }),
			 0);
}

static void setup(void)
{
	TAILQ_INIT(&victims);
	open_cache(MAX_BYTES, MAX_REGIONS, "lru");
}

static void teardown(void)
{
	ck_assert(mrrc_cache_valid(&cache));
	mrrc_cache_invalidate(&cache, 0, SIZE_MAX, &victims);
	ck_assert(mrrc_cache_valid(&cache));
	mrrc_cache_fini(&cache);
}

/* Makes a region in state NEW that consists of whole pages. */
static struct mrrc_region *make(int i, unsigned page, unsigned pages,
				enum mrrc_access access)
{
	region[i] = (struct mrrc_region){
		.start = page * PAGE,
		.len = pages * PAGE,
		.access = access,
	};
	return &region[i];
}

static int put(int i, unsigned page, unsigned pages, enum mrrc_access access)
{
	int ret = mrrc_cache_insert(&cache, make(i, page, pages, access),
				    &victims);

	ck_assert(mrrc_cache_valid(&cache));
	return ret;
}

/* Looks a range up; returns the one region that covers all of it, or NULL. */
static struct mrrc_region *lookup(uintptr_t addr, size_t len,
				  enum mrrc_access access)
{
	struct mrrc_plan plan;

	mrrc_cache_lookup(&cache, addr, len, access, 1, &plan);
	ck_assert_uint_eq(plan.count, 1);
	return plan.piece[0].region;
}

static int count_victims(void)
{
	struct mrrc_region *victim;
	int count = 0;

	TAILQ_FOREACH(victim, &victims, link) {
		ck_assert_int_eq(victim->state, MRRC_REGION_DEAD);
		ck_assert_uint_eq(mrrc_region_held(victim), 0);
		count++;
	}
	return count;
}

TEST_CASE(cache, setup, teardown);

/* Only regions with remote access serve requests for remote access. */
TEST(test_remote)
{
	const unsigned all = MRRC_RW | MRRC_REMOTE_READ | MRRC_REMOTE_WRITE;
	unsigned i;

	ck_assert_int_eq(put(0, 10, 2, all), 0);
	ck_assert_int_eq(put(1, 10, 2, MRRC_REMOTE_READ), 0);
	for (i = 0; i < MRRC_ACCESS_CNT; i++) {
		ck_assert_ptr_eq(mrrc_cache_find(&cache, 10 * PAGE, 5, i),
				 i == all	       ? &region[0] :
				 i == MRRC_REMOTE_READ ? &region[1] :
							 NULL);
		ck_assert_int_eq(mrrc_access_remote(i), i > MRRC_RW);
	}
	ck_assert_int_eq(put(2, 20, 2, MRRC_RW), 0);
	ck_assert_ptr_null(mrrc_cache_find(&cache, 20 * PAGE, 5, all));
	mrrc_cache_invalidate(&cache, 20 * PAGE, 1, &victims);
	mrrc_cache_invalidate(&cache, 10 * PAGE, 1, &victims);
	ck_assert_ptr_null(mrrc_cache_find(&cache, 10 * PAGE, 5, all));
	ck_assert_uint_eq(cache.stats->value[MRRC_STAT_REGIONS], 0);
}

static const struct {
	struct mrrc_cache_conf conf;
	int ret;
} confs[] = {
	{ { 0, 1, PAGE, NULL, NULL, NULL, NULL, NULL }, -EINVAL },
	{ { 1, 0, PAGE, NULL, NULL, NULL, NULL, NULL }, -EINVAL },
	{ { 1, 1, 0, NULL, NULL, NULL, NULL, NULL }, -EINVAL },
	{ { 1, 1, 5000, NULL, NULL, NULL, NULL, NULL }, -EINVAL },
	{ { 1, 1, PAGE, "x", NULL, NULL, NULL, NULL }, -ENOENT },
	{ { 1, 1, PAGE, "lru:x=1", NULL, NULL, NULL, NULL }, -ESRCH },
	{ { 1, 1, PAGE, NULL, NULL, NULL,
	    &(const struct mrrc_cost){ .page = 3 }, NULL },
	  -EINVAL },
	{ { 1, 1, PAGE, NULL, NULL, NULL,
	    &(const struct mrrc_cost){ .page = 1, .reg = -1 }, NULL },
	  -EINVAL },
	{ { 1, 1, 1, NULL, NULL, NULL, NULL, NULL }, 0 },
};

LOOP_TEST(test_init, 0, sizeof(confs) / sizeof(confs[0]))
{
	struct mrrc_cache other;

	ck_assert_int_eq(mrrc_cache_init(&other, &confs[_i].conf),
			 confs[_i].ret);
	if (confs[_i].ret)
		return;
	ck_assert_str_eq(other.policy->ops->name, MRRC_POLICY_DEFAULT);
	ck_assert_mem_eq(&other.cost, &mrrc_cost_default, sizeof(other.cost));
	ck_assert(mrrc_cache_valid(&other));
	mrrc_cache_fini(&other);
}

/* Allocation fails for the policy's state, and for its history. */
TEST(test_init_fails)
{
	const struct mrrc_cache_conf conf = { 1,    1,	  PAGE, "gdl:duel=0",
					      NULL, NULL, NULL, NULL };
	struct mrrc_cache other;
	bool fired;
	int ret, n;

	for (n = 1;; n++) {
		fault_arm(n);
		ret = mrrc_cache_init(&other, &conf);
		fired = fault_disarm();
		if (!fired)
			break;
		ck_assert_int_eq(ret, -ENOMEM);
		ck_assert_uint_eq(fault_leaks(), 0);
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_int_eq(n, 4);
	mrrc_cache_fini(&other);
}

/* A simulator's policy is opened with the simulator's argument. */
static void *seen_arg;

static int own_init(struct mrrc_policy *policy,
		    const struct mrrc_policy_attr *attr)
{
	seen_arg = attr->arg;
	ck_assert_ptr_eq(attr->cost, &cache.cost);
	ck_assert_uint_eq(attr->max_bytes, MAX_BYTES);
	ck_assert_uint_eq(attr->max_regions, MAX_REGIONS);
	return mrrc_policy_lru_ops.init(policy, attr);
}

TEST(test_own_policy)
{
	struct mrrc_policy_ops own = mrrc_policy_lru_ops;
	const struct mrrc_policy_ops *const list[] = { &own, NULL };
	const struct mrrc_cache_conf conf = {
		MAX_BYTES, MAX_REGIONS, PAGE, "lru", list, &own, NULL, NULL,
	};

	mrrc_cache_fini(&cache);
	own.init = own_init;
	ck_assert_int_eq(mrrc_cache_init(&cache, &conf), 0);
	ck_assert_ptr_eq(seen_arg, &own);
	ck_assert_int_eq(put(0, 10, 2, MRRC_RW), 0);
	/* The policy table is a local variable of this function. */
	mrrc_cache_evict_all(&cache, &victims);
	mrrc_cache_fini(&cache);
	setup();
}

/* All regions are evicted, in whatever order they came or were used. */
TEST(test_evict_all)
{
	static const unsigned pages[] = { 20, 4, 12, 0, 16, 8 };
	const struct mrrc_region *at;
	uintptr_t before = 0;
	unsigned i;

	for (i = 0; i < 6; i++)
		ck_assert_int_eq(put(i, pages[i] + 1, 2, MRRC_RW), 0);
	mrrc_cache_hold(&cache, &region[4]);
	ck_assert_uint_eq(mrrc_cache_evict_all(&cache, &victims), 5);
	TAILQ_FOREACH(at, &victims, link) {
		ck_assert_uint_gt(at->start, before);
		before = at->start;
	}
	TAILQ_INIT(&victims);
	ck_assert_int_eq(region[4].state, MRRC_REGION_INDEXED);
	mrrc_cache_put(&cache, &region[4]);
	ck_assert_uint_eq(mrrc_cache_evict_all(&cache, &victims), 1);
}

TEST(test_access)
{
	ck_assert_int_eq(put(0, 10, 2, MRRC_RO), 0);
	ck_assert_int_eq(put(1, 20, 2, MRRC_RW), 0);
	ck_assert_ptr_eq(lookup(10 * PAGE, 5, MRRC_RO), &region[0]);
	ck_assert_ptr_null(lookup(10 * PAGE, 5, MRRC_RW));
	ck_assert_ptr_eq(lookup(20 * PAGE, 5, MRRC_RO), &region[1]);
	ck_assert_ptr_eq(lookup(20 * PAGE, 5, MRRC_RW), &region[1]);
	ck_assert_uint_eq(stat(MRRC_STAT_LOOKUPS), 4);
	ck_assert_uint_eq(stat(MRRC_STAT_HITS), 3);
	ck_assert_uint_eq(stat(MRRC_STAT_MISSES), 1);
	/* A local and a remote region do not displace each other. */
	ck_assert_int_eq(put(2, 10, 2, MRRC_RW), 0);
	ck_assert_int_eq(count_victims(), 0);
	ck_assert_uint_eq(stat(MRRC_STAT_REGIONS), 3);
}

TEST(test_overlap_leaves)
{
	put(0, 10, 4, MRRC_RW);
	put(1, 20, 4, MRRC_RW);
	mrrc_cache_hold(&cache, &region[1]);
	ck_assert_int_eq(put(2, 12, 10, MRRC_RW), 0);
	ck_assert_int_eq(count_victims(), 1);
	ck_assert_ptr_eq(TAILQ_FIRST(&victims), &region[0]);
	ck_assert_int_eq(region[1].state, MRRC_REGION_DEAD);
	ck_assert_uint_eq(stat(MRRC_STAT_OVERLAPS), 2);
	ck_assert_ptr_null(lookup(23 * PAGE, 1, MRRC_RW));
	ck_assert(mrrc_cache_put(&cache, &region[1]));
	ck_assert_int_eq(count_victims(), 1);
}

/*
 * Adjacent buffers that share a page all stay registered for peers, in any
 * order of registration.
 */
TEST(test_remote_neighbours)
{
	const unsigned order[] = { 0, 1, 2, 5, 4, 3 };
	unsigned i;

	for (i = 0; i < 6; i++)
		ck_assert_int_eq(put(order[i], 10 + 3 * order[i], 4,
				     MRRC_REMOTE_READ),
				 0);
	ck_assert_int_eq(count_victims(), 0);
	for (i = 0; i < 6; i++)
		ck_assert_ptr_eq(lookup((10 + 3 * i) * PAGE, 4 * PAGE,
					MRRC_REMOTE_READ),
				 &region[i]);
	ck_assert_uint_eq(stat(MRRC_STAT_OVERLAPS), 0);
	ck_assert(mrrc_cache_valid(&cache));
	/* Unmapping a page that two regions share removes both regions. */
	ck_assert_uint_eq(mrrc_cache_invalidate(&cache, 13 * PAGE, 1, &victims),
			  2);
	ck_assert_int_eq(count_victims(), 2);
}

static const struct {
	unsigned start, len;
	bool stays; /* the region of pages 10 to 17 stays */
} remotes[] = {
	{ 14, 8, true },  /* half of each region is shared */
	{ 13, 8, false }, /* more than half is shared */
	{ 6, 8, true },	  { 7, 8, false },  { 17, 2, true },
	{ 17, 1, false }, /* inside the other region */
	{ 10, 8, false }, { 8, 12, false }, { 10, 9, false },
	{ 9, 9, false },  { 16, 3, false }, /* two of three pages are shared */
	{ 16, 4, true },
};

LOOP_TEST(test_remote_overlap, 0, sizeof(remotes) / sizeof(remotes[0]))
{
	put(0, 10, 8, MRRC_REMOTE_WRITE);
	ck_assert_int_eq(put(1, remotes[_i].start, remotes[_i].len,
			     MRRC_REMOTE_WRITE),
			 0);
	ck_assert_int_eq(count_victims(), !remotes[_i].stays);
	ck_assert(mrrc_cache_valid(&cache));
	/* Without merging, a policy registers no local page twice. */
	put(2, 110, 8, MRRC_RW);
	put(3, 100 + remotes[_i].start, remotes[_i].len, MRRC_RW);
	ck_assert_int_eq(region[2].state, MRRC_REGION_DEAD);
}

static const struct {
	unsigned start, len;
	bool stays; /* the region of pages 10 to 17 stays */
} locals[] = {
	{ 14, 8, true },  { 13, 8, false }, { 6, 8, true },    { 7, 8, false },
	{ 16, 3, true }, /* two of three pages are shared, a quarter of eight */
	{ 17, 20, true }, { 12, 12, true }, { 14, 2, false },  { 10, 4, false },
	{ 14, 4, false }, { 8, 40, false }, { 10, 20, false },
};

/* With a merging policy, local neighbours may share half of the larger one. */
LOOP_TEST(test_contained, 0, sizeof(locals) / sizeof(locals[0]))
{
	mrrc_cache_fini(&cache);
	open_cache(MAX_BYTES, MAX_REGIONS, "lru:merge=1");
	put(0, 10, 8, MRRC_RW);
	ck_assert_int_eq(put(1, locals[_i].start, locals[_i].len, MRRC_RW), 0);
	ck_assert_int_eq(count_victims(), !locals[_i].stays);
	ck_assert(mrrc_cache_valid(&cache));
}

TEST(test_budget_bytes)
{
	ck_assert_int_eq(put(0, 0, 65, MRRC_RW), -E2BIG);
	ck_assert_int_eq(region[0].state, MRRC_REGION_NEW);
	ck_assert_int_eq(put(1, 0, 64, MRRC_RW), 0);
	ck_assert_int_eq(put(2, 100, 1, MRRC_RO), 0);
	ck_assert_int_eq(count_victims(), 1);
	ck_assert_uint_eq(stat(MRRC_STAT_BYTES), PAGE);
	ck_assert_uint_eq(stat(MRRC_STAT_BYTES_PEAK), MAX_BYTES);
	/* Regions that were used again stay longer. */
	put(3, 200, 30, MRRC_RW);
	put(4, 300, 30, MRRC_RW);
	lookup(200 * PAGE, 1, MRRC_RW);
	put(5, 400, 30, MRRC_RW);
	ck_assert_int_eq(region[3].state, MRRC_REGION_INDEXED);
	ck_assert_int_eq(region[4].state, MRRC_REGION_DEAD);
}

/* ---- batches ---- */

/* Inserts @regions regions of @pages pages each. */
static void fill(int regions, unsigned pages)
{
	int i;

	for (i = 0; i < regions; i++)
		ck_assert_int_eq(put(i, 100 * i, pages, MRRC_RW), 0);
	ck_assert_int_eq(count_victims(), 0);
}

static void reopen(size_t max_pages, size_t max_regions, const char *policy)
{
	mrrc_cache_fini(&cache);
	open_cache(max_pages * PAGE, max_regions, policy);
}

/* A full cache evicts a batch, though one region would do. */
TEST(test_batch_count)
{
	reopen(320, 8, "lru:batch=3");
	fill(8, 1);
	put(8, 2000, 1, MRRC_RW);
	ck_assert_int_eq(count_victims(), 3);
	ck_assert_uint_eq(stat(MRRC_STAT_EVICTIONS), 3);
	ck_assert_uint_eq(stat(MRRC_STAT_REGIONS), 6);
	/* The next batch leaves only when the cache is full again. */
	put(9, 2100, 1, MRRC_RW);
	put(10, 2200, 1, MRRC_RW);
	ck_assert_int_eq(count_victims(), 3);
	put(11, 2300, 1, MRRC_RW);
	ck_assert_int_eq(count_victims(), 6);
	/* A large region evicts all the regions whose room it needs. */
	put(12, 3000, 320, MRRC_RW);
	ck_assert_uint_eq(stat(MRRC_STAT_REGIONS), 1);
}

/* A batch exceeds the bytes needed by 1/32 of the limit at most: ten pages. */
LOOP_TEST(test_batch_bytes, 0, 9)
{
	static const struct {
		unsigned pages;
		int regions, gone;
	} kind[] = {
		{ 1, 20, 11 }, { 2, 20, 6 },  { 3, 20, 4 },
		{ 5, 20, 3 },  { 6, 20, 2 },  { 10, 20, 2 },
		{ 11, 20, 1 }, { 16, 20, 1 }, { 80, 4, 1 },
	};

	reopen(320, kind[_i].regions, _i % 2 ? "gdl:batch=64" : "lru:batch=64");
	fill(kind[_i].regions, kind[_i].pages);
	ck_assert_int_eq(put(31, 9000, 1, MRRC_RW), 0);
	ck_assert_int_eq(count_victims(), kind[_i].gone);
	ck_assert_uint_eq(stat(MRRC_STAT_REGIONS),
			  kind[_i].regions - kind[_i].gone + 1);
}

/* A held region is no victim of a batch, and a batch may be smaller. */
TEST(test_batch_held)
{
	int i;

	reopen(320, 8, "lru:batch=5");
	fill(8, 1);
	for (i = 0; i < 7; i++)
		mrrc_cache_hold(&cache, &region[i]);
	ck_assert_int_eq(put(8, 2000, 1, MRRC_RW), 0);
	ck_assert_int_eq(count_victims(), 1);
	for (i = 0; i < 7; i++)
		ck_assert(!mrrc_cache_put(&cache, &region[i]));
}

TEST(test_held_stay)
{
	int i;

	for (i = 0; i < MAX_REGIONS; i++) {
		put(i, 2 * i, 1, MRRC_RW);
		mrrc_cache_hold(&cache, &region[i]);
	}
	ck_assert_int_eq(put(10, 100, 1, MRRC_RW), -ENOSPC);
	ck_assert_int_eq(region[10].state, MRRC_REGION_NEW);
	ck_assert_int_eq(count_victims(), 0);
	/* After a failed eviction, the next inserts search no victims. */
	for (i = 0; i < 16; i++)
		ck_assert_int_eq(put(11, 4, 2, MRRC_RW), -ENOSPC);
	ck_assert_int_eq(region[2].state, MRRC_REGION_INDEXED);
	/* Replacing an overlapped region makes room, even if it is held. */
	ck_assert_int_eq(put(11, 4, 2, MRRC_RW), 0);
	ck_assert_int_eq(region[2].state, MRRC_REGION_DEAD);
	ck_assert_int_eq(count_victims(), 0);
	ck_assert_uint_eq(mrrc_cache_evict_all(&cache, &victims), 1);
	ck_assert_int_eq(region[11].state, MRRC_REGION_DEAD);
	ck_assert_uint_eq(mrrc_cache_held(&cache), MAX_REGIONS);
	for (i = 0; i < MAX_REGIONS; i++)
		ck_assert_int_eq(mrrc_cache_put(&cache, &region[i]), i == 2);
	ck_assert_uint_eq(mrrc_cache_held(&cache), 0);
	/* The bytes of held regions count against the limit, too. */
	mrrc_cache_evict_all(&cache, &victims);
	TAILQ_INIT(&victims);
	put(12, 0, 60, MRRC_RW);
	mrrc_cache_hold(&cache, &region[12]);
	ck_assert_int_eq(put(13, 100, 5, MRRC_RW), -ENOSPC);
	ck_assert_int_eq(put(14, 100, 4, MRRC_RW), 0);
	/* A victim is put back if evicting all victims is not enough. */
	ck_assert_int_eq(put(15, 200, 5, MRRC_RW), -ENOSPC);
	ck_assert_int_eq(region[14].state, MRRC_REGION_INDEXED);
	ck_assert_int_eq(count_victims(), 0);
	mrrc_cache_put(&cache, &region[12]);
}

TEST(test_hold_new)
{
	/* A region held before it is indexed counts as held in the index. */
	make(0, 0, 64, MRRC_RW);
	mrrc_cache_hold(&cache, &region[0]);
	ck_assert_uint_eq(mrrc_cache_held(&cache), 1);
	ck_assert_int_eq(mrrc_cache_insert(&cache, &region[0], &victims), 0);
	ck_assert_uint_eq(mrrc_cache_held(&cache), 1);
	ck_assert(mrrc_cache_valid(&cache));
	ck_assert_int_eq(put(1, 100, 1, MRRC_RW), -ENOSPC);
	ck_assert(!mrrc_cache_put(&cache, &region[0]));
	cache.tight = 0;
	ck_assert_int_eq(put(2, 100, 1, MRRC_RW), 0);
	/* A region that was never indexed is deregistered at its last put. */
	make(3, 200, 1, MRRC_RW);
	mrrc_cache_hold(&cache, &region[3]);
	mrrc_cache_hold(&cache, &region[3]);
	ck_assert(!mrrc_cache_put(&cache, &region[3]));
	ck_assert(mrrc_cache_put(&cache, &region[3]));
}

TEST(test_valid_notices)
{
	put(0, 10, 2, MRRC_RW);
	region[0].state = MRRC_REGION_DEAD; /* violates rule C1 */
	ck_assert(!mrrc_cache_valid(&cache));
	region[0].state = MRRC_REGION_INDEXED;
	region[0].access = MRRC_RO;
	ck_assert(!mrrc_cache_valid(&cache));
	region[0].access = MRRC_RW;
	mrrc_region_retire(&region[0]);
	ck_assert(!mrrc_cache_valid(&cache));
	mrrc_region_publish(&region[0]);
	cache.max_bytes = PAGE; /* violates rule C3 */
	ck_assert(!mrrc_cache_valid(&cache));
	cache.max_bytes = MAX_BYTES;
	ck_assert(mrrc_cache_valid(&cache));
}

/* ---- working sets around the limit ---- */

#define CYCLE	 200
#define CAPACITY 100
#define ROUNDS	 100

static struct mrrc_region *find_at(struct mrrc_place *place, unsigned page)
{
	mrrc_cache_seek(&cache, page * PAGE, MRRC_RO, place);
	return mrrc_cache_find_at(place, PAGE);
}

/* A place is invalid after each insertion or removal, and for other ranges. */
TEST(test_place)
{
	struct mrrc_place place = { .moves = 0 };

	ck_assert_ptr_null(find_at(&place, 4));
	ck_assert_int_eq(put(0, 4, 2, MRRC_RO), 0);
	ck_assert_ptr_eq(find_at(&place, 4), &region[0]);
	ck_assert_ptr_eq(find_at(&place, 5), &region[0]);
	ck_assert_ptr_null(find_at(&place, 6));
	/* A read-write region is found before a read-only one. */
	ck_assert_int_eq(put(1, 3, 2, MRRC_RW), 0);
	ck_assert_ptr_eq(find_at(&place, 4), &region[1]);
	mrrc_cache_invalidate(&cache, 3 * PAGE, PAGE, &victims);
	ck_assert_ptr_eq(find_at(&place, 4), &region[0]);
	/* Inserting at a place removes the regions that overlap there. */
	ck_assert_ptr_null(find_at(&place, 3));
	ck_assert_int_eq(mrrc_cache_insert_at(&cache, make(2, 3, 3, MRRC_RO),
					      &place, &victims),
			 0);
	ck_assert_ptr_eq(find_at(&place, 4), &region[2]);
	ck_assert_uint_eq(mrrc_cache_regions(&cache), 1);
}

static const struct {
	unsigned size;
	unsigned percent; /* least percentage of hits in the second half */
} working[] = {
	{ CAPACITY / 2, 100 },	  { CAPACITY, 100 },   { CAPACITY + 1, 80 },
	{ CAPACITY * 3 / 2, 15 }, { 2 * CAPACITY, 5 },
};

/* Buffers are used in a cycle; if one too many, LRU has no hit at all. */
LOOP_TEST(test_cycle, 0, sizeof(working) / sizeof(working[0]))
{
	static struct mrrc_region all[CYCLE];
	const unsigned size = working[_i].size;
	unsigned round, i, hits = 0;
	struct mrrc_region *one;

	mrrc_cache_fini(&cache);
	open_cache((size_t) 1 << 30, CAPACITY, NULL);
	memset(all, 0, sizeof(all));
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < size; i++) {
			/* The buffers are far apart. */
			if (lookup((i + 1) * 16 * PAGE, 4 * PAGE, MRRC_RW)) {
				hits += round >= ROUNDS / 2;
				continue;
			}
			all[i] = (struct mrrc_region){
				.start = (i + 1) * 16 * PAGE,
				.len = 4 * PAGE,
				.access = MRRC_RW,
			};
			ck_assert_int_eq(mrrc_cache_insert(&cache, &all[i],
							   &victims),
					 0);
			while ((one = TAILQ_FIRST(&victims)))
				TAILQ_REMOVE(&victims, one, link);
		}
		ck_assert(mrrc_cache_valid(&cache));
	}
	ck_assert_uint_ge(hits * 100, ROUNDS / 2 * size * working[_i].percent);
}
