/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A registration that pins pages, and shows what a network device would read.
 *
 * Each page's first bytes are spliced into a pipe by reference, so the physical
 * page stays, whatever becomes of the mapping, and reading the pipe shows what
 * the page holds now. A registration whose page differs from the mapped page is
 * stale, and the test sees the difference.
 */
#ifndef MRRC_TEST_FAKE_PIN_H
#define MRRC_TEST_FAKE_PIN_H

#include <stdatomic.h>

#include "sys/cache/cache_mt.h"

struct fake_pin {
	atomic_size_t live;
	atomic_size_t regs;
};

extern const struct mrrc_reg_ops fake_pin_ops;

/* Returns the first word of the page at @addr, as the device sees it. */
uint64_t fake_pin_read(const struct mrrc_region *region, uintptr_t addr);

/*
 * Returns whether the device sees, through a plan, @word in the first page and
 * each following word in the next page.
 */
bool fake_pin_sees(const struct mrrc_plan *plan, uintptr_t addr, unsigned pages,
		   uint64_t word);

#endif /* MRRC_TEST_FAKE_PIN_H */
