/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file of recorded requests (format: core/text/trace.h), mapped shared, so
 * that written records survive the end of the process.
 *
 * A thread appends to its own chunk, without a lock or a system call. A thread
 * reserves a new chunk by an atomic addition, and makes the file longer, with
 * space on disk, before writing to the chunk. When a thread ends, the next
 * thread uses the rest of its chunk. The mapping is made once and stays:
 * recording unmaps nothing.
 *
 * next, commit and end: any thread, any lock held.
 */
#ifndef MRRC_TRACE_FILE_H
#define MRRC_TRACE_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/text/trace.h"
#include "sys/base/fd_id.h"

#define MRRC_TRACE_LEFT 64 /* chunks of ended threads that are kept */

struct mrrc_stats_shm_info;

struct mrrc_trace_file {
	uint64_t id; /* unique */
	int fd;
	struct mrrc_fd_id fd_id;
	struct mrrc_trace_head *head; /* the mapping */
	size_t len;		      /* bytes of the mapping */
	uint64_t chunks;	      /* limit of chunks */
	uint64_t start;		      /* ns, CLOCK_MONOTONIC */
	_Atomic uint64_t next;	      /* first chunk that no thread has */
	_Atomic int error;	      /* -E*: the file cannot be made longer */
	_Atomic uint64_t left[MRRC_TRACE_LEFT]; /* records; 0: no record */
};

/*
 * Opens a file and replaces its contents, unless another process writes the
 * file (-EBUSY), or the file is not the user's own: own_file.h has the errors.
 * -EINVAL: not a regular file; -E2BIG: no room in the address space for
 * @max_bytes; else the error of the call that failed. Writes a page at the
 * file's start.
 */
int mrrc_trace_file_open(const char *path, uint64_t max_bytes,
			 struct mrrc_trace_file **file);

/* Closes the file, when no thread records any more. */
void mrrc_trace_file_close(struct mrrc_trace_file *file);

/*
 * Called in a forked child: forgets the parent's chunks. The parent's file
 * stays open.
 */
void mrrc_trace_file_forked(struct mrrc_trace_file *file);

/*
 * Describes another domain in the file; returns the domain's number, from 0 to
 * UINT16_MAX. @cost NULL: costs are not known.
 */
unsigned mrrc_trace_file_domain(struct mrrc_trace_file *file,
				const struct mrrc_stats_shm_info *info,
				const struct mrrc_cost *cost);

/*
 * Gets a record for the calling thread, all zero except thread. NULL: the
 * request was counted as dropped, and file->error has the reason; -EOVERFLOW:
 * the size limit.
 */
struct mrrc_trace_rec *mrrc_trace_file_next(struct mrrc_trace_file *file);

/* Called when all of the record is written except op. */
static inline void mrrc_trace_file_commit(struct mrrc_trace_rec *rec,
					  enum mrrc_trace_op op)
{
	__atomic_store_n(&rec->op, op, __ATOMIC_RELEASE);
}

/* Nanoseconds since the start, never 0. */
uint64_t mrrc_trace_file_now(const struct mrrc_trace_file *file);

/*
 * Records that end with the same hold form a chain, linked by their field `end`
 * until they end: *chain is 0, or leads to the last record. In a forked child
 * the parent's chains count as empty.
 */
void mrrc_trace_file_chain(struct mrrc_trace_file *file,
			   struct mrrc_trace_rec *rec, uint64_t *chain);
void mrrc_trace_file_end(struct mrrc_trace_file *file, uint64_t *chain,
			 uint64_t now);

#endif /* MRRC_TRACE_FILE_H */
