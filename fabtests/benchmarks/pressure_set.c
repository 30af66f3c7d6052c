/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Working sets (pressure_set.h). One thread. */
#include "pressure_set.h"

#include <sys/mman.h>

#define MIN_SIZE 4096UL
#define OCTAVES	 10 /* number of doublings from MIN_SIZE to SET_MAX_SIZE */

static uint64_t rng;

void set_seed(uint64_t seed)
{
	rng = seed;
}

static double draw(void)
{
	rng = rng * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double) (rng >> 11) / (double) (1ULL << 53);
}

/*
 * Returns a random size from MIN_SIZE to less than SET_MAX_SIZE. All OCTAVES
 * intervals from one power of two to the next are equally likely.
 */
static size_t mixed_size(void)
{
	size_t size = MIN_SIZE;
	double octaves;

	for (octaves = OCTAVES * draw(); octaves >= 1; octaves--)
		size *= 2;
	return size + ((size_t) (octaves * (double) size) & ~(FT_PAGE - 1));
}

void set_open(struct set *set, size_t size, size_t max_bytes,
	      unsigned max_count)
{
	size_t bytes = 0, pos = 0;
	unsigned i;

	*set = (struct set){ .buf = calloc(max_count, sizeof(char *)),
			     .len = calloc(max_count, sizeof(size_t)),
			     .upto = calloc(max_count, sizeof(double)) };
	FT_CHECK(set->buf && set->len && set->upto, "calloc");
	while (set->count < max_count) {
		set->len[set->count] = size ? size : mixed_size();
		if (bytes + set->len[set->count] > max_bytes && set->count)
			break;
		bytes += set->len[set->count++];
	}
	/* buffers are not adjacent */
	set->map_len = bytes + set->count * FT_PAGE;
	set->map = ft_map(NULL, set->map_len);
	madvise(set->map, set->map_len, MADV_NOHUGEPAGE);
	memset(set->map, 1, set->map_len);
	for (i = 0; i < set->count; i++) {
		set->buf[i] = set->map + pos;
		pos += set->len[i] + FT_PAGE;
		set->upto[i] = (i ? set->upto[i - 1] : 0) + 1.0 / (i + 1);
	}
}

void set_close(struct set *set)
{
	ft_unmap(set->map, set->map_len);
	free(set->buf);
	free(set->len);
	free(set->upto);
}

unsigned set_draw(const struct set *set, bool zipf)
{
	double at = draw();
	unsigned i = 0;

	if (!zipf)
		return (unsigned) (at * set->count);
	at *= set->upto[set->count - 1];
	while (i + 1 < set->count && set->upto[i] < at)
		i++;
	/* buffers of consecutive ranks are not neighbours */
	return (unsigned) ((i * 7919ULL) % set->count);
}
