/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds, by the decoder (code.h), system calls in the code of this process that
 * may unmap memory, and keeps the findings, also for later processes of this
 * user: code of a file that was decoded before is not decoded again, and a file
 * without such system calls is not even read.
 *
 * The key of a finding has the inode number, size and times of the file, of
 * this library and of the decoder, so that findings of other versions do not
 * count. Nothing is kept of files whose times of change have no nanoseconds.
 * The code in memory is the file's code if, by /proc/self/pagemap, the kernel
 * has made no private copy of a page. If the kernel has made a copy, a hash of
 * the code's bytes is part of the key.
 *
 * The file of findings has an entry of 256 bytes for each library, in no order.
 * If the file of findings is missing, cannot be read or written, or other users
 * can write to it, the process keeps its findings in memory only.
 *
 * One thread at a time.
 */
#ifndef MRRC_CODE_KEPT_H
#define MRRC_CODE_KEPT_H

#include "sys/proof/code_copy.h"

/*
 * Keeps findings in the file @path from now on; NULL:
 * $XDG_CACHE_HOME/ofi_mrrc/code, or $HOME/.cache/ofi_mrrc/code; "": no file,
 * which is the default.
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
 * true for a call that is not hooked and whose number is not known, the
 * mapping's findings are not kept. Errors are those of mrrc_code_copy() and
 * mrrc_code_look().
 */
int mrrc_code_sites(const struct mrrc_code_place *place,
		    mrrc_code_kept_site matters, mrrc_code_kept_site each,
		    void *arg);

#endif /* MRRC_CODE_KEPT_H */
