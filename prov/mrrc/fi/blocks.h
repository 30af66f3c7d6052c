/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bounce blocks: registered memory that data are copied through. Blocks have a
 * few sizes, lie in a bounded range, and are registered a slab at a time as
 * needed.
 *
 * Any thread may allocate and free blocks, without a lock. Only adding a slab
 * calls other code; one thread at a time adds slabs, holding no lock.
 */
#ifndef MRRC_BLOCKS_H
#define MRRC_BLOCKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fi/reg.h"

struct mrrc_blocks;
struct mrrc_op;

/* The 64 bytes before each block's data. */
struct mrrc_block {
	struct mrrc_block *next; /* the next block of the operation */
	char *user;		 /* the application's buffer */
	size_t len;
	size_t offset; /* offset of that buffer in the message */
	void *desc;
	_Atomic uint32_t free_next;
	uint8_t class; /* MRRC_BLOCK_HEAP: memory of malloc */
	bool in;       /* data are to be copied to the user */
	bool error;    /* claim: the application is to get an error */
	const struct mrrc_block_ops *ops; /* MRRC_BLOCK_FILE */
};

struct mrrc_block_ops {
	/* the operation has ended, or was not posted */
	void (*end)(struct mrrc_op *op, struct mrrc_block *block);
	/* is the block's data wrong? */
	bool (*lost)(const struct mrrc_block *block);
	/*
	 * does a writer of the file wait for the part that the operation reads?
	 */
	bool (*wanted)(const struct mrrc_block *block);
	/*
	 * Called for an operation that was not given to the core: moves all
	 * data of the operation to buf, which then belongs to the block. false:
	 * the data were not moved.
	 */
	bool (*yield)(struct mrrc_op *op, struct mrrc_block *block, void *buf,
		      void **desc);
};

#define MRRC_BLOCK_HEAD 64
#define MRRC_BLOCK_HEAP UINT8_MAX
#define MRRC_BLOCK_FILE (UINT8_MAX - 1) /* a part of a file: fi/file */

static inline char *mrrc_block_data(struct mrrc_block *block)
{
	return (char *) block + MRRC_BLOCK_HEAD;
}

/*
 * Makes blocks of up to @max bytes each, in at most @bytes bytes. Returns 0 and
 * sets *blocks to NULL if @bytes has no room for a block, or if the system
 * cannot tell whether memory is mapped.
 */
int mrrc_blocks_open(struct mrrc_reg *reg, size_t max, size_t bytes,
		     struct mrrc_blocks **blocks);

/*
 * Deregisters all blocks. No block may be in use; blocks can be allocated again
 * later. blocks may be NULL.
 */
void mrrc_blocks_flush(struct mrrc_blocks *blocks);
void mrrc_blocks_close(struct mrrc_blocks *blocks);

/* The largest block; 0 for NULL. */
size_t mrrc_blocks_max(const struct mrrc_blocks *blocks);

/* NULL: no block is left. */
struct mrrc_block *mrrc_blocks_alloc(struct mrrc_blocks *blocks, size_t len);
void mrrc_blocks_free(struct mrrc_blocks *blocks, struct mrrc_block *block);

/* -FI_EFAULT: the pages are not mapped, or not writable. */
int mrrc_blocks_touch(const void *addr, size_t len, bool write);

/*
 * Copies from or to the application's memory; -FI_EFAULT if it is not mapped.
 */
int mrrc_blocks_copy(void *to, const void *from, size_t len, bool to_user);

#endif /* MRRC_BLOCKS_H */
