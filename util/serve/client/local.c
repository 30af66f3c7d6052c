/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Files on this machine (serve/client/local.h).
 */
#include "config.h"
#include "serve/client/local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "serve/wire/path.h"

bool local_is_part(const char *name, size_t len)
{
	return len == LOCAL_PART_MAX - 1 &&
	       !memcmp(name, LOCAL_PREFIX, sizeof(LOCAL_PREFIX) - 1);
}

int local_find(int dir, const char *path, struct local *local)
{
	const char *slash = strrchr(path, '/');
	char parent[SERVE_PATH_MAX + 1];
	struct stat st;

	snprintf(parent, sizeof(parent), "%.*s",
		 slash ? (int) (slash - path) : 0, path);
	snprintf(local->name, sizeof(local->name), "%s",
		 slash ? slash + 1 : path);
	snprintf(local->part, sizeof(local->part), LOCAL_PREFIX "%016llx",
		 (unsigned long long) XXH3_64bits(local->name,
						  strlen(local->name)));
	local->fd = -1;
	local->size = 0;
	local->dir = path_open(dir, parent, O_RDONLY | O_DIRECTORY, 0);
	if (local->dir < 0)
		return local->dir;
	if (!fstatat(local->dir, local->part, &st, AT_SYMLINK_NOFOLLOW) &&
	    S_ISREG(st.st_mode))
		local->size = (uint64_t) st.st_size;
	return 0;
}

bool local_is_same(const struct local *local, const struct serve_ident *ident)
{
	struct serve_ident here;
	struct stat st;

	if (fstatat(local->dir, local->name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(st.st_mode))
		return false;
	path_ident(&st, &here);
	return here.size == ident->size && here.mtime_ns == ident->mtime_ns;
}

int local_set_perms(const struct local *local, const struct serve_ident *ident)
{
	const mode_t mode = ident->mode & SERVE_MODE;
	struct stat st;
	int fd, ret;

	/* O_PATH, as the file's permissions may not allow to open it */
	fd = openat(local->dir, local->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		ret = -errno;
	else if (!S_ISREG(st.st_mode))
		ret = -EPERM;
	else if ((st.st_mode & ~(mode_t) S_IFMT) == mode)
		ret = 0;
	else if (st.st_nlink > 1)
		ret = -EMLINK;
	else
		ret = path_chmod(fd, mode);
	close(fd);
	return ret;
}

/* Does the partial file's name still lead to the open file? */
static bool is_there(const struct local *local, const struct stat *open_st)
{
	struct stat st;

	return !fstatat(local->dir, local->part, &st, AT_SYMLINK_NOFOLLOW) &&
	       st.st_dev == open_st->st_dev && st.st_ino == open_st->st_ino;
}

static int open_part(const struct local *local, int flags)
{
	return openat(local->dir, local->part,
		      flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		      S_IRUSR | S_IWUSR);
}

/* Is this a regular file of this user, without other names? */
static bool is_own(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() &&
	       st->st_nlink <= 1;
}

/*
 * A call that ended before its rename may have left the original's permissions,
 * by which the partial file cannot be written. Does nothing while another
 * process has the partial file.
 */
static void make_writable(const struct local *local)
{
	const int fd = open_part(local, O_RDONLY);
	struct stat st;

	if (fd < 0)
		return;
	if (!flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &st) && is_own(&st) &&
	    is_there(local, &st))
		fchmod(fd, S_IRUSR | S_IWUSR);
	close(fd);
}

int local_begin(struct local *local)
{
	struct stat st;
	int fd, ret = 0;

	fd = open_part(local, O_RDWR | O_CREAT);
	if (fd < 0 && errno == EACCES) {
		make_writable(local);
		fd = open_part(local, O_RDWR | O_CREAT);
	}
	if (fd < 0)
		return errno == ELOOP || errno == ENXIO ? -EPERM : -errno;
	if (fstat(fd, &st))
		ret = -errno;
	else if (!is_own(&st))
		ret = -EPERM;
	else if (flock(fd, LOCK_EX | LOCK_NB))
		ret = errno == EWOULDBLOCK ? -EBUSY : -errno;
	/*
	 * another process may have completed the file before the lock was taken
	 */
	else if (fstat(fd, &st) || !is_there(local, &st))
		ret = -EBUSY;
	if (ret) {
		close(fd);
		return ret;
	}
	local->fd = fd;
	local->size = (uint64_t) st.st_size;
	return 0;
}

int local_read(const struct local *local, uint64_t off, void *buf, size_t len)
{
	size_t done = 0;
	ssize_t ret;

	while (done < len) {
		ret = pread(local->fd, (char *) buf + done, len - done,
			    (off_t) (off + done));
		if (ret < 0 && errno == EINTR)
			continue;
		if (ret <= 0)
			return ret ? -errno : -EIO;
		done += (size_t) ret;
	}
	return 0;
}

int local_cut(struct local *local, uint64_t size)
{
	if (ftruncate(local->fd, (off_t) size))
		return -errno;
	local->size = size;
	return 0;
}

int local_append(struct local *local, const void *buf, size_t len)
{
	size_t done = 0;
	ssize_t ret;
	int err;

	while (done < len) {
		ret = pwrite(local->fd, (const char *) buf + done, len - done,
			     (off_t) (local->size + done));
		if (ret < 0 && errno == EINTR)
			continue;
		if (ret <= 0) {
			err = ret ? errno : EIO;
			local_cut(local, local->size);
			return -err;
		}
		done += (size_t) ret;
	}
	local->size += len;
	return 0;
}

/*
 * After an error the kernel may drop data that it did not write, and report the
 * error only once: later reads may not return the data on the disk. A partial
 * file with an error is cut to length 0, so that no wrong data stay. Some file
 * systems report only at close that the disk is full.
 */
static int write_out(struct local *local, bool sync)
{
	int fd = dup(local->fd), ret;

	if (fd < 0)
		return -errno;
	if (!close(fd) && (!sync || !fsync(local->fd)))
		return 0;
	ret = -errno;
	local_cut(local, 0);
	return ret;
}

static mode_t mode_of(const struct local *local,
		      const struct serve_ident *ident,
		      const struct local_perms *perms)
{
	struct stat st;

	if (perms->keep)
		return ident->mode & SERVE_MODE;
	if (!fstatat(local->dir, local->name, &st, AT_SYMLINK_NOFOLLOW) &&
	    S_ISREG(st.st_mode))
		return st.st_mode & SERVE_MODE;
	return ident->mode & SERVE_MODE & ~perms->mask;
}

int local_finish(struct local *local, const struct serve_ident *ident,
		 const struct local_perms *perms, bool sync)
{
	const struct timespec times[] = {
		{ .tv_nsec = UTIME_NOW },
		{ .tv_sec = ident->mtime_ns / 1000000000 -
			    (ident->mtime_ns % 1000000000 < 0),
		  .tv_nsec = (ident->mtime_ns % 1000000000 + 1000000000) %
			     1000000000 },
	};
	int ret;

	if (fchmod(local->fd, mode_of(local, ident, perms)) ||
	    futimens(local->fd, times))
		return -errno;
	ret = write_out(local, sync);
	if (ret)
		return ret;
	if (renameat(local->dir, local->part, local->dir, local->name))
		return -errno;
	close(local->fd);
	local->fd = -1;
	return 0;
}

void local_close(struct local *local)
{
	if (local->fd >= 0) {
		if (!local->size)
			unlinkat(local->dir, local->part, 0);
		close(local->fd);
	}
	if (local->dir >= 0)
		close(local->dir);
	local->fd = local->dir = -1;
}
