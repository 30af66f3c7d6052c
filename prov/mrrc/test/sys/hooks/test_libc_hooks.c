/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/hooks/libc_hooks under the userfaultfd monitor: no unannounced change is
 * lost, whether made by raw system calls, by children that share or copy the
 * memory, or beside other patchers.
 */
#include "config.h"
#include "test/case.h"

#include <dlfcn.h>
#include <sys/syscall.h>

#include "test/fakes/fault.h"
#include "test/sys/hooks/libc_hooks_fixture.h"
#include "sys/hooks/libc_hooks.h"
#include "sys/hooks/patch.h"
#include "sys/base/vm.h"

/* Makes a system call past all hooks. */
static long raw(long number, long a, long b, long c)
{
	return duel_raw(number, a, b, c, 0, 0, 0);
}

TEST_CASE(hooks, hooks_setup, hooks_teardown);

/* A child that shares memory counts no mappings; nothing else is lost. */
TEST(test_mapping_in_child)
{
	static void *volatile ptr;
	bool complete;
	pid_t pid;

	need_hooks();
	if (!mrrc_mon_set_probe(mon, MRRC_PROBE_HOOKED))
		skip("hooks are not complete here");
	mrrc_libc_hooks_count(mon, 0);
	pid = vfork();
	if (!pid) {
		ptr = mmap(NULL, mon_page, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		_exit(0);
	}
	expect_ended(pid);
	complete = mrrc_trusted();
	munmap(ptr, mon_page);
	mrrc_mon_set_probe(mon, MRRC_PROBE_AUTO);
	ck_assert(complete);
}

/*
 * Two ranges far apart have the same mark: a change of one range does not end
 * the mark of the other range.
 */
TEST(test_far)
{
	const uintptr_t apart = MRRC_LIBC_HOOKS_CHUNK << 16;
	uintptr_t at = (uintptr_t) 1 << 40;
	char *near, *far;
	int i;

	need_hooks();
	near = mmap((void *) at, 4 * mon_page, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	far = mmap((void *) (at + apart), 4 * mon_page, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (near == MAP_FAILED || far == MAP_FAILED)
		skip("no such addresses");
	memset(far, 1, 4 * mon_page);
	hooks_watch(far, 4);
	madvise(far, mon_page, MADV_DONTNEED);
	expect_hook();
	memset(near, 1, 4 * mon_page);
	hooks_watch(near, 4);
	/* Nothing is watched in the far range any more. */
	for (i = 0; i < 3; i++)
		madvise(far, mon_page, MADV_DONTNEED);
	ck_assert_int_eq(munmap(near, 4 * mon_page), 0);
	expect_hook();
	munmap(far, 4 * mon_page);
}

static void tell(void *arg, uintptr_t start, uintptr_t end,
		 enum mrrc_libc_hooks_how how)
{
	*(bool *) arg = true;
}

/* A change at the end of a range that has more chunks than there are marks. */
TEST(test_long)
{
	const size_t len = (MRRC_LIBC_HOOKS_CHUNK << 16) * 3 / 2;
	bool told = false;
	char *ptr;

	need_hooks();
	ptr = mmap(NULL, len, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ptr == MAP_FAILED)
		skip("no such range");
	ck_assert_int_eq(mrrc_libc_hooks_add(tell, &told, NULL), 0);
	mrrc_libc_hooks_mark((uintptr_t) ptr, len);
	madvise(ptr + len - mon_page, mon_page, MADV_DONTNEED);
	mrrc_libc_hooks_remove(&told);
	munmap(ptr, len);
	ck_assert(told);
}

/* An unmap past the hooks is reported by the kernel. */
TEST(test_raw)
{
	char *ptr;

	need_hooks();
	ptr = hooks_map();
	ck_assert_int_eq(raw(SYS_munmap, (long) ptr, 4 * mon_page, 0), 0);
	expect_kernel();
	/* The range is watched again after an announcement. */
	ptr = hooks_map();
	madvise(ptr, 2 * mon_page, MADV_DONTNEED);
	expect_hook();
	hooks_watch(ptr, 4);
	ck_assert_int_eq(raw(SYS_madvise, (long) ptr, mon_page, MADV_DONTNEED),
			 0);
	expect_kernel();
	munmap(ptr, 4 * mon_page);
}

/* ---- other processes ---- */

/* A child does not end its parent's watch. */
TEST(test_raw_fork)
{
	char *ptr;
	long pid;

	need_hooks();
	ptr = hooks_map();
	/* This raw call bypasses libc: the child has no fork handlers. */
	pid = raw(SYS_clone, SIGCHLD, 0, 0);
	if (!pid) {
		munmap(ptr, 4 * mon_page);
		_exit(!mrrc_mon_forked(mon) || mrrc_mon_works(mon));
	}
	expect_ended(pid);
	ck_assert(!mrrc_mon_forked(mon) && mrrc_mon_works(mon));
	ck_assert_int_eq(raw(SYS_munmap, (long) ptr, 4 * mon_page, 0), 0);
	expect_kernel();
}

/* An unmap in a vfork() child is an unmap in the parent, too. */
TEST(test_vfork)
{
	volatile pid_t pid;
	char *ptr;

	need_hooks();
	ptr = hooks_map();
	pid = vfork();
	if (!pid) {
		munmap(ptr, 4 * mon_page);
		_exit(0);
	}
	expect_ended(pid);
	expect_kernel();
}

static int in_child(char *ptr)
{
	munmap(ptr, 4 * mon_page);
	mrrc_mon_unsubscribe(mon, &watcher.sub);
	mrrc_mon_unsubscribe(mon, &mon_probe.sub);
	mrrc_mon_close(mon);
	if (!CHILD_MAY_THREAD)
		return 0;
	/* The child has hooks of its own; the code is already patched. */
	hooks_setup();
	if (!hooked)
		return 1;
	ptr = hooks_map();
	munmap(ptr, 4 * mon_page);
	if (atomic_load(&watcher.told) != 1 || !atomic_load(&watcher.here))
		return 2;
	hooks_teardown();
	munmap(mon_map(4), 4 * mon_page);
	return 0;
}

TEST(test_fork)
{
	char *ptr;

	need_hooks();
	ptr = hooks_map();
	expect_child(in_child(ptr));
	munmap(ptr, 4 * mon_page);
	expect_hook();
}

/* ---- other patchers ---- */

/*
 * Returns the word of munmap's code that the hook patches in each known libc.
 */
static uint64_t *munmap_word(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	uintptr_t code;

	ck_assert_ptr_nonnull(libc);
	code = (uintptr_t) dlsym(libc, "munmap");
	dlclose(libc);
#ifdef __aarch64__
	code += 2 * sizeof(uint32_t);
#endif
	return (uint64_t *) (code & ~7UL);
}

/* Returns other code for the same system call. */
static uint64_t foreign_code(uint64_t plain)
{
#ifdef __x86_64__
	/* mov $nr, %al in place of mov $nr, %eax; xor clears %eax before */
	const uint8_t code[8] = { 0x31, 0xc0, 0xb0, SYS_munmap,
				  0x90, 0x0f, 0x05, (uint8_t) (plain >> 56) };
	uint64_t word;

	memcpy(&word, code, sizeof(word));
	return word;
#else
	/* svc #1 in place of svc #0 works as well: Linux ignores the number */
	return plain ^ 1 << 5;
#endif
}

static void poke(uint64_t *word, uint64_t value)
{
	void *at = (void *) ((uintptr_t) word & ~(mon_page - 1));

	ck_assert_int_eq(
		mprotect(at, mon_page, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
	__builtin___clear_cache((char *) word, (char *) (word + 1));
	ck_assert_int_eq(mprotect(at, mon_page, PROT_READ | PROT_EXEC), 0);
}

/*
 * Another patcher overwrites the provider's hook with code of its own, and
 * keeps it.
 */
TEST(test_overwritten)
{
	struct mrrc_libc_hooks_state state;
	uint64_t ours, plain, foreign;
	uint64_t *word;
	char *ptr;

	need_hooks();
	word = munmap_word();
	ours = *word;
	hooks_teardown();
	plain = *word;
	ck_assert_uint_ne(plain, ours);
	hooks_setup();
	ck_assert(hooked);
	ck_assert_uint_eq(*word, ours);
	mrrc_libc_hooks_state(&state);
	ck_assert_uint_eq(state.lost, 0);
	ck_assert_uint_ge(state.placed, 1);
	/* This code works, and is neither libc's nor the provider's. */
	foreign = foreign_code(plain);
	poke(word, foreign);
	mrrc_libc_hooks_state(&state);
	ck_assert_uint_eq(state.lost, 1);
	ptr = hooks_map();
	ck_assert_int_eq(munmap(ptr, 4 * mon_page), 0);
	expect_kernel();
	/* The provider neither restores nor patches another patcher's code. */
	hooks_teardown();
	ck_assert_uint_eq(*word, foreign);
	hooks_setup();
	ck_assert_uint_eq(*word, foreign);
	ck_assert(hooked);
	/* The remaining hooks cannot be relied on. */
	ck_assert(!mrrc_mon_set_probe(mon, MRRC_PROBE_HOOKED));
	poke(word, plain);
}

/* Monitors are opened and closed while other threads unmap. */
TEST(test_reopen)
{
	need_hooks();
	mon_reopen(true);
}

TEST(test_refused)
{
	char why[MRRC_LIBC_HOOKS_WHY] = "";
	struct mrrc_mon *none;

	ck_assert_int_eq(mrrc_mon_open("none", NULL, &none), 0);
	ck_assert_int_eq(mrrc_mon_hook(none, why), -ENODEV);
	ck_assert_str_ne(why, "");
	ck_assert_str_eq(mrrc_mon_title(none), "none");
	mrrc_mon_close(none);
}
