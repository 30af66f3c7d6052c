/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * System calls in the code of this process that may unmap memory, found by the
 * decoder (code.h). The findings are kept, also for later processes of this
 * user: code of a file that was decoded before is not decoded again, and a file
 * that has no such call is not even read.
 *
 * A file is identified by its inode number, size and times, together with those
 * of this library and the decoder: findings of other versions do not count. The
 * code in memory is that of the file if the kernel (/proc/self/pagemap) has
 * made no copy of a page. If the kernel has made a copy, a hash of the code's
 * bytes is part of the key.
 *
 * The file of findings has 256 bytes for each library, in no order. Without it,
 * or where it cannot be read or written, the process has its own findings.
 *
 * One thread at a time.
 */
#ifndef MRRC_CODE_KEPT_H
#define MRRC_CODE_KEPT_H

#include "sys/proof/code_copy.h"

/*
 * Uses the file at @path from now on; NULL: $XDG_CACHE_HOME/ofi_mrrc/code, or
 * the same below $HOME/.cache; "": no file, which is the default.
 */
void mrrc_code_kept_at(const char *path);

/*
 * To be called before and after code is examined; mrrc_code_kept_open() reads
 * the file.
 */
void mrrc_code_kept_open(void);
void mrrc_code_kept_close(void);

/* One system call; its address is in the copy. */
typedef bool (*mrrc_code_kept_site)(void *arg,
				    const struct mrrc_code_copy *copy,
				    const struct mrrc_code_site *site);

/*
 * Calls @each for the system calls that matter, until @each returns false.
 * @matters decides by the code alone whether a call matters. If @matters is
 * true for a call whose number is not known and which is not hooked, no finding
 * is kept. Errors are those of mrrc_code_copy() and mrrc_code_look().
 */
int mrrc_code_sites(const struct mrrc_code_place *place,
		    mrrc_code_kept_site matters, mrrc_code_kept_site each,
		    void *arg);

#endif /* MRRC_CODE_KEPT_H */
