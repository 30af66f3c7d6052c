/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The limits of tests: the time for which tests wait, and the number of their
 * tries.
 *
 * The clock of limits: A limit must end a test that hangs, not a test that is
 * slow. On a machine with more runnable tasks than processors each task gets a
 * share of a processor, and the clock of limits advances by that share of the
 * elapsed time.
 */
#include "ft_mrrc.h"

#include <fcntl.h>
#include <sched.h>
#include <time.h>

#define LOOK_US 100000
#define TRY_US	3000000
#define HANGS_S 60

double ft_load(void)
{
	int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC), cpus = 1;
	char text[128] = "";
	double running = 0;
	cpu_set_t set;

	if (fd < 0)
		return 1;
	/* the file's text is as "4.71 2.00 0.84 14/133 2421" */
	if (read(fd, text, sizeof(text) - 1) < 0 ||
	    sscanf(text, "%*f %*f %*f %lf", &running) != 1)
		running = 0;
	close(fd);
	if (!sched_getaffinity(0, sizeof(set), &set))
		cpus = CPU_COUNT(&set);
	return running > cpus ? running / cpus : 1;
}

/* Reads CLOCK_MONOTONIC_RAW, because a test may move CLOCK_MONOTONIC. */
static double raw_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (double) ts.tv_sec * 1e6 + (double) ts.tv_nsec / 1e3;
}

uint64_t ft_limit_us(void)
{
	static __thread double last, looked, share, sum;
	const double now = raw_us();

	if (!looked || now - looked > LOOK_US) {
		share = 1 / ft_load();
		looked = now;
	}
	if (last)
		sum += (now - last) * share;
	last = now;
	return (uint64_t) sum;
}

uint64_t ft_deadline(void)
{
	const char *seconds = getenv("FT_HANGS");
	uint64_t s = seconds ? strtoull(seconds, NULL, 10) : HANGS_S;

	return ft_limit_us() + s * 1000000;
}

bool ft_round(unsigned i, unsigned n, uint64_t begin)
{
	return i < n && (i < n / 20 || ft_now_us() - begin < TRY_US);
}
