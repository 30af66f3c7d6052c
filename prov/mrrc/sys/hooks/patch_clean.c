/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Removes the last bytes of patches that were taken back: the long jumps in
 * filler, to which a short jump led (patch.h). Before the patch was taken back,
 * a thread may have made the short jump, and not yet the long jump. So the
 * jumps are removed only when each other thread was seen asleep elsewhere, as
 * the kernel shows where a thread sleeps. If a thread does not sleep, the jumps
 * stay, but no code leads to them.
 *
 * If a thread sleeps in a signal handler, the kernel does not show where the
 * handler interrupted the thread: an interruption between these two jumps goes
 * unnoticed.
 */
#include "config.h"
#include "sys/hooks/patch.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sys/base/mappings.h"

#define CLEAN_TRIES 200 /* attempts for all threads together */
#define CLEAN_US    100

static bool clean_has(const struct mrrc_patch *all, size_t count, uintptr_t at)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (all[i].filler && at == (uintptr_t) all[i].filler)
			return true;
	}
	return false;
}

/*
 * Sets *at to the address where the thread sleeps. -EBUSY: the thread does not
 * sleep; 0 and *at unchanged: the thread has ended.
 */
static int clean_where(const char *tid, uintptr_t *at)
{
	char path[64], line[256] = "";
	const char *last;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%.16s/syscall", tid);
	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT || errno == ESRCH ? 0 : -EBUSY;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	last = strrchr(line, ' ');
	if (!last || strncmp(last, " 0x", 3) != 0)
		return -EBUSY;
	mrrc_mappings_hex(last + 3, at);
	return *at ? 0 : -EBUSY;
}

/* Has each other thread been seen outside of the filler? */
static bool clean_passed(const struct mrrc_patch *all, size_t count)
{
	unsigned tries = CLEAN_TRIES;
	char self[16];
	struct dirent *entry;
	uintptr_t at;
	DIR *dir = opendir("/proc/self/task");

	snprintf(self, sizeof(self), "%d", gettid());
	while (dir && tries && (entry = readdir(dir))) {
		if (*entry->d_name == '.' || !strcmp(entry->d_name, self))
			continue;
		for (at = 0; tries && (clean_where(entry->d_name, &at) ||
				       clean_has(all, count, at));
		     tries--)
			usleep(CLEAN_US);
	}
	if (dir)
		closedir(dir);
	return dir && tries;
}

void mrrc_patch_clean(const struct mrrc_patch *all, size_t count)
{
	size_t i;

	if (!clean_passed(all, count))
		return;
	for (i = 0; i < count; i++) {
		/*
		 * other code written in the word's place may lead to the filler
		 */
		if (all[i].filler && *all[i].word == all[i].before)
			mrrc_patch_unfill(&all[i]);
	}
}
