/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processes with caches share the budget of a node, while this process starts,
 * stops, continues and kills the other processes, which also fork. At each
 * moment live processes have registered at most the budget plus what their
 * operations hold. In the end all live processes end by themselves, and the
 * bytes of killed processes are free.
 *
 * The registrations are fake. Shared memory has one word for each process, with
 * the number of registered pages. Words that did not change between two reads
 * show a state that existed.
 */
#include "config.h"
/* This header precedes headers that declare a global `cache`. */
#include "sys/cache/cache_mt_priv.h"
#include "test/case.h"

#include <time.h>

#include "test/seed.h"
#include "sys/node/node_shm.h"
#include "sys/base/vm.h"

#define PROCESSES 6
#define THREADS	  2
#define BUFFERS	  32
#define HOLDS	  3
#define PAGES	  16 /* largest number of pages of a buffer */
#define BUDGET	  (PROCESSES * 64)
#define SECONDS	  8

/* A word is changes << 48 | pages held << 24 | pages registered. */
#define REGISTERED(word) ((word) &0xffffff)
#define HELD(word)	 ((word) >> 24 & 0xffffff)
#define CHANGE		 (UINT64_C(1) << 48)

static struct {
	_Alignas(64) _Atomic uint64_t word;
	_Atomic uint64_t turns;
} * truth;

static atomic_bool *finish;
static char dir[64];
static size_t page;

/* ---- a process ---- */

static unsigned me;
static struct mrrc_cache_mt *mine;

static void note(uint64_t registered, uint64_t held)
{
	atomic_fetch_add(&truth[me].word, CHANGE + registered + (held << 24));
}

static int fake_register(void *arg, uintptr_t start, size_t len,
			 enum mrrc_access access, void **cookie, void **desc)
{
	note(len / page, 0);
	*cookie = *desc = NULL;
	return 0;
}

static void fake_deregister(void *arg, struct mrrc_region *const *regions,
			    size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		note(-(uint64_t) (regions[i]->len / page), 0);
}

static const struct mrrc_reg_ops reg_ops = {
	.reg = fake_register,
	.dereg = fake_deregister,
};

/* Starts several operations; each holds its region while it is in flight. */
static void operate(struct seed *seed)
{
	struct mrrc_region *region[HOLDS];
	size_t pages[HOLDS];
	unsigned i, which;

	for (i = 0; i < HOLDS; i++) {
		which = seed_below(seed, BUFFERS);
		pages[i] = 1 + which * 5 % PAGES;
		note(0, pages[i]);
		if (mrrc_cache_mt_get(
			    mine, (void *) ((1024 + which * 2 * PAGES) * page),
			    pages[i] * page, MRRC_RW, &region[i]))
			_exit(3);
	}
	for (i = 0; i < HOLDS; i++) {
		mrrc_cache_mt_put(mine, region[i]);
		note(0, -(uint64_t) pages[i]);
	}
	atomic_fetch_add(&truth[me].turns, 1);
}

static void *run(void *arg)
{
	struct seed seed = { (uintptr_t) arg };
	unsigned turn;

	while (!atomic_load(finish)) {
		for (turn = seed_below(&seed, 200); turn; turn--)
			operate(&seed);
		/* From time to time, a process uses nothing for long. */
		usleep(seed_below(&seed, 30) ? seed_below(&seed, 2000) :
					       seed_below(&seed, 1500000));
		if (!seed_below(&seed, 20) && !fork()) {
			usleep(seed_below(&seed, 100000));
			_exit(0);
		}
	}
	return NULL;
}

static void process(unsigned number, uint64_t random)
{
	const struct mrrc_budget_attr attr = {
		.bytes = BUDGET * page,
		.alone = page,
		.dir = dir,
	};
	struct mrrc_cache_attr cache = {
		.max_bytes = BUDGET * page,
		.max_regions = 4 * BUFFERS,
		.policy = "lru:pieces=1",
		.ops = &reg_ops,
		.helper = number & 1,
	};
	char why[MRRC_MON_REASON];
	pthread_t thread[THREADS];
	unsigned i;
	int alone;

	signal(SIGCHLD, SIG_IGN);
	me = number;
	if (mrrc_budget_join(&attr, &cache.budget, &alone) || alone ||
	    mrrc_mon_open("manual", why, &cache.mon) ||
	    mrrc_cache_mt_open(&cache, &mine))
		_exit(2);
	for (i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, run,
			       (void *) (random + 77 * i));
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	if (mrrc_cache_mt_close(mine))
		_exit(4);
	mrrc_budget_leave(cache.budget);
	_exit(REGISTERED(atomic_load(&truth[me].word)) ? 5 : 0);
}

/* ---- the process that watches the others ---- */

static struct {
	pid_t pid;
	bool stopped;
} one[PROCESSES];

static unsigned long states, unsure;

static void start(unsigned i, struct seed *seed)
{
	const uint64_t random = seed_below(seed, UINT64_MAX);

	atomic_store(&truth[i].word, 0);
	one[i].stopped = false;
	one[i].pid = fork();
	ck_assert_int_ge(one[i].pid, 0);
	if (!one[i].pid) {
		end_in(300);
		process(i, random);
	}
}

static void end(unsigned i)
{
	kill(one[i].pid, SIGKILL);
	ck_assert_int_eq(waitpid(one[i].pid, NULL, 0), one[i].pid);
	one[i].pid = 0;
}

/* A process that is being killed does not count: the kernel frees memory. */
static void check(unsigned without)
{
	uint64_t word[PROCESSES], registered = 0, held = 0;
	unsigned i;

	for (i = 0; i < PROCESSES; i++)
		word[i] = atomic_load(&truth[i].word);
	for (i = 0; i < PROCESSES; i++) {
		if (atomic_load(&truth[i].word) != word[i]) {
			unsure++;
			return;
		}
		if (i == without)
			continue;
		registered += REGISTERED(word[i]);
		held += HELD(word[i]);
	}
	states++;
	ck_assert_uint_le(registered, BUDGET + held);
}

static void disturb(struct seed *seed)
{
	const unsigned i = seed_below(seed, PROCESSES);

	switch (seed_below(seed, 8)) {
	case 0:
		check(i);
		end(i);
		check(i);
		start(i, seed);
		break;
	case 1:
	case 2:
		kill(one[i].pid, one[i].stopped ? SIGCONT : SIGSTOP);
		one[i].stopped = !one[i].stopped;
		break;
	default:
		break;
	}
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static uint64_t turns(void)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < PROCESSES; i++)
		sum += atomic_load(&truth[i].turns);
	return sum;
}

/* All live processes end by themselves, and have deregistered everything. */
static void finish_all(void)
{
	unsigned i;
	int status;

	atomic_store(finish, true);
	for (i = 0; i < PROCESSES; i++)
		kill(one[i].pid, SIGCONT);
	for (i = 0; i < PROCESSES; i++) {
		ck_assert_int_eq(waitpid(one[i].pid, &status, 0), one[i].pid);
		ck_assert_int_eq(status, 0);
	}
	fprintf(stderr, "%lu states, %lu unsure, %llu turns\n", states, unsure,
		(unsigned long long) turns());
}

static void setup(void)
{
	void *shared;

	page = mrrc_vm_page();
	snprintf(dir, sizeof(dir), "/dev/shm/race_node.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	shared = mmap(NULL, page + PROCESSES * sizeof(*truth),
		      PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	ck_assert_ptr_ne(shared, MAP_FAILED);
	finish = shared;
	truth = (void *) ((char *) shared + page);
}

static void teardown(void)
{
	char path[128];

	mrrc_node_shm_path(dir, path, sizeof(path));
	unlink(path);
	rmdir(dir);
}

TEST_CASE(race_node, setup, teardown);

TEST(test_budget_holds)
{
	const struct mrrc_budget_attr attr = {
		.bytes = BUDGET * page,
		.alone = page,
		.dir = dir,
	};
	struct seed seed = seed_init("race_node", _i);
	const uint64_t until = now_ms() + SECONDS * 1000;
	struct mrrc_budget *budget;
	unsigned i;
	int alone;

	for (i = 0; i < PROCESSES; i++)
		start(i, &seed);
	while (now_ms() < until || states <= 100 || turns() <= 100) {
		for (i = seed_below(&seed, 200); i; i--)
			check(PROCESSES);
		disturb(&seed);
		usleep(seed_below(&seed, 1000));
	}
	/* Two processes are killed, and all their bytes are free for others. */
	end(0);
	end(1);
	start(0, &seed);
	start(1, &seed);
	finish_all();
	ck_assert_int_eq(mrrc_budget_open(&attr, &budget, &alone), 0);
	ck_assert_int_eq(alone, 0);
	ck_assert(mrrc_budget_take_wait(budget, NULL, BUDGET * page, 60000));
	mrrc_budget_put(budget, BUDGET * page);
	mrrc_budget_close(budget);
}

int main(void)
{
	return run_cases(CK_NOFORK);
}
