/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ghost entries of regions that have left (ghost.h).
 */
#include "config.h"
#include "core/policy/ghost.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WAYS 4

_Static_assert(MRRC_GHOSTS_MAX / WAYS <= UINT16_MAX, "a set's place");

static void ghosts_clear(struct mrrc_ghosts *ghosts, uint16_t place)
{
	memset(&ghosts->entry[(size_t) place * WAYS], 0,
	       WAYS * sizeof(*ghosts->entry));
}

/* Not calloc(), which would clear memory that malloc had given out before. */
int mrrc_ghosts_init(struct mrrc_ghosts *ghosts, size_t entries)
{
	const size_t sets = entries / WAYS;

	ghosts->entry = malloc((entries + WAYS) * sizeof(*ghosts->entry) +
			       sets * sizeof(*ghosts->place));
	if (!ghosts->entry)
		return -ENOMEM;
	ghosts_clear(ghosts, 0);
	ghosts->place = (uint16_t *) (ghosts->entry + entries + WAYS);
	memset(ghosts->place, 0, sets * sizeof(*ghosts->place));
	ghosts->sets = sets;
	ghosts->used = 0;
	return 0;
}

void mrrc_ghosts_fini(struct mrrc_ghosts *ghosts)
{
	free(ghosts->entry);
}

static uint16_t *ghosts_place(const struct mrrc_ghosts *ghosts, uint64_t key)
{
	return &ghosts->place[mrrc_hash(key) & (ghosts->sets - 1)];
}

static struct mrrc_ghost *ghosts_set(const struct mrrc_ghosts *ghosts,
				     uint64_t key)
{
	return &ghosts->entry[(size_t) *ghosts_place(ghosts, key) * WAYS];
}

void mrrc_ghosts_put(struct mrrc_ghosts *ghosts, const struct mrrc_ghost *ghost)
{
	uint16_t *place = ghosts_place(ghosts, ghost->key);
	struct mrrc_ghost *set, *oldest;
	int i;

	if (!*place) {
		*place = ++ghosts->used;
		ghosts_clear(ghosts, *place);
	}
	set = oldest = ghosts_set(ghosts, ghost->key);
	/* an empty entry has the last use 0 */
	for (i = 0; i < WAYS; i++) {
		if (set[i].key == ghost->key) {
			oldest = &set[i];
			break;
		}
		if (set[i].last < oldest->last)
			oldest = &set[i];
	}
	*oldest = *ghost;
}

bool mrrc_ghosts_take(struct mrrc_ghosts *ghosts, uint64_t key,
		      struct mrrc_ghost *ghost)
{
	struct mrrc_ghost *set = ghosts_set(ghosts, key);
	int i;

	for (i = 0; i < WAYS; i++) {
		if (set[i].key == key) {
			*ghost = set[i];
			set[i] = (struct mrrc_ghost){ 0 };
			return true;
		}
	}
	return false;
}
