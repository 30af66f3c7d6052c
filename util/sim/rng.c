/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Random numbers (rng.h).
 */
#include "config.h"
#include "sim/rng.h"

#include <errno.h>
#include <stdlib.h>

static uint64_t rotl(uint64_t x, unsigned int bits)
{
	return x << bits | x >> (64 - bits);
}

static uint64_t splitmix64(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

void sim_rng_init(struct sim_rng *rng, uint64_t seed)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		rng->s[i] = splitmix64(&seed);
}

uint64_t sim_rng_next(struct sim_rng *rng)
{
	uint64_t *s = rng->s;
	uint64_t result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

uint64_t sim_rng_below(struct sim_rng *rng, uint64_t n)
{
	return sim_rng_next(rng) % n;
}

uint64_t sim_rng_about(struct sim_rng *rng, uint64_t mean)
{
	return mean - mean / 2 + sim_rng_below(rng, mean / 2 * 2 + 1);
}

size_t sim_rng_pick(struct sim_rng *rng, const unsigned int *weights,
		    size_t cnt)
{
	uint64_t sum = 0, at;
	size_t i;

	for (i = 0; i < cnt; i++)
		sum += weights[i];
	at = sim_rng_below(rng, sum);
	for (i = 0; at >= weights[i]; i++)
		at -= weights[i];
	return i;
}

/* ---- Zipf ---------------------------------------------------------------- */

static uint64_t isqrt(uint64_t n)
{
	uint64_t root = 0, bit = UINT64_C(1) << 62;

	while (bit > n)
		bit >>= 2;
	for (; bit; bit >>= 2) {
		if (n >= root + bit) {
			n -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	return root;
}

/*
 * Returns the weight 2^32 * n^-0.75, from the fourth root as a multiple of
 * 2^-16
 */
static uint64_t zipf_weight(uint64_t n)
{
	uint64_t root = isqrt(isqrt(n << 32) << 16);

	return (UINT64_C(1) << 48) / (((root * root >> 16) * root) >> 16);
}

int sim_zipf_init(struct sim_zipf *zipf, size_t count)
{
	uint64_t *sum = calloc(count, sizeof(*sum));
	size_t i;

	if (!sum)
		return -ENOMEM;
	sum[0] = zipf_weight(1);
	for (i = 1; i < count; i++)
		sum[i] = sum[i - 1] + zipf_weight(i + 1);
	zipf->sum = sum;
	zipf->count = count;
	return 0;
}

void sim_zipf_fini(struct sim_zipf *zipf)
{
	free(zipf->sum);
	zipf->sum = NULL;
}

size_t sim_zipf_next(const struct sim_zipf *zipf, struct sim_rng *rng)
{
	uint64_t at = sim_rng_below(rng, zipf->sum[zipf->count - 1]);
	size_t low = 0, high = zipf->count - 1, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (zipf->sum[mid] > at)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}
