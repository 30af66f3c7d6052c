/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fake registrations of the allocator's blocks. The fake counts live
 * registrations, can be told to fail, checks that each registration is undone
 * once while its memory is still mapped, and keeps the events that the
 * allocator reports.
 */
#ifndef MRRC_TEST_FAKE_HEAP_H
#define MRRC_TEST_FAKE_HEAP_H

#include <pthread.h>
#include <stdatomic.h>

#include "sys/heap/heap.h"

#define FAKE_HEAP_EVENTS (MRRC_HEAP_LEAKS + 1)

struct fake_heap {
	atomic_size_t allocs, frees; /* counts that the allocator reported */
	atomic_size_t live, live_bytes, regs, deregs, reaps;
	atomic_int fail_in; /* the nth registration from now fails; 0: none */
	int fail_rc;
	/* beyond this, registrations fail: fail_rc, or -ENOMEM; 0: no limit */
	size_t max_live_bytes;
	atomic_int reapable; /* number of times that reap() frees something */
	atomic_size_t events[FAKE_HEAP_EVENTS];
	pthread_mutex_t lock;	/* lock of note */
	void (*on_note)(void);	/* called at each event */
	void (*on_dereg)(void); /* called before each deregistration */
	struct mrrc_heap_note note[FAKE_HEAP_EVENTS]; /* the last events */
};

#define FAKE_HEAP ((struct fake_heap){ .lock = PTHREAD_MUTEX_INITIALIZER })

extern const struct mrrc_heap_ops fake_heap_ops;

#endif /* MRRC_TEST_FAKE_HEAP_H */
