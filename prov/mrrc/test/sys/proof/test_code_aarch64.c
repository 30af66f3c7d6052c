/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/proof/code_aarch64: system calls in hand-assembled code for 64-bit ARM,
 * on any machine. The decoder never reports a number for a call whose number is
 * unknown.
 */
#include "config.h"
#include "test/case.h"

#include "test/sys/proof/code_fixture.h"

#define SVC	0xd4000001u
#define MOV(nr) (0xd2800008u | (nr) << 5) /* mov x8, #nr */
#define RET	0xd65f03c0u
#define NOP	0xd503201fu
#define WORDS	10

static struct code_elf arm;

static void arm_setup(void)
{
	elf_open(&arm, EM_AARCH64);
}

static void arm_teardown(void)
{
	elf_close(&arm);
}

TEST_CASE(code_aarch64, arm_setup, arm_teardown);

/* A function whose word @at is its only svc. */
struct arm_one {
	long number;
	size_t at;
	uint32_t code[WORDS];
};

static const struct arm_one ones[] = {
	{ 98, 1, { MOV(98), SVC, RET } },
	{ 98, 1, { 0x52800c48, SVC, RET } },	   /* mov w8, #98 */
	{ 98, 1, { MOV(98), SVC | 7 << 5, RET } }, /* svc #7 */
	/* instructions that leave x8 as it is */
	{ 98, 2, { MOV(98), NOP, SVC } },
	{ 98, 2, { MOV(98), 0xd28010e0, SVC } }, /* mov x0, #135 */
	{ 98, 2, { MOV(98), 0xaa0803e0, SVC } }, /* mov x0, x8 */
	{ 98, 2, { MOV(98), 0xf9000be8, SVC } }, /* str x8, [sp, #16] */
	{ 98, 2, { MOV(98), 0xf94023e0, SVC } }, /* ldr x0, [sp, #64] */
	{ 98, 2, { MOV(98), 0xa90153f3, SVC } }, /* stp x19, x20, [sp, #16] */
	{ 98, 2, { MOV(98), 0xa9bd7bfd, SVC } }, /* stp x29, x30, [sp, #-48]! */
	{ 98, 2, { MOV(98), 0xf8267ac4, SVC } }, /* str x4, [x22, x6, lsl #3] */
	{ 98, 2, { MOV(98), 0xfd400fe8, SVC } }, /* ldr d8, [sp, #24] */
	{ 98, 2, { MOV(98), 0xfa401808, SVC } }, /* ccmp x0, #0, #8, ne */
	{ 98, 2, { MOV(98), 0xd53bd057, SVC } }, /* mrs x23, tpidr_el0 */
	{ 98, 2, { MOV(98), 0xd503201f, SVC } }, /* hint */
	/* cbz x0, to the svc; tbnz w0, #3; b.ne */
	{ 98, 3, { MOV(98), 0xb4000040, NOP, SVC } },
	{ 98, 3, { MOV(98), 0x37180040, NOP, SVC } },
	{ 98, 3, { MOV(98), 0x54000041, NOP, SVC } },
	/* b 1f; 2: svc; ret; 1: mov x8; b 2b */
	{ 98, 1, { 0x14000003, SVC, RET, MOV(98), 0x17fffffd } },
	/* two paths with the same number: cbz x0, 1f; mov; b 2f; 1: mov; 2: */
	{ 98, 4, { 0xb4000060, MOV(98), 0x14000002, MOV(98), SVC } },
	/* a call on another path: cbz x0, 1f; bl; ret; 1: */
	{ 98, 4, { MOV(98), 0xb4000060, 0x94000100, RET, SVC } },
	/* 1: svc; cbnz x0, 1b: the call keeps x8 */
	{ 98, 1, { MOV(98), SVC, 0xb5ffffe0, RET } },

	{ ANY, 0, { SVC, RET } },		       /* an argument */
	{ ANY, 1, { MOV(98) + 1, SVC } },	       /* mov x9 */
	{ ANY, 1, { MOV(98) | 1u << 21, SVC } },       /* lsl #16 */
	{ ANY, 2, { MOV(98), 0xf2800008, SVC } },      /* movk x8 */
	{ ANY, 1, { 0x92800c48, SVC } },	       /* mov x8, #-99 */
	{ ANY, 2, { MOV(98), 0x91000508, SVC } },      /* add x8, x8, #1 */
	{ ANY, 2, { MOV(98), 0xaa0003e8, SVC } },      /* mov x8, x0 */
	{ ANY, 2, { MOV(98), 0x9a800108, SVC } },      /* csel x8 */
	{ ANY, 2, { MOV(98), 0xf9400008, SVC } },      /* ldr x8, [x0] */
	{ ANY, 2, { MOV(98), 0xb9800068, SVC } },      /* ldrsw x8 */
	{ ANY, 2, { MOV(98), 0xf8616808, SVC } },      /* ldr x8, [, x1] */
	{ ANY, 2, { MOV(98), 0xf8408408, SVC } },      /* ldr x8, [], #8 */
	{ ANY, 2, { MOV(98), 0xf8408500, SVC } },      /* ldr x0, [x8], #8 */
	{ ANY, 2, { MOV(98), 0xf8008d00, SVC } },      /* str x0, [x8, #8]! */
	{ ANY, 2, { MOV(98), 0xa9402008, SVC } },      /* ldp x8, x8 */
	{ ANY, 2, { MOV(98), 0xa9402000, SVC } },      /* ldp x0, x8 */
	{ ANY, 2, { MOV(98), 0xa9810500, SVC } },      /* stp .., [x8]! */
	{ ANY, 2, { MOV(98), 0x58000008, SVC } },      /* ldr x8, here */
	{ ANY, 2, { MOV(98), 0xc85f7c08, SVC } },      /* ldxr x8 */
	{ ANY, 2, { MOV(98), 0xc8087c20, SVC } },      /* stxr w8 */
	{ ANY, 2, { MOV(98), 0xc8a87c20, SVC } },      /* cas x8 */
	{ ANY, 2, { MOV(98), 0xf8200008, SVC } },      /* ldadd .., x8 */
	{ ANY, 2, { MOV(98), 0xf83fd002, SVC } },      /* ld64b x2.. */
	{ ANY, 2, { MOV(98), 0x4c9f7100, SVC } },      /* st1 .., [x8], */
	{ ANY, 2, { MOV(98), 0x19080400, SVC } },      /* cpyfp, [x8] */
	{ ANY, 2, { MOV(98), 0x9e660008, SVC } },      /* fmov x8, d0 */
	{ ANY, 2, { MOV(98), 0xd53bd048, SVC } },      /* mrs x8 */
	{ ANY, 2, { MOV(98), 0x04e0e3e8, SVC } },      /* cntd x8 */
	{ ANY, 2, { MOV(98), 0x94000100, SVC } },      /* bl */
	{ ANY, 2, { MOV(98), 0xd63f0000, SVC } },      /* blr x0 */
	{ ANY, 2, { MOV(98), 0xd73f0800, SVC } },      /* blraa */
	{ ANY, 2, { MOV(98), 0xd4200000, SVC } },      /* brk */
	{ ANY, 1, { MOV(98), SVC, 0xd42000a0, RET } }, /* a uprobe */
	{ 98, 4, { MOV(98), 0xb4000060, MOV(99), 0xd4207d00, SVC } }, /* trap */
	{ ANY, 2, { MOV(98), 0x02000000, SVC } }, /* unallocated */
	/* behind a jump: another function, or a table, may lead there */
	{ ANY, 2, { MOV(98), RET, SVC } },
	{ ANY, 2, { MOV(98), 0xd61f0000, SVC } }, /* br x0 */
	{ ANY, 2, { MOV(98), 0xd71f0800, SVC } }, /* braa */
	{ ANY, 2, { MOV(98), 0x00000000, SVC } }, /* udf */
	{ ANY, 2, { MOV(98), 0x14000100, SVC } }, /* b, to elsewhere */
	/* cbz x0, 1f; mov x8; 1: one of two paths */
	{ ANY, 2, { 0xb4000040, MOV(98), SVC } },
	/* behind a jump: cbeq, and retaasppc, which are newer */
	{ ANY, 3, { MOV(98), 0x74c00040, NOP, SVC } },
	{ ANY, 2, { MOV(98), 0x5500001f, SVC } },
	/* two numbers */
	{ ANY, 4, { 0xb4000060, MOV(98), 0x14000002, MOV(99), SVC } },
	/* back in a loop: 1: svc; mov x8, #99; cbnz x0, 1b */
	{ ANY, 1, { MOV(98), SVC, MOV(99), 0xb5ffffc0, RET } },
};

static void arm_function(size_t at, const uint32_t *code, size_t words)
{
	elf_put(&arm, at, code, words * sizeof(*code));
	elf_function(&arm, at, words * sizeof(*code), false);
}

static void arm_is(size_t at, long number)
{
	elf_look(&arm);
	ck_assert_int_eq(arm.ret, 0);
	ck_assert_uint_eq(arm.sites, 1);
	ck_assert_uint_eq(arm.site[0].at - arm.image.start, at);
	ck_assert_int_eq(arm.site[0].number, number);
	ck_assert_uint_eq(arm.counts.unknown, number == ANY);
}

EACH_TEST(test_one, ones)
{
	arm_function(0x100, ones[_i].code, WORDS);
	arm_is(0x100 + 4 * ones[_i].at, ones[_i].number);
	ck_assert_uint_eq(arm.counts.instructions, 1);
}

/* Two functions: the second is not entered by the end of the first. */
TEST(test_functions)
{
	static const uint32_t first[] = { MOV(98), NOP },
			      second[] = { SVC, RET };

	arm_function(0x100, first, 2);
	arm_function(0x108, second, 2);
	arm_is(0x108, ANY);
}

TEST(test_outside)
{
	static const uint32_t function[] = { MOV(98), RET };
	const uint32_t svc = SVC;

	elf_put(&arm, 0x108, &svc, sizeof(svc));
	arm_is(0x108, ANY);
	arm_function(0x100, function, 2);
	arm_is(0x108, ANY);
	elf_phdr(&arm, 2)->p_type = PT_NOTE; /* no table of functions */
	arm_is(0x108, ANY);
}

/* The function ends within the svc. */
TEST(test_cut_off)
{
	static const uint32_t code[] = { MOV(98), SVC };

	elf_put(&arm, 0x100, code, sizeof(code));
	elf_function(&arm, 0x100, 6, false);
	arm_is(0x104, ANY);
}

/* A word of data, and bytes across two words, are not executed. */
TEST(test_data)
{
	const uint32_t svc = SVC;

	elf_put(&arm, 0x202, &svc, sizeof(svc));
	elf_none(&arm, 0);
	elf_shdr(&arm, 1)->sh_size = 0x400;
	elf_section(&arm, SHT_PROGBITS, SHF_ALLOC, ELF_TEXT + 0x800, 0x100);
	elf_put(&arm, 0x800, &svc, sizeof(svc));
	elf_none(&arm, 1);
	ck_assert_uint_eq(arm.counts.data, 1);
}

/* The last word of the mapping. */
TEST(test_end)
{
	const uint32_t svc = SVC;

	elf_put(&arm, ELF_TEXT_LEN - 4, &svc, sizeof(svc));
	arm_is(ELF_TEXT_LEN - 4, ANY);
}

/* ---- glibc --------------------------------------------------------------- */

static const struct {
	size_t before;
	uint32_t code[12]; /* and the svc */
} calls[] = {
	/* set*id(2) in each thread, of glibc 2.41 and 2.36 */
	{ 4, { 0xb9800068, 0xf9400c62, 0xa9408460 } },
	{ 4, { 0xa9408760, 0xf9400f62, 0xb9800368 } },
	/* calls that can be cancelled */
	{ 8,
	  { 0xaa0103e8, 0xaa0203e0, 0xaa0303e1, 0xaa0403e2, 0xaa0503e3,
	    0xaa0603e4, 0xaa0703e5 } },
	/* calls in a process with one thread */
	{ 7,
	  { 0xa9be7bfd, 0xaa0603e8, 0x910003fd, 0xf9000bf3, 0xd53bd053,
	    0x94000100 } },
};

static bool glibc(const uint32_t *code, size_t words)
{
	return mrrc_code_glibc((const uint8_t *) (code + words), 4 * words, 4);
}

EACH_TEST(test_glibc, calls)
{
	const size_t words = calls[_i].before - 1;
	uint32_t code[12];
	size_t i;

	memcpy(code, calls[_i].code, sizeof(code));
	code[words] = SVC;
	ck_assert(glibc(code, words));
	ck_assert(!glibc(code + 1, words - 1));
	ck_assert(!mrrc_code_glibc((const uint8_t *) (code + words), 4 * words,
				   3));
	for (i = 0; i < (_i == 3 ? 2 : words); i++) {
		code[i] ^= 1;
		ck_assert(!glibc(code, words));
		code[i] ^= 1 << 5 | 1;
		ck_assert(!glibc(code, words));
		code[i] ^= 1 << 5;
	}
}

TEST(test_glibc_others)
{
	/* str x23, [sp, #48] between the loads; the loads change the address */
	static const uint32_t saving[] = { 0xf9400c62, 0xb9800068, 0xf9001bf7,
					   0xa9408460, SVC };
	static const uint32_t lost[] = { 0xa9408400, 0xf9400c02, 0xb9800008,
					 SVC };
	/* x8 is set again */
	static const uint32_t set[] = { 0xa9be7bfd, 0xaa0603e8, MOV(215), SVC };

	ck_assert(glibc(saving, 4));
	ck_assert(!glibc(lost, 3));
	ck_assert(!glibc(set, 3));
}
