/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queues by key: see cw_map.h.
 */
#include "core/cw/cw_map.h"

#include <stdlib.h>
#include <string.h>

static uint64_t cw_hash_of(const struct mrrc_cw_hash *hash, uint64_t key)
{
	return hash->keyed ? mrrc_hash_keyed(&hash->secret, key) :
			     mrrc_hash(key);
}

/*
 * Keeps the last hash, since a key that was looked up is often added next, or
 * looked up again in another map.
 */
static uint64_t cw_hash(const struct mrrc_cw_map *map, uint64_t key)
{
	struct mrrc_cw_hash *hash = map->hash;

	if (key != hash->last_key) {
		hash->last_hash = cw_hash_of(hash, key);
		hash->last_key = key;
	}
	return hash->last_hash;
}

static void cw_map_empty(struct mrrc_cw_map *map)
{
	memset(map->small, 0, sizeof(map->small));
	map->bucket = map->small;
	map->mask = MRRC_CW_MAP_SMALL - 1;
	map->keys = map->nodes = 0;
}

void mrrc_cw_map_init(struct mrrc_cw_map *map, const struct mrrc_secret *secret)
{
	memset(map, 0, sizeof(*map));
	map->hash = &map->own;
	map->own.keyed = secret;
	if (secret)
		map->own.secret = *secret;
	map->own.last_hash = cw_hash_of(&map->own, 0);
	cw_map_empty(map);
}

void mrrc_cw_map_init_as(struct mrrc_cw_map *map, struct mrrc_cw_map *other)
{
	memset(map, 0, sizeof(*map));
	map->hash = other->hash;
	cw_map_empty(map);
}

void mrrc_cw_map_fini(struct mrrc_cw_map *map)
{
	if (map->bucket != map->small)
		free(map->bucket);
	cw_map_empty(map);
}

static struct mrrc_cw_node **cw_bucket(const struct mrrc_cw_map *map,
				       uint64_t hash)
{
	return &map->bucket[hash & map->mask];
}

/* The link to the first node of this key, or to the end of its chain. */
static struct mrrc_cw_node **cw_place(const struct mrrc_cw_map *map,
				      uint64_t key, uint64_t hash)
{
	struct mrrc_cw_node **place = cw_bucket(map, hash);

	while (*place && (*place)->key != key)
		place = &(*place)->chain;
	return place;
}

struct mrrc_cw_node *mrrc_cw_map_first(const struct mrrc_cw_map *map,
				       uint64_t key)
{
	return map->keys ? *cw_place(map, key, cw_hash(map, key)) : NULL;
}

/*
 * Keeps one key per bucket on average; if memory is short, the chains get
 * longer instead.
 */
static void cw_map_grow(struct mrrc_cw_map *map)
{
	size_t old = map->mask + 1, i;
	struct mrrc_cw_node **from = map->bucket, **to, *node, *next;

	if (map->keys < old || old > SIZE_MAX / (2 * sizeof(*to)))
		return;
	to = calloc(2 * old, sizeof(*to));
	if (!to)
		return;
	map->bucket = to;
	map->mask = 2 * old - 1;
	for (i = 0; i < old; i++) {
		for (node = from[i]; node; node = next) {
			next = node->chain;
			to = cw_bucket(map, node->hash);
			node->chain = *to;
			*to = node;
		}
	}
	if (from != map->small)
		free(from);
}

/*
 * The place after the last node of a key's ring, where the first node follows.
 */
static struct mrrc_cw_node **
cw_map_link(struct mrrc_cw_map *map, struct mrrc_cw_node *node, uint64_t key)
{
	struct mrrc_cw_node **place, *first;

	cw_map_grow(map);
	node->key = key;
	node->hash = cw_hash(map, key);
	place = cw_place(map, key, node->hash);
	first = *place;
	node->first = !first;
	map->nodes++;
	if (!first) {
		node->next = node->prev = node;
		node->chain = NULL;
		*place = node;
		map->keys++;
		return place;
	}
	node->next = first;
	node->prev = first->prev;
	first->prev->next = node;
	first->prev = node;
	return place;
}

void mrrc_cw_map_add(struct mrrc_cw_map *map, struct mrrc_cw_node *node,
		     uint64_t key)
{
	cw_map_link(map, node, key);
}

static void cw_map_make_first(struct mrrc_cw_node **place,
			      struct mrrc_cw_node *node)
{
	struct mrrc_cw_node *was = *place;

	node->chain = was->chain;
	was->first = false;
	node->first = true;
	*place = node;
}

void mrrc_cw_map_add_first(struct mrrc_cw_map *map, struct mrrc_cw_node *node,
			   uint64_t key)
{
	struct mrrc_cw_node **place = cw_map_link(map, node, key);

	if (*place != node)
		cw_map_make_first(place, node);
}

void mrrc_cw_map_remove(struct mrrc_cw_map *map, struct mrrc_cw_node *node)
{
	struct mrrc_cw_node **place;

	map->nodes--;
	if (node->first) {
		place = cw_place(map, node->key, node->hash);
		if (node->next == node) {
			*place = node->chain;
			map->keys--;
		} else {
			cw_map_make_first(place, node->next);
		}
	}
	node->prev->next = node->next;
	node->next->prev = node->prev;
	node->first = false;
}

bool mrrc_cw_map_valid(const struct mrrc_cw_map *map)
{
	const struct mrrc_cw_node *first, *node;
	size_t i, keys = 0, nodes = 0;

	for (i = 0; i <= map->mask; i++) {
		for (first = map->bucket[i]; first; first = first->chain) {
			if (!first->first ||
			    first->hash != cw_hash_of(map->hash, first->key) ||
			    cw_bucket(map, first->hash) != &map->bucket[i])
				return false;
			keys++;
			node = first;
			do {
				if (node->key != first->key ||
				    node->next->prev != node ||
				    node->first != (node == first))
					return false;
				nodes++;
				node = node->next;
			} while (node != first);
		}
	}
	return keys == map->keys && nodes == map->nodes;
}
