/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that is born registered: fi_mr_alloc(3) over sys/heap.h, for the
 * domains of both forms.
 *
 * Any thread, no lock held, but for close.
 */
#ifndef MRRC_ALLOC_H
#define MRRC_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

#include "reg.h"

struct fi_mrrc_ops_alloc;

/* FI_MRRC_ALLOC_OPS */
extern struct fi_mrrc_ops_alloc mrrc_alloc_ops;
/* The same for what is surely a domain of the utility provider */
extern struct fi_mrrc_ops_alloc mrrc_alloc_fast_ops;

/* Heaps of the application are open: the domain cannot be closed. */
bool mrrc_alloc_busy(struct mrrc_reg *reg);

/* With every allocation. Before the core's domain is closed. */
void mrrc_alloc_close(struct mrrc_reg *reg);

/* Is it there for this domain? Features are of fi_mrrc_feature(). */
int mrrc_alloc_feature(const struct mrrc_reg *reg, const char *name);

/* A range in what was allocated of this domain: its descriptor. */
bool mrrc_alloc_desc(const struct mrrc_reg *reg, const void *addr, size_t len,
		     void **desc);

#endif /* MRRC_ALLOC_H */
