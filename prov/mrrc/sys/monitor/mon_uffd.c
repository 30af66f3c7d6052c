/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The userfaultfd monitor (mon.h).
 *
 * Ranges are registered in write-protect mode, but never write-protected: so
 * accesses cause no extra page faults, and the kernel reports each unmap, remap
 * and discard of pages in these ranges, by any code and any call. The monitor
 * needs no privileges.
 *
 * The probe: UFFDIO_WRITEPROTECT of an empty range fails with EAGAIN while an
 * unmap, remap or discard is unfinished, and with EINVAL otherwise. Kernels
 * before 5.15 forget unfinished changes too early, so each start tests the
 * probe.
 *
 * The threads that read the events: mon_uffd_read.c.
 */
#include "config.h"
#include "sys/monitor/mon_uffd_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/userfaultfd.h>

#include "core/text/hash.h"
#include "sys/base/mappings.h"
#include "sys/monitor/uffd.h"
#include "sys/base/vm.h"
#include "sys/monitor/mon_uffd_read.h"

#define MRRC_UFFD_FEATURES                                           \
	(UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EVENT_UNMAP | \
	 UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_REMAP)
#define MRRC_UFFD_TRIES 3

/*
 * uffd_prepare() examines the first page of a range in the first
 * MRRC_UFFD_FIRST ranges, in MRRC_UFFD_EXAMINED ranges after it found an
 * unwritten page, and in one of MRRC_UFFD_SAMPLE other ranges.
 */
#define MRRC_UFFD_EXAMINED 1024
#define MRRC_UFFD_FIRST	   64
#define MRRC_UFFD_SAMPLE   8

/* Is there a spare descriptor, whose number is still ours? */
static bool uffd_has_spare(const struct mrrc_uffd *uffd)
{
	return mrrc_fd_is(uffd->spare, &uffd->spare_id);
}

/* Writes @what and the error into mon->reason. Returns @ret. */
static int uffd_fail(struct mrrc_mon *mon, const char *what, int ret)
{
	snprintf(mon->reason, sizeof(mon->reason), "userfaultfd: %s: %s", what,
		 strerror(-ret));
	return ret;
}

/*
 * The kernel requires no privilege for MRRC_UFFD_FEATURES: if the kernel
 * refuses these features, neither CAP_SYS_PTRACE nor
 * vm.unprivileged_userfaultfd helps.
 */
static int uffd_forbidden(struct mrrc_mon *mon, int ret)
{
	snprintf(mon->reason, sizeof(mon->reason),
		 "userfaultfd is forbidden here: allow the system call "
		 "userfaultfd in the seccomp profile (containers: "
		 "--security-opt seccomp=FILE), or give the process "
		 "/dev/userfaultfd (Linux 6.1), readable and writable");
	return ret;
}

static int uffd_setup(struct mrrc_mon *mon, struct mrrc_uffd *uffd)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = MRRC_UFFD_FEATURES,
	};
	int tries = MRRC_UFFD_TRIES;
	int fd;
	int ret;

	fd = mrrc_uffd_new();
	if (fd == -EPERM)
		return uffd_forbidden(mon, fd);
	if (fd < 0)
		return uffd_fail(mon, "not to be had here", fd);
	if (ioctl(fd, UFFDIO_API, &api)) {
		ret = uffd_fail(mon, "lacks events", -errno);
		goto err_close;
	}
	/* Repeated: on a loaded machine the test may time out. */
	do {
		ret = mrrc_uffd_test(fd);
	} while (ret == -ETIMEDOUT && --tries);
	if (ret) {
		uffd_fail(mon, "self-test of pending unmaps", ret);
		goto err_close;
	}
	uffd->fd = fd;
	uffd->tells = api.features & MRRC_UFFD_TELLS;
	uffd->spare = uffd->tells ? mrrc_uffd_spare() : -1;
	if (mrrc_fd_id(uffd->spare, &uffd->spare_id))
		uffd->spare = -1;
	return 0;

err_close:
	close(fd);
	return ret;
}

/*
 * The size of the parts of a mapping that are watched whole. Even without huge
 * pages, later misses in a part that is watched whole need no system call.
 */
static size_t uffd_whole(void)
{
	const size_t huge = mrrc_vm_transparent();

	return huge && huge <= MRRC_LIBC_HOOKS_CHUNK ? huge :
						       MRRC_LIBC_HOOKS_CHUNK;
}

static int uffd_open(struct mrrc_mon *mon)
{
	struct mrrc_uffd *uffd;
	int ret;

	uffd = calloc(1, sizeof(*uffd));
	if (!uffd)
		return -ENOMEM;
	ret = uffd_setup(mon, uffd);
	if (ret)
		goto err_free;
	/* not an eventfd: eventfds cannot be told apart */
	uffd->stop_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (uffd->stop_fd < 0) {
		ret = uffd_fail(mon, "socket", -errno);
		goto err_close;
	}
	ret = mrrc_fd_id(uffd->fd, &uffd->id);
	if (!ret)
		ret = mrrc_fd_id(uffd->stop_fd, &uffd->stop_id);
	if (ret)
		goto err_close_stop;
	ret = -pthread_mutex_init(&uffd->lock, NULL);
	if (ret)
		goto err_close_stop;
	pthread_mutex_init(&uffd->start_lock, NULL);
	sem_init(&uffd->ready, 0, 0);
	sem_init(&uffd->work, 0, 0);
	atomic_init(&uffd->examined, MRRC_UFFD_FIRST);
	uffd->huge = mrrc_vm_huge_page();
	mon->impl = uffd;
	if (uffd->tells)
		mon->huge.size = uffd_whole();
	return 0;

err_close_stop:
	close(uffd->stop_fd);
err_close:
	close(uffd->fd);
	if (uffd->spare >= 0)
		close(uffd->spare);
err_free:
	free(uffd);
	return ret;
}

/* Starts the monitor's threads once, in the thread that comes first. */
static int uffd_begin(struct mrrc_mon *mon)
{
	struct mrrc_uffd *uffd = mon->impl;
	int cancel, ret = 0;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&uffd->start_lock);
	if (!uffd->runs)
		ret = mrrc_uffd_read_start(mon);
	uffd->runs = !ret;
	pthread_mutex_unlock(&uffd->start_lock);
	pthread_setcancelstate(cancel, NULL);
	return ret;
}

static void uffd_close(struct mrrc_mon *mon)
{
	struct mrrc_uffd *uffd = mon->impl;

	if (!mrrc_mon_forked(mon)) {
		if (uffd->runs)
			mrrc_uffd_read_end(mon);
		pthread_mutex_destroy(&uffd->start_lock);
		sem_destroy(&uffd->work);
		sem_destroy(&uffd->ready);
		pthread_mutex_destroy(&uffd->lock);
	}
	/* the userfaultfd, or the file that replaced it */
	if (!mrrc_uffd_lost(uffd) || mrrc_fd_is(uffd->fd, &uffd->stop_id))
		close(uffd->fd);
	if (mrrc_fd_is(uffd->stop_fd, &uffd->stop_id))
		close(uffd->stop_fd);
	if (uffd_has_spare(uffd))
		close(uffd->spare);
	free(uffd);
}

struct mrrc_uffd_part {
	int fd;
	uintptr_t start, end;
};

static bool uffd_unregister_part(void *arg, const struct mrrc_mapping *mapping)
{
	const struct mrrc_uffd_part *part = arg;
	const uintptr_t start = mapping->start > part->start ? mapping->start :
							       part->start;
	const uintptr_t end = mapping->end < part->end ? mapping->end :
							 part->end;

	if (start < end)
		mrrc_uffd_unregister(part->fd, start, end - start);
	return mapping->end < part->end;
}

/*
 * If the kernel refuses one mapping, it does not unregister the others, either.
 */
static void uffd_unregister(const struct mrrc_uffd *uffd, uintptr_t start,
			    uintptr_t end)
{
	struct mrrc_uffd_part part = { uffd->fd, start, end };

	if (mrrc_uffd_unregister(uffd->fd, start, end - start) == -EINVAL)
		mrrc_mappings_each(uffd_unregister_part, &part);
}

/*
 * Is every page of the range mapped? msync(2) with MS_ASYNC fails otherwise,
 * and writes nothing back. libc's msync() would be a cancellation point.
 */
static bool uffd_mapped(uintptr_t start, size_t len)
{
	return !syscall(SYS_msync, start, len, MS_ASYNC);
}

/* Huge pages are watched whole. A refusal changes nothing. */
static int uffd_watch_huge(const struct mrrc_uffd *uffd, uintptr_t start,
			   size_t len)
{
	const uintptr_t mask = uffd->huge - 1;
	const uintptr_t lo = start & ~mask, hi = (start + len + mask) & ~mask;

	if (!uffd->huge || hi <= lo || hi - lo == len)
		return -EINVAL;
	return mrrc_uffd_register(uffd->fd, lo, hi - lo);
}

/*
 * Prepares a range whose first page was never written to. Most memory was
 * written to before it is watched, and asking the kernel takes as long as the
 * watch. So examines few ranges, until a range turns up that was not written
 * to. A mapping that should have been prepared only stays split after its
 * watch.
 */
static void uffd_prepare(struct mrrc_uffd *uffd, uintptr_t start)
{
	const uint64_t watch = atomic_fetch_add(&uffd->watches, 1);

	if (watch >= atomic_load(&uffd->examined) &&
	    mrrc_hash(watch) % MRRC_UFFD_SAMPLE)
		return;
	if (mrrc_uffd_written(start))
		return;
	atomic_store(&uffd->examined, watch + MRRC_UFFD_EXAMINED);
	if (uffd_has_spare(uffd))
		mrrc_uffd_prepare(uffd->fd, uffd->spare, start);
}

/*
 * Checks that the range has no holes, unless the range is a single mapping: the
 * kernel skips unmapped parts of a range, and does not watch mappings that are
 * made in these parts later.
 */
static int uffd_watch(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	struct mrrc_uffd *uffd = mon->impl;
	int ret;

	/*
	 * if fd's number was reused, another userfaultfd would get the events
	 */
	ret = mrrc_uffd_lost(uffd);
	if (ret)
		return ret;
	uffd_prepare(uffd, start);
	ret = mrrc_uffd_register(uffd->fd, start, len);
	if (!ret && uffd->tells && mrrc_uffd_anonymous(uffd->fd, start, len))
		return MRRC_MON_SEEN;
	if (ret == -EINVAL && uffd_mapped(start, len))
		ret = uffd_watch_huge(uffd, start, len);
	if (!ret && !uffd_mapped(start, len))
		ret = -EFAULT;
	return ret;
}

/*
 * uffd_prepare() may write to the range's first page, as the range is in use.
 */
static int uffd_widen(struct mrrc_mon *mon, uintptr_t start, uintptr_t lo,
		      uintptr_t hi)
{
	struct mrrc_uffd *uffd = mon->impl;
	const int ret = mrrc_uffd_lost(uffd);

	if (ret)
		return ret;
	uffd_prepare(uffd, start);
	return mrrc_uffd_register(uffd->fd, lo, hi - lo);
}

static bool uffd_one_mapping(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	const struct mrrc_uffd *uffd = mon->impl;

	return mrrc_uffd_anonymous(uffd->fd, start, len);
}

/*
 * Ignores errors: the kernel refuses to unwatch unmapped parts, and parts of
 * huge pages.
 */
static void uffd_unwatch(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	struct mrrc_uffd *uffd = mon->impl;

	if (!mrrc_uffd_lost(uffd))
		uffd_unregister(uffd, start, start + len);
}

static int uffd_check(struct mrrc_mon *mon)
{
	const struct mrrc_uffd *uffd = mon->impl;

	return mrrc_uffd_probe(uffd->fd);
}

static bool uffd_sees(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	return mrrc_vm_private(start, len);
}

const struct mrrc_mon_ops mrrc_mon_uffd_ops = {
	.name = "uffd",
	.hookable = true,
	.ask = MRRC_ASK_OTHERS,
	.lazy = true,
	.open = uffd_open,
	.begin = uffd_begin,
	.close = uffd_close,
	.watch = uffd_watch,
	.widen = uffd_widen,
	.one_mapping = uffd_one_mapping,
	.unwatch = uffd_unwatch,
	.drain = mrrc_uffd_drain,
	.settle = mrrc_uffd_settle,
	.post = mrrc_uffd_post,
	.check = uffd_check,
	.sees = uffd_sees,
	.stop = mrrc_uffd_stop,
};
