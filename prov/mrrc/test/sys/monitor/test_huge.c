/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/monitor/huge and sys/monitor/mon_watch: transparent huge pages stay whole
 * while parts of the pages are watched, and after the watches end. The tests
 * are skipped, with a message, where there are no huge pages.
 */
#include "config.h"
#include "test/case.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include "test/sys/hooks/libc_hooks_fixture.h"
#include "sys/monitor/huge.h"
#include "sys/monitor/mon_libc.h"
#include "sys/base/mappings.h"
#include "sys/base/vm.h"

#define PAGES 6 /* number of huge pages */

static size_t size; /* size of a huge page */
static char *map, *raw;

/* Returns the number of bytes at @map that are in huge pages. */
static size_t huge_bytes(void)
{
	uintptr_t start = 0, end = 0;
	size_t kib, sum = 0;
	char line[512];
	FILE *file = fopen("/proc/self/smaps", "r");

	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%zx-%zx ", &start, &end) == 2)
			continue;
		if (sscanf(line, "AnonHugePages: %zu kB", &kib) == 1 &&
		    start < (uintptr_t) map + PAGES * size &&
		    end > (uintptr_t) map)
			sum += kib << 10;
	}
	fclose(file);
	return sum;
}

/*
 * An address far below the ones that the kernel chooses: no other code maps
 * memory into the holes that tests leave there.
 */
static void *apart(void)
{
	char *chosen = mon_map(1);

	munmap(chosen, mon_page);
	return chosen - (16UL << 30);
}

static void setup(void)
{
	hooks_setup();
	size = mrrc_vm_transparent();
	if (!mon || !size)
		return;
	mon->huge.size = size;
	raw = mmap(apart(), (PAGES + 1) * size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(raw, MAP_FAILED);
	map = (char *) (((uintptr_t) raw + size - 1) & ~(size - 1));
	madvise(map, PAGES * size, MADV_HUGEPAGE);
	memset(map, 1, PAGES * size);
}

static void teardown(void)
{
	if (mon && size)
		duel_raw(SYS_munmap, (long) raw, (long) ((PAGES + 1) * size), 0,
			 0, 0, 0);
	hooks_teardown();
}

TEST_CASE(huge, setup, teardown);

#define need_huge()                                        \
	do {                                               \
		need_uffd();                               \
		if (!size || huge_bytes() != PAGES * size) \
			skip("no transparent huge pages"); \
	} while (0)

/* Makes a cache's watcher know one range. */
static void cover(size_t offset, size_t len)
{
	hooks_watch(map + offset, len / mon_page);
	ck_assert(mrrc_mon_sees(mon, (uintptr_t) map + offset, len, mon_token));
}

static void uncover(size_t offset, size_t len)
{
	watcher.range = (struct mrrc_range){ 0 };
	mrrc_mon_unwatch(mon, (uintptr_t) map + offset, len);
	mrrc_mon_unwatch_idle(mon);
}

/*
 * Returns the number of huge pages that are watched as a whole; the monitor's
 * threads change the number.
 */
static size_t wholes(void)
{
	size_t count;

	mrrc_lock_acquire(&mon->lock);
	count = mon->huge.count;
	mrrc_lock_release(&mon->lock);
	return count;
}

static void unmap_raw(char *at, size_t len)
{
	duel_raw(SYS_munmap, (long) at, (long) len, 0, 0, 0, 0);
	mrrc_mon_drain(mon);
}

/* Places and lengths are in eighths of a huge page, plus pages. */
static const struct {
	unsigned eighths, pages, len_eighths, len_pages;
} pieces[] = {
	{ 1, 0, 0, 1 }, { 3, 1, 1, 0 },	 { 7, 0, 2, 0 },   { 7, 3, 9, 3 },
	{ 8, 0, 8, 0 }, { 8, 0, 12, 0 }, { 12, 0, 12, 0 }, { 4, 0, 32, 5 },
};

/* No huge page is split while parts are watched, or afterwards. */
EACH_TEST(test_kept, pieces)
{
	const size_t at =
		pieces[_i].eighths * size / 8 + pieces[_i].pages * mon_page;
	const size_t len = pieces[_i].len_eighths * size / 8 +
			   pieces[_i].len_pages * mon_page;

	need_huge();
	cover(at, len);
	ck_assert_uint_eq(huge_bytes(), PAGES * size);
	uncover(at, len);
	ck_assert_uint_eq(huge_bytes(), PAGES * size);
	ck_assert_uint_eq(wholes(), 0);
	/* The pages are no longer watched. */
	atomic_store(&watcher.told, 0);
	unmap_raw(map, PAGES * size);
	ck_assert_uint_eq(mon_events(), 0);
}

/* A huge page stays watched for another range, before or behind the first. */
LOOP_TEST(test_shared, 0, 2)
{
	const uintptr_t start = (uintptr_t) map + (_i ? mon_page : size / 2);
	const struct mrrc_range other = { start, start + mon_page };
	const size_t at = _i ? size / 2 : mon_page;
	const size_t len = _i ? 2 * size : mon_page;

	need_huge();
	cover(at, len);
	mon_probe.keep = other;
	uncover(at, len);
	ck_assert_uint_eq(huge_bytes(), PAGES * size);
	ck_assert_uint_eq(wholes(), 1);
	unmap_raw((char *) other.start, mon_page);
	ck_assert_uint_eq(mon_events(), 1);
	mon_probe.keep = (struct mrrc_range){ 0 };
}

/* An idle range keeps its huge page watched, and later gives it back. */
TEST(test_idle_keeps)
{
	need_huge();
	cover(mon_page, mon_page);
	watcher.range = (struct mrrc_range){ 0 };
	mrrc_mon_unwatch(mon, (uintptr_t) map + mon_page, mon_page);
	duel_raw(SYS_madvise, (long) map + 8 * (long) mon_page, (long) mon_page,
		 MADV_DONTNEED, 0, 0, 0);
	mrrc_mon_drain(mon);
	ck_assert_uint_eq(wholes(), 1);
	unmap_raw(map + 3 * mon_page, mon_page);
	ck_assert_uint_eq(mon_events(), 2);
	mrrc_mon_unwatch_idle(mon);
	ck_assert_uint_eq(wholes(), 0);
}

/* An unmapped neighbour is unwatched first, and the range stays watched. */
TEST(test_neighbour)
{
	need_hooks();
	need_huge();
	cover(mon_page, mon_page);
	munmap(map + 8 * mon_page, mon_page);
	ck_assert_uint_eq(mon_events(), 0);
	ck_assert_uint_eq(atomic_load(&watcher.told), 0);
	unmap_raw(map + mon_page, mon_page);
	ck_assert_uint_eq(mon_events(), 1);
	ck_assert_uint_eq(atomic_load(&watcher.told), 1);
	/* With its last range, the huge page is unwatched. */
	ck_assert_uint_eq(wholes(), 0);
	unmap_raw(map + 3 * mon_page, mon_page);
	ck_assert_uint_eq(mon_events(), 1);
}

/*
 * A further range in a huge page that is watched as a whole is watched already.
 */
TEST(test_later)
{
	need_huge();
	cover(mon_page, mon_page);
	ck_assert_uint_eq(atomic_load(&hooks_watched), 1);
	cover(size - mon_page, mon_page);
	cover(0, size);
	ck_assert_uint_eq(atomic_load(&hooks_watched), 0);
	cover(size - mon_page, 2 * mon_page);
	ck_assert_uint_eq(atomic_load(&hooks_watched), 2);
	cover(size / 2, size);
	ck_assert_uint_eq(atomic_load(&hooks_watched), 0);
}

static void replace(char *at, size_t len)
{
	ck_assert_ptr_eq(mmap(at, len, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			      -1, 0),
			 at);
	memset(at, 2, len);
}

static void unmap_hooked(char *at)
{
	munmap(at, mon_page);
	replace(at, mon_page);
}

static void unmap_unseen(char *at)
{
	unmap_raw(at, mon_page);
	replace(at, mon_page);
}

static void discard_raw(char *at)
{
	duel_raw(SYS_madvise, (long) at, (long) mon_page, MADV_DONTNEED, 0, 0,
		 0);
	mrrc_mon_drain(mon);
	memset(at, 2, mon_page);
}

static void (*const changes[])(char *at) = { unmap_hooked, unmap_unseen,
					     discard_raw };

/* After a change of a part that no cache knows, this part is watched again. */
EACH_TEST(test_changed, changes)
{
	unsigned events;

	need_hooks();
	need_huge();
	cover(mon_page, mon_page);
	changes[_i](map + 8 * mon_page);
	cover(8 * mon_page, mon_page);
	ck_assert_uint_gt(atomic_load(&hooks_watched), 0);
	events = mon_events();
	unmap_raw(map + 8 * mon_page, mon_page);
	ck_assert_uint_eq(mon_events(), events + 1);
	ck_assert_uint_eq(atomic_load(&watcher.told), 1);
}

/* A part that a cache knew before is watched again after a change, too. */
EACH_TEST(test_changed_later, changes)
{
	unsigned events;

	need_hooks();
	need_huge();
	mon_probe.keep = (struct mrrc_range){ (uintptr_t) map + 9 * mon_page,
					      (uintptr_t) map + 10 * mon_page };
	cover(8 * mon_page, mon_page);
	uncover(8 * mon_page, mon_page);
	ck_assert_uint_eq(wholes(), 1);
	changes[_i](map + 8 * mon_page);
	cover(8 * mon_page, mon_page);
	events = mon_events();
	unmap_raw(map + 8 * mon_page, mon_page);
	ck_assert_uint_eq(mon_events(), events + 1);
	ck_assert_uint_eq(atomic_load(&watcher.told), 1);
	mon_probe.keep = (struct mrrc_range){ 0 };
}

/*
 * The announcement of a range to the end of all addresses, as of a shmat(2)
 * that replaces memory, ends in time.
 */
TEST(test_announced_far)
{
	need_hooks();
	need_huge();
	cover(8 * mon_page, mon_page);
	ck_assert_uint_eq(wholes(), 1);
	mrrc_mon_announce(mon, (uintptr_t) map + size, -(uintptr_t) mon_page,
			  MRRC_LIBC_HOOKS_BEFORE);
	ck_assert_uint_eq(wholes(), 1);
}

/* All idle ranges of a huge page take the place of one idle range. */
TEST(test_idle_pages)
{
	size_t at;

	need_huge();
	for (at = 0; at < PAGES * size; at += mon_page) {
		cover(at, mon_page);
		watcher.range = (struct mrrc_range){ 0 };
		mrrc_mon_unwatch(mon, (uintptr_t) map + at, mon_page);
	}
	ck_assert_uint_eq(wholes(), PAGES);
	mrrc_mon_unwatch_idle(mon);
	ck_assert_uint_eq(wholes(), 0);
	ck_assert_uint_eq(huge_bytes(), PAGES * size);
}

/* Another user may watch memory that was mapped there since. */
TEST(test_idle_page_unmapped)
{
	unsigned before;

	need_huge();
	cover(mon_page, mon_page);
	watcher.range = (struct mrrc_range){ 0 };
	mrrc_mon_unwatch(mon, (uintptr_t) map + mon_page, mon_page);
	unmap_raw(map + 3 * mon_page, mon_page);
	ck_assert_uint_eq(wholes(), 0);
	before = atomic_load(&hooks_unwatched);
	mrrc_mon_unwatch_idle(mon);
	ck_assert_uint_eq(atomic_load(&hooks_unwatched), before);
}

/* If several mappings share a huge page's place, only the range is watched. */
TEST(test_several)
{
	need_huge();
	ck_assert_int_eq(mprotect(map + size / 2, mon_page, PROT_READ), 0);
	cover(mon_page, mon_page);
	ck_assert_uint_eq(wholes(), 0);
	/* Watching the whole huge page is not tried each time. */
	ck_assert(!mrrc_huge_may(&mon->huge, (uintptr_t) map));
	unmap_raw(map + 2 * mon_page, mon_page);
	unmap_raw(map + size / 2, mon_page);
	ck_assert_uint_eq(mon_events(), 0);
	unmap_raw(map + mon_page, mon_page);
	ck_assert_uint_eq(mon_events(), 1);
}

/* Watching the whole is tried at once if other memory was mapped since. */
TEST(test_several_before)
{
	need_huge();
	ck_assert_int_eq(mprotect(map + size / 2, mon_page, PROT_READ), 0);
	cover(mon_page, mon_page);
	ck_assert_uint_eq(wholes(), 0);
	unmap_raw(map, size);
	watcher.range = (struct mrrc_range){ 0 };
	ck_assert_ptr_eq(mmap(map, size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 map);
	memset(map, 1, size);
	cover(mon_page, mon_page);
	ck_assert_uint_eq(wholes(), 1);
}

static unsigned until_tried(struct mrrc_huge *huge, uintptr_t page)
{
	unsigned count = 0;

	while (!mrrc_huge_may(huge, page))
		count++;
	return count;
}

/* A place that is not huge again and again is tried less and less often. */
TEST(test_tries)
{
	struct mrrc_huge *huge = calloc(1, sizeof(*huge));
	const uintptr_t page = 3 << 21;
	unsigned first, last = 0, i;

	ck_assert_ptr_nonnull(huge);
	huge->size = 1 << 21;
	ck_assert_uint_eq(until_tried(huge, page), 0);
	mrrc_huge_none(huge, page);
	first = until_tried(huge, page);
	ck_assert_uint_gt(first, 16);
	for (i = 0; i < 20; i++) {
		mrrc_huge_none(huge, page);
		last = until_tried(huge, page);
	}
	ck_assert_uint_gt(last, 100 * first);
	mrrc_huge_none(huge, page);
	mrrc_huge_renew(huge, page + 4096, page + huge->size);
	ck_assert(!mrrc_huge_may(huge, page));
	mrrc_huge_renew(huge, page, page + huge->size);
	ck_assert_uint_eq(until_tried(huge, page), 0);
	mrrc_huge_none(huge, page);
	ck_assert_uint_eq(until_tried(huge, page), first);
	free(huge);
}

/* The mapping begins, or ends, within the huge page at one end of the range. */
LOOP_TEST(test_one_end, 0, 2)
{
	const size_t at = _i ? size / 2 : 2 * mon_page;
	const size_t end = _i ? 2 * size - 2 * mon_page : size + size / 2;

	need_huge();
	unmap_raw(_i ? map + 2 * size - mon_page : map, mon_page);
	cover(at, end - at);
	ck_assert_uint_eq(wholes(), 1);
	uncover(at, end - at);
	ck_assert_uint_eq(wholes(), 0);
	ck_assert_uint_eq(huge_bytes(), (PAGES - 1) * size);
}

/* A file, which cannot be watched, is in the huge page at one end. */
LOOP_TEST(test_refused, 0, 2)
{
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const size_t file = _i ? 2 * size - mon_page : 0;

	need_huge();
	ck_assert_ptr_eq(mmap(map + file, mon_page, PROT_READ,
			      MAP_PRIVATE | MAP_FIXED, fd, 0),
			 map + file);
	close(fd);
	cover(size / 2, size);
	ck_assert_uint_eq(wholes(), 1);
	ck_assert_uint_eq(huge_bytes(), (PAGES - 1) * size);
	uncover(size / 2, size);
	ck_assert_uint_eq(wholes(), 0);
	ck_assert_uint_eq(huge_bytes(), (PAGES - 1) * size);
}

/* The table gets too many pages: some are forgotten, none is kept twice. */
TEST(test_table)
{
	struct mrrc_huge *huge = calloc(1, sizeof(*huge));
	const size_t room = MRRC_HUGE_SETS * MRRC_HUGE_WAYS;
	size_t i, left = 0;

	ck_assert_ptr_nonnull(huge);
	huge->size = 1 << 21;
	ck_assert(!mrrc_huge_overlaps(huge, 0, UINTPTR_MAX));
	for (i = 1; i <= 2 * room; i++) {
		mrrc_huge_add(huge, i * huge->size + 5, 1);
		mrrc_huge_add(huge, i * huge->size, 2);
		ck_assert(mrrc_huge_whole(huge, (i + 1) * huge->size - 1));
	}
	for (i = 1; i <= 2 * room; i++)
		left += mrrc_huge_whole(huge, i * huge->size);
	ck_assert_uint_eq(left, huge->count);
	ck_assert_uint_gt(left, room / 2);
	ck_assert(mrrc_huge_overlaps(huge, 0, UINTPTR_MAX));
	mrrc_huge_remove(huge, 0, UINTPTR_MAX);
	ck_assert_uint_eq(huge->count, 0);
	free(huge);
}

/* A range has the newest token of its pages, if all pages have one. */
TEST(test_token)
{
	struct mrrc_huge *huge = calloc(1, sizeof(*huge));
	const size_t two = 1 << 21;

	ck_assert_ptr_nonnull(huge);
	huge->size = two;
	ck_assert_uint_eq(mrrc_huge_seen(huge, two, two + 1), 0);
	mrrc_huge_add(huge, two, 5);
	mrrc_huge_add(huge, 2 * two, 9);
	mrrc_huge_add(huge, 3 * two, 7);
	ck_assert_uint_eq(mrrc_huge_seen(huge, two, 2 * two), 5);
	ck_assert_uint_eq(mrrc_huge_seen(huge, two, 2 * two + 1), 9);
	ck_assert_uint_eq(mrrc_huge_seen(huge, 3 * two - 1, 4 * two), 9);
	ck_assert_uint_eq(mrrc_huge_seen(huge, 3 * two, 4 * two + 1), 0);
	mrrc_huge_changed(huge, 2 * two - 1, 2 * two);
	ck_assert_uint_eq(mrrc_huge_seen(huge, two, two + 1), 0);
	ck_assert_uint_eq(mrrc_huge_seen(huge, 2 * two, 4 * two), 9);
	mrrc_huge_add(huge, two, 11);
	ck_assert_uint_eq(mrrc_huge_seen(huge, two, 4 * two), 11);
	mrrc_huge_changed(huge, 0, UINTPTR_MAX);
	ck_assert_uint_eq(mrrc_huge_seen(huge, 3 * two, 3 * two + 1), 0);
	free(huge);
}
