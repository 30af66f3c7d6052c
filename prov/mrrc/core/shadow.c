/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A policy played on a sample (shadow.h).
 */
#include "config.h"
#include "core/shadow.h"

#include <errno.h>
#include <stdlib.h>

#define OBJECTS	4096		/* and as many buckets */
#define GHOSTS	2048
#define FADE	.998		/* of what was spent, a request */
#define SAVED	.1		/* of an overhead, where batches save */

static int mrrc_shadow_cmp(struct mrrc_shadow_object *a,
			   struct mrrc_shadow_object *b)
{
	if (a->worth != b->worth)
		return a->worth < b->worth ? -1 : 1;
	return (a->key > b->key) - (a->key < b->key);
}

#define MRRC_UNUSED_STATIC __attribute__((unused)) static
RB_PROTOTYPE_INTERNAL(mrrc_shadow_tree, mrrc_shadow_object, node,
		      mrrc_shadow_cmp, MRRC_UNUSED_STATIC)
RB_GENERATE_INTERNAL(mrrc_shadow_tree, mrrc_shadow_object, node,
		     mrrc_shadow_cmp, MRRC_UNUSED_STATIC)

int mrrc_shadow_init(struct mrrc_shadow *shadow, size_t max_pages,
		     const struct mrrc_cost *cost,
		     const struct mrrc_worth *learned)
{
	size_t i;

	*shadow = (struct mrrc_shadow) {
		.cost = cost,
		.learned = learned,
		.max_pages = max_pages,
	};
	RB_INIT(&shadow->tree);
	SLIST_INIT(&shadow->unused);
	shadow->object = calloc(OBJECTS, sizeof(*shadow->object));
	if (!shadow->object)
		return -ENOMEM;
	shadow->bucket = calloc(OBJECTS, sizeof(*shadow->bucket));
	if (!shadow->bucket)
		goto err_object;
	if (mrrc_ghosts_init(&shadow->ghosts, GHOSTS))
		goto err_bucket;
	for (i = 0; i < OBJECTS; i++)
		SLIST_INSERT_HEAD(&shadow->unused, &shadow->object[i], link);
	return 0;

err_bucket:
	free(shadow->bucket);
err_object:
	free(shadow->object);
	return -ENOMEM;
}

void mrrc_shadow_fini(struct mrrc_shadow *shadow)
{
	mrrc_ghosts_fini(&shadow->ghosts);
	free(shadow->bucket);
	free(shadow->object);
}

static struct mrrc_shadow_list *mrrc_shadow_bucket(struct mrrc_shadow *shadow,
						   uint64_t key)
{
	return &shadow->bucket[mrrc_hash(key) / 64 % OBJECTS];
}

/* By its worth as of now. */
static void mrrc_shadow_place(struct mrrc_shadow *shadow,
			      struct mrrc_shadow_object *object)
{
	if (shadow->learned)
		object->worth = shadow->floor + mrrc_worth(
			shadow->learned, object->uses, object->here,
			mrrc_worth_weight(shadow->cost, object->pages *
					  shadow->cost->page));
	else
		object->worth = (double) ++shadow->turn;
	RB_INSERT(mrrc_shadow_tree, &shadow->tree, object);
}

/* It is deregistered, for @overhead of a call. */
static void mrrc_shadow_drop(struct mrrc_shadow *shadow,
			     struct mrrc_shadow_object *object,
			     double overhead)
{
	RB_REMOVE(mrrc_shadow_tree, &shadow->tree, object);
	SLIST_REMOVE(mrrc_shadow_bucket(shadow, object->key), object,
		     mrrc_shadow_object, link);
	SLIST_INSERT_HEAD(&shadow->unused, object, link);
	mrrc_ghosts_put(&shadow->ghosts, &(struct mrrc_ghost) {
		.key = object->key,
		.last = ++shadow->turn,
		.uses = object->uses,
	});
	shadow->pages -= object->pages;
	shadow->spent += shadow->cost->dereg_page * object->pages +
			 shadow->cost->dereg * overhead;
}

static void mrrc_shadow_room(struct mrrc_shadow *shadow, size_t pages)
{
	struct mrrc_shadow_object *object;

	while (shadow->pages + pages > shadow->max_pages ||
	       SLIST_EMPTY(&shadow->unused)) {
		object = RB_MIN(mrrc_shadow_tree, &shadow->tree);
		if (shadow->learned && object->worth > shadow->floor)
			shadow->floor = object->worth;
		mrrc_shadow_drop(shadow, object,
				 shadow->cost->batch ? SAVED : 1);
	}
}

static void mrrc_shadow_insert(struct mrrc_shadow *shadow, uint64_t key,
			       size_t pages)
{
	struct mrrc_shadow_object *object;
	struct mrrc_ghost ghost;

	mrrc_shadow_room(shadow, pages);
	object = SLIST_FIRST(&shadow->unused);
	SLIST_REMOVE_HEAD(&shadow->unused, link);
	*object = (struct mrrc_shadow_object) {
		.key = key, .pages = pages, .uses = 1,
	};
	if (mrrc_ghosts_take(&shadow->ghosts, key, &ghost) &&
	    ghost.uses < MRRC_WORTH_USES)
		object->uses = ghost.uses + 1;
	SLIST_INSERT_HEAD(mrrc_shadow_bucket(shadow, key), object, link);
	mrrc_shadow_place(shadow, object);
	shadow->pages += pages;
	shadow->spent += shadow->cost->reg_page * pages + shadow->cost->reg;
}

void mrrc_shadow_request(struct mrrc_shadow *shadow, uint64_t key,
			 size_t pages)
{
	struct mrrc_shadow_object *object;

	shadow->spent *= FADE;
	SLIST_FOREACH(object, mrrc_shadow_bucket(shadow, key), link) {
		if (object->key == key)
			break;
	}
	if (object && object->pages >= pages) {
		RB_REMOVE(mrrc_shadow_tree, &shadow->tree, object);
		if (object->uses < MRRC_WORTH_USES)
			object->uses++;
		object->here++;
		mrrc_shadow_place(shadow, object);
		return;
	}
	if (object)
		mrrc_shadow_drop(shadow, object, 1);
	mrrc_shadow_insert(shadow, key, pages);
}
