/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * levy_bench: measures the time to get registered memory, by fi_mr_alloc and by
 * malloc + fi_mr_reg, as in levy2020; and the allocator's blocks in pages of
 * each kind, as in mietke2006, table 3.
 *
 *	reg	malloc, then register and deregister	(figures 1, 2)
 *	new	acquire, nothing is released in between	(figures 3, 4)
 *	reuse	acquire what was released before	(figure 5)
 *	put	acquire, and write it to the peer	(figure 6)
 *	pages	a block of a heap: map and register
 *
 * One process has both ends. The two allocators alternate trial by trial, and
 * each is the first in every other trial. Registrations are for remote writing,
 * as in the paper; the provider does not cache such registrations, and
 * libfabric's own cache is off.
 *
 * Prints "reg SIZE register deregister", "new|reuse|put SIZE alloc malloc",
 * microseconds of one trial, and "pages SIZE KIND us deregister". The time of
 * reading the clock is subtracted.
 */
#include "ft_bench.h"

#include <malloc.h>

#define ACCESS	  (FI_WRITE | FI_REMOTE_WRITE)
#define MIN_SIZE  128UL
#define MAX_SIZE  (2UL << 20)
#define NEW_BYTES (512UL << 20) /* maximum bytes at once */
#define PUT_BYTES (48UL << 20)	/* maximum bytes written */

static struct ft_pair pair;
static struct fid_domain *domain;
static struct fid_mr *target_mr;
static uint64_t target;
static double clock_us;
static unsigned trials = 1000;

/* Measures the shortest time that the clock can show. */
static void clock_measure(void)
{
	double took;
	unsigned i;

	clock_us = 1e9;
	for (i = 0; i < 1000; i++) {
		took = ft_time_us();
		took = ft_time_us() - took;
		if (took < clock_us)
			clock_us = took;
	}
}

static double since(double start)
{
	double took = ft_time_us() - start - clock_us;

	return took > 0.001 ? took : 0.001;
}

static struct fid_mr *reg(void *buf, size_t len)
{
	static uint64_t key = 1 << 20;
	struct fid_mr *mr;

	FT_CALL(fi_mr_reg(domain, buf, len, ACCESS, 0, key++, 0, &mr, NULL));
	return mr;
}

/* ---- the two sides --------------------------------------------------------- */

struct memory {
	void *buf;
	struct fid_mr *mr;
};

static struct fid_mr_heap *heap;

static void get_alloc(size_t len, struct memory *memory)
{
	FT_CALL(fi_mr_heap_alloc(heap, len, 0, &memory->buf, &memory->mr));
}

static void put_alloc(struct memory *memory)
{
	FT_CALL(fi_mr_free(domain, memory->buf));
}

static void get_malloc(size_t len, struct memory *memory)
{
	memory->buf = malloc(len);
	FT_CHECK(memory->buf, "malloc");
	memory->mr = reg(memory->buf, len);
}

static void put_malloc(struct memory *memory)
{
	FT_CALL(fi_close(&memory->mr->fid));
	free(memory->buf);
}

static const struct side {
	void (*get)(size_t len, struct memory *memory);
	void (*put)(struct memory *memory);
} sides[2] = { { get_alloc, put_alloc }, { get_malloc, put_malloc } };

static void open_heap(size_t block_size, uint64_t flags)
{
	struct fi_mr_heap_attr attr = {
		.size = sizeof(attr),
		.access = FI_REMOTE_WRITE,
		.flags = flags,
		.block_size = block_size,
		.idle_ms = FI_MR_HEAP_KEEP,
	};

	FT_CALL(fi_mr_heap_open(domain, &attr, &heap, NULL));
}

static double acquire(const struct side *side, size_t len,
		      struct memory *memory)
{
	double start = ft_time_us();

	side->get(len, memory);
	return since(start);
}

static double acquire_and_write(const struct side *side, size_t len,
				struct memory *memory)
{
	double start = ft_time_us();
	struct ft_comp comp;

	side->get(len, memory);
	FT_POST(&pair.c,
		fi_write(pair.c.ep, memory->buf, len, fi_mr_desc(memory->mr), 0,
			 target, fi_mr_key(target_mr), memory));
	ft_wait(&pair.c, FT_TX, &comp);
	return since(start);
}

/* Returns the number of trials: fewer for large sizes. */
static unsigned trials_of(size_t len, size_t bytes)
{
	return trials * len > bytes ? bytes / len : trials;
}

/* ---- what is measured ------------------------------------------------------ */

static void run_reg(size_t len)
{
	double start, took;
	struct memory memory;
	unsigned i;

	for (i = 0; i < trials; i++) {
		memory.buf = malloc(len);
		FT_CHECK(memory.buf, "malloc");
		start = ft_time_us();
		memory.mr = reg(memory.buf, len);
		took = since(start);
		start = ft_time_us();
		FT_CALL(fi_close(&memory.mr->fid));
		printf("reg %zu %.3f %.3f\n", len, took, since(start));
		free(memory.buf);
	}
}

static void run_new(size_t len)
{
	const unsigned count = trials_of(len, NEW_BYTES);
	struct memory *all = calloc(count * 2, sizeof(*all));
	unsigned i, n, s;
	double us[2];

	FT_CHECK(all, "calloc");
	open_heap(0, 0);
	/* malloc, too, gets new memory, not memory that was freed before */
	malloc_trim(0);
	for (i = 0; i < count; i++) {
		for (n = 0; n < 2; n++) {
			s = (i + n) % 2;
			us[s] = acquire(&sides[s], len, &all[2 * i + s]);
		}
		printf("new %zu %.3f %.3f\n", len, us[0], us[1]);
	}
	for (i = 0; i < count * 2; i++)
		sides[i % 2].put(&all[i]);
	FT_CALL(fi_mr_heap_close(heap));
	free(all);
}

static void run_again(const char *name, size_t len, unsigned count,
		      double (*trial)(const struct side *, size_t,
				      struct memory *))
{
	struct memory memory;
	unsigned i, n, s;
	double us[2];

	open_heap(0, 0);
	for (i = 0; i < count + 10; i++) {
		for (n = 0; n < 2; n++) {
			s = (i + n) % 2;
			us[s] = trial(&sides[s], len, &memory);
			sides[s].put(&memory);
		}
		/* the first trials bring the memory */
		if (i >= 10)
			printf("%s %zu %.3f %.3f\n", name, len, us[0], us[1]);
	}
	FT_CALL(fi_mr_heap_close(heap));
}

/* Measures a heap of one block, of pages of this kind if the system has any. */
static void run_pages(size_t len, const char *name, uint64_t flag)
{
	struct fi_mr_query_attr attr = { .size = sizeof(attr) };
	struct memory memory;
	double took, start;
	unsigned i;

	for (i = 0; i < trials; i++) {
		open_heap(len, flag);
		took = acquire(&sides[0], len, &memory);
		FT_CALL(fi_mr_query(domain, memory.buf, &attr));
		FT_CHECK(attr.block_len == len, "a block of %zu bytes",
			 attr.block_len);
		put_alloc(&memory);
		start = ft_time_us();
		FT_CALL(fi_mr_heap_close(heap));
		printf("pages %zu %s %zu %.3f %.3f\n", len, name,
		       attr.page_size, took, since(start));
	}
}

static bool wanted(const char *list, const char *name)
{
	return !list || strstr(list, name);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	const char *only = NULL;
	static char peer[MAX_SIZE];
	size_t len;
	int op;

	ft_opts.timeout = 1800;
	while ((op = getopt(argc, argv, "n:o:" FT_OPTS)) != -1) {
		switch (op) {
		case 'n':
			trials = (unsigned) atoi(optarg);
			break;
		case 'o':
			only = optarg;
			break;
		default:
			ft_parse_opt(argv[0], op, optarg);
		}
	}
	setenv("FI_MR_CACHE_MAX_COUNT", "0", 1);
	setenv("FI_OFI_MRRC_ALLOC_MAX_SIZE", "0", 1);
	ft_start(argv[0]);
	ft_pair_open(&pair, &attr);
	domain = pair.c.dom->domain;
	target_mr = ft_reg(pair.s.dom, peer, sizeof(peer), FI_REMOTE_WRITE);
	target = ft_raddr(pair.s.dom, peer);
	clock_measure();
	printf("clock %.3f\n", clock_us);
	for (len = MIN_SIZE; len <= MAX_SIZE; len *= 2) {
		ft_stage("%zu bytes", len);
		if (wanted(only, "reg"))
			run_reg(len);
		if (wanted(only, "new"))
			run_new(len);
		if (wanted(only, "reuse"))
			run_again("reuse", len, trials, acquire);
		if (wanted(only, "put"))
			run_again("put", len, trials_of(len, PUT_BYTES),
				  acquire_and_write);
	}
	for (len = 2UL << 20; wanted(only, "pages") && len <= 64UL << 20;
	     len *= 2) {
		ft_stage("blocks of %zu bytes", len);
		run_pages(len, "4K", FI_MR_ALLOC_BASE);
		run_pages(len, "THP", FI_MR_ALLOC_THP);
		run_pages(len, "2M", FI_MR_ALLOC_HUGE(21));
	}
	FT_CALL(fi_close(&target_mr->fid));
	ft_pair_close(&pair);
	return 0;
}
