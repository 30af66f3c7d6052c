/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Leased files, and the thread that gives leases up (lease.h).
 *
 * A lease is in the tree while it seems to be whole, then in the list of
 * breaking leases until no operation holds a part of the file. When a lease is
 * to be given up, the kernel sends a signal to the set's thread alone, so that
 * no signal handler of the application runs. The signal does not tell which
 * lease is meant, so the thread checks all leases. Each hold checks its own
 * lease: the hold fails if the signal was lost and the kernel has taken the
 * lease, or if the application has closed the lease's descriptor.
 */
#include "config.h"
#include "sys/file/lease.h"

#include <bsd/sys/tree.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sys/file/lease_file.h"
#include "sys/base/lock.h"
#include "sys/base/threads.h"
#include "sys/base/vm.h"

#define LEASE_POLL_MS 2 /* between looks, while a writer waits */

struct mrrc_lease {
	struct mrrc_leases *set;
	struct mrrc_lease_file file;
	/* the set's lock */
	unsigned users;
	bool broken; /* holds fail */
	bool given;  /* broken, and no writer waits; set by the thread */
	bool closed; /* given, and unmapped */
	bool listed; /* in the list of breaking leases, or of idle leases */
	TAILQ_HEAD(, mrrc_lease_hold) holds;
	int64_t since; /* the thread's: when the lease broke */
	RB_ENTRY(mrrc_lease) node;
	TAILQ_ENTRY(mrrc_lease) link;
};

RB_HEAD(mrrc_lease_tree, mrrc_lease);
TAILQ_HEAD(mrrc_lease_list, mrrc_lease);

struct mrrc_leases {
	struct mrrc_leases_attr attr;
	atomic_uint break_ms; /* the kernel's shortest time so far */
	struct mrrc_lock lock;
	struct mrrc_lease_tree tree;	 /* lock: whole leases */
	struct mrrc_lease_list idle;	 /* lock: whole leases without users */
	unsigned idle_cnt;		 /* lock */
	struct mrrc_lease_list breaking; /* lock; removed by the thread only */
	bool stop;			 /* lock */
	pthread_t thread;
	/* 0: not known yet; below 0: the thread cannot wait for signals */
	atomic_int tid;
	pthread_cond_t started;
};

static int lease_cmp(struct mrrc_lease *a, struct mrrc_lease *b)
{
	if (a->file.id.dev != b->file.id.dev)
		return a->file.id.dev < b->file.id.dev ? -1 : 1;
	if (a->file.id.ino != b->file.id.ino)
		return a->file.id.ino < b->file.id.ino ? -1 : 1;
	return 0;
}

/* RB_GENERATE_STATIC of libbsd 0.11 wants a macro that it does not define. */
#define MRRC_UNUSED_STATIC __attribute__((unused)) static
RB_PROTOTYPE_INTERNAL(mrrc_lease_tree, mrrc_lease, node, lease_cmp,
		      MRRC_UNUSED_STATIC)
RB_GENERATE_INTERNAL(mrrc_lease_tree, mrrc_lease, node, lease_cmp,
		     MRRC_UNUSED_STATIC)

static int64_t lease_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void leases_wake(struct mrrc_leases *set)
{
	pthread_kill(set->thread, MRRC_LEASE_SIGNAL);
}

/* Ends a lease that is in no list and has no holds. No lock held. */
static void lease_end(struct mrrc_lease *lease)
{
	struct mrrc_leases *set = lease->set;

	if (!lease->given)
		mrrc_lease_file_give(&lease->file);
	set->attr.forget(set->attr.arg, (uintptr_t) lease->file.base,
			 lease->file.len);
	mrrc_lease_file_close(&lease->file);
}

/* Begins to break a lease: no hold succeeds from now on. Lock held. */
static void lease_break(struct mrrc_lease *lease)
{
	struct mrrc_leases *set = lease->set;

	lease->broken = true;
	RB_REMOVE(mrrc_lease_tree, &set->tree, lease);
	if (lease->listed) {
		TAILQ_REMOVE(&set->idle, lease, link);
		set->idle_cnt--;
	}
	lease->listed = true;
	lease->since = lease_now_ms();
	TAILQ_INSERT_TAIL(&set->breaking, lease, link);
}

/* ---- the thread ---- */

/*
 * Root may have shortened the time that the kernel gives to leases: the kernel
 * uses the time at which a writer comes.
 */
static void leases_time(struct mrrc_leases *set)
{
	const unsigned ms = set->attr.break_ms ?
				    atomic_load(set->attr.break_ms) :
				    mrrc_lease_break_ms();

	if (ms && ms < atomic_load(&set->break_ms))
		atomic_store(&set->break_ms, ms);
}

static void leases_scan(struct mrrc_leases *set)
{
	struct mrrc_lease *lease, *next;

	mrrc_lock_acquire(&set->lock);
	RB_FOREACH_SAFE(lease, mrrc_lease_tree, &set->tree, next)
	{
		if (!mrrc_lease_file_whole(&lease->file))
			lease_break(lease);
	}
	mrrc_lock_release(&set->lock);
}

/* The next held part that has no copy yet, in whole pages. */
static bool lease_uncopied(struct mrrc_lease *lease, size_t *offset,
			   size_t *len)
{
	const size_t mask = mrrc_vm_page() - 1;
	struct mrrc_lease_hold *hold;

	mrrc_lock_acquire(&lease->set->lock);
	TAILQ_FOREACH(hold, &lease->holds, link) {
		if (!hold->copied)
			break;
	}
	if (hold) {
		hold->copied = true;
		*offset = hold->offset & ~mask;
		*len = ((hold->offset + hold->len + mask) & ~mask) - *offset;
	}
	mrrc_lock_release(&lease->set->lock);
	return hold;
}

/* Has the kernel had time to take the lease by force? */
static bool lease_overdue(const struct mrrc_lease_hold *hold)
{
	return lease_now_ms() - hold->since >= hold->lease->set->break_ms;
}

/* Marks the operations still under way as failed. */
static void lease_fail(struct mrrc_lease *lease, bool all)
{
	struct mrrc_lease_hold *hold;

	mrrc_lock_acquire(&lease->set->lock);
	TAILQ_FOREACH(hold, &lease->holds, link) {
		if (all || lease_overdue(hold))
			atomic_store(&hold->failed, true);
	}
	mrrc_lock_release(&lease->set->lock);
}

/*
 * Called when operations take too long: lets the writer continue without them.
 */
static void lease_part(struct mrrc_lease *lease)
{
	const struct mrrc_leases *set = lease->set;
	const unsigned wait = set->attr.wait_ms ? set->attr.wait_ms :
			      set->attr.pins	? MRRC_LEASE_FAIL_MS :
						  MRRC_LEASE_COPY_MS;
	size_t offset, len;

	if (lease_now_ms() - lease->since < wait)
		return;
	while (!set->attr.pins && lease_uncopied(lease, &offset, &len)) {
		if (!mrrc_lease_file_copy(&lease->file, offset, len))
			continue;
		/* no operation may read zeros before it has failed */
		lease_fail(lease, true);
		mrrc_lease_file_zero(&lease->file, offset, len);
	}
	/* holds whose copies may have been made too late fail, too */
	lease_fail(lease, set->attr.pins);
	mrrc_lock_acquire(&lease->set->lock);
	lease->given = true;
	mrrc_lock_release(&lease->set->lock);
	mrrc_lease_file_give(&lease->file);
}

/* Ends a breaking lease. false: operations hold the lease. */
static bool lease_finish(struct mrrc_lease *lease)
{
	struct mrrc_leases *set = lease->set;
	bool busy, used;

	mrrc_lock_acquire(&set->lock);
	busy = !TAILQ_EMPTY(&lease->holds);
	mrrc_lock_release(&set->lock);
	if (busy)
		return false;
	lease_end(lease);
	mrrc_lock_acquire(&set->lock);
	TAILQ_REMOVE(&set->breaking, lease, link);
	lease->closed = true;
	used = lease->users;
	mrrc_lock_release(&set->lock);
	if (!used)
		free(lease);
	return true;
}

/* Ends breaking leases. true: a writer waits for operations. */
static bool leases_finish(struct mrrc_leases *set)
{
	struct mrrc_lease *lease, *next;
	bool waiting = false;

	mrrc_lock_acquire(&set->lock);
	lease = TAILQ_FIRST(&set->breaking);
	mrrc_lock_release(&set->lock);
	for (; lease; lease = next) {
		mrrc_lock_acquire(&set->lock);
		next = TAILQ_NEXT(lease, link);
		mrrc_lock_release(&set->lock);
		if (lease_finish(lease) || lease->given)
			continue;
		waiting = true;
		set->attr.progress(set->attr.arg);
		lease_part(lease);
	}
	return waiting;
}

/* Gives all leases up permanently: without signals no lease can be kept. */
static void leases_give_all(struct mrrc_leases *set)
{
	struct mrrc_lease *lease, *next;

	mrrc_lock_acquire(&set->lock);
	atomic_store(&set->tid, -1);
	RB_FOREACH_SAFE(lease, mrrc_lease_tree, &set->tree, next)
	lease_break(lease);
	mrrc_lock_release(&set->lock);
}

static bool leases_stopped(struct mrrc_leases *set)
{
	bool stop;

	mrrc_lock_acquire(&set->lock);
	stop = set->stop;
	mrrc_lock_release(&set->lock);
	return stop;
}

static void *leases_run(void *arg)
{
	const struct timespec poll = { .tv_nsec = LEASE_POLL_MS * 1000000 };
	struct mrrc_leases *set = arg;
	bool waiting = false;
	sigset_t signals;
	int got;

	sigemptyset(&signals);
	sigaddset(&signals, MRRC_LEASE_SIGNAL);
	mrrc_lock_acquire(&set->lock);
	atomic_store(&set->tid, (int) syscall(SYS_gettid));
	pthread_cond_signal(&set->started);
	mrrc_lock_release(&set->lock);
	while (!leases_stopped(set)) {
		got = sigtimedwait(&signals, NULL, waiting ? &poll : NULL);
		if (got > 0) {
			leases_time(set);
		} else if (errno != EAGAIN && errno != EINTR) {
			leases_give_all(set);
			nanosleep(&poll, NULL);
		}
		leases_scan(set);
		mrrc_thread_outside();
		waiting = leases_finish(set);
		mrrc_thread_inside();
	}
	return NULL;
}

/* ---- open and close ---- */

int mrrc_leases_open(const struct mrrc_leases_attr *attr,
		     struct mrrc_leases **out)
{
	const unsigned break_ms = mrrc_lease_break_ms();
	struct mrrc_leases *set;
	int ret;

	if (break_ms < 2 * MRRC_LEASE_FAIL_MS)
		return -ENOTSUP;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -ENOMEM;
	set->attr = *attr;
	set->break_ms = attr->break_ms ? atomic_load(attr->break_ms) : break_ms;
	RB_INIT(&set->tree);
	TAILQ_INIT(&set->idle);
	TAILQ_INIT(&set->breaking);
	pthread_cond_init(&set->started, NULL);
	ret = mrrc_lock_init(&set->lock, MRRC_RANK_LEAF);
	if (ret)
		goto err_free;
	ret = mrrc_thread_start(&set->thread, 0, leases_run, set);
	if (ret)
		goto err_lock;
	mrrc_lock_acquire(&set->lock);
	while (!atomic_load(&set->tid))
		mrrc_lock_wait(&set->lock, &set->started);
	mrrc_lock_release(&set->lock);
	*out = set;
	return 0;

err_lock:
	mrrc_lock_fini(&set->lock);
err_free:
	pthread_cond_destroy(&set->started);
	free(set);
	return ret;
}

void mrrc_leases_close(struct mrrc_leases *set)
{
	struct mrrc_lease *lease;

	mrrc_lock_acquire(&set->lock);
	set->stop = true;
	mrrc_lock_release(&set->lock);
	leases_wake(set);
	mrrc_thread_join(set->thread);
	while ((lease = RB_ROOT(&set->tree))) {
		RB_REMOVE(mrrc_lease_tree, &set->tree, lease);
		lease_end(lease);
		free(lease);
	}
	leases_finish(set);
	mrrc_lock_fini(&set->lock);
	pthread_cond_destroy(&set->started);
	free(set);
}

/* ---- users ---- */

/* Lock held. */
static void lease_use(struct mrrc_lease *lease)
{
	if (lease->listed) {
		lease->listed = false;
		TAILQ_REMOVE(&lease->set->idle, lease, link);
		lease->set->idle_cnt--;
	}
	lease->users++;
}

static struct mrrc_lease *lease_find(struct mrrc_leases *set,
				     const struct mrrc_fd_id *id)
{
	struct mrrc_lease key = { .file.id = *id }, *found;

	mrrc_lock_acquire(&set->lock);
	found = RB_FIND(mrrc_lease_tree, &set->tree, &key);
	if (found)
		lease_use(found);
	mrrc_lock_release(&set->lock);
	return found;
}

/*
 * Adds a lease, or returns the lease of another thread that has leased the same
 * file meanwhile. Checks the lease, as a signal that came before the lease was
 * in the tree has had no effect.
 */
static struct mrrc_lease *lease_add(struct mrrc_lease *lease)
{
	struct mrrc_leases *set = lease->set;
	struct mrrc_lease *other;
	bool broken;

	mrrc_lock_acquire(&set->lock);
	other = RB_INSERT(mrrc_lease_tree, &set->tree, lease);
	lease_use(other ? other : lease);
	broken = !other && !mrrc_lease_file_whole(&lease->file);
	if (broken)
		lease_break(lease);
	mrrc_lock_release(&set->lock);
	if (broken)
		leases_wake(set);
	return other;
}

int mrrc_lease_get(struct mrrc_leases *set, int fd, const struct mrrc_fd_id *id,
		   struct mrrc_lease **out)
{
	const int tid = atomic_load(&set->tid);
	struct mrrc_lease *lease = lease_find(set, id), *other;
	int ret;

	if (lease) {
		*out = lease;
		return 0;
	}
	if (tid < 0)
		return -ENOTSUP;
	lease = calloc(1, sizeof(*lease));
	if (!lease)
		return -ENOMEM;
	lease->set = set;
	TAILQ_INIT(&lease->holds);
	ret = mrrc_lease_file_take(fd, id, tid, &lease->file);
	if (ret)
		goto err_free;
	other = lease_add(lease);
	if (other) {
		lease_end(lease);
		free(lease);
		lease = other;
	}
	*out = lease;
	return 0;

err_free:
	free(lease);
	return ret;
}

void mrrc_lease_put(struct mrrc_lease *lease)
{
	struct mrrc_leases *set = lease->set;
	struct mrrc_lease *old = NULL;
	bool closed;

	mrrc_lock_acquire(&set->lock);
	closed = lease->closed && lease->users == 1;
	if (!--lease->users && !lease->broken) {
		lease->listed = true;
		TAILQ_INSERT_TAIL(&set->idle, lease, link);
		if (++set->idle_cnt > set->attr.idle_max) {
			old = TAILQ_FIRST(&set->idle);
			TAILQ_REMOVE(&set->idle, old, link);
			RB_REMOVE(mrrc_lease_tree, &set->tree, old);
			set->idle_cnt--;
		}
	}
	mrrc_lock_release(&set->lock);
	if (old) {
		lease_end(old);
		free(old);
	}
	if (closed)
		free(lease);
}

/* Marks a lease as lost: it must not count as idle while the thread is busy. */
static void lease_lose(struct mrrc_lease *lease)
{
	struct mrrc_leases *set = lease->set;

	mrrc_lock_acquire(&set->lock);
	if (!lease->broken)
		lease_break(lease);
	mrrc_lock_release(&set->lock);
	leases_wake(set);
}

int mrrc_lease_hold(struct mrrc_lease *lease, uint64_t offset, size_t len,
		    struct mrrc_lease_hold *hold, char **addr)
{
	struct mrrc_leases *set = lease->set;
	const bool beyond = offset > lease->file.len ||
			    len > lease->file.len - offset;
	bool broken;

	*hold = (struct mrrc_lease_hold){ .lease = lease,
					  .offset = offset,
					  .len = len,
					  .since = lease_now_ms() };
	mrrc_lock_acquire(&set->lock);
	broken = lease->broken;
	if (!broken)
		TAILQ_INSERT_TAIL(&lease->holds, hold, link);
	mrrc_lock_release(&set->lock);
	if (broken)
		return -ESTALE;
	/* checked only now: from here on a writer waits for this hold */
	if (!mrrc_lease_file_whole(&lease->file)) {
		lease_lose(lease);
		mrrc_lease_release(hold);
		return -ESTALE;
	}
	if (beyond) {
		mrrc_lease_release(hold);
		return -ENODATA;
	}
	*addr = lease->file.base + offset;
	return 0;
}

void mrrc_lease_release(struct mrrc_lease_hold *hold)
{
	struct mrrc_lease *lease = hold->lease;
	struct mrrc_leases *set = lease->set;
	bool wake;

	mrrc_lock_acquire(&set->lock);
	TAILQ_REMOVE(&lease->holds, hold, link);
	wake = lease->broken && TAILQ_EMPTY(&lease->holds);
	mrrc_lock_release(&set->lock);
	if (wake)
		leases_wake(set);
}

bool mrrc_lease_wanted(const struct mrrc_lease_hold *hold)
{
	const struct mrrc_lease *lease = hold->lease;
	bool wanted;

	mrrc_lock_acquire(&lease->set->lock);
	wanted = lease->broken && !lease->given;
	mrrc_lock_release(&lease->set->lock);
	return wanted;
}

bool mrrc_lease_lost(const struct mrrc_lease_hold *hold)
{
	const struct mrrc_lease *lease = hold->lease;
	bool given, overdue = lease_overdue(hold);

	if (overdue && !mrrc_lease_file_whole(&lease->file)) {
		/*
		 * the thread sets given, under the lock, only after it has
		 * marked the holds that fail
		 */
		mrrc_lock_acquire(&lease->set->lock);
		given = lease->given;
		mrrc_lock_release(&lease->set->lock);
		if (!given)
			return true;
	}
	return atomic_load(&hold->failed);
}

const struct mrrc_lease_file *mrrc_lease_file(const struct mrrc_lease *lease)
{
	return &lease->file;
}
