/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The system calls of code of this process that matter, by code.h. What was found
 * is kept, also for the next processes of this user: code of a file that was
 * looked at before is not decoded again, and if nothing matters not even read.
 *
 * A file is known by its number, size and times, together with those of this
 * library and the decoder: nothing is kept for other rules. That the code in
 * memory is that of the file is asked of the kernel, which has made no copy of
 * any page then. Where it has, the code's bytes are part of what it is known by.
 *
 * The file of these is of 16 bytes for each finding, in no order. Without it, or
 * where it cannot be read or written, the process has its own findings.
 *
 * One thread at a time.
 */
#ifndef MRRC_CODE_KEPT_H
#define MRRC_CODE_KEPT_H

#include "sys/proof/code_copy.h"

/*
 * From now on, the file at @path; NULL: $XDG_CACHE_HOME/ofi_mrrc/code, or the
 * same below $HOME/.cache; "": none, as at first.
 */
void mrrc_code_kept_at(const char *path);

/* Reads the file, around a look at all code. */
void mrrc_code_kept_open(void);
void mrrc_code_kept_close(void);

/* One system call; its address is in the copy. */
typedef bool (*mrrc_code_kept_site)(void *arg,
				    const struct mrrc_code_copy *copy,
				    const struct mrrc_code_site *site);

/*
 * Calls @each for the system calls that matter, until it answers false. @matters
 * says so by the code alone: where it does of one whose number is not known, and
 * which is not hooked, nothing is kept. Errors are those of mrrc_code_copy() and mrrc_code_look().
 */
int mrrc_code_sites(const struct mrrc_code_place *place,
		    mrrc_code_kept_site matters, mrrc_code_kept_site each,
		    void *arg);

#endif /* MRRC_CODE_KEPT_H */
