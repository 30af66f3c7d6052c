/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/proof/code: bytes that are never executed. Bytes that a branch may lead
 * to are not filler.
 */
#include "config.h"
#include "test/case.h"

#include "test/sys/proof/code_fixture.h"

#ifdef HAVE_ZYDIS

/* Returns an offset from the start of the code; 0: there is no filler. */
static size_t filler(size_t at, size_t end, size_t size)
{
	const uintptr_t start = elf.image.start;
	const uintptr_t found =
		mrrc_code_filler(&elf.image, start + at, start + end, size);

	return found ? found - start : 0;
}

#define FIVE 0x0f, 0x1f, 0x44, 0x00, 0x00

TEST_CASE(code_filler, elf_setup, elf_teardown);

/* Filler aligns the next function; some of the bytes may be in use. */
TEST(test_between)
{
	elf_code(&elf, 0x100, 0xc3);
	elf_bytes(&elf, 0x101, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0,
		  0, 0x0f, 0x1f, 0x40, 0x00);
	elf_code(&elf, 0x110, 0xc3);
	ck_assert_uint_eq(filler(0x80, 0x110, 5), 0x101);
	ck_assert_uint_eq(filler(0x106, 0x110, 5), 0x106);
	ck_assert_uint_eq(filler(0x10b, 0x110, 5), 0x10b);
	ck_assert_uint_eq(filler(0x10c, 0x110, 5), 0);
}

/*
 * Bytes are no filler if a function may go on or jump there, or if they are no
 * padding.
 */
TEST(test_between_run)
{
	elf_code(&elf, 0x0fe, 0xff, 0xe0, 0x90);
	elf_bytes(&elf, 0x101, FIVE, FIVE, FIVE);
	elf_code(&elf, 0x110, 0xc3);
	ck_assert_uint_eq(filler(0x80, 0x110, 5), 0);
	elf_bytes(&elf, 0x100, 0xc3);
	ck_assert_uint_eq(filler(0x80, 0x110, 5), 0);
	elf_bytes(&elf, 0x0fe, 0x48, 0x89); /* mov %rax, %rbx */
	ck_assert_uint_eq(filler(0x80, 0x110, 5), 0);
	elf_bytes(&elf, 0x0fe, 0x90, 0x90);
	ck_assert_uint_eq(filler(0x80, 0x110, 5), 0x101);
	elf_bytes(&elf, 0x10b, 0xc3, 0x90, 0x90, 0x90, 0x90);
	ck_assert_uint_eq(filler(0x80, 0x110, 5), 0);
}

/* Code of another processor has no filler. */
TEST(test_machine)
{
	elf_code(&elf, 0x100, 0xc3);
	elf_bytes(&elf, 0x101, FIVE);
	elf_code(&elf, 0x106, 0xc3);
	ck_assert_uint_eq(filler(0x80, 0x200, 5), 0x101);
	elf_ehdr(&elf)->e_machine = EM_AARCH64;
	ck_assert_uint_eq(filler(0x80, 0x200, 5), 0);
}

#endif
