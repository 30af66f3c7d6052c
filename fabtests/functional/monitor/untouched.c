/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_untouched: tests receive buffers that were never written to,
 * scattered in one mapping. The device or the kernel writes to a buffer for the
 * first time while the buffer is watched; when the caches have given the
 * buffers up, the memory is one mapping again.
 */
#include "ft_mrrc.h"

#include <stdio.h>
#include <sys/mman.h>

#define REGIONS	  64   /* regions of each domain */
#define IDLE	  1024 /* ranges that stay watched */
#define BUFS	  4000
#define STEP	  (3 * FT_PAGE)
#define LEFT_OVER 192 /* other mappings that a process makes */
#define MOST	  (2 * (2 * REGIONS + IDLE) + LEFT_OVER)

/*
 * Maps the buffers apart from other memory, as a neighbour that was written to
 * would be merged with them.
 */
static char *map_bufs(void)
{
	const size_t len = BUFS * STEP;
	char *bufs = mmap(NULL, len + 2 * FT_PAGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	FT_CHECK(bufs != MAP_FAILED, "%zu bytes are not mapped", len);
	bufs += FT_PAGE;
	FT_CHECK(!mprotect(bufs, len, PROT_READ | PROT_WRITE), "mprotect");
	return bufs;
}

/*
 * Receives into a buffer of which no byte is written before it is registered.
 */
static void receive(struct ft_pair *pair, char *out, char *in, unsigned seed)
{
	ft_stage("buffer %u", seed);
	ft_fill(out, FT_PAGE, seed);
	ft_send_recv(&pair->c, out, in, FT_PAGE);
	FT_CHECK_BUF(in, FT_PAGE, seed, "what was received");
	ft_release_pair(pair);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	struct ft_pair pair;
	size_t before, more;
	char *bufs, *out;
	unsigned i;

	setenv("FI_OFI_MRRC_CACHE_MAX_COUNT", "64", 1);
	setenv("FI_OFI_MRRC_BOUNCE_SIZE", "0", 1);
	ft_init(argc, argv);
	ft_pair_open(&pair, &attr);
	bufs = map_bufs();
	out = ft_map(NULL, FT_PAGE);
	receive(&pair, out, bufs, 0);

	before = ft_mappings();
	for (i = 1; i < BUFS; i++)
		receive(&pair, out, bufs + i * STEP, i);
	more = ft_mappings() - before;
	ft_log("%zu more mappings", more);
	FT_CHECK(more < MOST, "%zu more mappings, at most %d", more, MOST);
	FT_CHECK(!ft_caches(&pair.dom[0]) || !ft_stats(&pair.dom[0], &st) ||
			 st.evictions > BUFS / 2,
		 "%" PRIu64 " evictions", st.evictions);
	ft_pair_close(&pair);
	return ft_done();
}
