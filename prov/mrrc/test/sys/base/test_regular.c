/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sys/base/regular: files that are opened, and files that are left alone. */
#include "config.h"
#include "test/case.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "sys/base/regular.h"

static char folder[64], path[96];
static int opens; /* reports each open(2) of a watched file */

static void setup(void)
{
	snprintf(folder, sizeof(folder), "/tmp/test_regular.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	opens = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

static void teardown(void)
{
	close(opens);
	unlink(path);
	rmdir(folder);
}

static bool was_opened(void)
{
	char events[4096];

	return read(opens, events, sizeof(events)) > 0;
}

/*
 * Has inotify report each open(2) of a file. Skips the test on Linux before 6.5,
 * which reports an open(2) with O_PATH, too.
 */
#define watch(name)                                                           \
	do {                                                                  \
		if (opens < 0 || inotify_add_watch(opens, name, IN_OPEN) < 0) \
			skip("no inotify");                                   \
		close(open(name, O_PATH | O_CLOEXEC));                        \
		if (was_opened())                                             \
			skip("inotify reports O_PATH");                       \
	} while (0)

TEST_CASE(regular, setup, teardown);

TEST(test_regular)
{
	int dir, fd;

	ck_assert_int_eq(mknod(path, S_IFREG | 0600, 0), 0);
	watch(path);
	dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = mrrc_regular_open(dir, "file", 0);
	ck_assert_int_ge(fd, 0);
	ck_assert(was_opened());
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	close(fd);
	close(dir);
	ck_assert_int_eq(mrrc_regular_open(AT_FDCWD, "/nowhere", 0), -ENOENT);
}

/* A FIFO stands for all devices. */
TEST(test_others)
{
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	watch(path);
	ck_assert_int_eq(mrrc_regular_open(AT_FDCWD, path, 0), -EINVAL);
	ck_assert(!was_opened());
	ck_assert_int_eq(mrrc_regular_open(AT_FDCWD, folder, 0), -EINVAL);
}

TEST(test_type)
{
	const int memory = memfd_create("test_regular", MFD_CLOEXEC);
	char name[32];
	int fd;

	ck_assert_int_ge(memory, 0);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", memory);
	watch(name);
	ck_assert_int_eq(mrrc_regular_open(AT_FDCWD, name, PROC_SUPER_MAGIC),
			 -EINVAL);
	ck_assert(!was_opened());
	fd = mrrc_regular_open(AT_FDCWD, name, TMPFS_MAGIC);
	ck_assert_int_ge(fd, 0);
	close(fd);
	close(memory);
}
