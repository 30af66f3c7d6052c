/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_stat: shows the counters of registration caches in running processes,
 * whether a program's code would make lookups ask the kernel, and why a program
 * may gain nothing from the cache (fi_mrrc_stat(1)).
 */
#include "config.h"

#include <argp.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "out.h"
#include "stat/check.h"
#include "stat/code.h"
#include "stat/options.h"
#include "stat/show.h"
#include "stat/top.h"

/* The processes that had a domain, and when to stop. */
struct watch {
	const struct stat_options *options;
	/* NULL: no terminal, or the user named processes */
	struct stat_top *top;
	struct {
		pid_t pid;
		unsigned long long started;
	} * seen;
	size_t count;
};

static int complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static int complain(const char *fmt, ...)
{
	va_list args;

	fputs("fi_mrrc_stat: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	return EXIT_FAILURE;
}

static bool is_seen(const struct watch *watch, pid_t pid)
{
	size_t i;

	for (i = 0; i < watch->count; i++) {
		if (watch->seen[i].pid == pid)
			return true;
	}
	return false;
}

/* Remembers the processes that have a domain in the sample. */
static int see(struct watch *watch, const struct stat_sample *sample)
{
	void *more;
	size_t i;

	for (i = 0; i < sample->domains; i++) {
		if (is_seen(watch, sample->domain[i].pid))
			continue;
		more = reallocarray(watch->seen, watch->count + 1,
				    sizeof(*watch->seen));
		if (!more)
			return -ENOMEM;
		watch->seen = more;
		watch->seen[watch->count].pid = sample->domain[i].pid;
		watch->seen[watch->count++].started =
			stat_proc_started(sample->domain[i].pid);
	}
	return 0;
}

/* Is a given process still running? Forgets processes that have ended. */
static bool is_alive(struct watch *watch)
{
	size_t kept = 0;
	size_t i;

	for (i = 0; i < watch->count; i++) {
		if (watch->seen[i].started &&
		    stat_proc_started(watch->seen[i].pid) ==
			    watch->seen[i].started)
			watch->seen[kept++] = watch->seen[i];
	}
	watch->count = kept;
	return kept;
}

static int say_why(pid_t pid, int ret)
{
	switch (-ret) {
	case ESRCH:
		return complain("%d: there is no such process", (int) pid);
	case EACCES:
	case EPERM:
		return complain("%d: not permitted: run as the same user",
				(int) pid);
	default:
		return complain("%d: %s", (int) pid, strerror(-ret));
	}
}

/* Samples the given processes. In the first sample all processes must exist. */
static int read_given(const struct stat_options *options, bool first,
		      struct stat_sample *sample)
{
	size_t i;
	int ret;

	for (i = 0; i < options->pids; i++) {
		ret = stat_proc_read(options->pid[i], sample);
		/* /proc/PID/fd of a process that is ending is root's */
		if (ret && (first || (ret != -ESRCH && ret != -EACCES)))
			return say_why(options->pid[i], ret);
	}
	return 0;
}

static int read_all(struct stat_sample *sample, unsigned *denied)
{
	int ret = stat_proc_read_all(sample, denied);

	/* a process that starts or ends during the scan may be missed */
	if (!ret && !sample->domains && !sample->unknown)
		ret = stat_proc_read_all(sample, denied);
	return ret ? complain("/proc: %s", strerror(-ret)) : 0;
}

static int nothing(const struct stat_options *options,
		   const struct stat_sample *sample, unsigned denied)
{
	if (sample->unknown)
		return complain("a domain of ofi_mrrc is open, but of another "
				"version: use that one's fi_mrrc_stat");
	if (options->pids)
		return complain("no domain of ofi_mrrc is open there");
	if (denied)
		return complain("no domain of ofi_mrrc is open in the "
				"processes of this user; %u others could not "
				"be looked at: run as the same user",
				denied);
	return complain("no domain of ofi_mrrc is open in any process");
}

static int take(struct watch *watch, bool first, struct stat_sample *sample)
{
	unsigned denied = 0;
	int ret;

	ret = watch->options->pids ? read_given(watch->options, first, sample) :
				     read_all(sample, &denied);
	if (ret)
		return ret;
	if (first && !sample->domains &&
	    (!watch->options->wait || sample->unknown))
		return nothing(watch->options, sample, denied);
	if (see(watch, sample))
		return complain("%s", strerror(ENOMEM));
	return 0;
}

static int show_rows(const struct stat_options *options,
		     const struct stat_sample *sample,
		     const struct stat_sample *before)
{
	struct stat_rows rows;

	if (stat_rows_init(&rows, sample, before, options->order))
		return -ENOMEM;
	stat_rows_print(&rows, stdout);
	stat_rows_fini(&rows);
	fputc('\n', stdout);
	return out_flush(stdout);
}

static int show(struct watch *watch, const struct stat_sample *sample,
		const struct stat_sample *before)
{
	const struct stat_options *options = watch->options;
	int ret;

	if (watch->top) {
		ret = stat_top_show(watch->top, sample, before);
	} else if (options->json) {
		ret = stat_show_json(sample, stdout);
	} else if (!options->pids) {
		ret = show_rows(options, sample, before);
	} else {
		/* moves the cursor home, and clears the rest of the screen */
		if (options->count != 1 && stat_is_terminal())
			fputs("\033[H\033[J", stdout);
		ret = stat_show_table(sample, before, stdout);
	}
	return ret ? complain("standard output: %s", strerror(-ret)) : 0;
}

static void pause_for(double seconds)
{
	struct timespec ts = { .tv_sec = (time_t) seconds };

	ts.tv_nsec = (long) ((seconds - (double) ts.tv_sec) * 1e9);
	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

static int run(struct watch *watch)
{
	const struct stat_options *options = watch->options;
	struct stat_sample before = { 0 };
	struct stat_sample sample = { 0 };
	size_t taken = 0;
	int ret;

	for (;;) {
		ret = take(watch, !taken, &sample);
		if (ret || (taken && !is_alive(watch)))
			break;
		if (taken || sample.domains || watch->top)
			ret = show(watch, &sample, &before);
		taken += taken || sample.domains;
		if (ret || (taken && taken == options->count))
			break;
		if (!watch->top)
			pause_for(options->interval);
		else if (!stat_top_wait(watch->top, options->interval, &sample,
					&before))
			break;
		stat_sample_fini(&before);
		before = sample;
		sample = (struct stat_sample){ 0 };
	}
	stat_sample_fini(&before);
	stat_sample_fini(&sample);
	return ret;
}

int main(int argc, char **argv)
{
	struct stat_options options;
	struct watch watch = { .options = &options };
	struct stat_top top = { 0 };
	int ret;

	out_check_at_exit("fi_mrrc_stat");
	argp_program_version = PACKAGE_STRING;
	stat_options_parse(argc, argv, &options);
	if (options.code)
		return stat_code(options.what, options.whats, stdout, stderr);
	if (options.check)
		return stat_check(&options);
	top.order = options.order;
	if (!options.pids && !options.json && options.count != 1 &&
	    stat_is_terminal())
		watch.top = &top;
	ret = run(&watch);
	stat_top_end(&top);
	free(watch.seen);
	free(options.pid);
	return ret;
}
