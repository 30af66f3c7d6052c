/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Uprobes in this process alone; perf(1) and bpftrace place uprobes in all
 * processes that run a file. The kernel writes a byte over the instruction, and
 * writes the byte of the file back when the probe ends.
 */
#ifndef MRRC_UPROBE_H
#define MRRC_UPROBE_H

#include <stdbool.h>
#include <stdint.h>

/* Returns a function of libc, not its wrapper for injected faults (fault.h). */
const uint8_t *uprobe_libc(const char *name);

/*
 * Sets a probe at the instruction, or where the function that begins there
 * returns, until the returned descriptor is closed. -1: there are no uprobes
 * here, or not at this place (errno).
 */
int uprobe_set(const void *at, bool returns);

/* Returns how often this thread passed the probe. */
uint64_t uprobe_count(int fd);

#endif /* MRRC_UPROBE_H */
