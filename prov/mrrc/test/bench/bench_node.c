/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * bench_node [PHASES]: counts registrations of processes that need more and
 * less memory in turns, with a fixed part of the budget for each, and with one
 * budget for all (sys/node/budget.h).
 *
 * In each phase every other process requests buffers of one and a half times
 * its part of the budget, at random, and the remaining processes request a
 * quarter of their parts. Registrations are fake and take no time, and requests
 * come at the same rate with fixed parts and with one budget. Prints "case
 * PROCESSES FIXED NODE PEAK": registrations in 1000 requests with fixed parts
 * and with one budget, and the most that was reserved at once, in percent of
 * the budget. Before each such line, for each tenth of a second with one
 * budget, prints "bytes PROCESSES MS" and the percentage of the budget that
 * each process has.
 */
#include "config.h"
#include "sys/cache/cache_mt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/text/hash.h"
#include "sys/node/node_shm.h"
#include "sys/base/vm.h"

#define MOST	 8    /* largest number of processes */
#define PART	 64   /* buffers in each process's part */
#define PAGES	 16   /* pages of a buffer */
#define PHASE_MS 2000 /* longer than the time to notice an idle process */
#define PHASES	 6
#define BATCH	 20 /* requests before a pause */
#define PAUSE_US 2000

static struct result {
	_Atomic uint64_t requests;
	_Atomic uint64_t registrations;
} * result;

static char dir[64];
static size_t page;
static unsigned phases = PHASES;

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void fail(const char *what)
{
	fprintf(stderr, "bench_node: %s\n", what);
	_exit(1);
}

static int fake_register(void *arg, uintptr_t start, size_t len,
			 enum mrrc_access access, void **cookie, void **desc)
{
	struct result *mine = arg;

	atomic_fetch_add(&mine->registrations, 1);
	*cookie = *desc = NULL;
	return 0;
}

static void fake_deregister(void *arg, struct mrrc_region *const *regions,
			    size_t count)
{
}

static const struct mrrc_reg_ops reg_ops = {
	.reg = fake_register,
	.dereg = fake_deregister,
};

static void request(struct mrrc_cache_mt *cache, unsigned which)
{
	const size_t len = PAGES * page;
	struct mrrc_region *region;

	if (mrrc_cache_mt_get(cache, (void *) ((1024 + 2 * which) * len), len,
			      MRRC_RW, &region))
		fail("a request");
	mrrc_cache_mt_put(cache, region);
}

/* Makes requests until all phases are over. */
static void requests(struct mrrc_cache_mt *cache, unsigned number,
		     uint64_t begin)
{
	uint64_t random = number, phase;
	unsigned i, set;

	while ((phase = (now_ms() - begin) / PHASE_MS) < phases) {
		set = (phase + number) % 2 ? PART * 3 / 2 : PART / 4;
		for (i = 0; i < BATCH; i++) {
			random = mrrc_hash(random + 0x9e3779b97f4a7c15);
			request(cache, random % set);
		}
		atomic_fetch_add(&result[number].requests, BATCH);
		usleep(PAUSE_US);
	}
}

static void process(unsigned number, unsigned count, bool shared,
		    uint64_t begin)
{
	const size_t all = count * PART * PAGES * page;
	const struct mrrc_budget_attr attr = {
		.bytes = all,
		.alone = page,
		.dir = dir,
	};
	struct mrrc_cache_attr cache = {
		.max_bytes = shared ? all : all / count,
		.max_regions = count * PART,
		.policy = "lru:pieces=1:batch=1",
		.ops = &reg_ops,
		.arg = &result[number],
		.helper = true,
	};
	char why[MRRC_MON_REASON];
	struct mrrc_cache_mt *mine = NULL;
	int alone = 0;

	if ((shared &&
	     (mrrc_budget_join(&attr, &cache.budget, &alone) || alone)) ||
	    mrrc_mon_open("manual", why, &cache.mon) ||
	    mrrc_cache_mt_open(&cache, &mine))
		fail("no cache");
	requests(mine, number, begin);
	if (mrrc_cache_mt_close(mine))
		fail("a region is held");
	mrrc_budget_leave(cache.budget);
	_exit(0);
}

/* Watches the bytes of processes; returns the most at once, in units. */
static uint64_t watch(unsigned count, uint64_t begin)
{
	static struct mrrc_node_share share[MRRC_NODE_SLOTS];
	const uint64_t all = count * PART * PAGES * page / MRRC_NODE_UNIT;
	struct mrrc_node_shm *shm;
	uint64_t sum, peak = 0, ms;
	size_t i, n, self;

	if (mrrc_node_shm_open(dir, &shm))
		fail("no segment");
	while ((ms = now_ms() - begin) < phases * PHASE_MS) {
		n = mrrc_node_shm_read(shm, false, ms, share, &self);
		printf("bytes %u %llu", count, (unsigned long long) ms);
		for (i = sum = 0; i < n; i++) {
			sum += share[i].reserved;
			if (i != self)
				printf(" %.1f", 100. * share[i].reserved / all);
		}
		printf("\n");
		if (sum > peak)
			peak = sum;
		usleep(100000);
	}
	mrrc_node_shm_close(shm);
	return peak;
}

/* Returns the number of registrations in 1000 requests. */
static double run(unsigned count, bool shared, double *peak)
{
	const uint64_t begin = now_ms();
	uint64_t made = 0, asked = 0;
	unsigned i;
	int status;

	memset(result, 0, MOST * sizeof(*result));
	fflush(stdout);
	for (i = 0; i < count; i++) {
		if (!fork())
			process(i, count, shared, begin);
	}
	if (shared)
		*peak = 100. * watch(count, begin) * MRRC_NODE_UNIT /
			(count * PART * PAGES * page);
	for (i = 0; i < count; i++) {
		if (wait(&status) < 0 || status)
			fail("a process failed");
		made += atomic_load(&result[i].registrations);
		asked += atomic_load(&result[i].requests);
	}
	return asked ? 1000. * made / asked : 0;
}

int main(int argc, char **argv)
{
	double fixed, node, peak = 0;
	char path[128];
	unsigned count;

	if (argc > 1)
		phases = strtoul(argv[1], NULL, 10);
	page = mrrc_vm_page();
	snprintf(dir, sizeof(dir), "/dev/shm/bench_node.XXXXXX");
	result = mmap(NULL, MOST * sizeof(*result), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!mkdtemp(dir) || result == MAP_FAILED)
		fail("no memory");
	for (count = 2; count <= MOST; count *= 2) {
		fixed = run(count, false, &peak);
		node = run(count, true, &peak);
		printf("case %u %.1f %.1f %.1f\n", count, fixed, node, peak);
	}
	mrrc_node_shm_path(dir, path, sizeof(path));
	unlink(path);
	rmdir(dir);
	return 0;
}
