/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Frequency of use beyond residence (history.h).
 */
#include "config.h"
#include "core/policy/history.h"

#include "core/text/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROWS	4
#define ROW_MIN 1024
#define ROW_MAX (64 * 1024) /* halving takes some microseconds */
#define PERIOD	10	    /* additions per entry, as in TinyLFU */

int mrrc_history_init(struct mrrc_history *history, size_t ranges)
{
	size_t entries = ROW_MIN;

	while (entries < ROW_MAX && entries / 2 < ranges)
		entries *= 2;
	/* not calloc, which clears memory that malloc had given out before */
	history->count = malloc(ROWS * entries);
	if (!history->count)
		return -ENOMEM;
	history->mask = entries - 1;
	history->added = 0;
	history->period = PERIOD * entries;
	history->used = false;
	return 0;
}

void mrrc_history_fini(struct mrrc_history *history)
{
	free(history->count);
}

/*
 * Returns the counter of a key in a row, found by bits of the hash, which each
 * row mixes differently.
 */
static uint8_t *history_at(const struct mrrc_history *history, uint64_t hash,
			   int row)
{
	const size_t place = ((hash >> 32) * (2 * row + 1) + hash) >> row;

	return history->count + row * (history->mask + 1) +
	       (place & history->mask);
}

unsigned mrrc_history_get(const struct mrrc_history *history, uint64_t key)
{
	const uint64_t hash = mrrc_hash(key);
	unsigned least = MRRC_HISTORY_MAX;
	unsigned count;
	int row;

	if (!history->used)
		return 0;
	for (row = 0; row < ROWS; row++) {
		count = *history_at(history, hash, row);
		if (count < least)
			least = count;
	}
	return least;
}

static void history_halve(struct mrrc_history *history)
{
	const size_t entries = ROWS * (history->mask + 1);
	size_t i;

	for (i = 0; i < entries; i++)
		history->count[i] /= 2;
	history->added = 0;
}

unsigned mrrc_history_add(struct mrrc_history *history, uint64_t key)
{
	const uint64_t hash = mrrc_hash(key);
	unsigned least;
	uint8_t *count;
	int row;

	if (!history->used) {
		memset(history->count, 0, ROWS * (history->mask + 1));
		history->used = true;
	}
	if (++history->added >= history->period)
		history_halve(history);
	least = mrrc_history_get(history, key);
	if (least == MRRC_HISTORY_MAX)
		return least;
	for (row = 0; row < ROWS; row++) {
		count = history_at(history, hash, row);
		if (*count == least)
			(*count)++;
	}
	return least + 1;
}

void mrrc_history_clear(struct mrrc_history *history, uint64_t key)
{
	const unsigned least = mrrc_history_get(history, key);
	const uint64_t hash = mrrc_hash(key);
	uint8_t *count;
	int row;

	if (!least)
		return;
	for (row = 0; row < ROWS; row++) {
		count = history_at(history, hash, row);
		/* larger counts belong to other keys */
		if (*count == least)
			*count = 0;
	}
}
