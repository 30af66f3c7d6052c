/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/mon: events between two steps of a call. The other thread's part is a
 * function that the fake monitor, or a wrapped call (fault.h), calls there.
 */
#include "config.h"
#include "suites.h"

#include <errno.h>

#include "fake_mon.h"
#include "mon_fixture.h"
#include "sys/vm.h"

static struct mrrc_mon_ops ops;
static struct mrrc_mon *fake;
static uintptr_t base;

static void fake_setup(void)
{
	mon_page = mrrc_vm_page();
	base = 1024 * mon_page;
	ops = fake_mon_ops;
	ops.lazy = true;
	ck_assert_int_eq(mrrc_mon_open_ops(&ops, NULL, &fake), 0);
	mon_probe_init(&mon_probe);
	mrrc_mon_subscribe(fake, &mon_probe.sub);
}

static void fake_teardown(void)
{
	mrrc_mon_unsubscribe(fake, &mon_probe.sub);
	mrrc_mon_close(fake);
}

static void read_event(struct mrrc_mon *self)
{
	fake_mon_raise(self, base, base + mon_page, MRRC_MON_UNMAP);
	fake_mon_read(self);
}

static void handle_event(struct mrrc_mon *self)
{
	fake_mon_raise(self, base, base + mon_page, MRRC_MON_UNMAP);
	mrrc_mon_drain(self);
}

/* The probe finds nothing unfinished, as the event has been read. */
START_TEST(test_quiet_event_in_between)
{
	uint64_t seq;

	fake_mon_of(fake)->in_check = _i ? handle_event : read_event;
	ck_assert_int_eq(mrrc_mon_quiet(fake, &seq), -EAGAIN);
	mrrc_mon_drain(fake);
	ck_assert_uint_eq(mon_probe.count, 1);
	ck_assert_int_eq(mrrc_mon_quiet(fake, &seq), 0);
}
END_TEST

/* Whoever looks at seq after an event was read must find it odd. */
START_TEST(test_odd_before_read)
{
	fake_mon_raise(fake, base, base + mon_page, MRRC_MON_UNMAP);
	mrrc_mon_drain(fake);
	ck_assert_uint_eq(mon_probe.count, 1);
	ck_assert_uint_eq(fake_mon_of(fake)->early, 0);
}
END_TEST

/* What changed while it was looked at is not remembered as seen. */
START_TEST(test_seen_meanwhile)
{
	fake_mon_of(fake)->in_sees = handle_event;
	ck_assert(mrrc_mon_sees(fake, base, mon_page));
	fake_mon_of(fake)->blind = true;
	ck_assert(!mrrc_mon_sees(fake, base, mon_page));
	/* else it is */
	fake_mon_of(fake)->blind = false;
	ck_assert(mrrc_mon_sees(fake, base, mon_page));
	fake_mon_of(fake)->blind = true;
	ck_assert(mrrc_mon_sees(fake, base, mon_page));
}
END_TEST

Suite *mon_event_suite(void)
{
	Suite *suite = suite_create("mon_event");
	TCase *tcase = tcase_create("mon_event");

	tcase_add_checked_fixture(tcase, fake_setup, fake_teardown);
	tcase_add_loop_test(tcase, test_quiet_event_in_between, 0, 2);
	tcase_add_test(tcase, test_odd_before_read);
	tcase_add_test(tcase, test_seen_meanwhile);
	suite_add_tcase(suite, tcase);
	return suite;
}
