/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The allocator under threads: objects have random sizes, their contents are
 * checked, and any thread frees them, while heaps are trimmed, opened and
 * closed, short threads run and the process forks.
 *
 * usage: model_heap [OPERATIONS] [SEED]	for each thread; also HEAP_OPERATIONS
 */
#include "config.h"

#include <sched.h>

#include "test/models/model_heap.h"
#include "test/case.h"

#define THREADS 4
#define SLOTS	512 /* allocations that threads share */

struct fake_heap fake;
struct mrrc_heaps *heaps;
struct mrrc_heap *heap[HEAPS];
unsigned long operations = 100000;
static uint64_t seed = 4711;

void broken(const char *what, const void *addr, size_t at)
{
	fprintf(stderr, "model_heap: seed %llu: %s: %p, %zu\n",
		(unsigned long long) seed, what, addr, at);
	abort();
}

static uint64_t rnd(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* ---- allocations that know what they hold -------------------------------- */

struct item {
	size_t len;
	uint64_t tag;
	char data[];
};

/*
 * Returns the distance between checked bytes: 1 in a short object; in a long
 * object both ends and some bytes between are checked.
 */
static size_t item_step(size_t len)
{
	return len <= 1024 ? 1 : len / 256;
}

static void item_fill(struct item *item, size_t len, uint64_t tag)
{
	size_t i, n = len - sizeof(*item);

	item->len = len;
	item->tag = tag;
	for (i = 0; i < n; i += item_step(n))
		item->data[i] = tag + i;
	if (n)
		item->data[n - 1] = tag + n - 1;
}

static void item_check(const struct item *item)
{
	size_t i, n = item->len - sizeof(*item);

	for (i = 0; i < n; i += item_step(n)) {
		if (item->data[i] != (char) (item->tag + i))
			broken("contents changed", item, i);
	}
	if (n && item->data[n - 1] != (char) (item->tag + n - 1))
		broken("the last byte changed", item, n - 1);
}

static struct item *item_new(struct mrrc_heap *from, uint64_t *state)
{
	static const size_t aligns[] = { 1, 1, 1, 1, 1, 64, 4096, 65536 };
	size_t align = aligns[rnd(state) % 8];
	size_t len = sizeof(struct item) +
		     rnd(state) % ((size_t) 32 << rnd(state) % 17);
	unsigned flags = rnd(state) % 500 ? 0 : MRRC_HEAP_ISOLATED;
	struct mrrc_heap_place place;
	void *addr, *cookie;
	int ret;

	ret = mrrc_heap_alloc(from, align, len, flags, &addr, &cookie);
	if (ret)
		broken(strerror(-ret), from, len);
	if ((uintptr_t) addr % align)
		broken("not aligned", addr, align);
	if (mrrc_heap_cookie(heaps, addr, len) != cookie)
		broken("another registration", addr, len);
	if (!(rnd(state) % 16) &&
	    (mrrc_heap_query(heaps, (uintptr_t) addr + len / 2, &place) ||
	     place.base != (uintptr_t) addr || place.len < len ||
	     place.heap != from))
		broken("query says otherwise", addr, len);
	item_fill(addr, len, rnd(state));
	return addr;
}

static void item_free(struct item *item)
{
	int ret;

	item_check(item);
	ret = mrrc_heap_free(heaps, item);
	if (ret)
		broken(strerror(-ret), item, 0);
}

/* ---- threads ------------------------------------------------------------- */

static struct item *_Atomic slots[SLOTS];

/* Takes the object in a slot, and puts one of its own there. */
static void *churn(void *arg)
{
	uint64_t state = seed * 1000003 + (uintptr_t) arg;
	struct item *item;
	unsigned long i;

	for (i = 0; i < operations; i++) {
		item = item_new(heap[rnd(&state) % HEAPS], &state);
		/* Half of the threads reuse their own objects at once. */
		if (rnd(&state) % 2)
			item = atomic_exchange(&slots[rnd(&state) % SLOTS],
					       item);
		if (item)
			item_free(item);
		if (!(rnd(&state) % 20000))
			mrrc_heaps_trim(heaps);
	}
	return NULL;
}

static void empty_slots(void)
{
	struct item *item;
	unsigned i;

	for (i = 0; i < SLOTS; i++) {
		item = atomic_exchange(&slots[i], NULL);
		if (item)
			item_free(item);
	}
}

void open_all(uint32_t idle_ms)
{
	struct mrrc_heap_attr attr = { .node = -1, .idle_ms = idle_ms };
	unsigned i;

	fake = FAKE_HEAP;
	ck_assert_int_eq(mrrc_heaps_open(&fake_heap_ops, &fake, 0, &heaps), 0);
	for (i = 0; i < HEAPS; i++) {
		/* The heaps have 5 shards, 2, and as many as processors. */
		attr.shards = (i + 1) % HEAPS * (THREADS + 1) % (2 * THREADS);
		ck_assert_int_eq(mrrc_heap_open(heaps, &attr, &heap[i]), 0);
	}
}

void close_all(void)
{
	struct mrrc_heap_stats stats;
	unsigned i;

	mrrc_heaps_stats(heaps, &stats);
	ck_assert_uint_eq(stats.live, 0);
	ck_assert_uint_eq(stats.live_bytes, 0);
	ck_assert_uint_eq(stats.mistakes, 0);
	ck_assert_uint_eq(stats.allocs, stats.frees);
	for (i = 0; i < HEAPS; i++)
		ck_assert(mrrc_heap_valid(heap[i]));
	mrrc_heaps_trim(heaps);
	mrrc_heaps_stats(heaps, &stats);
	ck_assert_uint_eq(stats.blocks, 0);
	ck_assert_uint_eq(fake.live, 0);
	mrrc_heaps_close(heaps);
	for (i = 0; i < FAKE_HEAP_EVENTS; i++)
		ck_assert_uint_eq(fake.events[i], 0);
}

TEST_CASE(model_heap, NULL, NULL);

TEST(threads_and_trims)
{

	/* The idle time is so short that blocks come and go all the time. */
	open_all(2);
	threads_run(THREADS, churn);
	empty_slots();
	close_all();
}

static void *brief(void *arg)
{
	uint64_t state = seed + (uintptr_t) arg;
	struct item *item;
	unsigned i;

	for (i = 0; i < 50; i++) {
		item = item_new(heap[i % HEAPS], &state);
		item = atomic_exchange(&slots[rnd(&state) % SLOTS], item);
		if (item)
			item_free(item);
	}
	return NULL;
}

/* Threads that end give back the objects that they kept. */
TEST(thread_storm)
{
	struct mrrc_heap_stats stats;
	unsigned rounds = operations / 1000, k;
	pthread_t thread[THREADS];
	uintptr_t i;

	open_all(1000);
	for (k = 0; k < rounds; k++) {
		for (i = 0; i < THREADS; i++)
			thread[i] =
				thread_start(brief, (void *) (k * THREADS + i));
		for (i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
	}
	mrrc_heaps_stats(heaps, &stats);
	ck_assert_uint_eq(stats.allocs, (uint64_t) rounds * THREADS * 50);
	empty_slots();
	close_all();
}

/* One thread allocates, another frees. */
static void *freer(void *arg)
{
	unsigned long n = 0;
	struct item *item;
	unsigned i = 0;

	while (n < operations) {
		item = atomic_exchange(&slots[i++ % 64], NULL);
		if (item) {
			item_free(item);
			n++;
		} else if (!(i % 64)) {
			sched_yield();
		}
	}
	return NULL;
}

TEST(remote_free)
{
	uint64_t state = seed;
	struct item *item, *none;
	unsigned long n;
	pthread_t thread;
	unsigned i = 0;

	open_all(50);
	thread = thread_start(freer, NULL);
	for (n = 0; n < operations; n++) {
		item = item_new(heap[0], &state);
		for (;; i++) {
			none = NULL;
			if (atomic_compare_exchange_strong(&slots[i % 64],
							   &none, item))
				break;
			if (!(i % 64))
				sched_yield();
		}
	}
	pthread_join(thread, NULL);
	close_all();
}

/* Heaps come and go while others are trimmed and counted. */
static void *opener(void *arg)
{
	const struct mrrc_heap_attr attr = { .node = -1, .idle_ms = 5 };
	uint64_t state = seed + (uintptr_t) arg;
	struct mrrc_heap_stats stats;
	struct item *item[20];
	struct mrrc_heap *own;
	unsigned i, k;

	for (i = 0; i < operations / 1000; i++) {
		if (mrrc_heap_open(heaps, &attr, &own))
			broken("cannot open a heap", NULL, i);
		for (k = 0; k < 20; k++)
			item[k] = item_new(own, &state);
		if (i % 3 == 0)
			mrrc_heaps_trim(heaps);
		if (i % 3 == 1)
			mrrc_heaps_stats(heaps, &stats);
		for (k = 0; k < 20; k++)
			item_free(item[k]);
		mrrc_heap_close(own);
	}
	return NULL;
}

TEST(heaps_come_and_go)
{
	pthread_t thread[THREADS];
	uintptr_t i;

	open_all(50);
	for (i = 0; i < THREADS; i++)
		thread[i] = thread_start(i ? opener : churn, (void *) i);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	empty_slots();
	close_all();
}

/* ---- fork ---------------------------------------------------------------- */

/* Checks what a child may and may not do; returns its exit status. */
static int child(struct item *mine)
{
	struct mrrc_heaps *theirs = heaps;
	struct mrrc_heap *other;
	void *addr, *cookie;
	size_t deregs = fake.deregs;

	end_in(600);
	item_check(mine);
	if (mrrc_heap_alloc(heap[0], 1, 100, 0, &addr, &cookie) != -EOPNOTSUPP)
		return 2;
	if (mrrc_heap_free(heaps, mine))
		return 3;
	mrrc_heaps_trim(heaps);
	mrrc_heaps_close(heaps);
	item_check(mine);
	if (fake.deregs != deregs)
		return 4;
	/* A domain of the child's own works, */
	if (mrrc_heaps_open(&fake_heap_ops, &fake, 0, &heaps) ||
	    mrrc_heap_open(heaps, &(struct mrrc_heap_attr){ .node = -1 },
			   &other) ||
	    mrrc_heap_alloc(other, 1, 100, 0, &addr, &cookie))
		return 5;
	/* The child's domain takes nothing from the parent's domain. */
	if (mrrc_heap_free(theirs, mine) ||
	    mrrc_heap_alloc(heap[0], 1, mine->len, 0, &cookie, &cookie) !=
		    -EOPNOTSUPP)
		return 6;
	item_check(mine);
	if (mrrc_heap_free(heaps, addr))
		return 7;
	mrrc_heaps_close(heaps);
	return 0;
}

TEST_IF(CHILD_MAY_THREAD, fork_in_the_middle)
{
	unsigned forks = operations / 10000 + 3, k;
	pthread_t thread[THREADS];
	uint64_t state = seed;
	struct item *mine;
	int status;
	pid_t pid;
	uintptr_t i;

	open_all(5);
	mine = item_new(heap[0], &state);
	for (i = 0; i < THREADS; i++)
		thread[i] = thread_start(churn, (void *) i);
	for (k = 0; k < forks; k++) {
		pid = fork();
		ck_assert_int_ge(pid, 0);
		if (!pid) {
			status = child(mine);
			if (status)
				_exit(status);
			/*
			 * SIGKILL reports success: if the child exited, a leak
			 * checker would report memory that the child leaves.
			 */
			raise(SIGKILL);
		}
		/*
		 * Other threads run on, so no failed assertion may jump out of
		 * this function.
		 */
		if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) ||
		    WTERMSIG(status) != SIGKILL)
			broken("a child's status", NULL, status);
		item_check(mine);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	item_free(mine);
	empty_slots();
	close_all();
}

/* ---- close with live allocations ----------------------------------------- */

TEST(close_with_live_allocations)
{
	uint64_t state = seed;
	unsigned i;

	open_all(1000);
	for (i = 0; i < 1000; i++)
		item_new(heap[i % HEAPS], &state);
	mrrc_heaps_close(heaps);
	ck_assert_uint_eq(fake.live, 0);
	ck_assert_uint_eq(fake.events[MRRC_HEAP_LEAKS], HEAPS);
	ck_assert_uint_eq(fake.events[MRRC_HEAP_LEAK],
			  HEAPS * MRRC_HEAP_LEAKS_MAX);
}

int main(int argc, char **argv)
{
	if (getenv("HEAP_OPERATIONS"))
		operations = strtoul(getenv("HEAP_OPERATIONS"), NULL, 0);
	if (argc > 1)
		operations = strtoul(argv[1], NULL, 0);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 0);
	printf("model_heap: %lu operations a thread, seed %llu\n", operations,
	       (unsigned long long) seed);
	return run_cases(CK_NOFORK);
}
