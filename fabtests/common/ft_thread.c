/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The other threads of the process: those of the test and of the provider. */
#include "ft_mrrc.h"

#include <ctype.h>
#include <dirent.h>
#include <sys/syscall.h>

#define LOOKS	10 /* in a row */
#define LOOK_US 10000

#define SLEEP_MS   200
#define SLEEP_USED 40000 /* us of the processor, at most */
#define SLEEPS	   20

/* false: it runs, or would if it had a processor */
static bool asleep(const char *tid)
{
	char path[64], line[256] = "";
	FILE *file;
	char *end;

	snprintf(path, sizeof(path), "/proc/self/task/%.16s/stat", tid);
	file = fopen(path, "re");
	if (!file)
		return true; /* it has ended */
	if (!fgets(line, sizeof(line), file))
		*line = '\0';
	fclose(file);
	/* as "123 (name) S 1 ..." */
	end = strrchr(line, ')');
	return !end || end[2] != 'R';
}

static bool others_asleep(void)
{
	DIR *dir = opendir("/proc/self/task");
	const int self = (int) syscall(SYS_gettid);
	struct dirent *entry;
	bool all = true;

	FT_CHECK(dir, "/proc/self/task: %s", strerror(errno));
	while (all && (entry = readdir(dir)))
		all = !isdigit((unsigned char) *entry->d_name) ||
		      atoi(entry->d_name) == self || asleep(entry->d_name);
	closedir(dir);
	return all;
}

void ft_wait_quiet(void)
{
	const uint64_t end = ft_deadline();
	unsigned looks = 0;

	while (looks < LOOKS && ft_limit_us() < end) {
		usleep(LOOK_US);
		looks = others_asleep() ? looks + 1 : 0;
	}
}

void ft_check_sleeps(void (*sleeps)(int ms))
{
	uint64_t used = UINT64_MAX;
	unsigned i;

	for (i = 0; i < SLEEPS && used >= SLEEP_USED; i++) {
		used = ft_cpu_us();
		if (sleeps)
			sleeps(SLEEP_MS);
		else
			usleep(SLEEP_MS * 1000);
		used = ft_cpu_us() - used;
	}
	FT_CHECK(used < SLEEP_USED, "%" PRIu64 " us of work in %d ms", used,
		 SLEEP_MS);
}
