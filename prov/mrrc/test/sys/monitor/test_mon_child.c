/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/monitor/mon in other processes: forked children, processes without
 * permission for userfaultfd, and unprivileged processes.
 */
#include "config.h"
#include "test/case.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "test/sys/monitor/mon_fixture.h"
#include "sys/monitor/uffd.h"

/* USERFAULTFD_IOC_NEW of /dev/userfaultfd, missing in older headers */
#define UFFD_IOC_NEW _IO(0xAA, 0x00)

/* Checks in a child that a monitor of its own works from open to close. */
static int try_new_monitor(void)
{
	struct mon_probe own;
	struct mrrc_mon *fresh;
	char *ptr;

	if (!CHILD_MAY_THREAD)
		return 0;
	mon_probe_init(&own);
	if (mrrc_mon_open("uffd", NULL, &fresh))
		return 10;
	mrrc_mon_subscribe(fresh, &own.sub);
	ptr = mmap(NULL, mon_page, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mrrc_mon_watch(fresh, (uintptr_t) ptr, mon_page, &mon_token))
		return 11;
	munmap(ptr, mon_page);
	mrrc_mon_drain(fresh);
	if (atomic_load(&own.count) != 1)
		return 12;
	mrrc_mon_unsubscribe(fresh, &own.sub);
	mrrc_mon_close(fresh);
	return 0;
}

static int in_child(char *ptr)
{
	if (mrrc_mon_works(mon) || !mrrc_mon_forked(mon))
		return 1;
	if (mrrc_mon_check(mon) != -ENODEV)
		return 2;
	munmap(ptr, mon_page); /* there is no event and no thread to wait for */
	mrrc_mon_unsubscribe(mon, &mon_probe.sub);
	mrrc_mon_close(mon);
	return try_new_monitor();
}

TEST_CASE(mon_child, mon_setup, mon_teardown);

TEST(test_fork)
{
	char *ptr = mon_map(4);

	need_uffd();
	ck_assert_int_eq(mon_watch(ptr, 4), 0);
	expect_child(in_child(ptr));
	/* The parent has lost no event. */
	ck_assert(mrrc_mon_works(mon));
	ck_assert_uint_eq(mon_events(), 0);
	munmap(ptr, 4 * mon_page);
	ck_assert_uint_eq(mon_events(), 1);
	ck_assert(mon_told(ptr, 4));
}

static int close_in_child(void)
{
	end_in(60);
	if (mrrc_mon_works(mon))
		return 1;
	mrrc_mon_unsubscribe(mon, &mon_probe.sub);
	mrrc_mon_close(mon);
	return 0;
}

/* A child is forked while another thread keeps the monitor busy. */
TEST(test_fork_busy)
{
	atomic_bool stop = false;
	pthread_t thread;
	int i, status = 0;
	pid_t pid;

	need_uffd();
	ck_assert_int_eq(pthread_create(&thread, NULL, mon_churn, &stop), 0);
	for (i = 0; i < 20 && !status; i++) {
		pid = fork();
		if (!pid)
			_exit(close_in_child());
		waitpid(pid, &status, 0);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	ck_assert_int_eq(status, 0);
	ck_assert(mrrc_mon_works(mon));
}

/* A child is forked while another thread holds the monitor's lock. */
TEST(test_fork_locked)
{
	pid_t pid;

	need_uffd();
	mon_hold(&mon->lock);
	pid = fork();
	if (!pid)
		_exit(close_in_child());
	mon_hold_end();
	expect_ended(pid);
}

/* From now on, /dev/userfaultfd is denied, too. */
static int deny_device(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, UFFD_IOC_NEW, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {
		.len = sizeof(filter) / sizeof(filter[0]),
		.filter = filter,
	};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

/* If only the system call is denied, the device gives a userfaultfd. */
static int by_device(void)
{
	struct mrrc_mon *own;

#ifdef __SANITIZE_THREAD__
	return 0; /* a child of several threads may not start one there */
#endif
	if (access("/dev/userfaultfd", R_OK | W_OK) ||
	    (syscall(SYS_userfaultfd, 0) < 0 && errno != EPERM))
		return 0;
	if (mrrc_mon_open("uffd", NULL, &own))
		return 5;
	mrrc_mon_close(own);
	return 0;
}

static int in_denied_child(void)
{
	char why[MRRC_MON_REASON];
	struct mrrc_mon *other;
	int ret;

	if (!kernel_answers(SYS_userfaultfd, EPERM))
		return 1;
	ret = by_device();
	if (ret)
		return ret;
	if (deny_device())
		return 1;
	/* Valgrind knows no userfaultfd. */
	ret = mrrc_mon_open("uffd", why, &other);
	if ((ret != -EPERM && ret != -ENOSYS) || !why[0])
		return 2;
	/* The reason names what the user can do. */
	if (ret == -EPERM && (!strstr(why, "seccomp profile") ||
			      !strstr(why, "/dev/userfaultfd")))
		return 6;
	if (mrrc_mon_open(MRRC_MON_AUTO, why, &other))
		return 3;
	if (strcmp(mrrc_mon_name(other), "none") || !why[0])
		return 4;
	mrrc_mon_close(other);
	return 0;
}

TEST(test_denied)
{
	expect_child(in_denied_child());
}

/* Only one answer of the kernel means that memory is quiet. */
LOOP_TEST(test_probe_answers, 0, 4)
{
	static const struct {
		int kernel, probe;
	} answers[] = {
		{ EINVAL, 0 },
		{ EAGAIN, -EAGAIN },
		{ EPERM, -EPERM },
		{ 0, -EPROTO },
	};

	expect_child(!kernel_answers(SYS_ioctl, answers[_i].kernel) ||
		     mrrc_uffd_probe(0) != answers[_i].probe);
}

/*
 * userfaultfd opens where the kernel has it; otherwise all tests would be
 * skipped unnoticed.
 */
TEST(test_opens)
{
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* user mode only */);
	int major = 0, minor = 0;
	struct utsname name;

	close(fd);
	uname(&name);
	sscanf(name.release, "%d.%d", &major, &minor);
	ck_assert(mon || fd < 0 || major < 5 || (major == 5 && minor < 15));
}

static int in_unprivileged_child(void)
{
	if (setresuid(65534, 65534, 65534))
		return 1;
	/* Without this call, /proc/self belongs to root. */
	prctl(PR_SET_DUMPABLE, 1);
	return try_new_monitor();
}

TEST(test_unprivileged)
{
	need_uffd();
	if (geteuid())
		skip("not privileged to begin with");
	expect_child(in_unprivileged_child());
}
