/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The executable mappings of this process, and copies of them to be looked at
 * (code.h) while other threads may unmap them. A copy is the file, mapped once
 * more, with those pages of the code that are not the file's; or all that is in
 * memory, if there is no such file. Our own patches (patch.h) are taken back.
 *
 * Any thread.
 */
#ifndef MRRC_CODE_COPY_H
#define MRRC_CODE_COPY_H

#include "sys/proof/code.h"

#define MRRC_CODE_NAME 480 /* bytes of a path */

/* An executable mapping, and its file's others next to it. */
struct mrrc_code_place {
	uintptr_t start, end;
	uintptr_t lo, hi; /* of all mappings of the file; lo: its begin */
	uintptr_t offset;
	uint64_t device, inode;
	bool write, shared;
	char name[MRRC_CODE_NAME];
};

/* In order of addresses, until @each answers false. false: no /proc. */
bool mrrc_code_places(bool (*each)(void *arg,
				   const struct mrrc_code_place *place),
		      void *arg);

/*
 * Calls @each for each page of a file's private mapping that may be another one
 * than the file's: the kernel has made a copy of it. false: @each answered so.
 */
bool mrrc_code_own(uintptr_t start, uintptr_t end,
		   bool (*each)(void *arg, uintptr_t at), void *arg);

/* Of its file; false: there is none, or that of the name is another one. */
struct stat;
bool mrrc_code_stat(const struct mrrc_code_place *place, struct stat *st);

struct mrrc_code_copy {
	struct mrrc_code_image image;
	void *map;
	size_t len;
	uintptr_t live; /* the address of which map is the copy */
};

/* -EFBIG: its file is too large; else -E*: it cannot be read. */
int mrrc_code_copy(const struct mrrc_code_place *place,
		   struct mrrc_code_copy *copy);
void mrrc_code_free(struct mrrc_code_copy *copy);

/* Where in the process an address in the copy is. */
static inline uintptr_t mrrc_code_live(const struct mrrc_code_copy *copy,
				       uintptr_t at)
{
	return at - (uintptr_t) copy->map + copy->live;
}

#endif /* MRRC_CODE_COPY_H */
