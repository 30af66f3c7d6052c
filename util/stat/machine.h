/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reports limits of the process and of the machine, as they affect the cache
 * that a probe has opened.
 */
#ifndef STAT_MACHINE_H
#define STAT_MACHINE_H

#include <stdbool.h>

#include "stat/finding.h"
#include "stat/segment.h"

/*
 * Looks for RDMA devices that this user may open; reports the devices, or why
 * there are no such devices.
 */
bool stat_machine_devices(struct stat_findings *findings);

/* Reports limits; the segment's domain must register buffers. */
void stat_machine_limits(const struct stat_segment *segment,
			 struct stat_findings *findings);

#endif /* STAT_MACHINE_H */
