/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counts how often a range was requested lately, even if its region has left
 * since: a count-min sketch with conservative update (Estan, Varghese 2002)
 * whose counters are halved from time to time (TinyLFU: Einziger, Friedman,
 * Manes 2017). Unless keys are cleared, a count is never less than the true
 * count since the last halving, and rarely more.
 *
 * Not thread-safe. Only init allocates; the first addition clears the counters,
 * so memory is not touched before that.
 */
#ifndef MRRC_HISTORY_H
#define MRRC_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRRC_HISTORY_MAX 255 /* largest count */

struct mrrc_history {
	uint8_t *count; /* rows of counters; not set before `used` */
	size_t mask;	/* entries of a row, less one */
	size_t added;	/* additions since the last halving */
	size_t period;
	bool used; /* something was added */
};

/*
 * Initialises a history for about @ranges different ranges. Returns 0 or
 * -ENOMEM.
 */
int mrrc_history_init(struct mrrc_history *history, size_t ranges);
void mrrc_history_fini(struct mrrc_history *history);

/* Counts a use of @key; returns the number of uses, with this use. */
unsigned mrrc_history_add(struct mrrc_history *history, uint64_t key);

unsigned mrrc_history_get(const struct mrrc_history *history, uint64_t key);

/* Forgets a key; a few other keys may be forgotten, too. */
void mrrc_history_clear(struct mrrc_history *history, uint64_t key);

#endif /* MRRC_HISTORY_H */
