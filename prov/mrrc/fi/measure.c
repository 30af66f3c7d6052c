/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Measures the cost model (measure.h): times the steps of a miss, with a few
 * sizes of a private mapping, in turn, until there are enough samples or time
 * is up.
 *
 * A miss also watches the memory and asks whether it is private, so both are
 * timed, too.
 *
 * Any thread.
 */
#include "config.h"
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#include "fi/blocks.h"
#include "core/cost/cost_fit.h"
#include "fi/measure.h"
#include "fi/mrrc_fi.h"
#include "fi/param.h"
#include "sys/cache/cache_mt.h"
#include "sys/monitor/mon.h"
#include "sys/base/vm.h"

#define BUDGET_NS 4e6 /* after this time the samples must do */
#define ROUNDS	  8
#define PAGES	  64 /* the largest size */

/*
 * Numbers of pages that are measured. The largest number, which shows most of
 * the cost of a page, is measured only if there is time.
 */
static const size_t measure_pages[] = { 1, 16, PAGES };
#define SIZES	      count_of(measure_pages)
#define ALWAYS	      2
#define COPY_PAGES    16 /* the largest copy */
#define ROUNDS_ALWAYS 5	 /* the first rounds run with cold caches */

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

/* A cache without regions, so that every request is copied. */
struct measure_rent {
	struct mrrc_cache_mt *cache;
	struct mrrc_admit admit;
};

static int measure_never(void *arg, uintptr_t start, size_t len,
			 enum mrrc_access access, void **cookie, void **desc)
{
	return -EPERM;
}

static const struct mrrc_reg_ops measure_ops = { .reg = measure_never };

static int measure_rent_open(struct mrrc_reg *reg, size_t page,
			     struct measure_rent *rent)
{
	const struct mrrc_cost dear = {
		.reg = 1e12,
		.copy_page = .001,
		.page = page,
	};
	struct mrrc_cache_attr attr = {
		.max_bytes = PAGES * page,
		.max_regions = PAGES,
		.policy = "lru", /* the least memory */
		.ops = &measure_ops,
		.mon = reg->mon,
	};
	int ret;

	ret = mrrc_admit_init(&rent->admit, &dear, attr.max_bytes, PAGES);
	if (ret)
		return ret;
	ret = mrrc_cache_mt_open(&attr, &rent->cache);
	if (ret)
		mrrc_admit_fini(&rent->admit);
	return ret;
}

static void measure_rent_close(struct measure_rent *rent)
{
	mrrc_cache_mt_close(rent->cache);
	mrrc_admit_fini(&rent->admit);
}

/* The cost of a copied request, in excess of a hit. */
static int measure_copy(struct measure_rent *rent, char *from, char *to,
			size_t len)
{
	struct mrrc_plan plan;
	bool copy;
	int ret;

	ret = mrrc_cache_mt_get_or_copy(rent->cache, &rent->admit, from, len,
					MRRC_RO, 1, &plan, &copy);
	if (!ret)
		ret = mrrc_blocks_copy(to, from, len, false);
	mrrc_cache_mt_bounced(rent->cache, len);
	return ret;
}

/* Times each step once for one size; keeps the shortest times. */
static int measure_once(struct mrrc_reg *reg, struct measure_rent *rent,
			char *map, size_t page, struct mrrc_cost_sample *least)
{
	const uintptr_t start = (uintptr_t) map;
	const size_t len = least->pages * page;
	struct fid_mr *mr;
	uint64_t token;
	double at[3];
	bool watched;
	int ret;

	at[0] = now_ns();
	watched = !mrrc_mon_try_watch(reg->mon, start, len, &token);
	ret = mrrc_reg_own(reg, map, len, MRRC_REG_BOUNCE, &mr);
	if (watched)
		mrrc_mon_sees(reg->mon, start, len, token);
	at[1] = now_ns();
	if (!ret)
		ret = fi_close(&mr->fid);
	if (watched)
		mrrc_mon_unwatch(reg->mon, start, len);
	at[2] = now_ns();
	/* otherwise the next sample would find the memory watched */
	mrrc_mon_unwatch_idle(reg->mon);
	if (ret)
		return ret;
	keep_least(&least->reg, at[1] - at[0]);
	keep_least(&least->dereg, at[2] - at[1]);
	if (least->pages > COPY_PAGES)
		return 0;
	/* copied as through a bounce block, with equally cold pages */
	at[0] = now_ns();
	ret = measure_copy(rent, map, map + PAGES * page, len);
	at[1] = now_ns();
	keep_least(&least->copy, at[1] - at[0]);
	return ret;
}

/* Measures the sizes in turn, so that disturbances affect all of them. */
static int measure_rounds(struct mrrc_reg *reg, struct measure_rent *rent,
			  char *map, size_t page, double end,
			  struct mrrc_cost_sample *least)
{
	const double plenty = end - BUDGET_NS * 3 / 4;
	size_t sizes = ALWAYS, i, k;
	int ret, round;

	for (round = 0; round < ROUNDS; round++) {
		if (round == ROUNDS / 2 && now_ns() < plenty)
			sizes = SIZES;
		for (i = 0;
		     i < sizes && (round < ROUNDS_ALWAYS || now_ns() < end);
		     i++) {
			for (k = 0; k < least[i].pages; k++)
				map[k * page] = 1;
			for (k = 0; k < COPY_PAGES; k++)
				map[(PAGES + k) * page] = 1;
			do {
				ret = measure_once(reg, rent, map, page,
						   &least[i]);
				/* perhaps beyond a limit: try fewer pages */
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
	struct measure_rent rent;
	size_t count = 0, i;
	char *map;
	int ret;

	ret = measure_rent_open(reg, page, &rent);
	if (ret)
		return ret;
	for (i = 0; i < SIZES; i++)
		least[i].pages = measure_pages[i];
	map = mmap(NULL, len, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED) {
		ret = -errno;
		measure_rent_close(&rent);
		return ret;
	}
	madvise(map, len, MADV_NOHUGEPAGE);
	ret = measure_rounds(reg, &rent, map, page, end, least);
	munmap(map, len);
	measure_rent_close(&rent);
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

static void measure_say(const char *whose, const struct mrrc_cost *cost,
			const char *how)
{
	MRRC_INFO(MR,
		  "%s: registering p pages takes %.0f * p + %.0f ns, "
		  "deregistering %.0f * p + %.0f, copying %.0f * p + %.0f; "
		  "%s\n",
		  whose, cost->reg_page, cost->reg, cost->dereg_page,
		  cost->dereg, cost->copy_page, cost->copy, how);
}

void mrrc_measure_cost(struct mrrc_reg *reg, struct mrrc_cost *cost)
{
	const struct mrrc_device *known;
	double start = now_ns();
	char name[128], how[64];
	int ret;

	snprintf(name, sizeof(name), "%s %s", reg->core_name, reg->device);
	if (!mrrc_params.cost_measure) {
		*cost = mrrc_params.cost;
		MRRC_INFO(MR, "cost model: %s\n", mrrc_params.cost_text);
		measure_say(name, cost, "by FI_OFI_MRRC_COST");
		return;
	}
	known = measure_known(name);
	if (known) {
		*cost = known->cost;
		return;
	}
	ret = measure_device(reg, cost);
	if (ret) {
		*cost = mrrc_cost_default;
		MRRC_INFO(MR,
			  "%s: registering could not be measured (%s); "
			  "cost model: ou2009's\n",
			  name, fi_strerror(-ret));
		return;
	}
	measure_keep(name, cost);
	snprintf(how, sizeof(how), "measured in %.1f ms",
		 (now_ns() - start) / 1e6);
	measure_say(name, cost, how);
}
