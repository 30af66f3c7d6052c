/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Makes a short system call without libc: libc's syscall() is hooked
 * (hooks/libc_hooks.h), and setting errno takes a third of the time of a short
 * system call.
 */
#ifndef MRRC_RAW_H
#define MRRC_RAW_H

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))
#define MRRC_RAW 1 /* the kernel's structures are libc's, too */
#else
#define MRRC_RAW 0
#endif

/*
 * Returns -E* on failure; errno may change. Inlined, so that the number is a
 * constant beside the system-call instruction, from which sys/proof tells what
 * the instruction does.
 */
static inline __attribute__((always_inline)) long
mrrc_raw(long number, long a, long b, long c, long d, long e, long f)
{
#if MRRC_RAW && defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10),
			   "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
#elif MRRC_RAW
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#else
	const long ret = syscall(number, a, b, c, d, e, f);

	return ret < 0 ? -errno : ret;
#endif
}

#endif /* MRRC_RAW_H */
