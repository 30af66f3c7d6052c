/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Uprobes in this process alone, as perf(1) and bpftrace place them in all that run a
 * file: the kernel writes a byte over the instruction, and when the probe goes the
 * byte of the file.
 */
#ifndef MRRC_UPROBE_H
#define MRRC_UPROBE_H

#include <stdbool.h>
#include <stdint.h>

/* A function of libc, not the one by which tests make it fail (fault.h). */
const uint8_t *uprobe_libc(const char *name);

/*
 * At the instruction, or where the function that begins there returns, until the
 * descriptor is closed. -1: there are none here (errno), or not there.
 */
int uprobe_set(const void *at, bool returns);

/* How often this thread came by. */
uint64_t uprobe_count(int fd);

#endif /* MRRC_UPROBE_H */
