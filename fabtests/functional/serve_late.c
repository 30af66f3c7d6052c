/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_serve_late: fi_mrrc_serve, whose clock SIGUSR2 puts forward by a
 * thousand seconds, test_serve.sh. The clocks of libfabric and its providers
 * stay: calls of code linked into the program come here (-Wl,--wrap).
 */
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#define STEP_S 1000

static atomic_int ahead_s;

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	const int ret = __real_clock_gettime(clock, time);

	if (!ret && clock == CLOCK_MONOTONIC)
		time->tv_sec += atomic_load(&ahead_s);
	return ret;
}

static void put_forward(int signal)
{
	atomic_fetch_add(&ahead_s, STEP_S);
}

__attribute__((constructor)) static void at_signal(void)
{
	const struct sigaction action = { .sa_handler = put_forward,
					  .sa_flags = SA_RESTART };

	sigaction(SIGUSR2, &action, NULL);
}
