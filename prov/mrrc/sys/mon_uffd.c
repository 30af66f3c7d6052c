/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The userfaultfd monitor (mon.h).
 *
 * Ranges are registered in write-protect mode and never protected: no page
 * ever faults, and the kernel reports unmaps, remaps and dropped pages of
 * them, whoever causes these and however. Works unprivileged.
 *
 * The probe: UFFDIO_WRITEPROTECT of an empty range fails with EAGAIN as long
 * as any such change is unfinished, then with EINVAL. Kernels before 5.15
 * forget unfinished changes too early, so each start tests it.
 *
 * Threads: the handler thread drains; so does whoever finds memory busy.
 */
#include "config.h"
#include "sys/mon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/userfaultfd.h>

#include "sys/vm.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY	1
#endif

#define MRRC_UFFD_FEATURES						\
	(UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EVENT_UNMAP |	\
	 UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_REMAP)

#define MRRC_UFFD_EVENTS	16		/* read at a time */
#define MRRC_UFFD_STACK		((size_t)256 << 10)
#define MRRC_UFFD_PATIENCE	1000		/* ms the self-test may wait */
#define MRRC_UFFD_TRIES		3

struct mrrc_uffd {
	int fd;			/* the userfaultfd; after stop, a stand-in */
	int stop_fd;		/* readable once the handler has to end */
	size_t huge;		/* huge page size, 0 if none */
	pthread_t handler;
};

/* 0 quiet, -EAGAIN busy, any other answer is not to be trusted. */
static int mrrc_uffd_probe(int fd)
{
	struct uffdio_writeprotect wp = { .range.len = 0 };

	if (!ioctl(fd, UFFDIO_WRITEPROTECT, &wp))
		return -EPROTO;
	return errno == EINVAL ? 0 : -errno;
}

static int mrrc_uffd_register(int fd, uintptr_t start, size_t len)
{
	struct uffdio_register reg = {
		.range = { .start = start, .len = len },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return ioctl(fd, UFFDIO_REGISTER, &reg) ? -errno : 0;
}

/* ---- self-test: two changes under way, one event read: still busy ---- */

struct mrrc_uffd_unmapper {
	void *page;
	pthread_t thread;
	atomic_bool done;
};

static void *mrrc_uffd_unmapper_run(void *arg)
{
	struct mrrc_uffd_unmapper *un = arg;

	munmap(un->page, mrrc_vm_page());
	atomic_store(&un->done, true);
	return NULL;
}

/* A thread of ours takes no signals meant for the application. */
static int mrrc_uffd_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	sigset_t all;
	sigset_t old;
	int rc;

	rc = pthread_attr_init(&attr);
	if (rc)
		return -rc;
	pthread_attr_setstacksize(&attr, MRRC_UFFD_STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -rc;
}

static bool mrrc_uffd_unmapped(struct mrrc_uffd_unmapper *un)
{
	unsigned char vec;

	return mincore(un->page, mrrc_vm_page(), &vec) && errno == ENOMEM;
}

static int mrrc_uffd_read_one(int fd)
{
	struct uffd_msg msg;

	return read(fd, &msg, sizeof(msg)) == sizeof(msg) &&
	       msg.event == UFFD_EVENT_UNMAP ? 0 : -EPROTO;
}

/* Two unmappers sleep on @fd. Each step has a deadline. */
static int mrrc_uffd_test_steps(int fd, struct mrrc_uffd_unmapper *un)
{
	struct timespec nap = { .tv_nsec = 100000 };
	int left = MRRC_UFFD_PATIENCE * 10;

	while (!mrrc_uffd_unmapped(&un[0]) || !mrrc_uffd_unmapped(&un[1])) {
		if (!left--)
			return -ETIMEDOUT;
		nanosleep(&nap, NULL);
	}
	/* The mappings are gone; the events follow at once. */
	while (mrrc_uffd_read_one(fd)) {
		if (mrrc_uffd_probe(fd) != -EAGAIN)
			return -EPROTO;
		if (!left--)
			return -ETIMEDOUT;
		nanosleep(&nap, NULL);
	}
	while (!atomic_load(&un[0].done) && !atomic_load(&un[1].done)) {
		if (!left--)
			return -ETIMEDOUT;
		nanosleep(&nap, NULL);
	}
	if (mrrc_uffd_probe(fd) != -EAGAIN)
		return -ENOTSUP;
	while (mrrc_uffd_read_one(fd)) {
		if (!left--)
			return -ETIMEDOUT;
		nanosleep(&nap, NULL);
	}
	while (mrrc_uffd_probe(fd)) {
		if (!left--)
			return -ETIMEDOUT;
		nanosleep(&nap, NULL);
	}
	return 0;
}

/* An unmap that waits for no reader. */
static void mrrc_uffd_test_unmap(int fd, void *page)
{
	struct uffdio_range range = {
		.start = (uintptr_t)page,
		.len = mrrc_vm_page(),
	};

	ioctl(fd, UFFDIO_UNREGISTER, &range);
	munmap(page, range.len);
}

/* Whatever comes of the test, nobody sleeps on it afterwards. */
static int mrrc_uffd_test_run(int fd, struct mrrc_uffd_unmapper *un)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	int rc = 0;
	int started;
	int i;

	for (started = 0; started < 2 && !rc; started += !rc)
		rc = mrrc_uffd_thread(&un[started].thread,
				      mrrc_uffd_unmapper_run, &un[started]);
	if (!rc)
		rc = mrrc_uffd_test_steps(fd, un);
	for (i = 0; i < started; i++) {
		while (!atomic_load(&un[i].done)) {
			poll(&poll_fd, 1, 1);
			mrrc_uffd_read_one(fd);
		}
		pthread_join(un[i].thread, NULL);
	}
	for (; i < 2; i++)
		mrrc_uffd_test_unmap(fd, un[i].page);
	return rc;
}

static int mrrc_uffd_test(int fd)
{
	const size_t page = mrrc_vm_page();
	struct mrrc_uffd_unmapper un[2] = { 0 };
	int rc;
	int i;

	for (i = 0; i < 2; i++) {
		un[i].page = mmap(NULL, page, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (un[i].page == MAP_FAILED) {
			rc = -errno;
			goto err_unmap;
		}
		rc = mrrc_uffd_register(fd, (uintptr_t)un[i].page, page);
		if (rc) {
			i++;
			goto err_unmap;
		}
	}
	return mrrc_uffd_test_run(fd, un);

err_unmap:
	while (i--)
		mrrc_uffd_test_unmap(fd, un[i].page);
	return rc;
}

/* ---- the monitor ---- */

/* MONITOR lock held. One message to the subscribers. */
static int mrrc_uffd_handle(struct mrrc_mon *mon, const struct uffd_msg *msg)
{
	uintptr_t from, to, len;

	switch (msg->event) {
	case UFFD_EVENT_UNMAP:
		mrrc_mon_event(mon, msg->arg.remove.start,
			       msg->arg.remove.end, MRRC_MON_UNMAP);
		return 0;
	case UFFD_EVENT_REMOVE:
		mrrc_mon_event(mon, msg->arg.remove.start,
			       msg->arg.remove.end, MRRC_MON_REMOVE);
		return 0;
	case UFFD_EVENT_REMAP:
		from = msg->arg.remap.from;
		to = msg->arg.remap.to;
		len = msg->arg.remap.len;
		mrrc_mon_event(mon, from, from + len, MRRC_MON_UNMAP);
		/* The kernel goes on watching where the pages went. */
		mrrc_mon_event(mon, to, to + len, MRRC_MON_REMOVE);
		return 0;
	default:
		snprintf(mon->reason, sizeof(mon->reason),
			 "userfaultfd: unexpected event %#x", msg->event);
		return -EPROTO;
	}
}

static int mrrc_uffd_drain(struct mrrc_mon *mon)
{
	struct mrrc_uffd *uffd = mon->impl;
	struct uffd_msg msg[MRRC_UFFD_EVENTS];
	ssize_t len;
	size_t i;
	int rc;

	for (;;) {
		len = read(uffd->fd, msg, sizeof(msg));
		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0 && errno == EAGAIN)
			return 0;
		if (len <= 0) {
			snprintf(mon->reason, sizeof(mon->reason),
				 "userfaultfd: read failed, errno %d", errno);
			return -EIO;
		}
		for (i = 0; i < len / sizeof(msg[0]); i++) {
			rc = mrrc_uffd_handle(mon, &msg[i]);
			if (rc)
				return rc;
		}
	}
}

static void *mrrc_uffd_run(void *arg)
{
	struct mrrc_mon *mon = arg;
	struct mrrc_uffd *uffd = mon->impl;
	struct pollfd fds[2] = {
		{ .fd = uffd->fd, .events = POLLIN },
		{ .fd = uffd->stop_fd, .events = POLLIN },
	};

	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR) {
			mrrc_mon_fail(mon, "userfaultfd: poll, errno %d",
				      errno);
			break;
		}
		if (fds[1].revents)
			break;
		if (fds[0].revents & POLLIN)
			mrrc_mon_drain(mon);
		else if (fds[0].revents)
			mrrc_mon_fail(mon, "userfaultfd: poll answered %#x",
				      fds[0].revents);
	}
	/*
	 * The last reader leaves: from here on nobody may wait for one. Whoever
	 * joins this thread may unmap while doing so.
	 */
	dup3(uffd->stop_fd, uffd->fd, O_CLOEXEC);
	return NULL;
}

/*
 * Replaces the userfaultfd, so that probes of other threads meet a file that
 * refuses them rather than a number reused. The handler's poll keeps the old
 * file alive, hence wakes up first; in a child the event is the parent's.
 */
static void mrrc_uffd_stop(struct mrrc_mon *mon)
{
	struct mrrc_uffd *uffd = mon->impl;

	if (!mrrc_mon_forked(mon))
		eventfd_write(uffd->stop_fd, 1);
	dup3(uffd->stop_fd, uffd->fd, O_CLOEXEC);
}

static int mrrc_uffd_fail(struct mrrc_mon *mon, const char *what, int rc)
{
	snprintf(mon->reason, sizeof(mon->reason), "userfaultfd: %s: %s",
		 what, strerror(-rc));
	return rc;
}

static int mrrc_uffd_setup(struct mrrc_mon *mon, int *out)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = MRRC_UFFD_FEATURES,
	};
	int tries = MRRC_UFFD_TRIES;
	int fd;
	int rc;

	fd = syscall(SYS_userfaultfd,
		     O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (fd < 0)
		return mrrc_uffd_fail(mon, "not to be had here", -errno);
	if (ioctl(fd, UFFDIO_API, &api)) {
		rc = mrrc_uffd_fail(mon, "lacks events", -errno);
		goto err_close;
	}
	/* Another thread may map just where the test looks for a hole. */
	do {
		rc = mrrc_uffd_test(fd);
	} while (rc == -ETIMEDOUT && --tries);
	if (rc) {
		mrrc_uffd_fail(mon, "self-test of pending unmaps", rc);
		goto err_close;
	}
	*out = fd;
	return 0;

err_close:
	close(fd);
	return rc;
}

static int mrrc_uffd_open(struct mrrc_mon *mon)
{
	struct mrrc_uffd *uffd;
	int rc;

	uffd = calloc(1, sizeof(*uffd));
	if (!uffd)
		return -ENOMEM;
	rc = mrrc_uffd_setup(mon, &uffd->fd);
	if (rc)
		goto err_free;
	uffd->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (uffd->stop_fd < 0) {
		rc = mrrc_uffd_fail(mon, "eventfd", -errno);
		goto err_close;
	}
	uffd->huge = mrrc_vm_huge_page();
	mon->impl = uffd;
	rc = mrrc_uffd_thread(&uffd->handler, mrrc_uffd_run, mon);
	if (rc) {
		mrrc_uffd_fail(mon, "handler thread", rc);
		goto err_close_stop;
	}
	pthread_setname_np(uffd->handler, "mrrc-monitor");
	return 0;

err_close_stop:
	close(uffd->stop_fd);
err_close:
	close(uffd->fd);
err_free:
	free(uffd);
	return rc;
}

static void mrrc_uffd_close(struct mrrc_mon *mon)
{
	struct mrrc_uffd *uffd = mon->impl;

	if (!mrrc_mon_forked(mon)) {
		eventfd_write(uffd->stop_fd, 1);
		pthread_join(uffd->handler, NULL);
	}
	close(uffd->stop_fd);
	close(uffd->fd);
	free(uffd);
}

/*
 * Huge pages are watched whole. Refusal changes nothing, so trying the
 * larger range costs no more than a system call.
 */
static int mrrc_uffd_watch(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	struct mrrc_uffd *uffd = mon->impl;
	const uintptr_t mask = uffd->huge - 1;
	uintptr_t lo, hi;
	int rc;

	rc = mrrc_uffd_register(uffd->fd, start, len);
	if (rc != -EINVAL || !uffd->huge)
		return rc;
	lo = start & ~mask;
	hi = (start + len + mask) & ~mask;
	if (hi <= lo || hi - lo == len)
		return rc;
	return mrrc_uffd_register(uffd->fd, lo, hi - lo);
}

/* What is no longer mapped, or part of a huge page, is refused: let it be. */
static void mrrc_uffd_unwatch(struct mrrc_mon *mon, uintptr_t start,
			      size_t len)
{
	struct mrrc_uffd *uffd = mon->impl;
	struct uffdio_range range = { .start = start, .len = len };

	ioctl(uffd->fd, UFFDIO_UNREGISTER, &range);
}

static int mrrc_uffd_check(struct mrrc_mon *mon)
{
	const struct mrrc_uffd *uffd = mon->impl;

	return mrrc_uffd_probe(uffd->fd);
}

static bool mrrc_uffd_sees(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	(void)mon;
	return mrrc_vm_private(start, len);
}

const struct mrrc_mon_ops mrrc_mon_uffd_ops = {
	.name = "uffd",
	.open = mrrc_uffd_open,
	.close = mrrc_uffd_close,
	.watch = mrrc_uffd_watch,
	.unwatch = mrrc_uffd_unwatch,
	.drain = mrrc_uffd_drain,
	.check = mrrc_uffd_check,
	.sees = mrrc_uffd_sees,
	.stop = mrrc_uffd_stop,
};
