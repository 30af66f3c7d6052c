/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Holds of regions, counted by threads (holds.h).
 *
 * Lanes form a list that grows at its head, so that it is walked without a
 * lock; each stays until the cache is closed.
 */
#include "config.h"
#include "sys/holds.h"

#include <sys/mman.h>

#include "sys/gate.h"

static uint32_t mrrc_holds_held(const struct mrrc_counts *counts,
				const struct mrrc_region *region)
{
	const struct mrrc_holds *holds = (const void *)counts;
	const size_t offset = (const char *)region - holds->regions;
	struct mrrc_lane *lane;
	uint32_t held = 0;

	for (lane = atomic_load((struct mrrc_lane *_Atomic *)&holds->lanes);
	     lane; lane = lane->next)
		held += atomic_load_explicit(mrrc_lane_number(lane, offset),
					     memory_order_acquire);
	return held;
}

static bool mrrc_holds_settle(struct mrrc_counts *counts)
{
	return mrrc_gate_barrier();
}

void mrrc_holds_init(struct mrrc_holds *holds, const struct mrrc_pool *pool)
{
	*holds = (struct mrrc_holds) {
		.counts = { mrrc_holds_held, mrrc_holds_settle },
		.regions = pool->base,
	};
	if (mrrc_gate_usable())
		holds->size = sizeof(struct mrrc_lane) + (pool->span >> 4);
}

void mrrc_holds_fini(struct mrrc_holds *holds)
{
	struct mrrc_lane *lane = atomic_load(&holds->lanes);
	struct mrrc_lane *next;

	for (; lane; lane = next) {
		next = lane->next;
		munmap(lane, holds->size);
	}
	atomic_store(&holds->lanes, NULL);
}

struct mrrc_lane *mrrc_holds_take(struct mrrc_holds *holds)
{
	struct mrrc_lane *lane;

	if (!holds->size)
		return NULL;
	for (lane = atomic_load(&holds->lanes); lane; lane = lane->next) {
		if (!atomic_exchange(&lane->taken, true))
			return lane;
	}
	lane = mmap(NULL, holds->size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (lane == MAP_FAILED)
		return NULL;
	atomic_init(&lane->taken, true);
	lane->next = atomic_load(&holds->lanes);
	while (!atomic_compare_exchange_weak(&holds->lanes, &lane->next, lane))
		;
	return lane;
}
