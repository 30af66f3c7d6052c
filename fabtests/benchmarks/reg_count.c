/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counts the device's registrations, in the same way whether an application,
 * libfabric's cache or ofi_mrrc makes them: libfabric calls the functions of
 * this file in place of libibverbs', which they call in turn.
 *
 * Any thread may register.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "reg_count.h"

#include <dlfcn.h>
#include <stddef.h>

#define SHOWN __attribute__((visibility("default")))
SHOWN void *ibv_reg_mr(void *pd, void *addr, size_t len, int access);
SHOWN void *ibv_reg_mr_iova2(void *pd, void *addr, size_t len, uint64_t iova,
			     unsigned access);

/* IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_ON_DEMAND */
#define REMOTE_WRITE (1 << 1)
#define ON_DEMAND    (1 << 6)

static uint64_t registered, on_demand;
static bool pin_targets;
/* Nesting of calls: newer versions of a function call older ones. */
static __thread unsigned depth;

/* Returns the access with which to register. */
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
	void *mr;

	if (!real)
		*(void **) &real = dlsym(RTLD_NEXT, "ibv_reg_mr");
	access = (int) count((unsigned) access);
	mr = real(pd, addr, len, access);
	depth--;
	return mr;
}

void *ibv_reg_mr_iova2(void *pd, void *addr, size_t len, uint64_t iova,
		       unsigned access)
{
	static void *(*real)(void *, void *, size_t, uint64_t, unsigned);
	void *mr;

	if (!real)
		*(void **) &real = dlsym(RTLD_NEXT, "ibv_reg_mr_iova2");
	access = count(access);
	mr = real(pd, addr, len, iova, access);
	depth--;
	return mr;
}

uint64_t reg_count(void)
{
	return __atomic_load_n(&registered, __ATOMIC_RELAXED);
}

uint64_t reg_count_odp(void)
{
	return __atomic_load_n(&on_demand, __ATOMIC_RELAXED);
}

void reg_count_pin_targets(void)
{
	pin_targets = true;
}
