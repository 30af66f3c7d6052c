/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fault injection: the nth step of a constructor fails, or a function called
 * between two steps of this thread acts as another thread.
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
 * The nth step from now fails, counting from 1; 0: no step fails. Check's own
 * calls also count, so no assertion may stand between arm and disarm.
 */
void fault_arm(unsigned nth);

/* Ends fault injection; returns whether the fault was injected. */
bool fault_disarm(void);

/*
 * If the next fault of this thread hits mprotect, @call is called first with
 * the range of mprotect, and acts as another thread.
 */
void fault_meanwhile(void (*call)(char *addr, size_t len));

/* This thread's munmap calls fail, as at vm.max_map_count, or work again. */
void fault_unmap(bool fails);

/*
 * Declares that another userfaultfd watches this range: UFFDIO_UNREGISTER in
 * the range then aborts the test. Linux before 6.14 would end that watch.
 */
void fault_foreign(const void *start, size_t len);

/*
 * Return the number of munmap calls so far, and whether one of the calls after
 * number @since had the address @addr. Another thread may have mapped the
 * address again.
 */
unsigned fault_unmaps(void);
bool fault_unmapped(const void *addr, unsigned since);

/*
 * @call acts as another thread at a bad moment. The function is called once,
 * before the next time that this thread takes a mutex, waits for a condition,
 * yields the processor, sleeps, makes all others pass a barrier or calls
 * mprotect. NULL: no call.
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

/* membarrier(2) is refused to all threads, or works again. */
void fault_no_barrier(bool refused);

/* The monotonic clocks stand at @ns for all threads; 0: they are real. */
void fault_clock(uint64_t ns);

/* @call is called before each read(2) of any thread; NULL: no call. */
void fault_at_read(void (*call)(void));

/* @call is called before each futex call of any thread; NULL: no call. */
void fault_at_futex(void (*call)(void));

/* Threads that begin from now on call @call as they end; NULL: no call. */
void fault_at_thread_end(void (*call)(void));

/*
 * Returns the number of blocks that this thread allocated since arm and has not
 * freed yet.
 */
unsigned fault_leaks(void);

/* Threads of a process that started no thread; ThreadSanitizer starts one. */
#ifdef __SANITIZE_THREAD__
#define FAULT_THREADS 2
#else
#define FAULT_THREADS 1
#endif

/* Return the numbers of open descriptors and of threads of this process. */
unsigned fault_fds(void);
unsigned fault_threads(void);
/* Returns the number of threads, once there are as many as expected. */
unsigned fault_threads_left(unsigned expected);

#endif /* MRRC_TEST_FAULT_H */
