/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Files that fi_mrrc_get writes: partial files, and obstacles in their way.
 */
#include "config.h"
#include "test_serve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "serve/client/local.h"
#include "serve/wire/path.h"

#define OTHER_USER 65534

/* Functions in place of libc's fail once with this error. */
static int fsync_error, close_error;
unsigned fsyncs;

static int fail_once(int *error)
{
	errno = *error;
	*error = 0;
	return errno ? -1 : 0;
}

int fsync(int fd)
{
	fsyncs++;
	return fail_once(&fsync_error) ? -1 : (int) syscall(SYS_fsync, fd);
}

int close(int fd)
{
	int ret = (int) syscall(SYS_close, fd);

	return ret ? ret : fail_once(&close_error);
}

static const struct local_perms umask_027 = { .mask = 027 };
static const struct local_perms kept = { .keep = true, .mask = 027 };

static void find(struct local *local, const char *path)
{
	ck_assert_int_eq(local_find(out, path, local), 0);
}

static void check_text(const char *name, const char *text)
{
	char buf[64] = "";
	int fd = openat(out, name, O_RDONLY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_ge(read(fd, buf, sizeof(buf) - 1), 0);
	ck_assert_str_eq(buf, text);
	close(fd);
}

TEST_CASE(local, make_files, remove_files);

TEST(partial_file)
{
	struct serve_ident ident = { .size = 6, .mtime_ns = 1500000000 };
	struct local local, other;
	char buf[3];

	find(&local, "new");
	ck_assert_uint_eq(local.size, 0);
	ck_assert_int_eq(local_begin(&local), 0);
	ck_assert_int_eq(local_append(&local, "abc", 3), 0);
	/* refused while another descriptor is open */
	find(&other, "new");
	ck_assert_int_eq(local_begin(&other), -EBUSY);
	local_close(&other);
	local_close(&local);
	ck_assert_int_ne(faccessat(out, "new", F_OK, 0), 0);
	/* the next fetch continues the partial file */
	find(&local, "new");
	ck_assert_uint_eq(local.size, 3);
	ck_assert(!local_is_same(&local, &ident));
	ck_assert_int_eq(local_begin(&local), 0);
	ck_assert_int_eq(local_read(&local, 0, buf, 3), 0);
	ck_assert(!memcmp(buf, "abc", 3));
	ck_assert_int_eq(local_read(&local, 1, buf, 3), -EIO);
	ck_assert_int_eq(local_append(&local, "def", 3), 0);
	ck_assert_int_eq(local_finish(&local, &ident, &umask_027, true), 0);
	ck_assert(local_is_same(&local, &ident));
	ident.mtime_ns++;
	ck_assert(!local_is_same(&local, &ident));
	local_close(&local);
	check_text("new", "abcdef");
}

/*
 * Data that could not be written are not on the disk, though reads may return
 * such data: the next fetch does not continue after the data.
 */
LOOP_TEST(partial_file_lost, 0, 2)
{
	struct serve_ident ident = { .size = 6 };
	struct local local;

	find(&local, "new");
	ck_assert_int_eq(local_begin(&local), 0);
	ck_assert_int_eq(local_append(&local, "abcdef", 6), 0);
	if (_i)
		close_error = EDQUOT;
	else
		fsync_error = EIO;
	ck_assert_int_eq(local_finish(&local, &ident, &umask_027, !_i),
			 _i ? -EDQUOT : -EIO);
	local_close(&local);
	ck_assert_int_ne(faccessat(out, "new", F_OK, 0), 0);
	find(&local, "new");
	ck_assert_uint_eq(local.size, 0);
	local_close(&local);
}

/*
 * A call that ends before its rename leaves the partial file with the
 * original's permissions, read-only. The next call makes the partial file
 * writable and continues, unless another process has it locked.
 */
TEST(partial_file_read_only)
{
	struct local local, other;
	const uid_t uid = geteuid();
	struct stat st;

	if (!uid) {
		ck_assert_int_eq(fchown(out, OTHER_USER, (gid_t) -1), 0);
		ck_assert_int_eq(seteuid(OTHER_USER), 0);
	}
	find(&local, "new");
	ck_assert_int_eq(local_begin(&local), 0);
	ck_assert_int_eq(local_append(&local, "abc", 3), 0);
	ck_assert_int_eq(fchmod(local.fd, 0444), 0);
	find(&other, "new");
	ck_assert_int_eq(local_begin(&other), -EACCES);
	local_close(&other);
	ck_assert_int_eq(fstat(local.fd, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0444);
	local_close(&local);
	find(&local, "new");
	ck_assert_int_eq(local_begin(&local), 0);
	ck_assert_uint_eq(local.size, 3);
	ck_assert_int_eq(fstat(local.fd, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0600);
	local_close(&local);
	ck_assert_int_eq(seteuid(uid), 0);
}

/* Nothing is written through a link of another user, or of a server. */
LOOP_TEST(partial_file_planted, 0, 3)
{
	struct local local;

	find(&local, "new");
	switch (_i) {
	case 0:
		ck_assert_int_eq(symlinkat("secret", out, local.part), 0);
		break;
	case 1:
		ck_assert_int_eq(linkat(out, "secret", out, local.part, 0), 0);
		break;
	case 2:
		ck_assert_int_eq(mkfifoat(out, local.part, 0666), 0);
		break;
	}
	ck_assert_int_eq(local_begin(&local), -EPERM);
	local_close(&local);
	check_text("secret", "secret");
}

TEST(links_on_the_way)
{
	struct local local;

	ck_assert_int_eq(symlinkat("../served/dir", out, "sub"), 0);
	ck_assert_int_eq(local_find(out, "sub/new", &local), -ELOOP);
	ck_assert_int_eq(path_mkdir(out, "sub/new", 0777, false), -ELOOP);
	ck_assert_int_eq(path_mkdir(out, "real", 0777, false), 0);
	ck_assert_int_eq(path_mkdir(out, "real", 0777, false), 0);
	ck_assert_int_eq(local_find(out, "real/new", &local), 0);
	local_close(&local);
	ck_assert_int_eq(local_find(out, "../out/x", &local), -EXDEV);
}

static mode_t mode_of(const char *name)
{
	struct stat st;

	ck_assert_int_eq(fstatat(out, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

/* Fetches "new", with these permissions, over an existing file. */
static void fetch_as(mode_t mode, const struct local_perms *perms)
{
	struct serve_ident ident = { .size = 3, .mode = (uint16_t) mode };
	struct local local;

	find(&local, "new");
	ck_assert_int_eq(local_begin(&local), 0);
	ck_assert_int_eq(mode_of(local.part), 0600);
	ck_assert_int_eq(local_append(&local, "abc", 3), 0);
	ck_assert_int_eq(local_finish(&local, &ident, perms, false), 0);
	local_close(&local);
}

static void fetch(mode_t mode)
{
	fetch_as(mode, &umask_027);
}

/* Kept permissions are the original's, whatever umask or the old file has. */
TEST(permissions_kept)
{
	umask(027);
	fetch_as(0755, &kept);
	ck_assert_int_eq(mode_of("new"), 0755);
	fetch_as(0600, &kept);
	ck_assert_int_eq(mode_of("new"), 0600);
	fetch_as(07666, &kept);
	ck_assert_int_eq(mode_of("new"), 0666);
	ck_assert_int_eq(fchmodat(out, "new", 04755, 0), 0);
	fetch_as(0755, &kept);
	ck_assert_int_eq(mode_of("new"), 0755);
	fetch_as(07711, &umask_027);
	ck_assert_int_eq(mode_of("new"), 0755);
}

/* Permissions of a file that is not fetched again. */
TEST(permissions_set)
{
	struct serve_ident ident = { .mode = 0640 };
	struct local local;

	write_file(out, "new", "abc");
	ck_assert_int_eq(fchmodat(out, "new", 0, 0), 0);
	find(&local, "new");
	ck_assert_int_eq(local_set_perms(&local, &ident), 0);
	ck_assert_int_eq(mode_of("new"), 0640);
	ident.mode = 07777;
	ck_assert_int_eq(local_set_perms(&local, &ident), 0);
	ck_assert_int_eq(mode_of("new"), 0777);
	/* another name may be outside of the directory */
	ck_assert_int_eq(linkat(out, "new", out, "other", 0), 0);
	ck_assert_int_eq(local_set_perms(&local, &ident), 0);
	ident.mode = 0666;
	ck_assert_int_eq(local_set_perms(&local, &ident), -EMLINK);
	ck_assert_int_eq(mode_of("other"), 0777);
	/* the target of a link may be outside, too */
	ck_assert_int_eq(unlinkat(out, "new", 0), 0);
	ck_assert_int_eq(symlinkat("secret", out, "new"), 0);
	ck_assert_int_eq(local_set_perms(&local, &ident), -EPERM);
	local_close(&local);
	ck_assert_int_ne(mode_of("secret"), 0666);
}

/* Mode bits of directories other than permissions stay as they are here. */
TEST(directory_mode)
{
	umask(0777);
	ck_assert_int_eq(path_mkdir(out, "real", 0, false), 0);
	ck_assert_int_eq(path_dir_mode(out, "real", ~(mode_t) 0, S_IRWXU), 0);
	ck_assert_int_eq(mode_of("real"), 0700);
	ck_assert_int_eq(fchmodat(out, "real", 03777, 0), 0);
	ck_assert_int_eq(path_dir_mode(out, "real", ~(mode_t) SERVE_MODE, 0),
			 0);
	ck_assert_int_eq(mode_of("real"), 03000);
	ck_assert_int_eq(path_dir_mode(out, "real", 0, 0755), 0);
	ck_assert_int_eq(mode_of("real"), 0755);
	ck_assert_int_eq(symlinkat("real", out, "link"), 0);
	ck_assert_int_eq(path_dir_mode(out, "link", 0, 0700), -ELOOP);
	ck_assert_int_eq(path_dir_mode(out, "secret", 0, 0700), -ENOTDIR);
}

/* As with cp, a new file has the original's, a replaced one keeps its own. */
TEST(permissions)
{
	umask(027);
	fetch(0755);
	ck_assert_int_eq(mode_of("new"), 0750);
	ck_assert_int_eq(fchmodat(out, "new", 0604, 0), 0);
	fetch(0777);
	ck_assert_int_eq(mode_of("new"), 0604);
	/* a link's permissions do not count */
	ck_assert_int_eq(unlinkat(out, "new", 0), 0);
	ck_assert_int_eq(symlinkat("secret", out, "new"), 0);
	fetch(0400);
	ck_assert_int_eq(mode_of("new"), 0400);
	ck_assert_int_eq(path_mkdir(out, "real", 0555, false), 0);
	ck_assert_int_eq(mode_of("real"), 0750);
	ck_assert_int_eq(path_mkdir(out, "real", 0700, false), 0);
	ck_assert_int_eq(mode_of("real"), 0750);
}

/* A directory has to be on the disk, with its entry in its parent. */
TEST(directory_synced)
{
	fsync_error = EIO;
	ck_assert_int_eq(path_mkdir(out, "real", 0777, false), 0);
	ck_assert_int_eq(fsync_error, EIO);
	ck_assert_int_eq(path_mkdir(out, "real/new", 0777, true), -EIO);
	fsyncs = 0;
	ck_assert_int_eq(path_mkdir(out, "real/new", 0777, true), 0);
	ck_assert_uint_eq(fsyncs, 2);
}
