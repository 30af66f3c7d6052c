/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Drops privileges by plain system calls, so that no library is needed. */
#include "ft_mrrc.h"
#include "ft_priv.h"

#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* USERFAULTFD_IOC_NEW of /dev/userfaultfd, which older headers lack */
#define UFFD_IOC_NEW _IO(0xAA, 0x00)

void ft_drop_caps(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];

	memset(none, 0, sizeof(none));
	FT_CHECK(!syscall(SYS_capset, &head, none), "capset: %s",
		 strerror(errno));
}

static void filter(struct sock_filter *code, unsigned short len)
{
	const struct sock_fprog prog = { .len = len, .filter = code };

	FT_CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs: %s",
		 strerror(errno));
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		ft_skip("no seccomp filter here: %s", strerror(errno));
}

void ft_deny_uring(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	filter(code, sizeof(code) / sizeof(*code));
}

void ft_deny_uffd(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, UFFD_IOC_NEW, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	filter(code, sizeof(code) / sizeof(*code));
	/* valgrind has no userfaultfd to deny: ENOSYS */
	errno = 0;
	FT_CHECK(syscall(SYS_userfaultfd, 0) == -1 &&
			 (errno == EPERM || errno == ENOSYS),
		 "userfaultfd is not denied: %s", strerror(errno));
}
