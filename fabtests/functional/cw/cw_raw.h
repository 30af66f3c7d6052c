/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Helpers for tests of peers that violate the control protocol: connections
 * that the test drives itself, and its messages, written a second time from the
 * comment of core/cw/cw_wire.h, not with the provider's code.
 */
#ifndef CW_RAW_H
#define CW_RAW_H

#include "ft_mrrc.h"

#define RAW_MARK 20 /* cm_data_size, as on the wire */

struct raw_side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fi_mrrc_cw *cw; /* NULL: the provider has none */
	struct fid_pep *pep;
	struct fid_mr *mr;
};

#define RAW_DATA 256

struct raw_event {
	size_t len; /* of cm.data */
	union {
		struct fi_eq_cm_entry cm;
		uint8_t room[sizeof(struct fi_eq_cm_entry) + RAW_DATA];
	};
};

/* Threading of domains and queues opened from now on */
extern enum fi_threading raw_threading;
extern enum fi_wait_obj raw_wait_obj;

/* dest: NULL for a listener's */
void raw_open_fabric(struct raw_side *side, const char *prov, const void *dest,
		     size_t destlen);
/* cw: with conditional writes */
void raw_open_ep(struct raw_side *side, struct fi_info *info, bool cw);
/* Takes nothing. */
void raw_progress(struct raw_side *side);
/* Waits for one event, while the other side makes progress. */
void raw_wait_event(struct raw_side *side, struct raw_side *other,
		    uint32_t want, struct raw_event *event);
/*
 * Waits for one completion; returns as fi_cq_read() does, or the negative error
 * of its entry
 */
ssize_t raw_wait_comp(struct raw_side *side, struct raw_side *other,
		      struct fi_cq_data_entry *entry);
void raw_close_ep(struct raw_side *side);
void raw_close_side(struct raw_side *side);

/* The provider list of the core alone. */
const char *raw_core_name(void);
/*
 * Posts receives: over verbs nothing gets through before there is room for a
 * message.
 */
void raw_post_room(struct raw_side *ctl);
/*
 * Makes private data that asks for a control connection as a reliable datagram
 * endpoint does, with the name @as; number: the number of the endpoint that is
 * asked. Returns its length
 */
#define RAW_PEER_MARK 128 /* at most */
size_t raw_peer_mark(uint8_t *mark, const void *as, size_t len, uint64_t nonce,
		     uint32_t number);
/* Opens a listener for invented names; returns its port */
uint16_t raw_witness_open(struct raw_side *witness);
/*
 * Gives this answer to each question whether a connection is the witness's.
 * Returns how many
 */
unsigned raw_witness_poll(struct raw_side *witness, bool yes);
/* Little endian */
void raw_put(uint8_t *to, uint64_t value, unsigned bytes);
/*
 * Write messages of 32 and 64 bytes: HELLO; a tag with this id, for 1000 + id
 */
size_t raw_hello(uint8_t *msg, uint64_t cookie);
size_t raw_tag(uint8_t *msg, uint64_t id);

#endif /* CW_RAW_H */
