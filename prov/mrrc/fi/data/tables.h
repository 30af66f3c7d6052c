/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tables of data calls: those of msg.c, rma.c, tagged.c, atomic.c and forward.c
 * first, then those of the files that comments name.
 */
#ifndef MRRC_TABLES_H
#define MRRC_TABLES_H

#include "fi/mrrc_fi.h"

/*
 * Data calls: *_fwd_ops only forward, for endpoints that resolve nothing;
 * the others resolve null descriptors.
 */
extern struct fi_ops_msg mrrc_msg_ops, mrrc_msg_fwd_ops;
extern struct fi_ops_rma mrrc_rma_ops, mrrc_rma_fwd_ops;
extern struct fi_ops_tagged mrrc_tagged_ops, mrrc_tagged_fwd_ops;
extern struct fi_ops_atomic mrrc_atomic_ops, mrrc_atomic_fwd_ops;
extern struct fi_ops_collective mrrc_collective_fwd_ops;

/* forward.c: forwarders whose receives have records; init: to be called once */
extern struct fi_ops_msg mrrc_msg_checked_ops;
extern struct fi_ops_tagged mrrc_tagged_checked_ops;
void mrrc_checked_init(void);

/*
 * recorded.c: resolving calls for domains that are recorded; init: once, before
 * use
 */
extern struct fi_ops_msg mrrc_recorded_msg_ops;
extern struct fi_ops_rma mrrc_recorded_rma_ops;
extern struct fi_ops_tagged mrrc_recorded_tagged_ops;
extern struct fi_ops_atomic mrrc_recorded_atomic_ops;
void mrrc_recorded_init(void);

/*
 * noted.c: resolving calls for domains whose helper predicts uses; init: once,
 * before use
 */
extern struct fi_ops_msg mrrc_noted_msg_ops;
extern struct fi_ops_rma mrrc_noted_rma_ops;
extern struct fi_ops_tagged mrrc_noted_tagged_ops;
void mrrc_noted_init(void);

#endif /* MRRC_TABLES_H */
