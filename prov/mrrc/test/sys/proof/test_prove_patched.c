/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sys/proof/prove: another patcher has written to libc. */
#include "config.h"
#include "test/case.h"
#include "test/sys/proof/prove_fixture.h"

#include <dlfcn.h>
#include <sys/syscall.h>

#include "sys/hooks/libc_hooks.h"

#ifdef __x86_64__
static long other_munmap(void *ptr, size_t len)
{
	return syscall(SYS_munmap, ptr, len);
}

static void *other_mmap(void *ptr, size_t len, int prot, int flags, int fd,
			long offset)
{
	return (void *) syscall(SYS_mmap, ptr, len, prot, flags, fd, offset);
}

static void rewrite(uint8_t *at, const void *bytes, size_t len)
{
	uint8_t *code = (uint8_t *) ((uintptr_t) at & ~(uintptr_t) (page - 1));

	mprotect(code, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy(at, bytes, len);
	mprotect(code, 2 * page, PROT_READ | PROT_EXEC);
}

/* Overwrites a function as Open MPI's patcher does. */
static void overwrite(const char *name, const void *to)
{
	uint8_t jump[] = {
		0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3
	};

	memcpy(jump + 2, &to, sizeof(to));
	rewrite(dlsym(RTLD_DEFAULT, name), jump, sizeof(jump));
}

/* Overwrites as UCX's patcher does: the rest starts with a system call. */
void overwrite_near(const char *name, const char *to)
{
	uint8_t *at = dlsym(RTLD_DEFAULT, name);
	const int32_t distance =
		(int32_t) ((uint8_t *) dlsym(RTLD_DEFAULT, to) - (at + 5));
	uint8_t jump[5] = { 0xe9 };

	memcpy(jump + 1, &distance, sizeof(distance));
	rewrite(at, jump, sizeof(jump));
}

static void overwrite_all(void)
{
	long (*const to_munmap)(void *, size_t) = other_munmap;
	void *(*const to_mmap)(void *, size_t, int, int, int, long) =
		other_mmap;

	overwrite("munmap", (const void *) to_munmap);
	overwrite("mmap", (const void *) to_mmap);
}

TEST_CASE(patched, setup, NULL);

/* Functions of libc begin with jumps to others, which end in syscall(). */
TEST(test_patched)
{
	struct mrrc_libc_hooks_state state;

	overwrite_all();
	ck_assert(!mrrc_trusted());
	ck_assert_msg(trusted(true), "%s", why);
	mrrc_libc_hooks_state(&state);
	ck_assert_uint_ge(state.lost, 1);
	/* Another domain is opened. */
	mrrc_mon_set_probe(mon, MRRC_PROBE_AUTO);
	ck_assert_msg(trusted(true), "%s", why);
}

/* Shorter jumps keep trust, until the patcher takes them back, and after. */
TEST(test_patched_near)
{
	uint8_t *at = dlsym(RTLD_DEFAULT, "shmat");
	uint8_t was[5];

	memcpy(was, at, sizeof(was));
	overwrite_near("shmat", "shmdt");
	ck_assert(!mrrc_trusted());
	ck_assert_msg(trusted(true), "%s", why);
	rewrite(at, was, sizeof(was));
	ck_assert(!mrrc_trusted());
	ck_assert_msg(trusted(true), "%s", why);
}

/* A jump leads to the rest of another function, which is hooked there. */
TEST(test_patched_rest)
{
	uint8_t *at = dlsym(RTLD_DEFAULT, "shmdt");
	uint8_t *to = dlsym(RTLD_DEFAULT, "shmat");
	const int32_t distance = (int32_t) (to + 5 - (at + 5));
	uint8_t jump[5] = { 0xe9 };

	overwrite_near("shmat", "shmctl");
	memcpy(jump + 1, &distance, sizeof(distance));
	rewrite(at, jump, sizeof(jump));
	ck_assert(!mrrc_trusted());
	ck_assert_msg(trusted(true), "%s", why);
}

TEST_CASE(before, NULL, NULL);

/* Functions are overwritten before there are hooks. */
TEST(test_patched_before)
{
	overwrite_all();
	overwrite_near("shmat", "shmdt");
	setup();
}

#endif
