/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A mapped file under a read lease (F_SETLEASE of fcntl(2)). While the lease is
 * whole no process has the file open for writing, so neither its bytes nor its
 * length change, and a read of the mapping cannot fault. An open for writing
 * and a truncation wait until the lease is given up, but no longer than
 * mrrc_lease_break_ms().
 *
 * Any thread, no lock held. A forked child has no descriptor of a lease.
 */
#ifndef MRRC_LEASE_FILE_H
#define MRRC_LEASE_FILE_H

#include <bsd/sys/queue.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/base/fd_id.h"

/*
 * Not the usual SIGIO: a thread that waits for SIGIO would also take SIGIO
 * signals sent to the process. Linux never sends SIGSTKFLT by itself.
 */
#ifdef SIGSTKFLT
#define MRRC_LEASE_SIGNAL SIGSTKFLT
#else
#define MRRC_LEASE_SIGNAL SIGIO
#endif

struct mrrc_lease_file {
	int fd; /* a separate open file description */
	struct mrrc_fd_id id;
	char *base;
	size_t len;  /* length of the file: not 0 */
	bool memory; /* the file is on tmpfs */
	LIST_ENTRY(mrrc_lease_file) link;
};

/*
 * Takes a lease on the file behind fd, whose identity is id, and maps the file.
 * The thread @owner gets MRRC_LEASE_SIGNAL when the lease is to be given up.
 * -EBADF: fd is another file by now; -EAGAIN: the file is open for writing;
 * -EACCES: the file belongs to another user; -EOPNOTSUPP: its file system does
 * not keep leases; -ENODATA: the file is empty; else an error of the system.
 * @file stays where it is until mrrc_lease_file_close().
 */
int mrrc_lease_file_take(int fd, const struct mrrc_fd_id *id, pid_t owner,
			 struct mrrc_lease_file *file);

bool mrrc_lease_file_whole(const struct mrrc_lease_file *file);

/* Ends the lease; the mapping stays. */
void mrrc_lease_file_give(struct mrrc_lease_file *file);

/* Unmaps the file, whose lease has been given up. */
void mrrc_lease_file_close(struct mrrc_lease_file *file);

/*
 * Replaces a page-aligned part of the mapping by a copy, in one step for
 * threads that read the part. On failure the part stays as it is. -EBADF: the
 * application has closed the lease's descriptor.
 */
int mrrc_lease_file_copy(const struct mrrc_lease_file *file, size_t offset,
			 size_t len);

/* Replaces a page-aligned part of the mapping by zeros. */
void mrrc_lease_file_zero(const struct mrrc_lease_file *file, size_t offset,
			  size_t len);

/*
 * The number of bytes that the page cache has from the start of a non-empty
 * part on; all bytes if the system does not tell.
 */
size_t mrrc_lease_file_cached(const struct mrrc_lease_file *file, size_t offset,
			      size_t len);

/* May a part that is not empty be read through the mapping? */
bool mrrc_lease_file_readable(const struct mrrc_lease_file *file, size_t offset,
			      size_t len);

/*
 * Is all of a non-empty part in the page cache? Needs no lease. Also true if
 * the system does not tell.
 */
bool mrrc_file_cached(int fd, uint64_t offset, size_t len);

/*
 * Has the kernel read a part from the disk before the part is read through the
 * mapping, by requests that are cheaper than page faults. follows: the part
 * begins where the previous part ended, so the bytes after the part are read,
 * too.
 */
void mrrc_lease_file_ahead(const struct mrrc_lease_file *file, size_t offset,
			   size_t len, bool follows);

/* Time for which the kernel lets a writer wait; 0: no time, or unknown. */
unsigned mrrc_lease_break_ms(void);

/*
 * Reads all of [offset, offset + len) by pread(2). -ENODATA: the file is
 * shorter; -EBADF: fd is another file by now, of which @buf may have bytes.
 */
int mrrc_file_read(int fd, const struct mrrc_fd_id *id, void *buf, size_t len,
		   uint64_t offset);

#endif /* MRRC_LEASE_FILE_H */
