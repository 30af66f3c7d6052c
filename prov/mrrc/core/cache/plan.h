/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Plans: the regions that serve a request, and the gaps that have to be
 * registered.
 */
#ifndef MRRC_PLAN_H
#define MRRC_PLAN_H

#include "core/cache/cache.h"

/*
 * A plan that serves a request: pieces in order of address that cover its
 * pages. Each piece without a region has to be registered with exactly its
 * pages.
 */
struct mrrc_piece {
	uintptr_t start;
	size_t len;
	struct mrrc_region *region; /* covers the piece; not held yet */
};

struct mrrc_plan {
	unsigned count;
	unsigned missing;	 /* pieces without a region */
	bool merged;		 /* a gap includes pages that are registered */
	struct mrrc_place place; /* place of the request's first page */
	struct mrrc_piece piece[MRRC_PIECES_MAX];
};

/*
 * Plans how at most @pieces regions serve a request; the policy's parameter is
 * a limit in any case, and the only limit if @pieces is 0. Counts the request,
 * and tells the policy. The caller has checked that the range is not empty and
 * does not wrap. Holds no region.
 */
void mrrc_cache_lookup(struct mrrc_cache *cache, uintptr_t addr, size_t len,
		       enum mrrc_access access, unsigned pieces,
		       struct mrrc_plan *plan);

/*
 * Plans as mrrc_cache_lookup() does, but neither counts the request nor tells
 * the policy. As in ou2009, section 5 (cases 1 to 4), existing regions serve
 * their part of the request, and the gaps are registered. A region between two
 * gaps is registered together with them if that is cheaper than one more
 * registration. If there are too many pieces, neighbours are merged, the
 * cheapest merge first. A merge includes pages outside the request, up to a
 * quarter of the byte limit, if these pages were used before or the request is
 * repeated, unless both registrations can stay. More than MRRC_PIECES_MAX
 * pieces become one. For remote access the plan is one piece, with exactly the
 * pages of the request.
 */
void mrrc_cache_plan(const struct mrrc_cache *cache, uintptr_t addr, size_t len,
		     enum mrrc_access access, unsigned pieces,
		     struct mrrc_plan *plan);

/*
 * Tells the policy that one region served a request without
 * mrrc_cache_lookup(). The request is counted already. The range may no longer
 * be registered.
 */
void mrrc_cache_served(struct mrrc_cache *cache, uintptr_t addr, size_t len,
		       enum mrrc_access access);

#endif /* MRRC_PLAN_H */
