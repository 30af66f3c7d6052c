/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Duels over a mapping (duel.h).
 */
#include "config.h"
#include "test/race/duel.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sys/base/vm.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define RW   (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

#define SPINS 64

static size_t page;

static void change_munmap(struct duel *duel)
{
	munmap(duel->ptr, duel->len);
}

static void change_raw(struct duel *duel)
{
	duel_raw(SYS_munmap, (long) duel->ptr, duel->len, 0, 0, 0, 0);
}

static void change_syscall(struct duel *duel)
{
	syscall(SYS_munmap, duel->ptr, duel->len);
}

static void change_mremap(struct duel *duel)
{
	mremap(duel->ptr, duel->len, duel->len, MREMAP_MAYMOVE | MREMAP_FIXED,
	       duel->spare);
}

static void change_raw_mremap(struct duel *duel)
{
	duel_raw(SYS_mremap, (long) duel->ptr, duel->len, duel->len,
		 MREMAP_MAYMOVE | MREMAP_FIXED, (long) duel->spare, 0);
}

bool duel_remap(struct duel *duel)
{
	return mmap(duel->ptr, duel->len, RW, ANON | MAP_FIXED_NOREPLACE, -1,
		    0) == duel->ptr;
}

/* Maps the address again by a raw system call, so that no hook sees it. */
static bool mine_raw(struct duel *duel)
{
	return duel_raw(SYS_mmap, (long) duel->ptr, duel->len, RW,
			ANON | MAP_FIXED_NOREPLACE, -1, 0) == (long) duel->ptr;
}

static void change_middle(struct duel *duel)
{
	munmap(duel->ptr + page, page);
}

static void change_raw_middle(struct duel *duel)
{
	duel_raw(SYS_munmap, (long) duel->ptr + page, page, 0, 0, 0, 0);
}

static bool mine_middle(struct duel *duel)
{
	return mmap(duel->ptr + page, page, RW, ANON | MAP_FIXED_NOREPLACE, -1,
		    0) == duel->ptr + page;
}

/* ThreadSanitizer would take an mmap() of libc for a write of this program. */
static void change_fixed(struct duel *duel)
{
#ifdef __SANITIZE_THREAD__
	syscall(SYS_mmap, duel->ptr, duel->len, RW, ANON | MAP_FIXED, -1, 0L);
#else
	mmap(duel->ptr, duel->len, RW, ANON | MAP_FIXED, -1, 0);
#endif
}

static void change_raw_fixed(struct duel *duel)
{
	duel_raw(SYS_mmap, (long) duel->ptr, duel->len, RW, ANON | MAP_FIXED,
		 -1, 0);
}

static void change_onto(struct duel *duel)
{
	char *from = mmap(duel->spare, duel->len, RW, ANON | MAP_FIXED, -1, 0);

	mremap(from, duel->len, duel->len, MREMAP_MAYMOVE | MREMAP_FIXED,
	       duel->ptr);
}

static void change_dontneed(struct duel *duel)
{
	madvise(duel->ptr, duel->len, MADV_DONTNEED);
}

static void change_raw_dontneed(struct duel *duel)
{
	duel_raw(SYS_madvise, (long) duel->ptr, duel->len, MADV_DONTNEED, 0, 0,
		 0);
}

/* The mapping stays, but its last page is replaced. */
bool duel_zero(struct duel *duel)
{
	return !*(volatile uint64_t *) (duel->ptr + duel->len - page);
}

/* A part of a larger buffer is dropped, and the rest stays. */
static void change_part(struct duel *duel)
{
	madvise(duel->ptr + duel->len - page, page, MADV_DONTNEED);
}

static void change_brk(struct duel *duel)
{
	syscall(SYS_brk, duel->ptr);
}

static bool mine_brk(struct duel *duel)
{
	char *end = duel->ptr + duel->len;
	unsigned char vec;

	if (!mincore(end - page, page, &vec) || errno != ENOMEM)
		return false;
	return (char *) syscall(SYS_brk, end) == end;
}

const struct duel_move duel_moves[] = {
	{ "munmap", 1, change_munmap, duel_remap },
	{ "syscall munmap", 2, change_syscall, duel_remap },
	{ "raw munmap", 2, change_raw, duel_remap },
	{ "raw, raw mmap", 2, change_raw, mine_raw },
	{ "mremap away", 1, change_mremap, duel_remap },
	{ "raw mremap", 1, change_raw_mremap, duel_remap },
	{ "middle page", 3, change_middle, mine_middle },
	{ "raw middle", 3, change_raw_middle, mine_middle },
	{ "MAP_FIXED", 1, change_fixed, duel_zero },
	{ "raw MAP_FIXED", 1, change_raw_fixed, duel_zero },
	{ "mremap onto", 1, change_onto, duel_zero },
	{ "DONTNEED", 1, change_dontneed, duel_zero },
	{ "raw DONTNEED", 1, change_raw_dontneed, duel_zero },
	{ "part DONTNEED", 3, change_part, duel_zero },
	{ "brk", 1, change_brk, mine_brk },
};

const unsigned duel_count = sizeof(duel_moves) / sizeof(duel_moves[0]);

const struct duel_move duel_blind = { "blind", 1, change_raw, mine_raw };

static void *changer(void *arg)
{
	struct duel *duel = arg;
	int turn;

	while ((turn = atomic_load(&duel->turn)) >= 0) {
		if (!turn) {
			sched_yield();
			continue;
		}
		duel->move->change(duel);
		atomic_store(&duel->turn, 0);
	}
	return NULL;
}

static void die(const char *what)
{
	perror(what);
	abort();
}

static pthread_t changing;

static bool thread_start(void *(*run)(void *), void *arg)
{
	return !pthread_create(&changing, NULL, run, arg);
}

static void thread_join(void)
{
	pthread_join(changing, NULL);
}

static const struct duel_thread libc_thread = { thread_start, thread_join };

void duel_fight(const struct duel_move *move, const struct duel_thread *thread,
		duel_use use, bool (*over)(void *arg), void *arg)
{
	struct duel duel = { .move = move };
	const bool heap = move->change == change_brk;
	unsigned spins;

	if (!thread)
		thread = &libc_thread;
	page = mrrc_vm_page();
	duel.len = move->pages * page;
	duel.ptr = heap ? sbrk(duel.len) :
			  mmap(NULL, duel.len, RW, ANON, -1, 0);
	duel.spare = mmap(NULL, duel.len, RW, ANON, -1, 0);
	if (duel.ptr == MAP_FAILED || duel.spare == MAP_FAILED ||
	    !thread->start(changer, &duel))
		die("no duel");
	do {
		use(arg, duel.ptr, move->pages, false);
		atomic_store(&duel.turn, 1);
		/* Both threads may have to share a processor. */
		for (spins = 1; !move->mine(&duel); spins++) {
			if (!(spins % SPINS))
				sched_yield();
		}
		use(arg, duel.ptr, move->pages, true);
		while (atomic_load(&duel.turn))
			sched_yield();
	} while (!over(arg));
	atomic_store(&duel.turn, -1);
	thread->join();
	if (heap && sbrk(-(long) duel.len) != duel.ptr + duel.len)
		die("sbrk");
	if (!heap)
		munmap(duel.ptr, duel.len);
	munmap(duel.spare, duel.len);
}
