/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The events of the userfaultfd monitor (mon_uffd.c), and its two threads.
 *
 * The reader only reads events into a queue. The reader takes no lock that a
 * thread holds for long, or with signals unblocked: an unmapping thread sleeps
 * until its event is read, and may be in a signal handler that interrupted the
 * holder of one of our locks. The handler thread, or a thread that finds memory
 * busy (mrrc_mon_drain), handles the queue; until then seq is odd.
 *
 * The reader has its own table of descriptors. Programs that become daemons
 * close descriptors that they do not know. In the reader's table the
 * userfaultfd stays open, so events are still read, and the handler notices
 * that the number was closed. poll(2) looks up descriptors each time it wakes:
 * with a shared table poll(2) would go on to wait for another file, and an
 * unmapping thread would never return.
 */
#include "config.h"
#include "sys/monitor/mon_uffd_read.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/userfaultfd.h>

#ifdef HAVE_VALGRIND_MEMCHECK_H
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

#include "sys/base/pause.h"
#include "sys/base/threads.h"
#include "sys/monitor/uffd.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define MRRC_UFFD_EVENTS      16   /* events read at a time */
#define MRRC_UFFD_LOOK_MS     1000 /* between checks of the hooks */
#define MRRC_UFFD_NAP_NS      50000
#define MRRC_UFFD_CHILD_STACK ((size_t) 16 << 10)

static void uffd_lock(struct mrrc_uffd *uffd, sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, old);
	pthread_mutex_lock(&uffd->lock);
}

static void uffd_unlock(struct mrrc_uffd *uffd, const sigset_t *old)
{
	pthread_mutex_unlock(&uffd->lock);
	pthread_sigmask(SIG_SETMASK, old, NULL);
}

/*
 * Queues an event. Locked. A full queue extends its last event: an event whose
 * range is too large only invalidates more regions than needed.
 */
static void uffd_queue(struct mrrc_uffd *uffd, uintptr_t start, uintptr_t end,
		       enum mrrc_mon_event kind, bool announced)
{
	struct mrrc_uffd_event *last;

	if (uffd->queued < MRRC_UFFD_QUEUE) {
		uffd->queue[uffd->queued++] = (struct mrrc_uffd_event){
			{ start, end }, kind, announced
		};
		return;
	}
	last = &uffd->queue[MRRC_UFFD_QUEUE - 1];
	/* another userfaultfd may watch memory between the ranges */
	if (kind != last->kind || start > last->range.end ||
	    end < last->range.start)
		last->kind = MRRC_MON_UNMAP;
	if (start < last->range.start)
		last->range.start = start;
	if (end > last->range.end)
		last->range.end = end;
	last->announced = last->announced && announced;
}

/* Locked. */
static int uffd_take(struct mrrc_uffd *uffd, const struct uffd_msg *msg)
{
	uintptr_t from, to, len;

	switch (msg->event) {
	case UFFD_EVENT_UNMAP:
		uffd_queue(uffd, msg->arg.remove.start, msg->arg.remove.end,
			   MRRC_MON_UNMAP, false);
		return 0;
	case UFFD_EVENT_REMOVE:
		uffd_queue(uffd, msg->arg.remove.start, msg->arg.remove.end,
			   MRRC_MON_REMOVE, false);
		return 0;
	case UFFD_EVENT_REMAP:
		from = msg->arg.remap.from;
		to = msg->arg.remap.to;
		len = msg->arg.remap.len;
		uffd_queue(uffd, from, from + len, MRRC_MON_UNMAP, false);
		/* The moved pages stay watched at their new addresses. */
		uffd_queue(uffd, to, to + len, MRRC_MON_REMOVE, false);
		return 0;
	default:
		return -EPROTO;
	}
}

int mrrc_uffd_lost(const struct mrrc_uffd *uffd)
{
	return mrrc_fd_is(uffd->fd, &uffd->id) ? 0 : -EBADF;
}

/* Reads all events. Locked. -EIO, -EPROTO: reading is no longer possible. */
static int uffd_read(struct mrrc_uffd *uffd)
{
	struct uffd_msg msg[MRRC_UFFD_EVENTS];
	ssize_t len;
	size_t i;
	int ret;

	for (;;) {
		len = read(uffd->fd, msg, sizeof(msg));
		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0 && errno == EAGAIN)
			return 0;
		if (len <= 0)
			return -EIO;
		for (i = 0; i < len / sizeof(msg[0]); i++) {
			ret = uffd_take(uffd, &msg[i]);
			if (ret)
				return ret;
		}
	}
}

/* Adds an event, as if the kernel had reported it at this moment. */
void mrrc_uffd_post(struct mrrc_mon *mon, uintptr_t start, uintptr_t end,
		    enum mrrc_mon_event event)
{
	struct mrrc_uffd *uffd = mon->impl;
	sigset_t old;

	uffd_lock(uffd, &old);
	atomic_fetch_or(&mon->seq, 1);
	uffd_queue(uffd, start, end, event, true);
	uffd_unlock(uffd, &old);
	sem_post(&uffd->work);
}

/*
 * Takes the oldest events, in their order, so that an announcement is handled
 * before the kernel's report of the same range. Locked.
 */
static unsigned uffd_next(struct mrrc_uffd *uffd,
			  struct mrrc_uffd_event event[MRRC_UFFD_EVENTS])
{
	const unsigned count = uffd->queued < MRRC_UFFD_EVENTS ?
				       uffd->queued :
				       MRRC_UFFD_EVENTS;

	memcpy(event, uffd->queue, count * sizeof(*event));
	uffd->queued -= count;
	memmove(uffd->queue, uffd->queue + count,
		uffd->queued * sizeof(*event));
	return count;
}

int mrrc_uffd_drain(struct mrrc_mon *mon)
{
	struct mrrc_uffd_event event[MRRC_UFFD_EVENTS];
	struct mrrc_uffd *uffd = mon->impl;
	unsigned i, count, left;
	sigset_t old;
	int cancel;
	int ret;

	/* a thread that is cancelled in read(2) would end with locks held */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	uffd_lock(uffd, &old);
	ret = uffd->dead ? -EIO : mrrc_uffd_lost(uffd);
	if (!ret)
		ret = uffd_read(uffd);
	left = uffd->queued;
	uffd_unlock(uffd, &old);
	/* events that are queued from now on wake the handler again */
	for (; left; left -= count < left ? count : left) {
		uffd_lock(uffd, &old);
		count = uffd_next(uffd, event);
		uffd_unlock(uffd, &old);
		for (i = 0; i < count; i++) {
			if (!mrrc_mon_event(mon, event[i].range.start,
					    event[i].range.end,
					    event[i].kind) ||
			    event[i].announced)
				continue;
			mrrc_trust_surprised();
			mrrc_threads_look();
		}
	}
	pthread_setcancelstate(cancel, NULL);
	if (ret)
		snprintf(mon->reason, sizeof(mon->reason), "userfaultfd: %s",
			 ret == -EPROTO ? "an unexpected event" :
					  "its events cannot be read");
	return ret;
}

bool mrrc_uffd_settle(struct mrrc_mon *mon)
{
	struct mrrc_uffd *uffd = mon->impl;
	sigset_t old;
	bool settled;

	uffd_lock(uffd, &old);
	settled = !uffd->queued && !uffd->dead;
	if (settled)
		atomic_fetch_add(&mon->seq, 1);
	uffd_unlock(uffd, &old);
	return settled;
}

/*
 * Closes the userfaultfd, but keeps its number in use, by a file that refuses
 * the probes of other threads: so no probe reaches a file of the application.
 */
static void uffd_replace(struct mrrc_uffd *uffd)
{
	if (mrrc_uffd_lost(uffd))
		return;
	/*
	 * dup3(2) refuses numbers above RLIMIT_NOFILE, which the application
	 * may have lowered
	 */
	if (!mrrc_fd_is(uffd->stop_fd, &uffd->stop_id) ||
	    dup3(uffd->stop_fd, uffd->fd, O_CLOEXEC) < 0)
		close(uffd->fd);
}

/* Makes stop_fd readable, which wakes the reader. */
static void uffd_wake(struct mrrc_uffd *uffd)
{
	atomic_store(&uffd->woken, true);
	shutdown(uffd->stop_fd, SHUT_RDWR);
}

/* Reads events into the queue, in the reader's thread. */
static int uffd_fetch(struct mrrc_mon *mon)
{
	struct mrrc_uffd *uffd = mon->impl;
	struct pollfd left = { .fd = uffd->fd, .events = POLLIN };
	sigset_t old;
	int ret;

	uffd_lock(uffd, &old);
	/*
	 * Checks the descriptor first: if another file has its number by now,
	 * poll(2) tells nothing about events.
	 */
	ret = mrrc_uffd_lost(uffd);
	/* Another thread may have drained the queue first. */
	if (ret || !poll(&left, 1, 0)) {
		uffd_unlock(uffd, &old);
		return ret;
	}
	/* seq is odd before the first event is read: see mon.h. */
	atomic_fetch_or(&mon->seq, 1);
	ret = uffd_read(uffd);
	uffd_unlock(uffd, &old);
	sem_post(&uffd->work);
	return ret;
}

/* Closes all descriptors of this table except ours. Makes system calls only. */
static int uffd_close_others(void *arg)
{
	const struct mrrc_uffd *uffd = arg;
	const bool order = uffd->fd < uffd->stop_fd;
	const unsigned low = order ? uffd->fd : uffd->stop_fd;
	const unsigned high = order ? uffd->stop_fd : uffd->fd;

	syscall(SYS_close_range, high + 1, UINT_MAX, 0);
	if (low)
		syscall(SYS_close_range, 0, low - 1, 0);
	if (high > low + 1)
		syscall(SYS_close_range, low + 1, high - 1, 0);
	return 0;
}

static bool uffd_tool(void)
{
	return RUNNING_ON_VALGRIND || mrrc_threads_sanitized();
}

/*
 * Gives the reader a descriptor table with only our descriptors; if the kernel
 * cannot, the reader shares the process's table. Some drivers (mq_notify(3),
 * XPMEM) end the use of a file by the process that closes the file. So a child
 * process, which shares the reader's memory and descriptor table, closes the
 * other descriptors, as any forked child may.
 */
static void uffd_keep(struct mrrc_uffd *uffd)
{
	_Alignas(16) char stack[MRRC_UFFD_CHILD_STACK];
	pid_t pid = -1;

	/* asks first whether close_range(2), from Linux 5.9, is allowed */
	if (syscall(SYS_close_range, UINT_MAX, UINT_MAX, 0) ||
	    unshare(CLONE_FILES))
		return;
	/*
	 * some tools mistake this clone(2) for fork(2), or end programs that
	 * call clone(2)
	 */
	if (!uffd_tool())
		pid = clone(uffd_close_others, stack + sizeof(stack),
			    CLONE_VM | CLONE_VFORK | CLONE_FILES, uffd);
	if (pid < 0)
		uffd_close_others(uffd);
	else
		waitpid(pid, NULL, __WCLONE);
}

/*
 * Waits for events or a wake-up. Returns 0 or -E*. If poll(2) fails because a
 * thread has set RLIMIT_NOFILE below 2, the reader reads events once a
 * millisecond.
 */
static int uffd_wait(struct mrrc_uffd *uffd, struct pollfd fds[2])
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	int ret = 0;

	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	if (poll(fds, 2, MRRC_UFFD_LOOK_MS) < 0)
		ret = -errno;
	if (ret == -EINVAL)
		nanosleep(&nap, NULL);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	if (ret != -EINVAL && ret != -EINTR)
		return ret;
	fds[0].revents = POLLIN;
	fds[1].revents = atomic_load(&uffd->woken) ? POLLIN : 0;
	return 0;
}

static void *uffd_run(void *arg)
{
	struct mrrc_mon *mon = arg;
	struct mrrc_uffd *uffd = mon->impl;
	struct pollfd fds[2] = {
		{ .fd = uffd->fd, .events = POLLIN },
		{ .fd = uffd->stop_fd, .events = POLLIN },
	};
	sigset_t old;
	int ret = 0;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	uffd_keep(uffd);
	sem_post(&uffd->ready);
	while (!ret && mrrc_mon_works(mon)) {
		ret = uffd_wait(uffd, fds);
		mrrc_libc_hooks_check();
		if (ret)
			break;
		if (fds[1].revents &&
		    (atomic_load(&uffd->stop) || !mrrc_mon_works(mon)))
			break;
		if (fds[1].revents) {
			ret = -EBADF; /* no stop request: another file */
		} else if (fds[0].revents & POLLIN) {
			ret = uffd_fetch(mon);
		} else if (fds[0].revents) {
			ret = -EIO;
		}
	}
	/*
	 * The reader ends, so from here on no thread may wait for an event to
	 * be read: the thread that joins the reader may unmap meanwhile, and
	 * reporting the failure takes a lock.
	 */
	if (ret) {
		uffd_lock(uffd, &old);
		uffd->dead = true;
		atomic_fetch_or(&mon->seq, 1);
		uffd_unlock(uffd, &old);
	}
	uffd_replace(uffd);
	if (ret) {
		atomic_store(&uffd->broken, true);
		sem_post(&uffd->work);
		mrrc_mon_fail(mon, "userfaultfd: reading events: %s",
			      strerror(-ret));
	}
	return NULL;
}

static void *uffd_handle(void *arg)
{
	struct mrrc_mon *mon = arg;
	struct mrrc_uffd *uffd = mon->impl;

	while (!atomic_load(&uffd->stop)) {
		while (sem_wait(&uffd->work))
			;
		if (atomic_load(&uffd->broken))
			uffd_replace(uffd);
		/* Another thread may have been first. */
		if (mrrc_mon_seq(mon) & 1)
			mrrc_mon_drain(mon);
		/*
		 * more events have come: lets threads that wait for the lock go
		 * first
		 */
		if (mrrc_mon_seq(mon) & 1)
			mrrc_pause_for(MRRC_UFFD_NAP_NS);
	}
	return NULL;
}

/*
 * Wakes the reader first, whose poll(2) keeps the userfaultfd open. A forked
 * child does not wake the reader, which is a thread of the parent.
 */
void mrrc_uffd_stop(struct mrrc_mon *mon)
{
	struct mrrc_uffd *uffd = mon->impl;

	if (!mrrc_mon_forked(mon) && mrrc_fd_is(uffd->stop_fd, &uffd->stop_id))
		uffd_wake(uffd);
	uffd_replace(uffd);
}

int mrrc_uffd_read_start(struct mrrc_mon *mon)
{
	struct mrrc_uffd *uffd = mon->impl;
	int ret;

	ret = mrrc_thread_start(&uffd->reader, MRRC_UFFD_STACK, uffd_run, mon);
	if (ret)
		return ret;
	pthread_setname_np(uffd->reader, "mrrc-monitor");
	while (sem_wait(&uffd->ready))
		;
	ret = mrrc_thread_start(&uffd->handler, MRRC_UFFD_STACK, uffd_handle,
				mon);
	if (ret) {
		atomic_store(&uffd->stop, true);
		uffd_wake(uffd);
		mrrc_thread_join(uffd->reader);
		return ret;
	}
	pthread_setname_np(uffd->handler, "mrrc-handler");
	return 0;
}

void mrrc_uffd_read_end(struct mrrc_mon *mon)
{
	struct mrrc_uffd *uffd = mon->impl;

	/*
	 * ends the handler while the reader still runs, as a thread that ends
	 * may unmap
	 */
	atomic_store(&uffd->stop, true);
	sem_post(&uffd->work);
	mrrc_thread_join(uffd->handler);
	if (mrrc_fd_is(uffd->stop_fd, &uffd->stop_id))
		uffd_wake(uffd);
	else
		pthread_cancel(uffd->reader);
	/*
	 * the reader has the last copy of the userfaultfd, and closes this copy
	 * before it ends
	 */
	uffd_replace(uffd);
	mrrc_thread_join(uffd->reader);
}
