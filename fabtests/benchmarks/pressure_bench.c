/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * pressure_bench: measures RMA writes from more memory than the limit of
 * registered bytes. Buffers are drawn from working sets of 0.5 to 4 times the
 * limit, evenly or by Zipf's law, of one size or of mixed sizes; one write is
 * made at a time.
 *
 *   each    the application registers the buffer of each write, and closes it
 *   cache   the same, over libfabric's own cache
 *   null    no descriptor, over ofi_mrrc
 *
 * Each of the three ways has a process with both endpoints, and draws the same
 * buffers. The processes take turns of a few writes, so that disturbances of
 * the machine affect all ways. Each set of buffers has three phases:
 *
 *   whole   the run from new domains and buffers on, first uses included
 *   warm    further writes, until the state is stable: if the set fits, until
 *           at most 1 in 32 buffers is registered or copied; otherwise until
 *           ofi_mrrc evicts, and both register and copy at a constant rate
 *   steady  writes after that
 *
 * Prints a line of 18 words for each set:
 *
 *   size, set, draw
 *   steady: microseconds of a write of the three, and null / cache
 *   whole: microseconds of a write of cache and null, and null / cache
 *   whole: number of writes, of registrations of cache and null, and of
 *          copies of null
 *   warm: number of writes, with a + if the state did not become stable
 *   steady: registrations of cache and of null, and copies, of 100 writes
 */
#include "ft_bench.h"
#include "pressure_set.h"
#include "reg_count.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

enum mode { EACH, CACHE, NONE, MODES };
static const char *const modes[MODES] = { "each", "cache", "null" };

struct work {
	const char *name;
	size_t size; /* 0: mixed sizes */
	/* in phase whole: uses of each buffer; maximum number of writes */
	unsigned uses, whole;
	/* maximum of phase warm; number of phase steady */
	unsigned warm, steady;
	unsigned ops; /* number of writes in a turn */
	bool few;     /* slow: do not use every set */
};

static const struct work works[] = {
	{ "4K", 4096, 16, 4096, 8192, 600, 12, false },
	{ "16K", 16384, 16, 4096, 4096, 300, 6, false },
	{ "64K", 65536, 8, 1024, 2048, 120, 3, false },
	{ "1M", 1UL << 20, 1, 32, 64, 16, 1, false },
	{ "4M", 4UL << 20, 1, 8, 8, 4, 1, true },
	{ "mixed", 0, 3, 100, 200, 30, 2, false },
};

static const struct {
	const char *name;
	unsigned halves;
	bool few;
} sets[] = {
	{ "0.5", 1, true },
	{ "1", 2, false },
	{ "2", 4, true },
	{ "4", 8, false },
};

static struct {
	size_t bytes;
	unsigned regions;
	const char *core, *only;
	enum mode mode; /* mode of this process */
} opts = { .bytes = 32UL << 20, .regions = 64, .core = "verbs" };

/* Commands to a child process. */
enum what { OPEN, DRAWN, IN_TURN, CLOSE };

struct order {
	enum what what;
	unsigned count; /* writes */
	unsigned w, s;
	bool zipf;
	uint64_t seed; /* seed of the next draws; 0: continue the draws */
};

struct answer {
	double us;
	unsigned buffers; /* number of buffers in the set */
	/* counters since OPEN */
	uint64_t registered, copied, evicted;
};

static struct {
	int ask, told;
	pid_t pid;
} child[MODES];

static struct ft_pair pair;
static struct fid_mr *target_mr;
static char *dest;
static uint64_t target, counted;

static bool skipped(unsigned w, unsigned s)
{
	return (works[w].few && !sets[s].few) ||
	       (opts.only && strcmp(opts.only, works[w].name));
}

/* ---- a child process: writes on command ---- */

static void cell_open(struct set *set, const struct order *order)
{
	const unsigned halves = sets[order->s].halves;
	struct ft_attr attr = FT_ATTR;

	set_open(set, works[order->w].size, opts.bytes / 2 * halves,
		 opts.regions * halves / 2);
	ft_pair_open(&pair, &attr);
	target_mr = ft_reg(&pair.dom[0], dest, SET_MAX_SIZE, FI_REMOTE_WRITE);
	target = ft_raddr(&pair.dom[0], dest);
	counted = reg_count();
}

static void cell_close(struct set *set)
{
	FT_CALL(fi_close(&target_mr->fid));
	ft_pair_close(&pair);
	set_close(set);
}

static void write_one(char *buf, size_t len)
{
	struct fid_mr *mr = NULL;
	struct ft_comp comp;

	if (opts.mode != NONE)
		FT_CALL(fi_mr_reg(pair.c.dom->domain, buf, len, FI_WRITE, 0, 0,
				  0, &mr, NULL));
	FT_POST(&pair.c,
		fi_write(pair.c.ep, buf, len, mr ? fi_mr_desc(mr) : NULL, 0,
			 target, fi_mr_key(target_mr), buf));
	ft_wait(&pair.c, FT_TX, &comp);
	if (mr)
		FT_CALL(fi_close(&mr->fid));
}

static void write_some(struct set *set, const struct order *order)
{
	unsigned i, k;

	for (i = 0; i < order->count; i++) {
		k = order->what == DRAWN ? set_draw(set, order->zipf) :
					   set->next++ % set->count;
		write_one(set->buf[k], set->len[k]);
	}
}

static void child_do(struct set *set, const struct order *order)
{
	struct fi_mrrc_stats st = { .size = sizeof(st) };
	struct answer answer = { 0 };
	double start;

	if (order->seed)
		set_seed(order->seed);
	switch (order->what) {
	case OPEN:
		cell_open(set, order);
		break;
	case CLOSE:
		cell_close(set);
		break;
	default:
		start = ft_time_us();
		write_some(set, order);
		answer.us = ft_time_us() - start;
		if (opts.mode == NONE)
			FT_CALL(fi_mrrc_stats_read(pair.c.dom->domain, &st));
	}
	answer.buffers = set->count;
	answer.registered = reg_count() - counted;
	answer.copied = st.bounces;
	answer.evicted = st.evictions;
	FT_CHECK(write(STDOUT_FILENO, &answer, sizeof(answer)) ==
			 sizeof(answer),
		 "write");
}

/* Reads all code from its files now, not at its first use. */
static void read_files(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[512], rights;

	FT_CHECK(maps, "maps");
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %c", &start, &end, &rights) == 3 &&
		    rights == 'r' && strchr(line, '/'))
			madvise((void *) start, end - start,
				MADV_POPULATE_READ);
	}
	fclose(maps);
}

static void child_main(enum mode mode)
{
	struct ft_attr attr = FT_ATTR;
	char bytes[32], regions[32], prov[64];
	struct set set = { 0 };
	struct ft_pair stays;
	struct order order;

	opts.mode = mode;
	snprintf(bytes, sizeof(bytes), "%zu", opts.bytes);
	snprintf(regions, sizeof(regions), "%u", opts.regions);
	setenv("FI_MR_CACHE_MAX_SIZE", bytes, 1);
	setenv("FI_MR_CACHE_MAX_COUNT", mode == CACHE ? regions : "0", 1);
	setenv("FI_OFI_MRRC_CACHE_MAX_SIZE", bytes, 1);
	setenv("FI_OFI_MRRC_CACHE_MAX_COUNT", regions, 1);
	/* the default of applications, which tests change */
	setenv("FI_OFI_MRRC_BOUNCE_SIZE", "64K", 0);
	snprintf(prov, sizeof(prov), "%s%s", opts.core,
		 mode == NONE ? ";ofi_mrrc" : "");
	ft_opts.prov = prov;
	ft_start("pressure_bench");
	/*
	 * this pair stays open, so that the hooks of libc stay, and the
	 * provider checks the process's code only once
	 */
	ft_pair_open(&stays, &attr);
	read_files();
	dest = ft_map(NULL, SET_MAX_SIZE);
	/* the next child may start */
	FT_CHECK(write(STDOUT_FILENO, "", 1) == 1, "write");
	/* the loop ends when the parent closes the pipe, or ends */
	while (read(STDIN_FILENO, &order, sizeof(order)) == sizeof(order))
		child_do(&set, &order);
	ft_pair_close(&stays);
}

/* ---- the parent: one process at a time ---- */

static void start_child(enum mode mode)
{
	int ask[2], told[2];
	enum mode m;
	char ready;

	FT_CHECK(!pipe(ask) && !pipe(told), "pipe");
	child[mode].pid = fork();
	FT_CHECK(child[mode].pid >= 0, "fork");
	if (!child[mode].pid) {
		dup2(ask[0], STDIN_FILENO);
		dup2(told[1], STDOUT_FILENO);
		close(ask[0]);
		close(ask[1]);
		close(told[0]);
		close(told[1]);
		/*
		 * only the parent keeps the pipes to earlier children: a child
		 * ends when the parent ends
		 */
		for (m = EACH; m < mode; m++)
			close(child[m].ask);
		child_main(mode);
		_exit(0);
	}
	close(ask[0]);
	close(told[1]);
	child[mode].ask = ask[1];
	child[mode].told = told[0];
	FT_CHECK(read(told[0], &ready, 1) == 1, "%s has ended", modes[mode]);
}

/* Sometimes a packet is lost, and sent again after a timer of 4 s or more. */
#define LOST_US 4e6

struct cell {
	unsigned w, s;
	bool zipf, lost;
	struct answer last[MODES];
};

static double ask(struct cell *cell, enum mode mode, enum what what,
		  unsigned count, uint64_t seed)
{
	const struct order order = { what,    count,	  cell->w,
				     cell->s, cell->zipf, seed };
	struct answer *answer = &cell->last[mode];

	FT_CHECK(write(child[mode].ask, &order, sizeof(order)) ==
				 sizeof(order) &&
			 read(child[mode].told, answer, sizeof(*answer)) ==
				 sizeof(*answer),
		 "%s has ended", modes[mode]);
	return answer->us;
}

/* Measures us of a write, for each mode from @first on. */
static void in_turns(struct cell *cell, enum mode first, unsigned writes,
		     double *us)
{
	const unsigned number = MODES - first;
	unsigned done, count, turn = 0, m;
	enum mode mode;
	double spent;

	memset(us, 0, MODES * sizeof(*us));
	for (done = 0; done < writes; done += count, turn++) {
		count = works[cell->w].ops;
		if (count > writes - done)
			count = writes - done;
		/* each mode comes first equally often */
		for (m = 0; m < number; m++) {
			mode = first + (m + turn) % number;
			spent = ask(cell, mode, DRAWN, count,
				    done ? 0 : 54321 + cell->s);
			us[mode] += spent / writes;
			cell->lost |= spent >= LOST_US;
		}
	}
}

/* Numbers of registrations and copies since the answer @was. */
enum { OF_CACHE, OF_NULL, COPIED, COUNTS };

static void counts(const struct cell *cell, const struct answer *was,
		   uint64_t *count)
{
	const struct answer *now = cell->last;

	count[OF_CACHE] = now[CACHE].registered - was[CACHE].registered;
	count[OF_NULL] = now[NONE].registered - was[NONE].registered;
	count[COPIED] = now[NONE].copied - was[NONE].copied;
}

static bool alike(uint64_t before, uint64_t now)
{
	const uint64_t more = now > before ? now - before : before - now;

	return more <= before / 8 + 2;
}

/*
 * Writes until the state is stable. Returns false if the state is not stable
 * after the work's maximum number of writes.
 */
static bool warm_up(struct cell *cell, unsigned *writes)
{
	const unsigned buffers = cell->last[NONE].buffers;
	const bool fits = sets[cell->s].halves <= 2;
	uint64_t before[COUNTS] = { 0 }, now[COUNTS];
	struct answer was[MODES];
	bool same;
	unsigned i;

	for (*writes = 0; *writes < works[cell->w].warm; *writes += buffers) {
		memcpy(was, cell->last, sizeof(was));
		for (i = CACHE; i <= NONE; i++)
			ask(cell, i, fits ? IN_TURN : DRAWN, buffers, 0);
		counts(cell, was, now);
		same = fits || cell->last[NONE].evicted;
		for (i = 0; i < COUNTS; i++)
			same &= fits ? now[i] * 32 <= buffers :
				       alike(before[i], now[i]);
		if (same)
			return true;
		memcpy(before, now, sizeof(before));
	}
	return false;
}

struct result {
	double whole[MODES], steady[MODES];
	unsigned writes, warmed; /* writes of phases whole and warm */
	bool same;
	uint64_t count[COUNTS], of_steady[COUNTS];
};

static bool measure(unsigned w, unsigned s, bool zipf, struct result *r)
{
	const struct work *work = &works[w];
	struct cell cell = { .w = w, .s = s, .zipf = zipf };
	struct answer was[MODES] = { 0 };
	unsigned m;

	ft_stage("%s, %s", work->name, sets[s].name);
	for (m = EACH; m < MODES; m++)
		ask(&cell, m, OPEN, 0, 12345 + s);
	r->writes = work->uses * cell.last[NONE].buffers;
	if (r->writes > work->whole)
		r->writes = work->whole;
	in_turns(&cell, CACHE, r->writes, r->whole);
	counts(&cell, was, r->count);
	r->same = warm_up(&cell, &r->warmed);
	memcpy(was, cell.last, sizeof(was));
	in_turns(&cell, EACH, work->steady, r->steady);
	counts(&cell, was, r->of_steady);
	for (m = EACH; m < MODES; m++)
		ask(&cell, m, CLOSE, 0, 0);
	return !cell.lost;
}

static void print(unsigned w, unsigned s, bool zipf, const struct result *r)
{
	unsigned m;

	printf("%s %s %s", works[w].name, sets[s].name, zipf ? "zipf" : "even");
	for (m = EACH; m < MODES; m++)
		printf(" %.2f", r->steady[m]);
	printf(" %.3f %.2f %.2f %.3f %u", r->steady[NONE] / r->steady[CACHE],
	       r->whole[CACHE], r->whole[NONE],
	       r->whole[NONE] / r->whole[CACHE], r->writes);
	for (m = 0; m < COUNTS; m++)
		printf(" %" PRIu64, r->count[m]);
	printf(" %u%s", r->warmed, r->same ? "" : "+");
	for (m = 0; m < COUNTS; m++)
		printf(" %.0f",
		       100.0 * (double) r->of_steady[m] / works[w].steady);
	printf("\n");
}

static void parent_cell(unsigned w, unsigned s, bool zipf)
{
	struct result result;
	unsigned tries;

	for (tries = 0; !measure(w, s, zipf, &result) && tries < 2; tries++)
		;
	print(w, s, zipf, &result);
}

static void stop_child(enum mode mode)
{
	int status;

	close(child[mode].ask);
	FT_CHECK(waitpid(child[mode].pid, &status, 0) > 0 && !status,
		 "%s: status 0x%x", modes[mode], status);
}

int main(int argc, char **argv)
{
	struct result once;
	unsigned w, s, m;
	int op, zipf;

	ft_opts.timeout = 1200;
	while ((op = getopt(argc, argv, "b:n:c:l:" FT_OPTS)) != -1) {
		switch (op) {
		case 'b':
			ft_parse_sizes(optarg, &opts.bytes, 1);
			break;
		case 'n':
			opts.regions = (unsigned) atoi(optarg);
			break;
		case 'c':
			opts.core = optarg;
			break;
		case 'l':
			opts.only = optarg;
			break;
		default:
			ft_parse_opt(argv[0], op, optarg);
		}
	}
	if (opts.regions < 2 || opts.bytes < 2 * SET_MAX_SIZE) {
		fprintf(stderr,
			"%s: the limits must be at least 2 regions and 8M\n",
			argv[0]);
		return 2;
	}
	/* start children before libfabric's libraries are loaded or read */
	signal(SIGPIPE, SIG_IGN);
	for (m = EACH; m < MODES; m++)
		start_child(m);
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* one-time work, such as checking code, is not timed */
	measure(0, 0, false, &once);
	for (w = 0; w < sizeof(works) / sizeof(works[0]); w++) {
		for (s = 0; s < sizeof(sets) / sizeof(sets[0]); s++) {
			for (zipf = 0; zipf < 2 && !skipped(w, s); zipf++)
				parent_cell(w, s, zipf);
		}
	}
	for (m = EACH; m < MODES; m++)
		stop_child(m);
	return 0;
}
