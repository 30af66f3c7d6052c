/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What limits a cache: the process's and the machine's limits, by the cache that
 * a probe has opened.
 */
#ifndef STAT_MACHINE_H
#define STAT_MACHINE_H

#include <stdbool.h>

#include "stat/finding.h"
#include "stat/segment.h"

/* RDMA devices that this user may open; says so, or what is missing. */
bool stat_machine_devices(struct stat_findings *findings);

/* The domain registers buffers. */
void stat_machine_limits(const struct stat_segment *segment,
			 struct stat_findings *findings);

#endif /* STAT_MACHINE_H */
