/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/hooks/patch beside uprobes (uprobe.h). Skipped where they are not allowed.
 */
#include "config.h"
#include "test/case.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/sys/hooks/patch_fixture.h"
#include "sys/hooks/patch.h"
#include "sys/base/vm.h"
#include "test/sys/hooks/uprobe.h"

#ifdef __x86_64__
#define ON_X86 true
#else
#define ON_X86 false
#endif

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
	const uint8_t *const entry = uprobe_libc("munmap");
	unsigned long before;
	int fd, i;

	if (!patch)
		skip("another libc");
	ck_assert_int_eq(mrrc_patch_on(patch), 0);
	fd = uprobe_set(entry, _i);
	if (fd < 0) {
		mrrc_patch_off(patch);
		skip("no uprobes here: %s", strerror(errno));
	}
	before = patch_calls();
	for (i = 0; i < 10; i++)
		unmaps();
	ck_assert_uint_ge(uprobe_count(fd), 10);
	ck_assert_uint_ge(patch_calls(), before + 10);
	close(fd);
	unmaps();
	ck_assert(mrrc_patch_is_on(patch));
	ck_assert_int_eq(mrrc_patch_off(patch), 0);
	unmaps();
}
