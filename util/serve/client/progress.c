/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Progress (serve/client/progress.h).
 */
#include "config.h"
#include "serve/client/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "serve/wire/path.h"

#define EVERY_MS 200
#define BAR	 20
#define NAME	 32 /* maximum bytes of a name that are shown */

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}

static double rate(const struct progress *progress, uint64_t now)
{
	const uint64_t ms = now - progress->started;

	return (double) progress->bytes / 1048.576 / (double) (ms ? ms : 1);
}

double progress_seconds(const struct progress *progress)
{
	return (double) (now_ms() - progress->started) / 1000;
}

void progress_open(struct progress *progress, bool quiet)
{
	memset(progress, 0, sizeof(*progress));
	progress->shown = !quiet && isatty(STDERR_FILENO);
	progress->started = now_ms();
}

void progress_add(struct progress *progress, const char *path, uint64_t bytes,
		  uint64_t done, uint64_t size)
{
	const uint64_t now = now_ms();
	const char *name = strrchr(path, '/');
	int full = size ? (int) ((double) done * BAR / (double) size) : BAR;
	char *shown;

	progress->bytes += bytes;
	if (!progress->shown || now - progress->last < EVERY_MS)
		return;
	progress->last = now;
	name = name ? name + 1 : path;
	shown = path_shown(name, strnlen(name, NAME));
	fprintf(stderr,
		"\r\033[K[%.*s%.*s] %3.0f %% %s  %" PRIu64
		" files, %.1f MiB, %.1f MiB/s",
		full, "####################", BAR - full,
		"                    ",
		size ? 100 * (double) done / (double) size : 100,
		shown ? shown : "", progress->files,
		(double) progress->bytes / (1 << 20), rate(progress, now));
	free(shown);
}

void progress_clear(const struct progress *progress)
{
	if (progress->shown)
		fputs("\r\033[K", stderr);
}

void progress_print(const struct progress *progress, bool would, uint64_t links,
		    uint64_t left_out, uint64_t failed)
{
	progress_clear(progress);
	printf("%" PRIu64 " files %s, %" PRIu64 " bytes", progress->files,
	       would ? "would be fetched" : "fetched", progress->bytes);
	if (!would)
		printf(", %.1f MiB/s", rate(progress, now_ms()));
	if (progress->resumed)
		printf("; %" PRIu64 " bytes were there", progress->resumed);
	if (progress->same)
		printf("; %" PRIu64 " files were there", progress->same);
	if (links)
		printf("; %" PRIu64 " links left out", links);
	if (left_out)
		printf("; %" PRIu64 " others left out", left_out);
	if (failed)
		printf("; %" PRIu64 " failed", failed);
	putchar('\n');
}
