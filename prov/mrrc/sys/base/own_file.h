/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opens files that the environment names and the process writes. Such files
 * must not belong to another user, nor be links to another file: in a directory
 * that others can write to (/tmp) another user could otherwise choose what is
 * overwritten, or read it.
 *
 * All calls: any thread.
 */
#ifndef MRRC_OWN_FILE_H
#define MRRC_OWN_FILE_H

/*
 * Opens for writing; @flags: O_RDWR or O_WRONLY, and O_APPEND. A missing file
 * is created, and only its owner can read it. An existing regular file keeps
 * its contents and its mode. It must belong to the user and have one name, and
 * so must a FIFO, which is opened without waiting for a reader; a character
 * device (/dev/null) may have any owner.
 *
 * Returns a descriptor, or -ELOOP: a symbolic link; -EPERM: not the user's
 * file, or a file with several names; or the error of open(2).
 */
int mrrc_own_file_open(const char *path, int flags);

/* The meaning of -ELOOP and -EPERM as text; NULL: any other error. */
const char *mrrc_own_file_why(int err);

#endif /* MRRC_OWN_FILE_H */
