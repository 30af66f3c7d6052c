/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions that have left (ghost.h).
 */
#include "config.h"
#include "core/ghost.h"

#include <errno.h>
#include <stdlib.h>

#define WAYS	4

int mrrc_ghosts_init(struct mrrc_ghosts *ghosts, size_t entries)
{
	ghosts->entry = calloc(entries, sizeof(*ghosts->entry));
	if (!ghosts->entry)
		return -ENOMEM;
	ghosts->sets = entries / WAYS;
	return 0;
}

void mrrc_ghosts_fini(struct mrrc_ghosts *ghosts)
{
	free(ghosts->entry);
}

static struct mrrc_ghost *mrrc_ghosts_set(const struct mrrc_ghosts *ghosts,
					  uint64_t key)
{
	return &ghosts->entry[(mrrc_hash(key) & (ghosts->sets - 1)) * WAYS];
}

void mrrc_ghosts_put(struct mrrc_ghosts *ghosts,
		     const struct mrrc_ghost *ghost)
{
	struct mrrc_ghost *set = mrrc_ghosts_set(ghosts, ghost->key);
	struct mrrc_ghost *oldest = set;
	int i;

	/* an empty one was last used at 0 */
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
	struct mrrc_ghost *set = mrrc_ghosts_set(ghosts, key);
	int i;

	for (i = 0; i < WAYS; i++) {
		if (set[i].key == key) {
			*ghost = set[i];
			set[i] = (struct mrrc_ghost) { 0 };
			return true;
		}
	}
	return false;
}
