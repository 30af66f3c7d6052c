/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A system call by an instruction of its own (duel.h), in a file of its own:
 * the provider asks the kernel where such code is.
 */
#include "test/race/duel.h"

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <unistd.h>
#endif

__attribute__((visibility("default"))) long
duel_raw(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10),
			   "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
#elif defined(__aarch64__)
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
	return syscall(number, a, b, c, d, e, f);
#endif
}
