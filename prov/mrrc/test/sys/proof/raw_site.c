/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A library that enters the kernel without libc. The system call is munmap; with
 * RAW_BRK it is brk, with RAW_FUTURE a number that no kernel has yet. With
 * RAW_GOTO it seems to be getpid: a jump by a table of addresses leads between
 * the number and the call, as compilers make it of a computed goto. With
 * RAW_LINKED there is none, but another such library is needed.
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
SITE("raw_getpid", 39);
#elif defined(RAW_GOTO)
__asm__(".text\n"
	".globl raw_goto\n"
	".type raw_goto, @function\nraw_goto:\n"
	".cfi_startproc\n"
	"	mov $11, %eax\n"
	"	lea 3f(%rip), %rcx\n"
	"	jmp *(%rcx, %rdx, 8)\n"
	"1:	mov $39, %eax\n"
	"2:	syscall\n"
	"	ret\n"
	".cfi_endproc\n"
	".size raw_goto, . - raw_goto\n"
	".section .data.rel.ro, \"aw\"\n"
	".p2align 3\n"
	"3:	.quad 1b, 2b\n"
	".text\n");
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
