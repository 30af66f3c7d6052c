/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/monitor/mon: events between two steps of a call. Between two steps the
 * fake monitor, or a wrapped call (fault.h), calls a function that acts as
 * another thread.
 */
#include "config.h"
#include "test/case.h"

#include <semaphore.h>
#include <sys/ioctl.h>
#include <linux/userfaultfd.h>

#include "test/fakes/fake_mon.h"
#include "test/fakes/fault.h"
#include "test/sys/monitor/mon_fixture.h"
#include "sys/base/pause.h"
#include "sys/base/vm.h"

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

TEST_CASE(mon_event, fake_setup, fake_teardown);

/* The probe finds no unfinished change, as the event has been read. */
LOOP_TEST(test_quiet_event_in_between, 0, 2)
{
	_Atomic uint64_t probes = 0;
	uint64_t seq;

	fake_mon_of(fake)->in_check = _i ? handle_event : read_event;
	ck_assert_int_eq(mrrc_mon_quiet(fake, &seq, &probes), -EAGAIN);
	mrrc_mon_drain(fake);
	ck_assert_uint_eq(mon_probe.count, 1);
	ck_assert_int_eq(mrrc_mon_quiet(fake, &seq, &probes), 0);
}

/* After an event was read, seq is odd until the event is handled. */
TEST(test_odd_before_read)
{
	handle_event(fake);
	ck_assert_uint_eq(mon_probe.count, 1);
	ck_assert_uint_eq(fake_mon_of(fake)->early, 0);
}

static uint64_t token;

static void watch(void)
{
	ck_assert_int_eq(mrrc_mon_watch(fake, base, mon_page, &token), 0);
}

static bool sees(void)
{
	return mrrc_mon_sees(fake, base, mon_page, token);
}

/* Pages that change during a look are not remembered as seen. */
TEST(test_seen_meanwhile)
{
	watch();
	fake_mon_of(fake)->in_sees = handle_event;
	ck_assert(sees());
	fake_mon_of(fake)->blind = true;
	ck_assert(!sees());
}

/* Pages that watching has seen count as seen, until they change. */
TEST(test_seen_by_watching)
{
	fake_mon_of(fake)->blind = true;
	fake_mon_of(fake)->knows = true;
	watch();
	ck_assert(sees());
	handle_event(fake);
	ck_assert(!sees());
	fake_mon_of(fake)->knows = false;
	watch();
	ck_assert(!sees());
}

/* A look before the range was watched again does not count. */
TEST(test_seen_too_early)
{
	uint64_t early;

	ck_assert_int_eq(mrrc_mon_watch(fake, base, mon_page, &early), 0);
	handle_event(fake);
	watch();
	ck_assert(mrrc_mon_sees(fake, base, mon_page, early));
	fake_mon_of(fake)->blind = true;
	ck_assert(!sees());
}

/* Four pages are remembered as seen; from now on no page is seen again. */
static void remember_four(void)
{
	fake_mon_of(fake)->blind = false;
	ck_assert_int_eq(mrrc_mon_watch(fake, base, 4 * mon_page, &token), 0);
	ck_assert(mrrc_mon_sees(fake, base, 4 * mon_page, token));
	fake_mon_of(fake)->blind = true;
	ck_assert(mrrc_mon_sees(fake, base, 4 * mon_page, token));
}

TEST(test_seen_before)
{
	const uintptr_t third = base + 2 * mon_page;

	remember_four();
	ck_assert(mrrc_mon_sees(fake, base, 2 * mon_page, token));
	ck_assert(!mrrc_mon_sees(fake, base, 5 * mon_page, token));
	ck_assert(!mrrc_mon_sees(fake, third, mon_page, token));
	/* The range has changed in part. */
	fake_mon_raise(fake, third, third + mon_page, MRRC_MON_REMOVE);
	mrrc_mon_drain(fake);
	ck_assert(!mrrc_mon_sees(fake, base, 4 * mon_page, token));
	/* The range is no longer watched. */
	remember_four();
	mrrc_mon_unwatch(fake, base, 4 * mon_page);
	ck_assert(mrrc_mon_sees(fake, base, 4 * mon_page, token));
	mrrc_mon_unwatch_idle(fake);
	ck_assert(!mrrc_mon_sees(fake, base, 4 * mon_page, token));
}

/* At the limit of mappings, idle ranges are unwatched. */
TEST(test_watch_limit)
{
	struct fake_mon *state = fake_mon_of(fake);

	watch();
	mrrc_mon_unwatch(fake, base, mon_page);
	state->watches = 0;
	state->watch_rc = -ENOMEM;
	ck_assert_int_eq(mrrc_mon_watch(fake, base, mon_page, &token), -ENOMEM);
	ck_assert_uint_eq(state->watches, 2);
	ck_assert_uint_eq(state->unwatches, 1);
	ck_assert_int_eq(mrrc_mon_watch(fake, base, mon_page, &token), -ENOMEM);
	ck_assert_uint_eq(state->watches, 3);
}

/*
 * A region that was evicted and waits is unmapped: its range does not become
 * idle, as another userfaultfd may watch the memory by now.
 */
TEST(test_unmapped_while_waiting)
{
	struct fake_mon *state = fake_mon_of(fake);

	watch();
	fake_mon_raise(fake, base, base + mon_page, MRRC_MON_UNMAP);
	mrrc_mon_drain(fake);
	state->unwatches = 0;
	mrrc_mon_unwatch(fake, base, mon_page);
	mrrc_mon_unwatch_idle(fake);
	ck_assert_uint_eq(state->unwatches, 0);
	/* of a larger range a part is watched still */
	mrrc_mon_unwatch(fake, base, 2 * mon_page);
	mrrc_mon_unwatch_idle(fake);
	ck_assert_uint_eq(state->unwatches, 1);
	watch();
	mrrc_mon_unwatch(fake, base, mon_page);
	mrrc_mon_unwatch_idle(fake);
	ck_assert_uint_eq(state->unwatches, 2);
}

/*
 * Ranges of all lengths are watched or seen in any order: a change forgets the
 * ranges that it touches, and no others.
 */
TEST(test_forget_any)
{
	static struct mrrc_idle idle, before;
	const size_t lens[] = { 1, 1, 1, 2, 5, 16, 130, 300 };
	const struct mrrc_idle_known *was, *is;
	uint64_t hits = 0, wrong = 0;
	uintptr_t start, end;
	unsigned turn, i;

	srandom(1);
	for (turn = 0; turn < 20000; turn++) {
		/*
		 * In every second thousand of turns all ranges are short, so
		 * that long ranges are displaced.
		 */
		start = (1 + random() % 4096) * 4096;
		end = start + lens[random() % (turn / 1000 % 2 ? 8 : 4)] * 4096;
		token = mrrc_idle_watch(&idle, start, end);
		if (random() % 2)
			mrrc_idle_saw(&idle, start, token);
		if (random() % 4)
			continue;
		start = (1 + random() % 4096) * 4096;
		end = start + (random() % 8 ? 1 : random() % 500) * 4096;
		before = idle;
		mrrc_idle_forget(&idle, start, end);
		was = before.known[0];
		is = idle.known[0];
		for (i = 0; i < MRRC_IDLE_SETS * MRRC_IDLE_WAYS; i++) {
			const bool in = was[i].start < end;
			const bool seen = in && start < was[i].seen;
			const bool watched = in && start < was[i].watched;

			wrong += is[i].seen != (seen ? 0 : was[i].seen);
			wrong += is[i].watched !=
				 (watched ? 0 : was[i].watched);
			hits += seen + watched;
		}
	}
	/* Each assertion is a system call, so none is in the loop. */
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_gt(hits, 1000);
	/*
	 * The range was longer when it was seen than now; first, a large change
	 * happens elsewhere.
	 */
	idle = (struct mrrc_idle){ 0 };
	token = mrrc_idle_watch(&idle, 4096, 100 * 4096);
	mrrc_idle_saw(&idle, 4096, token);
	mrrc_idle_watch(&idle, 4096, 2 * 4096);
	mrrc_idle_forget(&idle, 4096 * 4096, 4096 * 4096 * 2);
	mrrc_idle_forget(&idle, 90 * 4096, 91 * 4096);
	ck_assert_uint_eq(mrrc_idle_seen(&idle, 4096, 100 * 4096), 0);
}

#define PAGES 4096

/* Model of a ring: what became of each page. */
static enum { NOTHING, IDLE, LEFT, UNMAPPED } model[PAGES];

static void model_set(uintptr_t start, uintptr_t end, int to)
{
	for (; start < end; start += 4096)
		model[start / 4096] = to;
}

/*
 * Models that a range leaves the ring of idle ranges and is unwatched. Returns
 * true if the range has a page that was unmapped, which is a fault.
 */
static bool model_leaves(struct mrrc_idle *idle,
			 const struct mrrc_idle_range *range)
{
	bool wrong = false;
	uintptr_t at;

	for (at = range->start; at < range->end; at += 4096)
		wrong |= model[at / 4096] == UNMAPPED;
	mrrc_idle_drop(idle, range->start, range->end, NULL);
	model_set(range->start, range->end, LEFT);
	return wrong;
}

/*
 * Ranges become idle, are watched again and are unmapped in any order: each
 * idle range leaves the ring, and none with a page that was unmapped.
 */
TEST(test_drop_any)
{
	static struct mrrc_idle idle;
	const size_t lens[] = { 1, 1, 2, 3 };
	unsigned turn, wrong = 0, alone = 0;
	struct mrrc_idle_range range, out;
	struct mrrc_range hull;

	srandom(1);
	for (turn = 0; turn < 20000; turn++) {
		range.start = (1 + random() % (PAGES - 4)) * 4096;
		range.end = range.start + lens[random() % 4] * 4096;
		range.whole = range.alone = false;
		alone += idle.alone != 0;
		switch (random() % 8) {
		case 0:
			hull = (struct mrrc_range){ range.start, range.end };
			mrrc_idle_drop(&idle, hull.start, hull.end, &hull);
			model_set(hull.start, hull.end, LEFT);
			model_set(range.start, range.end, UNMAPPED);
			break;
		case 1:
			mrrc_idle_watch(&idle, range.start, range.start + 4096);
			break;
		default:
			model_set(range.start, range.end, IDLE);
			if (mrrc_idle_add(&idle, &range, &out))
				wrong += model_leaves(&idle, &out);
			break;
		}
	}
	while (mrrc_idle_take(&idle, &range))
		wrong += model_leaves(&idle, &range);
	for (turn = 0; turn < PAGES; turn++)
		wrong += model[turn] == IDLE;
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(idle.alone, 0);
	ck_assert_uint_gt(alone, 1000);
}

/* A range that is unwatched takes the idle ranges inside with it. */
TEST(test_idle_inside)
{
	uint64_t seen;

	ck_assert_int_eq(mrrc_mon_watch(fake, base, 4 * mon_page, &seen), 0);
	mrrc_mon_unwatch(fake, base, 4 * mon_page);
	mrrc_mon_unwatch(fake, base + mon_page, mon_page);
	mrrc_mon_unwatch_idle(fake);
	ck_assert_uint_eq(fake_mon_of(fake)->unwatches, 1);
}

/* ---- a fork while another thread opens a monitor ---- */

static sem_t in_open, go_on;
static atomic_bool opening;

static int slow_open(struct mrrc_mon *self)
{
	atomic_store(&opening, true);
	sem_post(&in_open);
	sem_wait(&go_on);
	atomic_store(&opening, false);
	return fake_mon_ops.open(self);
}

static void *open_main(void *arg)
{
	struct mrrc_mon *other;

	ops.open = slow_open;
	if (!mrrc_mon_open_ops(&ops, NULL, &other))
		mrrc_mon_close(other);
	return NULL;
}

static void let_go(void)
{
	sem_post(&go_on);
}

TEST(test_fork_waits)
{
	pthread_t thread;
	pid_t pid;

	sem_init(&in_open, 0, 0);
	sem_init(&go_on, 0, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, open_main, NULL), 0);
	sem_wait(&in_open);
	/* The other thread goes on when this one waits for the registry. */
	fault_at(FAULT_LOCK, let_go);
	pid = fork();
	if (!pid) {
		/*
		 * ThreadSanitizer asks for a join, even of a thread not in the
		 * child.
		 */
		pthread_detach(thread);
		_exit(atomic_load(&opening));
	}
	fault_at(FAULT_LOCK, NULL);
	let_go();
	pthread_join(thread, NULL);
	expect_ended(pid);
}

/* ---- with the kernel's events ---- */

TEST_CASE(uffd_event, mon_setup, mon_teardown);

/* Events that the reader queued since the last look are not settled. */
TEST(test_settle)
{
	char *ptr = mon_map(1);
	uint64_t seq, now;
	bool settled;

	need_uffd();
	ck_assert_int_eq(mon_watch(ptr, 1), 0);
	mrrc_lock_acquire(&mon->lock);
	munmap(ptr, mon_page);
	seq = mrrc_mon_seq(mon);
	settled = mon->ops->settle(mon);
	now = mrrc_mon_seq(mon);
	mrrc_lock_release(&mon->lock);
	ck_assert(!settled);
	ck_assert_uint_eq(now, seq);
	ck_assert_uint_eq(mon_events(), 1);
}

static atomic_bool posting;

/* Each handled event posts another, as threads do that find the lock taken. */
static struct mrrc_range post_more(struct mrrc_mon_sub *sub, uintptr_t start,
				   uintptr_t end)
{
	if (atomic_load(&posting))
		mon->ops->post(mon, start, end, MRRC_MON_UNMAP);
	return (struct mrrc_range){ 0, 0 };
}

/* Threads that wait for the lock get it, however fast events come. */
TEST(test_drain_ends)
{
	char *ptr = mon_map(1);
	unsigned tries = 0;

	need_uffd();
	ck_assert_int_eq(mon_watch(ptr, 1), 0);
	mon_probe.sub.notify = post_more;
	atomic_store(&posting, true);
	mon->ops->post(mon, mon_page, 2 * mon_page, MRRC_MON_UNMAP);
	mrrc_mon_drain(mon);
	ck_assert_uint_eq(mrrc_mon_seq(mon) & 1, 1);
	atomic_store(&posting, false);
	/* The handler thread does the rest. */
	while (mrrc_mon_seq(mon) & 1)
		mrrc_pause(&tries);
	munmap(ptr, mon_page);
}

#define OVERFLOW 80 /* more events than fit in the queue */

/* An event without room makes the last event larger, up or down. */
LOOP_TEST(test_overflow, 0, 2)
{
	char *ptr = mon_map(2 * OVERFLOW), *at = NULL;
	struct mrrc_range *last;
	unsigned i, count;

	need_uffd();
	ck_assert_int_eq(mon_watch(ptr, 2 * OVERFLOW), 0);
	mrrc_lock_acquire(&mon->lock);
	for (i = 0; i < OVERFLOW; i++) {
		at = ptr + 2 * (_i ? i : OVERFLOW - 1 - i) * mon_page;
		madvise(at, mon_page, MADV_DONTNEED);
	}
	mrrc_lock_release(&mon->lock);
	ck_assert_uint_lt(mon_events(), OVERFLOW);
	count = mon_probe.count;
	last = &mon_probe.got[count - 1];
	ck_assert_uint_eq(_i ? last->end : last->start,
			  (uintptr_t) at + (_i ? mon_page : 0));
	ck_assert_uint_eq(last->end - last->start,
			  (2 * (OVERFLOW - count) + 1) * mon_page);
	/* The page between stays watched: the watch may be another user's. */
	munmap(at - (_i ? 1 : -1) * mon_page, mon_page);
	ck_assert_uint_eq(mon_events(), count + 1);
}

static atomic_bool handled;
static atomic_uint disturbed;
static pthread_t reads;

static void on_signal(int sig)
{
	atomic_store(&handled, true);
}

static void disturb(void)
{
	int cancel;

	if (!pthread_equal(pthread_self(), reads))
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_setcancelstate(cancel, NULL);
	raise(SIGUSR1);
	if (cancel != PTHREAD_CANCEL_DISABLE || atomic_load(&handled))
		atomic_fetch_add(&disturbed, 1);
}

/* While events are read, no handler runs, and no thread is cancelled. */
TEST(test_undisturbed)
{
	const struct sigaction act = { .sa_handler = on_signal };
	struct sigaction old;

	need_uffd();
	ck_assert_int_eq(sigaction(SIGUSR1, &act, &old), 0);
	reads = pthread_self();
	atomic_store(&disturbed, 0);
	atomic_store(&handled, false);
	fault_at_read(disturb);
	mrrc_mon_drain(mon);
	fault_at_read(NULL);
	sigaction(SIGUSR1, &old, NULL);
	ck_assert_uint_eq(disturbed, 0);
	ck_assert(handled);
}

static atomic_uint early;

static void look_at_seq(void)
{
	if (!(mrrc_mon_seq(mon) & 1))
		atomic_fetch_add(&early, 1);
}

/* A thread that looks at seq once an event was read must find it odd. */
TEST(test_uffd_odd_before_read)
{
	char *ptr = mon_map(2);

	need_uffd();
	ck_assert_int_eq(mon_watch(ptr, 2), 0);
	mon_events();
	atomic_store(&early, 0);
	fault_at_read(look_at_seq);
	/* The reader reads the event, then the draining thread reads. */
	munmap(ptr, mon_page);
	mrrc_mon_drain(mon);
	fault_at_read(NULL);
	ck_assert_uint_eq(early, 0);
	ck_assert_uint_eq(mon_events(), 1);
	munmap(ptr + mon_page, mon_page);
}

static void *write_main(void *arg)
{
	*(volatile char *) arg = 1;
	return NULL;
}

/*
 * The reader gets an event that it does not know, and ends. Without a reader
 * memory is never quiet, not even for a call that has begun.
 */
TEST(test_dead_reader)
{
	struct uffdio_writeprotect wp = {
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	_Atomic uint64_t probes = 0;
	pthread_t thread;
	uint64_t seq;
	bool settled;
	char *ptr;
	int fd;

	need_uffd();
	ptr = mon_map(1);
	ck_assert_int_eq(mon_watch(ptr, 1), 0);
	wp.range.start = (uintptr_t) ptr;
	wp.range.len = mon_page;
	for (fd = 0; fd < 64 && ioctl(fd, UFFDIO_WRITEPROTECT, &wp); fd++)
		;
	ck_assert_int_lt(fd, 64);
	ck_assert_int_eq(pthread_create(&thread, NULL, write_main, ptr), 0);
	/* The thread goes on when the reader has ended. */
	pthread_join(thread, NULL);
	ck_assert(comes(!mrrc_mon_works(mon)));
	mrrc_lock_acquire(&mon->lock);
	settled = mon->ops->settle(mon);
	mrrc_lock_release(&mon->lock);
	ck_assert(!settled);
	ck_assert_int_eq(mrrc_mon_quiet(mon, &seq, &probes), -ENODEV);
	munmap(ptr, mon_page);
}
