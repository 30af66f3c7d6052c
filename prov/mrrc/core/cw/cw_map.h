/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queues by key: a chained hash table of the first node of each queue. Nodes
 * live in the caller's objects, so nothing here can fail; the table grows when
 * memory allows. Peers choose keys, but do not know the map's secret, so they
 * cannot choose keys that share a chain.
 *
 * Not thread-safe.
 */
#ifndef MRRC_CW_MAP_H
#define MRRC_CW_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/text/hash.h"

struct mrrc_cw_node {
	uint64_t key, hash;
	/* first node of the next key in the bucket */
	struct mrrc_cw_node *chain;
	struct mrrc_cw_node *next, *prev; /* nodes of the same key, as a ring */
	bool first;
};

#define MRRC_CW_MAP_SMALL 16

/* How keys are hashed, by one map or by several that have the same keys */
struct mrrc_cw_hash {
	struct mrrc_secret secret;
	bool keyed;		      /* hashed with the secret */
	uint64_t last_key, last_hash; /* the key that was hashed last */
};

struct mrrc_cw_map {
	struct mrrc_cw_node **bucket; /* small, or allocated */
	size_t mask;		      /* number of buckets, less 1 */
	size_t keys, nodes;
	struct mrrc_cw_hash own, *hash; /* own, or another map's */
	struct mrrc_cw_node *small[MRRC_CW_MAP_SMALL];
};

/* Initialises a map; a secret of NULL: no peer chooses the keys */
void mrrc_cw_map_init(struct mrrc_cw_map *map,
		      const struct mrrc_secret *secret);
/*
 * Initialises a map that hashes as another map does, so that a key is hashed
 * once for both. The other map must live as long as this map.
 */
void mrrc_cw_map_init_as(struct mrrc_cw_map *map, struct mrrc_cw_map *other);
/* Frees the table; the nodes belong to the caller. */
void mrrc_cw_map_fini(struct mrrc_cw_map *map);

/* The oldest node of this key, or NULL. */
struct mrrc_cw_node *mrrc_cw_map_first(const struct mrrc_cw_map *map,
				       uint64_t key);
void mrrc_cw_map_add(struct mrrc_cw_map *map, struct mrrc_cw_node *node,
		     uint64_t key);
/* Adds the node as the oldest node of its key. */
void mrrc_cw_map_add_first(struct mrrc_cw_map *map, struct mrrc_cw_node *node,
			   uint64_t key);
void mrrc_cw_map_remove(struct mrrc_cw_map *map, struct mrrc_cw_node *node);

bool mrrc_cw_map_valid(const struct mrrc_cw_map *map);

#endif /* MRRC_CW_MAP_H */
