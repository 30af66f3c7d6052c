/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See application.h. */
#include "config.h"
#include "stat/application.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/text/stats.h"
#include "stat/probe.h"

#define ABOUT "application"

/*
 * beginning of the provider's reason for lookups that ask the kernel until the
 * process's code is examined: a few such lookups cost little time
 */
#define NOT_YET "code is looked at when"

struct sum {
	unsigned processes, domains;
	struct mrrc_stats stats;
	/* values of the last file that has any */
	char provider[64], asks[160], lacks[512];
};

/* ---- running ---- */

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return EXIT_FAILURE;
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
				     WEXITSTATUS(status);
}

static int run(char *const *argv, const char *file)
{
	/* signals from the keyboard are for the application, as in system(3) */
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction intr, quit;
	pid_t pid;
	int status, why;

	sigaction(SIGINT, &ignore, &intr);
	sigaction(SIGQUIT, &ignore, &quit);
	pid = fork();
	if (!pid) {
		sigaction(SIGINT, &intr, NULL);
		sigaction(SIGQUIT, &quit, NULL);
		setenv("FI_OFI_MRRC_STATS_FILE", file, 1);
		execvp(argv[0], argv);
		why = errno;
		fprintf(stderr, "fi_mrrc_stat: %s: %s\n", argv[0],
			strerror(why));
		_exit(why == ENOENT ? 127 : 126);
	}
	status = pid < 0 ? EXIT_FAILURE : wait_for(pid);
	sigaction(SIGINT, &intr, NULL);
	sigaction(SIGQUIT, &quit, NULL);
	return status;
}

/* ---- counters ---- */

static void copy_text(const json_t *line, const char *key, char *text,
		      size_t size)
{
	const char *value = json_string_value(json_object_get(line, key));

	if (value && *value)
		snprintf(text, size, "%s", value);
}

/* Returns a counter; 0 instead of a number that is none. */
static uint64_t counter(const json_t *value)
{
	const double is = json_number_value(value);

	return is > 0 && is < 0x1p64 ? (uint64_t) is : 0;
}

/* Limits, which are not used here, can be more than integers of jansson's. */
static void add_line(struct sum *sum, const char *text)
{
	json_t *line = json_loads(text, JSON_DECODE_INT_AS_REAL, NULL);
	const json_t *counters = json_object_get(line, "counters");
	int i;

	if (counters) {
		sum->domains++;
		for (i = 0; i < MRRC_STAT_SHARED; i++)
			sum->stats.value[i] += counter(
				json_object_get(counters, mrrc_stat_name(i)));
		copy_text(line, "provider", sum->provider,
			  sizeof(sum->provider));
		copy_text(line, "asks", sum->asks, sizeof(sum->asks));
		copy_text(line, "lacks", sum->lacks, sizeof(sum->lacks));
	}
	json_decref(line);
}

static void add_file(struct sum *sum, const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;

	if (!file)
		return;
	sum->processes++;
	while (getline(&line, &size, file) > 0)
		add_line(sum, line);
	free(line);
	fclose(file);
}

static int is_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Reads and removes the files in the folder. */
static void add_files(struct sum *sum, const char *folder)
{
	char path[PATH_MAX + 256];
	struct dirent **found;
	int count, i;

	count = scandir(folder, &found, is_file, alphasort);
	for (i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, found[i]->d_name);
		add_file(sum, path);
		unlink(path);
		free(found[i]);
	}
	if (count >= 0)
		free(found);
	rmdir(folder);
}

/* ---- what it tells ---- */

/*
 * Reasons why caches registered buffers for one use only, and the settings that
 * keep more buffers registered.
 */
static const struct {
	enum mrrc_stat stat;
	const char *cure;
} uncached[] = {
	{ MRRC_STAT_UNCACHED_NO_MONITOR, "that of userfaultfd, above" },
	{ MRRC_STAT_UNCACHED_NOT_PRIVATE,
	  "private memory without a file, as malloc's; shared memory by "
	  "fi_mr_alloc(3)" },
	{ MRRC_STAT_UNCACHED_UNWATCHABLE,
	  "ordinary memory: that of a device can't be watched" },
	{ MRRC_STAT_UNCACHED_WATCH_LIMIT, "a higher vm.max_map_count" },
	{ MRRC_STAT_UNCACHED_RACED,
	  "not to unmap a buffer, or map it again, while it is used" },
	{ MRRC_STAT_UNCACHED_TOO_BIG,
	  "a higher limit of locked memory (ulimit -l), or "
	  "FI_OFI_MRRC_CACHE_MAX_SIZE" },
	{ MRRC_STAT_UNCACHED_FULL,
	  "a higher limit of locked memory (ulimit -l), or "
	  "FI_OFI_MRRC_CACHE_MAX_SIZE" },
};

static void find_uncached(const struct sum *sum, struct stat_findings *findings)
{
	uint64_t count;
	size_t i;

	for (i = 0; i < sizeof(uncached) / sizeof(*uncached); i++) {
		count = sum->stats.value[uncached[i].stat];
		if (count)
			stat_find(findings, STAT_NOTE, ABOUT, uncached[i].cure,
				  "%" PRIu64 " times %s", count,
				  mrrc_stat_text[uncached[i].stat].help);
	}
}

static void find_nothing(struct stat_findings *findings)
{
	const char *provider = getenv("FI_PROVIDER");

	if (stat_probe_named(provider) || stat_probe_named(getenv("FI_HOOK")))
		stat_find(findings, STAT_NOTE, ABOUT,
			  "over tcp FI_OFI_MRRC_REGISTER=always; FI_HOOK=mrrc "
			  "if it names its provider itself",
			  "it closed no domain that registers by ofi_mrrc");
	else
		stat_find(findings, STAT_NOTE, ABOUT, STAT_PROBE_CHOOSE,
			  "it did not use ofi_mrrc: neither FI_PROVIDER nor "
			  "FI_HOOK chooses it");
}

static void find_sum(const struct sum *sum, struct stat_findings *findings)
{
	const uint64_t *value = sum->stats.value;
	const uint64_t lookups = value[MRRC_STAT_LOOKUPS];
	const uint64_t hits = value[MRRC_STAT_HITS];

	stat_find(findings, hits ? STAT_OK : STAT_NOTE, ABOUT, NULL,
		  "%u domain%s of %u process%s over %s: %" PRIu64
		  " lookups, %" PRIu64 " hits (%.1f%%), %" PRIu64
		  " misses, %" PRIu64 " registrations, %" PRIu64
		  " KiB registered at most",
		  sum->domains, sum->domains == 1 ? "" : "s", sum->processes,
		  sum->processes == 1 ? "" : "es", sum->provider, lookups, hits,
		  lookups ? 100.0 * hits / lookups : 0.0,
		  value[MRRC_STAT_MISSES], value[MRRC_STAT_REGISTRATIONS],
		  value[MRRC_STAT_PINNED_PEAK] >> 10);
	find_uncached(sum, findings);
	if (*sum->asks && strncmp(sum->asks, NOT_YET, strlen(NOT_YET)))
		stat_find(findings, STAT_NOTE, ABOUT,
			  "fi_mrrc_stat --code names all such code",
			  "lookups of threads asked the kernel: %s", sum->asks);
	if (*sum->lacks)
		stat_find(findings, STAT_NOTE, ABOUT, NULL, "lacked %s",
			  sum->lacks);
}

static json_t *counters_json(const struct sum *sum, int status)
{
	json_t *counters = json_object();
	int i;

	for (i = 0; counters && i < MRRC_STAT_SHARED; i++)
		json_object_set_new(counters, mrrc_stat_name(i),
				    json_integer(sum->stats.value[i]));
	return json_pack("{s:i, s:i, s:i, s:o}", "status", status, "processes",
			 (int) sum->processes, "domains", (int) sum->domains,
			 "counters", counters);
}

int stat_application(char *const *argv, struct stat_findings *findings,
		     json_t **counters)
{
	const char *tmp = getenv("TMPDIR");
	char made[PATH_MAX - 8], folder[PATH_MAX], file[PATH_MAX + 4];
	struct sum sum = { 0 };
	int status;

	*counters = NULL;
	snprintf(made, sizeof(made), "%s/fi_mrrc_stat.XXXXXX",
		 tmp && *tmp ? tmp : "/tmp");
	/* the application may change its folder */
	if (!mkdtemp(made) || !realpath(made, folder)) {
		fprintf(stderr, "fi_mrrc_stat: %s: %s\n", made,
			strerror(errno));
		return EXIT_FAILURE;
	}
	snprintf(file, sizeof(file), "%s/%%p", folder);
	status = run(argv, file);
	add_files(&sum, folder);
	if (sum.domains)
		find_sum(&sum, findings);
	else
		find_nothing(findings);
	*counters = counters_json(&sum, status);
	return status;
}
