/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads the allowed processors, quotas and idle times (cpus.h).
 *
 * Reads numbers without scanf() and strtoul(): sys/base/vm.c says why.
 */
#include "config.h"
#include "sys/node/cpus.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SLICE_NS 4000000 /* time slice, if the kernel does not tell */
/* field of a line in /proc/stat with idle time; the next one is iowait */
#define IDLE_FIELD 4
#define LEVELS	   16 /* levels of control groups that are read */
#define QUOTA_NS   UINT64_C(1000000000) /* time between two looks at quotas */

static uint64_t number(const char **text)
{
	uint64_t value = 0;

	*text += strspn(*text, " \t");
	for (; **text >= '0' && **text <= '9'; ++*text)
		value = value * 10 + (uint64_t) (**text - '0');
	return value;
}

/* Reads the start of a file as a string; false: there is no such file. */
static bool text_read(const char *path, char *text, size_t size)
{
	ssize_t len, all = 0;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	do {
		len = read(fd, text + all, size - 1 - all);
		all += len > 0 ? len : 0;
	} while (len > 0 && (size_t) all < size - 1);
	close(fd);
	text[all] = '\0';
	return all;
}

uint64_t mrrc_cpus_idle(const char *path, const void *set)
{
	char text[65536]; /* processors beyond this are not counted */
	const char *at;
	uint64_t sum = 0, cpu;
	int field;

	if (!text_read(path, text, sizeof(text)))
		return 0;
	for (at = text; (at = strstr(at, "\ncpu"));) {
		at += 4;
		if (*at < '0' || *at > '9')
			continue;
		cpu = number(&at);
		for (field = 1; field < IDLE_FIELD; field++)
			number(&at);
		if (cpu < CPU_SETSIZE && CPU_ISSET(cpu, (cpu_set_t *) set)) {
			sum += number(&at);
			sum += number(&at);
		}
	}
	return sum;
}

/* ---- quotas ---- */

/* Reads "QUOTA PERIOD", or "max PERIOD". 0: there is no quota. */
static double quota_v2(const char *dir)
{
	char path[PATH_MAX], text[64];
	const char *at = text;
	uint64_t quota, period;

	if (snprintf(path, sizeof(path), "%s/cpu.max", dir) >=
		    (int) sizeof(path) ||
	    !text_read(path, text, sizeof(text)))
		return 0;
	quota = number(&at);
	period = number(&at);
	return quota && period ? (double) quota / (double) period : 0;
}

static double quota_v1(const char *dir)
{
	char path[PATH_MAX], quota[64], period[64];
	const char *q = quota, *p = period;
	uint64_t of;

	if (snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", dir) >=
		    (int) sizeof(path) ||
	    !text_read(path, quota, sizeof(quota)) || *quota == '-' ||
	    snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", dir) >=
		    (int) sizeof(path) ||
	    !text_read(path, period, sizeof(period)))
		return 0;
	of = number(&p);
	return of ? (double) number(&q) / (double) of : 0;
}

/*
 * The smallest quota of a group and of all groups above it. In a container the
 * group's path may be its path in the host: then only the uppermost group
 * exists here.
 */
static double quota_of(const char *base, const char *group, size_t len,
		       double (*read)(const char *dir))
{
	double least = 0, found;
	char dir[PATH_MAX];
	size_t from = strlen(base);
	unsigned level;

	if (snprintf(dir, sizeof(dir), "%s%.*s", base, (int) len, group) >=
	    (int) sizeof(dir))
		return 0;
	for (level = 0; level < LEVELS; level++) {
		found = read(dir);
		if (found > 0 && (least <= 0 || found < least))
			least = found;
		if (strlen(dir) <= from)
			break;
		*strrchr(dir, '/') = '\0';
	}
	return least;
}

static bool names_cpu(const char *list, const char *end)
{
	for (; list < end; list += strcspn(list, ",:") + 1) {
		if (strcspn(list, ",:") == 3 && !strncmp(list, "cpu", 3))
			return true;
	}
	return false;
}

double mrrc_cpus_quota(const char *root)
{
	char text[4096], base[PATH_MAX];
	double least = 0, found;
	const char *line, *list, *group;

	if (snprintf(base, sizeof(base), "%s/proc/self/cgroup", root) >=
		    (int) sizeof(base) ||
	    !text_read(base, text, sizeof(text)))
		return 0;
	/* NUMBER:CONTROLLERS:PATH */
	for (line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		list = strchr(line, ':');
		group = list ? strchr(list + 1, ':') : NULL;
		if (!group)
			break;
		list++;
		group++;
		if (group != list + 1 && !names_cpu(list, group - 1))
			continue;
		snprintf(base, sizeof(base), "%s/sys/fs/cgroup%s", root,
			 group == list + 1 ? "" : "/cpu");
		found = quota_of(base, group, strcspn(group, "\n"),
				 group == list + 1 ? quota_v2 : quota_v1);
		if (found > 0 && (least <= 0 || found < least))
			least = found;
	}
	return least;
}

/* ---- all together ---- */

static uint64_t slice(void)
{
	struct timespec time;

	if (sched_rr_get_interval(0, &time) || (!time.tv_sec && !time.tv_nsec))
		return SLICE_NS;
	return (uint64_t) time.tv_sec * 1000000000 + time.tv_nsec;
}

static uint64_t mask(const cpu_set_t *set)
{
	uint64_t bits = 0;
	unsigned i;

	for (i = 0; i < CPU_SETSIZE; i++)
		bits |= CPU_ISSET(i, set) ? UINT64_C(1) << i % 64 : 0;
	return bits;
}

/* The idle processors since the last call; -1: unknown. */
static double idle_since(struct mrrc_cpus *cpus, const cpu_set_t *set,
			 uint64_t now)
{
	const double most = cpus->quota > 0 ? cpus->quota : cpus->allowed;
	const uint64_t ticks = mrrc_cpus_idle("/proc/stat", set);
	double idle = -1;

	if (cpus->when && ticks >= cpus->ticks && now > cpus->when)
		idle = (double) (ticks - cpus->ticks) * 1e9 /
		       (double) sysconf(_SC_CLK_TCK) /
		       (double) (now - cpus->when);
	cpus->ticks = ticks;
	cpus->when = now;
	return idle < most ? idle : most;
}

void mrrc_cpus_look(struct mrrc_cpus *cpus, bool idle)
{
	struct timespec ts;
	cpu_set_t set;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
	if (!cpus->quota_when || now - cpus->quota_when >= QUOTA_NS) {
		cpus->quota = mrrc_cpus_quota("");
		cpus->quota_when = now;
	}
	CPU_ZERO(&set);
	/*
	 * sched_getaffinity() fails if there are more processors than a set can
	 * have: then takes all processors for allowed
	 */
	if (sched_getaffinity(0, sizeof(set), &set))
		memset(&set, 0xff, sizeof(set));
	cpus->mask = mask(&set);
	cpus->allowed = CPU_COUNT(&set);
	if (cpus->quota > 0 && cpus->quota < cpus->allowed)
		cpus->allowed = (unsigned) cpus->quota;
	cpus->slice = slice();
	cpus->idle = idle ? idle_since(cpus, &set, now) : -1;
}
