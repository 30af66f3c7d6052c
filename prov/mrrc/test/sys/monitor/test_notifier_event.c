/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/monitor/notifier: events between two steps of a call, with a fake
 * monitor.
 */
#include "config.h"
#include "test/case.h"

#include <semaphore.h>

#include "test/fakes/fake_mon.h"
#include "test/fakes/fault.h"
#include "sys/monitor/notifier.h"
#include "sys/base/vm.h"

static size_t page;
static uintptr_t base;
static struct mrrc_mon *mon;
static struct fake_mon *fake;
static struct mrrc_notifier *notifier;
static sem_t in_tell, go_on;
static unsigned outside; /* mrrc_threads.outside while tell() runs */

/* Waits when it is told of the first page. */
static void tell(void *arg, uintptr_t start, size_t len)
{
	if (start != base)
		return;
	outside = mrrc_threads.outside;
	sem_post(&in_tell);
	sem_wait(&go_on);
}

static void setup(void)
{
	page = mrrc_vm_page();
	base = 1024 * page;
	sem_init(&in_tell, 0, 0);
	sem_init(&go_on, 0, 0);
	ck_assert_int_eq(mrrc_mon_open_ops(&fake_mon_ops, NULL, &mon), 0);
	fake = fake_mon_of(mon);
	fake->base = base;
	ck_assert_int_eq(mrrc_notifier_open(mon, tell, NULL, &notifier), 0);
}

static void teardown(void)
{
	sem_post(&go_on);
	mrrc_notifier_close(notifier);
	mrrc_mon_close(mon);
}

static int watch(unsigned first, unsigned pages)
{
	return mrrc_notifier_watch(notifier, base + first * page, pages * page);
}

static bool valid(unsigned first, unsigned pages)
{
	return mrrc_notifier_valid(notifier, base + first * page, pages * page);
}

static void change(unsigned at)
{
	fake_mon_raise(mon, base + at * page, base + (at + 1) * page,
		       MRRC_MON_REMOVE);
}

/* ---- changes while a range is being watched ---- */

static void change_handled(struct mrrc_mon *self)
{
	change(2);
	mrrc_mon_drain(self);
}

TEST_CASE(notifier_event, setup, teardown);

TEST(test_watch_changed)
{
	fake->in_sees = change_handled;
	ck_assert_int_eq(watch(0, 4), -EAGAIN);
	ck_assert(!valid(0, 1));
	ck_assert(fake_mon_none(mon, 0, 4));
	ck_assert_int_eq(watch(0, 4), 0);
	ck_assert(valid(0, 4));
}

static void unwatch_all(struct mrrc_mon *self)
{
	mrrc_mon_unwatch(self, base, 64 * page);
}

/*
 * When other users unwatch a range of the notifier, the range stays watched
 * until the notifier is closed.
 */
TEST(test_watch_stays)
{
	ck_assert_int_eq(watch(20, 2), 0);
	fake->in_sees = unwatch_all;
	ck_assert_int_eq(watch(4, 4), 0);
	ck_assert(fake_mon_all(mon, 4, 8));
	ck_assert(fake_mon_all(mon, 20, 22));
	mrrc_notifier_close(notifier);
	ck_assert(fake_mon_none(mon, 0, 64));
	ck_assert_int_eq(mrrc_notifier_open(mon, tell, NULL, &notifier), 0);
}

LOOP_TEST(test_watch_refused, 0, 6)
{
	static const struct {
		int ret;
		bool blind;
		unsigned unwatches;
	} no[] = {
		{ -EINVAL, false, 0 }, { -EBUSY, false, 0 },
		{ -EPERM, false, 0 },  { -ENOSPC, false, 0 },
		{ -ENOMEM, false, 1 }, { 0, true, 1 },
	};

	fake->watch_rc = no[_i].ret;
	fake->blind = no[_i].blind;
	ck_assert_int_lt(watch(0, 4), 0);
	ck_assert_uint_eq(fake->unwatches, no[_i].unwatches);
	ck_assert(!valid(0, 1));
}

/* ---- changes during valid() ---- */

static void change_read(void)
{
	change(2);
	fake_mon_read(mon);
}

static void read_in_probe(struct mrrc_mon *self)
{
	change_read();
}

/*
 * The event is read during the probe, when this thread takes the lock, before
 * this thread takes the lock, or not yet.
 */
LOOP_TEST(test_valid_changed, 0, 4)
{
	ck_assert_int_eq(watch(0, 4), 0);
	switch (_i) {
	case 0:
		fake->in_check = read_in_probe;
		break;
	case 1:
		fault_at(FAULT_LOCK, change_read);
		break;
	case 2:
		change_read();
		break;
	default:
		change(2);
	}
	ck_assert(!valid(0, 4));
}

/* Until a change has been told, the listener may still know the old range. */
TEST(test_valid_telling)
{
	ck_assert_int_eq(watch(0, 1), 0);
	ck_assert_int_eq(watch(10, 1), 0);
	ck_assert_int_eq(watch(20, 1), 0);
	change(0);
	mrrc_mon_drain(mon);
	sem_wait(&in_tell);
	ck_assert_uint_eq(outside, 1);
	change(10);
	mrrc_mon_drain(mon);
	ck_assert_int_eq(watch(0, 1), 0);
	ck_assert_int_eq(watch(10, 1), 0);
	ck_assert(!valid(0, 1));
	ck_assert(!valid(10, 1));
	ck_assert(valid(20, 1));
}
