/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The hash with a secret, against the published algorithm; and its purpose:
 * keys that a peer makes do not lengthen the chains of a map.
 */
#include "config.h"
#include "test/case.h"

#include "core/cw/cw_map.h"

#define KEYS 4096

static const struct mrrc_secret secret = { { 0x0706050403020100,
					     0x0f0e0d0c0b0a0908 } };

TEST_CASE(hash, NULL, NULL);

/*
 * The hash is SipHash-1-3 of the bytes 0 to 7; the value without a secret is
 * from Python 3.11.
 */
TEST(keyed_is_siphash)
{
	const struct mrrc_secret none = { { 0, 0 } };
	const uint64_t bytes = 0x0706050403020100;

	ck_assert_uint_eq(mrrc_hash_keyed(&secret, bytes), 0x369095118d299a8e);
	ck_assert_uint_eq(mrrc_hash_keyed(&none, bytes), 0xead411e67ebe2eea);
}

static uint64_t unshift(uint64_t word, unsigned bits)
{
	uint64_t back = word;
	unsigned i;

	for (i = bits; i < 64; i += bits)
		back = word ^ back >> bits;
	return back;
}

/*
 * Inverts an odd number modulo 2^64; each turn doubles the number of correct
 * bits.
 */
static uint64_t inverse(uint64_t odd)
{
	uint64_t back = odd;
	unsigned i;

	for (i = 0; i < 5; i++)
		back *= 2 - odd * back;
	return back;
}

/* Returns the key whose mrrc_hash() is @hash. */
static uint64_t unhash(uint64_t hash)
{
	hash = unshift(hash, 31) * inverse(0x94d049bb133111eb);
	hash = unshift(hash, 27) * inverse(0xbf58476d1ce4e5b9);
	return unshift(hash, 30);
}

static unsigned longest_chain(const struct mrrc_cw_map *map)
{
	const struct mrrc_cw_node *node;
	unsigned longest = 0, len;
	size_t i;

	for (i = 0; i <= map->mask; i++) {
		len = 0;
		for (node = map->bucket[i]; node; node = node->chain)
			len++;
		if (len > longest)
			longest = len;
	}
	return longest;
}

/* With mrrc_hash(), all these keys would be in one chain. */
TEST(made_keys_share_no_chain)
{
	static struct mrrc_cw_node nodes[KEYS];
	struct mrrc_cw_map map;
	uint64_t i, key;

	mrrc_cw_map_init(&map, &secret);
	for (i = 0; i < KEYS; i++) {
		key = unhash(i << 32);
		ck_assert_uint_eq(mrrc_hash(key), i << 32);
		mrrc_cw_map_add(&map, &nodes[i], key);
	}
	ck_assert(mrrc_cw_map_valid(&map));
	ck_assert_uint_le(longest_chain(&map), 16);
	mrrc_cw_map_fini(&map);
}
