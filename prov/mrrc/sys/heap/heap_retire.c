/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Addresses of blocks that have ended.
 *
 * A core provider that looks a key up only when a transfer begins, as tcp does,
 * continues the transfer after the registration is closed: the transfer would
 * overwrite, or send, memory that is mapped at the address by then. So the
 * domain keeps the addresses of a block that peers could reach, with an empty
 * mapping in the block's place, which only such transfers reach. The domain
 * gives back the oldest addresses when it keeps too many addresses, and all
 * addresses when it closes.
 *
 * The mapping can be written to: tcp copies the last bytes of a transfer
 * itself, and would end the process with a fault. Data that peers write to the
 * mapping take memory, which retired_purge() gives back from time to time. The
 * mapping cannot be accessed if a tool has to find uses of freed memory, or if
 * writable memory counts against a limit before it is used
 * (vm.overcommit_memory is 2).
 */
#include "config.h"
#include "sys/heap/heap_retire.h"

#include <sys/mman.h>

#include "sys/heap/heap_watch.h"
#include "sys/base/pool.h"
#include "sys/base/vm.h"

#define RETIRED_MAX 4096u
#define PURGE_MAX   ((size_t) 1 << 30)

void mrrc_heap_retire_open(struct mrrc_heaps *heaps)
{
	const size_t maps = mrrc_vm_map_max() / 8;
	const size_t memory = mrrc_vm_memory() / 16;

	TAILQ_INIT(&heaps->retired);
	heaps->retired_max = maps < RETIRED_MAX ? maps : RETIRED_MAX;
	heaps->retired_max_bytes = mrrc_vm_spare();
	heaps->retired_purge = memory < PURGE_MAX ? memory : PURGE_MAX;
	heaps->retired_access = !mrrc_heap_watched && !mrrc_vm_strict();
}

static void block_unmap(struct mrrc_heaps *heaps, struct mrrc_heap_block *block)
{
	mrrc_pages_unmap((void *) block->base, block->len);
	mrrc_pool_free(heaps->blocks, block);
}

static bool unmap_list(struct mrrc_heaps *heaps, struct mrrc_heap_blocks *list)
{
	struct mrrc_heap_block *block;
	bool any = false;

	while ((block = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, block, link);
		block_unmap(heaps, block);
		any = true;
	}
	return any;
}

/*
 * Moves the oldest addresses to another list until the domain keeps at most
 * @max blocks, of at most @max_bytes bytes in all.
 */
static void retired_take(struct mrrc_heaps *heaps, unsigned max,
			 size_t max_bytes, struct mrrc_heap_blocks *to)
{
	struct mrrc_heap_block *block;

	while ((heaps->retired_cnt > max || heaps->retired_bytes > max_bytes) &&
	       (block = TAILQ_FIRST(&heaps->retired))) {
		TAILQ_REMOVE(&heaps->retired, block, link);
		heaps->retired_cnt--;
		heaps->retired_bytes -= mrrc_pages_len(block->len);
		TAILQ_INSERT_TAIL(to, block, link);
	}
}

/*
 * Gives back the memory of all retired addresses. Meanwhile the addresses are
 * not in the domain's list, so that other threads do not unmap them.
 */
static void retired_purge(struct mrrc_heaps *heaps)
{
	struct mrrc_heap_blocks list = TAILQ_HEAD_INITIALIZER(list);
	struct mrrc_heap_block *block;

	mrrc_lock_acquire(&heaps->lock);
	TAILQ_CONCAT(&list, &heaps->retired, link);
	mrrc_lock_release(&heaps->lock);
	TAILQ_FOREACH(block, &list, link)
		madvise((void *) block->base, block->len, MADV_DONTNEED);
	mrrc_lock_acquire(&heaps->lock);
	TAILQ_CONCAT(&list, &heaps->retired, link);
	TAILQ_CONCAT(&heaps->retired, &list, link);
	mrrc_lock_release(&heaps->lock);
}

static bool block_retire(struct mrrc_heaps *heaps,
			 const struct mrrc_heap_block *block)
{
	const struct mrrc_heap *heap = block->heap;

	if (!mrrc_access_remote(heap->attr.access) || !heaps->retired_max ||
	    mrrc_pages_len(block->len) > heaps->retired_max_bytes)
		return false;
	return mrrc_pages_retire((void *) block->base, block->len,
				 heaps->retired_access);
}

void mrrc_heap_retire(struct mrrc_heaps *heaps, struct mrrc_heap_block *block)
{
	struct mrrc_heap_blocks excess = TAILQ_HEAD_INITIALIZER(excess);
	bool purge;

	mrrc_lock_assert_none();
	if (!block_retire(heaps, block)) {
		block_unmap(heaps, block);
		return;
	}
	mrrc_lock_acquire(&heaps->lock);
	TAILQ_INSERT_TAIL(&heaps->retired, block, link);
	heaps->retired_cnt++;
	heaps->retired_bytes += mrrc_pages_len(block->len);
	heaps->retired_new += block->len;
	purge = heaps->retired_new >= heaps->retired_purge;
	if (purge)
		heaps->retired_new = 0;
	retired_take(heaps, heaps->retired_max, heaps->retired_max_bytes,
		     &excess);
	mrrc_lock_release(&heaps->lock);
	unmap_list(heaps, &excess);
	if (purge)
		retired_purge(heaps);
}

bool mrrc_heap_retired_release(struct mrrc_heaps *heaps)
{
	struct mrrc_heap_blocks list = TAILQ_HEAD_INITIALIZER(list);

	mrrc_lock_acquire(&heaps->lock);
	retired_take(heaps, 0, 0, &list);
	mrrc_lock_release(&heaps->lock);
	return unmap_list(heaps, &list);
}
