/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixture of the tests of the allocator with one thread: a domain with one
 * heap, and fake registrations.
 */
#ifndef MRRC_TEST_HEAP_FIXTURE_H
#define MRRC_TEST_HEAP_FIXTURE_H

#include "test/fakes/fake_heap.h"
#include "sys/heap/heap_fast.h"

#define MIB	((size_t) 1 << 20)
#define HEAP_MS UINT64_C(100000) /* the clock, which stands */

extern struct fake_heap heap_fake;
extern struct mrrc_heaps *heaps;
extern struct mrrc_heap *heap;
extern const struct mrrc_heap_attr heap_plain; /* attributes of `heap` */

void heap_setup(void);
void heap_teardown(void);

/* Opens a domain with a limit; 0: without a limit. */
void heap_domain(size_t max_bytes);

/* Opens another heap in the domain. */
struct mrrc_heap *heap_open(const struct mrrc_heap_attr *attr);

/* Allocate and free; both must succeed. */
void *heap_get(struct mrrc_heap *from, size_t align, size_t len,
	       unsigned flags);
void heap_put(void *addr);

struct mrrc_heap_stats heap_stats_of(struct mrrc_heap *of);

#endif /* MRRC_TEST_HEAP_FIXTURE_H */
