/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks that plans keep their promises (model.h), page by page; where no
 * region may be merged, there is only one right plan.
 */
#include "config.h"
#include "test/models/model.h"

static const struct entry *entry_of(const struct model *model,
				    const struct mrrc_region *region)
{
	unsigned i;

	for (i = 0; i < model->count; i++) {
		if (model->entry[i].region == region)
			return &model->entry[i];
	}
	return NULL;
}

/* Returns the region with @access at a page that reaches furthest. */
static struct mrrc_region *at(const struct model *model, unsigned page,
			      enum mrrc_access access)
{
	struct mrrc_region *best = NULL, *region;
	unsigned i;

	for (i = 0; i < model->count; i++) {
		region = model->entry[i].region;
		if (model->entry[i].access == access &&
		    entry_overlaps(&model->entry[i], page, 1) &&
		    (!best || mrrc_region_end(region) > mrrc_region_end(best)))
			best = region;
	}
	return best;
}

static bool covers(const struct mrrc_region *region, unsigned page)
{
	return region && region->start <= (uintptr_t) page * PAGE &&
	       mrrc_region_end(region) > (uintptr_t) page * PAGE;
}

/* Returns the region that serves a page, if @before serves the one before. */
static struct mrrc_region *server(const struct model *model, unsigned page,
				  enum mrrc_access access,
				  struct mrrc_region *before)
{
	struct mrrc_region *region;

	if (covers(before, page))
		return before;
	region = at(model, page, MRRC_RW);
	return region || access == MRRC_RW ? region : at(model, page, MRRC_RO);
}

/* A remote request has one piece, with exactly the pages of the request. */
static void check_remote(const struct model *model,
			 const struct mrrc_plan *plan, unsigned first,
			 unsigned pages, enum mrrc_access access)
{
	const struct mrrc_piece *piece = plan->piece;
	bool covered = false, overlaps = false;
	const struct entry *e;
	unsigned i;

	for (i = 0; i < model->count; i++) {
		e = &model->entry[i];
		if (e->access != access)
			continue;
		overlaps |= entry_overlaps(e, first, pages);
		covered |= covers(e->region, first) &&
			   covers(e->region, first + pages - 1);
	}
	check(plan->count == 1 && plan->missing == !covered);
	check(piece->start == (uintptr_t) first * PAGE);
	check(piece->len == (size_t) pages * PAGE);
	check(plan->merged == (overlaps && !covered));
	if (!covered) {
		check(!piece->region);
		return;
	}
	check(entry_of(model, piece->region)->access == access);
	check(covers(piece->region, first) &&
	      covers(piece->region, first + pages - 1));
}

static struct mrrc_region *whole(const struct model *model, unsigned first,
				 unsigned pages, enum mrrc_access access)
{
	struct mrrc_region *region = at(model, first, MRRC_RW);

	if (covers(region, first + pages - 1))
		return region;
	region = at(model, first, access);
	return covers(region, first + pages - 1) ? region : NULL;
}

/* Counts regions and gaps in turn, by page. */
static unsigned alternate(const struct model *model, unsigned first,
			  unsigned pages, enum mrrc_access access,
			  struct mrrc_region **by_page)
{
	struct mrrc_region *region = NULL;
	unsigned count = 0;
	unsigned i;

	for (i = 0; i < pages; i++) {
		by_page[i] = server(model, first + i, access, region);
		count += !i || by_page[i] != region;
		region = by_page[i];
	}
	return count;
}

/* Checks the promises of a plan. */
void model_check_plan(const struct model *model, const struct mrrc_plan *plan,
		      unsigned first, unsigned pages, enum mrrc_access access,
		      unsigned limit)
{
	const bool merge = model->cache->policy->merge;
	struct mrrc_region *by_page[SPACE];
	const struct mrrc_piece *piece = plan->piece;
	const struct mrrc_piece *last = &piece[plan->count - 1];
	const unsigned least = alternate(model, first, pages, access, by_page);
	const bool single = whole(model, first, pages, access);
	unsigned missing = 0;
	unsigned i, page;

	if (mrrc_access_remote(access)) {
		check_remote(model, plan, first, pages, access);
		return;
	}
	check(plan->count && plan->count <= limit);
	check(piece->start <= (uintptr_t) first * PAGE);
	check(last->start + last->len >= (uintptr_t) (first + pages) * PAGE);
	for (i = 0; i < plan->count; i++) {
		check(piece[i].len && !(piece[i].len % PAGE));
		check(!i ||
		      piece[i].start == piece[i - 1].start + piece[i - 1].len);
		missing += !piece[i].region;
		if (!piece[i].region)
			continue;
		check(piece[i].region->start <= piece[i].start);
		check(mrrc_region_end(piece[i].region) >=
		      piece[i].start + piece[i].len);
		check(entry_of(model, piece[i].region));
		check(piece[i].region->access == MRRC_RW || access == MRRC_RO);
	}
	check(missing == plan->missing);
	if (single) {
		check(plan->count == 1 && !missing);
		return;
	}
	/* Nothing had to be merged, so nothing may be merged. */
	if (!merge && least <= limit) {
		check(plan->count == least && !plan->merged);
		for (page = 0, i = 0; page < pages; page++) {
			if ((first + page) * PAGE >=
			    piece[i].start + piece[i].len)
				i++;
			check(piece[i].region == by_page[page]);
		}
	}
	if (!merge) {
		check(piece->start == (uintptr_t) first * PAGE);
		check(last->start + last->len ==
		      (uintptr_t) (first + pages) * PAGE);
	}
	check(plan->merged || plan->count == least);
}
