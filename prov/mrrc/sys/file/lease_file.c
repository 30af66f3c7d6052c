/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Takes and gives up leases (lease_file.h).
 *
 * A lease belongs to an open file description, and the application's
 * description may be open for writing: so the file is opened again for the
 * lease.
 */
#include "config.h"
#include "sys/file/lease_file.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "sys/base/vm.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

#define LEASE_WANT  ((size_t) 1 << 20) /* bytes of a request to the kernel */
#define LEASE_PAGES ((size_t) 1024)    /* pages looked at at once */

/*
 * Does the kernel know of each writer of files in this file system? Not on
 * overlayfs, which grants a lease on a file with a writable mapping (Linux
 * 6.18), nor on network file systems, whose servers have other clients.
 */
static bool lease_kept_by(int fd, bool *memory)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return false;
	*memory = fs.f_type == TMPFS_MAGIC;
	switch ((unsigned long) fs.f_type) {
	case EXT4_SUPER_MAGIC: /* ext2 and ext3, too */
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case TMPFS_MAGIC:
		return true;
	default:
		return false;
	}
}

unsigned mrrc_lease_break_ms(void)
{
	size_t seconds;

	if (!mrrc_vm_proc("/proc/sys/fs/lease-break-time", NULL, &seconds, 1))
		return 0;
	return seconds < UINT_MAX / 1000 ? seconds * 1000 : UINT_MAX;
}

/*
 * All leases, whose descriptors a forked child closes: a lease that a child
 * shares would outlive the parent, and no thread would give it up. The lock is
 * held while such a descriptor is opened or closed, by a thread that cannot be
 * cancelled then: it would leave with the lock.
 */
static pthread_mutex_t leased_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, mrrc_lease_file) leased = LIST_HEAD_INITIALIZER(leased);
static pthread_once_t leased_once = PTHREAD_ONCE_INIT;

static void leased_fork_prepare(void)
{
	pthread_mutex_lock(&leased_lock);
}

static void leased_fork_parent(void)
{
	pthread_mutex_unlock(&leased_lock);
}

static void leased_fork_child(void)
{
	struct mrrc_lease_file *file;

	LIST_FOREACH(file, &leased, link) {
		if (mrrc_fd_is(file->fd, &file->id))
			close(file->fd);
	}
	LIST_INIT(&leased);
	pthread_mutex_unlock(&leased_lock);
}

static void leased_init(void)
{
	pthread_atfork(leased_fork_prepare, leased_fork_parent,
		       leased_fork_child);
}

static int lease_map(struct mrrc_lease_file *file)
{
	struct stat stat;

	if (fstat(file->fd, &stat))
		return -errno;
	if (!stat.st_size)
		return -ENODATA;
	file->len = stat.st_size;
	file->base = mmap(NULL, file->len, PROT_READ, MAP_SHARED, file->fd, 0);
	if (file->base == MAP_FAILED)
		return -errno;
	/* a child has no use for the mapping */
	madvise(file->base, file->len, MADV_DONTFORK);
	return 0;
}

static int lease_take(int fd, const struct mrrc_fd_id *id, pid_t owner,
		      struct mrrc_lease_file *out)
{
	const struct f_owner_ex by = { F_OWNER_TID, owner };
	struct mrrc_lease_file file = { .id = *id };
	char path[40];
	int ret;

	if (!lease_kept_by(fd, &file.memory))
		return -EOPNOTSUPP;
	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	file.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (file.fd < 0)
		return -errno;
	ret = -EBADF;
	if (!mrrc_fd_is(file.fd, id))
		goto err_close;
	if (fcntl(file.fd, F_SETSIG, MRRC_LEASE_SIGNAL) ||
	    fcntl(file.fd, F_SETOWN_EX, &by) ||
	    fcntl(file.fd, F_SETLEASE, F_RDLCK)) {
		ret = -errno;
		goto err_close;
	}
	ret = lease_map(&file);
	if (ret)
		goto err_give;
	*out = file;
	return 0;

err_give:
	mrrc_lease_file_give(&file);
err_close:
	close(file.fd);
	return ret;
}

int mrrc_lease_file_take(int fd, const struct mrrc_fd_id *id, pid_t owner,
			 struct mrrc_lease_file *file)
{
	int ret, cancel;

	pthread_once(&leased_once, leased_init);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&leased_lock);
	ret = lease_take(fd, id, owner, file);
	if (!ret)
		LIST_INSERT_HEAD(&leased, file, link);
	pthread_mutex_unlock(&leased_lock);
	pthread_setcancelstate(cancel, NULL);
	return ret;
}

bool mrrc_lease_file_whole(const struct mrrc_lease_file *file)
{
	/*
	 * the application may have closed the lease's descriptor, and its
	 * number may be another file's
	 */
	return mrrc_fd_is(file->fd, &file->id) &&
	       fcntl(file->fd, F_GETLEASE) == F_RDLCK;
}

void mrrc_lease_file_give(struct mrrc_lease_file *file)
{
	if (mrrc_fd_is(file->fd, &file->id))
		fcntl(file->fd, F_SETLEASE, F_UNLCK);
}

void mrrc_lease_file_close(struct mrrc_lease_file *file)
{
	int cancel;

	munmap(file->base, file->len);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&leased_lock);
	LIST_REMOVE(file, link);
	if (mrrc_fd_is(file->fd, &file->id))
		close(file->fd);
	pthread_mutex_unlock(&leased_lock);
	pthread_setcancelstate(cancel, NULL);
}

/*
 * The number of bytes of a mapping, from addr on, that are in the page cache.
 */
static size_t lease_cached(char *addr, size_t len)
{
	const size_t page = mrrc_vm_page(),
		     skip = (uintptr_t) addr & (page - 1);
	const size_t pages = (skip + len + page - 1) / page;
	unsigned char in[LEASE_PAGES];
	size_t i, n, at;

	addr -= skip;
	for (at = 0; at < pages; at += n) {
		n = pages - at < LEASE_PAGES ? pages - at : LEASE_PAGES;
		if (mincore(addr + at * page, n * page, in))
			return len;
		for (i = 0; i < n; i++) {
			if (!(in[i] & 1))
				return at + i ? (at + i) * page - skip : 0;
		}
	}
	return len;
}

size_t mrrc_lease_file_cached(const struct mrrc_lease_file *file, size_t offset,
			      size_t len)
{
	return lease_cached(file->base + offset, len);
}

/*
 * Holes of a file in tmpfs are not readable: a read fault in a hole allocates
 * memory, and raises SIGBUS if tmpfs is full.
 */
bool mrrc_lease_file_readable(const struct mrrc_lease_file *file, size_t offset,
			      size_t len)
{
	return !file->memory ||
	       mrrc_lease_file_cached(file, offset, len) >= len;
}

bool mrrc_file_cached(int fd, uint64_t offset, size_t len)
{
	const size_t skip = offset & (mrrc_vm_page() - 1);
	bool cached;
	char *base;

	base = mmap(NULL, skip + len, PROT_READ, MAP_SHARED, fd,
		    (off_t) (offset - skip));
	if (base == MAP_FAILED)
		return true;
	cached = lease_cached(base + skip, len) >= len;
	munmap(base, skip + len);
	return cached;
}

/*
 * Requests the part's pages, since each page fault would read all of the disk's
 * read-ahead around one page. If parts follow each other, also reads the first
 * byte that is not in the page cache: this continues the kernel's own
 * read-ahead, in larger and larger requests and pages, and page faults by the
 * same open file description keep the read-ahead going.
 */
void mrrc_lease_file_ahead(const struct mrrc_lease_file *file, size_t offset,
			   size_t len, bool follows)
{
	const size_t end = offset + len;
	size_t part;
	char byte;

	offset += mrrc_lease_file_cached(file, offset, len);
	if (offset == end || !mrrc_fd_is(file->fd, &file->id))
		return;
	if (follows && offset)
		mrrc_file_read(file->fd, &file->id, &byte, 1, offset);
	/* the kernel would read only the beginning of a larger request */
	for (; offset < end; offset += part) {
		part = end - offset < LEASE_WANT ? end - offset : LEASE_WANT;
		posix_fadvise(file->fd, (off_t) offset, (off_t) part,
			      POSIX_FADV_WILLNEED);
	}
}

static int file_read(int fd, void *buf, size_t len, uint64_t offset)
{
	size_t done = 0;
	ssize_t ret;

	if (offset > INT64_MAX || len > INT64_MAX - offset)
		return -ENODATA;
	while (done < len) {
		ret = pread(fd, (char *) buf + done, len - done,
			    (off_t) (offset + done));
		if (ret < 0 && errno != EINTR)
			return -errno;
		if (!ret)
			return -ENODATA;
		if (ret > 0)
			done += ret;
	}
	return 0;
}

int mrrc_file_read(int fd, const struct mrrc_fd_id *id, void *buf, size_t len,
		   uint64_t offset)
{
	const int ret = file_read(fd, buf, len, offset);

	/* until here the bytes, or the error, may be another file's */
	return mrrc_fd_is(fd, id) ? ret : -EBADF;
}

int mrrc_lease_file_copy(const struct mrrc_lease_file *file, size_t offset,
			 size_t len)
{
	const size_t in_file = file->len - offset < len ? file->len - offset :
							  len;
	void *copy;
	int ret;

	/* not in a memfd, which RLIMIT_FSIZE would limit */
	copy = mmap(NULL, len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return -errno;
	ret = mrrc_file_read(file->fd, &file->id, copy, in_file, offset);
	if (!ret && (mprotect(copy, len, PROT_READ) ||
		     mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
			    file->base + offset) == MAP_FAILED))
		ret = -errno;
	if (ret)
		munmap(copy, len);
	return ret;
}

void mrrc_lease_file_zero(const struct mrrc_lease_file *file, size_t offset,
			  size_t len)
{
	mmap(file->base + offset, len, PROT_READ,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}
