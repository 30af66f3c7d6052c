/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fault injection: the nth step of a constructor fails; another thread does
 * something between two steps of this one.
 *
 * A step is a call of this thread, in code linked into the test program, of
 * an allocator, mmap, mprotect, pthread_create, pthread_mutex_init, socket,
 * userfaultfd or one of its ioctls, memfd_create, fallocate, or fcntl that
 * adds seals. Test programs link with -Wl,--wrap for
 * each (Makefile.include).
 */
#ifndef MRRC_TEST_FAULT_H
#define MRRC_TEST_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The nth step from now fails, counting from 1; 0: none does. Check's own
 * calls count as well, so no assertion may stand between arm and disarm.
 */
void fault_arm(unsigned nth);

/* Stops; returns whether the fault was injected. */
bool fault_disarm(void);

/*
 * Where the next fault of this thread hits mprotect it is called first, with
 * its range: what another thread does meanwhile.
 */
void fault_meanwhile(void (*call)(char *addr, size_t len));

/* As at vm.max_map_count: this thread's munmap calls fail, or no more. */
void fault_unmap(bool fails);

/*
 * How many munmap calls there were, and whether one of those since then had this
 * address: another thread may have mapped it again.
 */
unsigned fault_unmaps(void);
bool fault_unmapped(const void *addr, unsigned since);

/*
 * What another thread does at a bad moment: called once, before this thread
 * takes a mutex, waits for a condition, yields the processor, sleeps, makes all
 * others pass a barrier or calls mprotect for the next time. NULL: nothing.
 */
enum fault_place {
	FAULT_LOCK,
	FAULT_WAIT,
	FAULT_YIELD,
	FAULT_SLEEP,
	FAULT_BARRIER,
	FAULT_PROTECT,
	FAULT_PLACES
};
void fault_at(enum fault_place place, void (*call)(void));

/* membarrier(2) is refused, to all threads, or no more. */
void fault_no_barrier(bool refused);

/* The monotonic clocks stand there for all threads; 0: they are real. */
void fault_clock(uint64_t ns);

/* Called before each read(2) of any thread; NULL: nothing. */
void fault_at_read(void (*call)(void));

/* Called before each wait of any thread by syscall(SYS_futex); NULL: nothing. */
void fault_at_futex(void (*call)(void));

/* Threads that begin from now on call it as they end; NULL: nothing. */
void fault_at_thread_end(void (*call)(void));

/* Blocks this thread allocated since arm and has not freed by now. */
unsigned fault_leaks(void);

/* Threads of a process that started none: ThreadSanitizer has its own. */
#ifdef __SANITIZE_THREAD__
#define FAULT_THREADS 2
#else
#define FAULT_THREADS 1
#endif

/* Open descriptors and threads of this process. */
unsigned fault_fds(void);
unsigned fault_threads(void);
/* The same, once there are as many as expected. */
unsigned fault_threads_left(unsigned expected);

#endif /* MRRC_TEST_FAULT_H */
