/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A fake registration: counts what is live, can be told to fail, and checks
 * that each registration is undone exactly once.
 */
#ifndef MRRC_TEST_FAKE_REG_H
#define MRRC_TEST_FAKE_REG_H

#include <stdatomic.h>

#include "sys/cache/cache_mt.h"

struct fake_reg {
	atomic_size_t live;
	atomic_size_t live_bytes;
	atomic_size_t regs; /* successful */
	atomic_size_t fails;
	atomic_size_t deregs;
	atomic_size_t batches;	      /* calls of dereg */
	size_t max_live;	      /* then -ENOMEM; 0: no limit */
	uintptr_t ro_start, ro_end;   /* -EFAULT for MRRC_RW there */
	uintptr_t bad_start, bad_end; /* -EFAULT for any access there */
	atomic_int fail_in;	      /* the nth from now fails; 0: none */
	int fail_rc;
	/* Called before a registration: a test's chance to interfere. */
	void (*hook)(void *arg, uintptr_t start, size_t len);
	void *hook_arg;
	void (*on_dereg)(void); /* called before a deregistration */
};

extern const struct mrrc_reg_ops fake_reg_ops;

/* A test's own account of what is held: it may not be deregistered now. */
void fake_reg_use(const struct mrrc_region *region, int more);

/* The arguments of one live registration. */
uintptr_t fake_reg_start(const struct mrrc_region *region);
size_t fake_reg_len(const struct mrrc_region *region);
enum mrrc_access fake_reg_access(const struct mrrc_region *region);

#endif /* MRRC_TEST_FAKE_REG_H */
