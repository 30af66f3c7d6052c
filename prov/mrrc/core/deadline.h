/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Things to do by a time, in the order of their times: the registration queue
 * of li2011, section 3.2.
 *
 * One thread does them, one after the other, and each takes a while. So times
 * are spaced: where mrrc_deadlines_fit() has chosen them, each can be begun
 * when the one before is done, and is done in time.
 *
 * Not thread-safe; allocates nothing, as the owner embeds what it queues.
 */
#ifndef MRRC_DEADLINE_H
#define MRRC_DEADLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <bsd/sys/tree.h>

struct mrrc_deadline {
	RB_ENTRY(mrrc_deadline) node;
	uint64_t due;  /* by which it is to be done */
	uint64_t cost; /* how long it takes */
};

struct mrrc_deadlines {
	RB_HEAD(mrrc_deadline_tree, mrrc_deadline) tree;
	size_t count;
};

void mrrc_deadlines_init(struct mrrc_deadlines *queue);

/* One with `due` and `cost` set, that is in no queue. */
void mrrc_deadlines_add(struct mrrc_deadlines *queue,
			struct mrrc_deadline *deadline);
void mrrc_deadlines_remove(struct mrrc_deadlines *queue,
			   struct mrrc_deadline *deadline);

/* The one that is due first; NULL: none. */
struct mrrc_deadline *mrrc_deadlines_first(const struct mrrc_deadlines *queue);

/* The one that is due after it; NULL: none. */
struct mrrc_deadline *mrrc_deadlines_next(struct mrrc_deadline *deadline);

/*
 * The latest time up to @due by which something of that cost can be done
 * beside what is queued: no less than its cost after the time of the one
 * before, and no later than the next one has to begin. 0: there is none.
 */
uint64_t mrrc_deadlines_fit(const struct mrrc_deadlines *queue, uint64_t due,
			    uint64_t cost);

#endif /* MRRC_DEADLINE_H */
