/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * own_time: preloaded into MPI programs by record.sh. In place of
 * CLOCK_MONOTONIC the provider, and so its recorder, reads the processor time
 * of the process, less the time for polls that find nothing. own_time makes the
 * MPI library sleep where the library would yield the processor.
 *
 * A recorded trace thus has the times of a rank that has a processor for itself
 * and does not wait for other ranks, whatever else the machine executes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PROVIDER "libmrrc-fi"
#define WAIT_NS	 100000
#define VAIN_NS	 100000 /* longer work was no poll */
#define SECOND	 INT64_C(1000000000)

static _Atomic int64_t vain;	     /* ns */
static _Thread_local int64_t waited; /* when the thread's last sleep ended */

static int64_t processor_time(void)
{
	struct timespec now;

	syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * SECOND + now.tv_nsec;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int64_t ns;
	Dl_info info;

	if (clock != CLOCK_MONOTONIC ||
	    !dladdr(__builtin_return_address(0), &info) || !info.dli_fname ||
	    !strstr(info.dli_fname, PROVIDER))
		return (int) syscall(SYS_clock_gettime, clock, now);
	ns = processor_time() - vain;
	now->tv_sec = ns / SECOND;
	now->tv_nsec = ns % SECOND;
	return 0;
}

/* The caller polls, and has found nothing. */
static void in_vain(void)
{
	const struct timespec wait = { .tv_nsec = WAIT_NS };
	const int64_t begin = processor_time();

	nanosleep(&wait, NULL);
	vain += processor_time() - begin;
	if (begin - waited < VAIN_NS)
		vain += begin - waited;
	waited = processor_time();
}

int sched_yield(void)
{
	in_vain();
	return 0;
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	const struct timespec limit = { timeout / 1000,
					timeout % 1000 * 1000000L };
	int ret = (int) syscall(SYS_ppoll, fds, count,
				timeout < 0 ? NULL : &limit, NULL, 0);

	if (!ret && !timeout)
		in_vain();
	return ret;
}

int epoll_wait(int fd, struct epoll_event *events, int count, int timeout)
{
	int ret = epoll_pwait(fd, events, count, timeout, NULL);

	if (!ret && !timeout)
		in_vain();
	return ret;
}
