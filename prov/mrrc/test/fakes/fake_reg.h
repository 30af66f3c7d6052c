/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fake registrations. The fake counts live registrations, can be told to fail,
 * and checks that each registration is undone exactly once.
 */
#ifndef MRRC_TEST_FAKE_REG_H
#define MRRC_TEST_FAKE_REG_H

#include <stdatomic.h>

#include "sys/cache/cache_mt.h"

struct fake_reg {
	atomic_size_t live;
	atomic_size_t live_bytes;
	atomic_size_t regs; /* successful registrations */
	atomic_size_t fails;
	atomic_size_t deregs;
	atomic_size_t batches; /* number of calls of dereg */
	/* beyond this, registrations fail with -ENOMEM; 0: no limit */
	size_t max_live;
	/* range where MRRC_RW fails with -EFAULT */
	uintptr_t ro_start, ro_end;
	/* range where any access fails with -EFAULT */
	uintptr_t bad_start, bad_end;
	/* the nth registration from now fails; 0: none */
	atomic_int fail_in;
	int fail_rc;
	/* Called before each registration, so that a test can interfere. */
	void (*hook)(void *arg, uintptr_t start, size_t len);
	void *hook_arg;
	void (*on_dereg)(void); /* called before each deregistration */
};

extern const struct mrrc_reg_ops fake_reg_ops;

/* Counts the test's own holds of a region, which forbid its deregistration. */
void fake_reg_use(const struct mrrc_region *region, int more);

/* Return the arguments of one live registration. */
uintptr_t fake_reg_start(const struct mrrc_region *region);
size_t fake_reg_len(const struct mrrc_region *region);
enum mrrc_access fake_reg_access(const struct mrrc_region *region);

#endif /* MRRC_TEST_FAKE_REG_H */
