/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/proof/code: bytes between functions. A pair that code may reach is never
 * taken for data.
 */
#include "config.h"
#include "test/case.h"

#include "test/sys/proof/code_fixture.h"

#ifdef HAVE_ZYDIS

/* ---- gaps between functions ---------------------------------------------- */

TEST_CASE(code_gap, elf_setup, elf_teardown);

TEST(test_gap)
{
	elf_gap();
	elf_none(&elf, 1);
	ck_assert_uint_eq(elf.counts.data, 1);
}

TEST(test_gap_no_sections)
{
	elf_gap();
	elf.image.fd = -1;
	elf_is(&elf, 1, 0x404, ANY);
}

/* The codes of a function before the gap. */
static const struct elf_one froms[] = {
	ELF_ONE(0, ANY, 0xe8, 0xff, 0x02, 0, 0, 0xc3), /* leads to 0x404 */
	ELF_ONE(0, ANY, 0x48, 0x8d, 0x05, 0xfd, 0x02, 0, 0, 0xc3),
	ELF_ONE(0, ANY, 0x0f, 0x84, 0xfe, 0x02, 0, 0, 0xc3),
	/* This function refers to the start of the table, which is no code. */
	ELF_ONE(0, NONE, 0x48, 0x8d, 0x05, 0xf9, 0x02, 0, 0, 0xc3),
	/* A constant and one byte of a branch are no distances. */
	ELF_ONE(0, NONE, 0xb8, 0xff, 0x02, 0, 0, 0xc3),
	ELF_ONE(0, NONE, 0x74, 0xff, 0x02, 0, 0, 0xc3, 0xc3),
};

EACH_TEST(test_gap_from, froms)
{
	const struct elf_one *from = &froms[_i];

	elf_put(&elf, 0x100, from->code, from->len);
	elf_function(&elf, 0x100, from->len, false);
	elf_gap();
	if (from->number == NONE)
		elf_none(&elf, 1);
	else
		elf_is(&elf, 1, 0x404, ANY);
}

/* A branch leads to a place before the pair, or to a branch there. */
TEST(test_gap_path)
{
	/* leads to 0x400 */
	elf_code(&elf, 0x100, 0xe9, 0xfb, 0x02, 0, 0, 0xc3);
	elf_gap();
	elf_bytes(&elf, 0x400, 0x90, 0x66, 0x90, 0x90);
	elf_is(&elf, 1, 0x404, ANY);
	elf_bytes(&elf, 0x400, 0xeb, 0x10);
	elf_none(&elf, 1);
	elf_bytes(&elf, 0x412, 0x74, 0xf0);
	elf_is(&elf, 1, 0x404, ANY);
}

/* Processors differ in where a branch with an operand-size prefix leads. */
TEST(test_gap_odd)
{
	/* leads to 0x400 */
	elf_code(&elf, 0x100, 0xe9, 0xfb, 0x02, 0, 0, 0xc3);
	elf_gap();
	elf_bytes(&elf, 0x400, 0x66, 0xeb, 0x01);
	elf_is(&elf, 1, 0x404, ANY);
	/* jne after which some processors execute the pair */
	elf_bytes(&elf, 0x3ff, 0x66, 0x0f, 0x85, 0, 0);
	elf_bytes(&elf, 0x100, 0xe9, 0xfa, 0x02);
	elf_is(&elf, 1, 0x404, ANY);
}

/* A branch in bytes outside functions may be executed. */
TEST(test_gap_gap)
{
	elf_code(&elf, 0x80, 0x90, 0xc3);
	elf_bytes(&elf, 0x100, 0xe8, 0xff, 0x02, 0, 0, 0xc3);
	elf_gap();
	elf_is(&elf, 1, 0x404, ANY);
}

/* A branch in filler between two functions is not executed. */
TEST(test_gap_filler)
{
	elf_code(&elf, 0x100, 0x90, 0xc3);
	/* The displacement of this nopw looks like a call to the pair. */
	elf_bytes(&elf, 0x102, 0x66, 0x0f, 0x1f, 0x84, 0xe8, 0xfa, 0x02, 0, 0);
	elf_code(&elf, 0x10b, 0x90, 0xc3);
	elf_gap();
	elf_bytes(&elf, 0x403, 0x06);
	elf_none(&elf, 1);
	/* This distance is from 0x10b to 0x405, one byte too far. */
	elf_bytes(&elf, 0x107, 0xf9);
	elf_none(&elf, 1);
}

/* A constant leads to the pair, and a call to the middle of the same code. */
TEST(test_gap_again)
{
	/* movabs of a call to 0x400 */
	elf_code(&elf, 0x100, 0x48, 0xb8, 0xe8, 0xf9, 0x02, 0, 0, 0, 0, 0,
		 0xc3);
	elf_code(&elf, 0x110, 0xe8, 0xed, 0x02, 0, 0, 0xc3); /* calls 0x402 */
	elf_gap();
	elf_bytes(&elf, 0x400, 0x90, 0x90, 0x90, 0x90);
	elf_is(&elf, 1, 0x404, ANY);
}

/* An instruction that ends in the next function cannot be decoded that way. */
TEST(test_gap_over)
{
	/* leads to 0x4ff */
	elf_code(&elf, 0x100, 0xe9, 0xfa, 0x03, 0, 0, 0xc3);
	elf_gap();
	elf_none(&elf, 1);
	elf_bytes(&elf, 0x4ff, 0xb8);
	elf_is(&elf, 1, 0x404, ANY);
}

TEST(test_gap_near)
{
	elf_gap();
	/* A jmp in the function before the gap leads to the pair. */
	elf_bytes(&elf, 0x3f0, 0xeb, 0x12);
	elf_is(&elf, 1, 0x404, ANY);
	elf_bytes(&elf, 0x3f0, 0x74);
	elf_is(&elf, 1, 0x404, ANY);
	elf_bytes(&elf, 0x3f0, 0x90, 0xc3);
	elf_none(&elf, 1);
	/* A jmp in the function behind the gap leads to a pair. */
	elf_bytes(&elf, 0x490, 0x0f, 0x05, 0xc3);
	elf_bytes(&elf, 0x404, 0x06, 0x06);
	elf_bytes(&elf, 0x500, 0xeb, 0x8e);
	elf_is(&elf, 1, 0x490, ANY);
}

TEST(test_gap_symbol)
{
	Elf64_Sym *const symbol = (void *) (elf.bytes + ELF_TABLES);

	elf_gap();
	elf_section(&elf, SHT_DYNSYM, SHF_ALLOC, ELF_TABLES,
		    2 * sizeof(*symbol));
	symbol[1] = (Elf64_Sym){ .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				 .st_shndx = 1,
				 .st_value = ELF_TEXT + 0x404 };
	elf_is(&elf, 1, 0x404, ANY);
	symbol[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE);
	elf_is(&elf, 1, 0x404, ANY);
	symbol[1].st_value = ELF_TEXT + 0x400;
	elf_none(&elf, 1);
}

TEST(test_gap_relocation)
{
	Elf64_Rela *const rela = (void *) (elf.bytes + ELF_TABLES);
	Elf64_Sym *const symbol = (void *) (elf.bytes + ELF_TABLES + 64);

	elf_gap();
	elf_section(&elf, SHT_RELA, SHF_ALLOC, ELF_TABLES, sizeof(*rela));
	rela->r_addend = ELF_TEXT + 0x404;
	elf_is(&elf, 1, 0x404, ANY);
	rela->r_addend = ELF_TEXT + 0x400;
	elf_none(&elf, 1);
	elf_shdr(&elf, 2)->sh_type = SHT_REL;
	elf_is(&elf, 1, 0x404, ANY);
	/* The relocation adds to a symbol. */
	elf_shdr(&elf, 2)->sh_type = SHT_RELA;
	elf_section(&elf, SHT_DYNSYM, SHF_ALLOC, ELF_TABLES + 64,
		    2 * sizeof(*symbol));
	symbol[1] = (Elf64_Sym){ .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				 .st_shndx = 1,
				 .st_value = ELF_TEXT + 0x400 };
	rela->r_info = ELF64_R_INFO(1, R_X86_64_64);
	rela->r_addend = 0;
	elf_none(&elf, 1);
	rela->r_addend = 4;
	elf_is(&elf, 1, 0x404, ANY);
	rela->r_addend = 0;
	/* The section header points to a table that is not in the file. */
	elf_shdr(&elf, 2)->sh_addr = ELF_LEN;
	elf_is(&elf, 1, 0x404, ANY);
}

/* Packed relocations have addresses in the data, at any even place. */
TEST(test_gap_packed)
{
	const uint64_t name = ELF_TEXT + 0x404;

	elf_gap();
	elf_section(&elf, SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, ELF_TABLES, 64);
	memcpy(elf.bytes + ELF_TABLES + 10, &name, sizeof(name));
	elf_none(&elf, 1);
	elf_section(&elf, SHT_RELR, SHF_ALLOC, ELF_TABLES + 64, 8);
	elf_is(&elf, 1, 0x404, ANY);
	elf_shdr(&elf, 2)->sh_type = SHT_NOBITS;
	elf_none(&elf, 1);
	/* The data cannot be read. */
	elf_shdr(&elf, 2)->sh_type = SHT_PROGBITS;
	elf_shdr(&elf, 2)->sh_addr = ELF_LEN;
	elf_is(&elf, 1, 0x404, ANY);
}

TEST(test_gap_entries)
{
	Elf64_Dyn *const dyn = (void *) (elf.bytes + ELF_TABLES);

	elf_gap();
	elf_section(&elf, SHT_DYNAMIC, SHF_ALLOC, ELF_TABLES, sizeof(*dyn));
	*dyn = (Elf64_Dyn){ DT_INIT, { ELF_TEXT + 0x404 } };
	elf_is(&elf, 1, 0x404, ANY);
	dyn->d_tag = DT_FINI;
	elf_is(&elf, 1, 0x404, ANY);
	dyn->d_un.d_ptr = ELF_TEXT + 0x400;
	elf_none(&elf, 1);
	elf_ehdr(&elf)->e_entry = ELF_TEXT + 0x404;
	elf_is(&elf, 1, 0x404, ANY);
}

/* Such files may refer to addresses without a relocation. */
TEST(test_gap_fixed)
{
	elf_gap();
	elf_ehdr(&elf)->e_type = ET_EXEC;
	elf_is(&elf, 1, 0x404, ANY);
	elf_ehdr(&elf)->e_type = ET_DYN;
	elf_phdr(&elf, 0)->p_flags |= PF_X;
	elf_is(&elf, 1, 0x404, ANY);
}

/* A linker's jump to another library is known, whatever leads there. */
TEST(test_gap_slot)
{
	static const uint8_t slot[] = { 0xff, 0x25, 0, 0,    0, 0, 0x68, 0x0f,
					0x05, 0,    0, 0xe9, 0, 0, 0,	 0 };
	static const uint8_t has[] = { 0, 1, 6, 11 };
	size_t i;

	elf_gap();
	elf_ehdr(&elf)->e_type = ET_EXEC;
	elf_put(&elf, 0x400, slot, sizeof(slot));
	elf_none(&elf, 1);
	for (i = 0; i < sizeof(has); i++) {
		elf_put(&elf, 0x400, slot, sizeof(slot));
		elf.bytes[ELF_TEXT + 0x400 + has[i]] ^= 1;
		elf_is(&elf, 1, 0x407, ANY);
	}
}

TEST(test_gap_indirect)
{
	/* leads to 0x400 */
	elf_code(&elf, 0x100, 0xe9, 0xfb, 0x02, 0, 0, 0xc3);
	elf_gap();
	elf_bytes(&elf, 0x400, 0xff, 0xe0); /* jmp *%rax */
	elf_is(&elf, 1, 0x404, ANY);
	elf_bytes(&elf, 0x400, 0xff, 0x25, 0, 0); /* jmp *x(%rip) */
	elf_bytes(&elf, 0x404, 0xcd, 0x80);
	elf_none(&elf, 1);
}

/* A jump to a function that may be absent goes through a pointer. */
TEST(test_gap_optional)
{
	static const uint8_t jump[] = { 0x48, 0x8b, 0x05, 0,	0xcd,
					0x80, 0,    0x48, 0x85, 0xc0,
					0x74, 0x02, 0xff, 0xe0, 0xc3 };
	size_t i;

	/* leads to 0x400 */
	elf_code(&elf, 0x100, 0xe9, 0xfb, 0x02, 0, 0, 0xc3);
	elf_gap();
	elf_put(&elf, 0x400, jump, sizeof(jump));
	elf_none(&elf, 1);
	for (i = 0; i < sizeof(jump) - 1; i++) {
		if ((i >= 3 && i < 7) || i == 11)
			continue;
		elf_put(&elf, 0x400, jump, sizeof(jump));
		/*
		 * A changed byte makes another register, branch or jump; fe e0
		 * is no jump.
		 */
		elf.bytes[ELF_TEXT + 0x400 + i] ^= i == 2 ? 8 : 1;
		elf_look(&elf);
		ck_assert_uint_eq(elf.counts.unknown, i != 12);
	}
}

/* An analysis reads the mapping a limited number of times. */
TEST(test_gap_many)
{
	unsigned i;

	for (i = 0; i < 70; i++)
		elf_code(&elf, 16 * i, 0x90, 0xc3);
	for (i = 0; i < 70; i++)
		elf_bytes(&elf, 16 * i + 4 + i % 2, 0x0f, 0x05);
	elf_look(&elf);
	ck_assert_int_eq(elf.ret, 0);
	ck_assert_uint_eq(elf.counts.pairs, 70);
	ck_assert_uint_gt(elf.sites, 0);
	ck_assert_uint_eq(elf.site[elf.sites - 1].at,
			  elf.image.start + 16 * 69 + 5);
	ck_assert_int_eq(elf.site[0].number, ANY);
}

/* The unwind information of clone() ends before the system call. */
TEST(test_gap_falls)
{
	elf_bytes(&elf, 0x100, 0xb8, 0x38, 0, 0, 0, 0x0f, 0x05, 0xc3);
	elf_function(&elf, 0x100, 5, false);
	elf_code(&elf, 0x108, 0x90, 0xc3);
	memset(elf.bytes + ELF_TEXT + 0x10a, 0x06, 0x100);
	elf_is(&elf, 1, 0x105, 0x38);
}

/* Code that runs past the end of its function is followed for 1024 bytes. */
TEST(test_gap_falls_far)
{
	memset(elf.bytes + ELF_TEXT + 0x100, 0x90, 0x500);
	elf_bytes(&elf, 0x100, 0xb8, 0x38, 0, 0, 0, 0x0f, 0x05);
	elf_bytes(&elf, 0x500, 0xc3, 0xc3);
	elf_function(&elf, 0x100, 5, false);
	elf_function(&elf, 0x500, 2, false);
	elf_is(&elf, 1, 0x105, 0x38);
	elf.functions = 1;
	elf_function(&elf, 0x501, 1, false);
	elf_is(&elf, 1, 0x105, ANY);
}

#endif /* HAVE_ZYDIS */
