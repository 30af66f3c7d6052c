/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fake registrations of blocks (fake_heap.h).
 */
#include "config.h"
#include "test/fakes/fake_heap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define FAKE_LIVE 0x6c697665u
#define FAKE_GONE 0x676f6e65u

struct fake_mr {
	unsigned magic;
	uintptr_t start;
	size_t len;
	enum mrrc_access access;
};

static void die(const char *what, uintptr_t start, size_t len)
{
	fprintf(stderr, "fake_heap: %s: %zu bytes at %#lx\n", what, len,
		(unsigned long) start);
	abort();
}

/* Checks that every page is mapped. */
static bool fake_mapped(uintptr_t start, size_t len)
{
	unsigned char there[1024];
	size_t at, step = sizeof(there) * 4096;

	for (at = 0; at < len; at += step) {
		if (mincore((void *) (start + at),
			    len - at < step ? len - at : step, there))
			return false;
	}
	return true;
}

static int fake_reg(void *arg, uintptr_t start, size_t len,
		    enum mrrc_access access, void **cookie)
{
	struct fake_heap *fake = arg;
	int nth = atomic_load(&fake->fail_in);
	struct fake_mr *mr;

	if (nth &&
	    atomic_compare_exchange_strong(&fake->fail_in, &nth, nth - 1) &&
	    nth == 1)
		return fake->fail_rc;
	if (fake->max_live_bytes &&
	    atomic_load(&fake->live_bytes) + len > fake->max_live_bytes)
		return fake->fail_rc ? fake->fail_rc : -ENOMEM;
	if (start % 4096 || len % 4096 || !fake_mapped(start, len))
		die("what is registered is not mapped", start, len);
	mr = malloc(sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	*mr = (struct fake_mr){ FAKE_LIVE, start, len, access };
	atomic_fetch_add(&fake->live, 1);
	atomic_fetch_add(&fake->live_bytes, len);
	atomic_fetch_add(&fake->regs, 1);
	*cookie = mr;
	return 0;
}

static void fake_dereg(void *arg, void *cookie, uintptr_t start, size_t len)
{
	struct fake_heap *fake = arg;
	struct fake_mr *mr = cookie;

	if (mr->magic != FAKE_LIVE || mr->start != start || mr->len != len)
		die("not registered so", start, len);
	if (!fake_mapped(start, len))
		die("unmapped before it was deregistered", start, len);
	if (fake->on_dereg)
		fake->on_dereg();
	mr->magic = FAKE_GONE;
	free(mr);
	atomic_fetch_sub(&fake->live, 1);
	atomic_fetch_sub(&fake->live_bytes, len);
	atomic_fetch_add(&fake->deregs, 1);
}

static bool fake_reap(void *arg)
{
	struct fake_heap *fake = arg;

	atomic_fetch_add(&fake->reaps, 1);
	if (atomic_load(&fake->reapable) <= 0)
		return false;
	atomic_fetch_sub(&fake->reapable, 1);
	return true;
}

static void fake_note(void *arg, const struct mrrc_heap_note *note)
{
	struct fake_heap *fake = arg;

	atomic_fetch_add(&fake->events[note->event], 1);
	pthread_mutex_lock(&fake->lock);
	fake->note[note->event] = *note;
	pthread_mutex_unlock(&fake->lock);
	if (fake->on_note)
		fake->on_note();
}

static void fake_count(void *arg, uint64_t allocs, uint64_t frees)
{
	struct fake_heap *fake = arg;

	atomic_fetch_add(&fake->allocs, allocs);
	atomic_fetch_add(&fake->frees, frees);
}

const struct mrrc_heap_ops fake_heap_ops = {
	.reg = fake_reg,
	.dereg = fake_dereg,
	.reap = fake_reap,
	.note = fake_note,
	.count = fake_count,
};
