/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ELF files that tests assemble (code_fixture.h). */
#include "config.h"
#include "test/sys/proof/code_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <check.h>

struct code_elf elf;

#define ENTRIES 0x800	       /* offset of .eh_frame */
#define SIGNAL	(ENTRIES + 24) /* offset of the second CIE */
#define GUARD	0x1000

/* CIE: length, 0, version 1, "zR" or "zRS", factors 1 and -8, register 16 */
static const uint8_t common[] = {
	20,   0,   0,	0,   0, 0, 0,	 0,  1,	 'z',  'R', 0, 1, 0x78, 16, 1,
	0x1b, 0,   0,	0,   0, 0, 0,	 0,  20, 0,    0,   0, 0, 0,	0,  0,
	1,    'z', 'R', 'S', 0, 1, 0x78, 16, 1,	 0x1b, 0,   0, 0, 0,	0,  0,
};

Elf64_Ehdr *elf_ehdr(struct code_elf *one)
{
	return (Elf64_Ehdr *) one->bytes;
}

Elf64_Phdr *elf_phdr(struct code_elf *one, unsigned n)
{
	return (Elf64_Phdr *) (one->bytes + sizeof(Elf64_Ehdr)) + n;
}

Elf64_Shdr *elf_shdr(struct code_elf *one, unsigned n)
{
	return (Elf64_Shdr *) (one->bytes + ELF_SECTIONS) + n;
}

static void put_word(struct code_elf *one, size_t at, int64_t word)
{
	const int32_t value = (int32_t) word;

	memcpy(one->bytes + at, &value, sizeof(value));
}

static void put_headers(struct code_elf *one, unsigned machine)
{
	Elf64_Ehdr *const ehdr = elf_ehdr(one);

	memcpy(ehdr->e_ident, ELFMAG, SELFMAG);
	ehdr->e_ident[EI_CLASS] = ELFCLASS64;
	ehdr->e_ident[EI_DATA] = ELFDATA2LSB;
	ehdr->e_type = ET_DYN;
	ehdr->e_machine = (Elf64_Half) machine;
	ehdr->e_phoff = sizeof(*ehdr);
	ehdr->e_phentsize = sizeof(Elf64_Phdr);
	ehdr->e_phnum = 4;
	ehdr->e_shoff = ELF_SECTIONS;
	ehdr->e_shentsize = sizeof(Elf64_Shdr);
	*elf_phdr(one, 0) = (Elf64_Phdr){ .p_type = PT_LOAD,
					  .p_flags = PF_R,
					  .p_filesz = ELF_LEN,
					  .p_memsz = ELF_LEN };
	*elf_phdr(one, 1) = (Elf64_Phdr){ .p_type = PT_LOAD,
					  .p_flags = PF_R | PF_X,
					  .p_offset = ELF_TEXT,
					  .p_vaddr = ELF_TEXT,
					  .p_filesz = ELF_TEXT_LEN,
					  .p_memsz = ELF_TEXT_LEN };
	*elf_phdr(one, 2) = (Elf64_Phdr){ .p_type = PT_GNU_EH_FRAME,
					  .p_flags = PF_R,
					  .p_offset = ELF_FRAMES,
					  .p_vaddr = ELF_FRAMES,
					  .p_filesz = ENTRIES - ELF_FRAMES,
					  .p_memsz = ENTRIES - ELF_FRAMES };
	elf_phdr(one, 3)->p_type = PT_NOTE;
}

void elf_open(struct code_elf *one, unsigned machine)
{
	static const uint8_t table[] = { 1, 0x1b, 3, 0x3b };

	memset(one, 0, sizeof(*one));
	one->bytes = mmap(NULL, ELF_LEN + GUARD, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(one->bytes, MAP_FAILED);
	ck_assert_int_eq(mprotect(one->bytes + ELF_LEN, GUARD, PROT_NONE), 0);
	one->fd = memfd_create("code", MFD_CLOEXEC);
	ck_assert_int_ge(one->fd, 0);
	snprintf(one->path, sizeof(one->path), "/proc/self/fd/%d", one->fd);
	put_headers(one, machine);
	memcpy(one->bytes + ELF_FRAMES, table, sizeof(table));
	memcpy(one->bytes + ENTRIES, common, sizeof(common));
	one->fde = ENTRIES + sizeof(common);
	one->shdrs = 1;
	elf_section(one, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, ELF_TEXT,
		    ELF_TEXT_LEN);
	/* All other bytes of the code are returns. */
	if (machine == EM_X86_64)
		memset(one->bytes + ELF_TEXT, 0xc3, ELF_TEXT_LEN);
	one->image = (struct mrrc_code_image){
		.base = (uintptr_t) one->bytes,
		.ehdr = one->bytes,
		.lo = (uintptr_t) one->bytes,
		.hi = (uintptr_t) one->bytes + ELF_LEN,
		.start = (uintptr_t) one->bytes + ELF_TEXT,
		.end = (uintptr_t) one->bytes + ELF_TEXT + ELF_TEXT_LEN,
		.fd = one->fd,
	};
}

void elf_setup(void)
{
	elf_open(&elf, EM_X86_64);
}

void elf_teardown(void)
{
	elf_close(&elf);
}

void elf_close(struct code_elf *one)
{
	munmap(one->bytes, ELF_LEN + GUARD);
	close(one->fd);
}

void elf_put(struct code_elf *one, size_t at, const void *bytes, size_t len)
{
	memcpy(one->bytes + ELF_TEXT + at, bytes, len);
}

void elf_function(struct code_elf *one, size_t at, size_t len, bool signal)
{
	const size_t fde = one->fde, start = ELF_TEXT + at;
	const size_t entry = ELF_FRAMES + 12 + 8 * one->functions;

	put_word(one, fde, 16);
	put_word(one, fde + 4,
		 (int64_t) (fde + 4 - (signal ? SIGNAL : ENTRIES)));
	put_word(one, fde + 8, (int64_t) (start - (fde + 8)));
	put_word(one, fde + 12, (int64_t) len);
	put_word(one, fde + 16, 0);
	one->fde += 20;
	put_word(one, entry, (int64_t) (start - ELF_FRAMES));
	put_word(one, entry + 4, (int64_t) (fde - ELF_FRAMES));
	put_word(one, ELF_FRAMES + 8, ++one->functions);
}

void elf_section(struct code_elf *one, unsigned type, unsigned long flags,
		 size_t at, size_t len)
{
	*elf_shdr(one, one->shdrs++) = (Elf64_Shdr){ .sh_type = type,
						     .sh_flags = flags,
						     .sh_addr = at,
						     .sh_offset = at,
						     .sh_size = len };
	elf_ehdr(one)->e_shnum = (Elf64_Half) one->shdrs;
}

static bool elf_site(void *arg, const struct mrrc_code_site *site)
{
	struct code_elf *one = arg;

	ck_assert_uint_lt(one->sites, ELF_SITES);
	ck_assert_uint_ge(site->at, one->image.start);
	ck_assert_uint_lt(site->at, one->image.end);
	ck_assert((site->number == MRRC_CODE_ANY) == (site->why != NULL));
	one->site[one->sites++] = *site;
	return true;
}

void elf_look(struct code_elf *one)
{
	uint8_t was[sizeof(one->over)];

	ck_assert_int_eq(pwrite(one->fd, one->bytes, ELF_LEN, 0), ELF_LEN);
	memcpy(was, one->bytes + one->over_at, one->over_len);
	memcpy(one->bytes + one->over_at, one->over, one->over_len);
	one->sites = 0;
	one->ret = mrrc_code_look(&one->image, elf_site, one, &one->counts);
	memcpy(one->bytes + one->over_at, was, one->over_len);
}

void elf_none(struct code_elf *one, unsigned pairs)
{
	elf_look(one);
	ck_assert_int_eq(one->ret, 0);
	ck_assert_uint_eq(one->counts.pairs, pairs);
	ck_assert_msg(!one->sites, "+0x%zx: %s",
		      one->site[0].at - one->image.start,
		      one->site[0].why ? one->site[0].why : "a number");
	ck_assert_uint_eq(one->counts.unknown, 0);
}

void elf_is(struct code_elf *one, unsigned pairs, size_t at, long number)
{
	elf_look(one);
	ck_assert_int_eq(one->ret, 0);
	ck_assert_uint_eq(one->counts.pairs, pairs);
	ck_assert_uint_eq(one->sites, 1);
	ck_assert_uint_eq(one->site[0].at, one->image.start + at);
	ck_assert_msg(one->site[0].number == number, "%ld: %s",
		      one->site[0].number,
		      one->site[0].why ? one->site[0].why : "");
	ck_assert_uint_eq(one->counts.unknown, number == MRRC_CODE_ANY);
}

void elf_one(const struct elf_one *one)
{
	elf_put(&elf, 0x100, one->code, one->len);
	elf_function(&elf, 0x100, one->len, false);
	if (one->number == NONE)
		elf_none(&elf, 1);
	else
		elf_is(&elf, 1, 0x100 + one->at, one->number);
}

void elf_gap(void)
{
	elf_bytes(&elf, 0x3f0, 0x90, 0xc3);
	elf_function(&elf, 0x3f0, 2, false);
	memset(elf.bytes + ELF_TEXT + 0x3f2, 0x06, 0x500 - 0x3f2);
	elf_bytes(&elf, 0x404, 0x0f, 0x05, 0xc3);
	elf_code(&elf, 0x500, 0x90, 0xc3);
}

void elf_data(void)
{
	elf_bytes(&elf, 0x800, 1, 2, 0x0f, 0x05, 3, 4);
	elf_shdr(&elf, 1)->sh_size = 0x800;
	elf_section(&elf, SHT_PROGBITS, SHF_ALLOC, ELF_TEXT + 0x800, 0x800);
}

bool elf_count(void *arg, const struct mrrc_code_site *site)
{
	unsigned *count = arg;

	++*count;
	return false;
}
