/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A library that enters the kernel without libc. The system call is munmap;
 * with RAW_BRK the system call is brk, with RAW_GETPID getpid, with RAW_FUTURE
 * a number that no kernel has yet. With RAW_LINKED the library makes no system
 * call, but needs another such library. With RAW_BRK the library calls raw_unload
 * when it is unloaded.
 */
#if defined(__x86_64__) || defined(__aarch64__)

#ifdef __x86_64__
#define KIND   "@function\n"
#define NUMBER "mov $"
#define TO     ", %eax\n"
#define KERNEL "syscall\n"
#define FUTURE 4095
#define GETPID 39
#define BRK    12
#define MUNMAP 11
#else
#define KIND   "%function\n"
#define NUMBER "mov x8, #"
#define TO     "\n"
#define KERNEL "svc #0\n"
#define FUTURE 4095
#define GETPID 172
#define BRK    214
#define MUNMAP 215
#endif

#define TEXT(number) #number
#define SITE(name, number)                                       \
	__asm__(".text\n"                                        \
		".p2align 5\n"                                   \
		".globl " name "\n"                              \
		".type " name ", " KIND name ":\n"               \
		".cfi_startproc\n" NUMBER TEXT(number) TO KERNEL \
		"	ret\n"                                         \
		".cfi_endproc\n"                                 \
		".size " name ", . - " name "\n")

#if defined(RAW_FUTURE)
SITE("raw_future", FUTURE);
#elif defined(RAW_GETPID)
SITE("raw_getpid", GETPID);
#elif defined(RAW_LINKED)
extern char raw_munmap[];
extern void *raw_linked;
void *raw_linked = raw_munmap;
#elif defined(RAW_BRK)
SITE("raw_brk", BRK);

extern __attribute__((visibility("default"))) void (*raw_unload)(void);
void (*raw_unload)(void);

static __attribute__((destructor)) void unload(void)
{
	if (raw_unload)
		raw_unload();
}
#else
SITE("raw_munmap", MUNMAP);
#endif

#else
extern int raw_no_code;
int raw_no_code;
#endif
