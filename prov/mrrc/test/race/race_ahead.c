/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ./bench.sh race: the duels of race_bench with a helper that predicts uses.
 * The lookups of a duel come in bursts at regular times, so that the helper
 * deregisters the pages between two bursts and registers the pages ahead of the
 * next burst, while another thread replaces the pages.
 *
 * A registration remembers the words that its pages held when it was made. A
 * lookup that begins after new words were written, and is served by a
 * registration with another word, is stale.
 *
 *	race_ahead [LOOKUPS]
 *
 * Last line: RESULT LOOKUPS STALE EARLY AHEAD. EARLY counts regions that were
 * deregistered between two bursts, AHEAD counts regions that were registered
 * ahead of a burst. Exit status 77: cannot run here.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test/race/duel_way.h"
#include "sys/cache/cache_use.h"
#include "sys/base/vm.h"
#include "sys/predict/ahead.h"

#define BURST 240u
#define US    2000 /* microseconds between two bursts */

struct run {
	struct mrrc_mon *mon;
	struct mrrc_budget *budget;
	struct mrrc_cache_mt *cache;
	unsigned long until;
};

static size_t page;
static uint64_t word; /* each value is written only once */
static unsigned long lookups, stale;

static void check(bool right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "race_ahead: %s\n", what);
	exit(1);
}

/* The helper may register memory that another thread unmaps. */
static int note_reg(void *arg, uintptr_t start, size_t len,
		    enum mrrc_access access, void **cookie, void **desc)
{
	uint64_t first = 0, got;
	uintptr_t at;

	for (at = start; at < start + len; at += page) {
		if (process_vm_readv(
			    getpid(), &(struct iovec){ &got, sizeof(got) }, 1,
			    &(struct iovec){ (void *) at, sizeof(got) }, 1,
			    0) != sizeof(got))
			return -EFAULT;
		if (at == start)
			first = got;
		/* 0: the pages do not all hold the same word */
		if (got != first)
			first = 0;
	}
	*cookie = (void *) first;
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

static bool run_open(struct run *run)
{
	const struct mrrc_budget_attr alone = {
		.bytes = MRRC_BUDGET_NONE,
		.dir = "/nonexistent",
	};
	const struct mrrc_cost cost = {
		.reg = 1000,
		.dereg = 1000,
		.page = page,
	};
	struct mrrc_cache_attr attr = {
		.ops = &note_ops,
		.helper = true,
		.predictor = &mrrc_ahead_predictor,
		.helpers = MRRC_NODE_AGGRESSIVE,
	};
	char why[MRRC_MON_REASON];
	int error;

	if (mrrc_mon_open_ops(&mrrc_mon_uffd_ops, why, &run->mon)) {
		fprintf(stderr, "race_ahead: %s\n", why);
		return false;
	}
	if (mrrc_mon_hook(run->mon, why))
		fprintf(stderr, "race_ahead: no hooks: %s\n", why);
	check(!mrrc_budget_open(&alone, &run->budget, &error), "no budget");
	attr.mon = run->mon;
	attr.budget = run->budget;
	check(!mrrc_cache_mt_open(&attr, &run->cache), "no cache");
	mrrc_cache_mt_set_cost(run->cache, &cost);
	check(mrrc_cache_mt_predicts(run->cache),
	      "the helper does not predict");
	return true;
}

static void run_close(struct run *run)
{
	check(!mrrc_cache_mt_close(run->cache), "regions are in use");
	mrrc_budget_close(run->budget);
	mrrc_mon_close(run->mon);
}

static void run_use(void *arg, char *ptr, unsigned pages, bool fresh)
{
	struct run *run = arg;
	struct mrrc_region *region;
	unsigned i;

	usleep(US);
	/* The page keeps its old word if it was not replaced. */
	if (!fresh && *(volatile uint64_t *) ptr) {
		word = *(volatile uint64_t *) ptr;
	} else {
		word++;
		for (i = 0; i < pages; i++)
			*(volatile uint64_t *) (ptr + i * page) = word;
	}
	/* The use is one of a large enough buffer, as data calls make it. */
	mrrc_cache_use(run->cache, ptr, MRRC_USES_MIN, ptr);
	for (i = 0; i < BURST; i++) {
		check(!mrrc_cache_mt_get(run->cache, ptr, pages * page, MRRC_RW,
					 &region),
		      "no registration");
		stale += (uint64_t) region->cookie != word;
		mrrc_cache_mt_put(run->cache, region);
	}
	mrrc_cache_use_wake(run->cache);
	lookups += BURST;
}

static bool run_over(void *arg)
{
	const struct run *run = arg;

	return lookups >= run->until;
}

int main(int argc, char **argv)
{
	const unsigned long total = argc > 1 ? strtoul(argv[1], NULL, 10) :
					       1000000;
	unsigned long early = 0, ahead = 0, bad, first;
	struct mrrc_stats stats;
	struct run run;
	unsigned i;

	page = mrrc_vm_page();
	/* The library is for the moves "raw". */
	check(duel_library.come(), "no library past the hooks");
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("%-24s %10s %10s %10s %10s\n", "with a helper", "lookups",
	       "early", "ahead", "stale");
	for (i = 0; i < duel_count; i++) {
		if (!run_open(&run))
			return 77;
		first = lookups;
		bad = stale;
		run.until = total * (i + 1) / duel_count;
		duel_fight(&duel_moves[i], NULL, run_use, run_over, &run);
		mrrc_cache_mt_stats(run.cache, &stats);
		printf("%-24s %10lu %10lu %10lu %10lu\n", duel_moves[i].name,
		       lookups - first,
		       (unsigned long) stats.value[MRRC_STAT_EARLY],
		       (unsigned long) stats.value[MRRC_STAT_AHEAD],
		       stale - bad);
		early += stats.value[MRRC_STAT_EARLY];
		ahead += stats.value[MRRC_STAT_AHEAD];
		run_close(&run);
	}
	printf("RESULT %lu %lu %lu %lu\n", lookups, stale, early, ahead);
	return 0;
}
