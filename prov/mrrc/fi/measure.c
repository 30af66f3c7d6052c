/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Measuring the cost model (measure.h): what a miss does, with a few sizes of
 * a private mapping, in turn, until there is enough of it or time is up.
 *
 * Watching memory and looking whose it is are part of a miss, so they are in.
 *
 * Any thread.
 */
#include "config.h"
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#include "blocks.h"
#include "core/cost_fit.h"
#include "measure.h"
#include "mrrc_fi.h"
#include "sys/mon.h"
#include "sys/vm.h"

#define BUDGET_NS	4e6	/* then what there is must do */
#define ROUNDS		8
#define PAGES		64	/* of the largest */

/* The last one only where there is plenty of time: it says more of a page. */
static const size_t measure_pages[] = { 1, 16, PAGES };
#define SIZES		count_of(measure_pages)
#define ALWAYS		2
#define COPY_PAGES	16	/* of the largest copy */
#define ROUNDS_ALWAYS	2	/* the first finds caches cold */

/* Devices that were measured; only ever added to. */
struct mrrc_device {
	struct mrrc_device *next;
	struct mrrc_cost cost;
	char name[];
};

static struct mrrc_device *_Atomic measure_devices;


static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec * 1e9 + (double) now.tv_nsec;
}

static void keep_least(double *least, double value)
{
	if (!*least || value < *least)
		*least = value;
}

/* One size once, to see whether it takes less than before. */
static int measure_once(struct mrrc_reg *reg, char *map, size_t page,
			struct mrrc_cost_sample *least)
{
	const uintptr_t start = (uintptr_t) map;
	const size_t len = least->pages * page;
	size_t copied;
	struct fid_mr *mr;
	double at[3];
	bool watched;
	int ret;

	at[0] = now_ns();
	watched = !mrrc_mon_watch(reg->mon, start, len);
	ret = mrrc_reg_own(reg, map, len, MRRC_REG_BOUNCE, &mr);
	if (watched)
		mrrc_mon_sees(reg->mon, start, len);
	at[1] = now_ns();
	if (!ret)
		ret = fi_close(&mr->fid);
	if (watched)
		mrrc_mon_unwatch(reg->mon, start, len);
	at[2] = now_ns();
	/* else it would be watched the next time */
	mrrc_mon_unwatch_idle(reg->mon);
	if (ret)
		return ret;
	keep_least(&least->reg, at[1] - at[0]);
	keep_least(&least->dereg, at[2] - at[1]);
	/* as a bounce does, and with pages that are as cold */
	copied = len < COPY_PAGES * page ? len : COPY_PAGES * page;
	at[0] = now_ns();
	ret = mrrc_blocks_copy(map + PAGES * page, map, copied, false);
	at[1] = now_ns();
	keep_least(&least->copy, (at[1] - at[0]) * (double) (len / copied));
	return ret;
}

/* In turn, so that what disturbs hits all. */
static int measure_rounds(struct mrrc_reg *reg, char *map, size_t page,
			  double end, struct mrrc_cost_sample *least)
{
	const double plenty = end - BUDGET_NS * 3 / 4;
	size_t sizes = ALWAYS, i, k;
	int ret, round;

	for (round = 0; round < ROUNDS; round++) {
		if (round == ROUNDS / 2 && now_ns() < plenty)
			sizes = SIZES;
		for (i = 0; i < sizes && (round < ROUNDS_ALWAYS ||
					  now_ns() < end); i++) {
			for (k = 0; k < least[i].pages; k++)
				map[k * page] = 1;
			for (k = 0; k < COPY_PAGES; k++)
				map[(PAGES + k) * page] = 1;
			do {
				ret = measure_once(reg, map, page, &least[i]);
				/* beyond a limit, perhaps: less, then */
			} while (ret && !round && least[i].pages > 2 &&
				 (least[i].pages /= 2));
			if (ret)
				return ret;
		}
	}
	return 0;
}

static int measure_device(struct mrrc_reg *reg, struct mrrc_cost *cost)
{
	const size_t page = mrrc_vm_page(), len = (PAGES + COPY_PAGES) * page;
	const double end = now_ns() + BUDGET_NS;
	struct mrrc_cost_sample least[SIZES] = { 0 };
	size_t count = 0, i;
	char *map;
	int ret;

	for (i = 0; i < SIZES; i++)
		least[i].pages = measure_pages[i];
	map = mmap(NULL, len, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return -errno;
	madvise(map, len, MADV_NOHUGEPAGE);
	ret = measure_rounds(reg, map, page, end, least);
	munmap(map, len);
	while (count < SIZES && least[count].reg)
		count++;
	if (mrrc_cost_fit(least, count, page, cost))
		return ret ? ret : -FI_EIO;
	return 0;
}

static const struct mrrc_device *measure_known(const char *name)
{
	const struct mrrc_device *device;

	for (device = atomic_load(&measure_devices); device;
	     device = device->next) {
		if (!strcmp(device->name, name))
			return device;
	}
	return NULL;
}

static void measure_keep(const char *name, const struct mrrc_cost *cost)
{
	struct mrrc_device *device;

	device = malloc(sizeof(*device) + strlen(name) + 1);
	if (!device)
		return;
	device->cost = *cost;
	strcpy(device->name, name);
	device->next = atomic_load(&measure_devices);
	while (!atomic_compare_exchange_weak(&measure_devices, &device->next,
					     device))
		;
}

void mrrc_measure_cost(struct mrrc_reg *reg, struct mrrc_cost *cost)
{
	const struct mrrc_device *known;
	double start = now_ns();
	char name[128];
	int ret;

	if (!mrrc_params.cost_measure) {
		*cost = mrrc_params.cost;
		MRRC_INFO(MR, "cost model: %s\n", mrrc_params.cost_text);
		return;
	}
	snprintf(name, sizeof(name), "%s %s", reg->core_name, reg->device);
	known = measure_known(name);
	if (known) {
		*cost = known->cost;
		return;
	}
	ret = measure_device(reg, cost);
	if (ret) {
		*cost = *mrrc_cost_find(NULL);
		MRRC_INFO(MR, "%s: registering could not be measured (%s); "
			  "cost model: %s\n", name, fi_strerror(-ret),
			  MRRC_COST_DEFAULT);
		return;
	}
	measure_keep(name, cost);
	MRRC_INFO(MR, "%s: registering p pages takes %.0f * p + %.0f ns, "
		  "deregistering %.0f * p + %.0f, copying %.0f * p; measured "
		  "in %.1f ms\n", name, cost->reg_page, cost->reg,
		  cost->dereg_page, cost->dereg, cost->copy_page,
		  (now_ns() - start) / 1e6);
}
