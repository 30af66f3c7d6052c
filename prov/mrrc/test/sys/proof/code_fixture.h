/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ELF files that tests assemble, in memory and as a file of the same bytes.
 * Memory behind the file's bytes cannot be read.
 */
#ifndef MRRC_TEST_CODE_FIXTURE_H
#define MRRC_TEST_CODE_FIXTURE_H

#include <elf.h>

#include "sys/proof/code.h"

#define ELF_FRAMES   0x400  /* offset of .eh_frame_hdr */
#define ELF_TEXT     0x1000 /* offset of the mapping that holds code */
#define ELF_TEXT_LEN 0x1000
#define ELF_TABLES   0x2000 /* offset of relocations and symbols */
#define ELF_SECTIONS 0x3000 /* offset of section headers */
#define ELF_LEN	     0x4000
#define ELF_SITES    16
#define ANY	     MRRC_CODE_ANY
#define NONE	     (-3)

struct code_elf {
	uint8_t *bytes;
	int fd; /* descriptor of the file */
	char path[32];
	unsigned functions; /* number of functions, in the order of addresses */
	size_t fde;	    /* offset of the next FDE */
	unsigned shdrs;
	struct mrrc_code_image image;
	/* bytes that memory has in place of the file's bytes, in elf_look() */
	size_t over_at, over_len;
	uint8_t over[16];
	/* results of the last elf_look() */
	int ret;
	struct mrrc_code_site site[ELF_SITES];
	unsigned sites;
	struct mrrc_code_counts counts;
};

/* The ELF file that tests use, for x86-64. */
extern struct code_elf elf;

void elf_setup(void);
void elf_teardown(void);

/*
 * Opens a file with headers, a table without functions, and .text as its
 * section.
 */
void elf_open(struct code_elf *one, unsigned machine);
void elf_close(struct code_elf *one);

Elf64_Ehdr *elf_ehdr(struct code_elf *one);

/*
 * Returns a program header: 0: the headers; 1: code; 2: .eh_frame_hdr; 3:
 * notes.
 */
Elf64_Phdr *elf_phdr(struct code_elf *one, unsigned n);

/* Returns a section header: 1: .text; others in the order of elf_section(). */
Elf64_Shdr *elf_shdr(struct code_elf *one, unsigned n);

/* Puts these bytes at an offset from the start of the code. */
void elf_put(struct code_elf *one, size_t at, const void *bytes, size_t len);

/* Adds a function; @signal: it returns from a signal's handler. */
void elf_function(struct code_elf *one, size_t at, size_t len, bool signal);

/* Puts these bytes, and makes them a function. */
#define elf_code(elf, at, ...)                                  \
	do {                                                    \
		static const uint8_t code_[] = { __VA_ARGS__ }; \
                                                                \
		elf_put(elf, at, code_, sizeof(code_));         \
		elf_function(elf, at, sizeof(code_), false);    \
	} while (0)

/* Puts these bytes, which are in no function. */
#define elf_bytes(elf, at, ...)                                  \
	do {                                                     \
		static const uint8_t bytes_[] = { __VA_ARGS__ }; \
                                                                 \
		elf_put(elf, at, bytes_, sizeof(bytes_));        \
	} while (0)

/* Adds a section at an offset from the start of the file. */
void elf_section(struct code_elf *one, unsigned type, unsigned long flags,
		 size_t at, size_t len);

/* Writes the file, and analyses the code. */
void elf_look(struct code_elf *one);

/* Checks that the analysis finds only this site, and @pairs. */
void elf_is(struct code_elf *one, unsigned pairs, size_t at, long number);

/* A function with one pair: a site that passes @number, or NONE. */
struct elf_one {
	uint8_t at, code[20], len;
	long number;
};

#define ELF_ONE(at, number, ...)                                         \
	{                                                                \
		at, { __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ }), \
			number                                           \
	}
void elf_one(const struct elf_one *one);

/* Checks that the analysis finds no site, and @pairs. */
void elf_none(struct code_elf *one, unsigned pairs);

/*
 * Puts functions at 0x3f0 and 0x500, and between them a pair at 0x404, in bytes
 * that decode to no instruction.
 */
void elf_gap(void);

/* Puts a pair at 0x802, in a section of data. */
void elf_data(void);

/* Counts one site, and ends the analysis. */
bool elf_count(void *arg, const struct mrrc_code_site *site);

#endif /* MRRC_TEST_CODE_FIXTURE_H */
