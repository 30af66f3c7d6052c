/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opens files that the environment names and the process writes. Such files
 * must not belong to another user, nor be symbolic or hard links: in a
 * directory that others can write to (/tmp), another user could otherwise
 * choose which file is overwritten, or read the written data.
 *
 * All calls: any thread.
 */
#ifndef MRRC_OWN_FILE_H
#define MRRC_OWN_FILE_H

/*
 * Opens a file for writing; @flags: O_RDWR or O_WRONLY, and O_APPEND. A missing
 * file is created, and only its owner can read it. An existing regular file
 * keeps its contents and its mode. A regular file or a FIFO must belong to the
 * user and have one name; a character device (/dev/null) may have any owner.
 * Opening a FIFO does not wait for a reader.
 *
 * Returns a descriptor, or -ELOOP: a symbolic link; -EPERM: not the user's
 * file, or a file with several names; or the error of open(2).
 */
int mrrc_own_file_open(const char *path, int flags);

/* The meaning of -ELOOP and -EPERM as text; NULL: any other error. */
const char *mrrc_own_file_why(int err);

#endif /* MRRC_OWN_FILE_H */
