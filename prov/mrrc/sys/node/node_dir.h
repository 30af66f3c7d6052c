/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds the directory of the node's segment (sys/node/node_shm.h), preferably
 * one that other users cannot use, since in /dev/shm any user can take the
 * segment's name, or all of the memory.
 *
 * Threading: as safe as getenv(3).
 */
#ifndef MRRC_NODE_DIR_H
#define MRRC_NODE_DIR_H

#define MRRC_NODE_DIRS	  3
#define MRRC_NODE_DIR_MAX 256 /* longer names are not used */

struct mrrc_node_shm;

/* Directories, in the order in which they are tried. */
struct mrrc_node_dirs {
	char dir[MRRC_NODE_DIRS][MRRC_NODE_DIR_MAX];
	unsigned count;
};

/*
 * Finds $XDG_RUNTIME_DIR and /run/user/UID, if this user owns them and their
 * mode is 0700, and /dev/shm.
 */
void mrrc_node_dirs(struct mrrc_node_dirs *dirs);

/*
 * Opens the segment in any of these directories; makes a segment if no
 * directory has it. So the processes of a login, which has a private directory,
 * and of a batch system, which may have no such directory, share one segment.
 * Returns the error of the last directory tried.
 */
int mrrc_node_dirs_open(const struct mrrc_node_dirs *dirs,
			struct mrrc_node_shm **shm);

#endif /* MRRC_NODE_DIR_H */
