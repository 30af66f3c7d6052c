/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* userfaultfd calls without the monitor's state (uffd.h). */
#include "config.h"
#include "sys/monitor/uffd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/userfaultfd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
#ifndef UFFDIO_REGISTER_MODE_MINOR
#define UFFDIO_REGISTER_MODE_MINOR ((uint64_t) 1 << 2)
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#include "sys/base/raw.h"
#include "sys/base/threads.h"
#include "sys/base/vm.h"

#define MRRC_UFFD_PATIENCE 1000 /* ms the self-test may wait */

int mrrc_uffd_new(void)
{
	const int flags = O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY;
	int dev, fd, ret;

	fd = syscall(SYS_userfaultfd, flags);
	if (fd >= 0)
		return fd;
	ret = -errno;
	/* tools that do not know the call return ENOSYS */
	dev = ret == -EPERM ? open("/dev/userfaultfd", O_RDWR | O_CLOEXEC) : -1;
	if (dev < 0)
		return ret;
	fd = ioctl(dev, USERFAULTFD_IOC_NEW, flags);
	close(dev);
	return fd < 0 ? ret : fd;
}

int mrrc_uffd_probe(int fd)
{
	struct uffdio_writeprotect wp = { .range.len = 0 };
	const long ret = mrrc_raw(SYS_ioctl, fd, (long) UFFDIO_WRITEPROTECT,
				  (long) &wp, 0, 0, 0);

	if (!ret)
		return -EPROTO;
	return ret == -EINVAL ? 0 : ret;
}

static int uffd_register(int fd, uintptr_t start, size_t len, uint64_t mode)
{
	struct uffdio_register reg = {
		.range = { .start = start, .len = len },
		.mode = mode,
	};

	return ioctl(fd, UFFDIO_REGISTER, &reg) ? -errno : 0;
}

int mrrc_uffd_register(int fd, uintptr_t start, size_t len)
{
	return uffd_register(fd, start, len, UFFDIO_REGISTER_MODE_WP);
}

int mrrc_uffd_unregister(int fd, uintptr_t start, size_t len)
{
	struct uffdio_range range = { .start = start, .len = len };

	return ioctl(fd, UFFDIO_UNREGISTER, &range) ? -errno : 0;
}

bool mrrc_uffd_anonymous(int fd, uintptr_t start, size_t len)
{
#ifdef UFFDIO_CONTINUE
	struct uffdio_continue minor = {
		.range = { .start = start, .len = len },
		.mode = UFFDIO_CONTINUE_MODE_DONTWAKE,
	};

	return ioctl(fd, UFFDIO_CONTINUE, &minor) && errno == EINVAL;
#else
	return false;
#endif
}

int mrrc_uffd_spare(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	const int fd = mrrc_uffd_new();

	if (fd < 0 || !ioctl(fd, UFFDIO_API, &api))
		return fd;
	close(fd);
	return -1;
}

bool mrrc_uffd_written(uintptr_t start)
{
	void *page = (void *) start;
	unsigned char present;
	int node = -1;

	/*
	 * containers may refuse move_pages(2); then the kernel's page of zeros
	 * counts as written
	 */
	if (!mrrc_raw(SYS_move_pages, 0, 1, (long) &page, 0, (long) &node, 0))
		return node >= 0;
	return !mincore(page, mrrc_vm_page(), &present) && present & 1;
}

/*
 * Is the page at @start, which no userfaultfd watches, private memory without a
 * file? The kernel lets @spare watch private memory, shmem and huge pages for
 * writes; then it refuses to let @fd watch private memory for minor faults as
 * unfit (EINVAL), and the other kinds as watched by another userfaultfd.
 */
static bool uffd_private(int fd, int spare, uintptr_t start)
{
	const size_t page = mrrc_vm_page();
	int ret;

	if (mrrc_uffd_register(spare, start, page))
		return false;
	ret = uffd_register(fd, start, page, UFFDIO_REGISTER_MODE_MINOR);
	if (!ret)
		/* another mapping is there by now */
		mrrc_uffd_unregister(fd, start, page);
	mrrc_uffd_unregister(spare, start, page);
	return ret == -EINVAL;
}

void mrrc_uffd_prepare(int fd, int spare, uintptr_t start)
{
	if (uffd_private(fd, spare, start))
		madvise((void *) start, mrrc_vm_page(), MADV_POPULATE_WRITE);
}

/* ---- self-test: two changes under way, one event read: still busy ---- */

struct mrrc_uffd_unmapper {
	void *page;
	pthread_t thread;
	atomic_bool done;
};

static void *uffd_unmapper_run(void *arg)
{
	struct mrrc_uffd_unmapper *un = arg;

	/*
	 * Replaces the mapping with another mapping, not with a hole, in which
	 * other threads could map memory.
	 */
	mmap(un->page, mrrc_vm_page(), PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	atomic_store(&un->done, true);
	return NULL;
}

/* Is the mapping gone? Its page was present; its replacement has no pages. */
static bool uffd_unmapped(struct mrrc_uffd_unmapper *un)
{
	unsigned char vec;

	return !mincore(un->page, mrrc_vm_page(), &vec) && !(vec & 1);
}

static int uffd_read_one(int fd)
{
	struct uffd_msg msg;

	return read(fd, &msg, sizeof(msg)) == sizeof(msg) &&
			       msg.event == UFFD_EVENT_UNMAP ?
		       0 :
		       -EPROTO;
}

/* Two unmappers sleep on @fd. Each step has a deadline. */
static int uffd_test_steps(int fd, struct mrrc_uffd_unmapper *un)
{
	struct timespec nap = { .tv_nsec = 100000 };
	int left = MRRC_UFFD_PATIENCE * 10;

	while (!uffd_unmapped(&un[0]) || !uffd_unmapped(&un[1])) {
		if (!left--)
			return -ETIMEDOUT;
		nanosleep(&nap, NULL);
	}
	/* The mappings are gone; the events follow at once. */
	while (uffd_read_one(fd)) {
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
	while (uffd_read_one(fd)) {
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

/* Unmaps a page without waiting for a reader, whether it is watched or not. */
static void uffd_test_unmap(int fd, void *page)
{
	const size_t len = mrrc_vm_page();

	mrrc_uffd_unregister(fd, (uintptr_t) page, len);
	munmap(page, len);
}

/* Whatever the result of the test, no thread waits on @fd afterwards. */
static int uffd_test_run(int fd, struct mrrc_uffd_unmapper *un)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	int ret = 0;
	int started;
	int i;

	for (started = 0; started < 2 && !ret; started += !ret)
		ret = mrrc_thread_start(&un[started].thread, MRRC_UFFD_STACK,
					uffd_unmapper_run, &un[started]);
	if (!ret)
		ret = uffd_test_steps(fd, un);
	for (i = 0; i < started; i++) {
		while (!atomic_load(&un[i].done)) {
			poll(&poll_fd, 1, 1);
			uffd_read_one(fd);
		}
		mrrc_thread_join(un[i].thread);
	}
	for (i = 0; i < 2; i++)
		uffd_test_unmap(fd, un[i].page);
	return ret;
}

int mrrc_uffd_test(int fd)
{
	const size_t page = mrrc_vm_page();
	struct mrrc_uffd_unmapper un[2] = { 0 };
	int ret;
	int i;

	for (i = 0; i < 2; i++) {
		un[i].page = mmap(NULL, page, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (un[i].page == MAP_FAILED) {
			ret = -errno;
			goto err_unmap;
		}
		*(volatile char *) un[i].page = 1;
		ret = mrrc_uffd_register(fd, (uintptr_t) un[i].page, page);
		if (ret) {
			i++;
			goto err_unmap;
		}
	}
	return uffd_test_run(fd, un);

err_unmap:
	while (i--)
		uffd_test_unmap(fd, un[i].page);
	return ret;
}
