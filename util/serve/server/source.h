/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Provides the bytes of ranges: only source.c knows how a file reaches the
 * network. A range of a large file is sent from the file's own pages,
 * fi_mrrc_file(3), as long as the provider does so; any other range is read
 * into a registered block. In both cases the range's hash is computed from
 * bytes that were read, and the client compares the bytes that it received.
 *
 * source_open() and source_read() may block, and run in the threads of
 * serve/server/jobs.h, several for one file at once. The event loop calls the
 * other functions, and with @now also source_open() and source_read(), which
 * then return an error where they would block.
 */
#ifndef SERVE_SOURCE_H
#define SERVE_SOURCE_H

#include <stdatomic.h>
#include <rdma/fi_endpoint.h>

#include "serve/wire/net.h"
#include "serve/wire/wire.h"

struct fid_mrrc_file;

/* The served directory. */
struct source {
	int dir;
	struct fid_domain *domain;
	bool copies; /* never send the files' own pages */
	bool others; /* only files that all users may read */
};

struct source_file {
	int fd;
	unsigned uses; /* number of uses, counted by the event loop */
	struct serve_ident ident;
	struct fid_mrrc_file *pages; /* NULL: all ranges are read into blocks */
	atomic_bool copied;	     /* the provider copies the file's pages */
};

/* The buffer or pages from which one range is sent. */
struct source_block {
	struct fid_domain *domain;
	void *buf; /* NULL until it is needed */
	size_t size;
	bool copy;    /* always send from buf */
	bool now;     /* fail for data that are not in memory */
	bool filled;  /* send from buf; false: from the file's pages */
	uint64_t off; /* offset in the file */
};

/*
 * Opens path. On SERVE_OK the caller owns one use of *file, and ends it by
 * source_put(). With @now only a small file that the kernel has in memory is
 * opened; after any error, try without @now.
 */
enum serve_status source_open(const struct source *source, const char *path,
			      bool now, struct source_file **file);
/* The permissions of a directory that source_open() found at that path. */
enum serve_status source_dir_mode(const struct source *source, const char *path,
				  uint16_t *mode);
void source_get(struct source_file *file);
/* Drops a use of a file, when the operations of the use have completed. */
void source_put(struct source_file *file);

/* Allocates the block's memory, if it has none yet. Returns 0, or an error. */
int source_block_need(struct source_block *block);
void source_block_free(struct source_block *block);

/*
 * Reads at most max bytes from off on, up to the file's end, and hashes them,
 * all from the version that was opened. SERVE_CHANGED: the file has another
 * version. @block is the memory from which the bytes are sent; NULL if they are
 * not sent.
 */
enum serve_status source_read(struct source_file *file, uint64_t off,
			      size_t max, struct source_block *block,
			      uint32_t *len, uint64_t *hash);

/*
 * Sends the len bytes of the last source_read() of the block under tag. Returns
 * as fi_cwrite() does. *own: set if the file's own pages are sent.
 */
ssize_t source_send(struct source_file *file, const struct net_link *link,
		    struct source_block *block, size_t len, uint64_t tag,
		    void *context, bool *own);

/* Returns the status for a negative errno of an open or a read. */
enum serve_status source_status(int ret);

#endif /* SERVE_SOURCE_H */
