/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys/proof/code: byte pairs that look like a system-call instruction. A pair
 * that code may jump to, or that cannot be decoded, always counts as a system
 * call.
 */
#include "config.h"
#include "test/case.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/syscall.h>

#include "test/sys/proof/code_fixture.h"

#ifdef HAVE_ZYDIS

/* ---- pairs that may be executed ------------------------------------------ */

static const struct elf_one ones[] = {
	/* jmp 1f, near or far; .byte 0xb8; 1: syscall; add %al, (%rax) */
	ELF_ONE(3, ANY, 0xeb, 1, 0xb8, 0x0f, 0x05, 0, 0, 0xc3),
	ELF_ONE(6, ANY, 0xe9, 1, 0, 0, 0, 0xb8, 0x0f, 0x05, 0, 0, 0xc3),
	/* Processors of Intel and AMD disagree where this jump leads. */
	ELF_ONE(7, ANY, 0x66, 0xe9, 0, 0, 0, 0, 0xb8, 0x0f, 0x05, 0, 0, 0xc3),
	/* A branch leads to a nop before the pair: mov $imm64, %rax */
	ELF_ONE(4, ANY, 0x48, 0xb8, 0x90, 0x90, 0x0f, 0x05, 0, 0, 0, 0, 0xeb,
		0xf6),
	/* jmp 1f; .byte 0xe8; 1: mov $11, %eax; syscall: call; add; add */
	ELF_ONE(8, ANY, 0xeb, 1, 0xe8, 0xb8, 11, 0, 0, 0, 0x0f, 0x05, 0xc3,
		0x90, 0x90, 0x90, 0xc3),
	/* A branch leads behind the pair, which is not executed. */
	ELF_ONE(0, NONE, 0x48, 0xb8, 0x0f, 0x05, 0x90, 0x90, 0, 0, 0, 0, 0xeb,
		0xf8),
	/* An immediate is no distance: mov $0x7fffffffffffffff, %rax; mov */
	ELF_ONE(0, NONE, 0x48, 0xb8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0x7f, 0xb8, 0x0f, 0x05, 0, 0, 0xc3),
	/* 64-bit code has no push %es: mov $9, %eax; syscall; push %es */
	ELF_ONE(5, ANY, 0xb8, 9, 0, 0, 0, 0x0f, 0x05, 0x06, 0xc3),
	/* An unknown instruction may be longer, and then there is no mov. */
	ELF_ONE(4, ANY, 0x06, 0xb8, 0, 0, 0x0f, 0x05, 0xc3),
};

TEST_CASE(code_pair, elf_setup, elf_teardown);

EACH_TEST(test_one, ones)
{
	elf_one(&ones[_i]);
}

/* An instruction goes on behind the function's end. */
TEST(test_cut_off)
{
	elf_bytes(&elf, 0x100, 0xb8, 0x0f, 0x05, 0, 0, 0xc3);
	elf_function(&elf, 0x100, 4, false);
	elf_is(&elf, 1, 0x101, ANY);
}

/*
 * A pair is far behind the function's begin, after bytes that decode in two
 * ways: in one way the pair is an instruction, in the other way a part of the
 * instruction enter.
 */
TEST(test_two_ways)
{
	memset(elf.bytes + ELF_TEXT + 0x100, 0, 0x123);
	elf_bytes(&elf, 0x210, 0xc0, 0xf8, 0);
	elf_bytes(&elf, 0x223, 0, 0xc8, 0x0f, 0x05, 0xc3);
	elf_function(&elf, 0x100, 0x128, false);
	elf_is(&elf, 1, 0x225, ANY);
}

/*
 * A pair is part of an add or of a mov, and the bytes behind the pair do not
 * decode. Further in front, however, all ways of decoding lead to the same
 * instruction.
 */
TEST(test_two_ways_near)
{
	memset(elf.bytes + ELF_TEXT + 0x100, 0x90, 0x80);
	memset(elf.bytes + ELF_TEXT + 0x180, 0, 0x80);
	elf_bytes(&elf, 0x200, 0xb8, 0x0f, 0x05, 0, 0, 0xc3, 0x06);
	elf_function(&elf, 0x100, 0x107, false);
	elf_none(&elf, 1);
}

/* The byte behind the mapping may complete a pair. */
TEST(test_last_byte)
{
	elf_bytes(&elf, ELF_TEXT_LEN - 1, 0x0f);
	elf_is(&elf, 1, ELF_TEXT_LEN - 1, ANY);
	elf_bytes(&elf, ELF_TEXT_LEN - 1, 0xcd);
	elf_is(&elf, 1, ELF_TEXT_LEN - 1, ANY);
}

/* A pair is found at each place. */
TEST(test_each_place)
{
	static const uint8_t pair[][2] = { { 0x0f, 0x05 },
					   { 0x0f, 0x34 },
					   { 0xcd, 0x80 } };
	size_t at, i;

	elf.image.fd = -1;
	for (at = 0; at < ELF_TEXT_LEN - 1; at++) {
		for (i = 0; i < 3; i++) {
			elf_put(&elf, at, pair[i], 2);
			elf_look(&elf);
			ck_assert_uint_eq(elf.counts.pairs, 1);
			ck_assert_uint_eq(elf.sites, 1);
			ck_assert_uint_eq(elf.site[0].at, elf.image.start + at);
		}
		elf_bytes(&elf, at, 0xc3, 0xc3);
	}
}

/* ---- sections ------------------------------------------------------------ */

TEST(test_data_section)
{
	elf_data();
	elf_none(&elf, 1);
	ck_assert_uint_eq(elf.counts.data, 1);
}

TEST(test_no_sections)
{
	elf_data();
	elf.image.fd = -1;
	elf_is(&elf, 1, 0x802, ANY);
}

/* ---- this process -------------------------------------------------------- */

struct own {
	uintptr_t at; /* address of a function */
	long number;  /* number of the first site in the function */
	const char *object;
	struct mrrc_code_counts counts;
	bool looked;
};

static bool own_site(void *arg, const struct mrrc_code_site *site)
{
	struct own *own = arg;

	if (site->at >= own->at && site->at < own->at + 64 && own->number == -2)
		own->number = site->number;
	return true;
}

static int own_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct mrrc_code_image image = { .base = info->dlpi_addr,
					 .fd = -1,
					 .lo = UINTPTR_MAX };
	struct own *own = arg;
	uintptr_t at, end;
	unsigned i;

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
	image.ehdr = (const void *) image.lo;
	image.fd = open(info->dlpi_name, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(image.fd, 0);
	ck_assert_int_eq(mrrc_code_look(&image, own_site, own, &own->counts),
			 0);
	close(image.fd);
	own->looked = true;
	return 1;
}

static void look_own(const char *object, const char *function, long number)
{
	struct own own = { .object = object, .number = -2 };

	if (function)
		own.at = (uintptr_t) dlsym(RTLD_DEFAULT, function);
	dl_iterate_phdr(own_object, &own);
	if (!own.looked)
		skip("another libc");
	if (function)
		ck_assert_int_eq(own.number, number);
	ck_assert_uint_ge(own.counts.instructions, 20);
	/* syscall() is unknown, and so are calls of setuid()'s threads. */
	ck_assert_uint_le(own.counts.unknown, 8);
	fprintf(stderr, "%s: %u pairs, %u instructions, %u unknown\n", object,
		own.counts.pairs, own.counts.instructions, own.counts.unknown);
}

TEST(test_own)
{
	look_own("libc.so", "__munmap", SYS_munmap);
	look_own("libc.so", "syscall", ANY);
	look_own("ld-linux", NULL, 0);
}

TEST(test_ends)
{
	struct mrrc_code_counts counts;
	unsigned count = 0;

	elf_code(&elf, 0x100, 0x0f, 0x05, 0x0f, 0x05, 0xc3);
	ck_assert_int_eq(mrrc_code_look(&elf.image, elf_count, &count, &counts),
			 0);
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(counts.instructions, 2);
}

#endif /* HAVE_ZYDIS */
