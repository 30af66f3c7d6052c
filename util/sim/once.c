/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory registered before the run (once.h).
 */
#include "config.h"
#include "sim/once.h"

#include <stdlib.h>

#include "sys/heap/heap.h"

static void once_register(const struct sim_cell *cell, uint64_t len,
			  struct sim_result *result)
{
	result->registrations++;
	result->registered_pages += mrrc_cost_pages(cell->cost, len);
	result->reg_ns += mrrc_cost_reg(cell->cost, len);
	result->pinned_peak += len;
}

/*
 * Computes the length of the next block of a heap that has @bytes bytes, as
 * heap_growth() in sys/heap does.
 */
static uint64_t once_block(uint64_t bytes, uint64_t len)
{
	uint64_t size = MRRC_HEAP_BLOCK_MIN;

	while (size < bytes / 16 && size < 64 * MRRC_HEAP_BLOCK_MIN)
		size *= 2;
	if (size > len)
		return size;
	return (len + MRRC_HEAP_BLOCK_MIN - 1) & ~(MRRC_HEAP_BLOCK_MIN - 1);
}

/* Makes blocks for the extents of each process; the rest of a block is lost. */
static void once_blocks(const struct sim_cell *cell,
			const struct sim_extent *extent, size_t cnt,
			struct sim_result *result)
{
	uint64_t bytes = 0, room = 0, len;
	size_t i;

	for (i = 0; i < cnt; i++) {
		if (i && extent[i].proc != extent[i - 1].proc)
			bytes = room = 0;
		len = extent[i].end - extent[i].start;
		if (len > room) {
			room = once_block(bytes, len);
			bytes += room;
			once_register(cell, room, result);
		}
		room -= len;
	}
}

int sim_once_run(const struct sim_cell *cell, bool blocks,
		 struct sim_result *result)
{
	const struct sim_trace *trace = cell->trace;
	struct sim_extent *extent;
	size_t i, cnt, part = 0;
	int ret;

	ret = sim_trace_extents(trace, cell->page, &extent, &cnt);
	if (ret)
		return ret;
	*result = (struct sim_result){ 0 };
	if (blocks) {
		once_blocks(cell, extent, cnt, result);
	} else {
		for (i = 0; i < cnt; i++)
			once_register(cell, extent[i].end - extent[i].start,
				      result);
	}
	free(extent);
	result->requests = result->hits = result->pieces = trace->count;
	for (i = 0; i < trace->count; i++) {
		result->bytes += trace->req[i].len;
		sim_pinned(result, result->pinned_peak, i, trace->count, &part);
	}
	result->hit_bytes = result->bytes;
	return 0;
}
