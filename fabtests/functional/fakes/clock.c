/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Implements the clock of clock.h, which replaces clock_gettime() and
 * timerfd_settime() in the whole process. Any thread may read the clock and set
 * timers; only one thread moves the clock.
 */
#include "fakes/clock.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)
#define FDS    1024
/*
 * The provider, which is loaded later, calls clock.c's functions, not libc's.
 */
#define EXPORTED __attribute__((visibility("default")))

static _Atomic int64_t ahead;	/* ns ahead of the kernel's clock */
static _Atomic int64_t stopped; /* ns when the clock stopped; 0: it runs */
static _Atomic int64_t step;
static _Atomic int64_t ends[FDS]; /* ns when timers end; 0: not set here */

static int64_t kernel_ns(void)
{
	struct timespec ts;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

static int64_t now_ns(void)
{
	const int64_t at = atomic_load(&stopped);

	if (!at)
		return kernel_ns() + atomic_load(&ahead);
	return atomic_fetch_add(&stopped, atomic_load(&step));
}

static struct timespec timespec_of(int64_t ns)
{
	return (struct timespec){ ns / SECOND, ns % SECOND };
}

EXPORTED int clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (clock != CLOCK_MONOTONIC)
		return syscall(SYS_clock_gettime, clock, ts);
	*ts = timespec_of(now_ns());
	return 0;
}

static int set_timer(int fd, int flags, const struct itimerspec *at,
		     struct itimerspec *before)
{
	return syscall(SYS_timerfd_settime, fd, flags, at, before);
}

/*
 * Sets a timer to end at the time @end of the test's clock: while the clock is
 * stopped, the timer ends now or never.
 */
static int set_end(int fd, int64_t end, struct itimerspec *before)
{
	const int64_t at = atomic_load(&stopped);
	struct itimerspec timer = { 0 };

	if (!at)
		timer.it_value = timespec_of(end - atomic_load(&ahead));
	else if (end <= at)
		timer.it_value.tv_nsec = 1;
	return set_timer(fd, TFD_TIMER_ABSTIME, &timer, before);
}

/* Sets all timers, also those of closed descriptors, which does no harm. */
static void set_ends(void)
{
	int64_t end;
	int fd;

	for (fd = 0; fd < FDS; fd++) {
		end = atomic_load(&ends[fd]);
		if (end)
			set_end(fd, end, NULL);
	}
}

EXPORTED int timerfd_settime(int fd, int flags, const struct itimerspec *at,
			     struct itimerspec *before)
{
	const int64_t end = at->it_value.tv_sec * SECOND + at->it_value.tv_nsec;

	if (!(flags & TFD_TIMER_ABSTIME) || fd < 0 || fd >= FDS)
		return set_timer(fd, flags, at, before);
	atomic_store(&ends[fd], end);
	return end ? set_end(fd, end, before) : set_timer(fd, 0, at, before);
}

void clock_advance(uint64_t us)
{
	const int64_t ns = (int64_t) us * 1000;

	if (atomic_load(&stopped))
		atomic_fetch_add(&stopped, ns);
	else
		atomic_fetch_add(&ahead, ns);
	set_ends();
}

void clock_stop(bool stop)
{
	const int64_t at = atomic_load(&stopped);

	if (at)
		atomic_store(&ahead, at - kernel_ns());
	atomic_store(&stopped, stop ? now_ns() : 0);
	set_ends();
}

void clock_step(uint64_t us)
{
	atomic_store(&step, (int64_t) us * 1000);
}
