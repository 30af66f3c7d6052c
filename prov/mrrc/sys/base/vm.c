/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Limits and kinds of memory (vm.h).
 */
#include "config.h"
#include "sys/base/vm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/capability.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

#define MRRC_PM_PRESENT (UINT64_C(1) << 63)
#define MRRC_PM_FILE	(UINT64_C(1) << 61) /* a file's, or shared anonymous */
#define MRRC_PM_BATCH	512		    /* entries read at a time */

#define VM_TRANSPARENT	     "/sys/kernel/mm/transparent_hugepage/"
#define MRRC_MAP_MAX_DEFAULT 65530 /* the kernel's own default */
#define MRRC_REGIONS_MIN     64
#define MRRC_REGIONS_MAX     65536

size_t mrrc_vm_page(void)
{
	return sysconf(_SC_PAGESIZE);
}

/*
 * Parses at most count numbers at text; returns their number. Uses neither
 * scanf() nor strtoul(): from glibc 2.38 on both have new symbol versions, and
 * libfabric silently skips a provider that needs a symbol version which an
 * older glibc lacks.
 */
static size_t vm_numbers(const char *text, size_t *value, size_t count)
{
	size_t n;

	for (n = 0; n < count; n++) {
		text += strspn(text, " \t");
		if (*text < '0' || *text > '9')
			break;
		for (value[n] = 0; *text >= '0' && *text <= '9'; text++)
			value[n] = value[n] * 10 + (size_t) (*text - '0');
	}
	return n;
}

/* Reads at most @size - 1 bytes of a small file; false: it cannot be read. */
static bool vm_read(const char *path, char *buf, size_t size)
{
	ssize_t len;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, buf, size - 1);
	close(fd);
	if (len <= 0)
		return false;
	buf[len] = '\0';
	return true;
}

size_t mrrc_vm_proc(const char *path, const char *key, size_t *value,
		    size_t count)
{
	char buf[4096];
	const char *at = buf;

	if (!vm_read(path, buf, sizeof(buf)))
		return 0;
	if (key) {
		at = strstr(buf, key);
		if (!at)
			return 0;
		at += strlen(key);
	}
	return vm_numbers(at, value, count);
}

size_t mrrc_vm_huge_page(void)
{
	size_t kib;

	return mrrc_vm_proc("/proc/meminfo", "Hugepagesize:", &kib, 1) ?
		       kib << 10 :
		       0;
}

size_t mrrc_vm_transparent(void)
{
	char modes[64];
	size_t size;

	return vm_read(VM_TRANSPARENT "enabled", modes, sizeof(modes)) &&
			       !strstr(modes, "[never]") &&
			       mrrc_vm_proc(VM_TRANSPARENT "hpage_pmd_size",
					    NULL, &size, 1) ?
		       size :
		       0;
}

size_t mrrc_vm_memory(void)
{
	return (size_t) sysconf(_SC_PHYS_PAGES) * mrrc_vm_page();
}

size_t mrrc_vm_map_max(void)
{
	size_t max;

	return mrrc_vm_proc("/proc/sys/vm/max_map_count", NULL, &max, 1) ?
		       max :
		       MRRC_MAP_MAX_DEFAULT;
}

bool mrrc_vm_strict(void)
{
	size_t mode;

	return mrrc_vm_proc("/proc/sys/vm/overcommit_memory", NULL, &mode, 1) &&
	       mode == 2;
}

/* @most, or an eighth of the limit on address space if that is less. */
static size_t vm_eighth(int which, size_t most)
{
	struct rlimit limit;

	if (getrlimit(which, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    limit.rlim_cur / 8 > most)
		return most;
	return limit.rlim_cur / 8;
}

size_t mrrc_vm_spare(void)
{
	/* the stack is near the end of the address space */
	const size_t all = (uintptr_t) __builtin_frame_address(0);

	return vm_eighth(RLIMIT_AS, vm_eighth(RLIMIT_DATA, all / 128));
}

/* The capability counts only in the first user namespace. */
static bool vm_ipc_lock(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	size_t map[3]; /* inside, outside, count */

	if (syscall(SYS_capget, &head, data) ||
	    !(data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &
	      CAP_TO_MASK(CAP_IPC_LOCK)))
		return false;
	return mrrc_vm_proc("/proc/self/uid_map", NULL, map, 3) == 3 &&
	       !map[0] && !map[1] && map[2] == UINT32_MAX;
}

size_t mrrc_vm_memlock(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY || vm_ipc_lock())
		return MRRC_VM_UNLIMITED;
	return limit.rlim_cur;
}

void mrrc_vm_derive_limits(size_t memory, size_t processors, size_t memlock,
			   size_t map_max, struct mrrc_vm_limits *limits)
{
	const size_t page = mrrc_vm_page();
	size_t bytes = memory / 4;
	size_t regions = map_max / 8;

	if (processors > 2)
		bytes = memory / (2 * processors);
	if (memlock != MRRC_VM_UNLIMITED && memlock / 4 * 3 < bytes)
		bytes = memlock / 4 * 3;
	if (bytes < page)
		bytes = page;
	if (regions < MRRC_REGIONS_MIN)
		regions = MRRC_REGIONS_MIN;
	if (regions > MRRC_REGIONS_MAX)
		regions = MRRC_REGIONS_MAX;
	limits->max_bytes = bytes;
	limits->max_regions = regions;
}

void mrrc_vm_default_limits(struct mrrc_vm_limits *limits)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	mrrc_vm_derive_limits(mrrc_vm_memory(), processors > 0 ? processors : 1,
			      mrrc_vm_memlock(), mrrc_vm_map_max(), limits);
}

/* Read the entries of @pages pages (at most a batch). */
static bool vm_pagemap(int fd, uintptr_t start, size_t pages, uint64_t *entry)
{
	const size_t len = pages * sizeof(*entry);
	const off_t at = start / mrrc_vm_page() * sizeof(*entry);

	return pread(fd, entry, len, at) == (ssize_t) len;
}

enum mrrc_vm_kind { MRRC_VM_PRIVATE, MRRC_VM_OTHER, MRRC_VM_ABSENT };

static enum mrrc_vm_kind vm_classify(const uint64_t *entry, size_t pages)
{
	enum mrrc_vm_kind kind = MRRC_VM_PRIVATE;
	size_t i;

	for (i = 0; i < pages; i++) {
		if (entry[i] & MRRC_PM_FILE)
			return MRRC_VM_OTHER;
		if (!(entry[i] & MRRC_PM_PRESENT))
			kind = MRRC_VM_ABSENT;
	}
	return kind;
}

static bool vm_batch_private(int fd, uintptr_t start, size_t pages)
{
	uint64_t entry[MRRC_PM_BATCH];
	enum mrrc_vm_kind kind;

	if (!vm_pagemap(fd, start, pages, entry))
		return false;
	kind = vm_classify(entry, pages);
	if (kind != MRRC_VM_ABSENT)
		return kind == MRRC_VM_PRIVATE;
	/*
	 * Fault absent pages in: the entry of an absent page does not show
	 * whether a file backs the page.
	 */
	if (madvise((void *) start, pages * mrrc_vm_page(), MADV_POPULATE_READ))
		return false;
	return vm_pagemap(fd, start, pages, entry) &&
	       vm_classify(entry, pages) == MRRC_VM_PRIVATE;
}

/* ---- what backs a mapping, as far as the kernel can be asked (6.11) ---- */

struct mrrc_vm_query {
	uint64_t size;
	uint64_t flags; /* 0: the mapping that covers addr */
	uint64_t addr;
	uint64_t start, end; /* answers, from here on */
	uint64_t vma_flags, page_size, offset;
	uint64_t inode; /* 0: no file */
	uint32_t major, minor;
	uint32_t name_size; /* 0: not wanted */
	uint32_t build_id_size;
	uint64_t name, build_id;
};

#define MRRC_VM_QUERY _IOWR('f', 17, struct mrrc_vm_query)

/* Huge pages without a file have a file inside the kernel. */
static bool vm_anon_huge(int fd, uintptr_t addr)
{
	static const char anon[] = "/anon_hugepage (deleted)";
	char name[PATH_MAX];
	struct mrrc_vm_query query = {
		.size = sizeof(query),
		.addr = addr,
		.name = (uintptr_t) name,
		.name_size = sizeof(name),
	};

	return !ioctl(fd, MRRC_VM_QUERY, &query) &&
	       query.page_size > mrrc_vm_page() && !strcmp(name, anon);
}

/*
 * Is a file mapped in the range, whose truncation would drop private pages as
 * well? Also false if the kernel does not tell.
 */
static bool vm_has_file(uintptr_t start, size_t len)
{
	struct mrrc_vm_query query = { .size = sizeof(query) };
	const uintptr_t end = start + len;
	bool file = false;
	int fd;

	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	for (; start < end && !file; start = query.end) {
		query.addr = start;
		if (ioctl(fd, MRRC_VM_QUERY, &query)) {
			/* no such mapping, or the kernel lacks the query */
			file = errno == ENOENT;
			break;
		}
		file = query.inode && !vm_anon_huge(fd, start);
	}
	close(fd);
	return file;
}

bool mrrc_vm_private(uintptr_t start, size_t len)
{
	const uintptr_t all = start;
	const size_t page = mrrc_vm_page();
	size_t pages = len / page;
	size_t batch;
	bool ok = true;
	int fd;

	/*
	 * Opened each time: after a fork, an old descriptor shows the parent.
	 */
	fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	for (; ok && pages; pages -= batch, start += batch * page) {
		batch = pages < MRRC_PM_BATCH ? pages : MRRC_PM_BATCH;
		ok = vm_batch_private(fd, start, batch);
	}
	close(fd);
	return ok && !vm_has_file(all, len);
}
