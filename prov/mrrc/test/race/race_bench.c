/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ./bench.sh race: many lookups against every way to replace a page, and the
 * cost of that safety.
 *
 * A registration here remembers the words that the pages held when it was made.
 * The thread that owns an address writes a new word into each page as soon as
 * the old pages are gone; a lookup that begins after the write and is served by
 * a registration with another word is a stale hit.
 *
 * Prices are the times of a hit and its release, of an munmap, and of a
 * malloc/free of 256 KiB, without a monitor, with userfaultfd alone, and with
 * hooks. The three cases are measured in turn; the medians are printed.
 *
 *	race_bench [LOOKUPS [SECONDS]]
 *
 * Last line: RESULT LOOKUPS STALE BLIND-STALE, then three numbers for each
 * price. Exit status 77: cannot run here.
 */
#include "config.h"

#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "test/race/duel_way.h"
#include "sys/cache/cache_mt.h"
#include "sys/hooks/libc_hooks.h"
#include "sys/proof/prove.h"
#include "sys/base/vm.h"

#define RW	      (PROT_READ | PROT_WRITE)
#define ANON	      (MAP_PRIVATE | MAP_ANONYMOUS)
#define BURST	      24u /* lookups before and after a change */
#define BLIND_SECONDS 60
#define BLOCK	      ((size_t) 256 << 10)
#define ROUNDS	      15u
#define SAMPLES	      100u /* samples of a round */
#define HITS	      100u /* hits of a sample */

enum guard { GUARD_NONE, GUARD_UFFD, GUARD_HOOKS, GUARDS };
static const char *const guard_names[GUARDS] = { "unmonitored", "uffd alone",
						 "uffd + hooks" };

/* The price with several threads is last, as its effects stay. */
enum price { PRICE_HIT, PRICE_MUNMAP, PRICE_MALLOC, PRICE_THREADS, PRICES };
static const char *const price_names[PRICES] = { "hit, one thread",
						 "munmap of 256 KiB",
						 "malloc + free, 256 KiB",
						 "hit, several threads" };

struct setup {
	struct mrrc_mon *mon;
	struct mrrc_cache_mt *cache;
};

static size_t page;
static struct mrrc_mon_ops blind_ops;
static uint64_t word; /* each value is written only once */
static unsigned long lookups, stale;

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * UINT64_C(1000000000) + time.tv_nsec;
}

static void check(bool right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "race_bench: %s\n", what);
	exit(1);
}

/* ---- registrations ---- */

/* A cookie of 0 means that the pages do not all hold the same word. */
static int note_reg(void *arg, uintptr_t start, size_t len,
		    enum mrrc_access access, void **cookie, void **desc)
{
	const uint64_t first = *(volatile uint64_t *) start;
	uint64_t same = first;
	uintptr_t at;

	for (at = start; at < start + len; at += page) {
		if (*(volatile uint64_t *) at != first)
			same = 0;
	}
	*cookie = (void *) same;
	*desc = NULL;
	return 0;
}

static void note_dereg(void *arg, struct mrrc_region *const *regions,
		       size_t count)
{
}

static const struct mrrc_reg_ops note_ops = {
	.reg = note_reg,
	.dereg = note_dereg,
};

static int setup_open(struct setup *setup, enum guard guard, bool blind)
{
	struct mrrc_cache_attr attr = { .ops = &note_ops };
	char why[MRRC_MON_REASON];

	blind_ops = guard == GUARD_NONE ? mrrc_mon_manual_ops :
					  mrrc_mon_uffd_ops;
	if (blind)
		blind_ops.check = mrrc_mon_manual_ops.check;
	if (mrrc_mon_open_ops(&blind_ops, why, &setup->mon)) {
		fprintf(stderr, "race_bench: %s\n", why);
		return -1;
	}
	if (guard == GUARD_HOOKS && mrrc_mon_hook(setup->mon, why)) {
		fprintf(stderr, "race_bench: no hooks: %s\n", why);
		mrrc_mon_close(setup->mon);
		return -1;
	}
	attr.mon = setup->mon;
	check(!mrrc_cache_mt_open(&attr, &setup->cache), "no cache");
	return 0;
}

static void setup_close(struct setup *setup)
{
	check(!mrrc_cache_mt_close(setup->cache), "regions are in use");
	mrrc_mon_close(setup->mon);
}

static struct mrrc_region *get(struct setup *setup, void *ptr, size_t len)
{
	struct mrrc_region *region;

	check(!mrrc_cache_mt_get(setup->cache, ptr, len, MRRC_RW, &region),
	      "no registration");
	return region;
}

/* ---- duels ---- */

struct run {
	struct setup setup;
	unsigned long until; /* number of lookups after which the duel ends */
	uint64_t end;	     /* time at which the duel ends */
	bool once;	     /* the duel ends at the first stale hit */
};

static void run_use(void *arg, char *ptr, unsigned pages, bool fresh)
{
	struct run *run = arg;
	struct mrrc_region *region;
	unsigned i;

	word++;
	if (fresh) {
		for (i = 0; i < pages; i++)
			*(volatile uint64_t *) (ptr + i * page) = word;
	} else {
		/* The page keeps its old word if it was not replaced. */
		word = *(volatile uint64_t *) ptr;
		if (!word)
			run_use(arg, ptr, pages, true);
	}
	for (i = 0; i < BURST; i++) {
		region = get(&run->setup, ptr, pages * page);
		stale += (uint64_t) region->cookie != word;
		mrrc_cache_mt_put(run->setup.cache, region);
	}
	lookups += BURST;
}

static bool run_over(void *arg)
{
	const struct run *run = arg;

	return lookups >= run->until || now_ns() >= run->end ||
	       (run->once && stale);
}

static void count_heading(const char *what)
{
	printf("%-24s %10s %10s %10s %10s %8s\n", what, "lookups", "hits",
	       "changes", "us/change", "stale");
}

/* ---- code that unmaps by system calls of its own ---- */

static bool past_hooks(const struct duel_move *move)
{
	return !strncmp(move->name, "raw", 3);
}

/* Returns whether a hit asks the kernel. */
static bool asks(struct setup *setup)
{
	static uint64_t own[2 * BLOCK / sizeof(uint64_t)];
	struct mrrc_stats before, after;
	char *const ptr = (char *) (((uintptr_t) own + BLOCK) & ~(BLOCK - 1));
	int i;

	for (i = 0; i < 3; i++) {
		mrrc_cache_mt_stats(setup->cache, &before);
		mrrc_cache_mt_put(setup->cache, get(setup, ptr, page));
		mrrc_cache_mt_stats(setup->cache, &after);
	}
	return after.value[MRRC_STAT_PROBES] != before.value[MRRC_STAT_PROBES];
}

/* Trust matters, as a libc thread exists that could have unmapped memory. */
static bool trusted(void)
{
	char why[MRRC_TRUST_WHY];
	int i;

	for (i = 0; !mrrc_trusted() && i < 20000; i++) {
		mrrc_prove_rent(~0u);
		usleep(1000);
	}
	mrrc_prove_why(why);
	if (!mrrc_trusted())
		printf("(asked: %s)\n", why);
	return mrrc_trusted();
}

static void count_move(const struct duel_move *move, enum mrrc_mon_probe probe,
		       const struct duel_way *way, unsigned long total,
		       double seconds)
{
	const unsigned long first = lookups, bad = stale;
	const uint64_t began = now_ns();
	struct run run = {
		.until = first + total,
		.end = began + (uint64_t) (seconds * 1e9),
	};
	struct mrrc_stats stats;

	check(!setup_open(&run.setup, GUARD_HOOKS, false), "set-up");
	if (!mrrc_mon_set_probe(run.setup.mon, probe))
		printf("(probed all the same)\n");
	if (probe == MRRC_PROBE_AUTO && trusted())
		check(!asks(&run.setup), "a hit asks though all is proven");
	if (way && !way->come()) {
		printf("(%s: not to be had here)\n", move->name);
		setup_close(&run.setup);
		return;
	}
	check(!way || asks(&run.setup), "a hit does not ask");
	duel_fight(move, way ? way->thread : NULL, run_use, run_over, &run);
	check(!way || asks(&run.setup), "a hit does not ask any more");
	if (way && way->go)
		way->go();
	mrrc_cache_mt_stats(run.setup.cache, &stats);
	printf("%-24s %10lu %10lu %10lu %10.1f %8lu\n", move->name,
	       lookups - first, stats.value[MRRC_STAT_HITS],
	       (lookups - first) / (2 * BURST),
	       (now_ns() - began) / 1e3 / ((lookups - first) / (2 * BURST)),
	       stale - bad);
	setup_close(&run.setup);
}

/*
 * A hit makes no system call before code is loaded that enters the kernel by
 * itself, and one system call after such code is loaded. Moves by libc alone
 * never make hits ask the kernel.
 */
static void count_default(unsigned long total, double seconds)
{
	const unsigned moves = duel_count + duel_way_count;
	const struct duel_move *move;
	unsigned i;

	count_heading("the default");
	for (i = 0; i < duel_count; i++) {
		move = &duel_moves[i];
		count_move(move, MRRC_PROBE_AUTO,
			   past_hooks(move) ? &duel_library : NULL,
			   total / moves, seconds / moves);
	}
	for (i = 0; i < duel_way_count; i++)
		count_move(&duel_ways[i].move, MRRC_PROBE_AUTO, &duel_ways[i],
			   total / moves, seconds / moves);
}

/* None of these moves unmaps past the hooks. */
static void count_hooked(unsigned long total, double seconds)
{
	struct mrrc_libc_hooks_state state;
	unsigned i, moves = 0;

	for (i = 0; i < duel_count; i++)
		moves += !past_hooks(&duel_moves[i]);
	count_heading("hooks relied on");
	for (i = 0; i < duel_count; i++) {
		if (!past_hooks(&duel_moves[i]))
			count_move(&duel_moves[i], MRRC_PROBE_HOOKED, NULL,
				   total / moves, seconds / moves);
	}
	mrrc_libc_hooks_state(&state);
	printf("%s\n\n",
	       state.surprised ?
		       "(the kernel had something to report: probed from then "
		       "on)" :
		       "(the kernel had nothing to report: no hit was probed)");
}

static unsigned long count_blind(void)
{
	struct run run = { .until = ~0UL, .once = true };
	const unsigned long first = lookups, bad = stale;
	unsigned long found;

	check(!setup_open(&run.setup, GUARD_UFFD, true), "set-up");
	run.end = now_ns() + BLIND_SECONDS * UINT64_C(1000000000);
	stale = 0;
	duel_library.come();
	duel_fight(&duel_blind, NULL, run_use, run_over, &run);
	duel_library.go();
	printf("%-24s %10lu %10s %10s %10s %8lu\n", "no protection",
	       lookups - first, "", "", "", stale);
	found = stale;
	stale = bad;
	lookups = first;
	setup_close(&run.setup);
	return found;
}

/* ---- prices ---- */

static void price_hit(struct setup *setup, double *sample)
{
	static char *ptr;
	uint64_t began;
	unsigned i, k;

	if (!ptr)
		ptr = mmap(NULL, BLOCK, RW, ANON, -1, 0);
	memset(ptr, 1, BLOCK);
	mrrc_cache_mt_put(setup->cache, get(setup, ptr, BLOCK));
	for (i = 0; i < SAMPLES; i++) {
		began = now_ns();
		for (k = 0; k < HITS; k++)
			mrrc_cache_mt_put(setup->cache, get(setup, ptr, BLOCK));
		sample[i] = (double) (now_ns() - began) / HITS;
	}
}

static void *wait_for(void *arg)
{
	sem_wait(arg);
	return NULL;
}

/* Another thread could unmap memory, so hits have to ask the kernel. */
static void price_threads(struct setup *setup, double *sample)
{
	pthread_t thread;
	sem_t done;

	sem_init(&done, 0, 0);
	check(!pthread_create(&thread, NULL, wait_for, &done), "a thread");
	price_hit(setup, sample);
	sem_post(&done);
	pthread_join(thread, NULL);
	sem_destroy(&done);
}

static void price_munmap(struct setup *setup, double *sample)
{
	uint64_t began;
	unsigned i;
	char *ptr;

	for (i = 0; i < SAMPLES; i++) {
		ptr = mmap(NULL, BLOCK, RW, ANON, -1, 0);
		memset(ptr, 1, BLOCK);
		mrrc_cache_mt_put(setup->cache, get(setup, ptr, BLOCK));
		began = now_ns();
		munmap(ptr, BLOCK);
		sample[i] = now_ns() - began;
		/* The cache gets no other report of the unmap. */
		mrrc_cache_mt_invalidate(setup->cache, ptr, BLOCK);
	}
}

static void price_malloc(struct setup *setup, double *sample)
{
	/* The compiler must not know that free() ended the pointer. */
	volatile uintptr_t at;
	uint64_t began;
	unsigned i;
	char *ptr;

	for (i = 0; i < SAMPLES; i++) {
		began = now_ns();
		ptr = malloc(BLOCK);
		sample[i] = now_ns() - began;
		at = (uintptr_t) ptr;
		memset(ptr, 1, BLOCK);
		mrrc_cache_mt_put(setup->cache, get(setup, ptr, BLOCK));
		began = now_ns();
		free(ptr);
		sample[i] += now_ns() - began;
		mrrc_cache_mt_invalidate(setup->cache, (void *) at, BLOCK);
	}
}

static void (*const price_of[PRICES])(struct setup *setup, double *sample) = {
	price_hit, price_munmap, price_malloc, price_threads
};

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *) a;
	const double y = *(const double *) b;

	return (x > y) - (x < y);
}

/* Single samples are far off on a busy machine, so medians of all are used. */
static void prices(double median[PRICES][GUARDS])
{
	static double sample[GUARDS][ROUNDS * SAMPLES];
	const size_t count = ROUNDS * SAMPLES;
	struct setup setup;
	unsigned price, guard, round;

	for (price = 0; price < PRICES; price++) {
		for (round = 0; round < ROUNDS * GUARDS; round++) {
			guard = round % GUARDS;
			check(!setup_open(&setup, guard, false), "set-up");
			price_of[price](&setup,
					sample[guard] +
						round / GUARDS * SAMPLES);
			setup_close(&setup);
		}
		for (guard = 0; guard < GUARDS; guard++) {
			qsort(sample[guard], count, sizeof(double), by_size);
			median[price][guard] = sample[guard][count / 2];
		}
	}
}

static void print_prices(double median[PRICES][GUARDS])
{
	int price, guard;

	printf("%-24s", "nanoseconds");
	for (guard = 0; guard < GUARDS; guard++)
		printf(" %14s", guard_names[guard]);
	for (price = 0; price < PRICES; price++) {
		printf("\n%-24s", price_names[price]);
		for (guard = 0; guard < GUARDS; guard++)
			printf(" %14.0f", median[price][guard]);
	}
	printf("\n\n");
}

int main(int argc, char **argv)
{
	unsigned long total = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000000;
	double seconds = argc > 2 ? strtod(argv[2], NULL) : 150;
	double median[PRICES][GUARDS];
	unsigned long blind;
	struct setup setup;
	int price, guard;

	page = mrrc_vm_page();
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (setup_open(&setup, GUARD_HOOKS, false))
		return 77;
	setup_close(&setup);

	/* Otherwise malloc starts to keep blocks of this size. */
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	prices(median);
	print_prices(median);
	/* The heap must not grow during the duel over its end. */
	mallopt(M_TOP_PAD, 1 << 20);
	free(malloc(1 << 16));
	/* Raw system calls end the trust in hooks, so hooks come first. */
	count_hooked(total / 2, seconds / 2);
	count_default(total / 2, seconds / 2);
	blind = count_blind();
	printf("RESULT %lu %lu %lu", lookups, stale, blind);
	for (price = 0; price < PRICES; price++) {
		for (guard = 0; guard < GUARDS; guard++)
			printf(" %.0f", median[price][guard]);
	}
	printf("\n");
	return 0;
}
