/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/hooks/patch beside uprobes (uprobe.h). The test is skipped where uprobes
 * are not allowed.
 */
#include "config.h"
#include "test/case.h"

#include <sys/ptrace.h>

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
	/* The page is unmapped. */
	ck_assert_int_eq(msync(ptr, mrrc_vm_page(), MS_ASYNC), -1);
}

TEST_CASE(probe, NULL, NULL);

/*
 * A probe is where munmap begins, or where it returns: calls work during and
 * after the probe.
 */
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

/* A patch of a word in memory, which only this test knows. */
static uint64_t own_word;
static const struct mrrc_patch own = {
	.word = &own_word,
	.before = 0x111111050f111111,
	.after = 0x1111111aeb111111,
};

static uint64_t yielded(uint64_t word)
{
	__atomic_store_n(&own_word, word, __ATOMIC_RELAXED);
	mrrc_patch_yield(&own);
	return __atomic_load_n(&own_word, __ATOMIC_RELAXED);
}

/* A jump yields to a probe, also to one that has gone, but to nothing else. */
TEST(test_yield)
{
	ck_assert_uint_eq(yielded(0x1111111acc111111), 0x11111105cc111111);
	ck_assert_uint_eq(yielded(0x1111111a0f111111), own.before);
	ck_assert_uint_eq(yielded(own.after), own.after);
	ck_assert_uint_eq(yielded(0x1111111a90111111), 0x1111111a90111111);
	ck_assert_uint_eq(yielded(0x1111111bcc111111), 0x1111111bcc111111);
}

static int traces(pid_t pid, int ready, int over)
{
	char byte = 0;

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL))
		byte = 1;
	return write(ready, &byte, 1) == 1 && read(over, &byte, 1) == 0 ? 0 : 1;
}

/* A debugger restores the byte that it found, so the rest of the jump stays. */
TEST(test_debugged)
{
	int ready[2], over[2];
	char byte = 1;
	pid_t pid;

	ck_assert_int_eq(pipe(ready), 0);
	ck_assert_int_eq(pipe(over), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		close(over[1]);
		_exit(traces(getppid(), ready[1], over[0]));
	}
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	if (!byte)
		ck_assert_uint_eq(yielded(0x1111111acc111111),
				  0x1111111acc111111);
	close(over[1]);
	child_exits(pid);
	ck_assert_uint_eq(yielded(0x1111111acc111111), 0x11111105cc111111);
	if (byte)
		skip("ptrace(2) is not allowed here");
}
