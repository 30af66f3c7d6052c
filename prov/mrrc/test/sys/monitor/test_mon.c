/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/monitor/mon: registry, failure, coverage, life. test_mon_child.c tests
 * forked children, test_mon_close.c programs that close the monitor's
 * descriptors.
 */
#include "config.h"
#include "test/case.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <linux/membarrier.h>

#include "test/fakes/fake_mon.h"
#include "test/fakes/fault.h"
#include "test/sys/monitor/mon_fixture.h"

TEST_CASE(mon, mon_setup, mon_teardown);

/*
 * Opening a monitor registers the process for membarrier(2). With several
 * threads, the kernel needs 10 ms to register a process, so the monitor
 * registers before it starts threads.
 */
TEST(test_barrier_early)
{
	struct mrrc_mon *manual;
	long known;

	known = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	if (known < 0 || !(known & MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		return;
	ck_assert_int_eq(mrrc_mon_open("manual", NULL, &manual), 0);
	ck_assert_int_eq(syscall(SYS_membarrier,
				 MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0),
			 0);
	mrrc_mon_close(manual);
}

TEST(test_registry)
{
	static const char *const names[] = { "uffd", "none", "manual", NULL };
	const char *const *name;
	char why[MRRC_MON_REASON];
	struct mrrc_mon *a = NULL;
	struct mrrc_mon *b = NULL;
	int ret;

	ck_assert_int_eq(mrrc_mon_open("no such", why, &a), -ENOENT);
	ck_assert_ptr_null(a);
	for (name = names; *name; name++) {
		ret = mrrc_mon_open(*name, why, &a);
		if (ret) {
			fprintf(stderr, "%s: %s\n", *name, why);
			ck_assert_str_ne(why, "");
			continue;
		}
		ck_assert_int_eq(mrrc_mon_open(*name, why, &b), 0);
		ck_assert_ptr_eq(a, b);
		ck_assert_str_eq(mrrc_mon_name(a), *name);
		ck_assert(a->ops->open && a->ops->close && a->ops->watch &&
			  a->ops->unwatch && a->ops->drain && a->ops->check &&
			  a->ops->sees && a->ops->stop);
		mrrc_mon_close(b);
		mrrc_mon_close(a);
	}
	ck_assert_int_eq(mrrc_mon_open(NULL, why, &a), 0);
	ck_assert_int_eq(mrrc_mon_open(MRRC_MON_AUTO, why, &b), 0);
	ck_assert_ptr_eq(a, b);
	if (mon) {
		ck_assert_ptr_eq(a, mon);
		ck_assert_str_eq(why, "");
	}
	mrrc_mon_close(b);
	mrrc_mon_close(a);
}

TEST(test_none)
{
	struct mrrc_mon *none;

	ck_assert_int_eq(mrrc_mon_open("none", NULL, &none), 0);
	ck_assert(!mrrc_mon_works(none));
	ck_assert(mrrc_mon_seq(none) & 1);
	ck_assert_str_ne(mrrc_mon_reason(none), "");
	ck_assert_int_eq(mrrc_mon_watch(none, mon_page, mon_page, &mon_token),
			 -ENODEV);
	ck_assert_int_eq(mrrc_mon_check(none), -ENODEV);
	mrrc_mon_unwatch(none, mon_page, mon_page);
	mrrc_mon_drain(none);
	mrrc_mon_fail(none, "again");
	ck_assert_str_ne(mrrc_mon_reason(none), "again");
	mrrc_mon_close(none);
}

/* A probe is refused, as if a seccomp filter was installed meanwhile. */
TEST(test_probe_refused)
{
	struct mrrc_mon *fake;

	ck_assert_int_eq(mrrc_mon_open_ops(&fake_mon_ops, NULL, &fake), 0);
	ck_assert_int_eq(mrrc_mon_check(fake), 0);
	fake_mon_of(fake)->check_rc = -EPERM;
	ck_assert_int_eq(mrrc_mon_check(fake), -ENODEV);
	ck_assert(!mrrc_mon_works(fake));
	ck_assert_ptr_nonnull(strstr(mrrc_mon_reason(fake), "probe"));
	ck_assert_uint_eq(fake_mon_of(fake)->stops, 1);
	mrrc_mon_close(fake);
}

TEST(test_drain_fails)
{
	struct mrrc_mon *fake;

	ck_assert_int_eq(mrrc_mon_open_ops(&fake_mon_ops, NULL, &fake), 0);
	fake_mon_of(fake)->drain_rc = -EIO;
	mrrc_mon_drain(fake);
	ck_assert(!mrrc_mon_works(fake));
	ck_assert_str_eq(mrrc_mon_reason(fake), "drain failed");
	mrrc_mon_drain(fake);
	ck_assert_uint_eq(fake_mon_of(fake)->drains, 1);
	mrrc_mon_close(fake);
}

/* ---- coverage, with the fake ---- */

TEST(test_cover)
{
	struct mon_probe sub[2];
	const uintptr_t base = 1024 * mon_page;
	struct mrrc_mon *fake;
	int i;

	ck_assert_int_eq(mrrc_mon_open_ops(&fake_mon_ops, NULL, &fake), 0);
	fake_mon_of(fake)->base = base;
	for (i = 0; i < 2; i++) {
		mon_probe_init(&sub[i]);
		mrrc_mon_subscribe(fake, &sub[i].sub);
	}
	ck_assert_int_eq(mrrc_mon_watch(fake, base, 40 * mon_page, &mon_token),
			 0);
	sub[0].keep =
		(struct mrrc_range){ base + 5 * mon_page, base + 9 * mon_page };
	sub[1].keep = (struct mrrc_range){ base + 7 * mon_page,
					   base + 12 * mon_page };
	mrrc_mon_unwatch(fake, base, 20 * mon_page);
	ck_assert(fake_mon_none(fake, 0, 5));
	ck_assert(fake_mon_all(fake, 5, 12));
	ck_assert(fake_mon_none(fake, 12, 20));
	ck_assert(fake_mon_all(fake, 20, 40));
	/* One range is inside a kept range, another begins in one. */
	mrrc_mon_unwatch(fake, base + 8 * mon_page, 2 * mon_page);
	ck_assert(fake_mon_all(fake, 5, 12));
	mrrc_mon_unwatch(fake, base + 11 * mon_page, 14 * mon_page);
	ck_assert(fake_mon_all(fake, 5, 12));
	ck_assert(fake_mon_none(fake, 12, 25));
	ck_assert(fake_mon_all(fake, 25, 40));

	/* After an unmap in a region, its rest is unwatched, not the hole. */
	sub[0].hull = (struct mrrc_range){ base + 26 * mon_page,
					   base + 36 * mon_page };
	fake_mon_raise(fake, base + 30 * mon_page, base + 32 * mon_page,
		       MRRC_MON_UNMAP);
	mrrc_mon_drain(fake);
	ck_assert(fake_mon_all(fake, 25, 26));
	ck_assert(fake_mon_none(fake, 26, 30));
	ck_assert(fake_mon_all(fake, 30, 32));
	ck_assert(fake_mon_none(fake, 32, 36));
	ck_assert(fake_mon_all(fake, 36, 40));
	/* Dropped pages stay mapped: the whole region is unwatched. */
	sub[0].hull = (struct mrrc_range){ base + 36 * mon_page,
					   base + 38 * mon_page };
	fake_mon_raise(fake, base + 37 * mon_page, base + 38 * mon_page,
		       MRRC_MON_REMOVE);
	mrrc_mon_drain(fake);
	ck_assert(fake_mon_none(fake, 36, 38));
	ck_assert(fake_mon_all(fake, 38, 40));
	for (i = 0; i < 2; i++)
		mrrc_mon_unsubscribe(fake, &sub[i].sub);
	mrrc_mon_close(fake);
}

/* ---- lifecycle ---- */

TEST(test_open_fails)
{
	char why[MRRC_MON_REASON];
	struct mrrc_mon *got = NULL;
	unsigned fds, threads;
	int ret, n;

	need_uffd();
	mon_teardown();
	fds = fault_fds();
	threads = fault_threads_left(FAULT_THREADS);
	for (n = 1;; n++) {
		fault_arm(n);
		ret = mrrc_mon_open("uffd", why, &got);
		if (!fault_disarm())
			break;
		/* A fault in the last probe costs one more round of waiting. */
		if (!ret) {
			mrrc_mon_close(got);
			got = NULL;
		}
		ck_assert_ptr_null(got);
		ck_assert_uint_eq(fault_leaks(), 0);
		ck_assert(comes(fault_fds() == fds));
		ck_assert_uint_eq(fault_threads_left(threads), threads);
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_int_gt(n, 8);
	mrrc_mon_close(got);
	ck_assert(comes(fault_fds() == fds));
	ck_assert_uint_eq(fault_threads_left(threads), threads);
}

/* Other monitors are opened and closed while memory is mapped and unmapped. */
TEST(test_reopen)
{
	need_uffd();
	mon_reopen(false);
}

/* The last close with watched ranges does not wait for ended threads. */
TEST(test_close_watched)
{
	char *ptr = mon_map(4);

	need_uffd();
	ck_assert_int_eq(mon_watch(ptr, 4), 0);
	mon_teardown();
	munmap(ptr, 4 * mon_page);
}

/*
 * A child without fork handlers keeps the userfaultfd that it inherited: an
 * unmap in the parent must not wait for a reader in the child.
 */
TEST(test_close_cloned)
{
	char *ptr = mon_map(4);
	pid_t pid;
	int ret;

	need_uffd();
	ck_assert_int_eq(mon_watch(ptr, 4), 0);
	mrrc_mon_unwatch(mon, (uintptr_t) ptr, 4 * mon_page);
	pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	mon_teardown();
	/* A range that is still watched would be refused. */
	mon_setup();
	ret = mon_watch(ptr, 4);
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_int_eq(ret, 0);
	munmap(ptr, 4 * mon_page);
}
