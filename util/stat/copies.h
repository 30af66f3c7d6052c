/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds the copies of libfabric that programs of this environment may load: the
 * application's own copy, copies in LD_LIBRARY_PATH and in the loader's cache,
 * and copies in packages of python3. Other folders are not searched.
 */
#ifndef STAT_COPIES_H
#define STAT_COPIES_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

#define STAT_COPIES_MAX 16

struct stat_copies {
	/* number of copies; the application loads the first copy */
	size_t count;
	struct {
		char path[PATH_MAX];
		dev_t dev;
		ino_t ino;
	} copy[STAT_COPIES_MAX];
};

/*
 * @libfabric: the first copy, even if it can't be loaded; NULL: what is found.
 * @application is looked for in PATH; NULL: any program.
 */
void stat_copies_find(const char *libfabric, const char *application,
		      struct stat_copies *copies);

#endif /* STAT_COPIES_H */
