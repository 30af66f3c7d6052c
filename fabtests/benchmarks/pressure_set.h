/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Working sets of buffers, and draws from these sets, for pressure_bench. */
#ifndef PRESSURE_SET_H
#define PRESSURE_SET_H

#include "ft_mrrc.h"

#define SET_MAX_SIZE (4UL << 20) /* maximum size of a buffer */

struct set {
	unsigned count, next;
	char **buf;
	size_t *len;
	double *upto; /* for Zipf's law: sums of 1/rank up to each rank */
	char *map;
	size_t map_len;
};

/* The same seed makes the same sets and draws in each process. */
void set_seed(uint64_t seed);
/* Opens a set of buffers of one size, or of mixed sizes (0), as many as fit. */
void set_open(struct set *set, size_t size, size_t max_bytes,
	      unsigned max_count);
void set_close(struct set *set);
unsigned set_draw(const struct set *set, bool zipf);

#endif /* PRESSURE_SET_H */
