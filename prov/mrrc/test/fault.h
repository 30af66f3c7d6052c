/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fault injection: the nth step of a constructor fails.
 *
 * A step is a call of this thread, in code linked into the test program, of
 * an allocator, mmap, mprotect, pthread_create, pthread_mutex_init, eventfd,
 * userfaultfd or one of its ioctls, memfd_create, fallocate, or fcntl that
 * adds seals. Test programs link with -Wl,--wrap for
 * each (Makefile.include).
 */
#ifndef MRRC_TEST_FAULT_H
#define MRRC_TEST_FAULT_H

#include <stdbool.h>

/*
 * The nth step from now fails, counting from 1; 0: none does. Check's own
 * calls count as well, so no assertion may stand between arm and disarm.
 */
void fault_arm(unsigned nth);

/* Stops; returns whether the fault was injected. */
bool fault_disarm(void);

/* Blocks this thread allocated since arm and has not freed by now. */
unsigned fault_leaks(void);

/* Open descriptors and threads of this process. */
unsigned fault_fds(void);
unsigned fault_threads(void);
/* The same, once there are as many as expected, or after two seconds. */
unsigned fault_threads_left(unsigned expected);

#endif /* MRRC_TEST_FAULT_H */
