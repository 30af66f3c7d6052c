/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/base/own_file: files that are made, files that are opened unchanged, and
 * files that are refused and left unchanged.
 */
#include "config.h"
#include "test/case.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "sys/base/own_file.h"

#define NOBODY 65534

static char dir[64], path[96], other[96];

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/test_own_file.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
}

static void teardown(void)
{
	unlink(path);
	unlink(other);
	rmdir(dir);
}

static void make(const char *name)
{
	ck_assert_int_eq(mknod(name, S_IFREG | 0644, 0), 0);
	ck_assert_int_eq(chmod(name, 0644), 0);
	ck_assert_int_eq(truncate(name, 7), 0);
}

static void check(const char *name, mode_t mode, off_t size)
{
	struct stat found;

	ck_assert_int_eq(stat(name, &found), 0);
	ck_assert_int_eq(found.st_mode & 07777, mode);
	ck_assert_int_eq(found.st_size, size);
}

static void check_opens(const char *name)
{
	int fd = mrrc_own_file_open(name, O_RDWR);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
}

TEST_CASE(own_file, setup, teardown);

TEST(only_its_owner_reads_it)
{
	const mode_t mask = umask(0);

	check_opens(path);
	umask(mask);
	check(path, 0600, 0);
}

TEST(own_stays_as_it_is)
{
	make(path);
	check_opens(path);
	check(path, 0644, 7);
	check_opens("/dev/null");
	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	check_opens(path);
	ck_assert_int_eq(mrrc_own_file_open(path, O_WRONLY), -ENXIO);
}

TEST(link_is_refused)
{
	make(other);
	ck_assert_int_eq(symlink(other, path), 0);
	ck_assert_int_eq(mrrc_own_file_open(path, O_RDWR), -ELOOP);
	check(other, 0644, 7);
	unlink(path);
	ck_assert_int_eq(link(other, path), 0);
	ck_assert_int_eq(mrrc_own_file_open(path, O_RDWR), -EPERM);
	check(other, 0644, 7);
	/* A link to nothing makes no file. */
	unlink(path);
	unlink(other);
	ck_assert_int_eq(symlink(other, path), 0);
	ck_assert_int_eq(mrrc_own_file_open(path, O_RDWR), -ELOOP);
	ck_assert_int_eq(access(other, F_OK), -1);
}

/* The test needs root, which alone can give a file away. */
TEST(of_others_is_refused)
{
	if (geteuid())
		return;
	make(path);
	ck_assert_int_eq(chown(path, NOBODY, -1), 0);
	ck_assert_int_eq(mrrc_own_file_open(path, O_RDWR), -EPERM);
	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0666), 0);
	ck_assert_int_eq(chown(path, NOBODY, -1), 0);
	ck_assert_int_eq(mrrc_own_file_open(path, O_RDWR), -EPERM);
}

TEST(other_errors)
{
	ck_assert_int_eq(mrrc_own_file_open("/nonexistent/f", O_RDWR), -ENOENT);
	ck_assert_int_eq(mrrc_own_file_open(dir, O_RDWR), -EISDIR);
	ck_assert_ptr_null(mrrc_own_file_why(-ENOENT));
	ck_assert_ptr_nonnull(mrrc_own_file_why(-ELOOP));
	ck_assert_ptr_nonnull(mrrc_own_file_why(-EPERM));
}
