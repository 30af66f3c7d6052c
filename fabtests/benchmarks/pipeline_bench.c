/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * pipeline_bench: measures whether it pays to register a cold buffer part by
 * part, and to send each part while the next part is registered (ou2009 section
 * 5, dalessandro2007). Makes RMA writes of a buffer in 1 to 6 parts over the
 * core provider alone, with nothing cached, timed from the first registration
 * to the last completion. Deregistering is not timed.
 *
 * Prints "size parts us ratio registering". us is the median of interleaved
 * rounds; ratio is the time of the buffer in one part divided by us;
 * registering is the share of registering in the time of the buffer in one
 * part, the maximum share that parts could hide.
 */
#include "ft_bench.h"

#define PARTS_MAX 6

static const size_t sizes[] = { 64UL << 10, 256UL << 10, 1UL << 20, 4UL << 20 };
static const unsigned ways[] = { 1, 2, 3, 4, PARTS_MAX };

#define SIZES  (sizeof(sizes) / sizeof(sizes[0]))
#define WAYS   (sizeof(ways) / sizeof(ways[0]))
#define ROUNDS 41

static struct ft_pair pair;
static struct fid_mr *target;
static char *from, *to;

/*
 * Registers and posts the parts in turn; *registering: us of the first part's
 * registration.
 */
static double once(size_t len, unsigned parts, double *registering)
{
	const size_t page = FT_PAGE;
	const size_t part = (len / parts + page - 1) & ~(page - 1);
	const uint64_t addr = ft_raddr(&pair.dom[0], to);
	struct fid_mr *mr[PARTS_MAX];
	struct ft_comp comp;
	uint64_t start, end;
	unsigned i;
	size_t pos, n;

	start = ft_now_us();
	for (i = 0, pos = 0; pos < len; i++, pos += n) {
		n = len - pos < part ? len - pos : part;
		FT_CALL(fi_mr_reg(pair.dom[1].domain, from + pos, n, FI_WRITE,
				  0, i + 1, 0, &mr[i], NULL));
		if (!i)
			*registering = (double) (ft_now_us() - start);
		FT_POST(&pair.c, fi_write(pair.c.ep, from + pos, n,
					  fi_mr_desc(mr[i]), pair.c.to,
					  addr + pos, fi_mr_key(target), NULL));
	}
	for (n = 0; n < i; n++)
		ft_wait(&pair.c, FT_TX, &comp);
	end = ft_now_us();
	while (i--)
		FT_CALL(fi_close(&mr[i]->fid));
	return (double) (end - start);
}

static void size_row(size_t len)
{
	double us[WAYS][ROUNDS], share[ROUNDS], ratio[ROUNDS], whole;
	double reg = 0;
	unsigned round, w, rounds = ft_iters(ROUNDS);

	FT_CHECK(rounds && rounds <= ROUNDS, "%u rounds", rounds);
	for (round = 0; round < rounds; round++) {
		ft_stage("%zu bytes, round %u", len, round);
		/* each number of parts comes first in turn */
		for (w = round; w < round + WAYS; w++) {
			us[w % WAYS][round] = once(len, ways[w % WAYS], &reg);
			if (w % WAYS == 0)
				share[round] = reg / us[0][round];
		}
	}
	whole = 100 * ft_median(share, rounds);
	for (w = WAYS; w--;) {
		for (round = 0; round < rounds; round++)
			ratio[round] = us[0][round] / us[w][round];
		if (!w)
			break;
		printf("%zuK %u %.1f %.3f -\n", len >> 10, ways[w],
		       ft_median(us[w], rounds), ft_median(ratio, rounds));
	}
	printf("%zuK 1 %.1f 1 %.1f%%\n", len >> 10, ft_median(us[0], rounds),
	       whole);
}

int main(int argc, char **argv)
{
	const size_t max = sizes[SIZES - 1];
	struct ft_attr attr = FT_ATTR;
	unsigned i;

	ft_init(argc, argv);
	FT_CHECK(ft_opts.raw, "over a core provider alone");
	ft_pair_open(&pair, &attr);
	from = ft_map(NULL, max);
	to = ft_map(NULL, max);
	madvise(from, max, MADV_NOHUGEPAGE);
	madvise(to, max, MADV_NOHUGEPAGE);
	memset(from, 1, max);
	memset(to, 2, max);
	target = ft_reg(&pair.dom[0], to, max, FI_REMOTE_WRITE);
	for (i = 0; i < SIZES; i++)
		size_row(sizes[i]);
	FT_CHECK(!memcmp(from, to, max), "the bytes differ");
	FT_CALL(fi_close(&target->fid));
	ft_unmap(from, max);
	ft_unmap(to, max);
	ft_pair_close(&pair);
	return ft_done();
}
