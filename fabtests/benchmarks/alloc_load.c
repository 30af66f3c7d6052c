/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * alloc_load: runs loads that are typical of programs on an allocator, with
 * fi_mr_alloc or malloc.
 *
 *	larson	a server: each thread replaces random objects of a table, then
 *		ends, and a new thread goes on with another thread's table
 *	scratch	threads each free a small object of the main thread, then
 *		allocate, write and free one, over and over: false sharing
 *	xmalloc	each thread of a pair allocates objects for the other to free
 *	mixed	random objects of 16 bytes to 256 KiB, the small ones most
 *		often, and written in full
 *	sparse	blocks of 256 KiB to 4 MiB of which some bytes are written
 *
 * Usage: alloc_load [-m] [-j THREADS] [-I STEPS] LOAD. THREADS is even, 2 by
 * default. -m: by malloc, which may be a preloaded malloc. A process runs one
 * load, so that the load's peak of memory is known.
 *
 * Prints: the nanoseconds of processor time for an allocation and its free, and
 * the KiB of resident memory at the peak beyond those at the start.
 */
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "ft_mrrc.h"

#define THREADS_MAX 64
#define IDLE_US	    20000

static unsigned threads = 2;
static struct fid_domain *domain; /* NULL: use malloc */
static const struct fi_mrrc_ops_alloc *ops;

static inline void *get(size_t len)
{
	void *buf;

	if (!domain)
		buf = malloc(len);
	else if (fi_mrrc_alloc(ops, domain, len, 0, 0, &buf, NULL))
		buf = NULL;
	if (!buf) {
		fprintf(stderr, "alloc_load: cannot allocate %zu bytes\n", len);
		exit(EXIT_FAILURE);
	}
	*(volatile char *) buf = 1;
	return buf;
}

static inline void put(void *buf)
{
	if (!domain)
		free(buf);
	else if (buf && ops->release(domain, buf))
		abort();
}

/*
 * Returns pseudo-random numbers, the same in each run, so that all allocators
 * get the same calls.
 */
static inline uint64_t draw(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Places objects of different threads on cache lines that are not adjacent. */
#define APART _Alignas(128)

struct worker {
	APART pthread_t thread;
	unsigned id;
	unsigned long steps;
	uint64_t seed;
	void **table;
};

/* Starts the threads, and waits until they have ended. */
static void run(void *(*call)(void *), struct worker *worker)
{
	unsigned i;

	for (i = 0; i < threads; i++)
		FT_CHECK(!pthread_create(&worker[i].thread, NULL, call,
					 &worker[i]),
			 "no thread");
	for (i = 0; i < threads; i++)
		pthread_join(worker[i].thread, NULL);
}

static void workers_init(struct worker *worker, unsigned long steps)
{
	unsigned i;

	for (i = 0; i < threads; i++)
		worker[i] = (struct worker){ .id = i,
					     .steps = steps,
					     .seed = 88172645463325252 + i };
}

/* ---- larson -------------------------------------------------------------- */

#define LARSON_SLOTS 5000
#define LARSON_MAX   1000
#define GENERATIONS  20

static void *larson_thread(void *arg)
{
	struct worker *self = arg;
	unsigned long i;
	void **slot;

	for (i = 0; i < self->steps; i++) {
		slot = &self->table[draw(&self->seed) % LARSON_SLOTS];
		put(*slot);
		*slot = get(16 + draw(&self->seed) % (LARSON_MAX - 16));
	}
	return NULL;
}

static void larson(unsigned long steps)
{
	static void *table[THREADS_MAX][LARSON_SLOTS];
	struct worker worker[THREADS_MAX];
	unsigned i, j;

	workers_init(worker, steps / threads / GENERATIONS + 1);
	for (i = 0; i < GENERATIONS; i++) {
		for (j = 0; j < threads; j++)
			worker[j].table = table[(i + j) % threads];
		run(larson_thread, worker);
	}
	for (i = 0; i < threads; i++) {
		for (j = 0; j < LARSON_SLOTS; j++)
			put(table[i][j]);
	}
}

/* ---- scratch ------------------------------------------------------------- */

#define SCRATCH_LEN    16
#define SCRATCH_WRITES 100

static void *scratch_thread(void *arg)
{
	struct worker *self = arg;
	unsigned long i;
	volatile char *buf;
	int j;

	put(*self->table);
	for (i = 0; i < self->steps; i++) {
		buf = get(SCRATCH_LEN);
		for (j = 0; j < SCRATCH_WRITES; j++)
			buf[j % SCRATCH_LEN]++;
		put((void *) buf);
	}
	return NULL;
}

static void scratch(unsigned long steps)
{
	struct worker worker[THREADS_MAX];
	void *mine[THREADS_MAX];
	unsigned i;

	workers_init(worker, steps / threads);
	for (i = 0; i < threads; i++) {
		mine[i] = get(SCRATCH_LEN);
		worker[i].table = &mine[i];
	}
	run(scratch_thread, worker);
}

/* ---- xmalloc ------------------------------------------------------------- */

#define XMALLOC_BATCH 4096
#define XMALLOC_MAX   512

/* A batch of objects that a thread passes to the other thread. */
static struct box {
	APART pthread_mutex_t lock;
	pthread_cond_t changed;
	void **batch;
} box[THREADS_MAX];

static void box_put(struct box *to, void **batch)
{
	pthread_mutex_lock(&to->lock);
	while (to->batch)
		pthread_cond_wait(&to->changed, &to->lock);
	to->batch = batch;
	pthread_cond_signal(&to->changed);
	pthread_mutex_unlock(&to->lock);
}

static void **box_get(struct box *from)
{
	void **batch;

	pthread_mutex_lock(&from->lock);
	while (!from->batch)
		pthread_cond_wait(&from->changed, &from->lock);
	batch = from->batch;
	from->batch = NULL;
	pthread_cond_signal(&from->changed);
	pthread_mutex_unlock(&from->lock);
	return batch;
}

/*
 * A thread allocates into three batches in turn: while the thread fills a
 * batch, the second batch is in the thread's box, and the pair's other thread
 * frees the third.
 */
static void *xmalloc_thread(void *arg)
{
	static void *batch[THREADS_MAX][3][XMALLOC_BATCH];
	struct worker *self = arg;
	void **one;
	unsigned long i;
	int j;

	for (i = 0; i < self->steps; i++) {
		one = batch[self->id][i % 3];
		for (j = 0; j < XMALLOC_BATCH; j++)
			one[j] = get(16 + draw(&self->seed) % XMALLOC_MAX);
		box_put(&box[self->id], one);
		one = box_get(&box[self->id ^ 1]);
		for (j = 0; j < XMALLOC_BATCH; j++)
			put(one[j]);
	}
	return NULL;
}

static void xmalloc(unsigned long steps)
{
	struct worker worker[THREADS_MAX];
	unsigned i;

	for (i = 0; i < threads; i++) {
		pthread_mutex_init(&box[i].lock, NULL);
		pthread_cond_init(&box[i].changed, NULL);
	}
	workers_init(worker, steps / threads / XMALLOC_BATCH + 1);
	run(xmalloc_thread, worker);
}

/* ---- mixed --------------------------------------------------------------- */

#define MIXED_SLOTS	2000
#define MIXED_DOUBLINGS 14 /* 16 bytes are doubled 14 times at most */

/*
 * Returns a random length; each doubling of the length is 1.5 times as rare as
 * the previous one.
 */
static size_t mixed_len(uint64_t *seed)
{
	size_t len = 16;
	unsigned i;

	for (i = 1; i < MIXED_DOUBLINGS && draw(seed) % 3; i++)
		len *= 2;
	return len + draw(seed) % len;
}

static void *mixed_thread(void *arg)
{
	struct worker *self = arg;
	void **table = calloc(MIXED_SLOTS, sizeof(*table)), **slot;
	unsigned long i;
	size_t len;

	FT_CHECK(table, "no memory");
	for (i = 0; i < self->steps; i++) {
		slot = &table[draw(&self->seed) % MIXED_SLOTS];
		len = mixed_len(&self->seed);
		put(*slot);
		*slot = get(len);
		memset(*slot, 1, len);
	}
	for (i = 0; i < MIXED_SLOTS; i++)
		put(table[i]);
	free(table);
	return NULL;
}

static void mixed(unsigned long steps)
{
	struct worker worker[THREADS_MAX];

	workers_init(worker, steps / threads);
	run(mixed_thread, worker);
}

/* ---- sparse -------------------------------------------------------------- */

#define SPARSE_SLOTS  32
#define SPARSE_STRIDE (256 << 10)

static void sparse(unsigned long steps)
{
	void *table[SPARSE_SLOTS] = { NULL }, **slot;
	uint64_t seed = 88172645463325252;
	unsigned long i;
	size_t len, at;

	for (i = 0; i < steps; i++) {
		slot = &table[draw(&seed) % SPARSE_SLOTS];
		len = (256 << 10) + draw(&seed) % (4 << 20);
		put(*slot);
		*slot = get(len);
		for (at = 0; at < len; at += SPARSE_STRIDE)
			((volatile char *) *slot)[at] = 1;
	}
	for (i = 0; i < SPARSE_SLOTS; i++)
		put(table[i]);
}

/* -------------------------------------------------------------------------- */

static const struct load {
	const char *name;
	void (*call)(unsigned long steps);
	unsigned steps;
} loads[] = {
	{ "larson", larson, 4000000 },	 { "scratch", scratch, 2000000 },
	{ "xmalloc", xmalloc, 4000000 }, { "mixed", mixed, 4000000 },
	{ "sparse", sparse, 40000 },
};

static double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static long peak_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

/* Resets the peak of resident memory to the present value: see proc(5). */
static void peak_reset(void)
{
	FILE *file = fopen("/proc/self/clear_refs", "w");

	if (!file)
		return;
	fputs("5", file);
	fclose(file);
}

/*
 * Opening the domain starts a thread that examines all code of the process
 * once, which takes some 10 ms of processor time that no allocation causes. The
 * load begins when the process has been idle for a moment.
 */
static void wait_idle(void)
{
	double before;
	int tries;

	for (tries = 0; tries < 500; tries++) {
		before = cpu_ns();
		usleep(IDLE_US);
		if (cpu_ns() - before < IDLE_US * 1e3 / 50)
			return;
	}
	fprintf(stderr, "alloc_load: the process is never idle\n");
	exit(EXIT_FAILURE);
}

static void measure(const struct load *load)
{
	unsigned steps = ft_iters(load->steps);
	double begin;
	long kib;

	/* warms up: the allocator's one-time work does not count */
	put(get(1));
	wait_idle();
	peak_reset();
	kib = peak_kib();
	begin = cpu_ns();
	load->call(steps);
	printf("%.2f ", (cpu_ns() - begin) / steps);
	printf("%ld\n", peak_kib() - kib);
}

static const struct load *load_of(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(loads) / sizeof(*loads); i++) {
		if (name && !strcmp(loads[i].name, name))
			return &loads[i];
	}
	fprintf(stderr, "alloc_load: LOAD is larson, scratch, xmalloc, "
			"mixed or sparse\n");
	exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	struct fid_fabric *fabric;
	struct ft_attr attr = FT_ATTR;
	const struct load *load;
	struct fi_info *info;
	bool by_malloc = false;
	int op;

	while ((op = getopt(argc, argv, "j:m" FT_OPTS)) != -1) {
		if (op == 'j')
			threads = atoi(optarg);
		else if (op == 'm')
			by_malloc = true;
		else
			ft_parse_opt(argv[0], op, optarg);
	}
	FT_CHECK(threads >= 2 && threads % 2 == 0 && threads <= THREADS_MAX,
		 "an even number of threads, 2 to %d", THREADS_MAX);
	load = load_of(argv[optind]);
	if (by_malloc) {
		measure(load);
		return 0;
	}
	ft_start(argv[0]);
	info = ft_getinfo(&attr);
	FT_CALL(fi_fabric(info->fabric_attr, &fabric, NULL));
	FT_CALL(fi_domain(fabric, info, &domain, NULL));
	FT_CALL(fi_mrrc_alloc_open(domain, &ops));
	measure(load);
	FT_CALL(fi_close(&domain->fid));
	FT_CALL(fi_close(&fabric->fid));
	fi_freeinfo(info);
	return 0;
}
