/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs an application and adds up what its caches did, of all processes that it
 * starts on this machine (FI_OFI_MRRC_STATS_FILE).
 */
#ifndef STAT_APPLICATION_H
#define STAT_APPLICATION_H

#include "stat/finding.h"

/*
 * Its status, as a shell has it: 128 and the number of the signal that ended
 * it; 127: it does not exist. @counters: the sums, as JSON, or NULL.
 */
int stat_application(char *const *argv, struct stat_findings *findings,
		     struct json_t **counters);

#endif /* STAT_APPLICATION_H */
