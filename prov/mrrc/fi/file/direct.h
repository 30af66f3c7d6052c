/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parts of a file that the disk writes into registered memory, past the page
 * cache: FI_MRRC_FILE_DIRECT.
 *
 * Any thread, no lock held.
 */
#ifndef MRRC_DIRECT_H
#define MRRC_DIRECT_H

#include <bsd/sys/queue.h>

#include "sys/file/ring.h"

struct mrrc_file;

struct mrrc_direct {
	struct mrrc_ring_read read;
	uint64_t offset; /* the part's place in the file */
	size_t len;
	char *addr; /* address of the part in read.buf */
	/* number of the file's lease during the read; 0: no lease */
	uint64_t lease;
	TAILQ_ENTRY(mrrc_direct) link;
};

TAILQ_HEAD(mrrc_direct_list, mrrc_direct);

/* Opens the file past the page cache. -FI_EOPNOTSUPP is logged. */
int mrrc_direct_open(struct mrrc_file *file);
/* To be called when all parts were put, except those that were read ahead. */
void mrrc_direct_close(struct mrrc_file *file);

/* Reads a part. follows: the next parts are read, too. -FI_EAGAIN: copy it. */
int mrrc_direct_get(struct mrrc_file *file, uint64_t offset, size_t len,
		    bool follows, struct mrrc_direct **out);

/* Gives a part back. again: it was not posted, and may be wanted again. */
void mrrc_direct_put(struct mrrc_file *file, struct mrrc_direct *direct,
		     bool again);

#endif /* MRRC_DIRECT_H */
