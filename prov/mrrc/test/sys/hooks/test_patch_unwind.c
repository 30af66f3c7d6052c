/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/hooks/patch: from each instruction of a hook, unwinders find the caller
 * of the hooked function, as backtrace(3), exceptions and pthread_cancel(3)
 * need.
 */
#include "config.h"
#include "test/case.h"

#include <execinfo.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "test/sys/hooks/patch_fixture.h"
#include "sys/hooks/patch.h"
#include "sys/base/vm.h"

#define FRAMES 64
#define TRAP   0x100 /* flag of x86: a trap after each instruction */

static void *caller; /* return address that a backtrace has to show */

static bool unwinds(void)
{
	void *frame[FRAMES];
	int i, count = backtrace(frame, FRAMES);

	for (i = 0; i < count; i++) {
		if (frame[i] == caller)
			return true;
	}
	return false;
}

#ifdef __x86_64__

static const struct mrrc_patch *stepped;
static unsigned steps, lost;
static uintptr_t lost_at;

/*
 * Two jumps are in code without unwind information: the jump in padding of
 * libc, and the jump near libc if this program is too far away from libc.
 */
static bool is_jump(uintptr_t at)
{
	return at == (uintptr_t) stepped->filler ||
	       (at == (uintptr_t) stepped->stub &&
		at - (uintptr_t) mrrc_patch_home() >= MRRC_PATCH_HOME);
}

static void on_step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *const user = context;
	const uintptr_t at = (uintptr_t) user->uc_mcontext.gregs[REG_RIP];

	/* int3 switches the trap on and off */
	if (info->si_code == SI_KERNEL) {
		user->uc_mcontext.gregs[REG_EFL] ^= TRAP;
		return;
	}
	steps++;
	if (unwinds() || is_jump(at))
		return;
	lost++;
	lost_at = at;
}

static __attribute__((noinline)) void step_unmap(void *ptr, size_t len)
{
	caller = __builtin_return_address(0);
	__asm__ volatile("int3");
	munmap(ptr, len);
	__asm__ volatile("int3");
}

TEST_CASE(unwind, NULL, NULL);

/* The system call is made in the stub, or in the hook. */
LOOP_TEST(test_step, 0, 2)
{
	struct sigaction action = { .sa_sigaction = on_step,
				    .sa_flags = SA_SIGINFO };
	struct sigaction old;
	void *ptr;

	stepped = patch_of("munmap");
	if (!stepped)
		skip("another libc");
	ptr = mmap(NULL, mrrc_vm_page(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
		   -1, 0);
	ck_assert_ptr_ne(ptr, MAP_FAILED);
	backtrace(&caller, 1); /* loads the libraries of backtrace */
	ck_assert_int_eq(sigaction(SIGTRAP, &action, &old), 0);
	ck_assert_int_eq(mrrc_patch_on(stepped), 0);
	steps = lost = 0;
	patch_make(_i);
	step_unmap(ptr, mrrc_vm_page());
	patch_make(false);
	ck_assert_int_eq(mrrc_patch_off(stepped), 0);
	sigaction(SIGTRAP, &old, NULL);
	ck_assert_uint_gt(steps, 20);
	ck_assert_msg(!lost, "%u of %u, as at %lx; stub %p, home %p", lost,
		      steps, (unsigned long) lost_at, stepped->stub,
		      mrrc_patch_home());
}

#endif /* __x86_64__ */

static volatile bool seen;

static void on_signal(int sig)
{
	seen = unwinds();
}

static __attribute__((noinline)) void unwind_signal(int sig)
{
	caller = __builtin_return_address(0);
	/* A last call would be a jump, without a frame. */
	ck_assert_int_eq(syscall(SYS_tgkill, getpid(), gettid(), sig), 0);
}

/*
 * A signal arrives right after a hooked system call, made by the stub or by the
 * hook: a backtrace in the signal's handler shows the caller.
 */
LOOP_TEST(test_handler, 0, 2)
{
	const struct mrrc_patch *const patch = patch_of("syscall");
	struct sigaction action = { .sa_handler = on_signal };
	struct sigaction old;

	if (!patch || !mrrc_patch_home())
		skip("no unwind information here");
	backtrace(&caller, 1);
	ck_assert_int_eq(sigaction(SIGUSR1, &action, &old), 0);
	ck_assert_int_eq(mrrc_patch_on(patch), 0);
	patch_make(_i);
	seen = false;
	unwind_signal(SIGUSR1);
	patch_make(false);
	ck_assert_int_eq(mrrc_patch_off(patch), 0);
	sigaction(SIGUSR1, &old, NULL);
	ck_assert(seen);
}

/* Whether gdb shows frames of a process that stopped itself in the stub. */
static bool gdb_knows(pid_t pid, bool *shown)
{
	char command[128], line[256];
	bool any = false;
	FILE *gdb;

	*shown = false;
	snprintf(command, sizeof(command),
		 "gdb -q -batch -nx -p %d -ex bt 2>&1", (int) pid);
	gdb = popen(command, "re");
	ck_assert_ptr_nonnull(gdb);
	while (fgets(line, sizeof(line), gdb)) {
		any = any || !strncmp(line, "#0", 2);
		*shown = *shown || strstr(line, "unwind_signal");
	}
	pclose(gdb);
	return any;
}

TEST(test_gdb)
{
	const struct mrrc_patch *const patch = patch_of("syscall");
	bool any, shown;
	int status;
	pid_t pid;

	if (!patch || !mrrc_patch_home())
		skip("no unwind information here");
	pid = fork();
	if (!pid) {
		mrrc_patch_on(patch);
		unwind_signal(SIGSTOP);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	any = gdb_knows(pid, &shown);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (!any)
		skip("no gdb here, or it may not attach");
	ck_assert(shown);
}
