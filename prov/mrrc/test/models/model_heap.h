/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Declarations for the tests of the allocator under threads: a domain with a
 * few heaps.
 */
#ifndef MRRC_TEST_MODEL_HEAP_H
#define MRRC_TEST_MODEL_HEAP_H

#include <check.h>

#include "test/fakes/fake_heap.h"
#include "sys/heap/heap_fast.h"

#define HEAPS 3

extern struct fake_heap fake;
extern struct mrrc_heaps *heaps;
extern struct mrrc_heap *heap[HEAPS];
extern unsigned long operations; /* number of operations of each thread */

/* Prints the error and its place; ends the process, as other threads run. */
void broken(const char *what, const void *addr, size_t at);

void open_all(uint32_t idle_ms);
/*
 * Closes all: with no live object, nothing stays registered and no error is
 * reported.
 */
void close_all(void);

#endif /* MRRC_TEST_MODEL_HEAP_H */
