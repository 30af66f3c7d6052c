/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mrrc_uffd_prepare(): a mapping that was never touched is one mapping again
 * after parts of it were watched and written to. Memory of files, watched
 * memory and read-only memory stay as they are.
 */
#include "config.h"
#include "test/case.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <linux/userfaultfd.h>

#include "sys/base/mappings.h"
#include "sys/monitor/mon.h"
#include "sys/monitor/uffd.h"
#include "sys/base/vm.h"

#define RW   (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

static size_t page;
static int fd, spare;

static int open_uffd(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1);

	if (uffd >= 0 && !ioctl(uffd, UFFDIO_API, &api) &&
	    api.features & MRRC_UFFD_TELLS)
		return uffd;
	close(uffd);
	return -1;
}

static void setup(void)
{
	page = mrrc_vm_page();
	fd = open_uffd();
	spare = mrrc_uffd_spare();
}

static void teardown(void)
{
	close(spare);
	close(fd);
}

#define need_uffd()                                     \
	do {                                            \
		if (fd < 0)                             \
			skip("the kernel cannot tell"); \
	} while (0)

static char *map(size_t pages, int prot, int flags, int file)
{
	char *ptr = mmap(NULL, pages * page, prot, flags, file, 0);

	ck_assert_ptr_ne(ptr, MAP_FAILED);
	return ptr;
}

/*
 * Maps pages that have no written neighbour: the kernel would merge the pages
 * with such a neighbour.
 */
static char *map_apart(size_t pages)
{
	char *ptr = map(pages + 2, PROT_NONE, ANON, -1) + page;

	ck_assert_int_eq(mprotect(ptr, pages * page, RW), 0);
	return ptr;
}

static bool present(char *ptr)
{
	unsigned char is;

	ck_assert_int_eq(mincore(ptr, page, &is), 0);
	return is & 1;
}

static void prepare(char *ptr)
{
	if (!mrrc_uffd_written((uintptr_t) ptr))
		mrrc_uffd_prepare(fd, spare, (uintptr_t) ptr);
}

static void watch(char *ptr)
{
	prepare(ptr);
	ck_assert_int_eq(mrrc_uffd_register(fd, (uintptr_t) ptr, page), 0);
}

static void unwatch(char *ptr, size_t pages)
{
	struct uffdio_range range = { (uintptr_t) ptr, pages * page };

	ck_assert_int_eq(ioctl(fd, UFFDIO_UNREGISTER, &range), 0);
}

static bool watched(char *ptr)
{
	return mrrc_uffd_anonymous(fd, (uintptr_t) ptr, page);
}

struct count {
	uintptr_t start, end;
	unsigned mappings;
};

static bool count_one(void *arg, const struct mrrc_mapping *mapping)
{
	struct count *count = arg;

	if (mapping->start < count->end && mapping->end > count->start)
		count->mappings++;
	return true;
}

static unsigned mappings(char *ptr, size_t pages)
{
	const uintptr_t start = (uintptr_t) ptr;
	struct count count = { start, start + pages * page, 0 };

	ck_assert(mrrc_mappings_each(count_one, &count));
	return count.mappings;
}

/* Whether the kernel tells on which node a page is. */
static bool may_ask(void *ptr)
{
	int node;

	return !syscall(SYS_move_pages, 0, 1UL, &ptr, NULL, &node, 0);
}

TEST_CASE(prepare, setup, teardown);

/* The memory is watched before any access, or after reads. */
LOOP_TEST(test_whole, 0, 2)
{
	char *ptr = map_apart(9);
	unsigned i;

	need_uffd();
	for (i = 0; _i && i < 9; i++)
		ck_assert(!*(volatile char *) (ptr + i * page));
	if (_i && !may_ask(ptr))
		skip("the kernel does not tell pages of zeros");
	watch(ptr + 6 * page);
	watch(ptr + 2 * page);
	watch(ptr + 4 * page);
	ck_assert_uint_ge(mappings(ptr, 9), 7);
	ptr[2 * page] = ptr[4 * page] = ptr[6 * page] = 1;
	unwatch(ptr, 9);
	ck_assert_uint_eq(mappings(ptr, 9), 1);
	munmap(ptr - page, 11 * page);
}

/* Preparing makes the page present, and watches nothing. */
TEST(test_first_page)
{
	char *ptr = map(3, RW, ANON, -1);

	need_uffd();
	prepare(ptr + page);
	ck_assert(!present(ptr) && present(ptr + page));
	ck_assert(!present(ptr + 2 * page));
	ck_assert(!watched(ptr + page));
	munmap(ptr, 3 * page);
}

/* Preparing a watched range does not interrupt the watch. */
TEST(test_watched)
{
	char *ptr = map(3, RW, ANON, -1);
	const int other = open_uffd();

	need_uffd();
	ck_assert_int_eq(mrrc_uffd_register(fd, (uintptr_t) ptr, page), 0);
	ck_assert_int_eq(
		mrrc_uffd_register(other, (uintptr_t) ptr + page, page), 0);
	prepare(ptr);
	prepare(ptr + page);
	ck_assert(watched(ptr) && watched(ptr + page));
	close(other);
	munmap(ptr, 3 * page);
}

static void expect_untouched(int file)
{
	struct stat st;
	char *ptr;

	ck_assert_int_ge(file, 0);
	ck_assert_int_eq(ftruncate(file, page), 0);
	ptr = map(1, RW, MAP_SHARED, file);
	prepare(ptr);
	ck_assert_int_eq(fstat(file, &st), 0);
	ck_assert_int_eq(st.st_blocks, 0);
	munmap(ptr, page);
	close(file);
}

TEST(test_files)
{
	char path[] = "/var/tmp/mrrc_prepare_XXXXXX";
	int file;

	need_uffd();
	expect_untouched(memfd_create("mrrc_prepare", MFD_CLOEXEC));
	file = mkstemp(path);
	unlink(path);
	expect_untouched(file);
}

TEST(test_denied)
{
	char *ptr = map(2, PROT_READ, ANON, -1);

	need_uffd();
	prepare(ptr);
	munmap(ptr, page);
	prepare(ptr);
	mprotect(ptr + page, page, RW);
	ck_assert(!ptr[page] && !watched(ptr + page));
	munmap(ptr + page, page);
}

/* Returns the highest descriptor of a userfaultfd. */
static int last_uffd(void)
{
	char path[64], name[64];
	ssize_t len;
	int i, last = -1;

	for (i = 0; i < 1024; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", i);
		len = readlink(path, name, sizeof(name));
		if (len > 0 && memmem(name, len, "userfaultfd", 11))
			last = i;
	}
	return last;
}

/* A program closes all descriptors, and opens a userfaultfd of its own. */
TEST(test_closed)
{
	char *ptr = map(2, RW, ANON, -1);
	struct mrrc_mon *mon;
	int number;

	need_uffd();
	if (mrrc_mon_open("uffd", NULL, &mon))
		skip("no userfaultfd here");
	number = last_uffd();
	ck_assert_int_gt(number, spare);
	ck_assert_int_eq(mrrc_uffd_register(fd, (uintptr_t) ptr, page), 0);
	ck_assert_int_eq(dup2(fd, number), number);
	ck_assert_int_eq(mon->ops->watch(mon, (uintptr_t) ptr, page), -EBUSY);
	ck_assert(watched(ptr));
	mrrc_mon_close(mon);
	close(number);
	munmap(ptr, 2 * page);
}
