/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Learned worth (worth.h). The constants were chosen on the traces that
 * docs/policies.md names; between half and twice of each nothing changes by
 * more than 1 %.
 */
#include "config.h"
#include "core/worth.h"

#include <string.h>

#define PRIOR_WEIGHT	50.0	/* as many observations */
#define PRIOR		.3	/* of a first use */
#define PRIOR_USE	.3	/* more for each further use */
#define PERIOD		4000	/* requests between decays */
#define DECAY		.9
#define AGE_FIRST	1000.0
#define AGE_PART	.005	/* of a new age in the average */
#define HERE_MAX	16

void mrrc_worth_init(struct mrrc_worth *worth)
{
	memset(worth, 0, sizeof(*worth));
	worth->age = AGE_FIRST;
}

/* 1, 2, 3, 4, 5-6, 7-10, 11-20, more. */
static unsigned mrrc_worth_class(unsigned uses)
{
	if (uses <= 4)
		return uses - 1;
	if (uses <= 6)
		return 4;
	if (uses <= 10)
		return 5;
	return uses <= 20 ? 6 : 7;
}

void mrrc_worth_request(struct mrrc_worth *worth)
{
	int i;

	if (++worth->requests < PERIOD)
		return;
	worth->requests = 0;
	for (i = 0; i < MRRC_WORTH_CLASSES; i++) {
		worth->hit[i] *= DECAY;
		worth->occupied[i] *= DECAY;
	}
}

void mrrc_worth_enter(struct mrrc_worth *worth, unsigned uses)
{
	worth->occupied[mrrc_worth_class(uses)] += 1;
}

void mrrc_worth_again(struct mrrc_worth *worth, unsigned uses, uint64_t age)
{
	const unsigned class = mrrc_worth_class(uses);

	/* after that it would have gone: no use that counts */
	if ((double) age >= worth->age)
		return;
	worth->hit[class] += 1;
	worth->occupied[class] -= 1 - (double) age / worth->age;
}

void mrrc_worth_leave(struct mrrc_worth *worth, uint64_t age)
{
	const double pages = age ? (double) age : 1;

	worth->age += (pages - worth->age) * AGE_PART;
}

double mrrc_worth_reuse(const struct mrrc_worth *worth, unsigned uses)
{
	const unsigned class = mrrc_worth_class(uses);
	const double prior = PRIOR * (1 + PRIOR_USE * (uses - 1));
	double occupied = worth->occupied[class];

	if (occupied < 0)
		occupied = 0;
	return (worth->hit[class] + PRIOR_WEIGHT * prior) /
	       (occupied + PRIOR_WEIGHT);
}

/* Newton's iteration from half of the exponent: exact to a few units. */
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

double mrrc_worth_weight(const struct mrrc_cost *cost, size_t len)
{
	const double page = (mrrc_cost_reg(cost, len) +
			     mrrc_cost_dereg(cost, len)) /
			    mrrc_cost_pages(cost, len);

	return page > 0 ? page * mrrc_sqrt(page) : 0;
}

double mrrc_worth(const struct mrrc_worth *worth, unsigned uses,
		  unsigned here, double weight)
{
	return mrrc_worth_reuse(worth, uses) *
	       (1 + (here < HERE_MAX ? here : HERE_MAX)) * weight;
}
