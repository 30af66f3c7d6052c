/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The parts that are opened and closed with a domain that registers memory, the
 * provider's or a hooked one: its cost model, its line in the statistics file,
 * its recorder.
 */
#ifndef MRRC_ATTACH_H
#define MRRC_ATTACH_H

#include "fi/reg.h"

/* To be called with the core's domain open, and nothing registered yet. */
void mrrc_attach(struct mrrc_reg *reg, struct fid_domain *core);

/* Closes @reg, after the core's domain was closed or could not be opened. */
void mrrc_detach(struct mrrc_reg *reg);

#endif /* MRRC_ATTACH_H */
