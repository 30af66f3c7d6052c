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

static uint64_t registered;
/* Nesting of calls: newer versions of a function call older ones. */
static __thread unsigned depth;

static void count(void)
{
	if (!depth++)
		__atomic_fetch_add(&registered, 1, __ATOMIC_RELAXED);
}

void *ibv_reg_mr(void *pd, void *addr, size_t len, int access)
{
	static void *(*real)(void *, void *, size_t, int);
	void *mr;

	if (!real)
		*(void **) &real = dlsym(RTLD_NEXT, "ibv_reg_mr");
	count();
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
	count();
	mr = real(pd, addr, len, iova, access);
	depth--;
	return mr;
}

uint64_t reg_count(void)
{
	return __atomic_load_n(&registered, __ATOMIC_RELAXED);
}
