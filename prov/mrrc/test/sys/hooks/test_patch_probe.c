/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/hooks/patch beside uprobes, as perf(1) and bpftrace place them: the kernel writes
 * a byte over the instruction, and when the probe goes the byte of the file. Only
 * for this process, and skipped where that is not allowed.
 */
#include "config.h"
#include "test/case.h"

#include <dlfcn.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <linux/perf_event.h>

#include "test/sys/hooks/patch_fixture.h"
#include "sys/hooks/patch.h"
#include "sys/base/vm.h"

#ifdef __x86_64__
#define ON_X86 true
#else
#define ON_X86 false
#endif

/* Not the one by which tests make it fail (fault.h). */
static const uint8_t *libc_munmap(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	return libc ? dlsym(libc, "munmap") : NULL;
}

/* Of the mapping that the code is in. */
static struct {
	uintptr_t at;
	char file[480];
	uint64_t offset;
} code;

static bool find_code(void)
{
	unsigned long start, end, offset;
	char line[640];
	FILE *maps = fopen("/proc/self/maps", "re");

	ck_assert_ptr_nonnull(maps);
	code.offset = 0;
	while (!code.offset && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %479s", &start, &end,
			   &offset, code.file) == 4 &&
		    code.at >= start && code.at < end)
			code.offset = offset + (code.at - start);
	}
	fclose(maps);
	return code.offset;
}

static long uprobe_type(void)
{
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int type = -1;

	if (file) {
		if (fscanf(file, "%d", &type) != 1)
			type = -1;
		fclose(file);
	}
	return type;
}

/* At the code, or where its function returns. -1: not here, or not there. */
static int probe(uintptr_t at, bool returns)
{
	struct perf_event_attr attr = {
		.type = (uint32_t) uprobe_type(),
		.size = sizeof(attr),
		.config = returns,
		.config1 = (uint64_t) (uintptr_t) code.file,
	};

	if (uprobe_type() < 0)
		return -1;
	code.at = at;
	if (!find_code())
		return -1;
	attr.config2 = code.offset;
	return (int) syscall(SYS_perf_event_open, &attr, 0, -1, -1,
			     PERF_FLAG_FD_CLOEXEC);
}

static uint64_t hits(int fd)
{
	uint64_t count = 0;

	ck_assert_int_eq(read(fd, &count, sizeof(count)), sizeof(count));
	return count;
}

static void unmaps(void)
{
	void *ptr = mmap(NULL, mrrc_vm_page(), PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(ptr, MAP_FAILED);
	errno = 0;
	ck_assert_msg(!munmap(ptr, mrrc_vm_page()), "%s", strerror(errno));
	/* it has gone */
	ck_assert_int_eq(msync(ptr, mrrc_vm_page(), MS_ASYNC), -1);
}

TEST_CASE(probe, NULL, NULL);

/* Where it begins, and where it returns: the call works, with and after it. */
LOOP_TEST_IF(ON_X86, test_uprobe, 0, 2)
{
	const struct mrrc_patch *const patch = patch_of("munmap");
	const volatile uint8_t *entry = libc_munmap();
	unsigned long before;
	int fd, i;

	if (!patch)
		skip("another libc");
	ck_assert_int_eq(mrrc_patch_on(patch), 0);
	fd = probe((uintptr_t) entry, _i);
	if (fd < 0) {
		mrrc_patch_off(patch);
		skip("no uprobes here: %s", strerror(errno));
	}
	before = patch_calls();
	for (i = 0; i < 10; i++)
		unmaps();
	ck_assert_uint_ge(hits(fd), 10);
	ck_assert_uint_ge(patch_calls(), before + 10);
	close(fd);
	unmaps();
	ck_assert(mrrc_patch_is_on(patch));
	ck_assert_int_eq(mrrc_patch_off(patch), 0);
	unmaps();
}
