/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Preregistered memory: fi_mr_alloc(3) over sys/heap/heap.h, for the domains of the
 * provider and of the hook.
 *
 * Any thread, no lock held, except close.
 */
#ifndef MRRC_ALLOC_H
#define MRRC_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

#include "fi/reg.h"

struct fi_mrrc_ops_alloc;

/* The table FI_MRRC_ALLOC_OPS, or NULL */
extern const struct fi_mrrc_ops_alloc *const mrrc_alloc_ops;

/*
 * Sets the table of calls by which a struct mrrc_domain is told from other
 * domains.
 */
void mrrc_alloc_set_own(const struct fi_ops *ops);

/* Closes the allocator, before the core closes its domain. */
void mrrc_alloc_close(struct mrrc_reg *reg);

/* Is a feature of fi_mrrc_feature() available on this domain? */
int mrrc_alloc_feature(const struct mrrc_reg *reg, const char *name);

/* Allocate and free memory for the provider's own operations. 0 or -FI_E* */
int mrrc_alloc_take(struct mrrc_reg *reg, size_t align, size_t len, void **buf);
void mrrc_alloc_give(struct mrrc_reg *reg, void *buf);

/* The descriptor of a range in an allocation of this domain. */
bool mrrc_alloc_desc(const struct mrrc_reg *reg, const void *addr, size_t len,
		     void **desc);

/* mr.c */

/*
 * Returns the slot that the block with this range has in the domain's ring
 * (reg->ring) until the block is deregistered; -1: no slot.
 */
int mrrc_alloc_slot(const struct mrrc_reg *reg, const void *addr, size_t len);

/* process.c */

/*
 * Returns true if the domain must not be closed because the application has
 * open heaps or allocations, which are logged. A forked child has neither heaps
 * nor allocations. Allocations by process.h's calls do not prevent closing:
 * their memory stays, but is deregistered. No thread may use the allocator
 * concurrently.
 */
bool mrrc_alloc_busy(struct mrrc_reg *reg);

/* For init.c: gives process.h's calls to a library, if one wants them. */
void mrrc_process_init(void);

/*
 * Lets an open domain serve process.h's calls, until mrrc_alloc_busy() says
 * that the domain may be closed.
 */
void mrrc_process_add(struct mrrc_reg *reg);

#endif /* MRRC_ALLOC_H */
