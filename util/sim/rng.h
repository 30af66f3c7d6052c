/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Random numbers that are the same on every machine for a seed: integers only,
 * no libm. The numbers are not for secrets.
 */
#ifndef SIM_RNG_H
#define SIM_RNG_H

#include <stddef.h>
#include <stdint.h>

/* xoshiro256** of Blackman and Vigna, seeded by splitmix64 */
struct sim_rng {
	uint64_t s[4];
};

void sim_rng_init(struct sim_rng *rng, uint64_t seed);
uint64_t sim_rng_next(struct sim_rng *rng);

/* Returns a number in [0, n); n > 0. The bias is at most n / 2^64. */
uint64_t sim_rng_below(struct sim_rng *rng, uint64_t n);

/* Returns a number in [mean / 2, mean + mean / 2]. */
uint64_t sim_rng_about(struct sim_rng *rng, uint64_t mean);

/*
 * Returns a random index of cnt weights, with the probability of its weight;
 * the sum of the weights is > 0.
 */
size_t sim_rng_pick(struct sim_rng *rng, const unsigned int *weights,
		    size_t cnt);

/*
 * Random ranks 0 .. count - 1, rank r with a probability proportional to (r +
 * 1)^-0.75.
 */
struct sim_zipf {
	/* sums of the weights of all ranks up to and including each rank */
	uint64_t *sum;
	size_t count;
};

/* Initialises zipf for 0 < count < 2^31; -ENOMEM. */
int sim_zipf_init(struct sim_zipf *zipf, size_t count);
void sim_zipf_fini(struct sim_zipf *zipf);
size_t sim_zipf_next(const struct sim_zipf *zipf, struct sim_rng *rng);

#endif /* SIM_RNG_H */
