/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Random numbers of a test. The numbers differ in each run, unless
 * MRRC_TEST_SEED sets the seed; the seed is printed.
 */
#ifndef MRRC_TEST_SEED_H
#define MRRC_TEST_SEED_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/text/hash.h"

struct seed {
	uint64_t state;
};

/* @i is the number of a loop test, so that each test gets other numbers. */
static inline struct seed seed_init(const char *test, unsigned i)
{
	const char *given = getenv("MRRC_TEST_SEED");
	const uint64_t seed = given ? strtoull(given, NULL, 0) :
				      (uint64_t) getpid() * 1000003;

	fprintf(stderr, "%s %u: MRRC_TEST_SEED=%llu\n", test, i,
		(unsigned long long) seed);
	return (struct seed){ mrrc_hash(seed + i) };
}

static inline uint64_t seed_below(struct seed *seed, uint64_t n)
{
	seed->state += UINT64_C(0x9e3779b97f4a7c15);
	return mrrc_hash(seed->state) % n;
}

#endif /* MRRC_TEST_SEED_H */
