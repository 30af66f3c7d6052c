/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A library that enters the kernel without libc. The system call is munmap; with
 * RAW_BRK it is brk, with RAW_GETPID getpid, with RAW_FUTURE a number that no kernel
 * has yet. With RAW_LINKED there is none, but another such library is needed.
 */
#ifdef __x86_64__

#define SITE(name, number)                               \
	__asm__(".text\n"                                \
		".p2align 5\n"                           \
		".globl " name "\n"                      \
		".type " name ", @function\n" name ":\n" \
		".cfi_startproc\n"                       \
		"	mov $" #number ", %eax\n"        \
		"	syscall\n"                             \
		"	ret\n"                                 \
		".cfi_endproc\n"                         \
		".size " name ", . - " name "\n")

#if defined(RAW_FUTURE)
SITE("raw_future", 4095);
#elif defined(RAW_GETPID)
SITE("raw_getpid", 39);
#elif defined(RAW_LINKED)
extern char raw_munmap[];
extern void *raw_linked;
void *raw_linked = raw_munmap;
#elif defined(RAW_BRK)
SITE("raw_brk", 12);
#else
SITE("raw_munmap", 11);
#endif

#else
extern int raw_no_code;
int raw_no_code;
#endif
