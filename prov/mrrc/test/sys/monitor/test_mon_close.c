/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/monitor/mon in programs that close every descriptor, the monitor's
 * included, and use the numbers for files of their own; and in programs whose
 * threads unmap as they end. Each test runs in a child with a monitor of its
 * own.
 */
#include "config.h"
#include "test/case.h"

#include <fcntl.h>
#include <mqueue.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <linux/userfaultfd.h>

#include "test/fakes/fault.h"
#include "test/sys/monitor/mon_fixture.h"

/* Maps and watches a page in a child with its own monitor; NULL: impossible. */
static char *map_watched(void)
{
	char *ptr;

	mon_setup();
	ptr = mon_map(1);
	return mon && !mon_watch(ptr, 1) ? ptr : NULL;
}

/* A program closes every descriptor, the monitor's included. */
static int close_everything(void)
{
	char *ptr = map_watched();
	int fd;

	if (!ptr)
		return 1;
	for (fd = 3; fd < 64; fd++)
		close(fd);
	for (fd = 3; fd < 64; fd++) {
		if (memfd_create("mine", 0) != fd)
			return 2;
	}
	/* Files that the monitor does not know have the numbers now. */
	if (mrrc_mon_check(mon) != -ENODEV || mrrc_mon_works(mon))
		return 3;
	munmap(ptr, mon_page);
	for (fd = 3; fd < 64; fd++) {
		if (lseek(fd, 0, SEEK_END))
			return 4;
	}
	return 0;
}

/* Gives all numbers to @file, which itself has a higher number. */
static void take_numbers(int file)
{
	int fd;

	for (fd = 3; fd < 64; fd++)
		dup2(file, fd);
}

static bool numbers_taken(int file)
{
	struct stat is, was;
	int fd;

	fstat(file, &was);
	for (fd = 3; fd < 64; fd++) {
		if (fstat(fd, &is) || is.st_ino != was.st_ino)
			return false;
	}
	return true;
}

static bool mon_fails(void)
{
	return comes(!mrrc_mon_works(mon));
}

/* A program reuses the closed numbers for a pipe that has data. */
static int close_and_reuse(void)
{
	char data[4096] = "", *ptr = map_watched();
	int end[2];

	if (!ptr)
		return 1;
	if (pipe(end) || fcntl(end[0], F_DUPFD, 64) != 64 ||
	    write(end[1], data, sizeof(data)) != sizeof(data))
		return 2;
	take_numbers(64);
	/* The reader still sleeps on the userfaultfd. */
	munmap(ptr, mon_page);
	if (!mon_fails())
		return 3;
	return read(64, data, sizeof(data)) == sizeof(data) ? 0 : 4;
}

/* A program reuses the closed numbers for a pipe without data. */
static int close_and_idle(void)
{
	char *ptr = map_watched();
	int end[2];

	if (!ptr)
		return 1;
	if (pipe(end) || fcntl(end[0], F_DUPFD, 64) != 64 ||
	    fcntl(end[1], F_DUPFD, 65) != 65)
		return 2;
	take_numbers(64);
	munmap(ptr, mon_page);
	if (!mon_fails())
		return 3;
	return numbers_taken(64) ? 0 : 4;
}

/* A program reuses the closed numbers for a userfaultfd of its own. */
static int close_and_watch(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	char *ptr = map_watched(), *other;
	int fd;

	if (!ptr)
		return 1;
	other = mon_map(1);
	fd = syscall(SYS_userfaultfd, O_NONBLOCK | 1 /* UFFD_USER_MODE_ONLY */);
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
	    fcntl(fd, F_DUPFD, 64) != 64)
		return 2;
	take_numbers(64);
	if (!mon_watch(other, 1))
		return 3;
	munmap(ptr, mon_page);
	if (!mon_fails())
		return 4;
	return numbers_taken(64) ? 0 : 5;
}

/* A program reuses the number of the descriptor that stops the reader. */
static int close_and_stop(void)
{
	uint64_t value;

	mon_setup();
	if (!mon || fcntl(eventfd(0, EFD_NONBLOCK), F_DUPFD, 64) != 64)
		return 1;
	take_numbers(64);
	mon_teardown();
	if (read(64, &value, sizeof(value)) > 0)
		return 2;
	return numbers_taken(64) ? 0 : 3;
}

static int (*const closers[])(void) = {
	close_everything, close_and_reuse, close_and_idle,
	close_and_watch,  close_and_stop,
};

static int fresh_child(int (*run)(void))
{
	int ret;

	/* The child may hang in the kernel forever. */
	end_in(60);
	ret = run();
#ifndef __SANITIZE_ADDRESS__ /* its checks take cancelled threads for errors */
	mon_teardown();
#endif
	return ret;
}

/* Runs @run in a child that is forked without a thread of a monitor. */
static void in_fresh_child(int (*run)(void))
{
	mon_setup();
	need_uffd();
	mon_teardown();
	expect_child(fresh_child(run));
}

TEST_CASE(mon_close, NULL, NULL);

EACH_TEST(test_closed, closers)
{
	in_fresh_child(closers[_i]);
}

static char *leftovers;
static atomic_uint left;

/* Each thread unmaps a page of its own. */
static void unmap_leftover(void)
{
	if (leftovers)
		munmap(leftovers + atomic_fetch_add(&left, 1) * mon_page,
		       mon_page);
}

static int close_unmapping(void)
{
	fault_at_thread_end(unmap_leftover);
	mon_setup();
	leftovers = mon_map(8);
	if (mrrc_mon_watch(mon, (uintptr_t) leftovers, 8 * mon_page,
			   &mon_token))
		return 2;
	mon_teardown();
	return atomic_load(&left) ? 0 : 3;
}

/* The monitor's own threads unmap watched memory as they end. */
TEST(test_close_unmaps)
{
	in_fresh_child(close_unmapping);
}

/*
 * For the kernel, a monitor that opens or closes must not close a file of the
 * application: the kernel would then end the queue's notification.
 */
TEST(test_no_flush)
{
	struct sigevent quiet = { .sigev_notify = SIGEV_NONE };
	char name[32];
	mqd_t queue;

#ifdef __SANITIZE_THREAD__
	skip("it takes clone(2) for fork(2)");
#endif
	snprintf(name, sizeof(name), "/mrrc-%d", (int) getpid());
	queue = mq_open(name, O_RDONLY | O_CREAT | O_EXCL, 0600, NULL);
	if (queue == (mqd_t) -1)
		skip("no message queues here");
	mq_unlink(name);
	ck_assert_int_eq(mq_notify(queue, &quiet), 0);
	mon_setup();
	need_uffd();
	/* The reader begins with the first watch. */
	ck_assert_int_eq(mon_watch(mon_map(1), 1), 0);
	mon_teardown();
	ck_assert_int_eq(mq_notify(queue, &quiet), -1);
	ck_assert_int_eq(errno, EBUSY);
	mq_close(queue);
}

/* The reader keeps no file open but the monitor's. */
TEST(test_end_of_pipe)
{
	int ends[2];
	char byte;

	ck_assert_int_eq(pipe2(ends, O_NONBLOCK), 0);
	mon_setup();
	need_uffd();
	ck_assert_int_eq(mon_watch(mon_map(1), 1), 0);
	close(ends[1]);
	ck_assert_int_eq(read(ends[0], &byte, 1), 0);
	close(ends[0]);
	mon_teardown();
}
