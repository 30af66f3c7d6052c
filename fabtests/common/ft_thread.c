/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Functions about the other threads of the process: the test's and the
 * provider's.
 */
#include "ft_mrrc.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define LOOKS	10 /* consecutive looks */
#define LOOK_US 10000

#define SLEEP_MS 50
/*
 * us of work that a spinning process does while the process under test sleeps
 */
#define SLEEP_WORK 200000
#define SLEEP_USED 40000 /* maximum us of processor time used */
#define SLEEPS	   20

/* Does the thread sleep? false: the thread runs, or waits for a processor */
static bool asleep(const char *tid)
{
	char path[64], line[256] = "";
	FILE *file;
	char *end;

	snprintf(path, sizeof(path), "/proc/self/task/%.16s/stat", tid);
	file = fopen(path, "re");
	if (!file)
		return true; /* the thread has ended */
	if (!fgets(line, sizeof(line), file))
		*line = '\0';
	fclose(file);
	/* the file's text is as "123 (name) S 1 ..." */
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

/* Moves this thread and all threads of the process @pid to one processor. */
static void bring_together(pid_t pid)
{
	struct dirent *entry;
	char path[64];
	cpu_set_t one;
	DIR *dir;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char) *entry->d_name))
			sched_setaffinity(atoi(entry->d_name), sizeof(one),
					  &one);
}

/*
 * Starts a process that spins on this process's processor: even on a busy
 * machine, a spinning thread of this process gets as much of the processor as
 * the started process.
 */
static pid_t spin(void)
{
	const pid_t self = getpid(), pid = fork();

	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(STDIN_FILENO); /* a parent's table of descriptors may be full */
	bring_together(self);
	while (getppid() == self)
		;
	_exit(0);
}

static uint64_t sleep_used(void (*sleeps)(int ms), clockid_t spins)
{
	const uint64_t until = ft_clock_us(spins) + SLEEP_WORK;
	const uint64_t before = ft_cpu_us();

	while (ft_clock_us(spins) < until) {
		if (sleeps)
			sleeps(SLEEP_MS);
		else
			usleep(SLEEP_MS * 1000);
	}
	return ft_cpu_us() - before;
}

void ft_check_sleeps(void (*sleeps)(int ms))
{
	const pid_t pid = spin();
	uint64_t used = UINT64_MAX;
	clockid_t spins;
	unsigned i;

	FT_CHECK(!clock_getcpuclockid(pid, &spins), "its clock");
	for (i = 0; i < SLEEPS && used >= SLEEP_USED; i++)
		used = sleep_used(sleeps, spins);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	FT_CHECK(used < SLEEP_USED, "%" PRIu64 " us of work of %d", used,
		 SLEEP_WORK);
}
