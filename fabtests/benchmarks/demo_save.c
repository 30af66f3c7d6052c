/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * demo_save: measures the savings and the costs of a registration cache.
 *
 *   each   the application registers the buffer of each RMA write, and closes
 *          the registration after it
 *   cache  the same, over libfabric's own cache (verbs)
 *   ours   no descriptor, over ofi_mrrc
 *
 * Each of the three ways has a process with both endpoints. The processes take
 * turns of some writes, so that disturbances of the machine affect all ways. A
 * write is measured from the allocation or the registration of its buffer to
 * its completion, which comes with the peer's acknowledgement. The first and
 * last word that arrive are checked. The processor time of a write includes all
 * threads of the process, which reads its completion queue until the write has
 * completed. With -e elapsed time is printed in place of processor time: where
 * the clock counts instructions, elapsed time includes the kernel's threads.
 * With -g the application keeps one registration, and passes its descriptor to
 * each write, with ofi_mrrc and without.
 *
 * Prints lines of words:
 *
 *	monitor NAME HOOKS LOST      the counters of ofi_mrrc
 *	cost SIZE US US NEAR ROUNDS  processor time to register and to deregister
 *	     once; NEAR of ROUNDS were within a fifth of that
 *	start US US N ROUNDS         with -g: processor time from a process's start
 *	     until its endpoints are connected, without ofi_mrrc and with it; with
 *	     it was faster in N of ROUNDS
 *	save ROW SIZE WRITES, and then for each of the three: microseconds of a
 *	     write, of processor time (least turn) and elapsed (fastest turn),
 *	     and registrations, hits and copies of all writes; at the end the
 *	     number of turns in which ofi_mrrc took less processor time than
 *	     each, and the number of all turns
 */
#include "ft_bench.h"
#include "reg_count.h"

#include <malloc.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define MAX_SIZE     (1UL << 20)
#define MAX_ROUNDS   128
#define COST_ROUNDS  15
#define START_ROUNDS 5
#define LIMIT	     "64" /* registrations that each cache may keep */

enum kind { FIRST, REUSE, MALLOC, ALLOC, GIVEN };

static const struct row {
	const char *name;
	enum kind kind;
	size_t size;
	unsigned bufs, writes; /* buffers and writes of a turn */
} rows[] = {
	{ "first", FIRST, 4096, 32, 32 },
	{ "first", FIRST, MAX_SIZE, 4, 4 },
	{ "again", REUSE, 4096, 16, 64 },
	{ "again", REUSE, 65536, 16, 32 },
	{ "again", REUSE, MAX_SIZE, 4, 8 },
	{ "beyond", REUSE, 4096, 128, 128 },
	{ "malloc", MALLOC, 65536, 1, 32 },
	{ "malloc", MALLOC, 262144, 1, 8 },
	{ "fi_mr_alloc", ALLOC, 4096, 1, 32 },
	{ "fi_mr_alloc", ALLOC, 262144, 1, 8 },
};
static const struct row given[] = { { "given", GIVEN, 64, 1, 64 } };

static struct {
	const char *core;
	unsigned rounds;
	bool given, elapsed;
} opts = { .core = "verbs", .rounds = 7 };

struct answer {
	/*
	 * microseconds of processor time and of elapsed time of a write, or of
	 * a registration in the row "cost"
	 */
	double cpu_us, us;
	double dereg_us; /* us of deregistering, if "cost" */
	unsigned near;
	uint64_t registered, hits, copies;
};

struct order {
	bool cost; /* measure the cost of registering row's size */
	unsigned row;
};

static struct worker {
	pid_t pid;
	int to, from;
	double cpu_us[MAX_ROUNDS], us[MAX_ROUNDS];
	struct answer sum;
} workers[FT_MODES];

/* ---- a process of one way ---- */

static enum ft_mode mode;
static struct ft_pair pair;
static char *remote, *bufs;
static size_t step; /* distance of adjacent buffers */
static struct fid_mr *target, *kept;
static uint64_t number, registrations;

static const struct row *row_of(unsigned i)
{
	return opts.given ? &given[i] : &rows[i];
}

static struct fid_mr *register_buf(char *buf, size_t len)
{
	registrations++;
	return ft_reg(pair.c.dom, buf, len, FI_WRITE);
}

static double cpu_us(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return used.tv_sec * 1e6 + used.tv_nsec / 1e3;
}

/* Returns the time that is compared, elapsed or the processor's. */
static double used_us(void)
{
	return opts.elapsed ? ft_time_us() : cpu_us();
}

static void write_buf(char *buf, size_t len, void *desc)
{
	const size_t last = len - sizeof(number);
	struct ft_comp comp;

	number++;
	memcpy(buf + last, &number, sizeof(number));
	memcpy(buf, &number, sizeof(number));
	FT_POST(&pair.c, fi_write(pair.c.ep, buf, len, desc, pair.c.to,
				  ft_raddr(pair.s.dom, remote),
				  fi_mr_key(target), NULL));
	ft_wait(&pair.c, FT_TX, &comp);
	/* tcp completes a write before the peer has read it */
	while (*(volatile uint64_t *) (remote + last) != number ||
	       *(volatile uint64_t *) remote != number) {
		FT_CHECK(ft_core("tcp"),
			 "wrong data: %" PRIu64 ", not %" PRIu64,
			 *(uint64_t *) remote, number);
		ft_progress(&pair.c);
	}
}

static void one_write(char *buf, size_t len)
{
	struct fid_mr *mr;

	if (mode == FT_NULL_DESC) {
		write_buf(buf, len, NULL);
		return;
	}
	mr = register_buf(buf, len);
	write_buf(buf, len, fi_mr_desc(mr));
	FT_CALL(fi_close(&mr->fid));
}

static void write_malloc(size_t len)
{
	char *buf = malloc(len);
	size_t at;

	FT_CHECK(buf, "malloc");
	for (at = 0; at < len; at += FT_PAGE)
		buf[at] = 1;
	one_write(buf, len);
	free(buf);
}

static void write_alloc(size_t len)
{
	struct fid_mr *mr;
	void *buf;
	size_t at;

	if (mode != FT_NULL_DESC) {
		write_malloc(len);
		return;
	}
	FT_CALL(fi_mr_alloc(pair.c.dom->domain, len, FI_WRITE, 0, &buf, &mr));
	for (at = 0; at < len; at += FT_PAGE)
		((char *) buf)[at] = 1;
	write_buf(buf, len, fi_mr_desc(mr));
	FT_CALL(fi_mr_free(pair.c.dom->domain, buf));
}

static void do_writes(const struct row *row)
{
	unsigned i;

	for (i = 0; i < row->writes; i++) {
		switch (row->kind) {
		case FIRST:
		case REUSE:
			one_write(bufs + i % row->bufs * step, row->size);
			break;
		case MALLOC:
			write_malloc(row->size);
			break;
		case ALLOC:
			write_alloc(row->size);
			break;
		case GIVEN:
			write_buf(bufs, row->size, fi_mr_desc(kept));
		}
	}
}

/*
 * Maps buffers that are not adjacent: new buffers for each row, or for each
 * turn.
 */
static void take_bufs(const struct row *row)
{
	static const struct row *last;
	static size_t len;

	if (last == row && row->kind != FIRST)
		return;
	if (kept)
		FT_CALL(fi_close(&kept->fid));
	if (bufs)
		ft_unmap(bufs, len);
	last = row;
	step = (row->size + 2 * FT_PAGE - 1) & ~(FT_PAGE - 1);
	len = step * row->bufs;
	bufs = ft_map(NULL, len);
	madvise(bufs, len, MADV_NOHUGEPAGE);
	memset(bufs, 1, len);
	kept = row->kind == GIVEN ? register_buf(bufs, row->size) : NULL;
}

static void turn(const struct row *row, struct answer *answer)
{
	struct fi_mrrc_stats before, after;
	const uint64_t device = reg_count(), mine = registrations;
	double start, cpu;

	ft_stage("%s of %zu bytes", row->name, row->size);
	take_bufs(row);
	ft_stats(pair.c.dom, &before);
	cpu = used_us();
	start = ft_time_us();
	do_writes(row);
	answer->cpu_us = (used_us() - cpu) / row->writes;
	answer->us = opts.elapsed ? answer->cpu_us :
				    (ft_time_us() - start) / row->writes;
	answer->registered = reg_count() - device;
	if (!ft_stats(pair.c.dom, &after)) {
		if (ft_core("tcp"))
			answer->registered = registrations - mine;
		answer->hits = row->writes - answer->registered;
		return;
	}
	if (ft_core("tcp"))
		answer->registered = after.registrations - before.registrations;
	answer->hits = after.hits - before.hits;
	answer->copies = after.bounces - before.bounces;
}

static void cost(size_t len, struct answer *answer)
{
	double reg[COST_ROUNDS], dereg[COST_ROUNDS], start;
	char *buf = ft_map(NULL, len);
	struct fid_mr *mr;
	unsigned i;

	madvise(buf, len, MADV_NOHUGEPAGE);
	memset(buf, 1, len);
	for (i = 0; i < COST_ROUNDS; i++) {
		start = used_us();
		mr = register_buf(buf, len);
		reg[i] = used_us() - start;
		start = used_us();
		FT_CALL(fi_close(&mr->fid));
		dereg[i] = used_us() - start;
	}
	answer->cpu_us = ft_median(reg, COST_ROUNDS);
	answer->dereg_us = ft_median(dereg, COST_ROUNDS);
	for (i = 0; i < COST_ROUNDS; i++)
		answer->near += fabs(reg[i] - answer->cpu_us) <
				answer->cpu_us / 5;
	ft_unmap(buf, len);
}

static void print_monitor(void)
{
	struct fi_mrrc_stats st;

	if (ft_stats(pair.c.dom, &st))
		printf("monitor %.16s %" PRIu64 " %" PRIu64 "\n", st.monitor,
		       ft_counter(pair.c.dom, "hooks"),
		       ft_counter(pair.c.dom, "hooks_lost"));
	fflush(stdout);
}

static void work(enum ft_mode way, int in, int out)
{
	struct ft_attr attr = FT_ATTR;
	struct answer answer = { 0 };
	const double began = cpu_us();
	struct order order;

	mode = way;
	/* the default of applications, which tests change */
	setenv("FI_OFI_MRRC_BOUNCE_SIZE", "64K", 0);
	setenv("FI_OFI_MRRC_CACHE_MAX_COUNT", LIMIT, 1);
	ft_bench_env(way, opts.core);
	if (way == FT_CORE_CACHE)
		setenv("FI_MR_CACHE_MAX_COUNT", LIMIT, 1);
	ft_start("demo_save");
	ft_pair_open(&pair, &attr);
	remote = ft_map(NULL, MAX_SIZE);
	target = ft_reg(&pair.dom[0], remote, MAX_SIZE, FI_REMOTE_WRITE);
	answer.cpu_us = cpu_us() - began;
	if (!opts.given)
		print_monitor();
	FT_CHECK(write(out, &answer, sizeof(answer)) == sizeof(answer),
		 "write");
	while (read(in, &order, sizeof(order)) == sizeof(order)) {
		memset(&answer, 0, sizeof(answer));
		if (order.cost)
			cost(row_of(order.row)->size, &answer);
		else
			turn(row_of(order.row), &answer);
		FT_CHECK(write(out, &answer, sizeof(answer)) == sizeof(answer),
			 "write");
	}
	_exit(0);
}

/* ---- the parent: one process at a time ---- */

/* Returns the processor time until the way's endpoints are connected. */
static double start_worker(enum ft_mode way)
{
	struct worker *w = &workers[way];
	int to[2], from[2];
	struct answer answer;
	enum ft_mode other;

	FT_CHECK(!pipe(to) && !pipe(from), "pipe");
	fflush(stdout);
	w->pid = fork();
	FT_CHECK(w->pid >= 0, "fork: %s", strerror(errno));
	if (!w->pid) {
		for (other = 0; other < FT_MODES; other++) {
			if (other != way && workers[other].pid)
				close(workers[other].to);
		}
		close(to[1]);
		close(from[0]);
		work(way, to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	w->to = to[1];
	w->from = from[0];
	FT_CHECK(read(w->from, &answer, sizeof(answer)) == sizeof(answer),
		 "%s does not start", ft_mode_names[way]);
	return answer.cpu_us;
}

static void end_worker(enum ft_mode way)
{
	struct worker *w = &workers[way];
	int status;

	close(w->to);
	close(w->from);
	FT_CHECK(waitpid(w->pid, &status, 0) == w->pid && !status,
		 "%s ended with status %d", ft_mode_names[way], status);
	w->pid = 0;
}

static void ask(enum ft_mode way, const struct order *order,
		struct answer *answer)
{
	struct worker *w = &workers[way];

	FT_CHECK(write(w->to, order, sizeof(*order)) == sizeof(*order) &&
			 read(w->from, answer, sizeof(*answer)) ==
				 sizeof(*answer),
		 "%s has ended", ft_mode_names[way]);
}

static void measure(unsigned i)
{
	const struct order order = { .row = i };
	const struct row *row = row_of(i);
	const unsigned n = opts.rounds;
	struct answer answer;
	struct worker *w;
	unsigned round, k, wins = 0;

	for (k = 0; k < FT_MODES; k++)
		memset(&workers[k].sum, 0, sizeof(workers[k].sum));
	for (round = 0; round < n; round++) {
		for (k = 0; k < FT_MODES; k++) {
			w = &workers[(round + k) % FT_MODES];
			if (!w->pid)
				continue;
			ask((round + k) % FT_MODES, &order, &answer);
			w->cpu_us[round] = answer.cpu_us;
			w->us[round] = answer.us;
			w->sum.registered += answer.registered;
			w->sum.hits += answer.hits;
			w->sum.copies += answer.copies;
		}
	}
	printf("save %s %zu %u", row->name, row->size, row->writes * n);
	for (round = 0; round < n; round++)
		wins += workers[FT_NULL_DESC].cpu_us[round] <
			workers[FT_REG_EACH].cpu_us[round];
	for (k = 0; k < FT_MODES; k++) {
		w = &workers[k];
		if (!w->pid) {
			printf(" - - - - -");
			continue;
		}
		ft_median(w->cpu_us, n);
		ft_median(w->us, n);
		printf(" %.2f %.2f %" PRIu64 " %" PRIu64 " %" PRIu64,
		       w->cpu_us[0], w->us[0], w->sum.registered, w->sum.hits,
		       w->sum.copies);
	}
	printf(" %u %u\n", wins, n);
	fflush(stdout);
}

static void costs(void)
{
	static const unsigned of[] = { 2, 3, 4 }; /* rows: 4K, 64K, 1M */
	struct order order = { .cost = true };
	struct answer answer;
	unsigned i;

	for (i = 0; i < sizeof(of) / sizeof(*of); i++) {
		order.row = of[i];
		ask(FT_REG_EACH, &order, &answer);
		printf("cost %zu %.2f %.2f %u %u\n", rows[of[i]].size,
		       answer.cpu_us, answer.dereg_us, answer.near,
		       COST_ROUNDS);
	}
	fflush(stdout);
}

/* Measures starts of both ways of -g; leaves the last processes running. */
static void starts(void)
{
	double each[START_ROUNDS], ours[START_ROUNDS];
	unsigned i, wins = 0;

	for (i = 0; i < START_ROUNDS; i++) {
		if (i) {
			end_worker(FT_REG_EACH);
			end_worker(FT_NULL_DESC);
		}
		each[i] = start_worker(FT_REG_EACH);
		ours[i] = start_worker(FT_NULL_DESC);
		wins += ours[i] < each[i];
	}
	printf("start %.2f %.2f %u %u\n", ft_median(each, START_ROUNDS),
	       ft_median(ours, START_ROUNDS), wins, START_ROUNDS);
	fflush(stdout);
}

static void parse(int argc, char **argv)
{
	int op;

	while ((op = getopt(argc, argv, "c:egi:s:t:v")) != -1) {
		switch (op) {
		case 'c':
			opts.core = optarg;
			break;
		case 'e':
			opts.elapsed = true;
			break;
		case 'g':
			opts.given = true;
			break;
		case 'i':
			opts.rounds = (unsigned) atoi(optarg);
			break;
		default:
			ft_parse_opt(argv[0], op, optarg);
		}
	}
	if (!opts.rounds || opts.rounds > MAX_ROUNDS) {
		fprintf(stderr, "-i wants 1 to %d\n", MAX_ROUNDS);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	unsigned i, count, k;

	ft_opts.timeout = 600;
	parse(argc, argv);
	count = opts.given ? sizeof(given) / sizeof(*given) :
			     sizeof(rows) / sizeof(*rows);
	if (opts.given) {
		starts();
	} else {
		for (k = 0; k < FT_MODES; k++) {
			/* only verbs uses libfabric's registration cache */
			if (k != FT_CORE_CACHE || !strcmp(opts.core, "verbs"))
				start_worker(k);
		}
		costs();
	}
	for (i = 0; i < count; i++)
		measure(i);
	return 0;
}
