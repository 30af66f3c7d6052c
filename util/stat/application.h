/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs an application and adds up the counters of its caches, in all processes
 * that it starts on this machine (FI_OFI_MRRC_STATS_FILE).
 */
#ifndef STAT_APPLICATION_H
#define STAT_APPLICATION_H

#include "stat/finding.h"

/*
 * Returns the application's exit status as a shell does: 128 plus the number of
 * the signal that ended the application; 127 if the application does not exist.
 * @counters: the sums, as JSON, or NULL.
 */
int stat_application(char *const *argv, struct stat_findings *findings,
		     struct json_t **counters);

#endif /* STAT_APPLICATION_H */
