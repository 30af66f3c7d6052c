/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/base/pool: ownership, capacity, reuse, iteration, threads, failures.
 */
#include "config.h"
#include "test/case.h"

#include <sys/resource.h>

#include "test/fakes/fault.h"
#include "sys/base/pool.h"
#include "sys/base/vm.h"

TEST_CASE(pool, NULL, NULL);

TEST(test_arguments)
{
	struct mrrc_pool *pool = NULL;

	ck_assert_int_eq(mrrc_pool_open(0, 1, &pool), -EINVAL);
	ck_assert_int_eq(mrrc_pool_open(1, 0, &pool), -EINVAL);
	ck_assert_int_eq(mrrc_pool_open(1, UINT32_MAX, &pool), -EINVAL);
	ck_assert_int_eq(mrrc_pool_open(SIZE_MAX / 2, 3, &pool), -EINVAL);
	ck_assert_ptr_null(pool);
}

/* ---- addresses ---- */

/* Returns the KiB of addresses of this process. */
static size_t addresses(void)
{
	size_t pages = 0;

	ck_assert_uint_eq(mrrc_vm_proc("/proc/self/statm", NULL, &pages, 1), 1);
	return pages * mrrc_vm_page() / 1024;
}

static unsigned take_all(struct mrrc_pool *pool)
{
	unsigned n = 0;

	while (mrrc_pool_alloc(pool))
		n++;
	return n;
}

#define MANY (1u << 20)

/* A pool for a domain's records has few addresses at first, all in the end. */
TEST_IF(!under_valgrind(), test_grows)
{
	const size_t before = addresses();
	struct mrrc_pool *pool;
	char *first, *object = NULL;
	uint32_t i;

	ck_assert_int_eq(mrrc_pool_open(256, MANY, &pool), 0);
	first = mrrc_pool_alloc(pool);
	ck_assert_ptr_eq(first, pool->base);
	ck_assert_uint_le(addresses() - before, 4096);
	for (i = 1; i < MANY; i++) {
		object = mrrc_pool_alloc(pool);
		if (object != first + (size_t) i * 256)
			break;
	}
	*object = 1;
	ck_assert_uint_eq(i, MANY);
	ck_assert_ptr_null(mrrc_pool_alloc(pool));
	ck_assert_uint_eq(mrrc_pool_live(pool), MANY);
	ck_assert(mrrc_pool_is_live(pool, object));
	mrrc_pool_free(pool, object);
	ck_assert_ptr_eq(mrrc_pool_alloc(pool), object);
	mrrc_pool_close(pool);
	ck_assert_uint_le(addresses(), before + 64);
}

/* The limit of addresses leaves less than a step, or a few steps. */
LOOP_TEST_IF(!under_valgrind(), test_part, 0, 2)
{
	struct mrrc_pool *pool = NULL;
	struct rlimit old, limit;
	unsigned n;
	int ret;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip("a sanitizer maps memory of its own, and ends without");
#endif
	getrlimit(RLIMIT_AS, &old);
	limit = old;
	limit.rlim_cur = (addresses() + (_i ? 6144 : 1024)) * 1024;
	setrlimit(RLIMIT_AS, &limit);
	ret = mrrc_pool_open(256, MANY, &pool);
	n = ret ? 0 : take_all(pool);
	setrlimit(RLIMIT_AS, &old);
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_ge(n, _i ? 16384 : 1024);
	ck_assert_uint_lt(n, MANY);
	ck_assert_uint_eq(mrrc_pool_live(pool), n);
	ck_assert(!mrrc_pool_is_live(pool, pool->base + (size_t) n * 256));
	/* With more addresses the pool goes on. */
	ck_assert_ptr_eq(mrrc_pool_alloc(pool), pool->base + (size_t) n * 256);
	mrrc_pool_close(pool);
}

/* Another mapping is where the next step begins, and stays unchanged. */
TEST_IF(!under_valgrind(), test_other_mapping)
{
	struct mrrc_pool *pool;
	unsigned char resident;
	char *other;
	unsigned n;

	ck_assert_int_eq(mrrc_pool_open(256, MANY, &pool), 0);
	other = mmap(pool->base + pool->reserved, mrrc_vm_page(),
		     PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	ck_assert_ptr_eq(other, pool->base + pool->reserved);
	*other = 'x';
	n = take_all(pool);
	ck_assert_uint_eq(n, pool->reserved / 256);
	ck_assert(!mrrc_pool_owns(pool, other));
	ck_assert(!mrrc_pool_is_live(pool, other));
	ck_assert(mrrc_pool_is_live(pool, other - 256));
	mrrc_pool_close(pool);
	ck_assert_int_eq(mincore(other, mrrc_vm_page(), &resident), 0);
	ck_assert_int_eq(*other, 'x');
	munmap(other, mrrc_vm_page());
}

/* There are more pools than windows: the kernel places the others. */
TEST_IF(!under_valgrind(), test_many)
{
	static struct mrrc_pool *pool[1200];
	const size_t count = sizeof(pool) / sizeof(pool[0]);
	size_t i;

	for (i = 0; i < count; i++) {
		ck_assert_int_eq(mrrc_pool_open(64, 20000, &pool[i]), 0);
		ck_assert_ptr_nonnull(mrrc_pool_alloc(pool[i]));
	}
	ck_assert_uint_eq(take_all(pool[0]), 19999);
	ck_assert_uint_eq(take_all(pool[count - 1]), 19999);
	for (i = 0; i < count; i++)
		mrrc_pool_close(pool[i]);
}

struct seen {
	struct mrrc_pool *pool;
	unsigned count;
	bool free;
	void *last;
};

static void see(void *object, void *arg)
{
	struct seen *seen = arg;

	ck_assert((char *) object > (char *) seen->last);
	seen->last = object;
	seen->count++;
	if (seen->free)
		mrrc_pool_free(seen->pool, object);
}

TEST(test_foreach)
{
	struct seen seen = { 0 };
	struct mrrc_pool *pool;
	void *object[5000];
	int i;

	ck_assert_int_eq(mrrc_pool_open(256, 10000, &pool), 0);
	mrrc_pool_foreach_live(pool, see, &seen);
	ck_assert_uint_eq(seen.count, 0);
	for (i = 0; i < 5000; i++)
		object[i] = mrrc_pool_alloc(pool);
	for (i = 0; i < 5000; i += 2)
		mrrc_pool_free(pool, object[i]);
	mrrc_pool_foreach_live(pool, see, &seen);
	ck_assert_uint_eq(seen.count, 2500);
	seen = (struct seen){ .pool = pool, .free = true };
	mrrc_pool_foreach_live(pool, see, &seen);
	ck_assert_uint_eq(seen.count, 2500);
	ck_assert_uint_eq(mrrc_pool_live(pool), 0);
	mrrc_pool_close(pool);
}

#define THREADS 4
#define HELD	16
#define ROUNDS	20000

/* Each thread writes its name to its objects and finds it unchanged. */
static void *churn(void *arg)
{
	struct mrrc_pool *pool = arg;
	uint64_t *object[HELD] = { NULL };
	const uint64_t name = (uintptr_t) &object;
	int i, slot;

	for (i = 0; i < ROUNDS; i++) {
		slot = i * 7 % HELD;
		if (object[slot]) {
			if (*object[slot] != name + slot)
				return arg;
			mrrc_pool_free(pool, object[slot]);
			object[slot] = NULL;
		} else {
			object[slot] = mrrc_pool_alloc(pool);
			if (object[slot])
				*object[slot] = name + slot;
		}
	}
	for (slot = 0; slot < HELD; slot++) {
		if (object[slot])
			mrrc_pool_free(pool, object[slot]);
	}
	return NULL;
}

TEST(test_threads)
{
	pthread_t thread[THREADS];
	struct mrrc_pool *pool;
	void *bad;
	int i;

	/* There are too few objects for all threads, so allocations fail. */
	ck_assert_int_eq(mrrc_pool_open(64, THREADS * HELD / 2, &pool), 0);
	for (i = 0; i < THREADS; i++)
		thread[i] = thread_start(churn, pool);
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &bad);
		ck_assert_ptr_null(bad);
	}
	ck_assert_uint_eq(mrrc_pool_live(pool), 0);
	mrrc_pool_close(pool);
}

/* in a page of its own */

static struct mrrc_pool *aba; /* the pool is in a page of its own */
static void *aba_second;

/* Acts at the first write to the head: takes two, gives back the first. */
static void aba_other(int sig)
{
	void *first;

	mprotect(aba, sizeof(*aba), PROT_READ | PROT_WRITE);
	first = mrrc_pool_alloc(aba);
	aba_second = mrrc_pool_alloc(aba);
	mrrc_pool_free(aba, first);
}

TEST_IF(!under_valgrind(), test_aba)
{
	const struct sigaction act = { .sa_handler = aba_other };
	struct mrrc_pool *pool;
	struct sigaction old;
	void *object[2];
	int i;

#ifdef __SANITIZE_THREAD__
	skip("the exchange is a function that takes a lock, and faults inside");
#endif
	ck_assert_int_eq(mrrc_pool_open(64, 10, &pool), 0);
	for (i = 0; i < 2; i++)
		object[i] = mrrc_pool_alloc(pool);
	for (i = 0; i < 2; i++)
		mrrc_pool_free(pool, object[i]);
	aba = mmap(NULL, sizeof(*aba), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(aba, MAP_FAILED);
	memcpy(aba, pool, sizeof(*aba));
	aba_second = NULL;
	ck_assert_int_eq(sigaction(SIGSEGV, &act, &old), 0);
	mprotect(aba, sizeof(*aba), PROT_READ);
	object[0] = mrrc_pool_alloc(aba);
	sigaction(SIGSEGV, &old, NULL);
	object[1] = mrrc_pool_alloc(aba);

	ck_assert_ptr_nonnull(aba_second);
	for (i = 0; i < 2; i++)
		ck_assert_ptr_ne(object[i], aba_second);
	ck_assert_ptr_ne(object[0], object[1]);
	munmap(aba, sizeof(*aba));
	mrrc_pool_close(pool);
}

TEST(test_open_fails)
{
	struct mrrc_pool *pool = NULL;
	unsigned part = 0;
	bool fired;
	int ret;
	int n;

	for (n = 1;; n++) {
		fault_arm(n);
		ret = mrrc_pool_open(256, 1000, &pool);
		fired = fault_disarm();
		if (!fired)
			break;
		if (!ret) { /* the pool has fewer addresses at first */
			part++;
			mrrc_pool_close(pool);
			pool = NULL;
			continue;
		}
		ck_assert_int_eq(ret, -ENOMEM);
		ck_assert_ptr_null(pool);
		ck_assert_uint_eq(fault_leaks(), 0);
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_int_ge(n, 5);
	/* Under valgrind, all addresses are reserved at once. */
	ck_assert(part || under_valgrind());
	/* Without memory to commit there is no object; later there is one. */
	fault_arm(1);
	ck_assert_ptr_null(mrrc_pool_alloc(pool));
	fault_disarm();
	ck_assert_ptr_nonnull(mrrc_pool_alloc(pool));
	mrrc_pool_close(pool);
}
