/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The counters of each domain, as a line of JSON appended to a file
 * (FI_OFI_MRRC_STATS_FILE): when the domain is closed, or at the process's
 * exit. A forked child writes nothing about its parent's domains.
 *
 * Any thread, no lock held.
 */
#ifndef MRRC_STATS_FILE_H
#define MRRC_STATS_FILE_H

struct mrrc_reg;

/* Called when the domain is open. */
void mrrc_stats_file_add(struct mrrc_reg *reg);

/* Called when the domain is closed, the cache not yet: writes reg->last. */
void mrrc_stats_file_close(struct mrrc_reg *reg);

#endif /* MRRC_STATS_FILE_H */
