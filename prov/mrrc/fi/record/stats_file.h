/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Appends the counters of each domain to a file (FI_OFI_MRRC_STATS_FILE), as a
 * line of JSON, when the domain is closed or the process exits. A forked child
 * writes nothing about its parent's domains.
 *
 * Any thread, no lock held.
 */
#ifndef MRRC_STATS_FILE_H
#define MRRC_STATS_FILE_H

struct mrrc_reg;

/* Called when the domain is open. */
void mrrc_stats_file_add(struct mrrc_reg *reg);

/* Called when the domain, but not its cache, is closed: writes reg->last. */
void mrrc_stats_file_close(struct mrrc_reg *reg);

#endif /* MRRC_STATS_FILE_H */
