/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A library that unmaps by a system call of its own, with a constant number or,
 * with RAW_MEMORY, a number in writable memory.
 */
#include <stddef.h>
#include <sys/syscall.h>

#ifdef RAW_MEMORY
long raw_number = SYS_munmap;
#else
#define raw_number ((long) SYS_munmap)
#endif

long raw_munmap(void *ptr, size_t len);

__attribute__((visibility("default"))) long raw_munmap(void *ptr, size_t len)
{
#if defined(__x86_64__)
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(raw_number), "D"(ptr), "S"(len)
			 : "rcx", "r11", "memory");
	return ret;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = raw_number;
	register long x0 __asm__("x0") = (long) ptr;
	register long x1 __asm__("x1") = (long) len;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1) : "memory");
	return x0;
#else
	return -1;
#endif
}
