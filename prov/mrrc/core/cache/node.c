/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The shares of a node's processes (node.h).
 */
#include "config.h"
#include "core/cache/node.h"

/* excess that a hungry process may keep, as a part of its share */
#define HUNGRY_PART 8
#define LEVEL_TURNS 64	/* limit of turns; later turns change next to nothing */
#define IDLE_PART   .25 /* part of a core's time that may be busy */

uint64_t mrrc_node_reserved(const struct mrrc_node_view *view)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < view->count; i++)
		sum += view->share[i].reserved;
	return sum;
}

static bool hungry(const struct mrrc_node_share *share)
{
	return share->want && !share->deaf;
}

/* Does the process need less than @level? */
static bool content(const struct mrrc_node_share *share, uint64_t level)
{
	return share->deaf ||
	       (!share->want && (!share->active || share->reserved <= level));
}

/* Units that a content process keeps. */
static uint64_t kept(const struct mrrc_node_share *share)
{
	return share->deaf || share->active ? share->reserved : 0;
}

uint64_t mrrc_node_level(const struct mrrc_node_view *view)
{
	uint64_t level = 0, next, left;
	size_t i, sharing;
	unsigned turn;

	/* each turn the level rises, and more processes are content */
	for (turn = 0; turn < LEVEL_TURNS; turn++, level = next) {
		left = view->budget;
		sharing = 0;
		for (i = 0; i < view->count; i++) {
			const struct mrrc_node_share *share = &view->share[i];
			const uint64_t keep = kept(share);

			if (!content(share, level))
				sharing++;
			else
				left -= keep < left ? keep : left;
		}
		next = sharing ? left / sharing : left;
		if (next <= level)
			break;
	}
	return level;
}

/* Units that a hungry process lacks of its share. */
static uint64_t lacks(const struct mrrc_node_share *share, uint64_t level)
{
	uint64_t below;

	if (!hungry(share) || share->reserved >= level)
		return 0;
	below = level - share->reserved;
	return share->want < below ? share->want : below;
}

uint64_t mrrc_node_lacks(const struct mrrc_node_view *view)
{
	return lacks(&view->share[view->self], mrrc_node_level(view));
}

/* Units that a process has to give back if other processes lack units. */
static uint64_t surplus(const struct mrrc_node_share *share, uint64_t level)
{
	if (share->deaf)
		return 0;
	if (!share->want && !share->active)
		return share->reserved;
	if (share->want)
		level += level / HUNGRY_PART;
	return share->reserved > level ? share->reserved - level : 0;
}

uint64_t mrrc_node_take(const struct mrrc_node_view *view, uint64_t ask)
{
	const uint64_t level = mrrc_node_level(view);
	const uint64_t sum = mrrc_node_reserved(view);
	uint64_t free = view->budget > sum ? view->budget - sum : 0;
	size_t i;

	if (view->share[view->self].reserved + ask > level) {
		for (i = 0; i < view->count && free; i++) {
			uint64_t lack = i == view->self ?
						0 :
						lacks(&view->share[i], level);

			free -= lack < free ? lack : free;
		}
	}
	return ask < free ? ask : free;
}

uint64_t mrrc_node_give(const struct mrrc_node_view *view)
{
	const uint64_t level = mrrc_node_level(view);
	const uint64_t sum = mrrc_node_reserved(view);
	const uint64_t mine = surplus(&view->share[view->self], level);
	const uint64_t free = view->budget > sum ? view->budget - sum : 0;
	uint64_t lack = 0, all = 0, give;
	double part;
	size_t i;

	for (i = 0; i < view->count; i++) {
		lack += lacks(&view->share[i], level);
		all += surplus(&view->share[i], level);
	}
	if (!mine || lack <= free)
		return 0;
	lack -= free;
	if (lack >= all)
		return mine;
	/*
	 * the part of the lacking units that this process gives, in proportion;
	 * rounded up, so that the sum of all parts suffices
	 */
	part = (double) lack * (double) mine / (double) all;
	give = (uint64_t) part;
	give += (double) give < part;
	return give < mine ? give : mine;
}

bool mrrc_node_others_want(const struct mrrc_node_view *view)
{
	size_t i;

	for (i = 0; i < view->count; i++) {
		if (i != view->self && hungry(&view->share[i]))
			return true;
	}
	return false;
}

/* ---- helper threads ---- */

/* Does the process at @i get a helper before the caller's process? */
static bool before(const struct mrrc_node_view *view, size_t i)
{
	const struct mrrc_node_share *self = &view->share[view->self];
	const struct mrrc_node_share *share = &view->share[i];

	return share->used > self->used ||
	       (share->used == self->used && i < view->self);
}

bool mrrc_node_helper_may(const struct mrrc_node_view *view,
			  enum mrrc_node_helpers policy,
			  const struct mrrc_node_cores *cores, uint64_t *move)
{
	const struct mrrc_node_share *self = &view->share[view->self];
	uint64_t idle, helpers = 0, rank = 0, near = 0, each;
	size_t i;

	for (i = 0; i < view->count; i++) {
		if (i != view->self && !(view->share[i].cpus & self->cpus))
			continue;
		near++;
		if (!view->share[i].helper)
			continue;
		helpers++;
		rank += i != view->self && before(view, i);
	}
	*move = 0;
	idle = cores->allowed > near ? cores->allowed - near : 0;
	if (policy == MRRC_NODE_AUTO && cores->idle >= 0)
		idle = (uint64_t) (cores->idle + IDLE_PART);
	if (policy != MRRC_NODE_AGGRESSIVE)
		return self->helper && rank < idle;
	/* number of helper threads that take turns on one core */
	each = idle ? (helpers + idle - 1) / idle : helpers;
	if (each > 1 || !idle)
		*move = each * (cores->slice + MRRC_NODE_SWITCH);
	return self->helper;
}
