/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/code: what passes no known number, may be jumped into or cannot be
 * decoded is never said to be harmless; files with errors are read within
 * their bounds; numbers are found in hand-assembled functions and in libc.
 */
#include "config.h"
#include "suites.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "code_fixture.h"

#define ANY	MRRC_CODE_ANY
#define FLIPS	20000

static struct code_elf elf;

static void setup(void)
{
	elf_open(&elf, EM_X86_64);
}

static void teardown(void)
{
	elf_close(&elf);
}

#if defined(HAVE_ZYDIS)

/* ---- instructions whose number is not known ------------------------------ */

START_TEST(test_unknown_number)
{
	static const struct {
		uint8_t code[16];
		size_t len, at;
	} functions[] = {
		{ { 0x0f, 0x05 }, 2, 0 },			/* argument */
		{ { 0x8b, 0x07, 0x0f, 0x05 }, 4, 2 },		/* memory */
		{ { 0xb8, 9, 0, 0, 0, 0x01, 0xf8, 0x0f, 0x05 }, 9, 7 },	/* add */
		{ { 0xb8, 9, 0, 0, 0, 0xb0, 1, 0x0f, 0x05 }, 9, 7 },	/* al */
		{ { 0xb8, 9, 0, 0, 0, 0x0f, 0x44, 0xc7, 0x0f, 0x05 },
		  10, 8 },					/* cmove */
		{ { 0xb8, 9, 0, 0, 0, 0x0f, 0xa2, 0x0f, 0x05 },
		  9, 7 },					/* cpuid */
		{ { 0xb8, 9, 0, 0, 0, 0x93, 0x0f, 0x05 }, 8, 6 },	/* xchg */
		{ { 0x58, 0x0f, 0x05 }, 3, 1 },			/* pop */
		{ { 0x31, 0xf8, 0x0f, 0x05 }, 4, 2 },		/* xor edi */
		{ { 0x83, 0xc8, 0xff, 0x0f, 0x05 }, 5, 3 },	/* or -1 */
		{ { 0xb8, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x05 }, 7, 5 },
		{ { 0xb8, 9, 0, 0, 0x40, 0x0f, 0x05 }, 7, 5 },	/* x32 */
		{ { 0x66, 0xb8, 9, 0, 0x0f, 0x05 }, 6, 4 },	/* ax */
		{ { 0xb8, 9, 0, 0, 0, 0xe8, 0, 1, 0, 0, 0x0f, 0x05 },
		  12, 10 },					/* call */
		{ { 0xb8, 9, 0, 0, 0, 0xcd, 0x81, 0x58, 0x0f, 0x05 },
		  10, 8 },
	};
	size_t i;

	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (i) {
			teardown();
			setup();
		}
		elf_put(&elf, 0x100, functions[i].code, functions[i].len);
		elf_function(&elf, 0x100, functions[i].len, false);
		elf_is(&elf, 1, 0x100 + functions[i].at, ANY);
		ck_assert_uint_eq(elf.counts.instructions, 1);
	}
}
END_TEST

START_TEST(test_call_clobbers)
{
	/* mov $202, %r8d; call; mov %r8d, %eax; syscall */
	elf_code(&elf, 0x100, 0x41, 0xb8, 0xca, 0, 0, 0, 0xe8, 0, 1, 0, 0,
		 0x44, 0x89, 0xc0, 0x0f, 0x05, 0xc3);
	elf_is(&elf, 1, 0x10e, ANY);
}
END_TEST

START_TEST(test_syscall_clobbers)
{
	/* mov $202, %ecx; xor %eax, %eax; syscall; mov %ecx, %eax; syscall */
	elf_code(&elf, 0x100, 0xb9, 0xca, 0, 0, 0, 0x31, 0xc0, 0x0f, 0x05,
		 0x89, 0xc8, 0x0f, 0x05, 0xc3);
	elf_look(&elf);
	ck_assert_int_eq(elf.rc, 0);
	ck_assert_uint_eq(elf.sites, 2);
	ck_assert_int_eq(elf.site[0].number, 0);
	ck_assert_int_eq(elf.site[1].number, ANY);
}
END_TEST

/* The second of two, whose number is what the first has answered. */
START_TEST(test_result)
{
	elf_code(&elf, 0x100, 0xb8, 9, 0, 0, 0, 0x0f, 0x05, 0x0f, 0x05, 0xc3);
	elf_look(&elf);
	ck_assert_uint_eq(elf.sites, 2);
	ck_assert_int_eq(elf.site[0].number, 9);
	ck_assert_int_eq(elf.site[1].number, ANY);
}
END_TEST

START_TEST(test_one_path_unknown)
{
	/* test; je 1f; mov $9, %eax; 1: syscall */
	elf_code(&elf, 0x100, 0x85, 0xff, 0x74, 5, 0xb8, 9, 0, 0, 0, 0x0f,
		 0x05, 0xc3);
	elf_is(&elf, 1, 0x109, ANY);
}
END_TEST

/* What comes back from a loop counts, too. */
START_TEST(test_loop)
{
	/* mov $9, %edx; 1: mov %edx, %eax; syscall; mov (%rdi), %edx; jmp 1b */
	elf_code(&elf, 0x100, 0xba, 9, 0, 0, 0, 0x89, 0xd0, 0x0f, 0x05, 0x8b,
		 0x17, 0xeb, 0xf8);
	elf_is(&elf, 1, 0x107, ANY);
}
END_TEST

/* Behind a jump, where no branch leads, but something may. */
START_TEST(test_no_way)
{
	/* mov $9, %eax; je 1f; ret; mov %edi, %edi; 1: syscall */
	elf_code(&elf, 0x100, 0xb8, 9, 0, 0, 0, 0x74, 3, 0xc3, 0x89, 0xff,
		 0x0f, 0x05, 0xc3);
	elf_is(&elf, 1, 0x10a, ANY);
}
END_TEST

START_TEST(test_32_bit)
{
	/* mov $9, %eax; int $0x80; mov $9, %eax; sysenter */
	elf_code(&elf, 0x100, 0xb8, 9, 0, 0, 0, 0xcd, 0x80, 0xb8, 9, 0, 0, 0,
		 0x0f, 0x34, 0xc3);
	elf_look(&elf);
	ck_assert_int_eq(elf.rc, 0);
	ck_assert_uint_eq(elf.sites, 2);
	ck_assert_int_eq(elf.site[0].number, ANY);
	ck_assert_int_eq(elf.site[1].number, ANY);
	ck_assert_uint_eq(elf.counts.instructions, 2);
}
END_TEST

/* Too many ways to follow, or numbers to keep. */
START_TEST(test_many_numbers)
{
	uint8_t code[16 * 9 + 2];
	size_t i;

	/* je 1f; mov $I, %eax; jmp 2f; 1: ... 2: syscall */
	for (i = 0; i < 16; i++) {
		const uint8_t one[] = {
			0x74, 7, 0xb8, (uint8_t)i, 0, 0, 0, 0xeb,
			(uint8_t)(16 * 9 - 9 * (i + 1))
		};

		memcpy(code + 9 * i, one, sizeof(one));
	}
	memcpy(code + 16 * 9, "\x0f\x05", 2);
	/* The last has no other way. */
	memcpy(code + 15 * 9, "\x66\x90", 2);
	elf_put(&elf, 0x100, code, sizeof(code));
	elf_function(&elf, 0x100, sizeof(code), false);
	elf_is(&elf, 1, 0x100 + 16 * 9, ANY);
}
END_TEST

/* ---- pairs that may be executed ------------------------------------------ */

START_TEST(test_branch_inside)
{
	/* jmp 1f; .byte 0xb8; 1: syscall; add %al, (%rax); ret */
	elf_code(&elf, 0x100, 0xeb, 1, 0xb8, 0x0f, 0x05, 0, 0, 0xc3);
	elf_is(&elf, 1, 0x103, ANY);
}
END_TEST

/* The branch leads to what comes before the pair in the instruction. */
START_TEST(test_branch_before)
{
	/* mov $imm64, %rax, with nop and syscall in it; then back into it */
	elf_code(&elf, 0x100, 0x48, 0xb8, 0x90, 0x90, 0x0f, 0x05, 0, 0, 0, 0,
		 0xeb, 0xf6);
	elf_is(&elf, 1, 0x104, ANY);
}
END_TEST

/* Behind the pair: it is not executed by that. */
START_TEST(test_branch_behind)
{
	elf_code(&elf, 0x100, 0x48, 0xb8, 0x0f, 0x05, 0x90, 0x90, 0, 0, 0, 0,
		 0xeb, 0xf8);
	elf_none(&elf, 1);
}
END_TEST

START_TEST(test_undecoded)
{
	/* mov $9, %eax; syscall; push %es, which 64-bit code has not */
	elf_code(&elf, 0x100, 0xb8, 9, 0, 0, 0, 0x0f, 0x05, 0x06, 0xc3);
	elf_is(&elf, 1, 0x105, ANY);
	ck_assert_uint_eq(elf.counts.instructions, 0);
}
END_TEST

/* An instruction that goes on behind the function's end. */
START_TEST(test_cut_off)
{
	elf_bytes(&elf, 0x100, 0xb8, 0x0f, 0x05, 0, 0, 0xc3);
	elf_function(&elf, 0x100, 4, false);
	elf_is(&elf, 1, 0x101, ANY);
}
END_TEST

/* Intel's and AMD's processors do not agree where this leads. */
START_TEST(test_odd_branch)
{
	elf_code(&elf, 0x100, 0x66, 0xe9, 0, 0, 0, 0, 0xb8, 0x0f, 0x05, 0, 0,
		 0xc3);
	elf_is(&elf, 1, 0x107, ANY);
}
END_TEST

/* What comes behind the mapping may complete it. */
START_TEST(test_last_byte)
{
	elf_bytes(&elf, ELF_TEXT_LEN - 1, 0x0f);
	elf_is(&elf, 1, ELF_TEXT_LEN - 1, ANY);
	elf_bytes(&elf, ELF_TEXT_LEN - 1, 0xcd);
	elf_is(&elf, 1, ELF_TEXT_LEN - 1, ANY);
}
END_TEST

/* No pair is passed over, wherever it lies. */
START_TEST(test_each_place)
{
	static const uint8_t pair[][2] = {
		{ 0x0f, 0x05 }, { 0x0f, 0x34 }, { 0xcd, 0x80 }
	};
	size_t at, i;

	elf.image.path = NULL;
	for (at = 0; at < ELF_TEXT_LEN - 1; at++) {
		for (i = 0; i < 3; i++) {
			elf_put(&elf, at, pair[i], 2);
			elf_look(&elf);
			ck_assert_uint_eq(elf.counts.pairs, 1);
			ck_assert_uint_eq(elf.sites, 1);
			ck_assert_uint_eq(elf.site[0].at,
					  elf.image.start + at);
		}
		elf_bytes(&elf, at, 0xc3, 0xc3);
	}
}
END_TEST

/* ---- sections ------------------------------------------------------------ */

static void put_data(void)
{
	elf_bytes(&elf, 0x800, 1, 2, 0x0f, 0x05, 3, 4);
	elf_shdr(&elf, 1)->sh_size = 0x800;
	elf_section(&elf, SHT_PROGBITS, SHF_ALLOC, ELF_TEXT + 0x800, 0x800);
}

START_TEST(test_data_section)
{
	put_data();
	elf_none(&elf, 1);
	ck_assert_uint_eq(elf.counts.data, 1);
}
END_TEST

START_TEST(test_no_sections)
{
	put_data();
	elf.image.path = NULL;
	elf_is(&elf, 1, 0x802, ANY);
}
END_TEST

static bool count_site(void *arg, const struct mrrc_code_site *site)
{
	unsigned *count = arg;

	(void)site;
	++*count;
	return false;
}

/* The same with other notes (a build ID), or program headers. */
START_TEST(test_replaced_file)
{
	struct mrrc_code_counts counts;
	unsigned count = 0;

	*elf_phdr(&elf, 3) = (Elf64_Phdr) {
		.p_type = PT_NOTE, .p_flags = PF_R, .p_offset = 0x300,
		.p_vaddr = 0x300, .p_filesz = 16, .p_memsz = 16
	};
	put_data();
	elf_none(&elf, 1);
	elf.bytes[0x305] ^= 1;
	ck_assert_int_eq(mrrc_code_look(&elf.image, count_site, &count,
					&counts), 0);
	ck_assert_uint_eq(count, 1);
	elf.bytes[0x305] ^= 1;
	elf_phdr(&elf, 3)->p_align ^= 1;
	ck_assert_int_eq(mrrc_code_look(&elf.image, count_site, &count,
					&counts), 0);
	ck_assert_uint_eq(count, 2);
	elf_phdr(&elf, 3)->p_align ^= 1;
	elf_ehdr(&elf)->e_version ^= 1;
	ck_assert_int_eq(mrrc_code_look(&elf.image, count_site, &count,
					&counts), 0);
	ck_assert_uint_eq(count, 3);
}
END_TEST

/* ---- gaps between functions ---------------------------------------------- */

/*
 * A function at 0x100; a table with a pair at 0x404, that begins with what is
 * no instruction; another function at 0x500.
 */
static void put_gap(void)
{
	elf_bytes(&elf, 0x3f0, 0x90, 0xc3);
	elf_function(&elf, 0x3f0, 2, false);
	memset(elf.bytes + ELF_TEXT + 0x3f2, 0x06, 0x500 - 0x3f2);
	elf_bytes(&elf, 0x404, 0x0f, 0x05, 0xc3);
	elf_code(&elf, 0x500, 0x90, 0xc3);
}

START_TEST(test_gap)
{
	put_gap();
	elf_none(&elf, 1);
	ck_assert_uint_eq(elf.counts.data, 1);
}
END_TEST

START_TEST(test_gap_no_sections)
{
	put_gap();
	elf.image.path = NULL;
	elf_is(&elf, 1, 0x404, ANY);
}
END_TEST

START_TEST(test_gap_branch)
{
	elf_code(&elf, 0x100, 0xe8, 0xff, 0x02, 0, 0, 0xc3);	/* 0x404 */
	put_gap();
	elf_is(&elf, 1, 0x404, ANY);
}
END_TEST

/* The branch leads to what comes before it, or to a branch there. */
START_TEST(test_gap_path)
{
	elf_code(&elf, 0x100, 0xe9, 0xfb, 0x02, 0, 0, 0xc3);	/* 0x400 */
	put_gap();
	elf_bytes(&elf, 0x400, 0x90, 0x66, 0x90, 0x90);
	elf_is(&elf, 1, 0x404, ANY);
	elf_bytes(&elf, 0x400, 0xeb, 0x10);
	elf_none(&elf, 1);
	elf_bytes(&elf, 0x412, 0x74, 0xf0);
	elf_is(&elf, 1, 0x404, ANY);
}
END_TEST

START_TEST(test_gap_lea)
{
	elf_code(&elf, 0x100, 0x48, 0x8d, 0x05, 0xfd, 0x02, 0, 0, 0xc3);
	put_gap();
	elf_is(&elf, 1, 0x404, ANY);
	/* To the start of the table, which is no code. */
	elf_bytes(&elf, 0x100, 0x48, 0x8d, 0x05, 0xf9, 0x02, 0, 0, 0xc3);
	elf_none(&elf, 1);
}
END_TEST

/* What looks like a distance, but is a constant. */
START_TEST(test_gap_constant)
{
	elf_code(&elf, 0x100, 0xb8, 0xff, 0x02, 0, 0, 0xc3);
	put_gap();
	elf_none(&elf, 1);
}
END_TEST

/* The same in bytes that are in no function: it may be a branch. */
START_TEST(test_gap_gap)
{
	elf_code(&elf, 0x80, 0x90, 0xc3);
	elf_bytes(&elf, 0x100, 0xe8, 0xff, 0x02, 0, 0, 0xc3);
	put_gap();
	elf_is(&elf, 1, 0x404, ANY);
}
END_TEST

/* In filler between two functions, it is none. */
START_TEST(test_gap_filler)
{
	elf_code(&elf, 0x100, 0x90, 0xc3);
	/* nopw with a displacement that is a distance to the pair */
	elf_bytes(&elf, 0x102, 0x66, 0x0f, 0x1f, 0x84, 0x00, 0xfa, 0x02, 0, 0);
	elf_code(&elf, 0x10b, 0x90, 0xc3);
	put_gap();
	elf_bytes(&elf, 0x403, 0x06);
	elf_none(&elf, 1);
	/* The distance is from 0x10b to 0x405, one too far. */
	elf_bytes(&elf, 0x107, 0xf9);
	elf_none(&elf, 1);
}
END_TEST

/* The four bytes are no distance: it has one byte. */
START_TEST(test_gap_size)
{
	elf_code(&elf, 0x100, 0x74, 0xff, 0x02, 0, 0, 0xc3, 0xc3);
	put_gap();
	elf_none(&elf, 1);
}
END_TEST

/* A constant leads to the pair, and a call to the middle of the same way. */
START_TEST(test_gap_again)
{
	elf_code(&elf, 0x100, 0xb8, 0xfb, 0x02, 0, 0, 0xc3);	/* 0x400 */
	elf_code(&elf, 0x110, 0xe8, 0xed, 0x02, 0, 0, 0xc3);	/* 0x402 */
	put_gap();
	elf_bytes(&elf, 0x400, 0x90, 0x90, 0x90, 0x90);
	elf_is(&elf, 1, 0x404, ANY);
}
END_TEST

/* An instruction ends in the next function: that is not as it was decoded. */
START_TEST(test_gap_over)
{
	elf_code(&elf, 0x100, 0xe9, 0xfa, 0x03, 0, 0, 0xc3);	/* 0x4ff */
	put_gap();
	elf_none(&elf, 1);
	elf_bytes(&elf, 0x4ff, 0xb8);
	elf_is(&elf, 1, 0x404, ANY);
}
END_TEST

START_TEST(test_gap_near)
{
	put_gap();
	/* jmp, in the function before the gap */
	elf_bytes(&elf, 0x3f0, 0xeb, 0x12);
	elf_is(&elf, 1, 0x404, ANY);
	elf_bytes(&elf, 0x3f0, 0x90, 0xc3);
	elf_none(&elf, 1);
	/* and in the one behind it */
	elf_bytes(&elf, 0x490, 0x0f, 0x05, 0xc3);
	elf_bytes(&elf, 0x404, 0x06, 0x06);
	elf_bytes(&elf, 0x500, 0xeb, 0x8e);
	elf_is(&elf, 1, 0x490, ANY);
}
END_TEST

START_TEST(test_gap_symbol)
{
	Elf64_Sym *const symbol = (void *)(elf.bytes + ELF_TABLES);

	put_gap();
	elf_section(&elf, SHT_DYNSYM, SHF_ALLOC, ELF_TABLES,
		    2 * sizeof(*symbol));
	symbol[1] = (Elf64_Sym) {
		.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		.st_shndx = 1, .st_value = ELF_TEXT + 0x404
	};
	elf_is(&elf, 1, 0x404, ANY);
	symbol[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE);
	elf_is(&elf, 1, 0x404, ANY);
	symbol[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
	elf_none(&elf, 1);
}
END_TEST

START_TEST(test_gap_relocation)
{
	Elf64_Rela *const rela = (void *)(elf.bytes + ELF_TABLES);

	put_gap();
	elf_section(&elf, SHT_RELA, SHF_ALLOC, ELF_TABLES, sizeof(*rela));
	rela->r_addend = ELF_TEXT + 0x404;
	elf_is(&elf, 1, 0x404, ANY);
	rela->r_addend = ELF_TEXT + 0x400;
	elf_none(&elf, 1);
	elf_shdr(&elf, 2)->sh_type = SHT_REL;
	elf_is(&elf, 1, 0x404, ANY);
	elf_shdr(&elf, 2)->sh_type = SHT_RELR;
	elf_is(&elf, 1, 0x404, ANY);
	/* A table that is not there. */
	elf_shdr(&elf, 2)->sh_type = SHT_RELA;
	elf_shdr(&elf, 2)->sh_addr = ELF_LEN;
	elf_is(&elf, 1, 0x404, ANY);
}
END_TEST

START_TEST(test_gap_entries)
{
	Elf64_Dyn *const dyn = (void *)(elf.bytes + ELF_TABLES);

	put_gap();
	elf_section(&elf, SHT_DYNAMIC, SHF_ALLOC, ELF_TABLES, sizeof(*dyn));
	*dyn = (Elf64_Dyn) { DT_INIT, { ELF_TEXT + 0x404 } };
	elf_is(&elf, 1, 0x404, ANY);
	dyn->d_tag = DT_FINI;
	elf_is(&elf, 1, 0x404, ANY);
	dyn->d_tag = DT_NEEDED;
	elf_none(&elf, 1);
	elf_ehdr(&elf)->e_entry = ELF_TEXT + 0x404;
	elf_is(&elf, 1, 0x404, ANY);
}
END_TEST

/* What takes addresses without a trace. */
START_TEST(test_gap_fixed)
{
	put_gap();
	elf_ehdr(&elf)->e_type = ET_EXEC;
	elf_is(&elf, 1, 0x404, ANY);
	elf_ehdr(&elf)->e_type = ET_DYN;
	elf_phdr(&elf, 0)->p_flags |= PF_X;
	elf_is(&elf, 1, 0x404, ANY);
}
END_TEST

START_TEST(test_gap_indirect)
{
	elf_code(&elf, 0x100, 0xe9, 0xfb, 0x02, 0, 0, 0xc3);	/* 0x400 */
	put_gap();
	elf_bytes(&elf, 0x400, 0xff, 0xe0);		/* jmp *%rax */
	elf_is(&elf, 1, 0x404, ANY);
	elf_bytes(&elf, 0x400, 0xff, 0x25, 0, 0);	/* jmp *x(%rip) */
	elf_bytes(&elf, 0x404, 0xcd, 0x80);
	elf_none(&elf, 1);
}
END_TEST

/* clone(): its unwinding ends before the system call. */
START_TEST(test_gap_falls)
{
	elf_bytes(&elf, 0x100, 0xb8, 0x38, 0, 0, 0, 0x0f, 0x05, 0xc3);
	elf_function(&elf, 0x100, 5, false);
	elf_code(&elf, 0x108, 0x90, 0xc3);
	elf_is(&elf, 1, 0x105, 0x38);
}
END_TEST

/* ---- tables of functions ------------------------------------------------- */

START_TEST(test_frames)
{
	uint8_t *const frames = elf.bytes + ELF_FRAMES;
	static const struct {
		size_t at;
		uint8_t byte;
	} bad[] = {
		{ 0, 2 }, { 1, 0xff }, { 1, 0x01 }, { 2, 0x0b }, { 3, 0x1b },
		{ 11, 0x80 },		/* too many entries */
		{ 15, 0x70 },		/* the function is elsewhere */
		{ 19, 0x70 },		/* its FDE is */
		{ 0x400, 3 },		/* length of the CIE */
		{ 0x404, 1 },		/* no CIE */
		{ 0x408, 2 },		/* its version */
		{ 0x409, 'x' }, { 0x40a, 'x' },
		{ 0x410, 0x2b },	/* encoding of addresses */
		{ 0x410, 0x01 },
		{ 0x430, 3 },		/* length of the FDE */
		{ 0x433, 0x80 },
		{ 0x434, 0 },		/* its CIE */
		{ 0x438, 1 },		/* its function, not as in the table */
		{ 0x43f, 0x70 },	/* its length: out of the mapping */
	};
	uint8_t was;
	size_t i;

	elf_code(&elf, 0x100, 0xb8, 9, 0, 0, 0, 0x0f, 0x05, 0xc3);
	/* Without sections, what is in no function is not known. */
	elf.image.path = NULL;
	elf_is(&elf, 1, 0x105, 9);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		was = frames[bad[i].at];
		ck_assert_int_ne(was, bad[i].byte);
		frames[bad[i].at] = bad[i].byte;
		elf_is(&elf, 1, 0x105, ANY);
		frames[bad[i].at] = was;
	}
	elf_phdr(&elf, 2)->p_memsz = 19;
	elf_is(&elf, 1, 0x105, ANY);
	elf_phdr(&elf, 2)->p_type = PT_NULL;
	elf_is(&elf, 1, 0x105, ANY);
}
END_TEST

/* The table may not be where it cannot be read. */
START_TEST(test_frames_outside)
{
	elf_code(&elf, 0x100, 0xb8, 9, 0, 0, 0, 0x0f, 0x05, 0xc3);
	elf_phdr(&elf, 2)->p_vaddr = ELF_LEN;
	elf_is(&elf, 1, 0x105, ANY);
	elf_phdr(&elf, 2)->p_vaddr = ELF_FRAMES;
	elf_is(&elf, 1, 0x105, 9);
	elf.image.hi = elf.image.end;
	elf.image.lo = elf.image.start;
	elf_look(&elf);
	ck_assert_int_eq(elf.rc, -EINVAL);
}
END_TEST

START_TEST(test_signal)
{
	/* A byte that belongs to no instruction; mov $15, %rax; syscall */
	elf_bytes(&elf, 0x100, 0, 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05);
	elf_function(&elf, 0x100, 10, true);
	elf_is(&elf, 1, 0x108, 15);
}
END_TEST

START_TEST(test_flips)
{
	const unsigned seed = (unsigned)time(NULL);
	static uint8_t whole[ELF_LEN];
	unsigned i, j;
	size_t at;

	elf_code(&elf, 0x100, 0x41, 0xbc, 0xca, 0, 0, 0, 0xe8, 0, 2, 0, 0,
		 0x44, 0x89, 0xe0, 0x0f, 0x05, 0x74, 0xf9, 0xc3);
	put_gap();
	put_data();
	elf_section(&elf, SHT_DYNSYM, SHF_ALLOC, ELF_TABLES, 48);
	elf_section(&elf, SHT_RELA, SHF_ALLOC, ELF_TABLES + 64, 48);
	elf_section(&elf, SHT_DYNAMIC, SHF_ALLOC, ELF_TABLES + 128, 64);
	memcpy(whole, elf.bytes, ELF_LEN);
	fprintf(stderr, "seed %u\n", seed);
	srandom(seed);
	for (i = 0; i < FLIPS; i++) {
		for (j = 0; j <= i % 4; j++) {
			at = (size_t)random() % 5 * 0x1000;
			at = at == 0x4000 ? ELF_FRAMES : at;
			at += (size_t)random() % 0x200;
			elf.bytes[at] ^= (uint8_t)(1u << random() % 8);
			if (random() % 4 == 0)
				elf.bytes[at] = 0xff;
		}
		/* In memory and in the file, or in one of them. */
		if (i % 3)
			elf_look(&elf);
		else
			mrrc_code_look(&elf.image, count_site, &j,
				       &elf.counts);
		memcpy(elf.bytes, whole, ELF_LEN);
	}
}
END_TEST

/* ---- numbers that are known ---------------------------------------------- */

START_TEST(test_constant)
{
	elf_code(&elf, 0x100, 0xb8, 11, 0, 0, 0, 0x0f, 0x05, 0xc3);
	elf_is(&elf, 1, 0x105, 11);
	ck_assert_uint_eq(elf.counts.instructions, 1);
}
END_TEST

START_TEST(test_wide)
{
	/* mov $15, %rax; REX.W syscall */
	elf_code(&elf, 0x100, 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x48, 0x0f, 0x05);
	elf_is(&elf, 1, 0x107, 15);
}
END_TEST

START_TEST(test_zero)
{
	elf_code(&elf, 0x100, 0x31, 0xc0, 0x0f, 0x05, 0xc3);
	elf_is(&elf, 1, 0x102, 0);
}
END_TEST

START_TEST(test_saved)
{
	/* mov $202, %r12d; call; mov %r12d, %eax; syscall */
	elf_code(&elf, 0x100, 0x41, 0xbc, 0xca, 0, 0, 0, 0xe8, 0, 1, 0, 0,
		 0x44, 0x89, 0xe0, 0x0f, 0x05, 0xc3);
	elf_is(&elf, 1, 0x10e, 202);
}
END_TEST

START_TEST(test_two_paths)
{
	elf_code(&elf, 0x100, 0x85, 0xff, 0x74, 7, 0xb8, 1, 0, 0, 0, 0xeb, 5,
		 0xb8, 2, 0, 0, 0, 0x0f, 0x05, 0xc3);
	elf_look(&elf);
	ck_assert_int_eq(elf.rc, 0);
	ck_assert_uint_eq(elf.sites, 2);
	ck_assert_uint_eq(elf.site[0].at, elf.image.start + 0x110);
	ck_assert_uint_eq(elf.site[1].at, elf.image.start + 0x110);
	ck_assert_int_eq(elf.site[0].number + elf.site[1].number, 3);
	ck_assert_uint_eq(elf.counts.instructions, 1);
	ck_assert_uint_eq(elf.counts.unknown, 0);
}
END_TEST

/* mov $202, %edx; jmp 1f; nop; 2: mov (%rdi), %ecx; 1: ...; jne 2b */
START_TEST(test_filler)
{
	elf_code(&elf, 0x100, 0xba, 0xca, 0, 0, 0, 0xeb, 5, 0x0f, 0x1f, 0x00,
		 0x8b, 0x0f, 0x89, 0xd0, 0x0f, 0x05, 0x75, 0xf8, 0xc3);
	elf_is(&elf, 1, 0x10e, 202);
}
END_TEST

/* A branch over a lock prefix, as libc has them. */
START_TEST(test_lock)
{
	/* mov $9, %eax; je 1f; lock; 1: incl (%rdi); syscall */
	elf_code(&elf, 0x100, 0xb8, 9, 0, 0, 0, 0x74, 1, 0xf0, 0xff, 0x07,
		 0x0f, 0x05, 0xc3);
	elf_is(&elf, 1, 0x10a, 9);
}
END_TEST

/* Into any other instruction: what is done there is not known. */
START_TEST(test_split)
{
	/* je 1f; mov $9, %eax, into which it leads; syscall */
	elf_code(&elf, 0x100, 0xb8, 9, 0, 0, 0, 0x74, 1, 0xb9, 1, 0, 0, 0,
		 0x0f, 0x05, 0xc3);
	elf_is(&elf, 1, 0x10c, ANY);
}
END_TEST

/* call 1f; ...; 1: pop: as unwinding of signals does */
START_TEST(test_local_call)
{
	elf_code(&elf, 0x100, 0xb8, 9, 0, 0, 0, 0xe8, 1, 0, 0, 0, 0xc3, 0x59,
		 0x0f, 0x05, 0xc3);
	elf_is(&elf, 1, 0x10c, 9);
}
END_TEST

/* A loop that calls what never returns, which does not lose the number. */
START_TEST(test_no_return)
{
	/* mov $202, %r8d; jmp 2f; 1: call; 2: mov %r8d, %eax; syscall */
	elf_code(&elf, 0x100, 0x41, 0xb8, 0xca, 0, 0, 0, 0x74, 5, 0xe8, 0xf3,
		 0, 0, 0, 0x44, 0x89, 0xc0, 0x0f, 0x05, 0xc3);
	elf_bytes(&elf, 0x200, 0x90, 0xeb, 0xfd, 0xc3);
	elf_function(&elf, 0x200, 3, false);
	elf_is(&elf, 1, 0x110, 202);
	elf_bytes(&elf, 0x201, 0x74);	/* a branch, and a return behind it */
	elf_is(&elf, 1, 0x110, ANY);
	elf_bytes(&elf, 0x200, 0xc3);
	elf_is(&elf, 1, 0x110, ANY);
	elf_bytes(&elf, 0x200, 0xff, 0xe0);
	elf_is(&elf, 1, 0x110, ANY);
	/* jmp to another function, that returns, or not */
	elf_bytes(&elf, 0x200, 0xeb, 0x0e, 0xc3);
	elf_code(&elf, 0x210, 0xc3, 0x90);
	elf_is(&elf, 1, 0x110, ANY);
	elf_bytes(&elf, 0x210, 0xeb, 0xfe);
	elf_is(&elf, 1, 0x110, 202);
}
END_TEST

/* Another function jumps to where the number is relied on. */
START_TEST(test_entered)
{
	elf_code(&elf, 0x100, 0xb8, 9, 0, 0, 0, 0x0f, 0x05, 0xc3);
	/* jmp to 0x104, then to 0x105; lea and je of it */
	elf_code(&elf, 0x200, 0xe9, 0xff, 0xfe, 0xff, 0xff, 0x90, 0x90, 0xc3);
	elf_is(&elf, 1, 0x105, 9);
	elf_bytes(&elf, 0x201, 0x00, 0xff);
	elf_is(&elf, 1, 0x105, ANY);
	elf_bytes(&elf, 0x200, 0x48, 0x8d, 0x05, 0xfe, 0xfe, 0xff, 0xff, 0xc3);
	elf_is(&elf, 1, 0x105, ANY);
	elf_bytes(&elf, 0x200, 0x0f, 0x84, 0xff, 0xfe, 0xff, 0xff);
	elf_is(&elf, 1, 0x105, ANY);
	/* In an instruction, it is none: movabs. */
	elf_code(&elf, 0x300, 0x48, 0xb8, 0xe8, 0xfe, 0xfd, 0xff, 0xff, 0, 0, 0);
	elf_bytes(&elf, 0x200, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90);
	elf_is(&elf, 1, 0x105, 9);
}
END_TEST

START_TEST(test_entered_near)
{
	elf_code(&elf, 0x100, 0xb8, 9, 0, 0, 0, 0x0f, 0x05, 0xc3);
	elf_code(&elf, 0x110, 0xeb, 0xf3);
	elf_is(&elf, 1, 0x105, ANY);
	elf_bytes(&elf, 0x110, 0x74);
	elf_is(&elf, 1, 0x105, ANY);
	elf_bytes(&elf, 0x110, 0xe2);
	elf_is(&elf, 1, 0x105, ANY);
	elf_bytes(&elf, 0x110, 0xe2, 0xf4);
	elf_is(&elf, 1, 0x105, 9);
}
END_TEST

/* So does a symbol, or a relocation. */
START_TEST(test_entered_symbol)
{
	Elf64_Sym *const symbol = (void *)(elf.bytes + ELF_TABLES);

	elf_code(&elf, 0x100, 0xb8, 9, 0, 0, 0, 0x0f, 0x05, 0xc3);
	elf_section(&elf, SHT_DYNSYM, SHF_ALLOC, ELF_TABLES, sizeof(*symbol));
	*symbol = (Elf64_Sym) {
		.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		.st_shndx = 1, .st_value = ELF_TEXT + 0x100
	};
	elf_is(&elf, 1, 0x105, 9);
	symbol->st_value = ELF_TEXT + 0x105;
	elf_is(&elf, 1, 0x105, ANY);
}
END_TEST

/* An indirect jump, and a table of what it may lead to. */
START_TEST(test_table)
{
	/* mov %edi, %eax; lea table, %rdx; jmp *%rcx; nop; mov $9, %eax; ... */
	elf_code(&elf, 0x100, 0x89, 0xf8, 0x48, 0x8d, 0x15, 0xf7, 0, 0, 0, 0xff,
		 0xe1, 0x90, 0xb8, 9, 0, 0, 0, 0x0f, 0x05, 0xc3);
	elf_bytes(&elf, 0x200, 0x0c, 0xff, 0xff, 0xff);
	elf_shdr(&elf, 1)->sh_size = 0x200;
	elf_section(&elf, SHT_PROGBITS, SHF_ALLOC, ELF_TEXT + 0x200, 0xe00);
	elf_is(&elf, 1, 0x111, 9);
	/* The second leads to the system call. */
	elf_bytes(&elf, 0x204, 0x11, 0xff, 0xff, 0xff);
	elf_is(&elf, 1, 0x111, ANY);
	/* The table is of addresses: it may lead anywhere. */
	elf_bytes(&elf, 0x204, 0x0c, 0xff, 0xff, 0xff);
	elf_is(&elf, 1, 0x111, 9);
	elf_bytes(&elf, 0x109, 0xff, 0x24, 0xca);
	elf_is(&elf, 1, 0x111, ANY);
}
END_TEST

START_TEST(test_inside)
{
	elf_code(&elf, 0x100, 0xb8, 0x0f, 0x05, 0, 0, 0xc3);
	elf_none(&elf, 1);
	ck_assert_uint_eq(elf.counts.instructions, 0);
}
END_TEST

/* ---- this process -------------------------------------------------------- */

struct own {
	uintptr_t at;		/* of a function */
	long number;		/* of the first site in it */
	const char *object;
	struct mrrc_code_counts counts;
	bool looked;
};

static bool own_site(void *arg, const struct mrrc_code_site *site)
{
	struct own *own = arg;

	if (site->at >= own->at && site->at < own->at + 64 &&
	    own->number == -2)
		own->number = site->number;
	return true;
}

static int own_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct mrrc_code_image image = {
		.base = info->dlpi_addr, .path = info->dlpi_name,
		.lo = UINTPTR_MAX
	};
	struct own *own = arg;
	uintptr_t at, end;
	unsigned i;

	(void)size;
	if (!strstr(info->dlpi_name, own->object))
		return 0;
	for (i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		end = at + info->dlpi_phdr[i].p_memsz;
		if (at < image.lo)
			image.lo = at;
		image.hi = end;
		if (info->dlpi_phdr[i].p_flags & PF_X) {
			image.start = at;
			image.end = end;
		}
	}
	image.ehdr = (const void *)image.lo;
	ck_assert_int_eq(mrrc_code_look(&image, own_site, own, &own->counts),
			 0);
	own->looked = true;
	return 1;
}

static void look_own(const char *object, const char *function, long number)
{
	struct own own = { .object = object, .number = -2 };

	if (function)
		own.at = (uintptr_t)dlsym(RTLD_DEFAULT, function);
	dl_iterate_phdr(own_object, &own);
	if (!own.looked)
		skip("another libc");
	if (function)
		ck_assert_int_eq(own.number, number);
	ck_assert_uint_ge(own.counts.instructions, 20);
	/* syscall(); and what libc's setuid() tells its threads to call */
	ck_assert_uint_le(own.counts.unknown, 8);
	fprintf(stderr, "%s: %u pairs, %u instructions, %u unknown\n", object,
		own.counts.pairs, own.counts.instructions, own.counts.unknown);
}

START_TEST(test_own)
{
	look_own("libc.so", "__munmap", SYS_munmap);
	look_own("libc.so", "syscall", ANY);
	look_own("ld-linux", NULL, 0);
}
END_TEST

START_TEST(test_ends)
{
	struct mrrc_code_counts counts;
	unsigned count = 0;

	elf_code(&elf, 0x100, 0x0f, 0x05, 0x0f, 0x05, 0xc3);
	ck_assert_int_eq(mrrc_code_look(&elf.image, count_site, &count,
					&counts), 0);
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(counts.instructions, 2);
}
END_TEST

#endif /* HAVE_ZYDIS */

/* ---- headers ------------------------------------------------------------- */

START_TEST(test_headers)
{
	Elf64_Ehdr *const ehdr = elf_ehdr(&elf);
	const Elf64_Ehdr was = *ehdr;

#define BAD(field, value)						\
	do {								\
		ehdr->field = value;					\
		elf_look(&elf);						\
		ck_assert_int_eq(elf.rc, -EINVAL);			\
		*ehdr = was;						\
	} while (0)
	BAD(e_ident[0], 0);
	BAD(e_ident[EI_CLASS], ELFCLASS32);
	BAD(e_ident[EI_DATA], ELFDATA2MSB);
	BAD(e_phentsize, 32);
	BAD(e_phnum, 65535);
	BAD(e_phoff, ELF_LEN);
	BAD(e_phoff, UINT64_MAX - 7);
	BAD(e_phoff, ELF_LEN - 8);
	BAD(e_phoff, 65);
#undef BAD
	ehdr->e_machine = EM_RISCV;
	elf_look(&elf);
	ck_assert_int_eq(elf.rc, -EOPNOTSUPP);
}
END_TEST

START_TEST(test_build_id)
{
	static const uint8_t note[] = {
		4, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 'G', 'N', 'U', 0, 7, 0, 0,
		0,
		4, 0, 0, 0, 6, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 1, 2, 3,
		4, 5, 6, 0, 0
	};
	static const uint8_t want[MRRC_CODE_ID] = { 1, 2, 3, 4, 5, 6 };
	uint8_t id[MRRC_CODE_ID];
	unsigned i;

	ck_assert_int_eq(mrrc_code_build_id(&elf.image, id), -ENOENT);
	memcpy(elf.bytes + ELF_LEN - sizeof(note), note, sizeof(note));
	*elf_phdr(&elf, 3) = (Elf64_Phdr) {
		.p_type = PT_NOTE, .p_flags = PF_R,
		.p_vaddr = ELF_LEN - sizeof(note), .p_filesz = sizeof(note)
	};
	memset(id, 0xff, sizeof(id));
	ck_assert_int_eq(mrrc_code_build_id(&elf.image, id), 0);
	ck_assert_mem_eq(id, want, sizeof(id));
	for (i = 0; i < sizeof(note); i++) {
		elf_phdr(&elf, 3)->p_filesz = i;
		ck_assert_int_eq(mrrc_code_build_id(&elf.image, id), -ENOENT);
	}
	elf_phdr(&elf, 3)->p_filesz = sizeof(note);
	elf.bytes[ELF_LEN - sizeof(note) + 24] = 200;
	ck_assert_int_eq(mrrc_code_build_id(&elf.image, id), -ENOENT);
	elf.bytes[ELF_LEN - sizeof(note) + 24] = 21;
	ck_assert_int_eq(mrrc_code_build_id(&elf.image, id), -ENOENT);
}
END_TEST

START_TEST(test_file)
{
	struct mrrc_code_image image;
	struct mrrc_code_file file;

	elf_look(&elf);		/* writes the file */
	ck_assert_int_eq(mrrc_code_open(elf.path, &file), 0);
	ck_assert(mrrc_code_segment(&file, 0, &image));
	ck_assert_uint_eq(image.end - image.start, ELF_TEXT_LEN);
	ck_assert_mem_eq((void *)image.start, elf.bytes + ELF_TEXT,
			 ELF_TEXT_LEN);
	ck_assert(!mrrc_code_segment(&file, 1, &image));
	mrrc_code_close(&file);
	ck_assert_int_eq(ftruncate(elf.fd, ELF_TEXT + 1), 0);
	ck_assert_int_eq(mrrc_code_open(elf.path, &file), -EINVAL);
	ck_assert_int_eq(ftruncate(elf.fd, 10), 0);
	ck_assert_int_eq(mrrc_code_open(elf.path, &file), -EINVAL);
	ck_assert_int_eq(mrrc_code_open("/nowhere", &file), -ENOENT);
}
END_TEST

/* ---- 64-bit ARM ---------------------------------------------------------- */

#define SVC	0xd4000001
#define RET	0xd65f03c0

static void look_arm(const uint32_t *words, size_t count)
{
	elf_close(&elf);
	elf_open(&elf, EM_AARCH64);
	elf_put(&elf, 0x100, words, count * sizeof(*words));
	elf_function(&elf, 0x100, count * sizeof(*words), false);
}

#define arm(...)							\
	do {								\
		static const uint32_t words_[] = { __VA_ARGS__ };	\
									\
		look_arm(words_, sizeof(words_) / sizeof(words_[0]));	\
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
	elf_look(&elf);
	ck_assert_uint_eq(elf.sites, 2);
	ck_assert_int_eq(elf.site[0].number + elf.site[1].number, 98 + 215);
	/* svc #1, in no function */
	elf_bytes(&elf, 0x200, 0x21, 0, 0, 0xd4);
	elf_look(&elf);
	ck_assert_uint_eq(elf.sites, 3);
	ck_assert_int_eq(elf.site[2].number, ANY);
}
END_TEST

static Suite *code_suite(void)
{
	Suite *suite = suite_create("code");
	TCase *tcase = tcase_create("code");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 120);
#if defined(HAVE_ZYDIS)
	tcase_add_test(tcase, test_unknown_number);
	tcase_add_test(tcase, test_call_clobbers);
	tcase_add_test(tcase, test_syscall_clobbers);
	tcase_add_test(tcase, test_result);
	tcase_add_test(tcase, test_one_path_unknown);
	tcase_add_test(tcase, test_loop);
	tcase_add_test(tcase, test_no_way);
	tcase_add_test(tcase, test_32_bit);
	tcase_add_test(tcase, test_many_numbers);
	tcase_add_test(tcase, test_branch_inside);
	tcase_add_test(tcase, test_branch_before);
	tcase_add_test(tcase, test_branch_behind);
	tcase_add_test(tcase, test_undecoded);
	tcase_add_test(tcase, test_cut_off);
	tcase_add_test(tcase, test_odd_branch);
	tcase_add_test(tcase, test_last_byte);
	tcase_add_test(tcase, test_each_place);
	tcase_add_test(tcase, test_data_section);
	tcase_add_test(tcase, test_no_sections);
	tcase_add_test(tcase, test_replaced_file);
	tcase_add_test(tcase, test_gap);
	tcase_add_test(tcase, test_gap_no_sections);
	tcase_add_test(tcase, test_gap_branch);
	tcase_add_test(tcase, test_gap_path);
	tcase_add_test(tcase, test_gap_lea);
	tcase_add_test(tcase, test_gap_constant);
	tcase_add_test(tcase, test_gap_gap);
	tcase_add_test(tcase, test_gap_filler);
	tcase_add_test(tcase, test_gap_size);
	tcase_add_test(tcase, test_gap_again);
	tcase_add_test(tcase, test_gap_over);
	tcase_add_test(tcase, test_gap_near);
	tcase_add_test(tcase, test_gap_symbol);
	tcase_add_test(tcase, test_gap_relocation);
	tcase_add_test(tcase, test_gap_entries);
	tcase_add_test(tcase, test_gap_fixed);
	tcase_add_test(tcase, test_gap_indirect);
	tcase_add_test(tcase, test_gap_falls);
	tcase_add_test(tcase, test_frames);
	tcase_add_test(tcase, test_frames_outside);
	tcase_add_test(tcase, test_signal);
	tcase_add_test(tcase, test_flips);
	tcase_add_test(tcase, test_constant);
	tcase_add_test(tcase, test_wide);
	tcase_add_test(tcase, test_zero);
	tcase_add_test(tcase, test_saved);
	tcase_add_test(tcase, test_two_paths);
	tcase_add_test(tcase, test_filler);
	tcase_add_test(tcase, test_lock);
	tcase_add_test(tcase, test_split);
	tcase_add_test(tcase, test_local_call);
	tcase_add_test(tcase, test_no_return);
	tcase_add_test(tcase, test_entered);
	tcase_add_test(tcase, test_entered_near);
	tcase_add_test(tcase, test_entered_symbol);
	tcase_add_test(tcase, test_table);
	tcase_add_test(tcase, test_inside);
	tcase_add_test(tcase, test_own);
	tcase_add_test(tcase, test_ends);
#endif
	tcase_add_test(tcase, test_headers);
	tcase_add_test(tcase, test_build_id);
	tcase_add_test(tcase, test_file);
	tcase_add_test(tcase, test_arm_known);
	tcase_add_test(tcase, test_arm_unknown);
	tcase_add_test(tcase, test_arm_several);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return run_suite(code_suite(), CK_FORK_GETENV);
}
