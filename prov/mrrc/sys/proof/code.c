/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds the system calls that code can make (code.h): reads the image's headers
 * and sections, finds byte pairs like a system-call instruction in the mapping,
 * and reports each pair.
 *
 * The order: headers -> pairs -> sections tell data from code -> the functions
 * around the pairs are decoded (code_x86_64.c) -> the caller is told. Every
 * offset and length in the image is checked against the image's bounds before
 * it is used.
 */
#include "config.h"
#include "sys/proof/code_priv.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "sys/base/apart.h"
#include "sys/proof/code_aarch64.h"
#include "sys/proof/code_x86_64.h"

#define PHDRS 64    /* program headers, at most */
#define SHDRS 4096  /* section headers, at most */
#define PAIRS 65536 /* byte pairs, at most */

bool mrrc_code_readable(const struct mrrc_code *code, uintptr_t at, size_t len)
{
	const struct mrrc_code_image *const image = code->image;
	uintptr_t start;
	unsigned i;

	if (at < image->lo || at > image->hi || len > image->hi - at)
		return false;
	for (i = 0; i < code->phdrs; i++) {
		start = image->base + code->phdr[i].p_vaddr;
		if (code->phdr[i].p_type == PT_LOAD &&
		    code->phdr[i].p_flags & PF_R && at >= start &&
		    at - start <= code->phdr[i].p_filesz &&
		    len <= code->phdr[i].p_filesz - (at - start))
			return true;
	}
	return false;
}

bool mrrc_code_text(const struct mrrc_code *code, uintptr_t at,
		    struct mrrc_code_range *text)
{
	const struct mrrc_code_section *section;
	unsigned i;

	for (i = 0; i < code->sections; i++) {
		section = &code->section[i];
		if (section->text && at >= section->range.start &&
		    at < section->range.end) {
			*text = section->range;
			return true;
		}
	}
	*text = (struct mrrc_code_range){ code->image->start,
					  code->image->end };
	return !code->sections;
}

static bool headers_fit(const struct mrrc_code *code)
{
	const struct mrrc_code_image *const image = code->image;
	const uintptr_t at = (uintptr_t) code->ehdr;

	if (image->lo >= image->hi || image->start >= image->end ||
	    at < image->lo || at > image->hi ||
	    image->hi - at < sizeof(*code->ehdr) || at % _Alignof(Elf64_Ehdr) ||
	    memcmp(code->ehdr->e_ident, ELFMAG, SELFMAG) ||
	    code->ehdr->e_ident[EI_CLASS] != ELFCLASS64 ||
	    code->ehdr->e_ident[EI_DATA] != ELFDATA2LSB ||
	    code->ehdr->e_phentsize != sizeof(Elf64_Phdr) ||
	    code->ehdr->e_phnum > PHDRS)
		return false;
	return code->ehdr->e_phoff <= image->hi - at &&
	       code->ehdr->e_phoff % _Alignof(Elf64_Phdr) == 0 &&
	       code->ehdr->e_phnum * sizeof(Elf64_Phdr) <=
		       image->hi - at - code->ehdr->e_phoff;
}

int mrrc_code_headers(struct mrrc_code *code,
		      const struct mrrc_code_image *image)
{
	uintptr_t start;
	unsigned i;

	*code = (struct mrrc_code){ .image = image, .ehdr = image->ehdr };
	if (!headers_fit(code))
		return -EINVAL;
	code->phdr = (const void *) ((const char *) image->ehdr +
				     code->ehdr->e_phoff);
	code->phdrs = code->ehdr->e_phnum;
	for (i = 0; i < code->phdrs; i++) {
		start = image->base + code->phdr[i].p_vaddr;
		if (code->phdr[i].p_type == PT_GNU_EH_FRAME &&
		    mrrc_code_readable(code, start, code->phdr[i].p_memsz))
			code->frames = (struct mrrc_code_range){
				start, start + code->phdr[i].p_memsz
			};
	}
	return 0;
}

static bool read_at(int fd, void *to, size_t len, off_t offset)
{
	return pread(fd, to, len, offset) == (ssize_t) len;
}

/*
 * Keeps the sections that lie in memory. If no section holds code of the
 * mapping, the section headers are not this image's: then keeps no section.
 */
static void keep_sections(struct mrrc_code *code, const Elf64_Shdr *shdr,
			  unsigned count)
{
	struct mrrc_code_section *section;
	unsigned i, kept = 0, texts = 0;
	uintptr_t start;

	for (i = 0; i < count; i++) {
		start = code->image->base + shdr[i].sh_addr;
		if (!(shdr[i].sh_flags & SHF_ALLOC) || !shdr[i].sh_size ||
		    shdr[i].sh_size > UINTPTR_MAX - start)
			continue;
		section = &code->section[kept++];
		section->range =
			(struct mrrc_code_range){ start,
						  start + shdr[i].sh_size };
		section->type = shdr[i].sh_type;
		section->text = shdr[i].sh_flags & SHF_EXECINSTR;
		section->write = shdr[i].sh_flags & SHF_WRITE;
		texts += section->text && start < code->image->end &&
			 section->range.end > code->image->start;
	}
	code->sections = texts ? kept : 0;
}

void mrrc_code_sections(struct mrrc_code *code)
{
	const size_t count = code->ehdr->e_shnum;
	const int fd = code->image->fd;
	Elf64_Shdr *shdr;

	if (fd < 0 || !count || count > SHDRS ||
	    code->ehdr->e_shentsize != sizeof(*shdr))
		return;
	shdr = mrrc_apart_grow(NULL, count * sizeof(*shdr));
	code->section = mrrc_apart_grow(NULL, count * sizeof(*code->section));
	if (shdr && code->section &&
	    read_at(fd, shdr, count * sizeof(*shdr),
		    (off_t) code->ehdr->e_shoff))
		keep_sections(code, shdr, (unsigned) count);
	mrrc_apart_free(shdr);
}

bool mrrc_code_filed(const struct mrrc_code *code, uintptr_t at, void *to,
		     size_t len)
{
	const Elf64_Phdr *phdr = code->phdr;
	uintptr_t start;

	for (; phdr < code->phdr + code->phdrs; phdr++) {
		start = code->image->base + phdr->p_vaddr;
		if (phdr->p_type == PT_LOAD && at >= start &&
		    at - start <= phdr->p_filesz &&
		    len <= phdr->p_filesz - (at - start))
			return read_at(code->image->fd, to, len,
				       (off_t) (phdr->p_offset + (at - start)));
	}
	return false;
}

static void code_done(struct mrrc_code *code)
{
	mrrc_apart_free(code->found);
	mrrc_apart_free(code->section);
	mrrc_apart_free(code->name);
}

int mrrc_code_add(struct mrrc_code *code, uintptr_t at)
{
	const size_t room = code->room ? 2 * code->room : 64;
	struct mrrc_code_found *found;

	if (code->count == PAIRS)
		return -E2BIG;
	if (code->count == code->room) {
		found = mrrc_apart_grow(code->found, room * sizeof(*found));
		if (!found)
			return -ENOMEM;
		code->found = found;
		code->room = room;
	}
	code->found[code->count++] = (struct mrrc_code_found){
		.at = at, .kind = MRRC_CODE_UNKNOWN, .why = "not looked at"
	};
	return 0;
}

static void count(const struct mrrc_code *code, struct mrrc_code_counts *counts)
{
	size_t i;

	*counts = (struct mrrc_code_counts){ .pairs = (unsigned) code->count };
	for (i = 0; i < code->count; i++) {
		switch (code->found[i].kind) {
		case MRRC_CODE_CALL:
			counts->instructions++;
			break;
		case MRRC_CODE_CALL_ANY:
			counts->instructions++;
			counts->unknown++;
			break;
		case MRRC_CODE_UNKNOWN:
			counts->unknown++;
			break;
		case MRRC_CODE_DATA:
			counts->data++;
			break;
		case MRRC_CODE_INSIDE:
			break;
		}
	}
}

/* Reports a byte pair to the caller. false: the caller wants no more. */
static bool tell(const struct mrrc_code_found *found,
		 bool (*site)(void *arg, const struct mrrc_code_site *site),
		 void *arg)
{
	struct mrrc_code_site one = { .at = found->at };

	switch (found->kind) {
	case MRRC_CODE_CALL:
		one.number = found->number;
		return site(arg, &one);
	case MRRC_CODE_CALL_ANY:
	case MRRC_CODE_UNKNOWN:
		one.number = MRRC_CODE_ANY;
		one.why = found->why;
		return site(arg, &one);
	default:
		return true;
	}
}

int mrrc_code_look(const struct mrrc_code_image *image,
		   bool (*site)(void *arg, const struct mrrc_code_site *site),
		   void *arg, struct mrrc_code_counts *counts)
{
	struct mrrc_code code;
	size_t i;
	int ret;

	ret = mrrc_code_headers(&code, image);
	if (!ret)
		ret = code.ehdr->e_machine == EM_X86_64 ?
			      mrrc_code_look_x86_64(&code) :
		      code.ehdr->e_machine == EM_AARCH64 ?
			      mrrc_code_look_aarch64(&code) :
			      -EOPNOTSUPP;
	if (!ret) {
		count(&code, counts);
		for (i = 0; i < code.count; i++) {
			if (!tell(&code.found[i], site, arg))
				break;
		}
	}
	code_done(&code);
	return ret;
}

/*
 * Is this glibc's system call for set*id(2) in each thread, which loads number
 * and arguments from a struct?
 */
static bool glibc_setxid(const uint8_t *site, size_t before)
{
	static const uint8_t loads[] = {
		/* from a register: + its number */
		0x48, 0x8b, 0x70, 0x10, /* mov 16(), %rsi */
		0x48, 0x8b, 0x78, 0x08, /* mov 8(), %rdi */
		0x48, 0x8b, 0x50, 0x18, /* mov 24(), %rdx */
		0x8b, 0x00,		/* mov (), %eax */
	};
	const uint8_t *code = site - sizeof(loads);
	uint8_t from;
	size_t i;

	if (before < sizeof(loads))
		return false;
	from = code[sizeof(loads) - 1];
	if (from > 7 || from == 4 || from == 5)
		return false;
	for (i = 0; i < sizeof(loads); i++) {
		if (code[i] != loads[i] + (i % 4 == 2 || i == 13 ? from : 0))
			return false;
	}
	return true;
}

/*
 * Is this the system call of glibc 2.41's function for calls that can be
 * cancelled, whose second argument is the number?
 */
static bool glibc_cancel(const uint8_t *site, size_t before)
{
	static const uint8_t code[] = {
		0x49, 0x89, 0xfb,	      /* mov %rdi, %r11 */
		0x48, 0x89, 0xf0,	      /* mov %rsi, %rax */
		0x48, 0x89, 0xd7,	      /* mov %rdx, %rdi */
		0x48, 0x89, 0xce,	      /* mov %rcx, %rsi */
		0x4c, 0x89, 0xc2,	      /* mov %r8, %rdx */
		0x4d, 0x89, 0xca,	      /* mov %r9, %r10 */
		0x4c, 0x8b, 0x44, 0x24, 0x08, /* mov 8(%rsp), %r8 */
		0x4c, 0x8b, 0x4c, 0x24, 0x10, /* mov 16(%rsp), %r9 */
		0x4c, 0x89, 0x5c, 0x24, 0x08, /* mov %r11, 8(%rsp) */
	};

	return before >= sizeof(code) &&
	       !memcmp(site - sizeof(code), code, sizeof(code));
}

/*
 * Is this the system call that glibc 2.41 makes in a process with one thread,
 * in a function whose seventh argument is the number?
 */
static bool glibc_direct(const uint8_t *site, size_t before, size_t after)
{
	static const uint8_t code[] = {
		0x48, 0x8b, 0x44, 0x24, 0x10, /* mov 16(%rsp), %rax */
		0x0f, 0x05,		      /* syscall */
		0x5b, 0xc3,		      /* pop %rbx; ret */
	};

	return before >= 5 && after >= sizeof(code) - 5 &&
	       !memcmp(site - 5, code, sizeof(code));
}

bool mrrc_code_glibc(const uint8_t *site, size_t before, size_t after)
{
	static const uint8_t svc[] = { 0x01, 0x00, 0x00, 0xd4 };

	if (after >= sizeof(svc) && !memcmp(site, svc, sizeof(svc)))
		return mrrc_code_glibc_aarch64(site, before);
	return glibc_setxid(site, before) || glibc_cancel(site, before) ||
	       glibc_direct(site, before, after);
}
