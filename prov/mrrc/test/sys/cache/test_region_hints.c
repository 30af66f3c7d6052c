/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/cache/region_hints: the table alone, and the records that a thread keeps
 * with it.
 */
#include "config.h"
#include "sys/cache/cache_hit.h" /* precedes the global `cache` */

#include "test/sys/cache/mt_fixture.h"
#include "test/case.h"

#define RECORDS (MRRC_HINTS_SPARE + 10)

static struct mrrc_pool *records;

static void open_with_records(void)
{
	ck_assert_int_eq(mrrc_pool_open(64, RECORDS, &records), 0);
	reopen_as((struct mrrc_cache_attr){
		.max_bytes = (size_t) 1 << 40,
		.max_regions = 5000,
		.policy = "lru",
		.records = records,
	});
}

static void hints_setup(void)
{
	mt_setup();
	open_with_records();
}

static void hints_teardown(void)
{
	mt_teardown();
	mrrc_pool_close(records);
}

/* ---- spares ---- */

/* Keeps as many records as the calling thread may; returns their number. */
static unsigned keep_all(void)
{
	void *record[RECORDS];
	unsigned i, kept = 0;

	touch(0, 1);
	for (i = 0; i < RECORDS; i++) {
		record[i] = mrrc_pool_alloc(records);
		ck_assert_ptr_nonnull(record[i]);
	}
	for (i = 0; i < RECORDS; i++) {
		if (mrrc_hints_keep_spare(mrrc_hints_recent, record[i]))
			kept++;
		else
			mrrc_pool_free(records, record[i]);
	}
	return kept;
}

TEST_CASE(region_hints, hints_setup, hints_teardown);

static void *keep_and_end(void *arg)
{
	ck_assert_uint_eq(keep_all(), MRRC_HINTS_SPARE);
	return NULL;
}

/* No record is lost when a thread ends. */
TEST(test_thread_ends)
{
	int i;

	for (i = 0; i < 3; i++) {
		pthread_join(thread_start(keep_and_end, NULL), NULL);
		ck_assert_uint_eq(mrrc_pool_live(records), 0);
	}
}

/* No record is lost when a cache closes, which the thread does not notice. */
TEST(test_cache_closes)
{
	struct mrrc_pool *before = records;
	struct mrrc_hints *hints;

	keep_all();
	hints = mrrc_hints_recent;
	open_with_records();
	ck_assert_uint_eq(mrrc_pool_live(before), 0);
	mrrc_pool_close(before);
	touch(0, 1);
	/* The next cache uses the same table. */
	ck_assert_ptr_eq(mrrc_hints_recent, hints);
	ck_assert_ptr_null(mrrc_hints_spare(hints));
}

/* A child's table belongs to no cache, and its pool is a copy. */
TEST(test_fork)
{
	struct mrrc_region *region;
	struct mrrc_hints *hints;
	pid_t pid;

	keep_all();
	touch(0, 1);
	hints = mrrc_hints_recent;
	ck_assert_uint_ne(hints->hits, 0);
	/* The hit is not counted by the cache yet. */
	ck_assert_int_eq(mrrc_cache_mt_get(cache, (void *) base, page, MRRC_RW,
					   &region),
			 0);
	mrrc_cache_mt_put(cache, region);
	ck_assert_uint_lt(hints->counted, hints->hits);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	/* These hits must not be counted for another cache. */
	if (!pid)
		_exit(mrrc_hints_spare(hints) ||
		      mrrc_hints_last(&cache->hints_list) || hints->list ||
		      hints->counted != hints->hits ||
		      hints->probes_counted != hints->probes);
	child_exits(pid);
	ck_assert_ptr_nonnull(mrrc_hints_spare(hints));
}

/* ---- the table ---- */

#define SETS 64 /* sets of a new table */

/* All tags here are 0: a @ref without a tag is true. */
static _Alignas(64) char regions[1000 * MRRC_REGION_STRIDE];

static void fill(struct mrrc_hints *hints, uintptr_t addr, uint64_t ref,
		 bool big)
{
	mrrc_hints_fill(hints, regions, addr, MRRC_RW, ref, big);
}

static unsigned found(const struct mrrc_hints *hints, uintptr_t addr,
		      unsigned pages)
{
	unsigned i, n = 0;

	for (i = 0; i < pages; i++)
		n += !!mrrc_hints_find(hints, addr + i * 4096, MRRC_RW);
	return n;
}

/* A table has room for 128 buffers that are a power of two of pages apart. */
LOOP_TEST(test_strides, 0, 13)
{
	const size_t stride = (size_t) 4096 << _i;
	const uintptr_t first = (uintptr_t) 12345 << 20;
	const struct mrrc_hint *entry;
	struct mrrc_hints *hints;
	unsigned i, lost = 0;

	hints = mrrc_hints_get(&cache->hints_list);
	ck_assert_ptr_nonnull(hints);
	for (i = 0; i < 2 * SETS; i++)
		fill(hints, first + i * stride, i + 1, false);
	for (i = 0; i < 2 * SETS; i++) {
		entry = mrrc_hints_find(hints, first + i * stride, MRRC_RW);
		if (entry)
			ck_assert_uint_eq(entry->ref, i + 1);
		else
			lost++;
		ck_assert_ptr_null(
			mrrc_hints_find(hints, first + i * stride, MRRC_RO));
	}
	ck_assert_uint_eq(lost, 0);
}

/*
 * In full sets, the newest hint is found. A table that is too small grows soon,
 * and loses no hint after it has grown.
 */
TEST(test_growing)
{
	struct mrrc_hints *hints = mrrc_hints_get(&cache->hints_list);
	const unsigned bits = hints->bits;
	const uintptr_t first = (uintptr_t) 1 << 40;
	unsigned i, before = 0;

	fill(hints, (uintptr_t) 1 << 41, 1, true);
	for (i = 0; hints->bits == bits && i < 999; i++) {
		before = found(hints, first, i);
		fill(hints, first + i * 4096, i + 1, false);
		ck_assert_ptr_nonnull(
			mrrc_hints_find(hints, first + i * 4096, MRRC_RW));
	}
	ck_assert_uint_gt(hints->bits, bits);
	ck_assert_uint_le(i, MRRC_HINTS_WAYS * SETS + SETS / 16);
	/* One hint was displaced before. */
	ck_assert_uint_ge(found(hints, first, i), before);
	ck_assert(hints->big);
}

/* Hints of regions that left make room, and the table does not grow. */
TEST(test_gone)
{
	struct mrrc_hints *hints = mrrc_hints_get(&cache->hints_list);
	const unsigned bits = hints->bits;
	const uintptr_t first = (uintptr_t) 1 << 40;
	unsigned i;

	for (i = 0; i < 3 * SETS; i++)
		fill(hints, first + i * 4096, i + 1, false);
	for (; i < 100000; i++)
		fill(hints, first + i * 4096, MRRC_REGION_INDEX_BIT | i % 1000,
		     false);
	ck_assert_uint_eq(hints->bits, bits);
	ck_assert_uint_eq(found(hints, first, 3 * SETS), 3 * SETS);
}

/*
 * A hint for the first page of a larger unit does not serve the whole unit,
 * even in the same set.
 */
TEST(test_units)
{
	const uintptr_t unit = (uintptr_t) 1 << MRRC_HINTS_BIG;
	struct mrrc_hints *hints = mrrc_hints_get(&cache->hints_list);
	uintptr_t addr;

	fill(hints, unit, 1, true);
	for (addr = 2 * unit; mrrc_hints_set(hints, addr, 12) !=
			      mrrc_hints_set(hints, addr, MRRC_HINTS_BIG);)
		addr += unit;
	fill(hints, addr, 2, false);
	ck_assert_ptr_nonnull(mrrc_hints_find(hints, addr, MRRC_RW));
	ck_assert_ptr_null(mrrc_hints_find(hints, addr + 4096, MRRC_RW));
}

/* ---- hits ---- */

static struct mrrc_region *hit_unasked(void)
{
	return mrrc_cache_hit(cache, mrrc_hints_recent, base, 1, MRRC_RW,
			      false);
}

/* A hit without asking the kernel needs a quiet monitor that need not ask. */
TEST(test_unasked)
{
	struct mrrc_region *region;

	touch(0, 1);
	ck_assert_ptr_null(hit_unasked());
	mt_mon->ask = MRRC_ASK_NEVER;
	region = hit_unasked();
	ck_assert_ptr_nonnull(region);
	put(region);
	fake_mon_read(mt_mon);
	ck_assert_ptr_null(hit_unasked());
	mrrc_mon_drain(mt_mon);
	mt_mon->ask = MRRC_ASK_ALWAYS;
}

/* A hit asks the kernel once, and so does a call that takes the lock. */
TEST(test_probes)
{
	uint64_t before;
	int i;

	touch(0, 1);
	before = stat_of(MRRC_STAT_PROBES);
	for (i = 0; i < 10; i++)
		touch(0, 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_PROBES), before + 10);
	/* A miss asks the kernel once, for its insertion. */
	touch(1, 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_PROBES), before + 11);
	before = stat_of(MRRC_STAT_PROBES);
	mt_mon->ask = MRRC_ASK_NEVER;
	for (i = 0; i < 10; i++)
		touch(i, 1);
	mt_mon->ask = MRRC_ASK_ALWAYS;
	ck_assert_uint_eq(stat_of(MRRC_STAT_PROBES), before);
}

static pthread_key_t late;

static void look_up_late(void *arg)
{
	touch(0, 1);
}

static void *end_late(void *arg)
{
	touch(0, 1);
	touch(0, 1);
	pthread_setspecific(late, &late);
	return arg;
}

/* A destructor that runs after the provider's looks up, and is counted. */
TEST(test_late_destructor)
{
	const uint64_t before = stat_of(MRRC_STAT_LOOKUPS);

	/* The provider's key is first: destructors run in order of keys. */
	ck_assert_ptr_nonnull(mrrc_hints_get(&cache->hints_list));
	ck_assert_int_eq(pthread_key_create(&late, look_up_late), 0);
	pthread_join(thread_start(end_late, NULL), NULL);
	pthread_key_delete(late);
	ck_assert_uint_eq(stat_of(MRRC_STAT_LOOKUPS), before + 3);
}

/* A reference identifies one life of a region. */
TEST(test_ref)
{
	struct mrrc_region region = { 0 };
	uint64_t ref;

	mrrc_region_renew(&region, 0xabcdef);
	mrrc_region_publish(&region);
	ref = mrrc_region_word(&region);
	ck_assert_uint_eq(mrrc_hints_ref_index(ref), 0xabcdef);
	ck_assert(mrrc_region_is(&region, ref));
	ck_assert(mrrc_region_indexed(&region));
	mrrc_region_retire(&region);
	ck_assert(!mrrc_region_is(&region, ref));
	ck_assert(!mrrc_region_indexed(&region));
	mrrc_region_renew(&region, 0xabcdef);
	mrrc_region_publish(&region);
	ck_assert(!mrrc_region_is(&region, ref));
}
