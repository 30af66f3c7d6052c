/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads a cost model (core/cost/cost.h) from a file that fi_mrrc_prof(1) has
 * saved. Stateless; any thread.
 */
#ifndef MRRC_COST_FILE_H
#define MRRC_COST_FILE_H

#include "core/cost/cost.h"

/* The prefix of a parameter's value that names a file with a model. */
#define MRRC_COST_FILE "file:"

/*
 * Reads a model. -EINVAL: the file has no model, or several; -EFBIG: the file
 * is far too long; -EISDIR and the like, or the error of open or read.
 */
int mrrc_cost_file_read(const char *path, struct mrrc_cost *cost);

#endif /* MRRC_COST_FILE_H */
