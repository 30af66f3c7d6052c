/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is remembered of regions that have left: how often they were used, and
 * when last. A table of fixed size where the oldest of a few gives way.
 *
 * Not thread-safe. Only init allocates.
 */
#ifndef MRRC_GHOST_H
#define MRRC_GHOST_H

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

/* Every bit of the key moves every other: splitmix64's finaliser. */
static inline uint64_t mrrc_hash(uint64_t key)
{
	key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9;
	key = (key ^ (key >> 27)) * 0x94d049bb133111eb;
	return key ^ (key >> 31);
}

#endif /* MRRC_GHOST_H */
