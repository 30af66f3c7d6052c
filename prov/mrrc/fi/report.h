/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is said about a domain's cache: in the log, and to readers of its
 * statistics segment (sys/observe/stats_shm.h).
 */
#ifndef MRRC_REPORT_H
#define MRRC_REPORT_H

#include "fi/reg.h"

/*
 * The monitor is open. @why: why it is none, or ""; @hooks: why libc is not
 * hooked, or which calls are not. Where registrations are not kept because
 * memory cannot be watched, the first domain of a process warns.
 */
void mrrc_report_monitor(struct mrrc_reg *reg, const char *why,
			 const char *hooks);

/* Warn if the limit on locked memory makes an open cache useless. */
void mrrc_report_limit(struct mrrc_reg *reg);

/* Another library has patched over our hooks: warns once. */
void mrrc_report_hooks(void);

/* Why lookups ask the kernel, or "". In the thread that finds out. */
void mrrc_report_trust(const char *why);

/* Has readers find the domain; its cache is open, unless it registers nothing.
 */
void mrrc_report_open(struct mrrc_reg *reg);

#endif /* MRRC_REPORT_H */
