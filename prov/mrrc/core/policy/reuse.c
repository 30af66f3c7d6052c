/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The reuse estimate (reuse.h). The constants were chosen on the traces that
 * docs/policies.md names; if one constant is halved or doubled, no result
 * changes by more than 1 %.
 */
#include "config.h"
#include "core/policy/reuse.h"

#include <string.h>

#define PRIOR_WEIGHT 50.0 /* number of observations that the prior stands for */
#define PRIOR	     .3	  /* prior of a first use */
#define PRIOR_USE    .3	  /* increase of the prior for each further use */
#define PERIOD	     4000 /* requests between decays */
#define DECAY	     .9
#define AGE_FIRST    1000.0
#define AGE_PART     .005 /* weight of a new age in the average */
#define HERE_MAX     16

void mrrc_reuse_init(struct mrrc_reuse *reuse)
{
	memset(reuse, 0, sizeof(*reuse));
	reuse->age = AGE_FIRST;
}

/*
 * Returns the class of a number of uses; the classes are 1, 2, 3, 4, 5-6, 7-10,
 * 11-20, more.
 */
static unsigned reuse_class(unsigned uses)
{
	if (uses <= 4)
		return uses - 1;
	if (uses <= 6)
		return 4;
	if (uses <= 10)
		return 5;
	return uses <= 20 ? 6 : 7;
}

void mrrc_reuse_request(struct mrrc_reuse *reuse)
{
	int i;

	if (++reuse->requests < PERIOD)
		return;
	reuse->requests = 0;
	for (i = 0; i < MRRC_REUSE_CLASSES; i++) {
		reuse->hit[i] *= DECAY;
		reuse->occupied[i] *= DECAY;
	}
}

void mrrc_reuse_enter(struct mrrc_reuse *reuse, unsigned uses)
{
	reuse->occupied[reuse_class(uses)] += 1;
}

void mrrc_reuse_again(struct mrrc_reuse *reuse, unsigned uses, uint64_t age)
{
	const unsigned class = reuse_class(uses);

	/*
	 * a region of that age would have been evicted: the use does not count
	 */
	if ((double) age >= reuse->age)
		return;
	reuse->hit[class] += 1;
	reuse->occupied[class] -= 1 - (double) age / reuse->age;
}

void mrrc_reuse_leave(struct mrrc_reuse *reuse, uint64_t age)
{
	const double pages = age ? (double) age : 1;

	reuse->age += (pages - reuse->age) * AGE_PART;
}

/*
 * How likely, and how soon, a region that was used @uses times is used again.
 */
static double reuse_rate(const struct mrrc_reuse *reuse, unsigned uses)
{
	const unsigned class = reuse_class(uses);
	const double prior = PRIOR * (1 + PRIOR_USE * (uses - 1));
	double occupied = reuse->occupied[class];

	if (occupied < 0)
		occupied = 0;
	return (reuse->hit[class] + PRIOR_WEIGHT * prior) /
	       (occupied + PRIOR_WEIGHT);
}

/*
 * Computes a square root by Newton's iteration, which starts at half of the
 * exponent: exact to a few units in the last place.
 */
static double mrrc_sqrt(double x)
{
	uint64_t bits;
	double root;
	int i;

	memcpy(&bits, &x, sizeof(bits));
	bits = (bits >> 1) + (UINT64_C(1023) << 51);
	memcpy(&root, &bits, sizeof(root));
	for (i = 0; i < 5; i++)
		root = (root + x / root) / 2;
	return root;
}

double mrrc_reuse_weight(const struct mrrc_cost *cost, size_t len)
{
	const double page =
		(mrrc_cost_reg(cost, len) + mrrc_cost_dereg(cost, len)) /
		mrrc_cost_pages(cost, len);

	return page > 0 ? page * mrrc_sqrt(page) : 0;
}

double mrrc_reuse_value(const struct mrrc_reuse *reuse, unsigned uses,
			unsigned here, double weight)
{
	return reuse_rate(reuse, uses) *
	       (1 + (here < HERE_MAX ? here : HERE_MAX)) * weight;
}
