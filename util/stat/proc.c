/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * /proc (stat/proc.h).
 */
#include "config.h"
#include "stat/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/text/text.h"
#include "stat/update.h"
#include "sys/base/regular.h"
#include "sys/observe/stats_shm.h"

#define LINK "/memfd:" MRRC_STATS_SHM_NAME " (deleted)"
/* maximum number of a process's domains, which may be many */
#define DOMAINS_MAX 1024

/*
 * Reads a small file of /proc/PID as a string; returns false if the process is
 * gone.
 */
static bool read_text(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int) pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, text, size - 1);
	close(fd);
	text[len > 0 ? len : 0] = '\0';
	return len > 0;
}

/* Reads the command's name, which may contain any byte. */
static void read_command(pid_t pid, char *command, size_t size)
{
	if (!read_text(pid, "comm", command, size))
		strcpy(command, "?");
	command[strcspn(command, "\n")] = '\0';
	mrrc_text_plain(command);
}

unsigned long long stat_proc_started(pid_t pid)
{
	unsigned long long started;
	char text[1024], state;
	const char *rest;

	if (!read_text(pid, "stat", text, sizeof(text)))
		return 0;
	/*
	 * the last bracket ends the command's name, which may contain any
	 * character; the rest of the line has no bracket
	 */
	rest = strrchr(text, ')');
	if (!rest || sscanf(rest,
			    ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			    "%*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
			    &state, &started) != 2)
		return 0;
	return state == 'Z' || state == 'X' ? 0 : started;
}

/* Returns the process's PID in its own PID name space, the innermost one. */
static pid_t own_pid(pid_t pid)
{
	char path[32];
	char *line = NULL, *last;
	size_t size = 0;
	pid_t own = pid;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", (int) pid);
	status = fopen(path, "re");
	if (!status)
		return -1;
	/* a line of all groups, which may be long, comes before */
	while (getline(&line, &size, status) > 0) {
		if (strncmp(line, "NSpid:", 6))
			continue;
		last = strrchr(line, '\t');
		if (last)
			own = atoi(last);
		break;
	}
	free(line);
	fclose(status);
	return own;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/*
 * Reads a link's target, which may have changed meanwhile, or may be any file
 * that a hostile process gave a segment's name. A memfd is on tmpfs.
 */
static int read_segment(int dir, const char *name, bool *answers,
			struct stat_domain *domain)
{
	static char data[STAT_SEGMENT_MAX];
	struct stat stat;
	ssize_t size = -1;
	int fd;

	fd = mrrc_regular_open(dir, name, TMPFS_MAGIC);
	if (fd < 0)
		return fd;
	*answers = *answers && stat_update(fd);
	if (!fstat(fd, &stat))
		size = pread(fd, data, sizeof(data), 0);
	domain->when = now();
	close(fd);
	if (size < 0)
		return -EPROTO;
	domain->id = stat.st_ino;
	return stat_segment_parse(data, size, &domain->segment);
}

static bool is_segment(int dir, const char *name)
{
	char link[sizeof(LINK)];
	const ssize_t len = readlinkat(dir, name, link, sizeof(link));

	return len == sizeof(LINK) - 1 && !memcmp(link, LINK, len);
}

/* Several descriptors may have the same segment. */
static bool is_known(const struct stat_sample *sample,
		     const struct stat_domain *domain)
{
	size_t i;

	for (i = 0; i < sample->domains; i++) {
		if (sample->domain[i].pid == domain->pid &&
		    sample->domain[i].id == domain->id)
			return true;
	}
	return false;
}

static int add(struct stat_sample *sample, const struct stat_domain *domain)
{
	struct stat_domain *more;

	if (is_known(sample, domain))
		return 0;
	more = reallocarray(sample->domain, sample->domains + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	more[sample->domains++] = *domain;
	sample->domain = more;
	return 0;
}

static int read_fds(pid_t pid, DIR *dir, struct stat_sample *sample)
{
	const pid_t own = own_pid(pid);
	struct stat_domain domain = { .pid = pid };
	const size_t max = sample->domains + DOMAINS_MAX;
	struct dirent *entry;
	bool answers = true; /* false once the process has not answered */
	int ret = 0;

	while (!ret && sample->domains < max && (entry = readdir(dir))) {
		if (!is_segment(dirfd(dir), entry->d_name))
			continue;
		ret = read_segment(dirfd(dir), entry->d_name, &answers,
				   &domain);
		if (ret == -EPROTONOSUPPORT)
			sample->unknown++;
		if (ret || domain.segment.pid != own) {
			ret = 0;
			continue;
		}
		read_command(pid, domain.command, sizeof(domain.command));
		ret = add(sample, &domain);
	}
	return ret;
}

int stat_proc_read(pid_t pid, struct stat_sample *sample)
{
	char path[32];
	DIR *dir;
	int ret;

	if (!stat_proc_started(pid))
		return -ESRCH;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int) pid);
	dir = opendir(path);
	if (!dir) {
		ret = -errno;
		return stat_proc_started(pid) ? ret : -ESRCH;
	}
	ret = read_fds(pid, dir, sample);
	closedir(dir);
	return ret;
}

int stat_proc_read_all(struct stat_sample *sample, unsigned *denied)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	size_t pid;
	int ret = 0;

	*denied = 0;
	if (!dir)
		return -errno;
	while (ret != -ENOMEM && (entry = readdir(dir))) {
		if (mrrc_text_count(entry->d_name, &pid))
			continue;
		ret = stat_proc_read(pid, sample);
		*denied += ret == -EACCES || ret == -EPERM;
	}
	closedir(dir);
	return ret == -ENOMEM ? ret : 0;
}

void stat_sample_fini(struct stat_sample *sample)
{
	free(sample->domain);
	*sample = (struct stat_sample){ 0 };
}
