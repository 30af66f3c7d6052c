/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_reg_lat: measures the cost of registering, and the cost of finding a
 * registration instead. Receives are posted, which moves no data:
 *
 *   register, deregister   fi_mr_reg and fi_close, by the application
 *   given                  fi_recv with the descriptor of a registration
 *   hit                    fi_recv with a null descriptor, buffer used before
 *   miss                   the same, buffer not used since a flush
 *   copy                   copying it a page at a time, as for a bounce
 *
 * Over a raw core there is no hit and no miss. Each column is a median. Memory
 * is in pages of 4 KiB, unless --huge leaves the size of pages to the system.
 */
#include "ft_bench.h"

#define BATCH	  32 /* receives posted before the peer completes these */
#define MAX_SIZES 32

enum column { REGISTER, DEREGISTER, GIVEN, HIT, MISS, COPY, COLUMNS };

static struct {
	unsigned rounds;
	size_t sizes[MAX_SIZES];
	unsigned sizes_cnt;
	bool csv, huge;
} opts = { .rounds = 30 };

static struct ft_pair pair;
static char *buf, *copy;

/*
 * Posts BATCH receives on [buf, buf + len); returns microseconds of one
 * receive.
 */
static double post_batch(size_t len, void *desc)
{
	double start = ft_time_us(), took;
	struct ft_comp comp;
	int i;

	for (i = 0; i < BATCH; i++)
		FT_CALL(fi_recv(pair.s.ep, buf, len, desc, 0, NULL));
	took = ft_time_us() - start;
	for (i = 0; i < BATCH; i++) {
		FT_POST(&pair.c, fi_inject(pair.c.ep, "x", 1, 0));
		ft_wait(&pair.s, FT_RX, &comp);
	}
	return took / BATCH;
}

/*
 * Copies by pages: emulators run the instructions of long memcpys byte by byte.
 */
static void copy_pages(size_t len)
{
	size_t pos;

	for (pos = 0; pos < len; pos += FT_PAGE)
		memcpy(copy + pos, buf + pos,
		       len - pos < FT_PAGE ? len - pos : FT_PAGE);
}

static double post_miss(size_t len)
{
	struct ft_comp comp;
	double start, took;

	FT_CALL(fi_mrrc_flush(pair.dom[0].domain));
	start = ft_time_us();
	FT_CALL(fi_recv(pair.s.ep, buf, len, NULL, 0, NULL));
	took = ft_time_us() - start;
	FT_POST(&pair.c, fi_inject(pair.c.ep, "x", 1, 0));
	ft_wait(&pair.s, FT_RX, &comp);
	return took;
}

static void one_round(size_t len, double *row)
{
	struct fi_mrrc_stats before, after;
	struct fid_mr *mr;
	double start = ft_time_us();

	mr = ft_reg(&pair.dom[0], buf, len, FI_RECV);
	row[REGISTER] = ft_time_us() - start;
	row[GIVEN] = post_batch(len, fi_mr_desc(mr));
	start = ft_time_us();
	FT_CALL(fi_close(&mr->fid));
	row[DEREGISTER] = ft_time_us() - start;
	start = ft_time_us();
	copy_pages(len);
	row[COPY] = ft_time_us() - start;
	if (ft_opts.raw)
		return;
	row[MISS] = post_miss(len);
	ft_stats(&pair.dom[0], &before);
	row[HIT] = post_batch(len, NULL);
	ft_stats(&pair.dom[0], &after);
	if (ft_caches(&pair.dom[0]))
		FT_CHECK(after.hits - before.hits == BATCH,
			 "%" PRIu64 " hits of %d", after.hits - before.hits,
			 BATCH);
}

static void measure(size_t len)
{
	double row[COLUMNS] = { 0 }, *all[COLUMNS];
	unsigned r;
	int c;

	for (c = 0; c < COLUMNS; c++) {
		all[c] = calloc(opts.rounds, sizeof(double));
		FT_CHECK(all[c], "calloc");
	}
	ft_stage("%zu bytes", len);
	one_round(len, row);
	for (r = 0; r < opts.rounds; r++) {
		one_round(len, row);
		for (c = 0; c < COLUMNS; c++)
			all[c][r] = row[c];
	}
	printf(opts.csv ? "%s,%zu" : "%-16s %9zu", ft_opts.prov, len);
	for (c = 0; c < COLUMNS; c++) {
		if ((c == HIT || c == MISS) && ft_opts.raw)
			printf(opts.csv ? "," : " %11s", "-");
		else
			printf(opts.csv ? ",%.3f" : " %11.3f",
			       ft_median(all[c], opts.rounds));
		free(all[c]);
	}
	printf("\n");
}

static char *map(size_t len)
{
	char *map = ft_map(NULL, len);

	if (!opts.huge)
		madvise(map, len, MADV_NOHUGEPAGE);
	memset(map, 1, len);
	return map;
}

static void parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "csv", no_argument, NULL, 'C' },
		{ "help", 0, NULL, 'h' },
		{ "huge", no_argument, NULL, 'H' },
		{ 0 }
	};
	int op;

	while ((op = getopt_long(argc, argv, "p:s:l:i:t:vh", longs, NULL)) !=
	       -1) {
		switch (op) {
		case 'l':
			opts.sizes_cnt =
				ft_parse_sizes(optarg, opts.sizes, MAX_SIZES);
			break;
		case 'i':
			opts.rounds = (unsigned) atoi(optarg);
			break;
		case 'C':
			opts.csv = true;
			break;
		case 'H':
			opts.huge = true;
			break;
		case 'h':
			printf("Usage: %s [-p PROVIDER] [-s ADDRESS] [-l "
			       "SIZES] [-i ROUNDS] [-t SECONDS] [--csv] "
			       "[--huge]\n",
			       argv[0]);
			exit(0);
		default:
			ft_parse_opt(argv[0], op, optarg);
		}
	}
	if (!opts.rounds)
		opts.rounds = 1;
	if (!opts.sizes_cnt)
		opts.sizes_cnt =
			ft_parse_sizes("4K,64K,1M,16M", opts.sizes, MAX_SIZES);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	size_t max = 0;
	unsigned i;

	ft_opts.timeout = 600;
	parse(argc, argv);
	ft_start(argv[0]);
	attr.caps = FI_MSG;
	ft_pair_open(&pair, &attr);
	for (i = 0; i < opts.sizes_cnt; i++)
		max = opts.sizes[i] > max ? opts.sizes[i] : max;
	buf = map(max);
	copy = map(max);
	printf(opts.csv ? "%s,%s,%s,%s,%s,%s,%s,%s\n" :
			  "%-16s %9s %11s %11s %11s %11s %11s %11s\n",
	       "provider", "size", "register_us", "dereg_us", "given_us",
	       "hit_us", "miss_us", "copy_us");
	for (i = 0; i < opts.sizes_cnt; i++)
		measure(opts.sizes[i]);
	ft_unmap(buf, max);
	ft_unmap(copy, max);
	ft_pair_close(&pair);
	return 0;
}
