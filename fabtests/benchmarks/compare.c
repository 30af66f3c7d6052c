/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_compare: measures the same transfers in three ways, interleaved:
 *
 *   register-each  raw core; the application registers each buffer for each
 *                  transfer and deregisters it afterwards
 *   core-cache     raw core; the same, through the core's own cache
 *                  (verbs only: tcp has none)
 *   ofi_mrrc       over ofi_mrrc, null descriptors
 *
 * Each way runs in a separate process, since the core's cache and the cache's
 * patching of memory calls are process-wide. A process opens both sides and
 * then waits for orders on a pipe. Rounds are interleaved and only one process
 * works at a time, so a disturbance of the machine affects all ways alike.
 * Medians of the rounds are compared.
 */
#include "ft_bench.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#define MAX_SIZES 32

struct worker {
	pid_t pid;
	int to, from; /* pipes; -1: the way is not available */
	double *results;
};

static struct {
	const char *core;
	unsigned rounds, iters, bufs, window;
	size_t sizes[MAX_SIZES];
	unsigned sizes_cnt;
	enum ft_bench_op op;
	bool lat, bw, csv, quick;
} opts = {
	.core = "tcp",
	.rounds = 7,
	.bufs = 16,
	.window = 8,
	.op = FT_WRITE,
	.lat = true,
	.bw = true,
};

static void usage(const char *name)
{
	printf("Usage: %s [OPTION]...\n\n"
	       "  -c CORE      tcp (default) or verbs\n"
	       "  -s ADDRESS   of both sides\n"
	       "  -o write|send  what is transferred how (default write)\n"
	       "  -m lat|bw    only latency, or only bandwidth\n"
	       "  -l SIZES     as 64,4K,1M\n"
	       "  -i ROUNDS    interleaved rounds (default 7)\n"
	       "  -n COUNT     transfers a round (default: by size)\n"
	       "  -b COUNT     buffers used in turn (default 16)\n"
	       "  -w COUNT     transfers at once for bandwidth (default 8)\n"
	       "  -q           quick: 3 rounds, a quarter of the transfers\n"
	       "  -R           leave ofi_mrrc out\n"
	       "  -t SECONDS   deadline (default 600)\n"
	       "  --csv        lines for programs\n",
	       name);
}

static void worker_main(enum ft_mode mode, int in, int out, char *name)
{
	size_t max = 0;
	struct ft_task task;
	struct ft_bench b;
	double result;
	unsigned i;

	for (i = 0; i < opts.sizes_cnt; i++)
		max = opts.sizes[i] > max ? opts.sizes[i] : max;
	ft_bench_env(mode, opts.core);
	ft_start(name);
	ft_bench_open(&b, mode, max, opts.bufs);
	while (read(in, &task, sizeof(task)) == sizeof(task)) {
		result = ft_bench_run(&b, &task);
		FT_CHECK(write(out, &result, sizeof(result)) == sizeof(result),
			 "write: %s", strerror(errno));
	}
	ft_bench_close(&b);
	exit(0);
}

static void start(struct worker *w, enum ft_mode mode, char *name)
{
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) {
		perror("pipe2");
		exit(1);
	}
	fflush(stdout);
	w->pid = fork();
	if (w->pid < 0) {
		perror("fork");
		exit(1);
	}
	if (!w->pid) {
		close(in[1]);
		close(out[0]);
		worker_main(mode, in[0], out[1], name);
	}
	close(in[0]);
	close(out[1]);
	w->to = in[1];
	w->from = out[0];
	w->results = calloc(opts.rounds, sizeof(double));
}

static double order(struct worker *w, const struct ft_task *task)
{
	double result = 0;
	int status = 0;

	if (write(w->to, task, sizeof(*task)) == sizeof(*task) &&
	    read(w->from, &result, sizeof(result)) == sizeof(result))
		return result;
	waitpid(w->pid, &status, 0);
	w->pid = 0;
	exit(WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) :
							1);
}

/*
 * Returns a lower number of transfers for a larger size: each size takes about
 * the same time, also where the device is emulated.
 */
static unsigned iters_for(size_t len)
{
	unsigned n = !strcmp(opts.core, "verbs") ? 200 : 2000;

	if (opts.quick)
		n /= 4;
	if (opts.iters)
		return opts.iters > opts.window ? opts.iters : opts.window;
	if (len > 16384)
		n = n * 16384 / (unsigned) (len > 1 << 26 ? 1 << 26 : len);
	return n > 2 * opts.bufs ? n : 2 * opts.bufs;
}

static void print_header(void)
{
	if (opts.csv)
		printf("core,op,metric,unit,size,mode,median,rounds\n");
	else
		printf("%-5s %-6s %9s %14s %14s %14s %9s %9s\n", "op", "unit",
		       "size", ft_mode_names[0], ft_mode_names[1],
		       ft_mode_names[2], "vs each", "vs cache");
}

/* Prints a ratio of two ways; above 1, ofi_mrrc is better. */
static void print_ratio(enum ft_metric metric, double other, double ours)
{
	if (other <= 0 || ours <= 0)
		printf(" %9s", "-");
	else
		printf(" %8.2fx",
		       metric == FT_LAT ? other / ours : ours / other);
}

static void report(const struct ft_task *task, const double *median)
{
	const char *unit = task->metric == FT_LAT ? "us" : "MB/s";
	int i;

	for (i = 0; i < FT_MODES && opts.csv; i++) {
		if (median[i] > 0)
			printf("%s,%s,%s,%s,%zu,%s,%.3f,%u\n", opts.core,
			       ft_op_name(task->op),
			       task->metric == FT_LAT ? "lat" : "bw", unit,
			       task->len, ft_mode_names[i], median[i],
			       opts.rounds);
	}
	if (opts.csv)
		return;
	printf("%-5s %-6s %9zu", ft_op_name(task->op), unit, task->len);
	for (i = 0; i < FT_MODES; i++) {
		if (median[i] > 0)
			printf(" %14.2f", median[i]);
		else
			printf(" %14s", "-");
	}
	print_ratio(task->metric, median[FT_REG_EACH], median[FT_NULL_DESC]);
	print_ratio(task->metric, median[FT_CORE_CACHE], median[FT_NULL_DESC]);
	printf("\n");
}

static void measure(struct worker *workers, enum ft_metric metric, size_t len)
{
	struct ft_task task = {
		.op = opts.op,
		.metric = metric,
		.len = len,
		.iters = iters_for(len),
		.window = opts.window,
	};
	double median[FT_MODES] = { 0 };
	unsigned round;
	int i, k;

	/* round 0 warms up; the ways take turns in going first */
	for (round = 0; round <= opts.rounds; round++) {
		for (k = 0; k < FT_MODES; k++) {
			i = (int) ((round + (unsigned) k) % FT_MODES);
			if (!workers[i].pid)
				continue;
			median[i] = order(&workers[i], &task);
			if (round)
				workers[i].results[round - 1] = median[i];
		}
	}
	for (i = 0; i < FT_MODES; i++) {
		if (workers[i].pid)
			median[i] = ft_median(workers[i].results, opts.rounds);
	}
	report(&task, median);
}

static void parse(int argc, char **argv)
{
	static const struct option longs[] = { { "csv", no_argument, NULL,
						 'C' },
					       { "help", 0, NULL, 'h' },
					       { 0 } };
	int op;

	while ((op = getopt_long(argc, argv, "c:s:o:m:l:i:n:b:w:t:qRvh", longs,
				 NULL)) != -1) {
		switch (op) {
		case 'c':
			opts.core = optarg;
			break;
		case 'o':
			opts.op = ft_parse_op(optarg);
			break;
		case 'm':
			opts.lat = !strcmp(optarg, "lat");
			opts.bw = !strcmp(optarg, "bw");
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
		case 'q':
			opts.quick = true;
			break;
		case 'C':
			opts.csv = true;
			break;
		case 'h':
			usage(argv[0]);
			exit(0);
		case 's':
		case 't':
		case 'R':
		case 'v':
			ft_parse_opt(argv[0], op, optarg);
			break;
		default:
			usage(argv[0]);
			exit(2);
		}
	}
	if (opts.quick)
		opts.rounds = 3;
	if (!opts.rounds || !opts.window || opts.bufs < opts.window ||
	    !(opts.lat || opts.bw)) {
		usage(argv[0]);
		exit(2);
	}
	if (!opts.sizes_cnt)
		opts.sizes_cnt =
			ft_parse_sizes("64,4K,64K,1M", opts.sizes, MAX_SIZES);
}

int main(int argc, char **argv)
{
	struct worker workers[FT_MODES] = { 0 };
	int i, status, ret = 0;
	unsigned k;

	ft_opts.timeout = 600;
	parse(argc, argv);
	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < FT_MODES; i++) {
		/* only verbs uses libfabric's registration cache */
		if (i == FT_CORE_CACHE && strcmp(opts.core, "verbs"))
			continue;
		if (i == FT_NULL_DESC && ft_opts.raw)
			continue;
		start(&workers[i], i, argv[0]);
	}
	print_header();
	for (k = 0; k < opts.sizes_cnt && opts.lat; k++)
		measure(workers, FT_LAT, opts.sizes[k]);
	for (k = 0; k < opts.sizes_cnt && opts.bw; k++)
		measure(workers, FT_BW, opts.sizes[k]);
	for (i = 0; i < FT_MODES; i++) {
		if (workers[i].pid)
			close(workers[i].to);
	}
	for (i = 0; i < FT_MODES; i++) {
		if (!workers[i].pid)
			continue;
		waitpid(workers[i].pid, &status, 0);
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			ret = 1;
		free(workers[i].results);
	}
	return ret;
}
