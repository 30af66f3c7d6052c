/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Work items by their deadlines (deadline.h). */
#include "config.h"
#include "core/helper/deadline.h"

#include <assert.h>

/*
 * Items with equal times are ordered by address, which is arbitrary but fixed.
 */
static int mrrc_deadline_cmp(struct mrrc_deadline *a, struct mrrc_deadline *b)
{
	if (a->due != b->due)
		return a->due < b->due ? -1 : 1;
	return ((uintptr_t) a > (uintptr_t) b) -
	       ((uintptr_t) a < (uintptr_t) b);
}

/* RB_GENERATE_STATIC of libbsd 0.11 wants a macro that it does not define. */
#define MRRC_UNUSED_STATIC __attribute__((unused)) static
RB_PROTOTYPE_INTERNAL(mrrc_deadline_tree, mrrc_deadline, node,
		      mrrc_deadline_cmp, MRRC_UNUSED_STATIC)
RB_GENERATE_INTERNAL(mrrc_deadline_tree, mrrc_deadline, node, mrrc_deadline_cmp,
		     MRRC_UNUSED_STATIC)

void mrrc_deadlines_init(struct mrrc_deadlines *queue)
{
	RB_INIT(&queue->tree);
	queue->count = 0;
}

void mrrc_deadlines_add(struct mrrc_deadlines *queue,
			struct mrrc_deadline *deadline)
{
	struct mrrc_deadline *other;

	other = RB_INSERT(mrrc_deadline_tree, &queue->tree, deadline);
	assert(!other);
	(void) other;
	queue->count++;
}

void mrrc_deadlines_remove(struct mrrc_deadlines *queue,
			   struct mrrc_deadline *deadline)
{
	RB_REMOVE(mrrc_deadline_tree, &queue->tree, deadline);
	queue->count--;
}

struct mrrc_deadline *mrrc_deadlines_first(const struct mrrc_deadlines *queue)
{
	/* RB_MIN takes a mutable head, yet only reads it. */
	return RB_MIN(mrrc_deadline_tree,
		      (struct mrrc_deadline_tree *) &queue->tree);
}

struct mrrc_deadline *mrrc_deadlines_next(struct mrrc_deadline *deadline)
{
	return RB_NEXT(mrrc_deadline_tree, NULL, deadline);
}

/* The first item that is due later than @due, or NULL. */
static struct mrrc_deadline *
mrrc_deadlines_after(const struct mrrc_deadlines *queue, uint64_t due)
{
	struct mrrc_deadline *at = RB_ROOT(&queue->tree);
	struct mrrc_deadline *best = NULL;

	while (at) {
		if (at->due > due) {
			best = at;
			at = RB_LEFT(at, node);
		} else {
			at = RB_RIGHT(at, node);
		}
	}
	return best;
}

uint64_t mrrc_deadlines_fit(const struct mrrc_deadlines *queue, uint64_t due,
			    uint64_t cost)
{
	struct mrrc_deadline *next = mrrc_deadlines_after(queue, due);
	struct mrrc_deadline *before;

	for (;;) {
		if (next && next->due < next->cost)
			return 0;
		if (next && due > next->due - next->cost)
			due = next->due - next->cost;
		before = next ? RB_PREV(mrrc_deadline_tree, NULL, next) :
				RB_MAX(mrrc_deadline_tree,
				       (struct mrrc_deadline_tree *) &queue
					       ->tree);
		if (due < cost)
			return 0;
		if (!before || before->due <= due - cost)
			return due;
		next = before;
	}
}
