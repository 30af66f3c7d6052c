/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counts the device's registrations and their bytes, in the same way whether an
 * application, libfabric's cache or ofi_mrrc registers: libfabric calls the
 * functions of reg_count.c in place of libibverbs', which these functions call
 * in turn.
 *
 * Any thread may register.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "reg_count.h"

#include <dlfcn.h>
#include <stddef.h>
#include <time.h>

#define SHOWN __attribute__((visibility("default")))
SHOWN void *ibv_reg_mr(void *pd, void *addr, size_t len, int access);
SHOWN void *ibv_reg_mr_iova2(void *pd, void *addr, size_t len, uint64_t iova,
			     unsigned access);
SHOWN int ibv_dereg_mr(void *mr);

/* Values of IBV_ACCESS_REMOTE_WRITE and IBV_ACCESS_ON_DEMAND */
#define REMOTE_WRITE (1 << 1)
#define ON_DEMAND    (1 << 6)

/* The first fields of struct ibv_mr. */
struct region {
	void *context, *pd, *addr;
	size_t len;
};

static uint64_t registered, on_demand, bytes, peak;
static uint64_t spent; /* ns of processor time, if timed is set */
static bool pin_targets, timed;
/* Depth of nested calls: newer versions of a function call older versions. */
static __thread unsigned depth;

static uint64_t now(void)
{
	struct timespec t;

	if (!timed || depth)
		return 0;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}

static void end_call(uint64_t began)
{
	depth--;
	if (timed && !depth)
		__atomic_fetch_add(&spent, now() - began, __ATOMIC_RELAXED);
}

/* Adds a new region; NULL: registering has failed. */
static void add(const struct region *region)
{
	uint64_t sum, most = __atomic_load_n(&peak, __ATOMIC_RELAXED);

	if (depth > 1 || !region)
		return;
	sum = __atomic_add_fetch(&bytes, region->len, __ATOMIC_RELAXED);
	while (sum > most &&
	       !__atomic_compare_exchange_n(&peak, &most, sum, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Counts a registration; returns the access rights with which to register. */
static unsigned count(unsigned access)
{
	if (pin_targets && (access & REMOTE_WRITE))
		access &= ~(unsigned) ON_DEMAND;
	if (depth++)
		return access;
	__atomic_fetch_add(&registered, 1, __ATOMIC_RELAXED);
	if (access & ON_DEMAND)
		__atomic_fetch_add(&on_demand, 1, __ATOMIC_RELAXED);
	return access;
}

void *ibv_reg_mr(void *pd, void *addr, size_t len, int access)
{
	static void *(*real)(void *, void *, size_t, int);
	uint64_t began = now();
	void *mr;

	if (!real)
		*(void **) &real = dlsym(RTLD_NEXT, "ibv_reg_mr");
	access = (int) count((unsigned) access);
	mr = real(pd, addr, len, access);
	add(mr);
	end_call(began);
	return mr;
}

void *ibv_reg_mr_iova2(void *pd, void *addr, size_t len, uint64_t iova,
		       unsigned access)
{
	static void *(*real)(void *, void *, size_t, uint64_t, unsigned);
	uint64_t began = now();
	void *mr;

	if (!real)
		*(void **) &real = dlsym(RTLD_NEXT, "ibv_reg_mr_iova2");
	access = count(access);
	mr = real(pd, addr, len, iova, access);
	add(mr);
	end_call(began);
	return mr;
}

int ibv_dereg_mr(void *mr)
{
	static int (*real)(void *);
	const size_t len = ((struct region *) mr)->len;
	uint64_t began = now();
	int ret;

	if (!real)
		*(void **) &real = dlsym(RTLD_NEXT, "ibv_dereg_mr");
	depth++;
	ret = real(mr);
	if (depth == 1 && !ret)
		__atomic_fetch_sub(&bytes, len, __ATOMIC_RELAXED);
	end_call(began);
	return ret;
}

uint64_t reg_count(void)
{
	return __atomic_load_n(&registered, __ATOMIC_RELAXED);
}

uint64_t reg_count_odp(void)
{
	return __atomic_load_n(&on_demand, __ATOMIC_RELAXED);
}

uint64_t reg_count_peak(void)
{
	return __atomic_load_n(&peak, __ATOMIC_RELAXED);
}

uint64_t reg_count_ns(void)
{
	return __atomic_load_n(&spent, __ATOMIC_RELAXED);
}

void reg_count_time(void)
{
	timed = true;
}

void reg_count_pin_targets(void)
{
	pin_targets = true;
}
