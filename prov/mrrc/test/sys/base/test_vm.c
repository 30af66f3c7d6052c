/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/base/vm: kinds of memory, limits.
 */
#include "config.h"
#include "test/case.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "test/fakes/fault.h"
#include "test/sys/monitor/mon_fixture.h"
#include "sys/base/vm.h"

static size_t page;

static void setup(void)
{
	page = mrrc_vm_page();
}

static char *map(size_t pages, int prot, int flags, int fd)
{
	char *ptr = mmap(NULL, pages * page, prot, flags, fd, 0);

	ck_assert_ptr_ne(ptr, MAP_FAILED);
	return ptr;
}

static bool private(const void *ptr, size_t pages)
{
	return mrrc_vm_private((uintptr_t) ptr, pages * page);
}

TEST_CASE(vm, setup, NULL);

TEST(test_private)
{
	const int rw = PROT_READ | PROT_WRITE;
	char *ptr = map(2000, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	long pagemap;

	pagemap = open("/proc/self/pagemap", O_RDONLY);
	if (pagemap < 0)
		skip("no /proc/self/pagemap");
	close(pagemap);
	/*
	 * The memory is not touched yet. If a huge page is possible, older
	 * kernels show the shared huge page of zeroes: either answer is right.
	 */
	private(ptr, 2000);
	memset(ptr, 1, 2000 * page);
	ck_assert(private(ptr, 2000));
	ptr[0] = ptr[1999 * page] = 1;
	ck_assert(private(ptr, 2000));
	ck_assert(private(ptr + 1999 * page, 1));
	/* The range has a hole, then a page without access. */
	munmap(ptr + 1000 * page, page);
	ck_assert(!private(ptr, 2000));
	ck_assert(private(ptr, 1000));
	ck_assert(private(ptr, 6));
	mmap(ptr + 5 * page, page, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ck_assert(!private(ptr, 6));
	/* Dropped pages come back private; read-only ones count, too. */
	madvise(ptr + 10 * page, 5 * page, MADV_DONTNEED);
	mprotect(ptr + 12 * page, page, PROT_READ);
	ck_assert(private(ptr + 10 * page, 5));
	munmap(ptr, 1000 * page);
	munmap(ptr + 1001 * page, 999 * page);
}

static bool kernel_at_least(int major, int minor)
{
	struct utsname name;
	int a = 0, b = 0;

	uname(&name);
	sscanf(name.release, "%d.%d", &a, &b);
	return a > major || (a == major && b >= minor);
}

LOOP_TEST(test_shared, 0, MON_KINDS)
{
	const bool file = _i == MON_MEMORY_FILE_PRIVATE ||
			  _i == MON_FILE_PRIVATE;
	char *ptr = mon_map_kind(_i, 4);

	if (!ptr)
		skip("no such memory");
	ck_assert(!private(ptr, 4));
	ptr[0] = 1;
	ck_assert(!private(ptr, 4));
	/* All pages are private, yet truncation would take them away. */
	memset(ptr, 1, 4 * page);
	if (!file || kernel_at_least(6, 11))
		ck_assert(!private(ptr, 4));
	munmap(ptr, 4 * page);
}

TEST(test_program)
{
	ck_assert(!private((void *) ((uintptr_t) setup & ~(page - 1)), 1));
}

/* Acts as on a kernel that does not tell which mappings are of files. */
static bool private_unsaid(const char *ptr, size_t pages)
{
	bool is;

	fault_arm(1);
	is = private(ptr, pages);
	fault_disarm();
	return is;
}

TEST(test_unsaid)
{
	const int rw = PROT_READ | PROT_WRITE;
	char *ptr;

	ptr = map(4, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	ck_assert(private_unsaid(ptr, 4));
	munmap(ptr, 4 * page);
	/* The pages are not present at first, then they are. */
	ptr = map(4, rw, MAP_SHARED | MAP_ANONYMOUS, -1);
	ck_assert(!private_unsaid(ptr, 4));
	ptr[0] = 1;
	ck_assert(!private_unsaid(ptr, 1));
	munmap(ptr, 4 * page);
}

/* The second of two mappings is of a file, though its page is private. */
TEST(test_second_file)
{
	const int rw = PROT_READ | PROT_WRITE;
	char *ptr = map(2, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	int fd = memfd_create("mrrc", 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, page), 0);
	ck_assert_ptr_ne(mmap(ptr + page, page, rw, MAP_PRIVATE | MAP_FIXED, fd,
			      0),
			 MAP_FAILED);
	memset(ptr, 1, 2 * page);
	if (kernel_at_least(6, 11))
		ck_assert(!private(ptr, 2));
	munmap(ptr, 2 * page);
	close(fd);
}

TEST(test_mixed)
{
	const int rw = PROT_READ | PROT_WRITE;
	char *ptr = map(1500, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	/* One page is foreign, far from either end. */
	ck_assert_ptr_ne(mmap(ptr + 1200 * page, page, rw,
			      MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 MAP_FAILED);
	ck_assert(!private(ptr, 1500));
	munmap(ptr, 1500 * page);
}

#define MIB ((size_t) 1 << 20)
#define GIB ((size_t) 1 << 30)
#define NO  MRRC_VM_UNLIMITED

static const struct {
	size_t memory, processors, memlock, map_max;
	size_t bytes, regions;
} limits[] = {
	{ 64 * GIB, 1, NO, 65530, 16 * GIB, 8191 },
	{ 64 * GIB, 64, NO, 65530, 512 * MIB, 8191 },
	{ 64 * GIB, 64, 64 * MIB, 65530, 48 * MIB, 8191 },
	{ 64 * GIB, 64, 64 * GIB, 100, 512 * MIB, 64 },
	{ 64 * GIB, 2, NO, SIZE_MAX, 16 * GIB, 65536 },
	{ 64 * GIB, 2, 0, 65530, 4096, 8191 },
};

EACH_TEST(test_limits, limits)
{
	struct mrrc_vm_limits got;

	mrrc_vm_derive_limits(limits[_i].memory, limits[_i].processors,
			      limits[_i].memlock, limits[_i].map_max, &got);
	ck_assert_uint_eq(got.max_bytes, limits[_i].bytes);
	ck_assert_uint_eq(got.max_regions, limits[_i].regions);
}

static int limited_child(void)
{
	const struct rlimit limit = { 1 << 20, 1 << 20 };

	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		return 1;
	if (mrrc_vm_memlock() != MRRC_VM_UNLIMITED)
		return 2;
	if (setresuid(65534, 65534, 65534))
		return 3;
	return mrrc_vm_memlock() == 1 << 20 ? 0 : 4;
}

/* Without the capability the limit counts; a child drops it for good. */
TEST(test_memlock)
{
	if (geteuid())
		skip("not privileged");
	expect_child(limited_child());
}
