/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies that operations hold in place of buffers: because a copy is cheaper
 * than a registration, or because no registration can be made.
 *
 * Copies of small buffers are blocks of registered memory (blocks.h). Received
 * data are copied from a block to the buffer under the lock of the CQ that
 * reports them, so that the data are there before the completion is read.
 *
 * A source of any size that can be read but not registered is copied to memory
 * from malloc, which is registered instead. Read-only memory cannot be
 * registered by verbs' own cache, which registers with all rights, whatever is
 * asked for (verbs_mr.c, 1.17). The kernel copies the source, and returns an
 * error where memory is not mapped.
 */
#include "config.h"
#include <limits.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fi/blocks.h"
#include "fi/data/bounce.h"

bool mrrc_bounce_lost(const struct mrrc_op *op)
{
	return op->bounces && op->bounces->class == MRRC_BLOCK_FILE &&
	       op->bounces->ops->lost(op->bounces);
}

void mrrc_bounce_free(struct mrrc_op *op)
{
	struct mrrc_block *block;

	while ((block = op->bounces)) {
		op->bounces = block->next;
		if (block->class == MRRC_BLOCK_FILE) {
			block->ops->end(op, block);
			continue;
		}
		if (block->class == MRRC_BLOCK_HEAP)
			mrrc_reg_forget(&op->domain->reg,
					mrrc_block_data(block), block->len);
		mrrc_blocks_free(op->domain->blocks, block);
	}
}

static void bounce_add(struct mrrc_op *op, struct mrrc_block *block)
{
	block->next = op->bounces;
	op->bounces = block;
	mrrc_cache_mt_bounced(op->domain->reg.cache, block->len);
}

int mrrc_bounce_out(struct mrrc_op *op, struct iovec *iov)
{
	struct iovec copy = { .iov_len = iov->iov_len };
	struct mrrc_block *block;

	if (iov->iov_len > SSIZE_MAX - MRRC_BLOCK_HEAD)
		return -FI_EFAULT;
	block = malloc(MRRC_BLOCK_HEAD + iov->iov_len);
	if (!block)
		return -FI_ENOMEM;
	copy.iov_base = mrrc_block_data(block);
	if (process_vm_readv(getpid(), &copy, 1, iov, 1, 0) !=
	    (ssize_t) iov->iov_len) {
		free(block);
		return -FI_EFAULT;
	}
	block->class = MRRC_BLOCK_HEAP;
	block->in = false;
	block->len = iov->iov_len;
	bounce_add(op, block);
	*iov = copy;
	return 0;
}

bool mrrc_bounce_allowed(const struct mrrc_op *op, enum mrrc_access access)
{
	const struct mrrc_ep *ep =
		atomic_load_explicit(&op->ep, memory_order_relaxed);
	const uint32_t flags =
		atomic_load_explicit(&op->flags, memory_order_relaxed);

	/* conditional writes: the core reports no completion for them */
	if (flags & MRRC_OP_CLAIMED)
		return false;
	if (access == MRRC_RO)
		return ep->copies.out;
	if (!(flags & MRRC_OP_RX))
		return ep->copies.read;
	/* received data: more than the length must be known */
	return ep->copies.recv &&
	       !(flags & (MRRC_OP_MULTI | MRRC_OP_PEEK | MRRC_OP_RETRIEVE));
}

int mrrc_bounce_block(struct mrrc_op *op, const struct iovec *iov,
		      size_t offset, enum mrrc_access access, void **base,
		      void **desc)
{
	struct mrrc_blocks *blocks = op->domain->blocks;
	struct mrrc_block *block;
	int ret;

	block = mrrc_blocks_alloc(blocks, iov->iov_len);
	if (!block)
		return -FI_ENOMEM;
	block->in = access != MRRC_RO;
	ret = block->in ? mrrc_blocks_touch(iov->iov_base, iov->iov_len, true) :
			  mrrc_blocks_copy(mrrc_block_data(block),
					   iov->iov_base, iov->iov_len, false);
	if (ret) {
		mrrc_blocks_free(blocks, block);
		return ret;
	}
	block->user = iov->iov_base;
	block->len = iov->iov_len;
	block->offset = offset;
	bounce_add(op, block);
	*base = mrrc_block_data(block);
	*desc = block->desc;
	return 0;
}

void mrrc_bounce_in(struct mrrc_op *op, size_t len)
{
	struct mrrc_block *block;
	size_t part;

	for (block = op->bounces; block; block = block->next) {
		if (!block->in || block->offset >= len)
			continue;
		part = len - block->offset;
		if (part > block->len)
			part = block->len;
		/*
		 * if the memory was unmapped, the data are lost, as in a
		 * registered buffer
		 */
		mrrc_blocks_copy(block->user, mrrc_block_data(block), part,
				 true);
	}
}

void *mrrc_bounce_user(const struct mrrc_op *op, const void *addr)
{
	struct mrrc_block *block;
	size_t pos;

	for (block = op->bounces; block; block = block->next) {
		pos = (uintptr_t) addr - (uintptr_t) mrrc_block_data(block);
		if (block->in && pos < block->len)
			return block->user + pos;
	}
	return (void *) addr;
}
