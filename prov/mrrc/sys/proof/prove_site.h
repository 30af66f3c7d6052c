/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Decides which system calls in a file's code can take no memory away
 * unannounced, by the same rules for the code of this process (prove.c) and for
 * files that are not loaded (fi_mrrc_stat).
 *
 * Any thread.
 */
#ifndef MRRC_PROVE_SITE_H
#define MRRC_PROVE_SITE_H

#include "sys/proof/code_copy.h"
#include "sys/hooks/trust.h"

struct mrrc_prove_file {
	const char *path;		     /* or the name alone */
	const struct mrrc_code_image *image; /* the image that is examined */
	uintptr_t live;			     /* where the image's base is in
						 * this process, or 0 */
	bool libc;			     /* the C library that is hooked */
};

enum mrrc_prove_verdict {
	MRRC_PROVE_HARMLESS,
	MRRC_PROVE_BRK,	  /* as long as libc's brk and sbrk are as they were */
	MRRC_PROVE_RINGS, /* as long as no other than libfabric uses io_uring */
	MRRC_PROVE_ASKS,
};

/* @why is written if the result is MRRC_PROVE_ASKS. */
enum mrrc_prove_verdict mrrc_prove_site(const struct mrrc_prove_file *file,
					const struct mrrc_code_site *site,
					char why[MRRC_TRUST_WHY]);

/*
 * May the system call at @site, in code of this process, have to be hooked?
 * Sets the fields of @file that describe the copy.
 */
bool mrrc_prove_matters(struct mrrc_prove_file *file,
			const struct mrrc_code_copy *copy,
			const struct mrrc_code_site *site);

/* Does the mapping belong to the C library that is hooked? */
bool mrrc_prove_is_libc(const struct mrrc_code_place *place);

/* The name of a library, without the folder of its path. */
const char *mrrc_prove_name(const char *path);

/* May library @name make system call @number, which is not hooked there? */
enum mrrc_prove_verdict mrrc_prove_may(const char *name, long number);

enum mrrc_prove_rings {
	MRRC_PROVE_RINGS_NONE,
	MRRC_PROVE_RINGS_FABRIC,
	MRRC_PROVE_RINGS_ANY,
};

/*
 * Which rings may a library or program make by liburing? No rings, if it is not
 * linked to liburing. @file: the path of the file to read; @path: the file's
 * name in the process, which may differ.
 */
enum mrrc_prove_rings mrrc_prove_rings(const char *file, const char *path);

#endif /* MRRC_PROVE_SITE_H */
