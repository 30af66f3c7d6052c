/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The directory that has the node's segment (node_dir.h).
 */
#include "config.h"
#include "sys/node/node_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/node/node_shm.h"

static void dirs_add(struct mrrc_node_dirs *dirs, const char *dir)
{
	snprintf(dirs->dir[dirs->count++], MRRC_NODE_DIR_MAX, "%s", dir);
}

static void dirs_add_private(struct mrrc_node_dirs *dirs, const char *dir)
{
	struct stat st;

	if (dir && *dir == '/' && strlen(dir) < MRRC_NODE_DIR_MAX &&
	    !lstat(dir, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	    (st.st_mode & 07777) == 0700)
		dirs_add(dirs, dir);
}

void mrrc_node_dirs(struct mrrc_node_dirs *dirs)
{
	char run[32];

	dirs->count = 0;
	snprintf(run, sizeof(run), "/run/user/%u", (unsigned) geteuid());
	dirs_add_private(dirs, secure_getenv("XDG_RUNTIME_DIR"));
	dirs_add_private(dirs, run);
	dirs_add(dirs, "/dev/shm");
}

static int dir_open(const char *dir, bool make, struct mrrc_node_shm **shm)
{
	char path[MRRC_NODE_DIR_MAX + 32];
	struct stat st;
	int ret;

	ret = mrrc_node_shm_path(dir, path, sizeof(path));
	if (!ret && !make && lstat(path, &st))
		ret = -errno;
	return ret ? ret : mrrc_node_shm_open(dir, shm);
}

int mrrc_node_dirs_open(const struct mrrc_node_dirs *dirs,
			struct mrrc_node_shm **shm)
{
	unsigned i, make;
	int ret = -ENOENT;

	for (make = 0; make < 2; make++) {
		for (i = 0; i < dirs->count; i++) {
			ret = dir_open(dirs->dir[i], make, shm);
			/*
			 * the segment that the other processes share has no
			 * slot left
			 */
			if (!ret || ret == -EUSERS)
				return ret;
		}
	}
	return ret;
}
