/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fixture of the tests of hooks (libc_hooks_fixture.h). */
#include "config.h"
#include "test/sys/hooks/libc_hooks_fixture.h"
#include "test/suites.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sys/hooks/libc_hooks.h"

#define GUARD_INSTALL 102 /* value of MADV_GUARD_INSTALL of Linux 6.13 */

struct hooks_watcher watcher;
bool hooked;
atomic_uint hooks_watched, hooks_unwatched;

/* number of events of mon_probe, which hears all, at the start */
static unsigned before;
static struct mrrc_mon_ops ops;
/* events announced after the call, with a lock held */
static atomic_uint posted;

static void count_post(struct mrrc_mon *self, uintptr_t start, uintptr_t end,
		       enum mrrc_mon_event event)
{
	atomic_fetch_add(&posted, 1);
	mrrc_mon_uffd_ops.post(self, start, end, event);
}

static struct mrrc_range watcher_notify(struct mrrc_mon_sub *sub,
					uintptr_t start, uintptr_t end)
{
	struct mrrc_range gone = watcher.range;

	if (gone.start >= end || start >= gone.end)
		return (struct mrrc_range){ 0 };
	atomic_store(&watcher.here,
		     pthread_equal(watcher.thread, pthread_self()));
	watcher.range = (struct mrrc_range){ 0 };
	atomic_fetch_add(&watcher.told, 1);
	return gone;
}

static struct mrrc_range watcher_cover(struct mrrc_mon_sub *sub, uintptr_t pos)
{
	return watcher.range.end > pos ? watcher.range :
					 (struct mrrc_range){ 0 };
}

static int count_watch(struct mrrc_mon *self, uintptr_t start, size_t len)
{
	atomic_fetch_add(&hooks_watched, 1);
	return mrrc_mon_uffd_ops.watch(self, start, len);
}

static void count_unwatch(struct mrrc_mon *self, uintptr_t start, size_t len)
{
	atomic_fetch_add(&hooks_unwatched, 1);
	mrrc_mon_uffd_ops.unwatch(self, start, len);
}

static int count_widen(struct mrrc_mon *of, uintptr_t start, uintptr_t lo,
		       uintptr_t hi)
{
	atomic_fetch_add(&hooks_watched, 1);
	return mrrc_mon_uffd_ops.widen(of, start, lo, hi);
}

void hooks_setup(void)
{
	static bool ever;
	char why[MRRC_LIBC_HOOKS_WHY];

	mon_setup();
	hooked = false;
	if (!mon)
		return;
	watcher = (struct hooks_watcher){
		.sub = { .lock = &watcher.lock,
			 .notify = watcher_notify,
			 .cover = watcher_cover },
	};
	mrrc_lock_init(&watcher.lock, MRRC_RANK_CACHE);
	ops = *mon->ops;
	ops.post = count_post;
	ops.watch = count_watch;
	ops.unwatch = count_unwatch;
	ops.widen = count_widen;
	mon->ops = &ops;
	mrrc_mon_subscribe(mon, &watcher.sub);
	hooked = !mrrc_mon_hook(mon, why);
	if (*why)
		fprintf(stderr, "hooks: %s\n", why);
	/* Hooks that were there once must not be skipped later. */
	ck_assert(hooked || !ever);
	ever = hooked;
	ck_assert_str_eq(mrrc_mon_title(mon), hooked ? "uffd+hooks" : "uffd");
}

void hooks_teardown(void)
{
	if (mon) {
		mrrc_mon_unsubscribe(mon, &watcher.sub);
		mrrc_lock_fini(&watcher.lock);
	}
	mon_teardown();
}

void hooks_watch(char *ptr, size_t pages)
{
	watcher.thread = pthread_self();
	atomic_store(&watcher.told, 0);
	atomic_store(&watcher.here, false);
	atomic_store(&posted, 0);
	atomic_store(&hooks_watched, 0);
	before = mon_events();
	/* last, as a signal handler may unmap the range from here on */
	mrrc_lock_acquire(&watcher.lock);
	watcher.range =
		(struct mrrc_range){ (uintptr_t) ptr,
				     (uintptr_t) ptr + pages * mon_page };
	mrrc_lock_release(&watcher.lock);
	ck_assert_int_eq(mrrc_mon_watch(mon, (uintptr_t) ptr, pages * mon_page,
					&mon_token),
			 0);
}

char *hooks_map(void)
{
	char *ptr = mon_map(4);

	hooks_watch(ptr, 4);
	return ptr;
}

void expect_hook(void)
{
	ck_assert_uint_eq(atomic_load(&watcher.told), 1);
	ck_assert(atomic_load(&watcher.here));
	/* Posted events are handled at once, or soon. */
	ck_assert(comes(mon_even()));
	ck_assert_uint_eq(mon_events(), before + 1 + atomic_load(&posted));
}

void expect_event(void)
{
	mrrc_mon_drain(mon);
	ck_assert_uint_eq(atomic_load(&watcher.told), 1);
	ck_assert(comes(mon_even()));
	ck_assert_uint_ge(atomic_load(&posted), 1);
}

void expect_kernel(void)
{
	mrrc_mon_drain(mon);
	ck_assert_uint_eq(atomic_load(&watcher.told), 1);
	ck_assert_int_eq(mrrc_mon_check(mon), 0);
}

void do_dontneed(char *ptr)
{
	madvise(ptr, 2 * mon_page, MADV_DONTNEED);
}

void do_free(char *ptr)
{
	madvise(ptr, 2 * mon_page, MADV_FREE);
}

void do_guard(char *ptr)
{
	madvise(ptr, 2 * mon_page, GUARD_INSTALL);
}

static void do_own(char *ptr, int advice)
{
	const struct iovec iov[] = { { ptr, 0 }, { ptr, 2 * mon_page } };
	const int fd = syscall(SYS_pidfd_open, getpid(), 0);

	syscall(SYS_process_madvise, fd, iov, 2, advice, 0);
	close(fd);
}

void do_own_dontneed(char *ptr)
{
	do_own(ptr, MADV_DONTNEED);
}

void do_own_guard(char *ptr)
{
	do_own(ptr, GUARD_INSTALL);
}

void do_shmat(char *ptr)
{
	const int id = shmget(IPC_PRIVATE, 2 * mon_page, IPC_CREAT | 0600);

	ck_assert_int_ge(id, 0);
	ck_assert_ptr_eq(shmat(id, ptr + mon_page, SHM_REMAP), ptr + mon_page);
	shmctl(id, IPC_RMID, NULL);
}
