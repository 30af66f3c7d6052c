/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/proof/code: the numbers of system calls of 64-bit ARM, in recorded words.
 */
#include "config.h"
#include "suites.h"

#include "code_fixture.h"

/* ---- 64-bit ARM ---------------------------------------------------------- */

#define SVC 0xd4000001
#define RET 0xd65f03c0

static void look_arm(const uint32_t *words, size_t count)
{
	elf_close(&elf);
	elf_open(&elf, EM_AARCH64);
	elf_put(&elf, 0x100, words, count * sizeof(*words));
	elf_function(&elf, 0x100, count * sizeof(*words), false);
}

#define arm(...)                                                      \
	do {                                                          \
		static const uint32_t words_[] = { __VA_ARGS__ };     \
                                                                      \
		look_arm(words_, sizeof(words_) / sizeof(words_[0])); \
	} while (0)

START_TEST(test_arm_known)
{
	/* mov x8, #215; svc; cmn; b.cs; ret: glibc's munmap */
	arm(0xd2801ae8, SVC, 0xb13ffc1f, 0x54000042, RET);
	elf_is(&elf, 1, 0x104, 215);
	/* mov w19, #98; bl; mov w8, w19; svc */
	arm(0x52800c53, 0x94000100, 0x2a1303e8, SVC, RET);
	elf_is(&elf, 1, 0x10c, 98);
	/* mov x8, #98; ldr x0, [x0]; str x8, [sp, #8]; add x1, x8, #1; svc */
	arm(0xd2800c48, 0xf9400000, 0xf90007e8, 0x91000501, SVC, RET);
	elf_is(&elf, 1, 0x110, 98);
	/* cbz x0, 1f; mov x8, #98; b 2f; 1: mov x8, #98; 2: svc */
	arm(0xb4000060, 0xd2800c48, 0x14000002, 0xd2800c48, SVC, RET);
	elf_is(&elf, 1, 0x110, 98);
	/* mov w8, wzr */
	arm(0x2a1f03e8, SVC, RET);
	elf_is(&elf, 1, 0x104, 0);
}
END_TEST

START_TEST(test_arm_unknown)
{
	/* mov x8, x0: syscall() */
	arm(0xaa0003e8, SVC, RET);
	elf_is(&elf, 1, 0x104, ANY);
	/* ldr x8, [x0] */
	arm(0xf9400008, SVC, RET);
	elf_is(&elf, 1, 0x104, ANY);
	/* mov x8, #98; bl; svc */
	arm(0xd2800c48, 0x94000100, SVC, RET);
	elf_is(&elf, 1, 0x108, ANY);
	/* mov x8, #98; blr x1; svc */
	arm(0xd2800c48, 0xd63f0020, SVC, RET);
	elf_is(&elf, 1, 0x108, ANY);
	/* mov x8, #98; movk x8, #1; svc */
	arm(0xd2800c48, 0xf2800028, SVC, RET);
	elf_is(&elf, 1, 0x108, ANY);
	/* mov x8, #98; ldp x1, x8, [x0]; svc */
	arm(0xd2800c48, 0xa9402001, SVC, RET);
	elf_is(&elf, 1, 0x108, ANY);
	/* mov x8, #98; ldr x0, [x8], #8; svc */
	arm(0xd2800c48, 0xf8408500, SVC, RET);
	elf_is(&elf, 1, 0x108, ANY);
	/* mov x8, #98, lsl #16 */
	arm(0xd2a00c48, SVC, RET);
	elf_is(&elf, 1, 0x104, ANY);
	/* cbz x0, 1f; mov x8, #98; 1: svc */
	arm(0xb4000040, 0xd2800c48, SVC, RET);
	elf_is(&elf, 1, 0x108, ANY);
	/* mov w9, #98; casp x8, x9, ...; mov w8, w9; svc */
	arm(0x52800c49, 0x48287c02, 0x2a0903e8, SVC, RET);
	elf_is(&elf, 1, 0x10c, ANY);
	/* mov w17, #98; autia1716; mov w8, w17; svc */
	arm(0x52800c51, 0xd503219f, 0x2a1103e8, SVC, RET);
	elf_is(&elf, 1, 0x10c, ANY);
}
END_TEST

START_TEST(test_arm_several)
{
	/* cbz x0, 1f; mov x8, #98; b 2f; 1: mov x8, #215; 2: svc */
	arm(0xb4000060, 0xd2800c48, 0x14000002, 0xd2801ae8, SVC, RET);
	elf_is(&elf, 1, 0x110, ANY);
	arm(0xb4000060, 0xd2800c48, 0x14000002, 0xd2800c48, SVC, RET);
	elf_is(&elf, 1, 0x110, 98);
	/* svc #1, in no function */
	elf_bytes(&elf, 0x200, 0x21, 0, 0, 0xd4);
	elf_look(&elf);
	ck_assert_uint_eq(elf.sites, 2);
	ck_assert_int_eq(elf.site[1].number, ANY);
}
END_TEST

Suite *code_arm_suite(void)
{
	Suite *suite = suite_create("code_arm");
	TCase *tcase = tcase_create("code_arm");

	tcase_add_checked_fixture(tcase, elf_setup, elf_teardown);
	tcase_add_test(tcase, test_arm_known);
	tcase_add_test(tcase, test_arm_unknown);
	tcase_add_test(tcase, test_arm_several);
	suite_add_tcase(suite, tcase);
	return suite;
}
