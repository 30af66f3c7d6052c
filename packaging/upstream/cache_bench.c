/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cache_bench: libfabric's own registration cache without a device, from the
 * static library of a build tree. A registration records the number that its
 * pages hold, so a hit on pages that were replaced is seen. Prints
 *
 *	stale WAY STALE LOOKUPS MISSES
 *	hit CASE NS
 *
 * or, with "writes" or "reads" as its argument, the pages that it touched for the
 * first time after they were registered, next to a thread that unmaps memory:
 *
 *	faults PAGES
 *
 * NS is the lowest of several rounds, for a search and its release. Two ways of
 * replacing pages: another thread moves a mapping over the buffer; another
 * thread unmaps the buffer, and this one maps memory as soon as it is gone.
 */
#include <config.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <ofi_mr.h>
#include <ofi_util.h>

#define LEN	((size_t) 16384)
#define BUFFERS 100
#define ROUNDS	15
#define HITS	20000
#define FAULTS	20000

static struct ofi_mr_cache cache;
static char *buf, *many;
static uint64_t published;
static unsigned misses;
static bool stop;

static char *map(void *addr, int flags)
{
	void *mem = mmap(addr, LEN, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (mem == MAP_FAILED)
		abort();
	return mem;
}

static int add_region(struct ofi_mr_cache *mr_cache, struct ofi_mr_entry *entry)
{
	(void) mr_cache;
	__atomic_fetch_add(&misses, 1, __ATOMIC_RELAXED);
	*(uint64_t *) entry->data =
		*(volatile uint64_t *) entry->info.iov.iov_base;
	return 0;
}

static void delete_region(struct ofi_mr_cache *mr_cache,
			  struct ofi_mr_entry *entry)
{
	(void) mr_cache;
	(void) entry;
}

/* The number of the pages whose registration a transfer would use. */
static uint64_t use(char *start)
{
	struct ofi_mr_info info = { .iov = { start, LEN } };
	struct ofi_mr_entry *entry;
	uint64_t number;

	if (ofi_mr_cache_search(&cache, &info, &entry))
		abort();
	number = *(uint64_t *) entry->data;
	ofi_mr_cache_delete(&cache, entry);
	return number;
}

/* ---- stale hits ---- */

static void *mover(void *arg)
{
	char *new;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		new = map(NULL, 0);
		*(uint64_t *) new = published + 1;
		if (mremap(new, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, buf) !=
		    buf)
			abort();
		__atomic_add_fetch(&published, 1, __ATOMIC_SEQ_CST);
		usleep((useconds_t) rand() % 50);
	}
	return arg;
}

static void *unmapper(void *arg)
{
	munmap(buf, LEN);
	return arg;
}

static void print_stale(const char *way, unsigned stale, unsigned lookups)
{
	printf("stale %s %u %u %u\n", way, stale, lookups, misses);
	fflush(stdout);
	misses = 0;
}

static void count_moved(unsigned moves)
{
	unsigned lookups = 0, stale = 0;
	const uint64_t end = published + moves;
	pthread_t thread;
	uint64_t least;

	if (pthread_create(&thread, NULL, mover, NULL))
		abort();
	do {
		least = __atomic_load_n(&published, __ATOMIC_SEQ_CST);
		stale += use(buf) < least;
		lookups++;
	} while (least < end);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	print_stale("moved", stale, lookups);
}

static void count_unmapped(unsigned moves)
{
	unsigned i, stale = 0;
	pthread_t thread;
	char *new;

	for (i = 0; i < moves; i++) {
		if (pthread_create(&thread, NULL, unmapper, NULL))
			abort();
		while ((new = map(buf, 0)) != buf)
			munmap(new, LEN);
		*(volatile uint64_t *) buf = ++published;
		stale += use(buf) < published;
		pthread_join(thread, NULL);
	}
	print_stale("unmapped", stale, moves);
}

/* ---- prices ---- */

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double) ts.tv_sec * 1e9 + (double) ts.tv_nsec;
}

static void *hits(void *arg)
{
	double start, best = 1e9;
	unsigned i, round;

	for (round = 0; round < ROUNDS; round++) {
		start = now_ns();
		for (i = 0; i < HITS; i++)
			use(many + i % BUFFERS * 2 * LEN);
		start = (now_ns() - start) / HITS;
		best = start < best ? start : best;
	}
	*(double *) arg = best;
	return NULL;
}

/* Unmaps watched memory that no one looks up. */
static void *noise(void *arg)
{
	char *mem;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		mem = map(NULL, 0);
		use(mem);
		munmap(mem, LEN);
		usleep(100);
	}
	return arg;
}

static void print_hits(const char *name, void *(*beside)(void *), void *arg)
{
	pthread_t thread;
	double ns;

	stop = false;
	if (beside && pthread_create(&thread, NULL, beside, arg))
		abort();
	hits(&ns);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	if (beside)
		pthread_join(thread, NULL);
	printf("hit %s %.0f\n", name, ns);
	fflush(stdout);
}

/* Touches pages of a registered buffer for the first time, so that each faults. */
static int count_faults(bool reads)
{
	unsigned i, sum = 0;
	pthread_t thread;
	char *mem;

	if (pthread_create(&thread, NULL, noise, NULL))
		return 2;
	for (i = 0; i < FAULTS; i++) {
		mem = map(NULL, 0);
		use(mem);
		if (reads)
			sum += *(volatile unsigned char *) (mem + LEN / 2);
		else
			*(volatile unsigned char *) (mem + LEN / 2) = 1;
		munmap(mem, LEN);
	}
	printf("faults %u\n", i + sum);
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	const unsigned moves = argc > 1 ? (unsigned) atoi(argv[1]) : 2000;
	struct ofi_mem_monitor *monitors[OFI_HMEM_MAX] = { NULL };
	struct fi_info *info = NULL;
	double other;
	int ret;

	/* starts the library */
	fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info);
	fi_freeinfo(info);
	monitors[FI_HMEM_SYSTEM] = default_monitor;
	cache.add_region = add_region;
	cache.delete_region = delete_region;
	cache.entry_data_size = sizeof(uint64_t);
	ret = ofi_mr_cache_init(NULL, monitors, &cache);
	if (ret) {
		fprintf(stderr, "cache: %s\n", fi_strerror(-ret));
		return 2;
	}
	buf = map(NULL, 0);
	many = mmap(NULL, BUFFERS * 2 * LEN, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (many == MAP_FAILED)
		return 2;
	if (argc > 1 && !moves)
		return count_faults(argv[1][0] == 'r');
	count_unmapped(moves);
	count_moved(moves);
	print_hits("alone", NULL, NULL);
	print_hits("two-threads", hits, &other);
	print_hits("beside-unmaps", noise, NULL);
	ofi_mr_cache_cleanup(&cache);
	return 0;
}
