/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/hooks/libc_hooks: what happens while hooks announce, and when hooks that
 * are relied on (MRRC_PROBE_HOOKED) are no longer relied on. Hooks that failed
 * once are not relied on again, so these tests run in children.
 */
#include "config.h"
#include "test/case.h"

#include <semaphore.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "test/fakes/fault.h"
#include "test/sys/hooks/libc_hooks_fixture.h"
#include "sys/hooks/libc_hooks.h"

/* ---- announcing ---- */

static struct mrrc_range (*plain_notify)(struct mrrc_mon_sub *sub,
					 uintptr_t start, uintptr_t end);
static volatile sig_atomic_t handled, handled_inside;

static void on_signal(int sig)
{
	handled = 1;
}

static struct mrrc_range disturb(struct mrrc_mon_sub *sub, uintptr_t start,
				 uintptr_t end)
{
	raise(SIGUSR1);
	handled_inside = handled;
	errno = EDOM;
	return plain_notify(sub, start, end);
}

TEST_CASE(hooks_event, hooks_setup, hooks_teardown);

/* No signal handler runs during an announcement, and errno is kept. */
TEST(test_undisturbed)
{
	const struct sigaction act = { .sa_handler = on_signal };
	struct sigaction old;
	char *ptr;
	int ret, error;

	need_hooks();
	ck_assert_int_eq(sigaction(SIGUSR1, &act, &old), 0);
	plain_notify = watcher.sub.notify;
	handled = handled_inside = 0;
	ptr = hooks_map();
	watcher.sub.notify = disturb;
	errno = 0;
	ret = munmap(ptr, 4 * mon_page);
	error = errno;
	watcher.sub.notify = plain_notify;
	sigaction(SIGUSR1, &old, NULL);
	ck_assert_int_eq(ret, 0);
	expect_hook();
	ck_assert(handled && !handled_inside);
	ck_assert_int_eq(error, 0);
}

/* An unmap of another part of the same chunk finds nothing to announce. */
TEST(test_same_chunk)
{
	const uintptr_t mask = MRRC_LIBC_HOOKS_CHUNK - 1;
	char *map, *ptr;

	need_hooks();
	map = mon_map(2 * MRRC_LIBC_HOOKS_CHUNK / mon_page);
	ptr = (char *) (((uintptr_t) map + mask) & ~mask);
	hooks_watch(ptr, 4);
	munmap(ptr + 8 * mon_page, mon_page);
	munmap(ptr, 4 * mon_page);
	expect_hook();
}

/* The second page of a segment replaces a watched page. */
TEST(test_shmat_second)
{
	char *ptr;
	int id;

	need_hooks();
	id = shmget(IPC_PRIVATE, 2 * mon_page, IPC_CREAT | 0600);
	ck_assert_int_ge(id, 0);
	ptr = mon_map(4);
	hooks_watch(ptr + mon_page, 3);
	ck_assert_ptr_eq(shmat(id, ptr, SHM_REMAP), ptr);
	shmctl(id, IPC_RMID, NULL);
	expect_hook();
	munmap(ptr, 4 * mon_page);
}

/* A failed monitor that still knows a range stays failed. */
TEST(test_failed)
{
	char *ptr;

	need_hooks();
	ptr = hooks_map();
	mrrc_mon_fail(mon, "for a test");
	watcher.range = (struct mrrc_range){ (uintptr_t) ptr,
					     (uintptr_t) ptr + 4 * mon_page };
	munmap(ptr, 4 * mon_page);
	ck_assert_uint_eq(mrrc_mon_seq(mon) & 1, 1);
}

/* Whatever step fails, hooks are there or not, and libc works. */
TEST(test_place_fails)
{
	char why[MRRC_LIBC_HOOKS_WHY];
	bool fired = true;
	unsigned n;
	char *ptr;

	need_hooks();
	for (n = 1; fired; n++) {
		hooks_teardown();
		mon_setup();
		fault_arm(n);
		mrrc_mon_hook(mon, why);
		fired = fault_disarm();
		ptr = mon_map(4);
		ck_assert_int_eq(munmap(ptr, 4 * mon_page), 0);
		mon_teardown();
		hooks_setup();
	}
	ck_assert_uint_gt(n, 2);
}

/* ---- a thread that announces while others leave, or fork ---- */

static sem_t told, go_on;
static atomic_bool done;
static pid_t teller;

static void tell_slowly(void *arg, uintptr_t start, uintptr_t end,
			enum mrrc_libc_hooks_how how)
{
	if (getpid() != teller)
		_exit(2);
	sem_post(&told);
	while (sem_wait(&go_on))
		;
	atomic_store(&done, true);
}

static void tell_at_once(void *arg, uintptr_t start, uintptr_t end,
			 enum mrrc_libc_hooks_how how)
{
	*(bool *) arg = true;
}

static void *unmap_main(void *arg)
{
	munmap(arg, 4 * mon_page);
	return NULL;
}

static void let_go(void)
{
	sem_post(&go_on);
}

static void waits_in_child(void)
{
	_exit(3);
}

/*
 * In a child, a hook tells no monitor of the parent, and waits for no thread of
 * the parent.
 */
static int tell_in_child(void)
{
	bool here = false;
	char *ptr = mon_map(4);

	if (mrrc_libc_hooks_add(tell_at_once, &here, NULL))
		return 4;
	mrrc_libc_hooks_mark((uintptr_t) ptr, 4 * mon_page);
	munmap(ptr, 4 * mon_page);
	fault_at(FAULT_YIELD, waits_in_child);
	mrrc_libc_hooks_remove(&here);
	return here ? 0 : 5;
}

TEST(test_telling)
{
	pthread_t thread;
	char *ptr;
	pid_t pid;
	bool was;

	need_hooks();
	sem_init(&told, 0, 0);
	sem_init(&go_on, 0, 0);
	atomic_store(&done, false);
	teller = getpid();
	ptr = mon_map(4);
	ck_assert_int_eq(mrrc_libc_hooks_add(tell_slowly, &done, NULL), 0);
	mrrc_libc_hooks_mark((uintptr_t) ptr, 4 * mon_page);
	ck_assert_int_eq(pthread_create(&thread, NULL, unmap_main, ptr), 0);
	sem_wait(&told);
	pid = fork();
	if (!pid)
		_exit(tell_in_child());
	/* This thread waits first. */
	fault_at(FAULT_YIELD, let_go);
	mrrc_libc_hooks_remove(&done);
	was = atomic_load(&done);
	fault_at(FAULT_YIELD, NULL);
	let_go();
	pthread_join(thread, NULL);
	ck_assert(was);
	expect_ended(pid);
}

/* ---- hooks that are relied on ---- */

static char *watched;

/* The kernel's report is about an unknown range. */
static void watch_unknown(void)
{
	hooks_watch(watched, 4);
	watcher.range = (struct mrrc_range){ 0 };
}

static void watch_known(void)
{
	hooks_watch(watched, 4);
}

static void unmap(void)
{
	munmap(watched, 4 * mon_page);
}

static void unmap_raw(void)
{
	duel_raw(SYS_munmap, (long) watched, 4 * mon_page, 0, 0, 0, 0);
	mrrc_mon_drain(mon);
}

static void unmap_inside(void)
{
	mrrc_lock_acquire(&watcher.lock);
	munmap(watched, 4 * mon_page);
	mrrc_lock_release(&watcher.lock);
}

static void unmap_in_vfork(void)
{
	volatile pid_t pid = vfork();
	int status;

	if (!pid) {
		munmap(watched, 4 * mon_page);
		_exit(0);
	}
	waitpid(pid, &status, 0);
}

static void unmap_contended(void)
{
	mon_hold(&mon->lock);
	munmap(watched, 4 * mon_page);
	mon_hold_end();
}

static const struct {
	void (*watch)(void);
	void (*unmap)(void);
	bool complete;
} unmaps[] = {
	{ watch_known, unmap, true },
	{ watch_known, unmap_contended, true },
	{ watch_known, unmap_inside, true },
	{ watch_unknown, unmap_raw, true },
	{ watch_known, unmap_raw, false },
	{ watch_unknown, unmap_in_vfork, false },
};

static bool rely(void)
{
	return mrrc_mon_set_probe(mon, MRRC_PROBE_HOOKED);
}

static int rely_in_child(int i)
{
	end_in(60);
	hooks_setup();
	if (!rely() || !mrrc_trusted())
		return 1;
	watched = mon_map(4);
	unmaps[i].watch();
	unmaps[i].unmap();
	if (mrrc_trusted() != unmaps[i].complete)
		return 2;
	/* Reliance that was lost once never returns. */
	if (rely() != unmaps[i].complete)
		return 3;
	mrrc_mon_drain(mon);
	return unmaps[i].watch == watch_known &&
			       atomic_load(&watcher.told) != 1 ?
		       4 :
		       0;
}

/* A monitor without hooks relies on none. */
TEST(test_rely_unhooked)
{
	struct mrrc_mon *other;
	bool can, told_by_hooks;

	need_hooks();
	ck_assert_int_eq(mrrc_mon_open_ops(&mrrc_mon_uffd_ops, NULL, &other),
			 0);
	can = mrrc_mon_set_probe(other, MRRC_PROBE_HOOKED);
	told_by_hooks = other->trusting;
	mrrc_mon_close(other);
	ck_assert(!can);
	ck_assert(!told_by_hooks);
}

TEST_CASE(hooks_rely, NULL, NULL);

EACH_TEST(test_rely, unmaps)
{
	bool can = false;

	hooks_setup();
	if (hooked) {
		can = rely();
		mrrc_mon_set_probe(mon, MRRC_PROBE_AUTO);
	}
	hooks_teardown();
	if (!can)
		skip("not all calls are hooked here");
	expect_child(rely_in_child(_i));
}
