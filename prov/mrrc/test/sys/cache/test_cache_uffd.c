/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/cache/cache_mt with the kernel's events: kinds of memory, many regions,
 * calls of the provider that unmap, forks. The tests are skipped, with a
 * message, where userfaultfd is not available.
 */
#include "config.h"
#include "test/case.h"

#include <sys/syscall.h>

#include "test/fakes/fake_reg.h"
#include "test/sys/monitor/mon_fixture.h"
#include "sys/base/mappings.h"
#include "sys/base/vm.h"

#define RW   (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
#define MANY 10000u

static size_t page;
static struct fake_reg fake;
static struct mrrc_reg_ops ops;
static struct mrrc_cache_mt *cache;

static void setup(void)
{
	struct mrrc_cache_attr attr = {
		.max_bytes = (size_t) 1 << 30,
		.max_regions = MANY + 100,
		.ops = &ops,
		.arg = &fake,
	};

	page = mrrc_vm_page();
	fake = (struct fake_reg){ 0 };
	ops = fake_reg_ops;
	cache = NULL;
	mon = NULL;
	if (mrrc_mon_open("uffd", NULL, &mon))
		return;
	/* Huge pages would be watched as a whole: see test_huge.c. */
	mon->huge.size = 0;
	attr.mon = mon;
	ck_assert_int_eq(mrrc_cache_mt_open(&attr, &cache), 0);
}

static void teardown(void)
{
	if (!cache)
		return;
	ck_assert(mrrc_cache_mt_valid(cache));
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	ck_assert_uint_eq(fake.live, 0);
	mrrc_mon_close(mon);
}

static bool many; /* mmap is hooked, so many ranges can be watched */

static void setup_hooked(void)
{
	setup();
	many = cache && !mrrc_mon_hook(mon, NULL);
}

#define need_many()                                         \
	do {                                                \
		need_uffd();                                \
		if (!many)                                  \
			skip("libc cannot be hooked here"); \
	} while (0)

static uint64_t stat_of(enum mrrc_stat id)
{
	struct mrrc_stats stats;

	mrrc_cache_mt_stats(cache, &stats);
	return stats.value[id];
}

static char *map(size_t pages)
{
	char *ptr = mmap(NULL, pages * page, RW, ANON, -1, 0);

	ck_assert_ptr_ne(ptr, MAP_FAILED);
	return ptr;
}

static struct mrrc_region *get(const void *ptr, size_t len,
			       enum mrrc_access access)
{
	struct mrrc_region *region = NULL;

	ck_assert_int_eq(mrrc_cache_mt_get(cache, ptr, len, access, &region),
			 0);
	return region;
}

static void touch(const void *ptr, size_t len)
{
	mrrc_cache_mt_put(cache, get(ptr, len, MRRC_RW));
}

/* Gets and puts @count pages, with a page between each two. */
static void touch_apart(const char *ptr, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		touch(ptr + 2 * i * page, page);
}

TEST_CASE(cache_uffd, setup, teardown);

/* A child does not deregister its parent's region for one operation, either. */
TEST(test_child_puts)
{
	struct mrrc_region *region;
	unsigned live;
	char *ptr;
	int status;
	pid_t pid;

	need_uffd();
	ptr = mmap(NULL, page, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	region = get(ptr, page, MRRC_RW);
	live = fake.live;
	pid = fork();
	if (!pid) {
		mrrc_cache_mt_put(cache, region);
		if (fake.live != live)
			_exit(1);
		raise(SIGKILL); /* does not run leak checkers */
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	mrrc_cache_mt_put(cache, region);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	munmap(ptr, page);
}

TEST(test_kinds)
{
	static const char text[] = "read-only data of the program";
	char stack[64] = "";
	enum mon_kind kind;
	unsigned others = 1;
	char *heap, *ptr;

	need_uffd();
	heap = calloc(1, 408);
	/* Private anonymous memory is cached wherever it is. */
	touch(heap + 1, 400);
	touch(stack, sizeof(stack));
	ck_assert_uint_eq(stat_of(MRRC_STAT_INSERTIONS), 2);
	touch(heap + 1, 400);
	touch(stack, sizeof(stack));
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), 2);
	free(heap);

	/* All other memory is registered for one operation. */
	mrrc_cache_mt_put(cache, get(text, sizeof(text), MRRC_RO));
	for (kind = 0; kind < MON_KINDS; kind++) {
		ptr = mon_map_kind(kind, 4);
		if (!ptr)
			continue;
		touch(ptr, page);
		munmap(ptr, 4 * page);
		others++;
	}
	ck_assert_uint_eq(stat_of(MRRC_STAT_INSERTIONS), 2);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_NOT_PRIVATE) +
				  stat_of(MRRC_STAT_UNCACHED_UNWATCHABLE),
			  others);
	ck_assert_uint_le(fake.live, 2);
}

/*
 * Returns the number of mappings that stay separate when @count ranges are
 * first written to while they are watched, as a device does. No neighbour was
 * written to before, with which the kernel could merge them.
 */
static size_t stay_apart(unsigned count)
{
	const size_t pages = 7 * (count + 1);
	char *guard = mmap(NULL, (pages + 2) * page, PROT_NONE, ANON, -1, 0);
	char *ptr = guard + page, *at;
	struct mrrc_region *region;
	size_t before, left;
	unsigned i;

	ck_assert_ptr_ne(guard, MAP_FAILED);
	ck_assert_int_eq(mprotect(ptr, pages * page, RW), 0);
	before = mrrc_mappings_count();
	for (i = 0; i < count; i++) {
		at = ptr + (1 + i * 1237 % count * 7) * page;
		region = get(at, 2 * page, MRRC_RW);
		at[0] = at[page] = 1;
		mrrc_cache_mt_put(cache, region);
	}
	ck_assert_uint_gt(mrrc_mappings_count(), before + count);
	mrrc_cache_mt_flush(cache);
	mrrc_mon_unwatch_idle(mon);
	left = mrrc_mappings_count();
	munmap(guard, (pages + 2) * page);
	return left > before ? left - before : 0;
}

TEST(test_mappings_written)
{
	need_uffd();
	ck_assert_uint_le(stay_apart(1000), 16);
}

/* Most of many earlier ranges, which were written to, are not examined. */
TEST(test_mappings_sampled)
{
	const size_t count = 300;
	char *ptr = map(2 * count);

	need_uffd();
	memset(ptr, 1, 2 * count * page);
	touch_apart(ptr, count);
	mrrc_cache_mt_flush(cache);
	mrrc_mon_unwatch_idle(mon);
	ck_assert_uint_le(stay_apart(200), 64);
	munmap(ptr, 2 * count * page);
}

/* The number of mappings is bounded by kept ranges and ranges still watched. */
TEST(test_mappings_bounded)
{
	const unsigned keep = 256, pages = 20000;
	char *ptr = map(pages);
	size_t before = mrrc_mappings_count();
	unsigned seed = 1, i;
	size_t at;

	need_uffd();
	for (i = 0; i < 20000; i++) {
		at = (size_t) rand_r(&seed) % pages;
		touch(ptr + at * page, page);
		if (i % keep == 0)
			mrrc_cache_mt_flush(cache);
		if (i % 1000 == 0)
			ck_assert_uint_le(mrrc_mappings_count(),
					  before + 16 +
						  2 * (keep + MRRC_IDLE_MAX));
	}
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_WATCH_LIMIT), 0);
	munmap(ptr, pages * page);
}

/* The cache keeps as many ranges as there is room for, used last. */
TEST(test_room)
{
	struct mrrc_region *held[60];
	char *ptr = map(400);
	unsigned i;

	need_uffd();
	mon->room = (struct mrrc_mon_room){ 4000, 50, SIZE_MAX };
	touch_apart(ptr, 200);
	ck_assert_uint_le(stat_of(MRRC_STAT_REGIONS), 50);
	ck_assert_uint_ge(stat_of(MRRC_STAT_REGIONS), 40);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_WATCH_LIMIT), 0);
	/* Held ranges stay, and further ranges are not cached. */
	for (i = 0; i < 60; i++)
		held[i] = get(ptr + 2 * i * page, page, MRRC_RW);
	ck_assert_uint_eq(stat_of(MRRC_STAT_REGIONS), 50);
	ck_assert_uint_eq(stat_of(MRRC_STAT_UNCACHED_WATCH_LIMIT), 10);
	for (i = 0; i < 60; i++)
		mrrc_cache_mt_put(cache, held[i]);
	munmap(ptr, 400 * page);
}

/*
 * Without hooks, the cache takes only few mappings, as the cache cannot give
 * mappings back.
 */
TEST(test_room_unhooked)
{
	const size_t all = 8000, regions = 1200;
	char *ptr = map(2 * regions);

	need_uffd();
	mon->room = (struct mrrc_mon_room){ all, SIZE_MAX, 0 };
	touch_apart(ptr, regions);
	ck_assert_uint_le(stat_of(MRRC_STAT_REGIONS), all / 40);
	ck_assert_uint_ge(stat_of(MRRC_STAT_REGIONS), all / 60);
	munmap(ptr, 2 * regions * page);
}

static long move_raw(char *ptr, size_t pages)
{
	return syscall(SYS_mremap, ptr, pages * page, 2 * pages * page,
		       MREMAP_MAYMOVE);
}

/* Without hooks, the kernel moves no mapping with a watched part. */
TEST(test_forgotten_moves)
{
	char *ptr = map(8);
	long to;

	need_uffd();
	touch(ptr + 2 * page, page);
	ck_assert_int_eq(move_raw(ptr, 8), -1);
	ck_assert_int_eq(errno, EFAULT);
	mrrc_cache_mt_invalidate(cache, ptr, 8 * page);
	to = move_raw(ptr, 8);
	ck_assert_int_ne(to, -1);
	munmap((void *) to, 16 * page);
}

/* ---- registration calls that raise events themselves ---- */

static char *victim;

static int reg_unmaps(void *arg, uintptr_t start, size_t len,
		      enum mrrc_access access, void **cookie, void **desc)
{
	if (victim)
		munmap(victim, page);
	victim = NULL;
	return fake_reg_ops.reg(arg, start, len, access, cookie, desc);
}

static void dereg_unmaps(void *arg, struct mrrc_region *const *regions,
			 size_t count)
{
	if (victim)
		munmap(victim, page);
	victim = NULL;
	fake_reg_ops.dereg(arg, regions, count);
}

TEST(test_calls_unmap)
{
	char *ptr = map(2);

	need_uffd();
	victim = map(1);
	touch(victim, page);
	ops.reg = reg_unmaps;
	touch(ptr, page);
	ck_assert_ptr_null(victim);
	victim = map(1);
	touch(victim, page);
	ops.dereg = dereg_unmaps;
	ck_assert_uint_ge(mrrc_cache_mt_flush(cache), 1);
	ck_assert_ptr_null(victim);
	munmap(ptr, 2 * page);
}

/* ---- threads that are cancelled ---- */

static void *call_cancelled(void *arg)
{
	struct mrrc_region *region = NULL;

	be_cancelled();
	mrrc_mon_drain(mon);
	mrrc_cache_mt_get(cache, arg, page, MRRC_RW, &region);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return region;
}

static void *open_cancelled(void *arg)
{
	struct mrrc_mon *other = NULL;

	be_cancelled();
	mrrc_mon_open_ops(&mrrc_mon_uffd_ops, NULL, &other);
	mrrc_mon_close(other);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return arg;
}

/* A cancelled thread that opens or closes a monitor may have to wait. */
TEST(test_open_cancelled)
{
	pthread_t thread;
	void *ended;

	need_uffd();
	ck_assert_int_eq(pthread_create(&thread, NULL, open_cancelled, mon), 0);
	pthread_join(thread, &ended);
	ck_assert_ptr_eq(ended, mon);
}

/* A cancelled thread does not end in a call of the cache, with a lock held. */
TEST(test_cancelled)
{
	pthread_t thread;
	void *region;
	char *ptr;

	need_uffd();
	ptr = map(1);
	ck_assert_int_eq(pthread_create(&thread, NULL, call_cancelled, ptr), 0);
	pthread_join(thread, &region);
	ck_assert_ptr_nonnull(region);
	ck_assert_ptr_ne(region, PTHREAD_CANCELED);
	mrrc_cache_mt_put(cache, region);
	munmap(ptr, page);
}

/* ---- fork ---- */

static int in_child(char *ptr, struct mrrc_region *held)
{
	size_t live = fake.live;
	struct mrrc_region *region;
	struct mrrc_stats stats;
	int i;

	for (i = 0; i < 2; i++) {
		if (mrrc_cache_mt_get(cache, ptr, page, MRRC_RW, &region))
			return 1;
		/* a region of the child's own, for one use */
		if (fake.live != live + 1)
			return 2;
		mrrc_cache_mt_put(cache, region);
		if (fake.live != live)
			return 3;
	}
	/* A child does not deregister its parent's regions. */
	mrrc_cache_mt_put(cache, held);
	mrrc_cache_mt_flush(cache);
	mrrc_cache_mt_invalidate(cache, ptr, page);
	mrrc_cache_mt_stats(cache, &stats);
	munmap(ptr, page);
	if (mrrc_cache_mt_close(cache) || fake.live != live)
		return 4;
	mrrc_mon_close(mon);
	if (!CHILD_MAY_THREAD)
		return 0;
	/* A cache that the child opens keeps regions. */
	setup();
	if (!cache)
		return 5;
	ptr = map(1);
	touch(ptr, page);
	touch(ptr, page);
	if (stat_of(MRRC_STAT_HITS) != 1)
		return 6;
	munmap(ptr, page);
	touch(map(1), page);
	if (stat_of(MRRC_STAT_INVALIDATIONS) != 1)
		return 7;
	if (mrrc_cache_mt_close(cache) || fake.live)
		return 8;
	mrrc_mon_close(mon);
	return 0;
}

TEST(test_fork)
{
	struct mrrc_region *held;
	char *ptr = map(1);

	need_uffd();
	held = get(ptr, page, MRRC_RW);
	expect_child(in_child(ptr, held));
	touch(ptr, page);
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), 1);
	mrrc_cache_mt_put(cache, held);
	munmap(ptr, page);
}

TEST_CASE(cache_hooked, setup_hooked, teardown);

TEST(test_many)
{
	char *ptr = map(2 * MANY);

	need_many();
	if (mrrc_vm_map_max() < 3 * MANY)
		skip("max_map_count is too low");
	touch_apart(ptr, MANY);
	ck_assert_uint_eq(fake.live, MANY);
	ck_assert_uint_eq(stat_of(MRRC_STAT_REGIONS), MANY);
	munmap(ptr, 2 * MANY * page);
	ptr = map(1);
	touch(ptr, page);
	ck_assert_uint_eq(fake.live, 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_INVALIDATIONS), MANY);
	munmap(ptr, page);
}

/* Mappings of the application are left to it. */
TEST(test_room_left)
{
	char *ptr = map(2000);
	size_t most;

	need_many();
	most = mrrc_mappings_count() + 200;
	mon->room = (struct mrrc_mon_room){ most / 19 * 20, SIZE_MAX, 0 };
	touch_apart(ptr, 1000);
	ck_assert_uint_le(mrrc_mappings_count(), most + most / 19 + 16);
	ck_assert_uint_ge(stat_of(MRRC_STAT_REGIONS), 50);
	munmap(ptr, 2000 * page);
}

/* A program that needs mappings later gets them back. */
TEST(test_room_given_back)
{
	const size_t all = 4000, regions = 600;
	char *ptr = map(2 * regions);
	char *own[4000];
	size_t i, n;

	need_many();
	mon->room = (struct mrrc_mon_room){ all, SIZE_MAX, 0 };
	touch_apart(ptr, regions);
	ck_assert_uint_eq(stat_of(MRRC_STAT_REGIONS), regions);
	/* The kernel cannot merge any two of these mappings. */
	n = all - mrrc_mappings_count() + 2 * regions - all / 20;
	for (i = 0; i < n; i++) {
		own[i] = mmap(NULL, page, i % 2 ? PROT_READ : PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ck_assert_ptr_ne(own[i], MAP_FAILED);
	}
	ck_assert_uint_le(mrrc_mappings_count(), all);
	ck_assert_uint_le(stat_of(MRRC_STAT_REGIONS), all / 40);
	for (i = 0; i < n; i++)
		munmap(own[i], page);
	munmap(ptr, 2 * regions * page);
}
