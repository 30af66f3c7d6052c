/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is remembered of regions that have left: how often they were used, and
 * when last. A table of fixed size where the oldest of a few gives way.
 *
 * Not thread-safe. Only init allocates.
 */
#ifndef MRRC_GHOST_H
#define MRRC_GHOST_H

#include "core/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mrrc_ghost {
	uint64_t key;		/* 0: none */
	uint64_t last;		/* of its last use */
	uint32_t uses;
};

struct mrrc_ghosts {
	struct mrrc_ghost *entry;
	size_t sets;		/* a power of two */
};

/* For about so many, a power of two of at least 4. -ENOMEM. */
int mrrc_ghosts_init(struct mrrc_ghosts *ghosts, size_t entries);
void mrrc_ghosts_fini(struct mrrc_ghosts *ghosts);

/* Any key but 0. A later one of the same key replaces it. */
void mrrc_ghosts_put(struct mrrc_ghosts *ghosts,
		     const struct mrrc_ghost *ghost);

/* Forget it; false if it was not remembered. */
bool mrrc_ghosts_take(struct mrrc_ghosts *ghosts, uint64_t key,
		      struct mrrc_ghost *ghost);

#endif /* MRRC_GHOST_H */
