/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A cost model in a file, as fi_mrrc_prof(1) saves it (core/cost/cost.h).
 * Stateless; any thread.
 */
#ifndef MRRC_COST_FILE_H
#define MRRC_COST_FILE_H

#include "core/cost/cost.h"

/* The prefix of a parameter's value that names a file with a model. */
#define MRRC_COST_FILE "file:"

/*
 * Reads a model. -EINVAL: no model, or several; -EFBIG: the file is far too
 * long; -EISDIR and the like, or the error of open or read.
 */
int mrrc_cost_file_read(const char *path, struct mrrc_cost *cost);

#endif /* MRRC_COST_FILE_H */
