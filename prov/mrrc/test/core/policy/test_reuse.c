/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core/policy/ghost and core/policy/reuse, from which the policy gdl learns.
 * test_shadow.c tests the shadow cache that gdl is compared with.
 */
#include "config.h"
#include "test/case.h"

#include <malloc.h>
#include <math.h>

#include "core/policy/ghost.h"
#include "core/policy/reuse.h"

#define FILL   0x10 /* value of each byte that malloc gives out */
#define FILLED 0x1010101010101010

TEST_CASE(reuse, NULL, NULL);

/* ---- ghosts ---- */

TEST(test_ghosts)
{
	struct mrrc_ghost ghost = { .key = 99 };
	struct mrrc_ghosts ghosts;
	int i, left = 0;

	ck_assert_int_eq(mrrc_ghosts_init(&ghosts, 4), 0);
	ck_assert(!mrrc_ghosts_take(&ghosts, 5, &ghost));
	ck_assert_uint_eq(ghost.key, 99);
	mrrc_ghosts_put(&ghosts, &(struct mrrc_ghost){ 5, 1, 7 });
	mrrc_ghosts_put(&ghosts, &(struct mrrc_ghost){ 5, 2, 8 });
	ck_assert(mrrc_ghosts_take(&ghosts, 5, &ghost));
	ck_assert_uint_eq(ghost.uses, 8);
	ck_assert(!mrrc_ghosts_take(&ghosts, 5, &ghost));
	/* A set holds four ghosts: the oldest ones leave. */
	for (i = 1; i <= 6; i++)
		mrrc_ghosts_put(&ghosts, &(struct mrrc_ghost){ i, 10 - i, 1 });
	for (i = 1; i <= 6; i++)
		left += mrrc_ghosts_take(&ghosts, i, &ghost) ? 1 << i : 0;
	ck_assert_int_eq(left, 1 << 1 | 1 << 2 | 1 << 3 | 1 << 6);
	mrrc_ghosts_fini(&ghosts);
}

#define ENTRIES 64u
#define KEYS	300u

/* A plain table, which is cleared at first, and has a place for each set. */
static struct mrrc_ghost table[ENTRIES];

static struct mrrc_ghost *table_find(uint64_t key)
{
	struct mrrc_ghost *set =
		&table[(mrrc_hash(key) & (ENTRIES / 4 - 1)) * 4];
	int i;

	for (i = 0; i < 4 && set[i].key != key; i++)
		;
	return i < 4 ? &set[i] : NULL;
}

static void table_put(const struct mrrc_ghost *ghost)
{
	struct mrrc_ghost *at = table_find(ghost->key), *set;
	int i;

	if (!at) {
		set = at =
			&table[(mrrc_hash(ghost->key) & (ENTRIES / 4 - 1)) * 4];
		for (i = 1; i < 4; i++)
			at = set[i].last < at->last ? &set[i] : at;
	}
	*at = *ghost;
}

/* The ghosts are in memory that malloc gave out before, with other content. */
TEST(test_ghosts_model)
{
	struct mrrc_ghost ghost, *at;
	struct mrrc_ghosts ghosts;
	uint64_t seed = 1, key;
	int i;

	memset(table, 0, sizeof(table));
	memset(&ghosts, 0xff, sizeof(ghosts));
	mallopt(M_PERTURB, FILL ^ 0xff);
	ck_assert_int_eq(mrrc_ghosts_init(&ghosts, ENTRIES), 0);
	mallopt(M_PERTURB, 0);
	for (key = 1; key < KEYS; key++)
		ck_assert(!mrrc_ghosts_take(&ghosts, key, &ghost));
	ck_assert(!mrrc_ghosts_take(&ghosts, FILLED, &ghost));
	for (i = 0; i < 20000; i++) {
		seed = seed * 6364136223846793005 + 1442695040888963407;
		key = (seed >> 33) % KEYS ? (seed >> 33) % KEYS : FILLED;
		if (seed >> 60) {
			ghost = (struct mrrc_ghost){ key, i, i % 255 };
			mrrc_ghosts_put(&ghosts, &ghost);
			table_put(&ghost);
			continue;
		}
		at = table_find(key);
		ck_assert_int_eq(mrrc_ghosts_take(&ghosts, key, &ghost), !!at);
		if (!at)
			continue;
		ck_assert_uint_eq(ghost.key, at->key);
		ck_assert_uint_eq(ghost.last, at->last);
		ck_assert_uint_eq(ghost.uses, at->uses);
		*at = (struct mrrc_ghost){ 0 };
	}
	mrrc_ghosts_fini(&ghosts);
}
