/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds the executable mappings of this process, and copies mappings for an
 * examination (code.h), as other threads may unmap the originals. A copy is the
 * file, mapped once more, with the pages of code that differ from the file, but
 * without our own patches (patch.h).
 *
 * Any thread.
 */
#ifndef MRRC_CODE_COPY_H
#define MRRC_CODE_COPY_H

#include "sys/proof/code.h"

#define MRRC_CODE_NAME 480 /* bytes of a path */

/* An executable mapping, and the adjacent mappings of its file. */
struct mrrc_code_place {
	uintptr_t start, end;
	uintptr_t lo, hi; /* bounds of the file's adjacent mappings */
	uintptr_t offset;
	uint64_t device, inode;
	bool write, shared;
	char name[MRRC_CODE_NAME];
};

/*
 * Calls @each for the executable mappings, in order of addresses, until @each
 * returns false. Returns false if /proc is not mounted.
 */
bool mrrc_code_places(bool (*each)(void *arg,
				   const struct mrrc_code_place *place),
		      void *arg);

/*
 * Calls @each for each page of a file's private mapping that may differ from
 * the file, because the kernel has made a private copy of the page, until @each
 * returns false. Returns false if @each did.
 */
bool mrrc_code_own(uintptr_t start, uintptr_t end,
		   bool (*each)(void *arg, uintptr_t at), void *arg);

/*
 * Calls stat(2) on the mapping's file; false: the mapping has no file, or the
 * file's name refers to another file.
 */
struct stat;
bool mrrc_code_stat(const struct mrrc_code_place *place, struct stat *st);

struct mrrc_code_copy {
	struct mrrc_code_image image;
	struct mrrc_code_file file;
	uintptr_t live; /* the address of which file.map is the copy */
};

/*
 * Makes a copy. -EFBIG: the file is too large; -ESTALE: the file has gone, or
 * has another layout than in memory; other errors: the memory cannot be read.
 */
int mrrc_code_copy(const struct mrrc_code_place *place,
		   struct mrrc_code_copy *copy);
void mrrc_code_free(struct mrrc_code_copy *copy);

/* The address in the process of an address in the copy. */
static inline uintptr_t mrrc_code_live(const struct mrrc_code_copy *copy,
				       uintptr_t at)
{
	return at - (uintptr_t) copy->file.map + copy->live;
}

#endif /* MRRC_CODE_COPY_H */
