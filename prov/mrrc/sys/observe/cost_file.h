/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A cost model in a file, as fi_mrrc_prof(1) saves it (core/cost/cost.h). Stateless;
 * any thread.
 */
#ifndef MRRC_COST_FILE_H
#define MRRC_COST_FILE_H

#include "core/cost/cost.h"

/* The prefix by which a parameter names a model in a file. */
#define MRRC_COST_FILE "file:"

/*
 * -EINVAL: no model, or several; -EFBIG: far too long; -EISDIR and the like,
 * or what open or read said.
 */
int mrrc_cost_file_read(const char *path, struct mrrc_cost *cost);

#endif /* MRRC_COST_FILE_H */
