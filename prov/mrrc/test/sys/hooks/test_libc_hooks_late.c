/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/hooks/libc_hooks: calls that are announced once more after they were
 * made, as other threads could register the old pages between announcement and
 * call.
 */
#include "config.h"
#include "test/case.h"

#include <sys/syscall.h>

#include "test/sys/hooks/libc_hooks_fixture.h"
#include "sys/hooks/libc_hooks.h"

static char *late;

static void do_syscall(char *ptr)
{
	syscall(SYS_madvise, ptr, 2 * mon_page, MADV_DONTNEED);
}

static void (*const lates[])(char *) = {
	do_dontneed, do_free, do_syscall, do_guard, do_own_dontneed, do_shmat,
};

/* Drains the monitor, as lookups do while the sequence number is odd. */
static bool drained(void)
{
	mrrc_mon_drain(mon);
	return mon_even();
}

/* Checks that the sequence number becomes even; a failed monitor says why. */
static void check_even(void)
{
	ck_assert_msg(comes(drained()), "odd, failed %d: %s",
		      atomic_load(&mon->failed), mon->reason);
}

/* The watcher knows the range, but the kernel no longer watches it. */
static void know_late(void)
{
	watcher.range = (struct mrrc_range){ (uintptr_t) late,
					     (uintptr_t) late + 4 * mon_page };
	atomic_store(&watcher.told, 0);
	mrrc_libc_hooks_mark((uintptr_t) late, 4 * mon_page);
}

/* Another thread registers the old pages after they were announced. */
static void find_late(void *arg, uintptr_t start, uintptr_t end,
		      enum mrrc_libc_hooks_how how)
{
	if (how != MRRC_LIBC_HOOKS_AFTER) {
		ck_assert_uint_eq(atomic_load(&watcher.told), 1);
		know_late();
	}
}

TEST_CASE(hooks_late, hooks_setup, hooks_teardown);

EACH_TEST(test_late, lates)
{
	need_hooks();
	late = hooks_map();
	ck_assert_int_eq(mrrc_libc_hooks_add(find_late, &late, NULL), 0);
	lates[_i](late);
	mrrc_libc_hooks_remove(&late);
	ck_assert_uint_eq(atomic_load(&watcher.told), 1);
	ck_assert(atomic_load(&watcher.here));
	check_even();
	munmap(late, 4 * mon_page);
}

/*
 * The call does not wait for the holder of the monitor's lock. Until the call
 * is announced again, no lookup trusts its region.
 */
TEST(test_late_busy)
{
	bool even;

	need_hooks();
	late = mon_map(4);
	know_late();
	mon_hold(&mon->lock);
	do_dontneed(late);
	even = mon_even();
	mon_hold_end();
	ck_assert(!even);
	mrrc_mon_drain(mon);
	ck_assert_uint_eq(atomic_load(&watcher.told), 1);
	check_even();
	munmap(late, 4 * mon_page);
}

/*
 * A signal handler makes the call while its thread holds a lock of the
 * provider.
 */
TEST(test_late_inside)
{
	bool even;

	need_hooks();
	late = mon_map(4);
	know_late();
	mrrc_lock_acquire(&watcher.lock);
	do_dontneed(late);
	even = mon_even();
	mrrc_lock_release(&watcher.lock);
	ck_assert(!even);
	mrrc_mon_drain(mon);
	ck_assert_uint_eq(atomic_load(&watcher.told), 1);
	check_even();
	munmap(late, 4 * mon_page);
}
