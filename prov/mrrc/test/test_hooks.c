/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/hooks under the userfaultfd monitor: what is announced, and that nothing
 * is lost where it is not: signal handlers in the middle of our locks,
 * children that share or copy the memory, other patchers.
 */
#include "config.h"
#include "suites.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault.h"
#include "mon_fixture.h"
#include "sys/hooks.h"
#include "sys/patch.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP	4
#endif

/* Knows of one range, and notes how it was told about it. */
static struct watcher {
	struct mrrc_mon_sub sub;
	struct mrrc_range range;
	atomic_uint told;
	atomic_bool here;	/* by the thread that unmaps */
	pthread_t thread;
	struct mrrc_lock lock;	/* CACHE: what a cache would take */
} watcher;

static bool hooked;
static unsigned before;	/* what mon_probe, which hears everything, heard */

static struct mrrc_range watcher_notify(struct mrrc_mon_sub *sub,
					uintptr_t start, uintptr_t end)
{
	struct mrrc_range gone = watcher.range;

	mrrc_lock_acquire(&watcher.lock);
	mrrc_lock_release(&watcher.lock);
	if (gone.start >= end || start >= gone.end)
		return (struct mrrc_range) { 0 };
	atomic_store(&watcher.here, pthread_equal(watcher.thread,
						  pthread_self()));
	watcher.range = (struct mrrc_range) { 0 };
	atomic_fetch_add(&watcher.told, 1);
	return gone;
}

static struct mrrc_range watcher_cover(struct mrrc_mon_sub *sub, uintptr_t pos)
{
	return watcher.range.end > pos ? watcher.range :
					 (struct mrrc_range) { 0 };
}

static void setup(void)
{
	char why[MRRC_HOOKS_WHY];

	mon_setup();
	hooked = false;
	if (!mon)
		return;
	watcher = (struct watcher) { .sub = { watcher_notify, watcher_cover } };
	mrrc_lock_init(&watcher.lock, MRRC_RANK_CACHE);
	mrrc_mon_subscribe(mon, &watcher.sub);
	hooked = !mrrc_mon_hook(mon, why);
	if (*why)
		fprintf(stderr, "hooks: %s\n", why);
	ck_assert_str_eq(mrrc_mon_title(mon), hooked ? "uffd+hooks" : "uffd");
}

static void teardown(void)
{
	if (mon) {
		mrrc_mon_unsubscribe(mon, &watcher.sub);
		mrrc_lock_fini(&watcher.lock);
	}
	mon_teardown();
}

#define need_hooks()	do {						\
		need_uffd();						\
		if (!hooked)						\
			skip("no hooks here");				\
	} while (0)

static void watch(char *ptr, size_t pages)
{
	watcher.range = (struct mrrc_range) { (uintptr_t)ptr,
		(uintptr_t)ptr + pages * mon_page };
	watcher.thread = pthread_self();
	atomic_store(&watcher.told, 0);
	atomic_store(&watcher.here, false);
	before = mon_events();
	ck_assert_int_eq(mrrc_mon_watch(mon, (uintptr_t)ptr,
					pages * mon_page), 0);
}

/* By a hook: in this thread, and the kernel had nothing left to report. */
static void expect_hook(void)
{
	ck_assert_uint_eq(atomic_load(&watcher.told), 1);
	ck_assert(atomic_load(&watcher.here));
	ck_assert_uint_eq(mrrc_mon_seq(mon) & 1, 0);
	ck_assert_uint_eq(mon_events(), before + 1);
}

/* By the kernel, sooner or later. */
static void expect_kernel(void)
{
	mrrc_mon_drain(mon);
	ck_assert_uint_eq(atomic_load(&watcher.told), 1);
	ck_assert_int_eq(mrrc_mon_check(mon), 0);
}

static long raw(long number, long a, long b, long c)
{
	long ret;

#ifdef __x86_64__
	__asm__ volatile("syscall" : "=a"(ret) : "a"(number), "D"(a), "S"(b),
			 "d"(c) : "rcx", "r11", "memory");
#else
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) :
			 "memory");
	ret = x0;
#endif
	return ret;
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

static void (*const announced[])(char *) = {
	do_munmap, do_part, do_syscall, do_shrink, do_grow, do_dontunmap,
#ifdef __x86_64__
	do_away, do_onto,
#endif
	do_fixed, do_dontneed, do_free,
};

START_TEST(test_announced)
{
	char *ptr;

	need_hooks();
	ptr = mon_map(4);
	watch(ptr, 4);
	announced[_i](ptr);
	expect_hook();
	munmap(ptr, 4 * mon_page);
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
	watch(ptr, 4);
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
	watch(ptr, 4);
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

/* Past the hooks: the kernel tells. */
START_TEST(test_raw)
{
	char *ptr;

	need_hooks();
	ptr = mon_map(4);
	watch(ptr, 4);
	ck_assert_int_eq(raw(SYS_munmap, (long)ptr, 4 * mon_page, 0), 0);
	expect_kernel();
	/* Watched again after the announcement. */
	ptr = mon_map(4);
	watch(ptr, 4);
	do_dontneed(ptr);
	expect_hook();
	watch(ptr, 4);
	ck_assert_int_eq(raw(SYS_madvise, (long)ptr, mon_page, MADV_DONTNEED),
			 0);
	expect_kernel();
	munmap(ptr, 4 * mon_page);
}
END_TEST

/* ---- signal handlers ---- */

static char *target;
static sigjmp_buf away;

static void on_munmap(int sig)
{
	munmap(target, 4 * mon_page);
}

static void on_raw(int sig)
{
	raw(SYS_munmap, (long)target, 4 * mon_page, 0);
}

static void on_jump(int sig)
{
	munmap(target, 4 * mon_page);
	siglongjmp(away, 1);
}

static void on(void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
}

static void *unmap_other(void *arg)
{
	raw(SYS_munmap, (long)arg, mon_page, 0);
	return NULL;
}

/*
 * A handler unmaps in the middle of our lock, by libc or not. An event of
 * another thread is already being handled, which waits for that lock.
 */
START_TEST(test_signal_inside)
{
	struct mrrc_lock *lock;
	pthread_t thread;
	char *other;

	need_uffd();
	lock = _i & 1 ? &watcher.lock : &mon->lock;
	on(_i & 2 ? on_raw : on_munmap);
	other = mon_map(1);
	ck_assert_int_eq(mon_watch(other, 1), 0);
	target = mon_map(4);
	watch(target, 4);
	mrrc_lock_acquire(lock);
	ck_assert_int_eq(pthread_create(&thread, NULL, unmap_other, other), 0);
	pthread_join(thread, NULL);
	usleep(1000);
	raise(SIGUSR1);
	mrrc_lock_release(lock);
	expect_kernel();
}
END_TEST

START_TEST(test_signal_outside)
{
	need_hooks();
	on(_i ? on_jump : on_munmap);
	target = mon_map(4);
	watch(target, 4);
	if (!sigsetjmp(away, 1))
		raise(SIGUSR1);
	expect_hook();
}
END_TEST

struct pinger {
	pthread_t to;
	atomic_bool stop;
};

static void *ping(void *arg)
{
	struct pinger *self = arg;

	while (!atomic_load(&self->stop)) {
		pthread_kill(self->to, SIGUSR1);
		usleep(50);
	}
	return NULL;
}

static atomic_uint pings;

static void on_churn(int sig)
{
	const int error = errno;
	char *ptr;

	ptr = mmap(NULL, mon_page, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ptr == MAP_FAILED || munmap(ptr, mon_page))
		abort();
	/* What the interrupted thread has watched, too. */
	if (target)
		madvise(target, mon_page, MADV_DONTNEED);
	atomic_fetch_add(&pings, 1);
	errno = error;
}

/* Handlers that unmap, at any moment of watching and unmapping. */
START_TEST(test_signal_storm)
{
	struct pinger pinger = { .to = pthread_self() };
	pthread_t thread;
	char *ptr;

	need_hooks();
	on(on_churn);
	atomic_store(&pings, 0);
	target = NULL;
	ck_assert_int_eq(pthread_create(&thread, NULL, ping, &pinger), 0);
	while (atomic_load(&pings) < 2000) {
		ptr = mon_map(2);
		target = ptr;
		watch(ptr, 2);
		munmap(ptr + mon_page, mon_page);
		target = NULL;
		munmap(ptr, mon_page);
		mrrc_mon_drain(mon);
		ck_assert_uint_ge(atomic_load(&watcher.told), 1);
	}
	atomic_store(&pinger.stop, true);
	pthread_join(thread, NULL);
	ck_assert(mrrc_mon_works(mon));
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
	watch(ptr, 4);
	/* Not by libc: nobody tells us in the child. */
	pid = raw(SYS_clone, SIGCHLD, 0, 0);
	if (!pid) {
		munmap(ptr, 4 * mon_page);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
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
	watch(ptr, 4);
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
	setup();
	if (!hooked)
		return 1;
	ptr = mon_map(4);
	watch(ptr, 4);
	munmap(ptr, 4 * mon_page);
	if (atomic_load(&watcher.told) != 1 || !atomic_load(&watcher.here))
		return 2;
	teardown();
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
	watch(ptr, 4);
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
	teardown();
	plain = *word;
	ck_assert_uint_ne(plain, ours);
	setup();
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
	watch(ptr, 4);
	ck_assert_int_eq(munmap(ptr, 4 * mon_page), 0);
	expect_kernel();
	/* Not ours to take away, and not ours to patch. */
	teardown();
	ck_assert_uint_eq(*word, foreign);
	setup();
	ck_assert_uint_eq(*word, foreign);
	ck_assert(hooked);
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
		mrrc_mon_watch(mon, (uintptr_t)ptr, mon_page);
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
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, test_announced, 0,
			    sizeof(announced) / sizeof(announced[0]));
	tcase_add_test(tcase, test_brk);
	tcase_add_test(tcase, test_harmless);
	tcase_add_test(tcase, test_raw);
	tcase_add_loop_test(tcase, test_signal_inside, 0, 4);
	tcase_add_loop_test(tcase, test_signal_outside, 0, 2);
	tcase_add_test(tcase, test_signal_storm);
	tcase_add_test(tcase, test_raw_fork);
	tcase_add_test(tcase, test_vfork);
	tcase_add_test(tcase, test_fork);
	tcase_add_test(tcase, test_overwritten);
	tcase_add_test(tcase, test_reopen);
	tcase_add_test(tcase, test_refused);
	suite_add_tcase(suite, tcase);
	return suite;
}
