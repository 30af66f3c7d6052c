/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * helper_bench: measures savings and costs of a predicting helper, as li2011
 * does (figures 1, 2, 3, 9 and 10, section 4.3). bench.sh runs helper_bench.
 *
 *	helper_bench -p CORE [-I TURNS] [-o memory|limit|overhead]
 *
 * memory: three buffers are sent in turn with a pause after each. Each way has
 * a separate process: registering for each message (each), libfabric's own
 * cache (cache), and ofi_mrrc without a helper (never) and with a helper that
 * predicts (predict). With REUSE the same three buffers are used again and
 * again; without REUSE, each message has a new buffer. Prints "memory WAY REUSE
 * LEN MEAN PEAK US LATE". MEAN and PEAK are registered bytes in percent of
 * three buffers; US is the median time of a message. For the longest messages,
 * lines "bytes WAY REUSE MS PERCENT" come before the line "memory", with the
 * registered bytes over time.
 *
 * limit: six buffers are sent in turn, where the bytes of three and a half
 * buffers may be locked; one more way (kept) leaves all used buffers
 * registered. Prints "limit WAY MESSAGES OF US PEAK LATE WHY": the number of
 * sent messages, and the reason why no more were sent.
 *
 * overhead: two processes, without and with the helper, time batches of
 * messages from one buffer in turn. Prints "overhead BYTES US US RATIO": the
 * median times without and with the helper, and the median of the ratios of two
 * successive batches.
 *
 * The receiver's buffer is registered before the first message, and does not
 * count.
 */
#include "ft_priv.h"
#include "helper_run.h"

#include <sys/resource.h>

#define BUFFERS	 3
#define MANY	 6 /* number of buffers of "limit" */
#define MIB	 ((size_t) 1 << 20)
#define LEN_MAX	 (4 * MIB)
#define TURNS	 10
#define PAUSE_US 60000
#define SAMPLES	 6 /* samples of a pause */
#define ROUNDS	 31

static const struct way {
	const char *name;
	enum ft_mode mode;
	const char *helper;
	bool keeps; /* the program keeps its registrations */
} ways[] = {
	{ .name = "each", .mode = FT_REG_EACH },
	{ .name = "cache", .mode = FT_CORE_CACHE },
	{ .name = "never", .mode = FT_NULL_DESC, .helper = "never" },
	{ .name = "predict", .mode = FT_NULL_DESC, .helper = "predict" },
	{ .name = "kept", .mode = FT_REG_EACH, .keeps = true },
};
enum { EACH, CACHE, NEVER, PREDICT, KEPT, WAYS };

static const char *core;
static struct ft_pair pair;
static unsigned turns;

static void open_way(const struct way *way)
{
	helper_open("helper_bench", way->mode, core, way->helper, &pair);
}

/* ---- messages ------------------------------------------------------------ */

struct run {
	const struct way *way;
	size_t len;
	bool reuse, shows;
	char *to;
	struct fid_mr *to_mr, *kept[MANY];
	struct helper_bytes bytes;
};

static void run_open(struct run *run)
{
	open_way(run->way);
	run->to = ft_map(NULL, run->len);
	run->to_mr = ft_reg(&pair.dom[0], run->to, run->len, FI_SEND | FI_RECV);
	helper_bytes_begin(&run->bytes, &pair.dom[1]);
}

static void run_look(struct run *run)
{
	struct helper_bytes *bytes = &run->bytes;

	helper_bytes_look(bytes);
	if (run->shows)
		printf("bytes %s %s %.1f %.1f\n", run->way->name,
		       run->reuse ? "yes" : "no",
		       (bytes->last - bytes->begin) / 1e3,
		       100 * bytes->now / (BUFFERS * (double) run->len));
}

static void run_pause(struct run *run)
{
	unsigned i;

	run_look(run);
	for (i = 0; i < SAMPLES; i++) {
		usleep(PAUSE_US / SAMPLES);
		run_look(run);
	}
}

/*
 * Sends message i. Stores the message's time in *us, or returns the error that
 * prevents the message.
 */
static int run_send(struct run *run, unsigned i, char *from, double *us)
{
	const bool raw = run->way->mode != FT_NULL_DESC;
	const double start = ft_time_us();
	struct ft_ep *c = &pair.c, *s = &pair.s;
	struct fid_mr *mr = run->kept[i % MANY];
	struct ft_comp comp;
	int ret;

	if (raw && !mr) {
		ret = fi_mr_reg(pair.dom[1].domain, from, run->len, FI_SEND, 0,
				(uintptr_t) from / FT_PAGE, 0, &mr, NULL);
		if (ret)
			return ret;
	}
	FT_POST(c, fi_recv(s->ep, run->to, run->len, fi_mr_desc(run->to_mr),
			   FT_ANY, run->to));
	ret = (int) fi_send(c->ep, from, run->len, raw ? fi_mr_desc(mr) : NULL,
			    c->to, from);
	if (ret)
		return ret;
	ft_wait(c, FT_TX, &comp);
	ft_wait(s, FT_RX, &comp);
	if (run->way->keeps)
		run->kept[i % MANY] = mr;
	else if (mr)
		FT_CALL(fi_close(&mr->fid));
	*us = ft_time_us() - start;
	return 0;
}

/* ---- figures 2, 9 and 10 ------------------------------------------------- */

static void memory(void *arg)
{
	struct run *run = arg;
	double us[TURNS * BUFFERS];
	char *buf[BUFFERS];
	unsigned i;

	run_open(run);
	for (i = 0; i < turns * BUFFERS; i++) {
		ft_stage("message %u", i);
		if (i < BUFFERS || !run->reuse)
			buf[i % BUFFERS] = ft_map(NULL, run->len);
		memset(buf[i % BUFFERS], (int) i, run->len);
		FT_CALL(run_send(run, i, buf[i % BUFFERS], &us[i]));
		run_pause(run);
	}
	printf("memory %s %s %zu %.1f %.1f %.1f %" PRIu64 "\n", run->way->name,
	       run->reuse ? "yes" : "no", run->len,
	       100 * helper_bytes_mean(&run->bytes) /
		       (BUFFERS * (double) run->len),
	       100 * run->bytes.peak / (BUFFERS * (double) run->len),
	       ft_median(us, turns * BUFFERS),
	       ft_counter(&pair.dom[1], "late_uses"));
	FT_CALL(fi_close(&run->to_mr->fid));
	ft_pair_close(&pair);
}

/* ---- figure 3 ------------------------------------------------------------ */

static void restrict_memory(size_t bytes)
{
	struct rlimit limit = { bytes, bytes };

	FT_CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit), "setrlimit: %s",
		 strerror(errno));
	ft_drop_caps();
}

static void limited(void *arg)
{
	struct run *run = arg;
	double us[TURNS * MANY] = { 0 };
	char *buf[MANY];
	unsigned i;
	int ret = 0;

	/* the receiver's buffer takes one LEN more */
	restrict_memory(run->len * 9 / 2);
	run_open(run);
	for (i = 0; i < turns * MANY; i++) {
		ft_stage("message %u", i);
		if (i < MANY)
			buf[i] = ft_map(NULL, run->len);
		memset(buf[i % MANY], (int) i, run->len);
		ret = run_send(run, i, buf[i % MANY], &us[i]);
		if (ret)
			break;
		run_pause(run);
	}
	printf("limit %s %u %u %.1f %.1f %" PRIu64 " %s\n", run->way->name, i,
	       turns * MANY, i ? ft_median(us, i) : 0,
	       100 * run->bytes.peak / (MANY * (double) run->len),
	       ft_counter(&pair.dom[1], "late_uses"),
	       ret ? fi_strerror(-ret) : "-");
	fflush(stdout);
	/*
	 * a child that cannot continue cannot close its objects in order,
	 * either
	 */
	_exit(0);
}

/* ---- overhead ------------------------------------------------------------ */

static double batch(char *from, char *to, size_t len)
{
	const unsigned count = len < MIB ? 32 : 2;
	struct ft_comp comp;
	double start = ft_time_us();
	unsigned i;

	for (i = 0; i < count; i++) {
		FT_POST(&pair.s, fi_recv(pair.s.ep, to, len, NULL, FT_ANY, to));
		FT_POST(&pair.c,
			fi_send(pair.c.ep, from, len, NULL, pair.c.to, from));
		ft_wait(&pair.c, FT_TX, &comp);
		ft_wait(&pair.s, FT_RX, &comp);
	}
	return (ft_time_us() - start) / count;
}

/*
 * Reads a length, and writes the time of a batch of that length; the length 0
 * ends the process.
 */
static void serve(const struct way *way, int in, int out)
{
	char *from, *to;
	size_t len;
	double us;

	open_way(way);
	from = ft_map(NULL, LEN_MAX);
	to = ft_map(NULL, LEN_MAX);
	memset(from, 1, LEN_MAX);
	while (read(in, &len, sizeof(len)) == sizeof(len) && len) {
		us = batch(from, to, len);
		FT_CHECK(write(out, &us, sizeof(us)) == sizeof(us), "write");
	}
	ft_pair_close(&pair);
}

struct side {
	pid_t pid;
	int to, from;
};

static void side_open(struct side *side, const struct way *way)
{
	int to[2], from[2];

	FT_CHECK(!pipe(to) && !pipe(from), "pipe: %s", strerror(errno));
	side->pid = fork();
	FT_CHECK(side->pid >= 0, "fork: %s", strerror(errno));
	if (!side->pid) {
		close(to[1]);
		close(from[0]);
		serve(way, to[0], from[1]);
		exit(0);
	}
	close(to[0]);
	close(from[1]);
	side->to = to[1];
	side->from = from[0];
}

static double side_batch(const struct side *side, size_t len)
{
	double us;

	FT_CHECK(write(side->to, &len, sizeof(len)) == sizeof(len) &&
			 read(side->from, &us, sizeof(us)) == sizeof(us),
		 "a process ended");
	return us;
}

static void overhead(void)
{
	static const size_t lens[] = { 17 << 10, MIB, LEN_MAX };
	double us[2][ROUNDS], ratio[ROUNDS];
	const size_t end = 0;
	const unsigned rounds = turns < TURNS ? 3 : ROUNDS;
	struct side side[2];
	unsigned i, j, round;

	for (i = 0; i < 2; i++)
		side_open(&side[i], &ways[NEVER + i]);
	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		for (j = 0; j < 4; j++)
			side_batch(&side[j % 2], lens[i]);
		for (round = 0; round < rounds; round++) {
			/* each process is first in turn */
			for (j = round; j < round + 2; j++)
				us[j % 2][round] =
					side_batch(&side[j % 2], lens[i]);
			ratio[round] = us[1][round] / us[0][round];
		}
		printf("overhead %zu %.2f %.2f %.4f\n", lens[i],
		       ft_median(us[0], rounds), ft_median(us[1], rounds),
		       ft_median(ratio, rounds));
	}
	for (i = 0; i < 2; i++) {
		FT_CHECK(write(side[i].to, &end, sizeof(end)) == sizeof(end),
			 "a process ended");
		helper_ended(side[i].pid);
	}
}

/* ---- all of them --------------------------------------------------------- */

static void all_memory(void)
{
	static const size_t lens[] = { MIB / 16, MIB / 4, MIB, LEN_MAX };
	unsigned i, way, reuse;

	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		for (reuse = 0; reuse < 2; reuse++) {
			for (way = EACH; way <= PREDICT; way++)
				helper_in_child(memory,
						&(struct run){
							.way = &ways[way],
							.len = lens[i],
							.reuse = !reuse,
							.shows = lens[i] ==
								 LEN_MAX });
		}
	}
}

static void all_limited(void)
{
	static const unsigned order[] = { KEPT, CACHE, NEVER, PREDICT };
	unsigned i;

	for (i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		helper_in_child(limited, &(struct run){ .way = &ways[order[i]],
							.len = MIB });
}

int main(int argc, char **argv)
{
	const char *only = "";
	int op;

	while ((op = getopt(argc, argv, FT_OPTS "o:")) != -1) {
		if (op == 'o')
			only = optarg;
		else
			ft_parse_opt(argv[0], op, optarg);
	}
	core = ft_opts.prov ? ft_opts.prov : "tcp";
	turns = ft_iters(TURNS);
	FT_CHECK(turns && turns <= TURNS, "%u turns", turns);
	if (!*only || !strcmp(only, "memory"))
		all_memory();
	if (!*only || !strcmp(only, "limit"))
		all_limited();
	if (!*only || !strcmp(only, "overhead"))
		overhead();
	return 0;
}
