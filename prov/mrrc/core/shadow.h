/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A cache that is none: it plays a policy on a sample of the requests and
 * keeps the books of what that would cost, to tell which of two policies suits
 * a program. Requests are objects by their first page here; overlaps do not
 * count.
 *
 * Not thread-safe. Only init allocates.
 */
#ifndef MRRC_SHADOW_H
#define MRRC_SHADOW_H

#include "core/ghost.h"
#include "core/worth.h"

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

struct mrrc_shadow_object {
	uint64_t key;
	size_t pages;
	double worth;		/* the least goes */
	unsigned uses, here;
	RB_ENTRY(mrrc_shadow_object) node;
	SLIST_ENTRY(mrrc_shadow_object) link;	/* bucket, or unused */
};

RB_HEAD(mrrc_shadow_tree, mrrc_shadow_object);
SLIST_HEAD(mrrc_shadow_list, mrrc_shadow_object);

struct mrrc_shadow {
	const struct mrrc_cost *cost;
	const struct mrrc_worth *learned;	/* NULL: it plays LRU */
	struct mrrc_shadow_tree tree;		/* by worth */
	struct mrrc_shadow_object *object;
	struct mrrc_shadow_list unused;
	struct mrrc_shadow_list *bucket;
	struct mrrc_ghosts ghosts;
	double floor;		/* worth of the last that went */
	double spent;		/* ns, fading */
	uint64_t turn;
	size_t pages, max_pages;
};

/*
 * Of so many pages. @learned, owned by the caller, tells worth; NULL for an
 * LRU. -ENOMEM.
 */
int mrrc_shadow_init(struct mrrc_shadow *shadow, size_t max_pages,
		     const struct mrrc_cost *cost,
		     const struct mrrc_worth *learned);
void mrrc_shadow_fini(struct mrrc_shadow *shadow);

/* A request of at most max_pages; @key is not 0. */
void mrrc_shadow_request(struct mrrc_shadow *shadow, uint64_t key,
			 size_t pages);

#endif /* MRRC_SHADOW_H */
