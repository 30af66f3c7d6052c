/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/monitor/mon_uffd: changes that the kernel reports, memory that it
 * refuses, and the probe.
 */
#include "config.h"
#include "test/case.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <linux/userfaultfd.h>

#include "test/fakes/fault.h"
#include "test/sys/monitor/mon_fixture.h"
#include "sys/monitor/uffd.h"
#include "sys/base/vm.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static void expect(unsigned count, void *ptr, size_t pages)
{
	ck_assert_uint_eq(mon_events(), count);
	ck_assert(mon_told(ptr, pages) == !!count);
}

/* ---- what the kernel reports ---- */

static void do_munmap(char *ptr)
{
	munmap(ptr + mon_page, 2 * mon_page);
}

static void do_raw_munmap(char *ptr)
{
	syscall(SYS_munmap, ptr + mon_page, 2 * mon_page);
}

static void do_fixed(char *ptr)
{
	mmap(ptr + mon_page, 2 * mon_page, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void do_dontneed(char *ptr)
{
	madvise(ptr + mon_page, 2 * mon_page, MADV_DONTNEED);
}

static void do_free(char *ptr)
{
	madvise(ptr + mon_page, 2 * mon_page, MADV_FREE);
}

static void (*const changes[])(char *) = {
	do_munmap, do_raw_munmap, do_fixed, do_dontneed, do_free,
};

TEST_CASE(uffd, mon_setup, mon_teardown);

EACH_TEST(test_events, changes)
{
	char *ptr = mon_map(4);

	need_uffd();
	ck_assert_int_eq(mon_watch(ptr, 4), 0);
	ck_assert_int_eq(mrrc_mon_check(mon), 0);
	changes[_i](ptr);
	expect(1, ptr + mon_page, 2);
}

TEST(test_remap)
{
	char *ptr = mon_map(4);
	char *to = mon_map(8);
	unsigned count;

	need_uffd();
	ck_assert_int_eq(mon_watch(ptr, 4), 0);
	ck_assert_ptr_eq(mremap(ptr, 4 * mon_page, 4 * mon_page,
				MREMAP_MAYMOVE | MREMAP_FIXED, to),
			 to);
	/* The old place and the new place are both reported. */
	ck_assert(mon_told(ptr, 4));
	ck_assert(mon_told(to, 4));
	count = mon_events();
	/* The new place must not stay watched. */
	munmap(to, 8 * mon_page);
	ck_assert_uint_eq(mon_events(), count);
}

/* The pages move and the mapping stays: no unmap is reported. */
TEST(test_remap_stays)
{
	char *ptr = mon_map(4), *to;

	need_uffd();
	ck_assert_int_eq(mon_watch(ptr, 4), 0);
	to = mremap(ptr, 4 * mon_page, 4 * mon_page,
		    MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	if (to == MAP_FAILED)
		skip("not by this kernel");
	ck_assert(mon_told(ptr, 4));
	ck_assert(mon_told(to, 4));
	munmap(ptr, 4 * mon_page);
	munmap(to, 4 * mon_page);
}

TEST(test_remap_shrink)
{
	char *ptr = mon_map(4);

	need_uffd();
	ck_assert_int_eq(mon_watch(ptr, 4), 0);
	ck_assert_ptr_eq(mremap(ptr, 4 * mon_page, mon_page, 0), ptr);
	expect(1, ptr + mon_page, 3);
	munmap(ptr, mon_page);
}

/* An idle range stays watched for some time, and its changes are reported. */
TEST(test_idle)
{
	char *ptr = mon_map(4), *many;
	unsigned i, known;

	need_uffd();
	ck_assert_int_eq(mon_watch(ptr, 4), 0);
	ck_assert(mrrc_mon_sees(mon, (uintptr_t) ptr, 4 * mon_page, mon_token));
	mrrc_mon_unwatch(mon, (uintptr_t) ptr, 4 * mon_page);
	ck_assert(mrrc_mon_sees(mon, (uintptr_t) ptr, 4 * mon_page, mon_token));
	munmap(ptr + 3 * mon_page, mon_page);
	expect(1, ptr + 3 * mon_page, 1);
	/* The memory there now is another mapping, which is not private. */
	ck_assert_ptr_eq(mmap(ptr, 4 * mon_page, PROT_READ | PROT_WRITE,
			      MAP_FIXED | MAP_SHARED | MAP_ANONYMOUS, -1, 0),
			 ptr);
	/* The idle range was unwatched as a whole. */
	ck_assert_uint_eq(mon_events(), 1);
	mon_watch(ptr, 4);
	ck_assert(
		!mrrc_mon_sees(mon, (uintptr_t) ptr, 4 * mon_page, mon_token));
	munmap(ptr, 4 * mon_page);
	known = mon_events();

	/* Idle ranges are unwatched when they are too many. */
	ptr = mon_map(1);
	ck_assert_int_eq(mon_watch(ptr, 1), 0);
	mrrc_mon_unwatch(mon, (uintptr_t) ptr, mon_page);
	many = mon_map(MRRC_IDLE_MAX + 3);
	/*
	 * Ranges with the same start count as one idle range, which is as long
	 * as the longest range.
	 */
	for (i = 0; i < 3 * MRRC_IDLE_MAX; i++) {
		ck_assert_int_eq(mon_watch(many, 1 + i % 3), 0);
		mrrc_mon_unwatch(mon, (uintptr_t) many, (1 + i % 3) * mon_page);
	}
	munmap(ptr, mon_page);
	ck_assert_uint_eq(mon_events(), ++known);
	mrrc_mon_unwatch_idle(mon);
	munmap(many + 2 * mon_page, mon_page);
	ck_assert_uint_eq(mon_events(), known);
	many += 3 * mon_page;

	ptr = mon_map(1);
	ck_assert_int_eq(mon_watch(ptr, 1), 0);
	mrrc_mon_unwatch(mon, (uintptr_t) ptr, mon_page);
	for (i = 0; i < MRRC_IDLE_MAX; i++) {
		ck_assert_int_eq(mon_watch(many + i * mon_page, 1), 0);
		mrrc_mon_unwatch(mon, (uintptr_t) many + i * mon_page,
				 mon_page);
	}
	munmap(ptr, mon_page);
	ck_assert_uint_eq(mon_events(), known);
	munmap(many + 5 * mon_page, mon_page);
	ck_assert_uint_eq(mon_events(), known + 1);
}

/* ---- memory that must not be cached ---- */

static void unwatch_now(char *ptr, size_t pages)
{
	mrrc_mon_unwatch(mon, (uintptr_t) ptr, pages * mon_page);
	mrrc_mon_unwatch_idle(mon);
}

static bool refused(char *ptr, size_t pages)
{
	return mon_watch(ptr, pages) ||
	       !mrrc_mon_sees(mon, (uintptr_t) ptr, pages * mon_page,
			      mon_token);
}

/* Memory mapped into a hole later would not be watched. */
TEST(test_hole)
{
	char *ptr = mon_map(1024), *hole = ptr + 511 * mon_page;

	need_uffd();
	munmap(hole, 2 * mon_page);
	/* No page of the hole is mapped, but its neighbours are. */
	ck_assert_int_eq(mon_watch(hole, 1), -EINVAL);
	ck_assert_int_eq(mon_watch(hole - mon_page, 3), -EFAULT);
	ck_assert_int_eq(mon_watch(hole - mon_page, 2), -EFAULT);
	unwatch_now(hole - mon_page, 3);
	munmap(ptr, 511 * mon_page);
	munmap(hole + 2 * mon_page, 511 * mon_page);
	ck_assert_uint_eq(mon_events(), 0);
}

/* A file in the middle, never watched, does not keep the rest watched. */
TEST(test_unwatch_pieces)
{
	char *ptr = mon_map(5);
	FILE *file = tmpfile();
	unsigned count;

	need_uffd();
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(ftruncate(fileno(file), mon_page), 0);
	ck_assert_int_eq(mon_watch(ptr, 5), 0);
	ck_assert_ptr_eq(mmap(ptr + 2 * mon_page, mon_page, PROT_READ,
			      MAP_FIXED | MAP_SHARED, fileno(file), 0),
			 ptr + 2 * mon_page);
	munmap(ptr + 3 * mon_page, mon_page);
	count = mon_events();
	unwatch_now(ptr, 5);
	munmap(ptr, 3 * mon_page);
	munmap(ptr + 4 * mon_page, mon_page);
	ck_assert_uint_eq(mon_events(), count);
	fclose(file);
}

/* Such memory is refused, as the kernel does not report punched holes. */
LOOP_TEST(test_refused, 0, MON_KINDS)
{
	char *ptr = mon_map_kind(_i, 4);

	need_uffd();
	if (!ptr)
		skip("no such memory");
	ck_assert(refused(ptr, 4));
	unwatch_now(ptr, 4);
	munmap(ptr, 4 * mon_page);
	/* Nothing is mapped at this low address. */
	ck_assert(refused((char *) (1UL << 20), 4));
	expect(0, NULL, 0);
}

/* Checks an absent page, a page of the file alone, and a written page. */
static void expect_file(int fd, enum mon_kind kind)
{
	char *ptr = mon_map_kind(kind, 4);
	unsigned i;

	*(volatile char *) ptr;
	ptr[mon_page] = 1;
	if (mrrc_uffd_register(fd, (uintptr_t) ptr, 4 * mon_page))
		ck_assert_int_eq(errno, EINVAL);
	for (i = 0; i < 4; i++)
		ck_assert(!mrrc_uffd_anonymous(
			fd, (uintptr_t) ptr + i * mon_page, mon_page));
	munmap(ptr, 4 * mon_page);
}

/* The kernel tells whether memory is anonymous, without a look at the pages. */
TEST(test_anonymous)
{
	struct uffdio_api api = { .api = UFFD_API };
	char *ptr = mon_map(4);
	int fd;

	need_uffd();
	fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ioctl(fd, UFFDIO_API, &api), 0);
	if (!(api.features & 1 << 10)) /* UFFD_FEATURE_MINOR_SHMEM */
		skip("the kernel does not tell");
	ck_assert(!mrrc_uffd_anonymous(fd, (uintptr_t) ptr, mon_page));
	ck_assert_int_eq(mrrc_uffd_register(fd, (uintptr_t) ptr, 4 * mon_page),
			 0);
	/* Pages may be present or not. */
	munmap(ptr + 3 * mon_page, mon_page);
	madvise(ptr, mon_page, MADV_DONTNEED);
	ck_assert(mrrc_uffd_anonymous(fd, (uintptr_t) ptr, 3 * mon_page));
	/* One range has a hole, another has two mappings. */
	ck_assert(!mrrc_uffd_anonymous(fd, (uintptr_t) ptr, 4 * mon_page));
	mprotect(ptr, mon_page, PROT_READ);
	ck_assert(!mrrc_uffd_anonymous(fd, (uintptr_t) ptr, 3 * mon_page));
	ck_assert(mrrc_uffd_anonymous(fd, (uintptr_t) ptr, mon_page));
	expect_file(fd, MON_MEMORY_FILE);
	expect_file(fd, MON_MEMORY_FILE_PRIVATE);
	close(fd);
	munmap(ptr, 3 * mon_page);
}

/* Returns a second userfaultfd, as an application's own, that watches a range. */
static int other_watches(char *ptr, size_t len)
{
	struct uffdio_api api = { .api = UFFD_API };
	const int fd = mrrc_uffd_new();

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ioctl(fd, UFFDIO_API, &api), 0);
	ck_assert_int_eq(mrrc_uffd_register(fd, (uintptr_t) ptr, len), 0);
	fault_foreign(ptr, len);
	return fd;
}

/*
 * A part of idle memory is unmapped, and another userfaultfd watches new memory
 * at the address: its watch stays when the monitor unwatches what is idle.
 */
TEST(test_idle_reused)
{
	struct uffdio_writeprotect wp = { 0 };
	char *ptr = mon_map(4), *mid = ptr + mon_page;
	const size_t len = 2 * mon_page;
	unsigned count;
	int fd;

	need_uffd();
	ck_assert_int_eq(mon_watch(ptr, 4), 0);
	mrrc_mon_unwatch(mon, (uintptr_t) ptr, 4 * mon_page);
	munmap(mid, len);
	count = mon_events();
	ck_assert_ptr_eq(mmap(mid, len, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 mid);
	fd = other_watches(mid, len);
	mrrc_mon_unwatch_idle(mon);
	wp.range = (struct uffdio_range){ (uintptr_t) mid, len };
	ck_assert_int_eq(ioctl(fd, UFFDIO_WRITEPROTECT, &wp), 0);
	fault_foreign(NULL, 0);
	close(fd);
	munmap(ptr, 4 * mon_page);
	ck_assert_uint_eq(mon_events(), count);
}

/* ---- the probe ---- */

static void *unmapper(void *arg)
{
	munmap(arg, mon_page);
	return NULL;
}

/*
 * A thread sleeps with the monitor's lock held: events are read nevertheless,
 * and until the events are handled, memory does not count as quiet.
 */
TEST(test_probe)
{
	char *ptr = mon_map(1);
	pthread_t thread;
	uint64_t seq, now;
	unsigned count;
	int ret;

	need_uffd();
	ck_assert_int_eq(mon_watch(ptr, 1), 0);
	seq = mrrc_mon_seq(mon);
	ck_assert_uint_eq(seq & 1, 0);
	pthread_mutex_lock(&mon->lock.mutex);
	ck_assert_int_eq(pthread_create(&thread, NULL, unmapper, ptr), 0);
	pthread_join(thread, NULL);
	ret = mrrc_mon_check(mon);
	now = mrrc_mon_seq(mon);
	count = atomic_load(&mon_probe.count);
	pthread_mutex_unlock(&mon->lock.mutex);
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_eq(now, seq | 1);
	ck_assert_uint_eq(count, 0);
	expect(1, ptr, 1);
	ck_assert_uint_gt(mrrc_mon_seq(mon), seq);
	/* After the event is told, seq becomes even again. */
	ck_assert(comes(mon_even()));
}

TEST(test_fail)
{
	struct mrrc_mon *other;
	char *ptr = mon_map(4);

	need_uffd();
	ck_assert_int_eq(mon_watch(ptr, 4), 0);
	mrrc_mon_fail(mon, "for %s", "a test");
	ck_assert_uint_eq(atomic_load(&mon_probe.count), 1);
	ck_assert_uint_eq(mon_probe.got[0].end, UINTPTR_MAX);
	ck_assert(!mrrc_mon_works(mon));
	ck_assert_str_eq(mrrc_mon_reason(mon), "for a test");
	ck_assert_uint_eq(mrrc_mon_seq(mon) & 1, 1);
	ck_assert_int_eq(mrrc_mon_check(mon), -ENODEV);
	ck_assert_int_eq(mon_watch(ptr, 4), -ENODEV);
	mrrc_mon_fail(mon, "again");
	ck_assert_str_eq(mrrc_mon_reason(mon), "for a test");
	/* No thread reads events, so this munmap must not wait. */
	munmap(ptr, 4 * mon_page);
	/* While the monitor is in use, each open returns the same one. */
	ck_assert_int_eq(mrrc_mon_open("uffd", NULL, &other), 0);
	ck_assert_ptr_eq(other, mon);
	mrrc_mon_close(other);
	/* After the last close, a new monitor works. */
	mon_teardown();
	mon_setup();
	ck_assert(mrrc_mon_works(mon));
}

static struct rlimit descriptors;

/* From now on the process can open no descriptors, and poll(2) accepts none. */
static void no_descriptors(void)
{
	struct rlimit none;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
	none = descriptors;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
}

/* An unmap waits for the reader, which still works. */
TEST(test_no_descriptors)
{
	char *ptr = mon_map(4);
	int i;

	need_uffd();
	ck_assert_int_eq(mon_watch(ptr, 4), 0);
	no_descriptors();
	for (i = 0; i < 4; i++)
		munmap(ptr + i * mon_page, mon_page);
	setrlimit(RLIMIT_NOFILE, &descriptors);
	ck_assert_uint_eq(mon_events(), 4);
	ck_assert(mrrc_mon_works(mon));
}

/* A failing monitor leaves no thread waiting. */
TEST(test_fail_no_descriptors)
{
	char *ptr = mon_map(4);

	need_uffd();
	ck_assert_int_eq(mon_watch(ptr, 4), 0);
	no_descriptors();
	mrrc_mon_fail(mon, "for a test");
	munmap(ptr, 4 * mon_page);
	setrlimit(RLIMIT_NOFILE, &descriptors);
}

/* The reader is stopped through a descriptor that it cannot poll. */
TEST(test_close_no_descriptors)
{
	char *ptr = mon_map(1);

#ifdef __SANITIZE_THREAD__
	/* and without descriptors its report names no function to suppress */
	skip("it takes the reader's descriptor table for this thread's");
#endif
	need_uffd();
	ck_assert_int_eq(mon_watch(ptr, 1), 0);
	no_descriptors();
	/* The reader cannot poll from this event on. */
	munmap(ptr, mon_page);
	mon_teardown();
	setrlimit(RLIMIT_NOFILE, &descriptors);
	mon_setup();
}

/* Parts of mappings are watched as a whole, with huge pages or without. */
TEST(test_parts)
{
	struct mrrc_mon *other;

	need_uffd();
	ck_assert_int_eq(mrrc_mon_open_ops(&mrrc_mon_uffd_ops, NULL, &other),
			 0);
	ck_assert_uint_gt(other->huge.size, mon_page);
	ck_assert_uint_le(other->huge.size, MRRC_LIBC_HOOKS_CHUNK);
	mrrc_mon_close(other);
}
