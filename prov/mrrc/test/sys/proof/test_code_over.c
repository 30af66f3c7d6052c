/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/proof/code: functions that a patcher has overwritten. A system call that
 * something may lead to is never said to be dead.
 */
#include "config.h"
#include "test/case.h"

#include "test/sys/proof/code_fixture.h"

#ifdef HAVE_ZYDIS

#define SITE 0x10e /* in the function at 0x100, of 17 bytes */

#define elf_over(...)                                           \
	do {                                                    \
		static const uint8_t over_[] = { __VA_ARGS__ }; \
                                                                \
		memcpy(elf.over, over_, sizeof(over_));         \
		elf.over_len = sizeof(over_);                   \
	} while (0)

/* mov $11, %eax; push %rbx, 9 times; syscall; ret; over it, a jump. Behind it,
 * a function of returns, which are distances as others. */
static void over_setup(void)
{
	elf_setup();
	elf_code(&elf, 0x100, 0xb8, 0x0b, 0, 0, 0, 0x53, 0x53, 0x53, 0x53, 0x53,
		 0x53, 0x53, 0x53, 0x53, 0x0f, 0x05, 0xc3);
	elf_function(&elf, 0x111, 0x80, false);
	elf.over_at = ELF_TEXT + 0x100;
	elf_over(0xe9, 0, 0x10, 0, 0);
}

TEST_CASE(code_over, over_setup, elf_teardown);

/* All jumps that are known. */
TEST(test_over)
{
	elf.over_len = 0;
	elf_is(&elf, 1, SITE, 11);
	elf_over(0xe9, 0, 0x10, 0, 0);
	elf_none(&elf, 1);
	elf_over(0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0xe0);
	elf_none(&elf, 1);
	elf_over(0x49, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8, 0x41, 0xff, 0xe3);
	elf_none(&elf, 1);
	elf_over(0x49, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8, 0x41, 0xff, 0xd3);
	elf_is(&elf, 1, SITE, ANY);
}

/* The jump ends in an instruction, and its distance looks as a pair. */
TEST(test_over_middle)
{
	elf_bytes(&elf, 0x103, 0, 0xc7, 0xc1, 9, 0, 0, 0);
	elf_over(0xe9, 0x0f, 0x05, 0, 0);
	elf_none(&elf, 2);
}

/* As the compiler made it. */
TEST(test_over_same)
{
	elf_put(&elf, 0x100, elf.over, elf.over_len);
	elf_is(&elf, 1, SITE, ANY);
}

/* There is more that the file has not, in the same word or behind it. */
TEST(test_over_more)
{
	elf_over(0xe9, 0, 0x10, 0, 0, 0x54);
	elf_none(&elf, 1);
	elf_over(0xe9, 0, 0x10, 0, 0, 0x53, 0x53, 0x53, 0x54);
	elf_is(&elf, 1, SITE, ANY);
}

/* To another place in it, or to its end, where another begins. */
TEST(test_over_loops)
{
	elf_over(0xe9, 1, 0, 0, 0);
	elf_is(&elf, 1, SITE, ANY);
	elf_over(0xe9, 0x0c, 0, 0, 0);
	elf_none(&elf, 1);
}

/* Without the file. */
TEST(test_over_no_file)
{
	elf.image.fd = -1;
	elf_is(&elf, 1, SITE, ANY);
}

/* Branches from before and behind: far ones, near ones, and none. */
TEST(test_over_branch)
{
	static const struct {
		size_t at;
		uint8_t code[5];
		bool led;
	} froms[] = {
		{ 0x080, { 0xe9, 0x80, 0, 0, 0 }, true },  /* 0x105 */
		{ 0x080, { 0xe9, 0x7c, 0, 0, 0 }, true },  /* 0x101 */
		{ 0x080, { 0xe9, 0x7b, 0, 0, 0 }, false }, /* 0x100 */
		{ 0x080, { 0xb8, 0x80, 0, 0, 0 }, false }, /* no branch */
		{ 0x200, { 0xe9, 0x0b, 0xff, 0xff, 0xff }, true },  /* 0x110 */
		{ 0x200, { 0xe9, 0x0c, 0xff, 0xff, 0xff }, false }, /* 0x111 */
		{ 0x0c0, { 0x74, 0x4c, 0x90, 0x90, 0xc3 }, true },  /* SITE */
		{ 0x120, { 0x74, 0xec, 0x90, 0x90, 0xc3 }, true },  /* SITE */
	};
	size_t i;

	for (i = 0; i < sizeof(froms) / sizeof(froms[0]); i++) {
		over_setup();
		elf.functions = 0;
		if (froms[i].at < 0x100)
			elf_function(&elf, froms[i].at, 5, false);
		elf_function(&elf, 0x100, 17, false);
		elf_function(&elf, 0x111, 0x80, false);
		if (froms[i].at > 0x191)
			elf_function(&elf, froms[i].at, 5, false);
		elf_put(&elf, froms[i].at, froms[i].code, 5);
		if (froms[i].led)
			elf_is(&elf, 1, SITE, ANY);
		else
			elf_none(&elf, 1);
		elf_teardown();
	}
	over_setup();
}

/* From another function that begins with a jump: it may not decode. */
TEST(test_over_other)
{
	elf_code(&elf, 0x200, 0xe9, 0, 1, 0, 0, 0xb8, 0xe9, 0xfa, 0xfe, 0xff,
		 0xff, 0xc3); /* as data: jmp 0x105 */
	elf_is(&elf, 1, SITE, ANY);
	/* no branch ends with the bytes before */
	elf_code(&elf, 0x200, 0xe9, 0, 1, 0, 0, 0x90, 0x90, 0xfa, 0xfe, 0xff,
		 0xff);
	elf_none(&elf, 1);
	/* the distance is in the jump's address */
	elf_code(&elf, 0x200, 0x49, 0xbb, 0xff, 0xfe, 0xff, 0xff, 0, 0, 0, 0,
		 0x41, 0xff, 0xe3);
	elf_none(&elf, 1);
	/* or in what looks like a branch in there */
	elf_code(&elf, 0x200, 0x49, 0xbb, 0xe9, 0xfe, 0xfe, 0xff, 0xff, 0, 0, 0,
		 0x41, 0xff, 0xe3);
	elf_none(&elf, 1);
}

/* A symbol; a table that cannot be read. */
TEST(test_over_table)
{
	Elf64_Sym *symbol = (Elf64_Sym *) (elf.bytes + ELF_TABLES);

	symbol->st_info = STT_FUNC;
	symbol->st_shndx = 1;
	symbol->st_value = ELF_TEXT + 0x100;
	elf_section(&elf, SHT_DYNSYM, SHF_ALLOC, ELF_TABLES, sizeof(*symbol));
	elf_none(&elf, 1);
	symbol->st_value = ELF_TEXT + 0x105;
	elf_is(&elf, 1, SITE, ANY);
	symbol->st_value = 0;
	elf_shdr(&elf, 2)->sh_addr = ELF_LEN;
	elf_is(&elf, 1, SITE, ANY);
}

/* A pointer in the data, as packed relocations leave it. */
TEST(test_over_pointer)
{
	uint64_t *word = (uint64_t *) (elf.bytes + ELF_TABLES + 8);

	elf_section(&elf, SHT_RELR, SHF_ALLOC, ELF_TABLES, 8);
	elf_section(&elf, SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, ELF_TABLES + 8,
		    8);
	*word = ELF_TEXT + 0x100;
	elf_none(&elf, 1);
	*word = ELF_TEXT + 0x105;
	elf_is(&elf, 1, SITE, ANY);
}

/* Of a fixed program, addresses may stand anywhere. */
TEST(test_over_fixed)
{
	elf_ehdr(&elf)->e_type = ET_EXEC;
	elf_is(&elf, 1, SITE, ANY);
}

#endif
