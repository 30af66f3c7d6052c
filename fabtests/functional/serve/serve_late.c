/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_serve_late: runs fi_mrrc_serve for test_serve.sh: SIGUSR2 moves the
 * server's clock forward by a thousand seconds, and reads of a file named
 * "hung" never end. The clocks of libfabric and its providers are unchanged:
 * only calls of code linked into the program are replaced (-Wl,--wrap).
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

static int is_hung(int fd)
{
	char link[64], path[4096];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path));
	return len > 5 && !memcmp(path + len - 5, "/hung", 5);
}

ssize_t __real_pread(int fd, void *buf, size_t len, off_t off);
ssize_t __wrap_pread(int fd, void *buf, size_t len, off_t off);

ssize_t __wrap_pread(int fd, void *buf, size_t len, off_t off)
{
	while (is_hung(fd))
		pause();
	return __real_pread(fd, buf, len, off);
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
