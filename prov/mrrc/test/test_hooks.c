/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/hooks under the userfaultfd monitor: what is announced, and that nothing
 * is lost where it is not: raw system calls, children that share or copy the
 * memory, other patchers.
 */
#include "config.h"
#include "suites.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault.h"
#include "hooks_fixture.h"
#include "sys/hooks.h"
#include "sys/patch.h"
#include "sys/vm.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP	4
#endif

/* Past all hooks. */
static long raw(long number, long a, long b, long c)
{
	return duel_raw(number, a, b, c, 0, 0, 0);
}

/* ---- what is announced ---- */

static void do_munmap(char *ptr)
{
	munmap(ptr, 4 * mon_page);
}

static void do_part(char *ptr)
{
	munmap(ptr + mon_page, mon_page);
}

static void do_syscall(char *ptr)
{
	syscall(SYS_munmap, ptr, 4 * mon_page, 0, 0);
}

static void do_shrink(char *ptr)
{
	ck_assert_ptr_eq(mremap(ptr, 4 * mon_page, mon_page, 0), ptr);
}

static void do_grow(char *ptr)
{
	ck_assert_ptr_ne(mremap(ptr, 4 * mon_page, 64 * mon_page,
				MREMAP_MAYMOVE), MAP_FAILED);
}

static void do_dontunmap(char *ptr)
{
	void *to = mremap(ptr, 4 * mon_page, 4 * mon_page,
			  MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);

	ck_assert(to != MAP_FAILED || errno == EINVAL);
}

#ifdef __x86_64__ /* another system call elsewhere, left to the kernel */
static void do_away(char *ptr)
{
	char *to = mon_map(4);

	ck_assert_ptr_eq(mremap(ptr, 4 * mon_page, 4 * mon_page,
				MREMAP_MAYMOVE | MREMAP_FIXED, to), to);
}

static void do_onto(char *ptr)
{
	char *from = mon_map(4);

	ck_assert_ptr_eq(mremap(from, 4 * mon_page, 4 * mon_page,
				MREMAP_MAYMOVE | MREMAP_FIXED, ptr), ptr);
}
#endif

static void do_fixed(char *ptr)
{
	ck_assert_ptr_eq(mmap(ptr + mon_page, mon_page, PROT_NONE, MAP_PRIVATE |
			      MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 ptr + mon_page);
}

static void do_dontneed(char *ptr)
{
	madvise(ptr, 2 * mon_page, MADV_DONTNEED);
}

static void do_free(char *ptr)
{
	madvise(ptr, 2 * mon_page, MADV_FREE);
}

/* The one that makes no event: nothing but the hook tells. */
static void do_shmat(char *ptr)
{
	const int id = shmget(IPC_PRIVATE, 2 * mon_page, IPC_CREAT | 0600);

	ck_assert_int_ge(id, 0);
	ck_assert_ptr_eq(shmat(id, ptr + mon_page, SHM_REMAP),
			 ptr + mon_page);
	shmctl(id, IPC_RMID, NULL);
}

static void (*const announced[])(char *) = {
	do_munmap, do_part, do_syscall, do_shrink, do_grow, do_dontunmap,
#ifdef __x86_64__
	do_away, do_onto,
#endif
	do_fixed, do_dontneed, do_free, do_shmat,
};

START_TEST(test_announced)
{
	char *ptr;

	need_hooks();
	ptr = mon_map(4);
	hooks_watch(ptr, 4);
	announced[_i](ptr);
	expect_hook();
	munmap(ptr, 4 * mon_page);
}
END_TEST

/* A segment of huge pages replaces more than it was asked for. */
START_TEST(test_shmat_huge)
{
	const size_t huge = mrrc_vm_huge_page();
	char *map, *at;
	int id;

	need_hooks();
	id = huge ? shmget(IPC_PRIVATE, mon_page,
			   IPC_CREAT | SHM_HUGETLB | 0600) : -1;
	if (id < 0)
		skip("no huge page free");
	map = mon_map(2 * huge / mon_page);
	at = (char *)(((uintptr_t)map + huge - 1) & ~(huge - 1));
	hooks_watch(at + huge - 4 * mon_page, 4);
	ck_assert_ptr_eq(shmat(id, at, SHM_REMAP), at);
	shmctl(id, IPC_RMID, NULL);
	expect_hook();
	ck_assert_int_eq(at[huge - 1], 0);
	munmap(map, 2 * huge);
}
END_TEST

static void do_guard(char *ptr)
{
	/* MADV_GUARD_INSTALL, where there is such a thing */
	if (madvise(ptr, 2 * mon_page, 102))
		skip("no guard pages");
}

static long own_madvise(const struct iovec *iov, size_t count, int advice)
{
	const int fd = syscall(SYS_pidfd_open, getpid(), 0);
	long rc = syscall(SYS_process_madvise, fd, iov, count, advice, 0);

	close(fd);
	return rc;
}

static void do_own_guard(char *ptr)
{
	const struct iovec iov[] = {
		{ ptr, 0 }, { ptr, 2 * mon_page }
	};

	if (own_madvise(iov, 2, 102) < 0)
		skip("no guard pages");
}

struct holder {
	pthread_barrier_t held;
	pthread_t thread;
};

static void *hold_main(void *arg)
{
	struct holder *self = arg;

	mrrc_lock_acquire(&mon->lock);
	pthread_barrier_wait(&self->held);
	usleep(100000);
	mrrc_lock_release(&mon->lock);
	return NULL;
}

static void (*const silent[])(char *) = { do_shmat, do_guard, do_own_guard };

/* Nobody else would tell: worth the wait for whoever has the lock. */
START_TEST(test_silent_busy)
{
	struct holder holder;
	char *ptr;

	need_hooks();
	ptr = mon_map(4);
	hooks_watch(ptr, 4);
	pthread_barrier_init(&holder.held, NULL, 2);
	ck_assert_int_eq(pthread_create(&holder.thread, NULL, hold_main,
					&holder), 0);
	pthread_barrier_wait(&holder.held);
	silent[_i](ptr);
	expect_hook();
	pthread_join(holder.thread, NULL);
	pthread_barrier_destroy(&holder.held);
	munmap(ptr, 4 * mon_page);
}
END_TEST

/* It is the kernel that says what is wrong with it. */
START_TEST(test_own_madvise)
{
	const int fd = syscall(SYS_pidfd_open, getpid(), 0);
	char *ptr = mon_map(2);

	need_hooks();
	munmap(ptr + mon_page, mon_page);
	errno = 0;
	ck_assert_int_eq(syscall(SYS_process_madvise, fd, ptr + mon_page - 16,
				 2, MADV_COLD, 0), -1);
	ck_assert(errno == EFAULT || errno == ENOSYS || errno == EPERM);
	munmap(ptr, mon_page);
	close(fd);
}
END_TEST

static _Atomic(char *) moving;

/* What lies in the middle is watched again and again, known to no cache. */
static void *look_main(void *arg)
{
	const atomic_bool *stop = arg;
	uint64_t token;
	char *ptr;

	while (!atomic_load(stop)) {
		ptr = atomic_load(&moving);
		if (!mrrc_mon_watch(mon, (uintptr_t)ptr + 2 * mon_page,
				    mon_page, &token))
			mrrc_mon_unwatch(mon, (uintptr_t)ptr + 2 * mon_page,
					 mon_page);
	}
	return NULL;
}

/* A mapping of which a part is watched can be moved, and made larger. */
START_TEST(test_mremap_part)
{
	atomic_bool stop = false;
	char *ptr = mon_map(8);
	pthread_t thread;
	unsigned i;

	need_hooks();
	atomic_store(&moving, ptr);
	ck_assert_int_eq(pthread_create(&thread, NULL, look_main, &stop), 0);
	for (i = 0; i < 2000; i++) {
		ptr[0] = ptr[8 * mon_page - 1] = (char)i;
		ptr = mremap(ptr, 8 * mon_page, (16 + i % 2 * 512) * mon_page,
			     MREMAP_MAYMOVE);
		if (ptr == MAP_FAILED || ptr[0] != (char)i ||
		    ptr[8 * mon_page - 1] != (char)i)
			break;
		atomic_store(&moving, ptr);
		if (mremap(ptr, (16 + i % 2 * 512) * mon_page, 8 * mon_page,
			   0) != ptr)
			break;
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	ck_assert_msg(i == 2000, "round %u: %s", i, strerror(errno));
	munmap(ptr, 8 * mon_page);
}
END_TEST

/* What is being deregistered: watched, but in no cache, nor told of. */
START_TEST(test_mremap_limbo)
{
	char *ptr = mon_map(8);

	need_hooks();
	ck_assert_int_eq(mon_watch(ptr + 2 * mon_page, 1), 0);
	ck_assert_int_eq(madvise(ptr, mon_page, MADV_DONTNEED), 0);
	ptr = mremap(ptr, 8 * mon_page, 528 * mon_page, MREMAP_MAYMOVE);
	ck_assert_msg(ptr != MAP_FAILED, "%s", strerror(errno));
	mrrc_mon_unwatch(mon, (uintptr_t)ptr + 2 * mon_page, mon_page);
	munmap(ptr, 528 * mon_page);
}
END_TEST

/* A lookup that watches the middle after it was unwatched, and no more. */
static bool split_once(void *arg, uintptr_t start, uintptr_t end,
		       enum mrrc_hooks_how how)
{
	unsigned *const told = arg;

	if (how != MRRC_HOOKS_HINT)
		ck_assert_int_eq(madvise((char *)start + 2 * mon_page, mon_page,
					 (*told)++ ? MADV_DODUMP :
						     MADV_DONTDUMP), 0);
	return true;
}

/* A mapping in several pieces is tried again. */
START_TEST(test_mremap_again)
{
	char *ptr = mon_map(8);
	unsigned told = 0;

	need_hooks();
	hooks_watch(ptr, 8);
	ck_assert_int_eq(mrrc_hooks_add(split_once, &told, NULL), 0);
	ptr = mremap(ptr, 8 * mon_page, 528 * mon_page, MREMAP_MAYMOVE);
	mrrc_hooks_remove(&told);
	ck_assert_msg(ptr != MAP_FAILED, "%s", strerror(errno));
	ck_assert_uint_eq(told, 2);
	munmap(ptr, 528 * mon_page);
}
END_TEST

/* Inside a lock of ours nobody counts mappings; nothing else is lost. */
START_TEST(test_mapping_inside)
{
	bool complete;
	void *ptr;

	need_hooks();
	if (!mrrc_mon_set_probe(mon, MRRC_PROBE_HOOKED))
		skip("hooks are not complete here");
	mrrc_hooks_count(0);
	mrrc_lock_acquire(&mon->lock);
	ptr = mmap(NULL, mon_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		   0);
	mrrc_lock_release(&mon->lock);
	complete = mrrc_trusted();
	munmap(ptr, mon_page);
	mrrc_mon_set_probe(mon, MRRC_PROBE_AUTO);
	ck_assert(complete);
}
END_TEST

START_TEST(test_brk)
{
	const uintptr_t mask = mon_page - 1;
	char *end = sbrk(0), *ptr;

	need_hooks();
	ptr = (char *)(((uintptr_t)end + mask) & ~mask);
	ck_assert_ptr_eq(sbrk(ptr - end + 4 * mon_page), end);
	memset(ptr, 1, 4 * mon_page);
	hooks_watch(ptr, 4);
	ck_assert_ptr_eq(sbrk(-4L * mon_page), ptr + 4 * mon_page);
	expect_hook();
	ck_assert_ptr_eq(sbrk(-(long)(ptr - end)), ptr);
}
END_TEST

/* Nothing of these takes a page away. */
START_TEST(test_harmless)
{
	char *ptr;

	need_hooks();
	ptr = mon_map(4);
	hooks_watch(ptr, 4);
	madvise(ptr, 4 * mon_page, MADV_WILLNEED);
	ck_assert_int_eq(munmap(ptr + 1, mon_page), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(munmap(ptr, 0), -1);
	ck_assert_ptr_eq(mmap(ptr, mon_page, PROT_NONE, MAP_PRIVATE |
			      MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
			 MAP_FAILED);
	ck_assert_int_eq(errno, EEXIST);
	ck_assert_ptr_eq(mremap(ptr, 4 * mon_page, 4 * mon_page,
				MREMAP_MAYMOVE), ptr);
	munmap(mon_map(4), 4 * mon_page);
	ck_assert_uint_eq(atomic_load(&watcher.told), 0);
	munmap(ptr, 4 * mon_page);
	expect_hook();
}
END_TEST

/* Far apart, and yet with one mark: what goes is not the other's mark. */
START_TEST(test_far)
{
	const uintptr_t apart = MRRC_HOOKS_CHUNK << 16;
	uintptr_t at = (uintptr_t)1 << 40;
	char *near, *far;
	int i;

	need_hooks();
	near = mmap((void *)at, 4 * mon_page, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	far = mmap((void *)(at + apart), 4 * mon_page, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (near == MAP_FAILED || far == MAP_FAILED)
		skip("no such addresses");
	memset(far, 1, 4 * mon_page);
	hooks_watch(far, 4);
	madvise(far, mon_page, MADV_DONTNEED);
	expect_hook();
	memset(near, 1, 4 * mon_page);
	hooks_watch(near, 4);
	/* Nothing is watched there any more. */
	for (i = 0; i < 3; i++)
		madvise(far, mon_page, MADV_DONTNEED);
	ck_assert_int_eq(munmap(near, 4 * mon_page), 0);
	expect_hook();
	munmap(far, 4 * mon_page);
}
END_TEST

/* Past the hooks: the kernel tells. */
START_TEST(test_raw)
{
	char *ptr;

	need_hooks();
	ptr = mon_map(4);
	hooks_watch(ptr, 4);
	ck_assert_int_eq(raw(SYS_munmap, (long)ptr, 4 * mon_page, 0), 0);
	expect_kernel();
	/* Watched again after the announcement. */
	ptr = mon_map(4);
	hooks_watch(ptr, 4);
	do_dontneed(ptr);
	expect_hook();
	hooks_watch(ptr, 4);
	ck_assert_int_eq(raw(SYS_madvise, (long)ptr, mon_page, MADV_DONTNEED),
			 0);
	expect_kernel();
	munmap(ptr, 4 * mon_page);
}
END_TEST

/* ---- other processes ---- */

/* The parent's watch is not the child's to end. */
START_TEST(test_raw_fork)
{
	int status;
	char *ptr;
	long pid;

	need_hooks();
	ptr = mon_map(4);
	hooks_watch(ptr, 4);
	/* Not by libc: nobody tells us in the child. */
	pid = raw(SYS_clone, SIGCHLD, 0, 0);
	if (!pid) {
		munmap(ptr, 4 * mon_page);
		_exit(!mrrc_mon_forked(mon) || mrrc_mon_works(mon));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert(!mrrc_mon_forked(mon) && mrrc_mon_works(mon));
	ck_assert_int_eq(raw(SYS_munmap, (long)ptr, 4 * mon_page, 0), 0);
	expect_kernel();
}
END_TEST

/* The child's unmap is the parent's, too. */
START_TEST(test_vfork)
{
	volatile pid_t pid;
	int status;
	char *ptr;

	need_hooks();
	ptr = mon_map(4);
	hooks_watch(ptr, 4);
	pid = vfork();
	if (!pid) {
		munmap(ptr, 4 * mon_page);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	expect_kernel();
	ck_assert_int_eq(munmap(ptr, 4 * mon_page), 0);
}
END_TEST

static int in_child(char *ptr)
{
	munmap(ptr, 4 * mon_page);
	mrrc_mon_unsubscribe(mon, &watcher.sub);
	mrrc_mon_unsubscribe(mon, &mon_probe.sub);
	mrrc_mon_close(mon);
	if (!CHILD_MAY_THREAD)
		return 0;
	/* Hooks of its own, where the code is patched already. */
	hooks_setup();
	if (!hooked)
		return 1;
	ptr = mon_map(4);
	hooks_watch(ptr, 4);
	munmap(ptr, 4 * mon_page);
	if (atomic_load(&watcher.told) != 1 || !atomic_load(&watcher.here))
		return 2;
	hooks_teardown();
	munmap(mon_map(4), 4 * mon_page);
	return 0;
}

START_TEST(test_fork)
{
	int status;
	char *ptr;
	pid_t pid;

	need_hooks();
	ptr = mon_map(4);
	hooks_watch(ptr, 4);
	pid = fork();
	if (!pid)
		_exit(in_child(ptr));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	munmap(ptr, 4 * mon_page);
	expect_hook();
}
END_TEST

/* ---- other patchers ---- */

/* Where munmap begins; on all that we know, its patch is in the first word. */
static uint64_t *munmap_word(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	uintptr_t code;

	ck_assert_ptr_nonnull(libc);
	code = (uintptr_t)dlsym(libc, "munmap");
	dlclose(libc);
#ifdef __aarch64__
	code += 2 * sizeof(uint32_t);
#endif
	return (uint64_t *)(code & ~7UL);
}

/* The same system call in other words. */
static uint64_t foreign_code(uint64_t plain)
{
#ifdef __x86_64__
	/* mov $nr, %al in place of mov $nr, %eax; with what clears it */
	const uint8_t code[8] = {
		0x31, 0xc0, 0xb0, SYS_munmap, 0x90, 0x0f, 0x05,
		(uint8_t)(plain >> 56)
	};
	uint64_t word;

	memcpy(&word, code, sizeof(word));
	return word;
#else
	return plain;
#endif
}

static void poke(uint64_t *word, uint64_t value)
{
	void *at = (void *)((uintptr_t)word & ~(mon_page - 1));

	ck_assert_int_eq(mprotect(at, mon_page, PROT_READ | PROT_WRITE |
				  PROT_EXEC), 0);
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
	__builtin___clear_cache((char *)word, (char *)(word + 1));
	ck_assert_int_eq(mprotect(at, mon_page, PROT_READ | PROT_EXEC), 0);
}

/* Somebody overwrites our hook with code of his, and keeps it. */
START_TEST(test_overwritten)
{
	struct mrrc_hooks_state state;
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
	mrrc_hooks_state(&state);
	ck_assert_uint_eq(state.lost, 0);
	ck_assert_uint_ge(state.placed, 1);
	/* Runs, and is neither libc's nor ours. */
	foreign = foreign_code(plain);
	poke(word, foreign);
	mrrc_hooks_state(&state);
	ck_assert_uint_eq(state.lost, 1);
	ptr = mon_map(4);
	hooks_watch(ptr, 4);
	ck_assert_int_eq(munmap(ptr, 4 * mon_page), 0);
	expect_kernel();
	/* Not ours to take away, and not ours to patch. */
	hooks_teardown();
	ck_assert_uint_eq(*word, foreign);
	hooks_setup();
	ck_assert_uint_eq(*word, foreign);
	ck_assert(hooked);
	/* Of what remains, nobody can rely on. */
	ck_assert(!mrrc_mon_set_probe(mon, MRRC_PROBE_HOOKED));
	poke(word, plain);
}
END_TEST

static void *churn(void *arg)
{
	atomic_bool *stop = arg;
	char *ptr;

	while (!atomic_load(stop)) {
		ptr = mmap(NULL, 2 * mon_page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(ptr, 1, 2 * mon_page);
		mrrc_mon_watch(mon, (uintptr_t)ptr, mon_page, &mon_token);
		munmap(ptr, 2 * mon_page);
		free(malloc(300 * 1024));
	}
	return NULL;
}

/* Monitors come and go while others unmap. */
START_TEST(test_reopen)
{
	atomic_bool stop = false;
	struct mrrc_mon *again;
	pthread_t thread;
	unsigned fds;
	int i;

	need_hooks();
	fds = fault_fds();
	ck_assert_int_eq(pthread_create(&thread, NULL, churn, &stop), 0);
	for (i = 0; i < 100; i++) {
		ck_assert_int_eq(mrrc_mon_open_ops(&mrrc_mon_uffd_ops, NULL,
						   &again), 0);
		ck_assert_int_eq(mrrc_mon_hook(again, NULL), 0);
		mrrc_mon_close(again);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(fault_fds(), fds);
}
END_TEST

START_TEST(test_refused)
{
	char why[MRRC_HOOKS_WHY] = "";
	struct mrrc_mon *none;

	ck_assert_int_eq(mrrc_mon_open("none", NULL, &none), 0);
	ck_assert_int_eq(mrrc_mon_hook(none, why), -ENODEV);
	ck_assert_str_ne(why, "");
	ck_assert_str_eq(mrrc_mon_title(none), "none");
	mrrc_mon_close(none);
}
END_TEST

Suite *hooks_suite(void)
{
	Suite *suite = suite_create("hooks");
	TCase *tcase = tcase_create("hooks");

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, hooks_setup, hooks_teardown);
	tcase_add_loop_test(tcase, test_announced, 0,
			    sizeof(announced) / sizeof(announced[0]));
	tcase_add_test(tcase, test_shmat_huge);
	tcase_add_loop_test(tcase, test_silent_busy, 0, 3);
	tcase_add_test(tcase, test_own_madvise);
	tcase_add_test(tcase, test_mremap_part);
	tcase_add_test(tcase, test_mremap_limbo);
	tcase_add_test(tcase, test_mremap_again);
	tcase_add_test(tcase, test_mapping_inside);
	tcase_add_test(tcase, test_brk);
	tcase_add_test(tcase, test_harmless);
	tcase_add_test(tcase, test_far);
	tcase_add_test(tcase, test_raw);
	tcase_add_test(tcase, test_raw_fork);
	tcase_add_test(tcase, test_vfork);
	tcase_add_test(tcase, test_fork);
	tcase_add_test(tcase, test_overwritten);
	tcase_add_test(tcase, test_reopen);
	tcase_add_test(tcase, test_refused);
	suite_add_tcase(suite, tcase);
	return suite;
}
