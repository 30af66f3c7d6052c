/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How often a range was asked for lately, remembered after it has left: a
 * count-min sketch with conservative update (Estan, Varghese 2002) whose
 * counters are halved from time to time (TinyLFU: Einziger, Friedman, Manes
 * 2017). Without clears it never says less than the truth since the last
 * halving, rarely more.
 *
 * Not thread-safe. Only init allocates; the first addition clears the counters,
 * so memory is not touched before that.
 */
#ifndef MRRC_HISTORY_H
#define MRRC_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRRC_HISTORY_MAX 255 /* counts stop there */

struct mrrc_history {
	uint8_t *count; /* several rows; not set before `used` */
	size_t mask;	/* entries of a row, less one */
	size_t added;	/* since the last halving */
	size_t period;
	bool used; /* something was added */
};

/* For about @ranges different ranges. -ENOMEM. */
int mrrc_history_init(struct mrrc_history *history, size_t ranges);
void mrrc_history_fini(struct mrrc_history *history);

/* One more use of @key; returns how many there were with this one. */
unsigned mrrc_history_add(struct mrrc_history *history, uint64_t key);

unsigned mrrc_history_get(const struct mrrc_history *history, uint64_t key);

/* Forget a key; a few others may be forgotten, too. */
void mrrc_history_clear(struct mrrc_history *history, uint64_t key);

#endif /* MRRC_HISTORY_H */
