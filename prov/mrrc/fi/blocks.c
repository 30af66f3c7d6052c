/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bounce blocks (blocks.h).
 *
 *	range: | slab | slab | ... | not used yet |
 *	slab:  | head, data | head, data | ...      one size, one registration
 *
 * Free blocks of a size form a stack, as in sys/base/pool.c: the blocks are
 * linked by place, and the stack's top has a tag that each change increments.
 * Slabs stay until flush.
 */
#include "config.h"
#include <sys/mman.h>

#include "fi/blocks.h"
#include "fi/mrrc_fi.h"
#include "sys/node/budget.h"
#include "sys/cache/cache_mt.h"
#include "sys/base/stack.h"
#include "sys/base/vm.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

#define SLABS_MAX    128
#define SLAB_LEN     ((size_t) 256 * 1024) /* at most, with two blocks */
#define FAILURES_MAX 8			   /* after these, no slabs are tried */

static const size_t block_sizes[] = { 256, 1024, 4096, 16384, 65536 };
#define CLASSES count_of(block_sizes)

_Static_assert(sizeof(struct mrrc_block) <= MRRC_BLOCK_HEAD, "block head");

struct mrrc_blocks {
	struct mrrc_reg *reg;
	size_t max;	     /* largest block */
	size_t bytes;	     /* limit of all slabs */
	char *base;	     /* NULL: no slab yet */
	atomic_bool growing; /* guards the rest */
	size_t used;
	unsigned failures;
	unsigned slabs;
	struct fid_mr *slab[SLABS_MAX];
	_Alignas(64) _Atomic uint64_t head[CLASSES]; /* sys/base/stack.h */
};

int mrrc_blocks_touch(const void *addr, size_t len, bool write)
{
	const uintptr_t mask = mrrc_vm_page() - 1;
	const uintptr_t start = (uintptr_t) addr & ~mask;
	const uintptr_t end = ((uintptr_t) addr + len + mask) & ~mask;

	return madvise((void *) start, end - start,
		       write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) ?
		       -FI_EFAULT :
		       0;
}

int mrrc_blocks_copy(void *to, const void *from, size_t len, bool to_user)
{
	const size_t page = mrrc_vm_page();
	size_t pos, part;
	int ret;

	ret = to_user ? mrrc_blocks_touch(to, len, true) :
			mrrc_blocks_touch(from, len, false);
	/* emulators run the instructions of a longer memcpy byte by byte */
	for (pos = 0; !ret && pos < len; pos += part) {
		part = len - pos < page ? len - pos : page;
		memcpy((char *) to + pos, (const char *) from + pos, part);
	}
	return ret;
}

/* The smallest slab with one block of this size. */
static size_t blocks_slab(size_t size)
{
	const size_t page = mrrc_vm_page();

	return (size + MRRC_BLOCK_HEAD + page - 1) & ~(page - 1);
}

int mrrc_blocks_open(struct mrrc_reg *reg, size_t max, size_t bytes,
		     struct mrrc_blocks **out)
{
	struct mrrc_blocks *blocks;
	size_t i = CLASSES;

	*out = NULL;
	bytes &= ~(mrrc_vm_page() - 1);
	while (i && blocks_slab(block_sizes[i - 1]) > bytes)
		i--;
	if (max > (i ? block_sizes[i - 1] : 0))
		max = i ? block_sizes[i - 1] : 0;
	/* Linux before 5.14 lacks MADV_POPULATE_* */
	if (max < block_sizes[0] || mrrc_blocks_touch(out, 1, true))
		return 0;
	blocks = aligned_alloc(64, sizeof(*blocks));
	if (!blocks)
		return -FI_ENOMEM;
	*blocks = (struct mrrc_blocks){
		.reg = reg,
		.max = max,
		.bytes = bytes,
	};
	*out = blocks;
	return 0;
}

void mrrc_blocks_flush(struct mrrc_blocks *blocks)
{
	unsigned i;
	int ret;

	/* in a child the registrations are the parent's */
	if (!blocks || mrrc_mon_forked(blocks->reg->mon))
		return;
	for (i = 0; i < CLASSES; i++)
		atomic_store(&blocks->head[i], 0);
	while (blocks->slabs) {
		ret = fi_close(&blocks->slab[--blocks->slabs]->fid);
		if (ret)
			MRRC_WARN(MR,
				  "the core provider cannot deregister "
				  "memory for copies: %s\n",
				  fi_strerror(-ret));
	}
	if (blocks->reg->budget && blocks->used)
		mrrc_budget_put(blocks->reg->budget, blocks->used);
	blocks->used = 0;
	mrrc_cache_mt_bounce_memory(blocks->reg->cache, 0);
}

void mrrc_blocks_close(struct mrrc_blocks *blocks)
{
	if (!blocks)
		return;
	if (blocks->base)
		munmap(blocks->base, blocks->bytes);
	free(blocks);
}

size_t mrrc_blocks_max(const struct mrrc_blocks *blocks)
{
	return blocks ? blocks->max : 0;
}

static struct mrrc_block *block_at(const struct mrrc_blocks *blocks,
				   uint32_t place)
{
	return (void *) (blocks->base + (size_t) (place - 1) * MRRC_BLOCK_HEAD);
}

static _Atomic uint32_t *block_below(void *blocks, uint32_t place)
{
	return &block_at(blocks, place)->free_next;
}

static struct mrrc_block *blocks_pop(struct mrrc_blocks *blocks, unsigned i)
{
	const uint32_t place =
		mrrc_stack_pop(&blocks->head[i], block_below, blocks);

	return place ? block_at(blocks, place) : NULL;
}

void mrrc_blocks_free(struct mrrc_blocks *blocks, struct mrrc_block *block)
{
	if (block->class == MRRC_BLOCK_HEAP)
		free(block);
	else
		mrrc_stack_push(
			&blocks->head[block->class], block_below, blocks,
			((char *) block - blocks->base) / MRRC_BLOCK_HEAD + 1);
}

/* Registers one more slab of this size. Only one thread at a time gets here. */
static int blocks_grow(struct mrrc_blocks *blocks, unsigned i)
{
	const size_t stride = block_sizes[i] + MRRC_BLOCK_HEAD;
	size_t len = blocks->bytes / 8 & ~(mrrc_vm_page() - 1), pos;
	struct mrrc_block *block;
	struct fid_mr *mr;
	char *slab;
	int ret;

	if (len > SLAB_LEN)
		len = SLAB_LEN;
	if (len < stride)
		len = blocks_slab(block_sizes[i]);
	if (blocks->slabs == SLABS_MAX || blocks->failures == FAILURES_MAX ||
	    len > blocks->bytes - blocks->used)
		return -FI_ENOSPC;
	if (!blocks->base) {
		slab = mmap(NULL, blocks->bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (slab == MAP_FAILED)
			return -errno;
		blocks->base = slab;
	}
	slab = blocks->base + blocks->used;
	if (blocks->reg->budget && !mrrc_budget_take(blocks->reg->budget, len))
		return -FI_ENOSPC;
	ret = mrrc_reg_own(blocks->reg, slab, len, MRRC_REG_BOUNCE, &mr);
	if (ret) {
		if (blocks->reg->budget)
			mrrc_budget_put(blocks->reg->budget, len);
		blocks->failures++;
		return ret;
	}
	blocks->used += len;
	blocks->slab[blocks->slabs++] = mr;
	mrrc_cache_mt_bounce_memory(blocks->reg->cache, blocks->used);
	for (pos = 0; pos + stride <= len; pos += stride) {
		block = (void *) (slab + pos);
		block->desc = fi_mr_desc(mr);
		block->class = i;
		mrrc_blocks_free(blocks, block);
	}
	return 0;
}

struct mrrc_block *mrrc_blocks_alloc(struct mrrc_blocks *blocks, size_t len)
{
	struct mrrc_block *block;
	unsigned i = 0, k;

	/* a child has no registrations of its parent */
	if (mrrc_mon_forked(blocks->reg->mon))
		return NULL;
	while (block_sizes[i] < len)
		i++;
	block = blocks_pop(blocks, i);
	if (block)
		return block;
	if (!atomic_exchange_explicit(&blocks->growing, true,
				      memory_order_acquire)) {
		blocks_grow(blocks, i);
		atomic_store_explicit(&blocks->growing, false,
				      memory_order_release);
	}
	/* a larger block is better than no block */
	for (k = i; !block && k < CLASSES && k < i + 2; k++)
		block = blocks_pop(blocks, k);
	return block;
}
