/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/proof/code: the numbers of system calls, in hand-assembled functions. The
 * decoder never reports a number for a site whose number is unknown.
 */
#include "config.h"
#include "test/case.h"

#include "test/sys/proof/code_fixture.h"

#ifdef HAVE_ZYDIS

/* ---- one system call ---- */

#define MOV_9 0xb8, 9, 0, 0, 0 /* mov $9, %eax */
#define CALL  0x0f, 0x05

static const struct elf_one ones[] = {
	ELF_ONE(5, 11, 0xb8, 11, 0, 0, 0, CALL, 0xc3),
	/* mov $15, %rax; REX.W syscall */
	ELF_ONE(7, 15, 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x48, CALL),
	/* xor %eax, %eax */
	ELF_ONE(2, 0, 0x31, 0xc0, CALL, 0xc3),
	/* mov $202, %r12d, which a call keeps; mov %r12d, %eax */
	ELF_ONE(14, 202, 0x41, 0xbc, 0xca, 0, 0, 0, 0xe8, 0, 1, 0, 0, 0x44,
		0x89, 0xe0, CALL, 0xc3),
	/* mov $202, %edx; jmp 1f; nop; 2: mov (%rdi), %ecx; 1: ...; jne 2b */
	ELF_ONE(14, 202, 0xba, 0xca, 0, 0, 0, 0xeb, 5, 0x0f, 0x1f, 0x00, 0x8b,
		0x0f, 0x89, 0xd0, CALL, 0x75, 0xf8, 0xc3),
	/* je over a lock prefix, as libc has them: lock; 1: incl (%rdi) */
	ELF_ONE(10, 9, MOV_9, 0x74, 1, 0xf0, 0xff, 0x07, CALL, 0xc3),
	/* As unwinding of signals does: call 1f; ret; 1: pop %rcx */
	ELF_ONE(12, 9, MOV_9, 0xe8, 1, 0, 0, 0, 0xc3, 0x59, CALL, 0xc3),

	ELF_ONE(0, ANY, CALL),				/* an argument */
	ELF_ONE(2, ANY, 0x8b, 0x07, CALL),		/* memory */
	ELF_ONE(7, ANY, MOV_9, 0x01, 0xf8, CALL),	/* add */
	ELF_ONE(7, ANY, MOV_9, 0xb0, 1, CALL),		/* al */
	ELF_ONE(8, ANY, MOV_9, 0x0f, 0x44, 0xc7, CALL), /* cmove */
	ELF_ONE(7, ANY, MOV_9, 0x0f, 0xa2, CALL),	/* cpuid */
	ELF_ONE(6, ANY, MOV_9, 0x93, CALL),		/* xchg */
	ELF_ONE(1, ANY, 0x58, CALL),			/* pop */
	ELF_ONE(2, ANY, 0x31, 0xf8, CALL),		/* xor edi */
	ELF_ONE(3, ANY, 0x83, 0xc8, 0xff, CALL),	/* or -1 */
	ELF_ONE(5, ANY, 0xb8, 0xff, 0xff, 0xff, 0xff, CALL),
	ELF_ONE(5, ANY, 0xb8, 9, 0, 0, 0x80, CALL),
	/* a number of the x32 ABI, which no kernel has */
	ELF_ONE(5, 0x40000009, 0xb8, 9, 0, 0, 0x40, CALL),
	ELF_ONE(4, ANY, 0x66, 0xb8, 9, 0, CALL),	 /* ax */
	ELF_ONE(10, ANY, MOV_9, 0xe8, 0, 1, 0, 0, CALL), /* call */
	ELF_ONE(8, ANY, MOV_9, 0xcd, 0x81, 0x58, CALL),
	/* A call does not keep %r8d: mov $202, %r8d; call; mov %r8d, %eax */
	ELF_ONE(14, ANY, 0x41, 0xb8, 0xca, 0, 0, 0, 0xe8, 0, 1, 0, 0, 0x44,
		0x89, 0xc0, CALL, 0xc3),
	/* Two paths lead to the call: a je goes past the mov. */
	ELF_ONE(9, ANY, 0x85, 0xff, 0x74, 5, MOV_9, CALL, 0xc3),
	/* A loop comes back: 1: mov %edx, %eax; syscall; ...; jmp */
	ELF_ONE(7, ANY, 0xba, 9, 0, 0, 0, 0x89, 0xd0, CALL, 0x8b, 0x17, 0xeb,
		0xf8),
	/* Something may lead to mov: je 1f; ret; mov %edi, %edi; 1: syscall */
	ELF_ONE(10, ANY, MOV_9, 0x74, 3, 0xc3, 0x89, 0xff, CALL, 0xc3),
	/* A je leads into mov $1, %ecx, whose effect is unknown then. */
	ELF_ONE(12, ANY, MOV_9, 0x74, 1, 0xb9, 1, 0, 0, 0, CALL, 0xc3),
};

TEST_CASE(code_number, elf_setup, elf_teardown);

EACH_TEST(test_one, ones)
{
	elf_one(&ones[_i]);
	ck_assert_uint_eq(elf.counts.instructions, 1);
}

/* The pair is inside another instruction. */
TEST(test_inside)
{
	elf_one(&(struct elf_one) ELF_ONE(0, NONE, 0xb8, CALL, 0, 0, 0xc3));
	ck_assert_uint_eq(elf.counts.instructions, 0);
}

/* ---- several system calls, and other instructions ---- */

static const struct {
	struct elf_one code; /* number: that of the second call */
	long first;
} twos[] = {
	/* The first call clobbers %ecx: mov $202, %ecx; xor %eax, %eax */
	{ ELF_ONE(0, ANY, 0xb9, 0xca, 0, 0, 0, 0x31, 0xc0, CALL, 0x89, 0xc8,
		  CALL, 0xc3),
	  0 },
	/* The second call passes the result of the first one. */
	{ ELF_ONE(0, ANY, MOV_9, CALL, CALL, 0xc3), 9 },
	/* These are int $0x80 and sysenter. */
	{ ELF_ONE(0, ANY, MOV_9, 0xcd, 0x80, MOV_9, 0x0f, 0x34, 0xc3), ANY },
};

EACH_TEST(test_two, twos)
{
	elf_put(&elf, 0x100, twos[_i].code.code, twos[_i].code.len);
	elf_function(&elf, 0x100, twos[_i].code.len, false);
	elf_look(&elf);
	ck_assert_int_eq(elf.ret, 0);
	ck_assert_uint_eq(elf.sites, 2);
	ck_assert_int_eq(elf.site[0].number, twos[_i].first);
	ck_assert_int_eq(elf.site[1].number, twos[_i].code.number);
	ck_assert_uint_eq(elf.counts.instructions, 2);
}

TEST(test_two_paths)
{
	elf_code(&elf, 0x100, 0x85, 0xff, 0x74, 7, 0xb8, 1, 0, 0, 0, 0xeb, 5,
		 0xb8, 2, 0, 0, 0, 0x0f, 0x05, 0xc3);
	elf_is(&elf, 1, 0x110, ANY);
	elf_bytes(&elf, 0x10c, 1);
	elf_is(&elf, 1, 0x110, 1);
	ck_assert_uint_eq(elf.counts.instructions, 1);
}

/* A call of a function that never returns does not lose the number. */
TEST(test_no_return)
{
	/* mov $202, %r8d; jmp 2f; 1: call; 2: mov %r8d, %eax; syscall */
	elf_code(&elf, 0x100, 0x41, 0xb8, 0xca, 0, 0, 0, 0x74, 5, 0xe8, 0xf3, 0,
		 0, 0, 0x44, 0x89, 0xc0, 0x0f, 0x05, 0xc3);
	elf_bytes(&elf, 0x200, 0x90, 0xeb, 0xfd, 0xc3);
	elf_function(&elf, 0x200, 3, false);
	elf_is(&elf, 1, 0x110, 202);
	elf_bytes(&elf, 0x201, 0x74); /* a branch, with a return behind */
	elf_is(&elf, 1, 0x110, ANY);
	elf_bytes(&elf, 0x200, 0xc3);
	elf_is(&elf, 1, 0x110, ANY);
	elf_bytes(&elf, 0x200, 0x90, 0xff, 0xe0);
	elf_is(&elf, 1, 0x110, ANY);
	/* The called function jumps to another function. */
	elf_bytes(&elf, 0x200, 0x90, 0xeb, 0x0e);
	elf_is(&elf, 1, 0x110, ANY);
}

#endif /* HAVE_ZYDIS */
