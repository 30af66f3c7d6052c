/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The parts that a build may leave out (configure --disable-PART). A file
 * without.c then stands in place of the part's own files. Any thread.
 */
#ifndef MRRC_PARTS_H
#define MRRC_PARTS_H

#include <stdbool.h>

/* Is the part built in? */
bool mrrc_part(const char *part);

/* The feature of that name: 1 if it is a part that is built in. */
int mrrc_part_feature(const char *name);

/*
 * Called after a failed fi_open_ops() of the name ops: if the operations belong
 * to a part that was left out, prints so, once.
 */
void mrrc_part_asked(const char *ops);

#endif /* MRRC_PARTS_H */
