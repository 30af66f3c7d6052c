/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Files beneath a directory (serve/wire/path.h).
 */
#include "config.h"
#include "serve/wire/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static int resolve(int dir, const char *path, int flags, mode_t mode,
		   uint64_t how_else)
{
	const struct open_how how = {
		.flags = (uint64_t) (flags | O_CLOEXEC),
		.mode = flags & O_CREAT ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
			   RESOLVE_NO_MAGICLINKS | how_else,
	};
	long fd;

	/*
	 * -EAGAIN: a rename raced with the resolution, or the path is not
	 * cached
	 */
	do {
		fd = syscall(SYS_openat2, dir, *path ? path : ".", &how,
			     sizeof(how));
	} while (fd < 0 && !how_else && (errno == EINTR || errno == EAGAIN));
	return fd < 0 ? -errno : (int) fd;
}

int path_open(int dir, const char *path, int flags, mode_t mode)
{
	return resolve(dir, path, flags, mode, 0);
}

int path_root(const char *name)
{
	int dir = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC), again;

	if (dir < 0)
		return -errno;
	again = path_open(dir, "", O_PATH, 0);
	if (again >= 0) {
		close(again);
		return dir;
	}
	close(dir);
	/* EPERM is the error of filters of system calls */
	return again == -EPERM ? -ENOSYS : again;
}

const char *path_root_error(int error)
{
	return error == -ENOSYS ?
		       "there is no openat2(2): the kernel is older than "
		       "Linux 5.6, or a filter of system calls (a container's "
		       "seccomp profile) denies it" :
		       strerror(-error);
}

/*
 * Is the file system local? On other file systems an open may wait for another
 * process, or host.
 */
static bool is_local(int fd)
{
	struct statfs st;

	if (fstatfs(fd, &st))
		return false;
	return st.f_type == EXT4_SUPER_MAGIC || st.f_type == XFS_SUPER_MAGIC ||
	       st.f_type == BTRFS_SUPER_MAGIC || st.f_type == TMPFS_MAGIC;
}

static bool others_may(int fd, mode_t mode)
{
	struct stat st;

	return !fstat(fd, &st) && (st.st_mode & mode) == mode;
}

bool path_root_others(int dir)
{
	struct stat st, above;
	int at = fcntl(dir, F_DUPFD_CLOEXEC, 0), up;
	bool may, top = false;

	do {
		may = at >= 0 && others_may(at, S_IXOTH);
		up = may ? openat(at, "..", O_PATH | O_CLOEXEC) : -1;
		if (up >= 0 && !fstat(at, &st) && !fstat(up, &above))
			top = st.st_ino == above.st_ino &&
			      st.st_dev == above.st_dev;
		close(at);
		at = up;
	} while (may && !top);
	close(at);
	return may;
}

/*
 * Opens a path name by name, so that the rights are checked on the opened
 * directories: if a whole path were checked and then opened, another directory
 * could replace a checked directory in between.
 */
static int walk(int dir, const char *path, uint64_t how_else)
{
	char name[SERVE_NAME_MAX + 1];
	int at = fcntl(dir, F_DUPFD_CLOEXEC, 0), next;
	size_t len;

	while (at >= 0 && *path) {
		len = strcspn(path, "/");
		snprintf(name, sizeof(name), "%.*s", (int) len, path);
		next = len >= sizeof(name) ?
			       -ENAMETOOLONG :
		       !others_may(at, S_IXOTH) ?
			       -EACCES :
			       resolve(at, name, O_PATH, 0, how_else);
		close(at);
		at = next;
		path += len;
		path += *path == '/';
	}
	return at;
}

int path_open_data(int dir, const char *path, unsigned flags, struct stat *st)
{
	const uint64_t cached = flags & PATH_NOW ? RESOLVE_CACHED : 0;
	const bool others = flags & PATH_OTHERS;
	char link[64];
	int at, fd;

	at = others ? walk(dir, path, cached) :
		      resolve(dir, path, O_PATH, 0, cached);
	if (at < 0)
		return at;
	if ((flags & PATH_NOW) && !is_local(at)) {
		fd = -EAGAIN;
	} else if (fstat(at, st)) {
		fd = -errno;
	} else if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode)) {
		fd = -ENOTSUP;
	} else if (others &&
		   !others_may(at, S_ISDIR(st->st_mode) ? S_IROTH | S_IXOTH :
							  S_IROTH)) {
		fd = -EACCES;
	} else {
		/*
		 * the link in /proc leads to the same object, wherever its path
		 * leads now
		 */
		snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
		fd = open(link, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		fd = fd < 0 ? -errno : fd;
	}
	close(at);
	return fd;
}

/* Syncs a directory, and its entry in its parent. */
static int sync_dir(int parent, const char *name)
{
	int fd = path_open(parent, name, O_RDONLY | O_DIRECTORY, 0), ret;

	if (fd < 0)
		return fd;
	ret = fsync(fd) || fsync(parent) ? -errno : 0;
	close(fd);
	return ret;
}

int path_mkdir(int dir, const char *path, mode_t mode, bool sync)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char parent[SERVE_PATH_MAX + 1];
	int at, ret = 0;

	snprintf(parent, sizeof(parent), "%.*s",
		 slash ? (int) (slash - path) : 0, path);
	at = path_open(dir, parent, O_RDONLY | O_DIRECTORY, 0);
	if (at < 0)
		return at;
	/* the owner may write entries to the new directory */
	if (mkdirat(at, name, mode | S_IRWXU) && errno != EEXIST)
		ret = -errno;
	else if (sync)
		ret = sync_dir(at, name);
	close(at);
	return ret;
}

int path_chmod(int fd, mode_t mode)
{
	char link[64];

	/*
	 * fchmod(2) takes no O_PATH; the link in /proc leads to the same object
	 */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return chmod(link, mode) ? -errno : 0;
}

int path_dir_mode(int dir, const char *path, mode_t keep, mode_t others)
{
	int fd = path_open(dir, path, O_PATH | O_DIRECTORY, 0), ret;
	struct stat st;
	mode_t mode;

	if (fd < 0)
		return fd;
	ret = fstat(fd, &st) ? -errno : 0;
	mode = st.st_mode & ~(mode_t) S_IFMT;
	if (!ret && ((mode & keep) | others) != mode)
		ret = path_chmod(fd, (mode & keep) | others);
	close(fd);
	return ret;
}

static int64_t nanoseconds(const struct timespec *ts)
{
	/*
	 * the nanoseconds wrap for times that no clock shows, and can still be
	 * compared
	 */
	return (int64_t) ((uint64_t) ts->tv_sec * 1000000000U +
			  (uint64_t) ts->tv_nsec);
}

void path_ident(const struct stat *st, struct serve_ident *ident)
{
	ident->dev = st->st_dev;
	ident->ino = st->st_ino;
	ident->size = (uint64_t) st->st_size;
	ident->mtime_ns = nanoseconds(&st->st_mtim);
	ident->ctime_ns = nanoseconds(&st->st_ctim);
	ident->mode = st->st_mode & SERVE_MODE;
}

bool path_ident_same(const struct serve_ident *a, const struct serve_ident *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

/*
 * Is ch a control character, or a character that changes the order or the lines
 * of the text around it?
 */
static bool is_format(uint32_t ch)
{
	return ch < 0x20 || (ch >= 0x7f && ch < 0xa0) || ch == 0x61c ||
	       (ch >= 0x200b && ch <= 0x200f) ||
	       (ch >= 0x2028 && ch <= 0x202e) ||
	       (ch >= 0x2060 && ch <= 0x206f) || ch == 0xfeff ||
	       (ch >= 0xfff9 && ch <= 0xfffb) ||
	       (ch >= 0xe0000 && ch <= 0xe007f);
}

/* Returns the length of a printable UTF-8 character at text, or 0. */
static size_t printable(const unsigned char *text, size_t len)
{
	/*
	 * the smallest characters that need 0, 1, 2 and 3 following bytes;
	 * smaller characters have a shorter form
	 */
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	const unsigned char first = text[0];
	const size_t more = first < 0x80  ? 0 :
			    first >= 0xf0 ? 3 :
			    first >= 0xe0 ? 2 :
					    1;
	uint32_t ch = more ? first & (0x3fU >> more) : first;
	size_t i;

	if ((first >= 0x80 && first < 0xc0) || first > 0xf4 || len <= more)
		return 0;
	for (i = 1; i <= more; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		ch = ch << 6 | (text[i] & 0x3f);
	}
	if (ch < least[more] || ch > 0x10ffff ||
	    (ch >= 0xd800 && ch <= 0xdfff) || ch == '\\' || is_format(ch))
		return 0;
	return more + 1;
}

char *path_shown(const char *text, size_t len)
{
	char *shown = malloc(4 * len + 1), *at = shown;
	size_t n;

	if (!shown)
		return NULL;
	while (len) {
		n = printable((const unsigned char *) text, len);
		if (n) {
			memcpy(at, text, n);
			at += n;
		} else {
			n = 1;
			at += sprintf(at, "\\%03o", (unsigned char) *text);
		}
		text += n;
		len -= n;
	}
	*at = 0;
	return shown;
}
