/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ELF files of tests (code_fixture.h).
 */
#include "config.h"
#include "code_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <check.h>

#define ENTRIES	0x800		/* .eh_frame */
#define SIGNAL	(ENTRIES + 24)	/* the second CIE */
#define GUARD	0x1000

/* CIE: length, 0, version 1, "zR" or "zRS", factors 1 and -8, register 16 */
static const uint8_t common[] = {
	20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b,
	0, 0, 0, 0, 0, 0, 0,
	20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 'S', 0, 1, 0x78, 16, 1, 0x1b,
	0, 0, 0, 0, 0, 0,
};

Elf64_Ehdr *elf_ehdr(struct code_elf *elf)
{
	return (Elf64_Ehdr *)elf->bytes;
}

Elf64_Phdr *elf_phdr(struct code_elf *elf, unsigned n)
{
	return (Elf64_Phdr *)(elf->bytes + sizeof(Elf64_Ehdr)) + n;
}

Elf64_Shdr *elf_shdr(struct code_elf *elf, unsigned n)
{
	return (Elf64_Shdr *)(elf->bytes + ELF_SECTIONS) + n;
}

static void put_word(struct code_elf *elf, size_t at, int64_t word)
{
	const int32_t value = (int32_t)word;

	memcpy(elf->bytes + at, &value, sizeof(value));
}

static void put_headers(struct code_elf *elf, unsigned machine)
{
	Elf64_Ehdr *const ehdr = elf_ehdr(elf);

	memcpy(ehdr->e_ident, ELFMAG, SELFMAG);
	ehdr->e_ident[EI_CLASS] = ELFCLASS64;
	ehdr->e_ident[EI_DATA] = ELFDATA2LSB;
	ehdr->e_type = ET_DYN;
	ehdr->e_machine = (Elf64_Half)machine;
	ehdr->e_phoff = sizeof(*ehdr);
	ehdr->e_phentsize = sizeof(Elf64_Phdr);
	ehdr->e_phnum = 4;
	ehdr->e_shoff = ELF_SECTIONS;
	ehdr->e_shentsize = sizeof(Elf64_Shdr);
	*elf_phdr(elf, 0) = (Elf64_Phdr) {
		.p_type = PT_LOAD, .p_flags = PF_R,
		.p_filesz = ELF_LEN, .p_memsz = ELF_LEN
	};
	*elf_phdr(elf, 1) = (Elf64_Phdr) {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X,
		.p_offset = ELF_TEXT, .p_vaddr = ELF_TEXT,
		.p_filesz = ELF_TEXT_LEN, .p_memsz = ELF_TEXT_LEN
	};
	*elf_phdr(elf, 2) = (Elf64_Phdr) {
		.p_type = PT_GNU_EH_FRAME, .p_flags = PF_R,
		.p_offset = ELF_FRAMES, .p_vaddr = ELF_FRAMES,
		.p_filesz = ENTRIES - ELF_FRAMES,
		.p_memsz = ENTRIES - ELF_FRAMES
	};
	elf_phdr(elf, 3)->p_type = PT_NOTE;
}

void elf_open(struct code_elf *elf, unsigned machine)
{
	static const uint8_t table[] = { 1, 0x1b, 3, 0x3b };

	memset(elf, 0, sizeof(*elf));
	elf->bytes = mmap(NULL, ELF_LEN + GUARD, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(elf->bytes, MAP_FAILED);
	ck_assert_int_eq(mprotect(elf->bytes + ELF_LEN, GUARD, PROT_NONE), 0);
	elf->fd = memfd_create("code", MFD_CLOEXEC);
	ck_assert_int_ge(elf->fd, 0);
	snprintf(elf->path, sizeof(elf->path), "/proc/self/fd/%d", elf->fd);
	put_headers(elf, machine);
	memcpy(elf->bytes + ELF_FRAMES, table, sizeof(table));
	memcpy(elf->bytes + ENTRIES, common, sizeof(common));
	elf->fde = ENTRIES + sizeof(common);
	elf->shdrs = 1;
	elf_section(elf, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, ELF_TEXT,
		    ELF_TEXT_LEN);
	/* Where nothing is put, there is a return. */
	if (machine == EM_X86_64)
		memset(elf->bytes + ELF_TEXT, 0xc3, ELF_TEXT_LEN);
	elf->image = (struct mrrc_code_image) {
		.base = (uintptr_t)elf->bytes, .ehdr = elf->bytes,
		.lo = (uintptr_t)elf->bytes,
		.hi = (uintptr_t)elf->bytes + ELF_LEN,
		.start = (uintptr_t)elf->bytes + ELF_TEXT,
		.end = (uintptr_t)elf->bytes + ELF_TEXT + ELF_TEXT_LEN,
		.path = elf->path,
	};
}

void elf_close(struct code_elf *elf)
{
	munmap(elf->bytes, ELF_LEN + GUARD);
	close(elf->fd);
}

void elf_put(struct code_elf *elf, size_t at, const void *bytes, size_t len)
{
	memcpy(elf->bytes + ELF_TEXT + at, bytes, len);
}

void elf_function(struct code_elf *elf, size_t at, size_t len, bool signal)
{
	const size_t fde = elf->fde, start = ELF_TEXT + at;
	const size_t entry = ELF_FRAMES + 12 + 8 * elf->functions;

	put_word(elf, fde, 16);
	put_word(elf, fde + 4, (int64_t)(fde + 4 -
					 (signal ? SIGNAL : ENTRIES)));
	put_word(elf, fde + 8, (int64_t)(start - (fde + 8)));
	put_word(elf, fde + 12, (int64_t)len);
	put_word(elf, fde + 16, 0);
	elf->fde += 20;
	put_word(elf, entry, (int64_t)(start - ELF_FRAMES));
	put_word(elf, entry + 4, (int64_t)(fde - ELF_FRAMES));
	put_word(elf, ELF_FRAMES + 8, ++elf->functions);
}

void elf_section(struct code_elf *elf, unsigned type, unsigned long flags,
		 size_t at, size_t len)
{
	*elf_shdr(elf, elf->shdrs++) = (Elf64_Shdr) {
		.sh_type = type, .sh_flags = flags, .sh_addr = at,
		.sh_offset = at, .sh_size = len
	};
	elf_ehdr(elf)->e_shnum = (Elf64_Half)elf->shdrs;
}

static bool elf_site(void *arg, const struct mrrc_code_site *site)
{
	struct code_elf *elf = arg;

	ck_assert_uint_lt(elf->sites, ELF_SITES);
	ck_assert_uint_ge(site->at, elf->image.start);
	ck_assert_uint_lt(site->at, elf->image.end);
	ck_assert((site->number == MRRC_CODE_ANY) == (site->why != NULL));
	elf->site[elf->sites++] = *site;
	return true;
}

void elf_look(struct code_elf *elf)
{
	ck_assert_int_eq(pwrite(elf->fd, elf->bytes, ELF_LEN, 0), ELF_LEN);
	elf->sites = 0;
	elf->rc = mrrc_code_look(&elf->image, elf_site, elf, &elf->counts);
}

void elf_none(struct code_elf *elf, unsigned pairs)
{
	elf_look(elf);
	ck_assert_int_eq(elf->rc, 0);
	ck_assert_uint_eq(elf->counts.pairs, pairs);
	ck_assert_msg(!elf->sites, "+0x%zx: %s",
		      elf->site[0].at - elf->image.start,
		      elf->site[0].why ? elf->site[0].why : "a number");
	ck_assert_uint_eq(elf->counts.unknown, 0);
}

void elf_is(struct code_elf *elf, unsigned pairs, size_t at, long number)
{
	elf_look(elf);
	ck_assert_int_eq(elf->rc, 0);
	ck_assert_uint_eq(elf->counts.pairs, pairs);
	ck_assert_uint_eq(elf->sites, 1);
	ck_assert_uint_eq(elf->site[0].at, elf->image.start + at);
	ck_assert_msg(elf->site[0].number == number, "%ld: %s",
		      elf->site[0].number,
		      elf->site[0].why ? elf->site[0].why : "");
	ck_assert_uint_eq(elf->counts.unknown, number == MRRC_CODE_ANY);
}
