/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * odp_bench: compares on-demand paging, by which a device follows the page
 * tables of the process, with pinned pages. odp_bench makes one RMA write at a
 * time, from memory of four kinds:
 *
 *   reused    8 buffers in turn
 *   replaced  one buffer; its pages are discarded before each write
 *   fresh     memory mapped for each write, and unmapped afterwards
 *   forked    reused; a child process has a copy of the memory, and the parent
 *             has written to its own
 *
 * in six ways, each in another process:
 *
 *   each      the application registers the buffer of each write
 *   cache     the same, over libfabric's own cache
 *   odp-each  each, with FI_VERBS_USE_ODP=1
 *   pinned    all memory is registered once
 *   odp       the same, with FI_VERBS_USE_ODP=1
 *   null      no descriptor, over ofi_mrrc
 *
 * A write's time includes mapping, discarding and unmapping, but not filling.
 * For each buffer size, kind of memory and way, odp_bench prints a line with
 * these three names, the median time of a write, the number of registrations
 * per 100 writes, and the percentage of writes after which the target did not
 * have the data of the source buffer. Ways that the device does not support are
 * left out.
 */
#include "ft_bench.h"
#include "reg_count.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define BUFS   8
#define WRITES 40
#define SLOTS  (BUFS + WRITES) /* buffers in the mapped memory */

enum way { EACH, CACHE, ODP_EACH, PINNED, ODP, NONE, WAYS };
static const char *const ways[WAYS] = { "each",	  "cache", "odp-each",
					"pinned", "odp",   "null" };

enum kind { REUSED, REPLACED, FRESH, FORKED, KINDS };
static const char *const kinds[KINDS] = { "reused", "replaced", "fresh",
					  "forked" };

static const size_t sizes[] = { 1024, 4096, 65536, 1 << 20 };

static struct ft_pair pair;
static struct fid_mr *target, *all;
static char *memory, *dest;
static const char *core = "verbs";
static size_t size, room; /* bytes of a buffer, and of its pages */

static bool is_odp(enum way way)
{
	return way == ODP_EACH || way == ODP;
}

static void set_env(enum way way)
{
	setenv("FI_VERBS_USE_ODP", is_odp(way) ? "1" : "0", 1);
	ft_bench_env(way == NONE  ? FT_NULL_DESC :
		     way == CACHE ? FT_CORE_CACHE :
				    FT_REG_EACH,
		     core);
}

static struct fid_mr *registered(char *buf, size_t len)
{
	struct fid_mr *mr;

	FT_CALL(fi_mr_reg(pair.c.dom->domain, buf, len, FI_WRITE, 0, 0, 0, &mr,
			  NULL));
	return mr;
}

static void write_one(enum way way, char *buf)
{
	struct fid_mr *own = NULL;
	struct ft_comp comp;
	void *desc = NULL;

	if (all)
		desc = fi_mr_desc(all);
	else if (way != NONE)
		desc = fi_mr_desc(own = registered(buf, size));
	FT_POST(&pair.c,
		fi_write(pair.c.ep, buf, size, desc, 0,
			 ft_raddr(pair.s.dom, dest), fi_mr_key(target), NULL));
	ft_wait(&pair.c, FT_TX, &comp);
	if (own)
		FT_CALL(fi_close(&own->fid));
}

static char *slot(unsigned i)
{
	return memory + i % SLOTS * room;
}

static void map_slot(unsigned i, int prot)
{
	FT_CHECK(mmap(slot(i), room, prot,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		      0) == slot(i),
		 "mmap");
}

/*
 * Forks a child that keeps a copy of the memory until the returned pipe is
 * closed.
 */
static int fork_child(pid_t *child)
{
	int end[2];
	char byte;

	FT_CHECK(!pipe(end), "pipe");
	*child = fork();
	FT_CHECK(*child >= 0, "fork");
	if (!*child) {
		close(end[1]);
		_exit(read(end[0], &byte, 1) != 0);
	}
	close(end[0]);
	return end[1];
}

/* Makes write i; returns its time, and whether it brought other data. */
static double measure_one(enum way way, enum kind kind, unsigned i, bool *wrong)
{
	/* each slot of fresh memory is new to the device */
	unsigned k = kind == REPLACED ? 0 : kind == FRESH ? BUFS + i : i % BUFS;
	double start = ft_time_us(), took;
	static char *was;
	unsigned n;

	if (kind == REPLACED)
		madvise(slot(k), room, MADV_DONTNEED);
	else if (kind == FRESH)
		map_slot(k, PROT_READ | PROT_WRITE);
	took = ft_time_us() - start;
	ft_fill(slot(k), size, i + 1);
	was = realloc(was, size);
	FT_CHECK(was, "realloc");
	memcpy(was, slot(k), size);
	start = ft_time_us();
	write_one(way, slot(k));
	if (kind == FRESH)
		munmap(slot(k), room);
	took += ft_time_us() - start;
	/* over tcp the write may not have arrived yet */
	for (n = 0; n < 10000 && memcmp(was, dest, size); n++)
		ft_progress(&pair.s);
	*wrong = n == 10000;
	return took;
}

static void measure(enum way way, enum kind kind)
{
	double took[WRITES];
	unsigned i, stale = 0;
	uint64_t before;
	pid_t child;
	int end = -1, status;
	bool wrong;

	for (i = 0; i < SLOTS; i++) {
		map_slot(i, PROT_READ | PROT_WRITE);
		memset(slot(i), 1, room);
	}
	if (way == PINNED || way == ODP)
		all = registered(memory, SLOTS * room);
	/* do one-time work first, such as connecting or examining code */
	for (i = 0; i < BUFS; i++)
		measure_one(way, REUSED, i, &wrong);
	if (kind == FORKED)
		end = fork_child(&child);
	before = reg_count();
	for (i = 0; i < WRITES; i++) {
		took[i] = measure_one(way, kind, i, &wrong);
		stale += wrong;
	}
	if (is_odp(way) && !reg_count_odp())
		exit(0);
	printf("%zuK %s %s %.2f %.0f %u\n", size >> 10, kinds[kind], ways[way],
	       ft_median(took, WRITES),
	       100.0 * (double) (reg_count() - before) / WRITES,
	       100 * stale / WRITES);
	fflush(stdout);
	if (kind == FORKED) {
		close(end);
		FT_CHECK(waitpid(child, &status, 0) == child && !status,
			 "the child's status is 0x%x", status);
	}
	if (all)
		FT_CALL(fi_close(&all->fid));
	all = NULL;
}

static void run(int way)
{
	struct ft_attr attr = FT_ATTR;
	unsigned k, s;

	set_env(way);
	/*
	 * if the target memory uses on-demand paging, Soft-RoCE (Linux 6.18 and
	 * 7.3) puts each packet of a write at the memory's start
	 */
	reg_count_pin_targets();
	ft_start("odp_bench");
	for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		size = sizes[s];
		room = (size + FT_PAGE - 1) & ~(FT_PAGE - 1);
		memory = ft_map(NULL, SLOTS * room);
		dest = ft_map(NULL, size);
		ft_pair_open(&pair, &attr);
		target = ft_reg(&pair.dom[0], dest, size, FI_REMOTE_WRITE);
		for (k = 0; k < KINDS; k++) {
			ft_stage("%s, %s, %zu bytes", ways[way], kinds[k],
				 size);
			measure(way, k);
		}
		FT_CALL(fi_close(&target->fid));
		ft_pair_close(&pair);
		munmap(memory, SLOTS * room);
		ft_unmap(dest, size);
	}
	exit(0);
}

int main(int argc, char **argv)
{
	int op;

	ft_opts.timeout = 1200;
	while ((op = getopt(argc, argv, "c:" FT_OPTS)) != -1) {
		if (op == 'c')
			core = optarg;
		else
			ft_parse_opt(argv[0], op, optarg);
	}
	return ft_bench_ways(ways, WAYS, run);
}
