/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opens files whose names another user may have chosen. Opening a device can
 * have effects, such as to rewind a tape or to start a watchdog, so only
 * regular files are opened.
 *
 * All calls: any thread.
 */
#ifndef MRRC_REGULAR_H
#define MRRC_REGULAR_H

/*
 * Opens a regular file for reading; @dir: as in openat(2); @type: the type of
 * its file system as in statfs(2), or 0: any.
 *
 * Returns a descriptor, or -EINVAL: another kind of file, or of file system;
 * or the error of openat(2).
 */
int mrrc_regular_open(int dir, const char *path, long type);

#endif /* MRRC_REGULAR_H */
