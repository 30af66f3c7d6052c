/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages about a domain's cache: in the log, and to readers of its statistics
 * segment (sys/observe/stats_shm.h).
 */
#ifndef MRRC_REPORT_H
#define MRRC_REPORT_H

#include "fi/reg.h"

/*
 * To be called when the monitor is open. @why: the reason why there is no
 * monitor, or ""; @hooks: why libc is not hooked, or which calls are not
 * hooked. Where registrations are not kept because memory cannot be watched,
 * the first domain of a process warns.
 */
void mrrc_report_monitor(struct mrrc_reg *reg, const char *why,
			 const char *hooks);

/* Warns if the limit on locked memory makes an open cache useless. */
void mrrc_report_limit(struct mrrc_reg *reg);

/* Warns, once, that another library has patched over our hooks. */
void mrrc_report_hooks(void);

/*
 * Reports why lookups ask the kernel; "": lookups do not ask. Called by the
 * thread that examined the code.
 */
void mrrc_report_trust(const char *why);

/*
 * Makes the domain visible to readers. The domain's cache must be open, unless
 * the domain registers nothing.
 */
void mrrc_report_open(struct mrrc_reg *reg);

/*
 * Describes this cache to other processes; the strings live as long as the
 * cache.
 */
void mrrc_reg_info(struct mrrc_reg *reg, struct mrrc_stats_shm_info *info);

#endif /* MRRC_REPORT_H */
