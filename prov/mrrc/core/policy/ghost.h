/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ghost entries record how often regions that have left were used, and when
 * these regions were last used. The table has a fixed size; in a full set the
 * oldest entry is replaced.
 *
 * Not thread-safe. Only init allocates. Sets are laid out in the order in which
 * they are first used, so memory is touched only as regions leave.
 */
#ifndef MRRC_GHOST_H
#define MRRC_GHOST_H

#include "core/text/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mrrc_ghost {
	uint64_t key;  /* 0: empty entry */
	uint64_t last; /* time of the region's last use */
	uint32_t uses;
};

struct mrrc_ghosts {
	/*
	 * sets by place; place 0 is an empty set, places from `used` on are not
	 * initialised
	 */
	struct mrrc_ghost *entry;
	uint16_t *place; /* place of each set; 0: not used yet */
	size_t sets;	 /* a power of two */
	uint16_t used;	 /* number of sets that have a place */
};

/*
 * @entries: the number of entries, a power of two from 4 to MRRC_GHOSTS_MAX.
 * Returns 0 or -ENOMEM.
 */
#define MRRC_GHOSTS_MAX (1 << 17)
int mrrc_ghosts_init(struct mrrc_ghosts *ghosts, size_t entries);
void mrrc_ghosts_fini(struct mrrc_ghosts *ghosts);

/* Adds an entry, whose key is not 0; replaces an entry of the same key. */
void mrrc_ghosts_put(struct mrrc_ghosts *ghosts,
		     const struct mrrc_ghost *ghost);

/*
 * Copies the key's entry to *ghost and removes it; false if the key has none.
 */
bool mrrc_ghosts_take(struct mrrc_ghosts *ghosts, uint64_t key,
		      struct mrrc_ghost *ghost);

#endif /* MRRC_GHOST_H */
