/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tells which system calls the code of an executable mapping can make: finds
 * each system-call instruction in the mapping's bytes, and follows the passed
 * system-call number back to the constant from which it comes.
 *
 * Any thread. Allocates memory; reads the file for its section headers. The
 * mapping must not change during the call.
 */
#ifndef MRRC_CODE_H
#define MRRC_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRRC_CODE_ANY (-1L) /* the number is not known */

/* One executable mapping of an ELF file, as it lies in memory. */
struct mrrc_code_image {
	uintptr_t base;	  /* a header's p_vaddr is at base + p_vaddr */
	const void *ehdr; /* the ELF header */
	/*
	 * bounds of the whole file's memory: only segments that the program
	 * headers call readable are read, as far as they lie in [lo, hi)
	 */
	uintptr_t lo, hi;
	uintptr_t start, end; /* the mapping; readable */
	uintptr_t offset;     /* offset of @start in the file */
	int fd; /* the file, for its section headers; -1: no file */
};

struct mrrc_code_site {
	uintptr_t at; /* address of the instruction, or of the byte pair */
	/*
	 * the system call's number, as far as the function around the call
	 * decides it; or MRRC_CODE_ANY
	 */
	long number;
	const char *why; /* the reason of MRRC_CODE_ANY, static; else NULL */
};

struct mrrc_code_counts {
	unsigned pairs;	       /* byte pairs like a system-call instruction */
	unsigned instructions; /* pairs that are such an instruction */
	unsigned data;	       /* pairs that are data */
	/*
	 * pairs that may be a system-call instruction, or are a system-call
	 * instruction that may pass any number
	 */
	unsigned unknown;
};

/*
 * Calls @site for each system-call instruction, and for each byte pair that may
 * be such an instruction, until @site returns false. -EOPNOTSUPP: the code
 * cannot be decoded here.
 */
int mrrc_code_look(const struct mrrc_code_image *image,
		   bool (*site)(void *arg, const struct mrrc_code_site *site),
		   void *arg, struct mrrc_code_counts *counts);

/*
 * For libc's code only: does glibc make the system call at @site only for
 * functions of its own, which take no memory away? glibc has such system calls
 * for set*id(2) in each thread, and since 2.41 for all functions that can be
 * cancelled. Such system calls are recognised by their bytes, as the number
 * comes from memory or arguments. @before, @after: bytes of code in front of
 * @site, and from @site on.
 */
bool mrrc_code_glibc(const uint8_t *site, size_t before, size_t after);

/*
 * code_filler.c. The first @size adjacent bytes from @at to @end that are never
 * executed, as they only align the code after them. 0: there are no such bytes,
 * or the code is not for x86-64.
 */
uintptr_t mrrc_code_filler(const struct mrrc_code_image *image, uintptr_t at,
			   uintptr_t end, size_t size);

/* code_file.c */

/* A file mapped as the loader would map it, but not executable. */
struct mrrc_code_file {
	int fd;
	uint8_t *map; /* @len bytes: the file's segments, readable */
	size_t len;
	uintptr_t base; /* as in struct mrrc_code_image */
	uint64_t device, inode;
};

int mrrc_code_open(const char *path, struct mrrc_code_file *file);

/* Gets the @nth executable segment; false: there are fewer. */
bool mrrc_code_segment(const struct mrrc_code_file *file, unsigned nth,
		       struct mrrc_code_image *image);

/* Is the file linked to a library whose name begins with @name? */
bool mrrc_code_needs(const struct mrrc_code_file *file, const char *name);

void mrrc_code_close(struct mrrc_code_file *file);

#endif /* MRRC_CODE_H */
