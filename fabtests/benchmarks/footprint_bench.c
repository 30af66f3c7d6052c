/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * footprint_bench: measures the resources that domains take of their process,
 * step by step: fi_domain() of two domains, the first receive into a buffer,
 * and the close of all objects. Compares the core alone, the core with ofi_mrrc
 * above it, and ofi_mrrc without hooks of libc, each in a new process in each
 * round.
 *
 * With -1, all steps are taken once over PROVIDER and nothing is printed, for
 * strace.
 */
#include "ft_bench.h"

#include <sys/wait.h>
#include <time.h>

#define ROUNDS	   11
#define MAX_ROUNDS 64
#define BUF	   (256UL << 10)
/* memory of the application, which may use huge pages */
#define HUGE_BYTES (8UL << 20)

enum step { NOTHING, FIRST, SECOND, MISS, CLOSED, STEPS };
static const char *const step_name[STEPS] = { "nothing", "domain-1", "domain-2",
					      "miss", "closed" };

/* Resources that a step leaves allocated, and the time that it took. */
enum value {
	CALL_CPU,  /* us of this thread in the call */
	CALL_WALL, /* us */
	OTHER_CPU, /* us of other threads until all sleep */
	THREADS,
	FDS,
	MAPPINGS,
	SIZE, /* SIZE and the values below are in KiB */
	RSS,
	RSS_FILE,
	ANON_HUGE,
	VALUES,
};
static const char *const value_name[VALUES] = { "call",	   "wall", "others",
						"threads", "fds",  "mappings",
						"size",	   "rss",  "file",
						"huge" };

enum which { RAW, OURS, NO_HOOKS, SIDES };
static const char *const side_name[SIDES] = { "raw", "ours", "no-hooks" };

typedef double snapshot[STEPS][VALUES];

static double clock_us(clockid_t id)
{
	struct timespec time;

	clock_gettime(id, &time);
	return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

/* Returns the number after a key in a file of /proc/self; 0: no such key. */
static double proc_value(const char *path, const char *key)
{
	const size_t len = strlen(key);
	FILE *file = fopen(path, "re");
	double value = 0;
	char line[256];

	FT_CHECK(file, "%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, key, len) && line[len] == ':')
			value = strtod(line + len + 1, NULL);
	}
	fclose(file);
	return value;
}

static void look(double *value)
{
	value[THREADS] = proc_value("/proc/self/status", "Threads");
	value[SIZE] = proc_value("/proc/self/status", "VmSize");
	value[RSS] = proc_value("/proc/self/status", "VmRSS");
	value[RSS_FILE] = proc_value("/proc/self/status", "RssFile");
	value[ANON_HUGE] =
		proc_value("/proc/self/smaps_rollup", "AnonHugePages");
	value[FDS] = ft_fd_count();
	value[MAPPINGS] = (double) ft_mappings();
}

/* ---- one process ------------------------------------------------------- */

struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain[2];
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	char *buf;
};

static void side_open(struct side *side)
{
	struct ft_attr attr = FT_ATTR;
	char *huge;

	huge = ft_map(NULL, HUGE_BYTES);
	madvise(huge, HUGE_BYTES, MADV_HUGEPAGE);
	memset(huge, 1, HUGE_BYTES);
	side->buf = huge + HUGE_BYTES / 2;
	side->info = ft_getinfo(&attr);
	FT_CALL(fi_fabric(side->info->fabric_attr, &side->fabric, NULL));
}

/* Makes an endpoint, which accepts receives before it is connected. */
static void side_endpoint(struct side *side)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_DATA };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_NONE };

	FT_CALL(fi_eq_open(side->fabric, &eq_attr, &side->eq, NULL));
	FT_CALL(fi_cq_open(side->domain[0], &cq_attr, &side->cq, NULL));
	FT_CALL(fi_endpoint(side->domain[0], side->info, &side->ep, NULL));
	FT_CALL(fi_ep_bind(side->ep, &side->eq->fid, 0));
	FT_CALL(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV));
	FT_CALL(fi_enable(side->ep));
}

static void side_receive(struct side *side)
{
	void *desc = NULL;

	if (ft_opts.raw) {
		FT_CALL(fi_mr_reg(side->domain[0], side->buf, BUF, FI_RECV, 0,
				  0, 0, &side->mr, NULL));
		desc = fi_mr_desc(side->mr);
	}
	FT_CALL(fi_recv(side->ep, side->buf, BUF, desc, 0, side->buf));
}

static void side_close(struct side *side)
{
	FT_CALL(fi_close(&side->ep->fid));
	if (side->mr)
		FT_CALL(fi_close(&side->mr->fid));
	FT_CALL(fi_close(&side->cq->fid));
	FT_CALL(fi_close(&side->domain[0]->fid));
	FT_CALL(fi_close(&side->domain[1]->fid));
	FT_CALL(fi_close(&side->eq->fid));
}

static void side_do(struct side *side, enum step step)
{
	switch (step) {
	case NOTHING:
		return;
	case FIRST:
	case SECOND:
		FT_CALL(fi_domain(side->fabric, side->info,
				  &side->domain[step - FIRST], NULL));
		return;
	case MISS:
		side_receive(side);
		return;
	default:
		side_close(side);
	}
}

static void run_side(snapshot now)
{
	double all, mine, wall;
	struct side side = { 0 };
	enum step step;

	side_open(&side);
	for (step = NOTHING; step < STEPS; step++) {
		ft_stage("%s", step_name[step]);
		if (step == MISS)
			side_endpoint(&side);
		ft_wait_quiet();
		wall = clock_us(CLOCK_MONOTONIC);
		all = clock_us(CLOCK_PROCESS_CPUTIME_ID);
		mine = clock_us(CLOCK_THREAD_CPUTIME_ID);
		side_do(&side, step);
		now[step][CALL_WALL] = clock_us(CLOCK_MONOTONIC) - wall;
		now[step][CALL_CPU] = clock_us(CLOCK_THREAD_CPUTIME_ID) - mine;
		ft_wait_quiet();
		all = clock_us(CLOCK_PROCESS_CPUTIME_ID) - all;
		now[step][OTHER_CPU] =
			all - (clock_us(CLOCK_THREAD_CPUTIME_ID) - mine);
		look(now[step]);
	}
}

/* ---- the rounds -------------------------------------------------------- */

static void in_child(enum which which, const char *stacked, snapshot *shared)
{
	pid_t pid = fork();
	int status = 0;

	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		ft_opts.prov = stacked;
		ft_opts.raw = false;
		if (which == RAW)
			ft_set_raw();
		if (which == NO_HOOKS)
			setenv("FI_OFI_MRRC_HOOKS", "0", 1);
		run_side(*shared);
		_exit(0);
	}
	FT_CHECK(waitpid(pid, &status, 0) == pid && !status,
		 "a round ended with status %d", status);
}

static double median_of(snapshot *rounds, unsigned n, enum step step,
			enum value value)
{
	double list[MAX_ROUNDS];
	unsigned i;

	for (i = 0; i < n; i++)
		list[i] = rounds[i][step][value];
	return ft_median(list, n);
}

static void print(const char *side, snapshot *rounds, unsigned n)
{
	enum value value;
	enum step step;

	for (step = NOTHING; step < STEPS; step++) {
		printf("%s %s", side, step_name[step]);
		for (value = 0; value < VALUES; value++)
			printf(" %s %.0f", value_name[value],
			       median_of(rounds, n, step, value));
		printf("\n");
	}
}

int main(int argc, char **argv)
{
	static snapshot rounds[SIDES][MAX_ROUNDS];
	bool once = false;
	const char *stacked;
	snapshot *shared;
	unsigned i, k, n;
	int op;

	while ((op = getopt(argc, argv, FT_OPTS "1")) != -1) {
		if (op == '1')
			once = true;
		else
			ft_parse_opt(argv[0], op, optarg);
	}
	ft_start(argv[0]);
	if (once) {
		run_side(rounds[0][0]);
		return 0;
	}
	n = ft_iters(ROUNDS);
	FT_CHECK(n <= MAX_ROUNDS, "at most %d rounds", MAX_ROUNDS);
	stacked = ft_opts.prov;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	FT_CHECK(shared != MAP_FAILED, "mmap: %s", strerror(errno));
	for (i = 0; i < n; i++) {
		for (k = 0; k < SIDES; k++) {
			in_child((i + k) % SIDES, stacked, shared);
			memcpy(rounds[(i + k) % SIDES][i], *shared,
			       sizeof(*shared));
		}
	}
	for (k = 0; k < SIDES; k++)
		print(side_name[k], rounds[k], n);
	return 0;
}
