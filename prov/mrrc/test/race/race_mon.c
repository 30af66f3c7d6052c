/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks that no hit is ever stale: lookups against every way to change a
 * mapping, with the real monitor and registrations that pin (fake_pin.h).
 *
 * Duels (duel.h): the thread that owns the address writes a new word there and
 * asks the cache. The word that the "device" sees must be the new word. With a
 * monitor whose probe is blind, duels find stale hits within moments; otherwise
 * the test would prove nothing.
 *
 * Crowds: threads map, allocate, unmap, hold and evict at random; and one
 * thread discards pages that another looks up.
 *
 * Duels and crowds run once more beside a thread that acts as a predicting
 * helper, but without predictions: it deregisters regions that no operation
 * holds, and registers them again.
 *
 * MRRC_RACE_MS: how long each case runs (default 300). MRRC_RACE_NOT: no duels
 * with this text in their names; for preloaded libraries that get a call wrong.
 */
#include "config.h"
/* This header precedes headers that declare a global `cache`. */
#include "sys/predict/ahead.h"
#include "test/case.h"

#include <malloc.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

#include "test/race/duel.h"
#include "test/fakes/fake_pin.h"
#include "sys/base/vm.h"
#include "sys/cache/miss.h"

#define RW	(PROT_READ | PROT_WRITE)
#define ANON	(MAP_PRIVATE | MAP_ANONYMOUS)
#define PAGES	4u
#define SLOTS	8u
#define THREADS 4

static size_t page;
static long race_ms;
static struct mrrc_mon *mon;
static struct mrrc_mon_ops blind_ops;
static struct mrrc_cache_mt *cache;
static struct fake_pin fake;
static atomic_ulong words; /* each value is written only once */
static atomic_ulong checks;
static atomic_ulong stale;

static uint64_t now_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static int always_quiet(struct mrrc_mon *self)
{
	return 0;
}

static bool open_all(bool blind, size_t max_regions)
{
	struct mrrc_cache_attr attr = {
		/* A pipe holds more than a quarter of this limit. */
		.max_bytes = 512 * page,
		.max_regions = max_regions,
		.ops = &fake_pin_ops,
		.arg = &fake,
	};
	char why[MRRC_MON_REASON];

	/* A deadlock fails the test instead of waiting forever. */
	end_in(300 + 20 * race_ms / 1000);
	blind_ops = mrrc_mon_uffd_ops;
	if (blind)
		blind_ops.check = always_quiet;
	if (mrrc_mon_open_ops(&blind_ops, why, &mon)) {
		fprintf(stderr, "skip: %s\n", why);
		return false;
	}
	atomic_store(&checks, 0);
	atomic_store(&stale, 0);
	attr.mon = mon;
	ck_assert_int_eq(mrrc_cache_mt_open(&attr, &cache), 0);
	return true;
}

static void close_all(const char *name)
{
	const char *title = mrrc_mon_title(mon);
	struct mrrc_stats stats;

	mrrc_cache_mt_stats(cache, &stats);
	ck_assert(mrrc_mon_works(mon));
	ck_assert(mrrc_cache_mt_valid(cache));
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	ck_assert_uint_eq(fake.live, 0);
	mrrc_mon_close(mon);
	printf("%-14s %-10s %7lu checks %7lu hits %5lu split %6lu busy "
	       "%6lu raced %lu stale\n",
	       name, title, atomic_load(&checks), stats.value[MRRC_STAT_HITS],
	       stats.value[MRRC_STAT_SPLITS], stats.value[MRRC_STAT_BUSY],
	       stats.value[MRRC_STAT_UNCACHED_RACED], atomic_load(&stale));
}

static void put_all(struct mrrc_plan *plan)
{
	while (plan->count)
		mrrc_cache_mt_put(cache, plan->piece[--plan->count].region);
}

/*
 * Called by the thread that owns the pages at @ptr: writes words to the pages,
 * and checks that a device sees the words.
 */
static void verify(char *ptr, unsigned pages, struct mrrc_plan *plan)
{
	const uint64_t word = atomic_fetch_add(&words, pages) + 1;
	unsigned i;

	for (i = 0; i < pages; i++)
		*(volatile uint64_t *) (ptr + i * page) = word + i;
	ck_assert_int_eq(mrrc_cache_mt_get_pieces(cache, ptr, pages * page,
						  MRRC_RW, PAGES, plan),
			 0);
	if (!fake_pin_sees(plan, (uintptr_t) ptr, pages, word))
		atomic_fetch_add(&stale, 1);
	atomic_fetch_add(&checks, 1);
}

static void verify_put(char *ptr, unsigned pages)
{
	struct mrrc_plan plan;

	verify(ptr, pages, &plan);
	put_all(&plan);
}

/* ---- a helper in a hurry ---- */

#define TAKEN 8u

static atomic_bool hurry;
static pthread_t helper;
static atomic_ulong again; /* number of regions registered again */

struct taken {
	uintptr_t start;
	size_t len;
	enum mrrc_access access;
	uint64_t token, flushes;
};

/* Removes up to TAKEN unheld regions from the index, after the first @skip. */
static unsigned take(struct taken *taken, unsigned skip)
{
	struct mrrc_region_list victims = TAILQ_HEAD_INITIALIZER(victims);
	struct mrrc_region_list gone = TAILQ_HEAD_INITIALIZER(gone);
	struct mrrc_region *region, *next;
	unsigned count = 0;
	uint64_t flushes;

	mrrc_lock_acquire(&cache->lock);
	flushes = cache->flushes;
	for (region = mrrc_index_first(&cache->cache.index[MRRC_RW]);
	     region && count < TAKEN; region = next) {
		next = mrrc_index_next(region);
		if (skip ? skip-- : mrrc_region_held(region))
			continue;
		mrrc_cache_leave(&cache->cache, region, &gone);
		count++;
	}
	mrrc_cache_left(&cache->cache, &gone, &victims);
	mrrc_lock_release(&cache->lock);
	count = 0;
	TAILQ_FOREACH(region, &victims, link)
		taken[count++] = (struct taken){
			.start = region->start,
			.len = region->len,
			.access = region->access,
			.token = mrrc_mon_unchanged(mon, region->start,
						    region->len),
			.flushes = flushes,
		};
	mrrc_cache_mt_dereg_list(cache, &victims);
	return count;
}

static void *hurry_on(void *arg)
{
	struct taken taken[TAKEN];
	unsigned seed = 1, count, i;

	while (atomic_load(&hurry)) {
		count = take(taken, rand_r(&seed) / 7 % 4);
		if (rand_r(&seed) / 7 % 2)
			sched_yield();
		for (i = 0; i < count; i++) {
			if (taken[i].token &&
			    !mrrc_cache_mt_ahead(cache, taken[i].start,
						 taken[i].len, taken[i].access,
						 taken[i].token,
						 taken[i].flushes))
				atomic_fetch_add(&again, 1);
		}
		sched_yield();
	}
	return NULL;
}

static void hurry_begin(void)
{
	atomic_store(&hurry, true);
	ck_assert_int_eq(pthread_create(&helper, NULL, hurry_on, NULL), 0);
}

static void hurry_end(void)
{
	atomic_store(&hurry, false);
	pthread_join(helper, NULL);
}

/* ---- duels ---- */

static void duel_verify(void *arg, char *ptr, unsigned pages, bool fresh)
{
	verify_put(ptr, pages);
}

static bool time_over(void *arg)
{
	const uint64_t *end = arg;

	return now_ms() >= *end;
}

static bool is_stale(void *arg)
{
	return atomic_load(&stale);
}

TEST_CASE(race, NULL, NULL);

/* Each move is made without hooks, with hooks, and with the helper as well. */
LOOP_TEST(test_duel, 0, 3 * duel_count)
{
	const struct duel_move *move = &duel_moves[_i / 3];
	const char *not = getenv("MRRC_RACE_NOT");
	uint64_t end;

	if (not &&strstr(move->name, not ))
		skip("%s", move->name);
	if (!open_all(false, 64))
		return;
	if (_i % 3 && mrrc_mon_hook(mon, NULL)) {
		close_all(move->name);
		skip("no hooks here");
	}
	if (_i % 3 == 2)
		hurry_begin();
	end = now_ms() + race_ms;
	duel_fight(move, NULL, duel_verify, time_over, &end);
	if (_i % 3 == 2)
		hurry_end();
	close_all(move->name);
	ck_assert_uint_gt(atomic_load(&checks), 0);
	ck_assert_uint_eq(atomic_load(&stale), 0);
}

TEST(test_blind)
{
	if (!open_all(true, 64))
		return;
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		duel_fight(&duel_blind, NULL, duel_verify, is_stale, NULL);
	close_all("blind");
}

/* ---- crowds ---- */

struct walker {
	pthread_t thread;
	unsigned seed;
	char *arena; /* memory of this thread alone, or shared by all threads */
	uint64_t end;
	bool wait_again; /* go on until a region is registered again */
};

static bool goes_on(const struct walker *walker)
{
	return now_ms() < walker->end ||
	       (walker->wait_again && !atomic_load(&again));
}

static unsigned pick(struct walker *walker, unsigned count)
{
	return (unsigned) rand_r(&walker->seed) / 7 % count;
}

static void map_slot(char *ptr)
{
	ck_assert_ptr_eq(mmap(ptr, PAGES * page, RW, ANON | MAP_FIXED, -1, 0),
			 ptr);
}

/* Slots are next to each other: requests overlap, merge and split them. */
static void *walk(void *arg)
{
	struct walker *walker = arg;
	struct mrrc_plan held = { 0 };
	unsigned first, pages;
	char *ptr;

	for (first = 0; first < SLOTS; first++)
		map_slot(walker->arena + first * PAGES * page);
	while (goes_on(walker)) {
		ptr = walker->arena + pick(walker, SLOTS) * PAGES * page;
		switch (pick(walker, 12)) {
		case 0:
			map_slot(ptr);
			break;
		case 1:
			munmap(ptr, PAGES * page);
			map_slot(ptr);
			break;
		case 2:
			madvise(ptr + page, 2 * page, MADV_DONTNEED);
			break;
		case 3:
			/* The pages are unmapped while their region is held. */
			put_all(&held);
			verify(ptr, PAGES, &held);
			munmap(ptr, PAGES * page);
			map_slot(ptr);
			break;
		case 4:
			if (!pick(walker, 20))
				mrrc_cache_mt_flush(cache);
			break;
		default:
			first = pick(walker, SLOTS * PAGES - 1);
			pages = 1 + pick(walker, 6);
			if (first + pages > SLOTS * PAGES)
				pages = SLOTS * PAGES - first;
			verify_put(walker->arena + first * page, pages);
		}
	}
	put_all(&held);
	return NULL;
}

/* The allocator's own mappings and heap grow and are trimmed all the time. */
static void *allocate(void *arg)
{
	struct walker *walker = arg;
	unsigned pages, slot;
	char *block[SLOTS] = { NULL };
	char *ptr;

	while (goes_on(walker)) {
		slot = pick(walker, SLOTS);
		free(block[slot]);
		pages = 3 + pick(walker, 40);
		block[slot] = malloc(pages * page);
		ck_assert_ptr_nonnull(block[slot]);
		/* These pages belong wholly to the block. */
		ptr = (char *) (((uintptr_t) block[slot] + page) & ~(page - 1));
		verify_put(ptr, pages - 2);
		if (!pick(walker, 16))
			malloc_trim(0);
	}
	for (slot = 0; slot < SLOTS; slot++)
		free(block[slot]);
	return NULL;
}

/* Several threads use one buffer. */
static void *share(void *arg)
{
	struct walker *walker = arg;
	struct mrrc_region *region[4];
	int i;

	while (goes_on(walker)) {
		for (i = 0; i < 4; i++)
			ck_assert_int_eq(
				mrrc_cache_mt_get(cache,
						  walker->arena + i * page,
						  page, MRRC_RW, &region[i]),
				0);
		for (i = 0; i < 4; i++)
			mrrc_cache_mt_put(cache, region[i]);
		atomic_fetch_add(&checks, 4);
		if (!pick(walker, 50))
			mrrc_cache_mt_flush(cache);
	}
	return NULL;
}

static void start(struct walker *walker, void *(*run)(void *), char *arena,
		  size_t stride, bool wait_again)
{
	const uint64_t now = now_ms();
	int i;

	for (i = 0; i < THREADS; i++) {
		walker[i] = (struct walker){
			.seed = i + 1,
			.arena = arena + i * stride,
			.end = now + 2 * race_ms,
			.wait_again = wait_again,
		};
		ck_assert_int_eq(pthread_create(&walker[i].thread, NULL, run,
						&walker[i]),
				 0);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(walker[i].thread, NULL);
}

static const struct {
	const char *name;
	void *(*run)(void *);
	size_t max_regions;
	bool shared;
} crowds[] = {
	{ "crowd", walk, 64, false },
	{ "crowd/small", walk, 3, false },
	{ "malloc", allocate, 24, false },
	{ "shared", share, 8, true },
};

#define CROWDS (sizeof(crowds) / sizeof(crowds[0]))

/*
 * Walkers unmap a slot and then map it again. In between, the kernel must not
 * give the hole to others, such as an allocator that maps memory for a new
 * thread. The kernel takes the highest free addresses, far above the slots.
 */
#define APART ((void *) 0x300000000000)

TEST_CASE(crowd, NULL, NULL);

LOOP_TEST(test_crowd, 0, 2 * CROWDS)
{
	const size_t len = SLOTS * PAGES * page;
	const bool helped = _i >= (int) CROWDS;
	const unsigned i = _i % CROWDS;
	/* If all regions fit, some are registered again, late if busy. */
	const bool again_wanted = helped && crowds[i].max_regions >= 64;
	struct walker walker[THREADS];
	char *arena;

	if (!open_all(false, crowds[i].max_regions))
		return;
	mrrc_mon_hook(mon, NULL);
	arena = mmap(APART, THREADS * len, RW, ANON, -1, 0);
	atomic_store(&again, 0);
	if (helped)
		hurry_begin();
	start(walker, crowds[i].run, arena, crowds[i].shared ? 0 : len,
	      again_wanted);
	if (helped)
		hurry_end();
	close_all(crowds[i].name);
	munmap(arena, THREADS * len);
	ck_assert_uint_eq(atomic_load(&stale), 0);
}

/* ---- pages that go while they are being registered ---- */

static struct {
	char *ptr;
	atomic_ulong published; /* the last word that is on each page */
	atomic_bool stop;
} discarded;

static void *discard(void *arg)
{
	unsigned seed = 1, i;
	uint64_t word = 0;

	while (!atomic_load(&discarded.stop)) {
		madvise(discarded.ptr, PAGES * page, MADV_DONTNEED);
		word++;
		for (i = 0; i < PAGES; i++)
			*(volatile uint64_t *) (discarded.ptr + i * page) =
				word;
		atomic_store(&discarded.published, word);
		usleep(rand_r(&seed) % 100);
	}
	return NULL;
}

/* A page without a word is not an old page. */
static void look_at_discarded(void)
{
	const uint64_t least = atomic_load(&discarded.published);
	struct mrrc_region *region;
	uint64_t word;
	unsigned i;

	ck_assert_int_eq(mrrc_cache_mt_get(cache, discarded.ptr, PAGES * page,
					   MRRC_RW, &region),
			 0);
	for (i = 0; i < PAGES; i++) {
		word = fake_pin_read(region,
				     (uintptr_t) discarded.ptr + i * page);
		if (word && word < least) {
			atomic_fetch_add(&stale, 1);
			break;
		}
	}
	mrrc_cache_mt_put(cache, region);
	atomic_fetch_add(&checks, 1);
}

TEST_CASE(discard, NULL, NULL);

/*
 * One thread discards pages that another thread registers. A lookup that begins
 * after new words were written must see the new words. As with trust, lookups
 * do not ask the kernel.
 */
TEST(test_discard)
{
	pthread_t thread;
	uint64_t end, i;

	if (!open_all(true, 64))
		return;
	if (mrrc_mon_hook(mon, NULL)) {
		close_all("discard");
		skip("no hooks here");
	}
	atomic_store(&discarded.published, 0);
	atomic_store(&discarded.stop, false);
	discarded.ptr = mmap(NULL, PAGES * page, RW, ANON, -1, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, discard, NULL), 0);
	for (end = now_ms() + 2 * race_ms, i = 0; now_ms() < end; i++) {
		look_at_discarded();
		/* Most lookups hit, or would but for dropped pages. */
		if (!(i % 4))
			mrrc_cache_mt_flush(cache);
	}
	atomic_store(&discarded.stop, true);
	pthread_join(thread, NULL);
	close_all("discard");
	munmap(discarded.ptr, PAGES * page);
	ck_assert_uint_eq(atomic_load(&stale), 0);
}

int main(void)
{
	const char *ms = getenv("MRRC_RACE_MS");

	page = mrrc_vm_page();
	race_ms = ms ? atol(ms) : 300;
	/* The heap must not grow during the brk duel. */
	mallopt(M_TOP_PAD, 1 << 20);
	free(malloc(1 << 16));
	setvbuf(stdout, NULL, _IOLBF, 0);
	return run_cases(CK_NOFORK);
}
