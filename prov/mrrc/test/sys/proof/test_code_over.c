/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/proof/code: functions that a patcher has overwritten. The decoder never
 * reports a system call that code may reach as dead.
 */
#include "config.h"
#include "test/case.h"

#include "test/sys/proof/code_fixture.h"

#ifdef HAVE_ZYDIS

#define SITE 0x10e /* system call of the function at 0x100, of 17 bytes */

#define elf_over(...)                                           \
	do {                                                    \
		static const uint8_t over_[] = { __VA_ARGS__ }; \
                                                                \
		memcpy(elf.over, over_, sizeof(over_));         \
		elf.over_len = sizeof(over_);                   \
	} while (0)

/*
 * A jump overwrites the function: mov $11, %eax; push %rbx, 9 times; syscall;
 * ret. Behind the overwritten function is a function of returns, whose bytes
 * are also read as distances.
 */
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

/* All kinds of jump that patchers write are known. */
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

/* The jump ends within an instruction, and its distance looks like a pair. */
TEST(test_over_middle)
{
	elf_bytes(&elf, 0x103, 0, 0xc7, 0xc1, 9, 0, 0, 0);
	elf_over(0xe9, 0x0f, 0x05, 0, 0);
	elf_none(&elf, 2);
}

/* A jump that the compiler made is no patch. */
TEST(test_over_same)
{
	elf_put(&elf, 0x100, elf.over, elf.over_len);
	elf_is(&elf, 1, SITE, ANY);
}

/* More bytes differ from the file, in the same word or behind it. */
TEST(test_over_more)
{
	elf_over(0xe9, 0, 0x10, 0, 0, 0x54);
	elf_none(&elf, 1);
	elf_over(0xe9, 0, 0x10, 0, 0, 0x53, 0x53, 0x53, 0x54);
	elf_is(&elf, 1, SITE, ANY);
}

/* A jump leads into the function, or to its end, where another one begins. */
TEST(test_over_loops)
{
	elf_over(0xe9, 1, 0, 0, 0);
	elf_is(&elf, 1, SITE, ANY);
	elf_over(0xe9, 0x0c, 0, 0, 0);
	elf_none(&elf, 1);
}

/* Without the file, a patch cannot be recognised. */
TEST(test_over_no_file)
{
	elf.image.fd = -1;
	elf_is(&elf, 1, SITE, ANY);
}

/* Branches come from before and from behind: far ones, near ones, and none. */
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

/* Another function, which begins with a jump, may lead to the system call. */
TEST(test_over_other)
{
	elf_code(&elf, 0x200, 0xe9, 0, 1, 0, 0, 0xb8, 0xe9, 0xfa, 0xfe, 0xff,
		 0xff, 0xc3); /* data: jmp 0x105 */
	elf_is(&elf, 1, SITE, ANY);
	/* No branch ends with the bytes before this distance. */
	elf_code(&elf, 0x200, 0xe9, 0, 1, 0, 0, 0x90, 0x90, 0xfa, 0xfe, 0xff,
		 0xff);
	elf_none(&elf, 1);
	/* The distance is part of the jump's address. */
	elf_code(&elf, 0x200, 0x49, 0xbb, 0xff, 0xfe, 0xff, 0xff, 0, 0, 0, 0,
		 0x41, 0xff, 0xe3);
	elf_none(&elf, 1);
	/* A part of the jump's address looks like a branch. */
	elf_code(&elf, 0x200, 0x49, 0xbb, 0xe9, 0xfe, 0xfe, 0xff, 0xff, 0, 0, 0,
		 0x41, 0xff, 0xe3);
	elf_none(&elf, 1);
}

/* A symbol leads into the function; an unreadable table may lead there. */
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

/* A pointer in data, as of packed relocations, leads into the function. */
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

/* In a program at fixed addresses, pointers may be anywhere. */
TEST(test_over_fixed)
{
	elf_ehdr(&elf)->e_type = ET_EXEC;
	elf_is(&elf, 1, SITE, ANY);
}

#endif
