/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Compares the cost of a hit and its release with the cost in libfabric's
 * registration cache, a red-black tree with reference counts under a mutex. The
 * memory and the monitor are real; registrations do nothing.
 *
 * Every figure is the median of rounds in which all sides take turns, in
 * nanoseconds of one lookup and its release. Prints lines
 *
 *	case REGIONS THREADS WRITER TREE_NS OURS_NS PROBE NULL_NS LOAD_NS
 *
 * THREADS 0: one thread, in a process that has no other thread. PROBE: whether
 * a lookup asks the kernel: no, yes, or trust, where hooks are relied on.
 * NULL_NS: time of a null system call, by the same threads. LOAD_NS: time of
 * one load, whose address the load before returned, from memory with one cache
 * line for each region; 0 unless THREADS is 0.
 *
 *	bench_hit [-n ROUNDS] [REGIONS THREADS [writer]]
 *
 * Runs all cases, or only the given case. Exit status 77: cannot run here.
 */
#include "config.h"

#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bsd/sys/queue.h>

#include "sys/cache/cache_mt.h"
#include "sys/proof/prove.h"
#include "sys/base/threads.h"

#define ROUNDS	    15u	  /* largest number of rounds */
#define LOOKUPS	    20000 /* lookups of a thread in a round */
#define THREADS_MAX 16
/* least number of threads, on machines with fewer processors */
#define THREADS	    4u
#define PAGES	    4u /* pages of a region */
#define REGIONS_MAX 1000000u
#define ORDER	    4096u  /* lookups before the order repeats, */
#define FEW	    10000u /* largest number of regions with that order */
#define COUNTS	    4u

static unsigned rounds = ROUNDS;
static const unsigned counts[COUNTS] = { 10, 100, 1000, FEW };
static const unsigned many[] = { 30000, 100000, 300000, REGIONS_MAX };
#define MANY (sizeof(many) / sizeof(many[0]))

static void fail(const char *what)
{
	fprintf(stderr, "bench_hit: %s\n", what);
	exit(1);
}

/* ---- libfabric's side ---- */

/*
 * libfabric's cache has a tree with a compare function, and a list of unused
 * entries: a hit removes an entry from the list, and the last release adds the
 * entry again.
 */
struct tree_entry {
	uintptr_t start;
	size_t len;
	unsigned refs;
	TAILQ_ENTRY(tree_entry) link; /* linked if refs == 0 */
};

static void *tree; /* red-black tree of tsearch(3) */
static TAILQ_HEAD(, tree_entry) unused = TAILQ_HEAD_INITIALIZER(unused);
static struct tree_entry entries[REGIONS_MAX];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int tree_cmp(const void *p, const void *q)
{
	const struct tree_entry *a = p;
	const struct tree_entry *b = q;

	return a->start + a->len <= b->start ? -1 :
					       b->start + b->len <= a->start;
}

static void tree_insert(struct tree_entry *entry)
{
	pthread_mutex_lock(&mutex);
	if (!tsearch(entry, &tree, tree_cmp))
		fail("no memory");
	TAILQ_INSERT_TAIL(&unused, entry, link);
	pthread_mutex_unlock(&mutex);
}

static void tree_remove(struct tree_entry *entry)
{
	pthread_mutex_lock(&mutex);
	tdelete(entry, &tree, tree_cmp);
	TAILQ_REMOVE(&unused, entry, link);
	pthread_mutex_unlock(&mutex);
}

static struct tree_entry *tree_get(uintptr_t addr, size_t len)
{
	struct tree_entry key = { .start = addr, .len = len };
	struct tree_entry **found;
	struct tree_entry *entry;

	pthread_mutex_lock(&mutex);
	found = tfind(&key, &tree, tree_cmp);
	entry = found ? *found : NULL;
	if (entry && !entry->refs++)
		TAILQ_REMOVE(&unused, entry, link);
	pthread_mutex_unlock(&mutex);
	return entry;
}

static void tree_put(struct tree_entry *entry)
{
	pthread_mutex_lock(&mutex);
	if (!--entry->refs)
		TAILQ_INSERT_TAIL(&unused, entry, link);
	pthread_mutex_unlock(&mutex);
}

/* ---- the provider's side ---- */

static int reg_nothing(void *arg, uintptr_t start, size_t len,
		       enum mrrc_access access, void **cookie, void **desc)
{
	*cookie = *desc = arg;
	return 0;
}

static void dereg_nothing(void *arg, struct mrrc_region *const *regions,
			  size_t count)
{
}

static const struct mrrc_reg_ops ops = { reg_nothing, dereg_nothing };
static struct mrrc_mon *mon;
static struct mrrc_cache_mt *cache;

/* ---- both sides ---- */

static char *memory;
static size_t page;
static unsigned regions;
static uint32_t order[REGIONS_MAX];
static unsigned ordered; /* length of the order */
static unsigned first;	 /* first place of this round */

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

static char *region_at(unsigned i)
{
	return memory + (size_t) i * PAGES * page;
}

static void set_up(unsigned count)
{
	struct mrrc_cache_attr attr = {
		.max_bytes = (size_t) 64 << 30,
		.max_regions = 2 * REGIONS_MAX,
		.ops = &ops,
		.mon = mon,
	};
	struct mrrc_region *region;
	unsigned i;

	regions = count;
	if (mrrc_cache_mt_open(&attr, &cache))
		fail("no cache");
	for (i = 0; i < count; i++) {
		entries[i] = (struct tree_entry){
			.start = (uintptr_t) region_at(i),
			.len = PAGES * page,
		};
		tree_insert(&entries[i]);
		if (mrrc_cache_mt_get(cache, region_at(i), PAGES * page,
				      MRRC_RW, &region))
			fail("not registered");
		mrrc_cache_mt_put(cache, region);
	}
	ordered = count > FEW ? count : ORDER;
	first = 0;
	for (i = 0; i < ordered; i++)
		order[i] = (i * 2654435761u >> 7) % count;
}

static void tear_down(void)
{
	unsigned i;

	for (i = 0; i < regions; i++)
		tree_remove(&entries[i]);
	if (mrrc_cache_mt_close(cache))
		fail("regions are still held");
}

/* Returns the next region in the order; a division would cost half of a hit. */
static inline char *region_next(unsigned *at)
{
	char *region = region_at(order[*at]);

	if (++*at >= ordered)
		*at = 0;
	return region;
}

static void run_tree(unsigned at)
{
	struct tree_entry *entry;
	unsigned i;

	at %= ordered;
	for (i = 0; i < LOOKUPS; i++) {
		entry = tree_get((uintptr_t) region_next(&at), 64);
		if (!entry)
			fail("not in the tree");
		tree_put(entry);
	}
}

static void run_ours(unsigned at)
{
	struct mrrc_region *region;
	unsigned i;

	at %= ordered;
	for (i = 0; i < LOOKUPS; i++) {
		if (mrrc_cache_mt_get(cache, region_next(&at), 64, MRRC_RW,
				      &region))
			fail("not registered");
		mrrc_cache_mt_put(cache, region);
	}
}

static void run_null(unsigned at)
{
	unsigned i;

	for (i = 0; i < LOOKUPS / 4; i++)
		syscall(SYS_getppid);
}

/* Each line has the number of the next line. */
struct line {
	uint32_t next;
} __attribute__((aligned(64)));

static struct line *lines;
/* keeps the compiler from removing the loop */
volatile uint32_t bench_load_end;

static void run_load(unsigned at)
{
	uint32_t line = at % regions;
	unsigned i;

	for (i = 0; i < LOOKUPS; i++)
		line = lines[line].next;
	bench_load_end = line;
}

/* Links all lines to one circle (Sattolo). */
static void make_lines(void)
{
	uint32_t i, other, next;

	lines = aligned_alloc(sizeof(*lines), regions * sizeof(*lines));
	if (!lines)
		fail("no memory");
	for (i = 0; i < regions; i++)
		lines[i].next = i;
	for (i = regions - 1; i; i--) {
		other = random() % i;
		next = lines[i].next;
		lines[i].next = lines[other].next;
		lines[other].next = next;
	}
}

/* ---- threads ---- */

static pthread_barrier_t barrier;
static void (*volatile side)(unsigned);
static atomic_bool over;
static atomic_bool writing;

static void *run_thread(void *arg)
{
	const unsigned at = (uintptr_t) arg * (ORDER / THREADS_MAX);

	for (;;) {
		pthread_barrier_wait(&barrier);
		if (atomic_load(&over))
			return NULL;
		side(at);
		pthread_barrier_wait(&barrier);
	}
}

/* Maps, registers and unmaps; the tree's side inserts and removes. */
static void *run_writer(void *arg)
{
	const size_t len = 16 * page;
	struct tree_entry entry;
	struct mrrc_region *region;
	char *ptr;

	while (atomic_load(&writing)) {
		ptr = mmap(NULL, len, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (ptr == MAP_FAILED)
			fail("no memory");
		if (side == run_tree) {
			entry = (struct tree_entry){
				.start = (uintptr_t) ptr,
				.len = len,
			};
			tree_insert(&entry);
			tree_remove(&entry);
		} else if (!mrrc_cache_mt_get(cache, ptr, len, MRRC_RW,
					      &region)) {
			mrrc_cache_mt_put(cache, region);
		}
		munmap(ptr, len);
		usleep(100);
	}
	return NULL;
}

/* ---- measuring ---- */

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *) a;
	const double y = *(const double *) b;

	return (x > y) - (x < y);
}

static double median(double *value)
{
	qsort(value, rounds, sizeof(*value), by_value);
	return value[rounds / 2];
}

static double timed(void (*run)(unsigned), unsigned threads, unsigned count)
{
	double begin;

	side = run;
	begin = now();
	if (threads) {
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
	} else {
		run(first);
	}
	return (now() - begin) / count;
}

/* Returns "trust" if hooks told of unmaps in more than half of the rounds. */
static const char *probe_name(unsigned told)
{
	if (mrrc_threads_alone())
		return "no";
	return told > rounds / 2 ? "trust" : "yes";
}

/* Returns whether all code of this process is known, or cannot be read. */
static bool default_trusts(void)
{
	char why[MRRC_TRUST_WHY];
	int i;

	mrrc_mon_set_probe(mon, MRRC_PROBE_PROVEN);
	for (i = 0; i < 20000 && !mrrc_trusted(); i++) {
		mrrc_prove_rent(0);
		usleep(1000);
	}
	mrrc_prove_why(why);
	if (!mrrc_trusted())
		fprintf(stderr, "bench_hit: lookups ask: %s\n", why);
	return mrrc_trusted();
}

static void measure(unsigned count, unsigned threads, bool writer)
{
	static double tree_ns[ROUNDS], ours_ns[ROUNDS], null_ns[ROUNDS];
	static double load_ns[ROUNDS];
	pthread_t thread[THREADS_MAX], write_thread;
	unsigned i, told = 0;

	set_up(count);
	make_lines();
	atomic_store(&over, false);
	atomic_store(&writing, true);
	if (threads)
		pthread_barrier_init(&barrier, NULL, threads + 1);
	for (i = 0; i < threads; i++) {
		if (pthread_create(&thread[i], NULL, run_thread,
				   (void *) (uintptr_t) i))
			fail("no thread");
	}
	if (writer && pthread_create(&write_thread, NULL, run_writer, NULL))
		fail("no thread");
	/*
	 * Each region is looked up once before the measurement, as the tables
	 * of threads grow with lookups.
	 */
	for (; first < ordered; first += LOOKUPS) {
		timed(run_tree, threads, LOOKUPS);
		timed(run_ours, threads, LOOKUPS);
	}
	for (i = 0; i < rounds; i++) {
		first = i * LOOKUPS % ordered;
		tree_ns[i] = timed(run_tree, threads, LOOKUPS);
		ours_ns[i] = timed(run_ours, threads, LOOKUPS);
		told += mrrc_mon_told(mon);
		null_ns[i] = timed(run_null, threads, LOOKUPS / 4);
		load_ns[i] = threads ? 0 : timed(run_load, 0, LOOKUPS);
	}
	atomic_store(&over, true);
	atomic_store(&writing, false);
	if (threads)
		pthread_barrier_wait(&barrier);
	for (i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	if (writer)
		pthread_join(write_thread, NULL);
	printf("case %u %u %s %.1f %.1f %s %.1f %.1f\n", count, threads,
	       writer ? "yes" : "no", median(tree_ns), median(ours_ns),
	       probe_name(told), median(null_ns), median(load_ns));
	fflush(stdout);
	free(lines);
	tear_down();
}

static void measure_threads(void)
{
	const unsigned online = sysconf(_SC_NPROCESSORS_ONLN);
	const unsigned most = online > THREADS ? online : THREADS;
	unsigned i, threads;

	for (threads = 1; threads <= most && threads <= THREADS_MAX;
	     threads *= 2) {
		for (i = 0; i < COUNTS; i++) {
			measure(counts[i], threads, false);
			/* A curve with a writer needs its two ends only. */
			if (i == 1 || i == COUNTS - 1)
				measure(counts[i], threads, true);
		}
	}
}

int main(int argc, char **argv)
{
	char why[MRRC_MON_REASON];
	unsigned i;

	if (argc > 2 && !strcmp(argv[1], "-n")) {
		rounds = atoi(argv[2]);
		argc -= 2;
		argv += 2;
	}
	if (!rounds || rounds > ROUNDS)
		fail("no such number of rounds");
	if (mrrc_mon_open("uffd", why, &mon)) {
		fprintf(stderr, "bench_hit: %s\n", why);
		return 77;
	}
	/* Few separate ranges would be watched without hooks; these adjoin. */
	mon->room.mappings = 0;
	page = sysconf(_SC_PAGESIZE);
	memory = mmap(NULL, (size_t) REGIONS_MAX * PAGES * page,
		      PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		fail("no memory");
	/* Regions beyond the first FEW are looked up, and never written to. */
	memset(memory, 1, FEW * PAGES * page);
	if (argc > 2 && atoi(argv[2]) > THREADS_MAX)
		fail("too many threads");
	if (argc > 2) {
		measure(atoi(argv[1]), atoi(argv[2]), argc > 3);
		return 0;
	}
	for (i = 0; i < COUNTS; i++)
		measure(counts[i], 0, false);
	for (i = 0; i < MANY && rounds > 1; i++)
		measure(many[i], 0, false);
	measure_threads();
	if (!mrrc_mon_hook(mon, why) && default_trusts())
		measure_threads();
	mrrc_mon_close(mon);
	return 0;
}
