/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Uprobes in this process (uprobe.h), set by perf_event_open(2), which needs
 * root or CAP_PERFMON.
 */
#include "config.h"
#include "test/sys/hooks/uprobe.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/perf_event.h>

#include "sys/base/mappings.h"

struct code {
	uintptr_t at;
	uint64_t offset; /* offset in the mapped file */
	char file[480];
};

const uint8_t *uprobe_libc(const char *name)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	return libc ? dlsym(libc, name) : NULL;
}

static bool find(void *arg, const struct mrrc_mapping *mapping)
{
	struct code *code = arg;

	if (code->at < mapping->start || code->at >= mapping->end)
		return true;
	code->offset = mapping->offset + (code->at - mapping->start);
	snprintf(code->file, sizeof(code->file), "%s", mapping->name);
	return false;
}

static int type(void)
{
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int number = -1;

	if (file) {
		if (fscanf(file, "%d", &number) != 1)
			number = -1;
		fclose(file);
	}
	return number;
}

int uprobe_set(const void *at, bool returns)
{
	struct code code = { .at = (uintptr_t) at };
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.config = returns,
		.config1 = (uint64_t) (uintptr_t) code.file,
	};
	const int number = type();

	errno = ENOSYS;
	if (number < 0)
		return -1;
	mrrc_mappings_each(find, &code);
	errno = ENOENT;
	if (!code.offset)
		return -1;
	attr.type = (uint32_t) number;
	attr.config2 = code.offset;
	return (int) syscall(SYS_perf_event_open, &attr, 0, -1, -1,
			     PERF_FLAG_FD_CLOEXEC);
}

uint64_t uprobe_count(int fd)
{
	uint64_t count = 0;

	return read(fd, &count, sizeof(count)) == sizeof(count) ? count : 0;
}
