/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests the simulation of libfabric's cache: requests calculated by hand, and
 * random requests compared with a model that has the same rules but no tree.
 */
#include "config.h"
#include "test/case.h"
#include "test/seed.h"

#include "sim/libfabric.h"

TEST_CASE(libfabric, NULL, NULL);

static struct sim_lf lf;
static unsigned gone; /* regions deregistered */

static void count_gone(void *arg, const struct sim_lf_region *region)
{
	ck_assert_ptr_eq(arg, &lf);
	ck_assert_uint_le(region->first, region->last);
	gone++;
}

static void begin(size_t max_count, uint64_t max_bytes)
{
	sim_lf_init(&lf, max_count, max_bytes);
	lf.dereg = count_gone;
	lf.arg = &lf;
	gone = 0;
}

static bool hits(uint64_t addr, uint64_t len)
{
	const struct sim_lf_region *region;
	bool hit;

	ck_assert_int_eq(sim_lf_request(&lf, addr, len, &hit, &region), 0);
	ck_assert_uint_le(region->first, addr);
	ck_assert_uint_ge(region->last, addr + len - 1);
	ck_assert(sim_lf_valid(&lf));
	return hit;
}

/* Regions that overlap in part both stay. */
TEST(test_overlap)
{
	begin(9, SIZE_MAX);
	ck_assert(!hits(100, 50));
	ck_assert(!hits(120, 50));
	ck_assert(!hits(150, 50));
	ck_assert_uint_eq(lf.count, 3);
	ck_assert(hits(105, 40));
	ck_assert(!hits(110, 70)); /* contains only the second region */
	ck_assert_uint_eq(lf.count, 3);
	ck_assert(!hits(100, 100)); /* contains all regions */
	ck_assert_uint_eq(lf.count, 1);
	sim_lf_fini(&lf);
}

/* Regions taken from the cache are registered until the next request. */
TEST(test_dead)
{
	begin(9, SIZE_MAX);
	hits(100, 10);
	hits(100, 20);
	ck_assert_uint_eq(gone, 0);
	hits(100, 20);
	ck_assert_uint_eq(gone, 1);
	sim_lf_fini(&lf);
	ck_assert_uint_eq(gone, 1);
}

/* A full cache drops its oldest region before each lookup. */
TEST(test_full)
{
	begin(2, SIZE_MAX);
	hits(100, 10);
	hits(200, 10);
	ck_assert_uint_eq(gone, 0);
	ck_assert(!hits(100, 10));
	ck_assert_uint_eq(gone, 1);
	ck_assert_uint_eq(lf.evictions, 1);
	ck_assert(hits(100, 10));
	ck_assert_uint_eq(lf.count, 1);
	sim_lf_fini(&lf);
}

/* ---- a model without a tree ---- */

#define MODEL_MAX 64

struct model_region {
	uint64_t first, last;
	unsigned used; /* time of last use */
};

static struct {
	struct model_region region[MODEL_MAX];
	unsigned count, now, dead, gone;
} model;

static uint64_t model_bytes(void)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < model.count; i++)
		sum += model.region[i].last + 1 - model.region[i].first;
	return sum;
}

static void model_drop(unsigned i)
{
	model.region[i] = model.region[--model.count];
	model.dead++;
}

static void model_flush(size_t max_count, uint64_t max_bytes)
{
	unsigned i, oldest;

	while (model.count &&
	       (model.count >= max_count || model_bytes() >= max_bytes)) {
		for (i = oldest = 0; i < model.count; i++) {
			if (model.region[i].used < model.region[oldest].used)
				oldest = i;
		}
		model_drop(oldest);
	}
	model.gone += model.dead;
	model.dead = 0;
}

/* @served: the region that the tree chose, of several that could serve. */
static bool model_request(uint64_t first, uint64_t last,
			  const struct sim_lf_region *served)
{
	struct model_region *region = model.region;
	bool hit = false;
	unsigned i;

	model.now++;
	for (i = 0; i < model.count; i++) {
		if (region[i].first > first || region[i].last < last)
			continue;
		hit = true;
		if (region[i].first == served->first &&
		    region[i].last == served->last)
			region[i].used = model.now;
	}
	for (i = model.count; !hit && i--;) {
		if (region[i].first >= first && region[i].last <= last)
			model_drop(i);
	}
	if (!hit)
		region[model.count++] =
			(struct model_region){ first, last, model.now };
	return hit;
}

LOOP_TEST(test_model, 0, 20)
{
	struct seed seed = seed_init("libfabric", _i);
	const size_t max_count = 1 + seed_below(&seed, 12);
	const uint64_t max_bytes = _i % 2 ? 20 + seed_below(&seed, 200) :
					    UINT64_MAX;
	const struct sim_lf_region *region;
	uint64_t addr, len;
	unsigned n;
	bool hit;

	memset(&model, 0, sizeof(model));
	begin(max_count, max_bytes);
	for (n = 0; n < rounds_of(5000); n++) {
		addr = seed_below(&seed, 64);
		len = 1 + seed_below(&seed, seed_below(&seed, 8) ? 6 : 40);
		model_flush(max_count, max_bytes);
		ck_assert_int_eq(sim_lf_request(&lf, addr, len, &hit, &region),
				 0);
		ck_assert(hit == model_request(addr, addr + len - 1, region));
		ck_assert(sim_lf_valid(&lf));
		ck_assert_uint_eq(lf.count, model.count);
		ck_assert_uint_eq(lf.bytes, model_bytes());
		ck_assert_uint_eq(gone, model.gone);
	}
	sim_lf_fini(&lf);
}
