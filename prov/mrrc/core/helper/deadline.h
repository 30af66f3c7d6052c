/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Work items in the order of their deadlines: the registration queue of li2011,
 * section 3.2.
 *
 * One thread processes the items one after the other, and each item takes some
 * time. So deadlines are spaced: if mrrc_deadlines_fit() has chosen all
 * deadlines, each item can begin when the item before is finished, and finishes
 * in time.
 *
 * Not thread-safe; allocates nothing, as the owner embeds the items that it
 * queues.
 */
#ifndef MRRC_DEADLINE_H
#define MRRC_DEADLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <bsd/sys/tree.h>

struct mrrc_deadline {
	RB_ENTRY(mrrc_deadline) node;
	uint64_t due;  /* ns by which the item has to be finished */
	uint64_t cost; /* ns that the item takes */
};

struct mrrc_deadlines {
	RB_HEAD(mrrc_deadline_tree, mrrc_deadline) tree;
	size_t count;
};

void mrrc_deadlines_init(struct mrrc_deadlines *queue);

/* Adds an item with `due` and `cost` set, which is in no queue. */
void mrrc_deadlines_add(struct mrrc_deadlines *queue,
			struct mrrc_deadline *deadline);
void mrrc_deadlines_remove(struct mrrc_deadlines *queue,
			   struct mrrc_deadline *deadline);

/* The item that is due first, or NULL. */
struct mrrc_deadline *mrrc_deadlines_first(const struct mrrc_deadlines *queue);

/* The item that is due next after @deadline, or NULL. */
struct mrrc_deadline *mrrc_deadlines_next(struct mrrc_deadline *deadline);

/*
 * Returns the latest deadline up to @due for a further item of cost @cost: at
 * least @cost after the deadline of the item before, and no later than the
 * start of the next item. 0: there is no such deadline.
 */
uint64_t mrrc_deadlines_fit(const struct mrrc_deadlines *queue, uint64_t due,
			    uint64_t cost);

#endif /* MRRC_DEADLINE_H */
