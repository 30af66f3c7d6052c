/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * alloc_bench: measures the nanoseconds of an allocation and its free, by
 * fi_mr_alloc and by malloc in turn.
 *
 *	reuse	one allocation at a time
 *	batch	16 live, freed in the order in which they were allocated
 *	remote	16 at a time freed by another thread
 *
 * Options: -m: malloc alone, which may be a preloaded malloc. -I: number of
 * rounds. -j: number of threads (default 2) with which reuse and batch run in
 * addition to their runs with one thread.
 *
 * Prints a line of medians for each pattern, number of threads and size:
 * pattern threads size malloc fi_mr_alloc
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "ft_mrrc.h"

#define BATCH	    16
#define ROUNDS	    201
#define NS	    60000 /* ns of one measurement: less than a time slice */
#define MIN	    64
#define MAX	    (2 << 20)
#define THREADS_MAX 64

struct allocator {
	void *(*get)(size_t len);
	void (*put)(void *buf);
};

static struct fid_domain *domain;
static const struct fi_mrrc_ops_alloc *ops;

/*
 * An allocation and its free take so little time that a function call around
 * the two would be half of the measured time. Each pattern is compiled once for
 * each allocator, with the allocator's calls as in an application.
 */
#define INLINE static inline __attribute__((always_inline))

/* Volatile, so that the compiler does not optimise malloc and free away. */
static void *(*volatile libc_malloc)(size_t) = malloc;
static void (*volatile libc_free)(void *) = free;

INLINE void *get_malloc(size_t len)
{
	return libc_malloc(len);
}

INLINE void put_malloc(void *buf)
{
	libc_free(buf);
}

INLINE void *get_mr(size_t len)
{
	struct fid_mr *mr;
	void *buf;

	if (fi_mrrc_alloc(ops, domain, len, 0, 0, &buf, &mr))
		return NULL;
	return buf;
}

INLINE void put_mr(void *buf)
{
	if (ops->release(domain, buf))
		abort();
}

static const struct allocator by_malloc = { get_malloc, put_malloc };
static const struct allocator by_mr = { get_mr, put_mr };

/*
 * Reads a clock: the thread's processor time, because other processes use the
 * processor, too. Where reading processor time for each batch would be too
 * slow, alloc_bench reads the wall clock, and takes the median of many batches.
 */
static double now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

#define CPU  CLOCK_THREAD_CPUTIME_ID
#define WALL CLOCK_MONOTONIC

static _Noreturn void no_memory(size_t len)
{
	fprintf(stderr, "alloc_bench: cannot allocate %zu bytes\n", len);
	exit(EXIT_FAILURE);
}

INLINE void *get(const struct allocator *by, size_t len)
{
	char *buf = by->get(len);

	if (__builtin_expect(!buf, 0))
		no_memory(len);
	*(volatile char *) buf = 1;
	return buf;
}

/* ---- patterns: functions return the ns that their pairs of calls took ---- */

INLINE double run_reuse(const struct allocator *by, size_t len, long pairs)
{
	double begin = now_ns(CPU);

	while (pairs--)
		by->put(get(by, len));
	return now_ns(CPU) - begin;
}

INLINE double run_batch(const struct allocator *by, size_t len, long pairs)
{
	double begin = now_ns(CPU);
	void *buf[BATCH];
	int i;

	for (; pairs > 0; pairs -= BATCH) {
		for (i = 0; i < BATCH; i++)
			buf[i] = get(by, len);
		for (i = 0; i < BATCH; i++)
			by->put(buf[i]);
	}
	return now_ns(CPU) - begin;
}

/*
 * A queue from the thread that allocates to the thread that frees. The thread
 * that frees is new for each measurement. The first batches of a thread do not
 * count, since in these batches allocators set up their structures for the
 * thread.
 */
#define RING 4 /* maximum number of batches in the queue */
#define WARM 16

static struct {
	void *buf[RING][BATCH];
	_Alignas(64) volatile unsigned long put;
	_Alignas(64) volatile unsigned long got;
} ring;

struct remote {
	unsigned long batches;
	double ns;
};

INLINE void *run_freer(const struct allocator *by, void *arg)
{
	struct remote *remote = arg;
	unsigned long n;
	double begin;
	int i;

	for (n = 0; n < remote->batches; n++) {
		while (__atomic_load_n(&ring.put, __ATOMIC_ACQUIRE) == n)
			sched_yield();
		begin = now_ns(WALL);
		for (i = 0; i < BATCH; i++)
			by->put(ring.buf[n % RING][i]);
		if (n >= WARM)
			remote->ns += now_ns(WALL) - begin;
		__atomic_store_n(&ring.got, n + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void *free_malloc(void *arg)
{
	return run_freer(&by_malloc, arg);
}

static void *free_mr(void *arg)
{
	return run_freer(&by_mr, arg);
}

INLINE double run_remote(const struct allocator *by, size_t len, long pairs)
{
	struct remote remote = { pairs / BATCH + WARM, 0 };
	double begin, ns = 0;
	pthread_t thread;
	unsigned long n;
	int i;

	ring.put = ring.got = 0;
	pthread_create(&thread, NULL, by == &by_mr ? free_mr : free_malloc,
		       &remote);
	for (n = 0; n < remote.batches; n++) {
		while (n - __atomic_load_n(&ring.got, __ATOMIC_ACQUIRE) == RING)
			sched_yield();
		begin = now_ns(WALL);
		for (i = 0; i < BATCH; i++)
			ring.buf[n % RING][i] = get(by, len);
		if (n >= WARM)
			ns += now_ns(WALL) - begin;
		__atomic_store_n(&ring.put, n + 1, __ATOMIC_RELEASE);
	}
	pthread_join(thread, NULL);
	return (ns + remote.ns) / (pairs / BATCH * BATCH) * pairs;
}

/* ---- measuring ----------------------------------------------------------- */

typedef double (*run_fn)(size_t len, long pairs);

#define PATTERN(name)                                       \
	static double name##_malloc(size_t len, long pairs) \
	{                                                   \
		return run_##name(&by_malloc, len, pairs);  \
	}                                                   \
	static double name##_mr(size_t len, long pairs)     \
	{                                                   \
		return run_##name(&by_mr, len, pairs);      \
	}                                                   \
	static const struct pattern name = { #name,         \
					     { name##_malloc, name##_mr } }

struct pattern {
	const char *name;
	run_fn run[2];
};

PATTERN(reuse);
PATTERN(batch);
PATTERN(remote);

struct job {
	run_fn run;
	size_t len;
	long pairs;
	pthread_barrier_t *start;
};

static void *run_job(void *arg)
{
	struct job *job = arg;

	job->run(job->len, BATCH);
	pthread_barrier_wait(job->start);
	job->run(job->len, job->pairs);
	return NULL;
}

/*
 * Returns the nanoseconds of an allocation and its free in one thread, while
 * all threads do the same.
 */
static double measure(run_fn run, size_t len, int threads, long pairs)
{
	pthread_barrier_t start;
	pthread_t thread[THREADS_MAX];
	double ns;
	struct job job = { run, len, pairs, &start };
	int i;

	pthread_barrier_init(&start, NULL, threads);
	for (i = 1; i < threads; i++)
		FT_CHECK(!pthread_create(&thread[i], NULL, run_job, &job),
			 "no thread");
	run(len, BATCH);
	pthread_barrier_wait(&start);
	ns = run(len, pairs) / pairs;
	for (i = 1; i < threads; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&start);
	return ns;
}

/*
 * Returns the number of pairs of allocation and free that fit in the time of
 * one measurement.
 */
static long calibrate(run_fn run, size_t len, int threads)
{
	double ns = measure(run, len, threads, 40 * BATCH);
	long pairs = NS / (ns > 1 ? ns : 1);

	return pairs < 10 * BATCH ? 10 * BATCH : pairs;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *) a, y = *(const double *) b;

	return (x > y) - (x < y);
}

static void compare(const struct pattern *pattern, int threads, size_t len,
		    bool alone)
{
	unsigned rounds = ft_iters(ROUNDS), round;
	int sides = alone ? 1 : 2, side;
	double ns[2][ROUNDS];
	long pairs[2];

	for (side = 0; side < sides; side++)
		pairs[side] = calibrate(pattern->run[side], len, threads);
	for (round = 0; round < rounds; round++) {
		for (side = 0; side < sides; side++)
			ns[side][round] = measure(pattern->run[side], len,
						  threads, pairs[side]);
	}
	printf("%s %d %zu", pattern->name, threads, len);
	for (side = 0; side < sides; side++) {
		qsort(ns[side], rounds, sizeof(double), by_value);
		printf(" %.2f", ns[side][rounds / 2]);
	}
	printf("\n");
	fflush(stdout);
}

static void all(bool alone, int threads)
{
	size_t len;

	for (len = MIN; len <= MAX; len *= 2) {
		compare(&reuse, 1, len, alone);
		compare(&reuse, threads, len, alone);
		compare(&batch, 1, len, alone);
		compare(&batch, threads, len, alone);
		compare(&remote, 1, len, alone);
	}
}

int main(int argc, char **argv)
{
	struct fid_fabric *fabric;
	struct fi_info *info;
	struct ft_attr attr = FT_ATTR;
	bool alone = false;
	int op, threads = 2;

	while ((op = getopt(argc, argv, "j:m" FT_OPTS)) != -1) {
		if (op == 'j')
			threads = atoi(optarg);
		else if (op == 'm')
			alone = true;
		else
			ft_parse_opt(argv[0], op, optarg);
	}
	FT_CHECK(ft_iters(1) <= ROUNDS, "more than %d rounds", ROUNDS);
	FT_CHECK(threads >= 2 && threads <= THREADS_MAX, "2 to %d threads",
		 THREADS_MAX);
	if (alone) {
		all(true, threads);
		return 0;
	}
	ft_start(argv[0]);
	info = ft_getinfo(&attr);
	FT_CALL(fi_fabric(info->fabric_attr, &fabric, NULL));
	FT_CALL(fi_domain(fabric, info, &domain, NULL));
	FT_CALL(fi_mrrc_alloc_open(domain, &ops));
	all(false, threads);
	FT_CALL(fi_close(&domain->fid));
	FT_CALL(fi_close(&fabric->fid));
	fi_freeinfo(info);
	return 0;
}
