/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hits without a lock, while other threads end, close the cache, miss the same
 * range or fork. Without other threads, the kernel need not be asked whether
 * memory is quiet (sys/base/threads.h).
 */
#include "config.h"
#include "test/sys/cache/mt_fixture.h"
#include "test/case.h"

#include <semaphore.h>
#include <sys/syscall.h>

#include "test/fakes/fake_pin.h"
#include "sys/base/threads.h"

/* ---- threads ---- */

static sem_t ready;
static sem_t go;

static void *use_and_end(void *arg)
{
	struct mrrc_region *region;
	int i;

	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(mrrc_cache_mt_get(cache, (void *) base, 1,
						   MRRC_RW, &region),
				 0);
		if (i < 2 || !arg)
			mrrc_cache_mt_put(cache, region);
	}
	return region;
}

TEST_CASE(hit_threads, mt_setup, mt_teardown);

/* The counts of an ended thread stay; another thread puts its held region. */
TEST(test_thread_ends)
{
	void *region;

	pthread_join(thread_start(use_and_end, &go), &region);
	ck_assert_uint_eq(stat_of(MRRC_STAT_LOOKUPS), 3);
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 1);
	put(region);
	ck_assert_uint_eq(mrrc_cache_mt_held(cache), 0);
}

static void *use_close_use(void *arg)
{
	use_and_end(NULL);
	sem_post(&ready);
	sem_wait(&go);
	use_and_end(NULL);
	return NULL;
}

/* The cache that a thread used is closed, and another cache is opened. */
TEST(test_cache_closes)
{
	pthread_t thread;

	sem_init(&ready, 0, 0);
	sem_init(&go, 0, 0);
	thread = thread_start(use_close_use, NULL);
	sem_wait(&ready);
	reopen("lru");
	sem_post(&go);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(stat_of(MRRC_STAT_LOOKUPS), 3);
	ck_assert_uint_eq(fake.regs, 2);
}

#define CROWD 4

/* number of threads that the first registration waits for */
static atomic_uint joiners;
static sem_t registering;

static void until_joined(void *arg, uintptr_t start, size_t len)
{
	fake.hook = NULL;
	sem_post(&registering);
	while (waiting() < joiners && !fake.regs)
		usleep(100);
}

static void wait_for_joiners(unsigned count)
{
	joiners = count;
	sem_init(&registering, 0, 0);
	fake.hook = until_joined;
}

/* Threads that miss the same range at once register it once. */
TEST(test_joined)
{
	pthread_t thread[CROWD];
	int i;

	wait_for_joiners(CROWD - 1);
	for (i = 0; i < CROWD; i++)
		thread[i] = thread_start(use_and_end, NULL);
	for (i = 0; i < CROWD; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_eq(fake.regs, 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_JOINED), CROWD - 1);
	ck_assert_uint_eq(stat_of(MRRC_STAT_HITS), 2 * CROWD);
	ck_assert_uint_eq(stat_of(MRRC_STAT_DUPLICATES), 0);
}

static void *join_and_end(void *arg)
{
	struct mrrc_region *region = NULL;

	mrrc_cache_mt_get(cache, (void *) base, 1, MRRC_RW, &region);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return region;
}

/* A cancelled thread keeps waiting for another thread's registration. */
TEST(test_joined_cancelled)
{
	pthread_t thread[2];
	void *region;
	int i;

	wait_for_joiners(2); /* more than join, so until `joiners` is cleared */
	for (i = 0; i < 2; i++) {
		thread[i] = thread_start(join_and_end, NULL);
		if (!i)
			sem_wait(&registering);
	}
	while (!waiting())
		usleep(100);
	pthread_cancel(thread[1]);
	usleep(5000); /* The thread must not end now. */
	joiners = 0;
	for (i = 0; i < 2; i++) {
		pthread_join(thread[i], &region);
		ck_assert_ptr_nonnull(region);
		ck_assert_ptr_ne(region, PTHREAD_CANCELED);
		put(region);
	}
}

static void *put_cancelled(void *arg)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	mrrc_cache_mt_put(cache, arg);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return arg;
}

/* A cancelled thread does not end in a deregistration: its put is completed. */
TEST(test_put_cancelled)
{
	struct mrrc_region *region = get(0, 1);
	void *ended;

	mrrc_cache_mt_invalidate(cache, (void *) base, page);
	fake.on_dereg = pthread_testcancel;
	pthread_join(thread_start(put_cancelled, region), &ended);
	fake.on_dereg = NULL;
	ck_assert_ptr_eq(ended, region);
	ck_assert_uint_eq(stat_of(MRRC_STAT_PINNED), 0);
}

static void *may_fail(void *arg)
{
	struct mrrc_region *region;
	int ret;

	ret = mrrc_cache_mt_get(cache, (void *) base, 1, MRRC_RW, &region);
	if (!ret)
		mrrc_cache_mt_put(cache, region);
	return ret ? arg : NULL;
}

/* The first registration fails: the waiting thread registers the range. */
TEST(test_joined_fails)
{
	pthread_t thread;
	void *failed[2];

	wait_for_joiners(1);
	fake.fail_in = 1;
	fake.fail_rc = -EIO;
	thread = thread_start(may_fail, &go);
	failed[0] = may_fail(&go);
	pthread_join(thread, &failed[1]);
	ck_assert(!failed[0] != !failed[1]);
	ck_assert_uint_eq(fake.regs, 1);
}

TEST(test_fork)
{
	struct mrrc_region *region;
	uint64_t before;
	pid_t pid;

	touch(0, 1);
	touch(0, 1);
	before = quick();
	pid = fork();
	if (!pid) {
		/* The child has a region of its own, without a hint. */
		if (mrrc_cache_mt_get(cache, (void *) base, 1, MRRC_RW,
				      &region) ||
		    region->state != MRRC_REGION_NEW || quick() != before)
			_exit(1);
		mrrc_cache_mt_put(cache, region);
		if (fake.live != 1 || mrrc_cache_mt_close(cache))
			_exit(2);
		/* All is well; leak checkers would report the child. */
		raise(SIGKILL);
	}
	child_dies(pid);
	touch(0, 1);
	ck_assert_uint_eq(quick(), before + 1);
}

/* ---- alone: one thread, no probe, the kernel's events ---- */

#define ALONE_PAGES 8u
#define ALONE_STEPS 3000
/* ThreadSanitizer has a thread that may map memory in a hole. */
#ifdef __SANITIZE_THREAD__
#define CHANGES 4
#else
#define CHANGES 6
#endif

static struct fake_pin pin;

/* Writes to the pages; returns whether a device would see these words. */
static bool true_now(char *ptr, unsigned pages)
{
	static uint64_t word;
	struct mrrc_plan got;
	bool seen;
	unsigned i;

	word += pages;
	for (i = 0; i < pages; i++)
		*(volatile uint64_t *) (ptr + i * page) = word + i;
	ck_assert_int_eq(mrrc_cache_mt_get_pieces(cache, ptr, pages * page,
						  MRRC_RW, 4, &got),
			 0);
	seen = fake_pin_sees(&got, (uintptr_t) ptr, pages, word);
	while (got.count)
		mrrc_cache_mt_put(cache, got.piece[--got.count].region);
	return seen;
}

static void map_again(char *ptr, size_t len, bool raw)
{
	const int prot = PROT_READ | PROT_WRITE;
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;

	if (raw)
		syscall(SYS_mmap, ptr, len, prot, flags, -1, 0);
	else
		ck_assert_ptr_eq(mmap(ptr, len, prot, flags, -1, 0), ptr);
}

/* Replaces the pages at @ptr in one of several ways. */
static void change(char *ptr, size_t len, int how)
{
	char *other;

	switch (how) {
	case 0:
		map_again(ptr, len, false);
		break;
	case 1:
		map_again(ptr, len, true);
		break;
	case 2:
		madvise(ptr, len, MADV_DONTNEED);
		break;
	case 3:
		other = mmap(NULL, len, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		*other = 1;
		mremap(other, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, ptr);
		break;
	case 4:
		munmap(ptr, len);
		map_again(ptr, len, false);
		break;
	default:
		/* refused if some parts are watched and others are not */
		mremap(ptr, len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
		       ptr + 64 * page);
		map_again(ptr, len, false);
	}
}

TEST(test_alone)
{
	struct mrrc_mon *mon;
	unsigned i, at, pages;
	char *ptr;

	if (mrrc_mon_open("uffd", NULL, &mon))
		return;
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	ck_assert_int_eq(mrrc_cache_mt_open(
				 &(struct mrrc_cache_attr){
					 .max_bytes = 64 * page,
					 .max_regions = 16,
					 .ops = &fake_pin_ops,
					 .arg = &pin,
					 .mon = mon,
				 },
				 &cache),
			 0);
	if (mrrc_threads_alone()) {
		mrrc_thread_outside();
		ck_assert(!mrrc_threads_alone());
		mrrc_thread_inside();
		ck_assert(mrrc_threads_alone());
	} else {
		fprintf(stderr, "test_hit_threads: not alone, so every hit "
				"probes\n");
	}
	ptr = mmap(NULL, 128 * page, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	srand(1);
	for (i = 0; i < ALONE_STEPS; i++) {
		at = rand() % ALONE_PAGES;
		pages = 1 + rand() % (ALONE_PAGES - at);
		ck_assert(true_now(ptr + at * page, pages));
		ck_assert(true_now(ptr + at * page, pages));
		at = rand() % ALONE_PAGES;
		pages = 1 + rand() % (ALONE_PAGES - at);
		change(ptr + at * page, pages * page, rand() % CHANGES);
		ck_assert(true_now(ptr, ALONE_PAGES));
	}
	ck_assert_uint_gt(quick(), ALONE_STEPS / 4);
	/* a move that failed may have left a hole in the rest */
	munmap(ptr, 64 * page);
	ck_assert_int_eq(mrrc_cache_mt_close(cache), 0);
	ck_assert_uint_eq(pin.live, 0);
	mrrc_mon_close(mon);
	ck_assert_int_eq(open_cache(&cache), 0);
}

/*
 * Another thread's unmap and its end both fall between two steps of a lookup: a
 * thread that finds itself alone must see the unmap. The count of threads is in
 * a page that cannot be read before the other thread ends.
 */
static unsigned *live_page;

static void thread_leaves(int sig)
{
	mprotect(live_page, page, PROT_READ | PROT_WRITE);
	atomic_fetch_or(&mt_mon->seq, 1); /* the unmap's event has been read */
	*live_page = 1;
}

TEST_IF(!under_valgrind(), test_alone_since)
{
	const struct sigaction act = { .sa_handler = thread_leaves };
	const unsigned *live = mrrc_threads.live;
	const bool many = mrrc_threads.many;
	_Atomic uint64_t probes = 0;
	struct sigaction old;
	uint64_t seq;
	bool told[2] = { true };
	int quiet[2] = { 0 };
	int i;

	live_page = mmap(NULL, page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(live_page, MAP_FAILED);
	ck_assert_int_eq(sigaction(SIGSEGV, &act, &old), 0);
	mt_mon->ask = MRRC_ASK_OTHERS;
	mrrc_threads.live = live_page;
	mrrc_threads.many = false;
	for (i = 0; i < 2; i++) {
		*live_page = 2;
		mprotect(live_page, page, PROT_NONE);
		if (i)
			quiet[0] = mrrc_mon_quiet(mt_mon, &seq, &probes);
		else
			told[0] = mrrc_mon_is_told(mt_mon);
		mrrc_mon_drain(mt_mon);
	}
	/* Without another thread, memory is quiet. */
	told[1] = mrrc_mon_is_told(mt_mon);
	quiet[1] = mrrc_mon_quiet(mt_mon, &seq, &probes);
	mrrc_threads.live = live;
	mrrc_threads.many = many;
	sigaction(SIGSEGV, &old, NULL);
	munmap(live_page, page);

	ck_assert(!told[0]);
	ck_assert_int_eq(quiet[0], -EAGAIN);
	ck_assert(told[1]);
	ck_assert_int_eq(quiet[1], 0);
}

static void *wait_to_end(void *arg)
{
	sem_wait(arg);
	return NULL;
}

/*
 * A child does not have the provider's threads of its parent, so no thread that
 * the child starts may be taken for a provider's thread.
 */
TEST_IF(CHILD_MAY_THREAD, test_alone_forked)
{
	pthread_t thread[2];
	sem_t end;
	int status;
	pid_t pid;

	mrrc_threads_init();
	sem_init(&end, 0, 0);
	ck_assert_int_eq(mrrc_thread_start(&thread[0], 0, wait_to_end, &end),
			 0);
	pid = fork();
	if (!pid) {
		if (pthread_create(&thread[1], NULL, wait_to_end, &end))
			_exit(2);
		if (mrrc_threads_alone())
			_exit(3);
		/* All is well; leak checkers would report the child. */
		raise(SIGKILL);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	sem_post(&end);
	mrrc_thread_join(thread[0]);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void *use_and_tell(void *arg)
{
	struct mrrc_region *region;

	if (!mrrc_cache_mt_get(cache, (void *) base, 1, MRRC_RW, &region))
		mrrc_cache_mt_put(cache, region);
	sem_post(&ready);
	return arg;
}

/* A thread that used the cache ends while the cache is being closed. */
TEST(test_end_and_close)
{
	pthread_t thread;
	int i;

	sem_init(&ready, 0, 0);
	for (i = 0; i < 1000; i++) {
		thread = thread_start(use_and_tell, NULL);
		sem_wait(&ready);
		reopen("lru");
		pthread_join(thread, NULL);
	}
}

/* A second thread is noticed, and still counts after its end. */
TEST(test_alone_no_more)
{
	pthread_t thread;
	bool alone;

	mrrc_threads_init();
	alone = mrrc_threads_alone();
	ck_assert_int_eq(mrrc_thread_start(&thread, 0, use_and_end, NULL), 0);
	ck_assert_int_eq(mrrc_threads_alone(), alone);
	mrrc_thread_join(thread);
	ck_assert_int_eq(mrrc_threads_alone(), alone);
	sem_init(&ready, 0, 0);
	sem_init(&go, 0, 0);
	thread = thread_start(use_close_use, NULL);
	ck_assert(!mrrc_threads_alone());
	sem_wait(&ready);
	sem_post(&go);
	pthread_join(thread, NULL);
	ck_assert(!mrrc_threads_alone());
}
