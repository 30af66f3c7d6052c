/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The main function of fi_mrrc_lat and fi_mrrc_bw, which measure one provider
 * in several rounds over several sizes, and print medians. fi_mrrc_compare
 * interleaves ways of transferring; fi_mrrc_lat and fi_mrrc_bw use one way, for
 * profilers and quick measurements.
 */
#include "ft_sweep.h"

#define MAX_SIZES 32

static struct {
	unsigned rounds, iters, bufs, window;
	size_t sizes[MAX_SIZES];
	unsigned sizes_cnt;
	enum ft_bench_op op;
	bool cached, csv;
} opts = {
	.rounds = 5,
	.iters = 500,
	.bufs = 16,
	.window = 8,
	.op = FT_WRITE,
};

static void usage(const char *name)
{
	printf("Usage: %s [OPTION]...\n\n"
	       "  -p PROVIDER  \"tcp;ofi_mrrc\" (default): null descriptors;\n"
	       "               a raw core: each buffer is registered for each\n"
	       "               transfer\n"
	       "  -k           a raw core keeps its own cache (verbs)\n"
	       "  -s ADDRESS   of both sides\n"
	       "  -o write|send  (default write)\n"
	       "  -l SIZES     as 64,4K,1M\n"
	       "  -i ROUNDS    (default 5)\n"
	       "  -n COUNT     transfers a round (default 500)\n"
	       "  -b COUNT     buffers used in turn (default 16)\n"
	       "  -w COUNT     transfers at once for bandwidth (default 8)\n"
	       "  -t SECONDS   deadline (default 600)\n"
	       "  --csv        lines for programs\n",
	       name);
}

static void parse(int argc, char **argv)
{
	static const struct option longs[] = { { "csv", no_argument, NULL,
						 'C' },
					       { "help", 0, NULL, 'h' },
					       { 0 } };
	int op;

	while ((op = getopt_long(argc, argv, "p:ks:o:l:i:n:b:w:t:vh", longs,
				 NULL)) != -1) {
		switch (op) {
		case 'k':
			opts.cached = true;
			break;
		case 'o':
			opts.op = ft_parse_op(optarg);
			break;
		case 'l':
			opts.sizes_cnt =
				ft_parse_sizes(optarg, opts.sizes, MAX_SIZES);
			break;
		case 'i':
			opts.rounds = (unsigned) atoi(optarg);
			break;
		case 'n':
			opts.iters = (unsigned) atoi(optarg);
			break;
		case 'b':
			opts.bufs = (unsigned) atoi(optarg);
			break;
		case 'w':
			opts.window = (unsigned) atoi(optarg);
			break;
		case 'C':
			opts.csv = true;
			break;
		case 'h':
			usage(argv[0]);
			exit(0);
		case 'p':
		case 's':
		case 't':
		case 'v':
			ft_parse_opt(argv[0], op, optarg);
			break;
		default:
			usage(argv[0]);
			exit(2);
		}
	}
	if (!opts.rounds || !opts.window || opts.bufs < opts.window ||
	    opts.iters < opts.window) {
		usage(argv[0]);
		exit(2);
	}
	if (!opts.sizes_cnt)
		opts.sizes_cnt =
			ft_parse_sizes("64,4K,64K,1M", opts.sizes, MAX_SIZES);
}

static void report(struct ft_bench *b, const struct ft_task *task, double value)
{
	const char *unit = task->metric == FT_LAT ? "us" : "MB/s";

	if (opts.csv)
		printf("%s,%s,%s,%s,%zu,%s,%.3f,%u\n", ft_opts.prov,
		       ft_op_name(task->op),
		       task->metric == FT_LAT ? "lat" : "bw", unit, task->len,
		       ft_mode_names[b->mode], value, opts.rounds);
	else
		printf("%-16s %-6s %9zu %12.2f %s\n", ft_opts.prov,
		       ft_op_name(task->op), task->len, value, unit);
}

int ft_sweep(int argc, char **argv, enum ft_metric metric)
{
	struct ft_task task = { .metric = metric };
	enum ft_mode mode = FT_NULL_DESC;
	double *values;
	struct ft_bench b;
	size_t max = 0;
	unsigned i, k;

	ft_opts.timeout = 600;
	parse(argc, argv);
	if (opts.cached)
		ft_core_cache(true);
	ft_start(argv[0]);
	if (ft_opts.raw)
		mode = opts.cached ? FT_CORE_CACHE : FT_REG_EACH;
	for (i = 0; i < opts.sizes_cnt; i++)
		max = opts.sizes[i] > max ? opts.sizes[i] : max;
	values = calloc(opts.rounds, sizeof(*values));
	FT_CHECK(values, "calloc");
	ft_bench_open(&b, mode, max, opts.bufs);
	task.op = opts.op;
	task.window = opts.window;
	task.iters = opts.iters;
	for (i = 0; i < opts.sizes_cnt; i++) {
		task.len = opts.sizes[i];
		ft_bench_run(&b, &task); /* warms up */
		for (k = 0; k < opts.rounds; k++)
			values[k] = ft_bench_run(&b, &task);
		report(&b, &task, ft_median(values, opts.rounds));
	}
	ft_bench_close(&b);
	free(values);
	return 0;
}
