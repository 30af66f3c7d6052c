/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registers the allocator's blocks with the core and deregisters them, and logs
 * the allocator's events. The application gets a block's registration as a
 * struct fid_mr that it cannot close.
 */
#include "config.h"
#include <inttypes.h>

#include "fi/alloc/alloc_priv.h"
#include "sys/cache/cache_mt.h"
#include "sys/file/ring.h"
#include "sys/base/vm.h"
#include "fi/fid.h"

/*
 * ALLOC_WAIT_MS: time to wait until other processes have deregistered the
 * missing bytes.
 */
#define ALLOC_WAIT_MS 50
#define ALLOC_GIVE_MS 1000 /* blocks idle for this time go to other processes */

static int alloc_mr_close(struct fid *fid)
{
	return -FI_EBUSY; /* other allocations are in the block */
}

static int alloc_mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return -FI_ENOSYS;
}

static int alloc_mr_control(struct fid *fid, int command, void *arg)
{
	return -FI_ENOSYS;
}

static struct fi_ops alloc_mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = alloc_mr_close,
	.bind = alloc_mr_bind,
	.control = alloc_mr_control,
	.ops_open = mrrc_fid_ops_open,
	.tostr = mrrc_fid_tostr,
	.ops_set = mrrc_fid_ops_set,
};

/* Counts in the shared statistics, if there are any. */
static void alloc_count(struct mrrc_alloc *alloc, enum mrrc_stat stat,
			int64_t change)
{
	if (alloc->reg->cache)
		mrrc_cache_mt_stat(alloc->reg->cache, stat, change);
}

static int alloc_mr_reg(void *arg, uintptr_t start, size_t len,
			enum mrrc_access access, void **cookie)
{
	struct mrrc_alloc *alloc = arg;
	struct mrrc_alloc_mr *mr;
	int ret;

	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	if (alloc->budget &&
	    !mrrc_budget_take_wait(alloc->budget, &alloc->keeper, len,
				   ALLOC_WAIT_MS)) {
		alloc_count(alloc, MRRC_STAT_ALLOC_REG_FAILURES, 1);
		free(mr);
		return -EDQUOT;
	}
	ret = mrrc_reg_make(alloc->reg, start, len, access, &mr->mr.core);
	if (ret) {
		if (alloc->budget)
			mrrc_budget_put(alloc->budget, len);
		alloc_count(alloc, MRRC_STAT_ALLOC_REG_FAILURES, 1);
		free(mr);
		return ret;
	}
	alloc_count(alloc, MRRC_STAT_ALLOC_REGS, 1);
	alloc_count(alloc, MRRC_STAT_ALLOC_BLOCKS, 1);
	alloc_count(alloc, MRRC_STAT_ALLOC_BYTES, len);
	mr->mr.mr.fid.fclass = FI_CLASS_MR;
	mr->mr.mr.fid.ops = &alloc_mr_fid_ops;
	mr->mr.mr.mem_desc = fi_mr_desc(mr->mr.core);
	mr->mr.mr.key = fi_mr_key(mr->mr.core);
	mr->start = (void *) start;
	mr->len = len;
	*cookie = mr;
	return 0;
}

int mrrc_alloc_slot(const struct mrrc_reg *reg, const void *addr, size_t len)
{
	struct mrrc_alloc *alloc = atomic_load(&reg->alloc);
	struct mrrc_alloc_mr *mr = mrrc_heap_cookie(alloc->heaps, addr, len);
	struct mrrc_ring *ring = atomic_load(&reg->ring);
	int known = mr ? atomic_load(&mr->slot) : -1, slot;

	if (known)
		return known < 0 ? -1 : known - 1;
	slot = mrrc_ring_pin(ring, mr->start, mr->len);
	if (atomic_compare_exchange_strong(&mr->slot, &known,
					   slot < 0 ? -1 : slot + 1))
		return slot;
	/* another thread stored a slot first */
	if (slot >= 0)
		mrrc_ring_unpin(ring, slot);
	return known < 0 ? -1 : known - 1;
}

/*
 * Takes the block out of the ring before its memory has another use, as the
 * ring would still read into the old pages.
 */
static void alloc_mr_unpin(struct mrrc_alloc *alloc, struct mrrc_alloc_mr *mr)
{
	struct mrrc_ring *ring = atomic_load(&alloc->reg->ring);

	if (ring && atomic_load(&mr->slot) > 0)
		mrrc_ring_unpin(ring, atomic_load(&mr->slot) - 1);
}

static void alloc_mr_dereg(void *arg, void *cookie, uintptr_t start, size_t len)
{
	struct mrrc_alloc *alloc = arg;
	struct mrrc_alloc_mr *mr = cookie;

	alloc_count(alloc, MRRC_STAT_ALLOC_DEREGS, 1);
	alloc_count(alloc, MRRC_STAT_ALLOC_BLOCKS, -1);
	alloc_count(alloc, MRRC_STAT_ALLOC_BYTES, -(int64_t) len);
	alloc_mr_unpin(alloc, mr);
	mrrc_reg_unmake(mr->mr.core, start, len);
	if (alloc->budget)
		mrrc_budget_put(alloc->budget, len);
	free(mr);
}

/* ---- the node's budget ---- */

static struct mrrc_alloc *alloc_of(struct mrrc_budget_keeper *keeper)
{
	return (struct mrrc_alloc *) ((char *) keeper -
				      offsetof(struct mrrc_alloc, keeper));
}

static void keeper_trim(struct mrrc_budget_keeper *keeper)
{
	mrrc_heaps_trim(alloc_of(keeper)->heaps);
}

static void keeper_give(struct mrrc_budget_keeper *keeper)
{
	mrrc_heaps_trim_idle(alloc_of(keeper)->heaps, ALLOC_GIVE_MS);
}

static void keeper_reap(struct mrrc_budget_keeper *keeper)
{
	struct mrrc_reg *reg = alloc_of(keeper)->reg;

	if (reg->cache)
		mrrc_cache_mt_reap_now(reg->cache);
}

void mrrc_alloc_keeper_init(struct mrrc_alloc *alloc)
{
	alloc->keeper.trim = keeper_trim;
	alloc->keeper.give = keeper_give;
	alloc->keeper.reap = keeper_reap;
	alloc->keeper.any_thread = alloc->reg->any_thread;
}

static bool alloc_reap(void *arg)
{
	struct mrrc_alloc *alloc = arg;

	return alloc->reg->cache && mrrc_cache_mt_flush(alloc->reg->cache);
}

/* ---- log lines ----------------------------------------------------------- */

/*
 * Was this limit logged? The limits of a domain are logged once for each
 * domain, the limit of a heap once for each heap; each call that reaches a
 * limit returns the error.
 */
static bool said(struct mrrc_alloc *alloc, const struct mrrc_heap_note *note)
{
	const uint32_t bit = 1u << note->event;

	if (note->event == MRRC_HEAP_LIMIT_HEAP)
		return note->again;
	return atomic_fetch_or(&alloc->said, bit) & bit;
}

static void say_limit(struct mrrc_alloc *alloc,
		      const struct mrrc_heap_note *note)
{
	if (said(alloc, note))
		return;
	switch (note->event) {
	case MRRC_HEAP_LIMIT_HEAP:
		MRRC_WARN(MR,
			  "fi_mr_alloc: %zu bytes more would exceed the "
			  "heap's limit of %zu: raise max_bytes of "
			  "fi_mr_heap_open()\n",
			  note->size, note->limit);
		break;
	case MRRC_HEAP_LIMIT_DOMAIN:
		MRRC_WARN(MR,
			  "fi_mr_alloc: %zu bytes more would exceed the "
			  "domain's limit of %zu: raise "
			  "FI_OFI_MRRC_ALLOC_MAX_SIZE\n",
			  note->size, note->limit);
		break;
	case MRRC_HEAP_LIMIT_OWNER:
		MRRC_WARN(MR,
			  "fi_mr_alloc: %zu bytes more would exceed the "
			  "node's budget of %zu: raise "
			  "FI_OFI_MRRC_NODE_MAX_SIZE\n",
			  note->size, mrrc_budget_limit(alloc->budget));
		break;
	case MRRC_HEAP_NO_MEMORY:
		MRRC_WARN(MR,
			  "fi_mr_alloc: no memory for a block of %zu "
			  "bytes: %s: free memory, or raise vm.max_map_count\n",
			  note->size, fi_strerror(-note->err));
		break;
	default:
		MRRC_WARN(MR,
			  "fi_mr_alloc: the core provider cannot register "
			  "a block of %zu bytes: %s; the limit on locked "
			  "memory is %zu bytes: raise it (ulimit -l), or the "
			  "device's limit of regions is reached\n",
			  note->size, fi_strerror(-note->err),
			  mrrc_vm_memlock());
	}
}

static void say_mistake(const struct mrrc_heap_note *note)
{
	void *addr = (void *) note->addr;

	switch (note->event) {
	case MRRC_HEAP_DOUBLE_FREE:
		MRRC_WARN(MR, "fi_mr_free: double free of %p\n", addr);
		break;
	case MRRC_HEAP_FOREIGN:
		MRRC_WARN(MR,
			  "fi_mr_free: %p was not allocated by "
			  "fi_mr_alloc, or was freed and unmapped\n",
			  addr);
		break;
	case MRRC_HEAP_INSIDE:
		MRRC_WARN(MR,
			  "fi_mr_free: %p lies inside the allocation at "
			  "%p: free the start of the allocation\n",
			  addr, (void *) note->base);
		break;
	case MRRC_HEAP_OTHER_DOMAIN:
		MRRC_WARN(MR,
			  "fi_mr_free: %p belongs to another domain: pass "
			  "that domain to fi_mr_free\n",
			  addr);
		break;
	case MRRC_HEAP_OVERFLOW:
		MRRC_WARN(MR,
			  "fi_mr_free: overflow: byte %zu behind the %zu "
			  "bytes at %p was written\n",
			  note->offset - note->size, note->size, addr);
		break;
	default:
		MRRC_WARN(MR,
			  "fi_mr_alloc: use after free: byte %zu of the "
			  "memory at %p was written after it was freed\n",
			  note->offset, addr);
	}
}

static void alloc_note(void *arg, const struct mrrc_heap_note *note)
{
	struct mrrc_alloc *alloc = arg;

	switch (note->event) {
	case MRRC_HEAP_FALLBACK:
		MRRC_WARN(MR,
			  "fi_mr_alloc: no pages of %zu MiB are free (see "
			  "/proc/sys/vm/nr_hugepages): smaller pages are "
			  "used\n",
			  note->size >> 20);
		break;
	case MRRC_HEAP_LEAK:
		MRRC_WARN(MR, "fi_mr_alloc: leak: %zu bytes at %p\n",
			  note->size, (void *) note->addr);
		break;
	case MRRC_HEAP_LEAKS:
		MRRC_WARN(MR,
			  "fi_mr_alloc: %zu allocations of a heap, %zu "
			  "bytes, were not freed before the heap closed\n",
			  note->count, note->size);
		break;
	case MRRC_HEAP_LIMIT_HEAP:
	case MRRC_HEAP_LIMIT_DOMAIN:
	case MRRC_HEAP_LIMIT_OWNER:
	case MRRC_HEAP_NO_MEMORY:
	case MRRC_HEAP_NO_REG:
		alloc_count(alloc, MRRC_STAT_ALLOC_LIMITS, 1);
		say_limit(alloc, note);
		break;
	default:
		alloc_count(alloc, MRRC_STAT_ALLOC_MISTAKES, 1);
		say_mistake(note);
	}
}

static void alloc_counted(void *arg, uint64_t allocs, uint64_t frees)
{
	alloc_count(arg, MRRC_STAT_ALLOCS, allocs);
	alloc_count(arg, MRRC_STAT_FREES, frees);
}

const struct mrrc_heap_ops mrrc_alloc_heap_ops = {
	.reg = alloc_mr_reg,
	.dereg = alloc_mr_dereg,
	.reap = alloc_reap,
	.note = alloc_note,
	.count = alloc_counted,
};
