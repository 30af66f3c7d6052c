/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/hooks/libc_hooks_call under the userfaultfd monitor: which calls are
 * announced, and that a range that the kernel moves is in one piece.
 */
#include "config.h"
#include "test/case.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "test/sys/hooks/libc_hooks_fixture.h"
#include "sys/hooks/libc_hooks.h"
#include "sys/base/vm.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

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

/* The kernel reads the lower half of the number. */
static void do_syscall_wide(char *ptr)
{
	syscall(SYS_munmap | 1L << 32, ptr, 4 * mon_page, 0, 0);
}

static void do_shrink(char *ptr)
{
	ck_assert_ptr_eq(mremap(ptr, 4 * mon_page, mon_page, 0), ptr);
}

static void do_grow(char *ptr)
{
	ck_assert_ptr_ne(mremap(ptr, 4 * mon_page, 64 * mon_page,
				MREMAP_MAYMOVE),
			 MAP_FAILED);
}

static void do_dontunmap(char *ptr)
{
	void *to = mremap(ptr, 4 * mon_page, 4 * mon_page,
			  MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);

	ck_assert(to != MAP_FAILED || errno == EINVAL);
}

/* other machines make another system call, which is left to the kernel */
#ifdef __x86_64__
static void do_away(char *ptr)
{
	char *to = mon_map(4);

	ck_assert_ptr_eq(mremap(ptr, 4 * mon_page, 4 * mon_page,
				MREMAP_MAYMOVE | MREMAP_FIXED, to),
			 to);
}

static void do_onto(char *ptr)
{
	char *from = mon_map(4);

	ck_assert_ptr_eq(mremap(from, 4 * mon_page, 4 * mon_page,
				MREMAP_MAYMOVE | MREMAP_FIXED, ptr),
			 ptr);
}
#endif

static void do_fixed(char *ptr)
{
	ck_assert_ptr_eq(mmap(ptr + mon_page, mon_page, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 ptr + mon_page);
}

#ifdef __aarch64__
#define TAG ((uintptr_t) 0x5a << 56)

static void do_tagged(char *ptr)
{
	ck_assert_int_eq(munmap((char *) ((uintptr_t) ptr | TAG), 4 * mon_page),
			 0);
}

static void do_tagged_dontneed(char *ptr)
{
	do_dontneed((char *) ((uintptr_t) ptr | TAG));
}
#endif

static void (*const announced[])(char *) = {
	do_munmap,    do_part,
	do_syscall,   do_syscall_wide,
	do_shrink,    do_grow,
	do_dontunmap,
#ifdef __x86_64__
	do_away,      do_onto,
#endif
#ifdef __aarch64__
	do_tagged,    do_tagged_dontneed,
#endif
	do_fixed,     do_dontneed,
	do_free,      do_shmat,
};

TEST_CASE(hooks_call, hooks_setup, hooks_teardown);

EACH_TEST(test_announced, announced)
{
	char *ptr;

	need_hooks();
	ptr = hooks_map();
	announced[_i](ptr);
	expect_hook();
}

/* A segment of huge pages replaces more pages than shmat() was asked for. */
TEST(test_shmat_huge)
{
	const size_t huge = mrrc_vm_huge_page();
	char *map, *at;
	int id;

	need_hooks();
	id = huge ? shmget(IPC_PRIVATE, mon_page,
			   IPC_CREAT | SHM_HUGETLB | 0600) :
		    -1;
	if (id < 0)
		skip("no huge page free");
	map = mon_map(2 * huge / mon_page);
	at = (char *) (((uintptr_t) map + huge - 1) & ~(huge - 1));
	hooks_watch(at + huge - 4 * mon_page, 4);
	ck_assert_ptr_eq(shmat(id, at, SHM_REMAP), at);
	shmctl(id, IPC_RMID, NULL);
	expect_hook();
	ck_assert_int_eq(at[huge - 1], 0);
	munmap(map, 2 * huge);
}

static const struct {
	bool file; /* a file of huge pages, without a flag that tells */
	int flags;
} hugetlbs[] = {
	{ false, MAP_HUGETLB },
	{ false, MAP_HUGETLB | 21 << 26 }, /* pages of 2 MiB */
	{ true, 0 },
};

/*
 * A fixed mapping of huge pages replaces more pages than its length says, even
 * if no huge page is free.
 */
EACH_TEST(test_mmap_huge, hugetlbs)
{
	const size_t huge = (size_t) 2 << 20;
	const int fd = hugetlbs[_i].file ?
			       memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB) :
			       -1;
	char *map, *at;

	need_hooks();
	if (hugetlbs[_i].file && fd < 0)
		skip("no huge pages");
	map = mon_map(2 * huge / mon_page);
	at = (char *) (((uintptr_t) map + huge - 1) & ~(huge - 1));
	hooks_watch(at + huge - 4 * mon_page, 4);
	mmap(at, mon_page, PROT_READ,
	     MAP_PRIVATE | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0) |
		     hugetlbs[_i].flags,
	     fd, 0);
	expect_hook();
	close(fd);
}

/*
 * mremap() of huge pages takes and replaces whole huge pages, even if its
 * lengths are shorter.
 */
LOOP_TEST(test_mremap_huge, 0, 2)
{
	const size_t huge = (size_t) 2 << 20;
	char *map, *at, *from;

	need_hooks();
	from = mmap(NULL, 2 * huge, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21 << 26 |
			    MAP_NORESERVE,
		    -1, 0);
	if (from == MAP_FAILED)
		skip("no huge pages");
	map = mon_map(2 * huge / mon_page);
	at = (char *) (((uintptr_t) map + huge - 1) & ~(huge - 1));
	if (_i) {
		hooks_watch(at + huge - 4 * mon_page, 4);
		ck_assert_ptr_eq(mremap(from, mon_page, mon_page,
					MREMAP_MAYMOVE | MREMAP_FIXED, at),
				 at);
	} else {
		hooks_watch(from + 2 * huge - 4 * mon_page, 4);
		ck_assert_ptr_eq(mremap(from, huge + mon_page, mon_page, 0),
				 from);
	}
	expect_hook();
	munmap(_i ? from + huge : from, huge);
	munmap(map, 2 * huge);
}

static void do_grow_part(char *ptr)
{
	do_grow(ptr - mon_page);
}

static void (*const busy[])(char *) = {
	do_munmap,   do_syscall, do_grow,  do_grow_part,
	do_dontneed, do_shmat,	 do_guard, do_own_guard,
};

/*
 * A hook does not wait for the lock of the monitor, or of a cache: the lock's
 * holder may be a thread that a signal stopped until this call is over.
 */
LOOP_TEST(test_busy, 0, 2 * sizeof(busy) / sizeof(busy[0]))
{
	char *map;
	bool even;

	need_hooks();
	map = mon_map(6);
	hooks_watch(map + mon_page, 4);
	mon_hold(_i % 2 ? &watcher.lock : &mon->lock);
	busy[_i / 2](map + mon_page);
	even = mon_even();
	mon_hold_end();
	ck_assert(!even);
	expect_event();
}

/* The kernel reports errors of process_madvise(), not the hook. */
TEST(test_own_madvise)
{
	const int fd = syscall(SYS_pidfd_open, getpid(), 0);
	char *ptr = mon_map(2);

	need_hooks();
	munmap(ptr + mon_page, mon_page);
	errno = 0;
	ck_assert_int_eq(syscall(SYS_process_madvise, fd, ptr + mon_page - 16,
				 2, MADV_COLD, 0),
			 -1);
	ck_assert(errno == EFAULT || errno == ENOSYS || errno == EPERM);
	munmap(ptr, mon_page);
	close(fd);
}

static _Atomic(char *) moving;

/* Watches and unwatches the middle all the time; no cache knows the range. */
static void *look_main(void *arg)
{
	const atomic_bool *stop = arg;
	uint64_t token;
	char *ptr;

	while (!atomic_load(stop)) {
		ptr = atomic_load(&moving);
		if (!mrrc_mon_watch(mon, (uintptr_t) ptr + 2 * mon_page,
				    mon_page, &token))
			mrrc_mon_unwatch(mon, (uintptr_t) ptr + 2 * mon_page,
					 mon_page);
	}
	return NULL;
}

/* A mapping with a watched part can be moved, and made larger. */
TEST(test_mremap_part)
{
	atomic_bool stop = false;
	char *ptr = mon_map(8);
	pthread_t thread;
	unsigned i;

	need_hooks();
	atomic_store(&moving, ptr);
	ck_assert_int_eq(pthread_create(&thread, NULL, look_main, &stop), 0);
	for (i = 0; i < 2000; i++) {
		ptr[0] = ptr[8 * mon_page - 1] = (char) i;
		ptr = mremap(ptr, 8 * mon_page, (16 + i % 2 * 512) * mon_page,
			     MREMAP_MAYMOVE);
		if (ptr == MAP_FAILED || ptr[0] != (char) i ||
		    ptr[8 * mon_page - 1] != (char) i)
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

/*
 * A range that is being deregistered is watched, but is in no cache, so its
 * changes are not announced. The call may name a part of the last page.
 */
LOOP_TEST(test_mremap_limbo, 0, 2)
{
	const size_t limbo = (_i ? 7 : 2) * mon_page;
	char *ptr = mon_map(8);
	unsigned count;

	need_hooks();
	ck_assert_int_eq(mon_watch(ptr + limbo, 1), 0);
	ck_assert_int_eq(madvise(ptr, mon_page, MADV_DONTNEED), 0);
	ptr = mremap(ptr, 8 * mon_page - 100 * _i, 528 * mon_page,
		     MREMAP_MAYMOVE);
	ck_assert_msg(ptr != MAP_FAILED, "%s", strerror(errno));
	/* These pages are not watched, so no event comes. */
	count = mon_events();
	munmap(ptr + 400 * mon_page, 128 * mon_page);
	ck_assert_uint_eq(mon_events(), count);
	mrrc_mon_unwatch(mon, (uintptr_t) ptr + limbo, mon_page);
	munmap(ptr, 400 * mon_page);
}

/* A lookup watches the middle once more after it was unwatched. */
static void split_once(void *arg, uintptr_t start, uintptr_t end,
		       enum mrrc_libc_hooks_how how)
{
	unsigned *const told = arg;

	if (how != MRRC_LIBC_HOOKS_AFTER)
		ck_assert_int_eq(
			madvise((char *) start + 2 * mon_page, mon_page,
				(*told)++ ? MADV_DODUMP : MADV_DONTDUMP),
			0);
}

/*
 * A watched range begins before the moved range: in this case Linux 6.1 keeps
 * two mappings.
 */
TEST(test_mremap_cut)
{
	char *map = mon_map(16), *ptr = map + 4 * mon_page;

	need_hooks();
	ck_assert_int_eq(mon_watch(map, 8), 0);
	ptr = mremap(ptr, 12 * mon_page, 528 * mon_page, MREMAP_MAYMOVE);
	ck_assert_msg(ptr != MAP_FAILED, "%s", strerror(errno));
	munmap(map, 4 * mon_page);
	munmap(ptr, 528 * mon_page);
}

/*
 * A mapping in several pieces is watched as a whole, then the move is tried
 * again.
 */
TEST(test_mremap_again)
{
	char *ptr = mon_map(8);
	unsigned told = 0;

	need_hooks();
	hooks_watch(ptr, 8);
	ck_assert_int_eq(mrrc_libc_hooks_add(split_once, &told, NULL), 0);
	ptr = mremap(ptr, 8 * mon_page, 528 * mon_page, MREMAP_MAYMOVE);
	mrrc_libc_hooks_remove(&told);
	ck_assert_msg(ptr != MAP_FAILED, "%s", strerror(errno));
	ck_assert_uint_eq(told, 2);
	ck_assert_uint_eq(atomic_load(&hooks_watched), 2);
	munmap(ptr, 528 * mon_page);
}

TEST(test_brk)
{
	const uintptr_t mask = mon_page - 1;
	char *end = sbrk(0), *ptr;

	need_hooks();
	ptr = (char *) (((uintptr_t) end + mask) & ~mask);
	ck_assert_ptr_eq(sbrk(ptr - end + 4 * mon_page), end);
	memset(ptr, 1, 4 * mon_page);
	hooks_watch(ptr, 4);
	ck_assert_ptr_eq(sbrk(-4L * mon_page), ptr + 4 * mon_page);
	expect_hook();
	ck_assert_ptr_eq(sbrk(-(long) (ptr - end)), ptr);
}

/* None of these calls takes a page away. */
TEST(test_harmless)
{
	char *ptr;

	need_hooks();
	ptr = hooks_map();
	madvise(ptr, 4 * mon_page, MADV_WILLNEED);
	ck_assert_int_eq(munmap(ptr + 1, mon_page), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(munmap(ptr, 0), -1);
	ck_assert_ptr_eq(mmap(ptr, mon_page, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			      -1, 0),
			 MAP_FAILED);
	ck_assert_int_eq(errno, EEXIST);
	ck_assert_ptr_eq(
		mremap(ptr, 4 * mon_page, 4 * mon_page, MREMAP_MAYMOVE), ptr);
	munmap(mon_map(4), 4 * mon_page);
	ck_assert_uint_eq(atomic_load(&watcher.told), 0);
	munmap(ptr, 4 * mon_page);
	expect_hook();
}

/* Calls matter that take memory away or bring code, and unknown calls. */
TEST(test_matters)
{
	ck_assert(mrrc_libc_hooks_matters(SYS_munmap));
	ck_assert(mrrc_libc_hooks_matters(SYS_mprotect));
	ck_assert(mrrc_libc_hooks_matters(100000));
	ck_assert(!mrrc_libc_hooks_matters(SYS_futex));
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && \
	!defined(__SANITIZE_THREAD__)

/*
 * A thread that libc does not know, as some languages have: with thread-local
 * storage and system calls of its own, a filter that allows two system calls,
 * and a stack that the thread unmaps before it ends.
 */
struct bare {
	char *ptr, *stack;
	size_t len, stack_len;
	struct sock_fprog filter;
	atomic_int tid; /* 0: the thread has ended */
};

static inline long bare_call(long number, long a, long b, long c)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return ret;
}

__attribute__((no_stack_protector, noreturn)) static int bare_main(void *arg)
{
	struct bare *bare = arg;

	bare_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0);
	bare_call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
		  (long) &bare->filter);
	bare_call(SYS_munmap, (long) bare->ptr, (long) bare->len, 0);
	/* The stack is not used from here on. */
	__asm__ volatile("syscall\n\t"
			 "xor %%edi, %%edi\n\t"
			 "mov %[exit], %%eax\n\t"
			 "syscall"
			 :
			 : "a"(SYS_munmap), "D"(bare->stack),
			   "S"(bare->stack_len), [exit] "i"(SYS_exit)
			 : "rcx", "r11", "memory");
	__builtin_unreachable();
}

/*
 * No call of the thread is hooked: the kernel reports, and the thread ends
 * normally.
 */
TEST(test_bare)
{
	static struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	static char storage[4096] __attribute__((aligned(64)));
	static struct bare bare;
	unsigned i;

	need_hooks();
	for (i = 0; i < 20; i++) {
		bare.filter.len = sizeof(filter) / sizeof(filter[0]);
		bare.filter.filter = filter;
		bare.ptr = hooks_map();
		bare.len = 4 * mon_page;
		bare.stack_len = 16 * mon_page;
		bare.stack = mon_map(16);
		atomic_store(&bare.tid, -1);
		ck_assert_int_gt(clone(bare_main, bare.stack + bare.stack_len,
				       CLONE_VM | CLONE_FS | CLONE_FILES |
					       CLONE_SIGHAND | CLONE_THREAD |
					       CLONE_SYSVSEM | CLONE_SETTLS |
					       CLONE_CHILD_CLEARTID,
				       &bare, NULL,
				       storage + sizeof(storage) / 2,
				       &bare.tid),
				 0);
		while (atomic_load(&bare.tid))
			sched_yield();
		expect_kernel();
	}
}

#endif
