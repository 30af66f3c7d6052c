/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See machine.h. */
#include "config.h"
#include "stat/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/base/vm.h"

#define MAPS_ENOUGH 65530 /* the kernel's default of vm.max_map_count */

/* Lists the last parts of matching paths, with blanks between. */
static size_t names(const char *pattern, char *text, size_t size)
{
	const char *name;
	size_t len = 0, i;
	glob_t found;

	*text = '\0';
	if (glob(pattern, 0, NULL, &found))
		return 0;
	for (i = 0; i < found.gl_pathc && len < size; i++) {
		name = strrchr(found.gl_pathv[i], '/') + 1;
		len += snprintf(text + len, size - len, "%s%s", i ? " " : "",
				name);
	}
	globfree(&found);
	return i;
}

/* Opens a device file. 0, or the reason why no file can be opened. */
static int open_device(void)
{
	int ret = -ENOENT, fd;
	glob_t found;
	size_t i;

	if (glob("/dev/infiniband/uverbs*", 0, NULL, &found))
		return ret;
	for (i = 0; ret && i < found.gl_pathc; i++) {
		fd = open(found.gl_pathv[i], O_RDWR | O_CLOEXEC);
		ret = fd < 0 ? -errno : 0;
		if (fd >= 0)
			close(fd);
	}
	globfree(&found);
	return ret;
}

bool stat_machine_devices(struct stat_findings *findings)
{
	char text[256];
	int ret;

	if (!names("/sys/class/infiniband/*", text, sizeof(text))) {
		stat_find(findings, STAT_NOTE, "devices",
			  "load the device's driver; to try without one, "
			  "Soft-RoCE: rdma link add rxe0 type rxe netdev "
			  "INTERFACE",
			  "there is no RDMA device, and tcp needs no "
			  "registered memory");
		return false;
	}
	ret = open_device();
	if (!ret)
		stat_find(findings, STAT_OK, "devices", NULL, "%s", text);
	else
		stat_find(findings, STAT_BAD, "devices",
			  "modprobe ib_uverbs; give this user, or the "
			  "container (--device), /dev/infiniband/*",
			  "%s, but /dev/infiniband/uverbs*: %s", text,
			  strerror(-ret));
	return !ret;
}

static const char *size_text(size_t bytes, char text[32])
{
	if (bytes >> 30)
		snprintf(text, 32, "%.1f GiB", bytes / 1073741824.0);
	else if (bytes >> 20)
		snprintf(text, 32, "%.1f MiB", bytes / 1048576.0);
	else
		snprintf(text, 32, "%zu KiB", bytes >> 10);
	return text;
}

/* ---- one limit each ---- */

static void find_monitor(const struct stat_segment *segment,
			 struct stat_findings *findings)
{
	const char *why = strstr(segment->lacks, "nothing is kept: ");
	size_t seccomp = 0;

	if (strcmp(segment->monitor, "none")) {
		stat_find(findings, STAT_OK, "userfaultfd", NULL,
			  "memory is watched (monitor %s)", segment->monitor);
		return;
	}
	mrrc_vm_proc("/proc/self/status", "Seccomp:", &seccomp, 1);
	stat_find(findings, STAT_BAD, "userfaultfd",
		  why ? why + strlen("nothing is kept: ") : NULL,
		  "memory can't be watched, so that nothing is kept (seccomp "
		  "filter: %s; /dev/userfaultfd: %s)",
		  seccomp == 2 ? "yes" : "no",
		  access("/dev/userfaultfd", R_OK | W_OK) ? strerror(errno) :
							    "may be opened");
}

static void find_locked(const struct stat_segment *segment,
			struct stat_findings *findings)
{
	const size_t locked = mrrc_vm_memlock();
	/* the limit decides how many bytes are kept */
	const bool decides = locked != MRRC_VM_UNLIMITED &&
			     segment->max_bytes >= locked / 4 * 3;
	char limit[32], most[32];

	if (!decides) {
		stat_find(findings, STAT_OK, "locked memory", NULL,
			  "%s (ulimit -l); the cache keeps %s at most",
			  locked == MRRC_VM_UNLIMITED ?
				  "no limit" :
				  size_text(locked, limit),
			  size_text(segment->max_bytes, most));
		return;
	}
	stat_find(findings,
		  strstr(segment->lacks, "never kept") ? STAT_BAD : STAT_NOTE,
		  "locked memory",
		  "memlock in /etc/security/limits.conf, LimitMEMLOCK= of a "
		  "systemd service, --ulimit memlock=-1 of a container; then "
		  "ulimit -l unlimited",
		  "buffers above %s are never kept: ulimit -l %zu",
		  size_text(segment->max_bytes, most), locked >> 10);
}

static void find_maps(const struct stat_segment *segment,
		      struct stat_findings *findings)
{
	const size_t maps = mrrc_vm_map_max();
	const bool few = maps < MAPS_ENOUGH;

	stat_find(findings, few ? STAT_NOTE : STAT_OK, "vm.max_map_count",
		  few ? "sysctl -w vm.max_map_count=262144" : NULL,
		  "%zu; the cache keeps %" PRIu64 " regions at most", maps,
		  segment->max_regions);
}

static void find_hooks(const struct stat_segment *segment,
		       struct stat_findings *findings)
{
	const char *lacks = segment->lacks;

	if (!strcmp(segment->monitor, "none"))
		return;
	if (!strcmp(segment->monitor, "uffd+hooks") && !*lacks)
		stat_find(findings, STAT_OK, "hooks", NULL,
			  "libc's calls that unmap memory are hooked");
	else if (!strcmp(segment->monitor, "manual"))
		stat_find(findings, STAT_NOTE, "hooks",
			  "unset FI_OFI_MRRC_MONITOR, unless the application "
			  "calls fi_mrrc_invalidate()",
			  "none: the application tells what it unmaps");
	else if (strstr(lacks, "hooks"))
		stat_find(findings, STAT_NOTE, "hooks",
			  "unset FI_OFI_MRRC_HOOKS; see \"lacks\" in "
			  "fi_mrrc_stat(1)",
			  "lacks %s, and lookups ask the kernel", lacks);
	else if (strcmp(segment->monitor, "uffd+hooks"))
		stat_find(findings, STAT_NOTE, "hooks",
			  "unset FI_OFI_MRRC_HOOKS; see \"lacks\" in "
			  "fi_mrrc_stat(1)",
			  "libc is not hooked: unmapping is slower, and "
			  "lookups ask the kernel");
	else
		stat_find(findings, STAT_OK, "hooks", NULL,
			  "libc's calls that unmap memory are hooked");
}

void stat_machine_limits(const struct stat_segment *segment,
			 struct stat_findings *findings)
{
	find_monitor(segment, findings);
	find_locked(segment, findings);
	find_maps(segment, findings);
	find_hooks(segment, findings);
}
