/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fake registrations of the allocator's blocks: counts what is live, can be
 * told to fail, checks that each is undone once with the memory still there,
 * and notes what it was told.
 */
#ifndef MRRC_TEST_FAKE_HEAP_H
#define MRRC_TEST_FAKE_HEAP_H

#include <pthread.h>
#include <stdatomic.h>

#include "sys/heap/heap.h"

#define FAKE_HEAP_EVENTS (MRRC_HEAP_LEAKS + 1)

struct fake_heap {
	atomic_size_t allocs, frees; /* as told */
	atomic_size_t live, live_bytes, regs, deregs, reaps;
	atomic_int fail_in; /* the nth from now fails; 0: none */
	int fail_rc;
	size_t max_live_bytes; /* then -ENOMEM; 0: no limit */
	atomic_int reapable;   /* reap() has this often something */
	atomic_size_t events[FAKE_HEAP_EVENTS];
	pthread_mutex_t lock;	/* guards note */
	void (*on_note)(void);	/* what is done where it is told */
	void (*on_dereg)(void); /* and before a deregistration */
	struct mrrc_heap_note note[FAKE_HEAP_EVENTS]; /* the last ones */
};

#define FAKE_HEAP ((struct fake_heap){ .lock = PTHREAD_MUTEX_INITIALIZER })

extern const struct mrrc_heap_ops fake_heap_ops;

#endif /* MRRC_TEST_FAKE_HEAP_H */
