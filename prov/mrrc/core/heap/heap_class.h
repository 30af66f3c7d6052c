/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Size classes of the allocator, to which requests are rounded up.
 *
 * The classes are the multiples of 16 up to 128 bytes, then eight classes for
 * each doubling: at most 12.5 % of a request's size is lost. Classes beyond 32
 * KiB are whole pages. A request larger than the largest class gets a separate
 * block.
 */
#ifndef MRRC_HEAP_CLASS_H
#define MRRC_HEAP_CLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRRC_HEAP_PAGE	     ((size_t) 4096) /* unit of blocks */
#define MRRC_HEAP_GRAIN	     16u	     /* every object's alignment */
#define MRRC_CLASS_STEPS     8u		     /* classes in a doubling */
#define MRRC_CLASS_DOUBLINGS 14u	     /* 128 bytes to 2 MiB */
#define MRRC_CLASSES	     (MRRC_CLASS_STEPS * (MRRC_CLASS_DOUBLINGS + 1))
#define MRRC_CLASS_MAX	     ((size_t) 2 << 20)
/* number of classes of which several objects share a run of pages */
#define MRRC_CLASS_SMALL     (MRRC_CLASS_STEPS * 9u)
#define MRRC_CLASS_SMALL_MAX ((size_t) 32 << 10)

/* The smallest class that holds len, 1 to MRRC_CLASS_MAX. */
static inline unsigned mrrc_class_of(size_t len)
{
	size_t last = len - 1;
	unsigned bit;

	if (len <= 128)
		return last >> 4;
	bit = 63 - __builtin_clzll(last);
	return MRRC_CLASS_STEPS * (bit - 6) + ((last >> (bit - 3)) & 7);
}

static inline size_t mrrc_class_size(unsigned class)
{
	unsigned doubling = class / MRRC_CLASS_STEPS;
	size_t step = class % MRRC_CLASS_STEPS + 1;

	if (!doubling)
		return step << 4;
	return (MRRC_CLASS_STEPS + step) << (doubling + 3);
}

/*
 * Returns the smallest class that holds len and whose objects are all at
 * multiples of align, which is at most 4096.
 */
static inline unsigned mrrc_class_aligned(size_t len, size_t align)
{
	unsigned class = mrrc_class_of(len > align ? len : align);

	while (mrrc_class_size(class) & (align - 1))
		class ++;
	return class;
}

#endif /* MRRC_HEAP_CLASS_H */
