/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * pressure_bench: RMA writes from more memory than may stay registered.
 * Buffers are drawn from working sets of 0.5 to 4 times the limit, evenly or
 * by Zipf's law, of one size or mixed; one write at a time.
 *
 *   each    the application registers the buffer of each write, and closes it
 *   cache   the same, over libfabric's own cache
 *   null    no descriptor, over ofi_mrrc
 *
 * One process for each of the three, both ends in it, with the same draws.
 * They take turns of a few writes, so that what changes on the machine hits
 * all. Prints "size set draw each cache null ratio": microseconds of a write,
 * medians of the turns; and null / cache, the median of what it was in each
 * turn, as both have the same to write.
 */
#include "ft_bench.h"

#include <signal.h>
#include <sys/wait.h>

#define MIN_SIZE 4096UL
#define MAX_SIZE (4UL << 20)

#define TURNS 25
#define MODES 3

struct work {
	const char *name;
	size_t size;	     /* 0: mixed */
	unsigned uses, warm; /* of a buffer before the first turn; at most */
	unsigned ops;	     /* writes of a turn */
	bool few;	     /* slow: not every set, and a third as often */
};

static const struct work works[] = {
	{ "4K", 4096, 20, 1500, 12, false },
	{ "16K", 16384, 8, 500, 6, false },
	{ "64K", 65536, 4, 200, 3, false },
	{ "1M", 1UL << 20, 1, 24, 1, false },
	{ "4M", 4UL << 20, 1, 8, 1, true },
	{ "mixed", 0, 1, 50, 2, false },
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
	bool null;
} opts = { .bytes = 32UL << 20, .regions = 64, .core = "verbs" };

static const char *const modes[MODES] = { "each", "cache", "null" };

/* To and from a child: a byte asks for a turn, a double is what it took. */
static struct {
	int ask, told;
	pid_t pid;
} child[MODES];

static struct ft_pair pair;
static struct fid_mr *target_mr;
static uint64_t target;
static uint64_t rng;

/* The same sequence for all processes. */
static double draw(void)
{
	rng = rng * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double) (rng >> 11) / (double) (1ULL << 53);
}

static void write_one(char *buf, size_t len)
{
	struct fid_mr *mr = NULL;
	struct ft_comp comp;

	if (!opts.null)
		FT_CALL(fi_mr_reg(pair.c.dom->domain, buf, len, FI_WRITE, 0, 0,
				  0, &mr, NULL));
	FT_POST(&pair.c,
		fi_write(pair.c.ep, buf, len, mr ? fi_mr_desc(mr) : NULL, 0,
			 target, fi_mr_key(target_mr), buf));
	ft_wait(&pair.c, FT_TX, &comp);
	if (mr)
		FT_CALL(fi_close(&mr->fid));
}

/* Buffers of a set: as many as the limits allow, times what it says. */
struct set {
	unsigned count;
	char **buf;
	size_t *len;
	double *upto; /* Zipf: the sum of 1/rank so far */
	char *map;
	size_t map_len;
};

static size_t size_of(const struct work *work)
{
	size_t size = MIN_SIZE;
	double octaves;

	if (work->size)
		return work->size;
	/* each octave as often as the others */
	for (octaves = 10 * draw(); octaves >= 1; octaves--)
		size *= 2;
	return size + ((size_t) (octaves * (double) size) & ~(FT_PAGE - 1));
}

static void set_open(struct set *set, const struct work *work, unsigned halves)
{
	const size_t max_bytes = opts.bytes / 2 * halves;
	const unsigned max = opts.regions * halves / 2;
	size_t bytes = 0, pos = 0;
	unsigned i;

	*set = (struct set){ .buf = calloc(max, sizeof(char *)),
			     .len = calloc(max, sizeof(size_t)),
			     .upto = calloc(max, sizeof(double)) };
	FT_CHECK(set->buf && set->len && set->upto, "calloc");
	while (set->count < max) {
		set->len[set->count] = size_of(work);
		if (bytes + set->len[set->count] > max_bytes && set->count)
			break;
		bytes += set->len[set->count++];
	}
	/* not beside each other */
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

static void set_close(struct set *set)
{
	ft_unmap(set->map, set->map_len);
	free(set->buf);
	free(set->len);
	free(set->upto);
}

static unsigned pick(const struct set *set, bool zipf)
{
	double at = draw();
	unsigned i = 0;

	if (!zipf)
		return (unsigned) (at * set->count);
	at *= set->upto[set->count - 1];
	while (i + 1 < set->count && set->upto[i] < at)
		i++;
	/* ranks are not neighbours */
	return (unsigned) ((i * 7919ULL) % set->count);
}

static unsigned turns_of(const struct work *work)
{
	return work->few ? TURNS / 3 : TURNS;
}

static bool skipped(unsigned w, unsigned s)
{
	return (works[w].few && !sets[s].few) ||
	       (opts.only && strcmp(opts.only, works[w].name));
}

/* ---- a child: writes when it is asked to ---- */

static void wait_turn(void)
{
	char c;

	/* the parent has gone */
	if (read(STDIN_FILENO, &c, 1) != 1)
		exit(1);
}

static void say_time(double us)
{
	FT_CHECK(write(STDOUT_FILENO, &us, sizeof(us)) == sizeof(us), "write");
}

static void write_some(const struct set *set, bool zipf, unsigned count)
{
	unsigned i, k;

	for (i = 0; i < count; i++) {
		k = pick(set, zipf);
		write_one(set->buf[k], set->len[k]);
	}
}

static void child_cell(const struct work *work, unsigned s, bool zipf)
{
	struct set set;
	unsigned warm, t;
	double start;

	rng = 12345 + 10 * s + zipf;
	set_open(&set, work, sets[s].halves);
	wait_turn();
	warm = work->uses * set.count;
	write_some(&set, zipf, warm < work->warm ? warm : work->warm);
	say_time(0);
	for (t = 0; t < turns_of(work); t++) {
		wait_turn();
		start = ft_time_us();
		write_some(&set, zipf, work->ops);
		say_time((ft_time_us() - start) / work->ops);
	}
	set_close(&set);
}

static void child_main(unsigned mode)
{
	char bytes[32], regions[32], prov[64];
	struct ft_attr attr = FT_ATTR;
	unsigned w, s;
	char *dest;
	int zipf;

	opts.null = mode == 2;
	snprintf(bytes, sizeof(bytes), "%zu", opts.bytes);
	snprintf(regions, sizeof(regions), "%u", opts.regions);
	setenv("FI_MR_CACHE_MAX_SIZE", bytes, 1);
	setenv("FI_MR_CACHE_MAX_COUNT", mode == 1 ? regions : "0", 1);
	setenv("FI_OFI_MRRC_CACHE_MAX_SIZE", bytes, 1);
	setenv("FI_OFI_MRRC_CACHE_MAX_COUNT", regions, 1);
	/* as applications have it; tests do without */
	setenv("FI_OFI_MRRC_BOUNCE_SIZE", "64K", 0);
	snprintf(prov, sizeof(prov), "%s%s", opts.core,
		 opts.null ? ";ofi_mrrc" : "");
	ft_opts.prov = prov;
	ft_start("pressure_bench");
	ft_pair_open(&pair, &attr);
	dest = ft_map(NULL, MAX_SIZE);
	target_mr = ft_reg(&pair.dom[0], dest, MAX_SIZE, FI_REMOTE_WRITE);
	target = ft_raddr(&pair.dom[0], dest);
	say_time(0); /* the next one may start */
	for (w = 0; w < sizeof(works) / sizeof(works[0]); w++) {
		for (s = 0; s < sizeof(sets) / sizeof(sets[0]); s++) {
			for (zipf = 0; zipf < 2 && !skipped(w, s); zipf++)
				child_cell(&works[w], s, zipf);
		}
	}
	FT_CALL(fi_close(&target_mr->fid));
	ft_pair_close(&pair);
}

/* ---- the parent: one process at a time ---- */

static double hear(unsigned mode)
{
	double us;

	FT_CHECK(read(child[mode].told, &us, sizeof(us)) == sizeof(us),
		 "%s has ended", modes[mode]);
	return us;
}

static void start_child(unsigned mode)
{
	int ask[2], told[2];

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
		child_main(mode);
		_exit(0);
	}
	close(ask[0]);
	close(told[1]);
	child[mode].ask = ask[1];
	child[mode].told = told[0];
	hear(mode);
}

static double turn(unsigned mode)
{
	FT_CHECK(write(child[mode].ask, "", 1) == 1, "%s has ended",
		 modes[mode]);
	return hear(mode);
}

static void parent_cell(unsigned w, unsigned s, bool zipf)
{
	const unsigned turns = turns_of(&works[w]);
	double us[MODES][TURNS], ratio[TURNS];
	unsigned t, m;

	ft_stage("%s, %s", works[w].name, sets[s].name);
	for (m = 0; m < MODES; m++)
		turn(m);
	for (t = 0; t < turns; t++) {
		/* each mode comes first in turn */
		for (m = t; m < t + MODES; m++)
			us[m % MODES][t] = turn(m % MODES);
		ratio[t] = us[2][t] / us[1][t];
	}
	printf("%s %s %s", works[w].name, sets[s].name, zipf ? "zipf" : "even");
	for (m = 0; m < MODES; m++)
		printf(" %.2f", ft_median(us[m], turns));
	printf(" %.3f\n", ft_median(ratio, turns));
}

int main(int argc, char **argv)
{
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
	if (opts.regions < 2 || opts.bytes < 2 * MAX_SIZE) {
		fprintf(stderr, "%s: limits of 2 regions and 8M, at least\n",
			argv[0]);
		return 2;
	}
	/* before anything of libfabric's is loaded or read */
	signal(SIGPIPE, SIG_IGN);
	for (m = 0; m < MODES; m++)
		start_child(m);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (w = 0; w < sizeof(works) / sizeof(works[0]); w++) {
		for (s = 0; s < sizeof(sets) / sizeof(sets[0]); s++) {
			for (zipf = 0; zipf < 2 && !skipped(w, s); zipf++)
				parent_cell(w, s, zipf);
		}
	}
	for (m = 0; m < MODES; m++) {
		int status;

		FT_CHECK(waitpid(child[m].pid, &status, 0) > 0 && !status,
			 "%s: status 0x%x", modes[m], status);
	}
	return 0;
}
