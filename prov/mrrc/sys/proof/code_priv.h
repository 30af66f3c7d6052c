/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared by the code_*.c files: an image whose headers were checked, and the
 * result for each byte pair.
 *
 * Threading: each examination has its own struct mrrc_code.
 */
#ifndef MRRC_CODE_PRIV_H
#define MRRC_CODE_PRIV_H

#include <elf.h>

#include "sys/proof/code.h"

struct mrrc_code_range {
	uintptr_t start, end;
};

/* A section that lies in memory. */
struct mrrc_code_section {
	struct mrrc_code_range range;
	uint32_t type; /* SHT_* */
	bool text;     /* the section holds code */
	bool write;    /* the section is written to, at least by the loader */
};

enum mrrc_code_kind {
	MRRC_CODE_INSIDE, /* part of another instruction */
	MRRC_CODE_DATA,
	MRRC_CODE_CALL,	    /* a system call with a known number */
	MRRC_CODE_CALL_ANY, /* a system call whose number is not known */
	MRRC_CODE_UNKNOWN,  /* may be a system call */
};

/* A byte pair, or the instruction that the pair belongs to. */
struct mrrc_code_found {
	uintptr_t at;
	enum mrrc_code_kind kind;
	long number;	 /* CALL */
	const char *why; /* CALL_ANY and UNKNOWN */
};

struct mrrc_code {
	const struct mrrc_code_image *image;
	const Elf64_Ehdr *ehdr;
	const Elf64_Phdr *phdr;
	unsigned phdrs;
	struct mrrc_code_range frames; /* .eh_frame_hdr, or empty */
	struct mrrc_code_section *section;
	unsigned sections; /* 0: there are no section headers */
	struct mrrc_code_found *found;
	size_t count, room;
	bool named;	 /* the file's tables were read */
	uintptr_t *name; /* places in the mapping that the tables name */
	size_t names, names_room;
	const char *hidden; /* why the tables may lack a place, or NULL */
};

/* Are these bytes in a segment of the image that can be read? */
bool mrrc_code_readable(const struct mrrc_code *code, uintptr_t at, size_t len);

/*
 * Gets the section that holds code at @at, or all of the mapping if there are
 * no section headers; false: the byte at @at is data.
 */
bool mrrc_code_text(const struct mrrc_code *code, uintptr_t at,
		    struct mrrc_code_range *text);

/* The headers of the image. -EINVAL: they are malformed. */
int mrrc_code_headers(struct mrrc_code *code,
		      const struct mrrc_code_image *image);

/* Reads the file's section headers; a file without them has 0 sections. */
void mrrc_code_sections(struct mrrc_code *code);

/*
 * Reads the file's @len bytes for the address @at, before relocation. false:
 * the file has no bytes for @at.
 */
bool mrrc_code_filed(const struct mrrc_code *code, uintptr_t at, void *to,
		     size_t len);

/* Adds a byte pair. */
int mrrc_code_add(struct mrrc_code *code, uintptr_t at);

#endif /* MRRC_CODE_PRIV_H */
