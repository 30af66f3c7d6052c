/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A pool of fixed-size objects in one reserved address range: a subtraction and
 * a comparison tell whether a pointer is one of the pool's. Used for records
 * that pass through a core provider as operation contexts.
 *
 * alloc and free are O(1), lock-free and usable from any thread; alloc and free
 * never call malloc, free(3) or munmap, so that no monitor event has to wait
 * for them. Addresses are reserved in steps, and memory is committed in chunks,
 * as objects are first used; addresses and memory stay until close. An object
 * that is allocated again has the bytes that it had when it was freed.
 */
#ifndef MRRC_POOL_H
#define MRRC_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sys/base/lock.h"

struct mrrc_pool {
	char *base;	   /* first object, aligned to 64 bytes */
	size_t span;	   /* bytes of all objects */
	size_t size;	   /* bytes of one object, a multiple of 64 */
	uint32_t capacity; /* objects at most */
	/* for each object: LIVE, or the next free object */
	_Atomic uint32_t *next;
	struct mrrc_lock grow; /* LEAF: guards the next three fields */
	size_t linked;	       /* bytes of next that are mapped */
	size_t reserved;       /* bytes from base that are mapped */
	/* bytes of objects that have memory; read without the lock */
	_Atomic size_t backed;
	_Alignas(64) _Atomic uint64_t head; /* sys/base/stack.h */
	/* number of objects ever used; unused ones follow */
	_Atomic uint32_t fresh;
};

typedef void (*mrrc_pool_cb)(void *object, void *arg);

/*
 * @size is rounded up to a multiple of 64. -EINVAL for zero or excessive
 * arguments, -ENOMEM when not even the first objects' addresses can be
 * reserved.
 */
int mrrc_pool_open(size_t size, uint32_t capacity, struct mrrc_pool **pool);

/* Closes the pool. Objects that are still live end with the pool. */
void mrrc_pool_close(struct mrrc_pool *pool);

/*
 * Returns NULL if as many objects as the pool may have are live, or if no
 * memory or address is left for another object.
 */
void *mrrc_pool_alloc(struct mrrc_pool *pool);
void mrrc_pool_free(struct mrrc_pool *pool, void *object);

/*
 * Does the pointer lie in the part of the window that has memory? Addresses
 * beyond the backed objects may belong to other mappings.
 */
static inline bool mrrc_pool_owns(const struct mrrc_pool *pool, const void *ptr)
{
	return (uintptr_t) ptr - (uintptr_t) pool->base <
	       atomic_load_explicit(&pool->backed, memory_order_acquire);
}

/* Does this pointer, whatever it is, point to a live object? */
bool mrrc_pool_is_live(const struct mrrc_pool *pool, const void *ptr);

/* The number of live objects: examines every object that was ever used. */
uint32_t mrrc_pool_live(const struct mrrc_pool *pool);

/*
 * Calls @cb for each live object in address order; @cb may free the object.
 * Objects that other threads take or free at the same time may or may not be
 * visited.
 */
void mrrc_pool_foreach_live(struct mrrc_pool *pool, mrrc_pool_cb cb, void *arg);

#endif /* MRRC_POOL_H */
