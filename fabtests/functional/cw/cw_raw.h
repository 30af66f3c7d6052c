/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Helpers for tests of peers that violate the control protocol of conditional
 * writes: connections that the test drives itself, and the protocol's messages,
 * written independently of the provider's code from the comment of
 * core/cw/cw_wire.h.
 */
#ifndef CW_RAW_H
#define CW_RAW_H

#include "ft_mrrc.h"

#define RAW_MARK 20 /* bytes of a mark, as sent */

struct raw_side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_ep *ep;
	/* NULL: the provider has no conditional writes */
	struct fi_mrrc_cw *cw;
	struct fid_pep *pep;
	struct fid_mr *mr;
};

#define RAW_DATA 256

struct raw_event {
	size_t len; /* length of cm.data */
	union {
		struct fi_eq_cm_entry cm;
		uint8_t room[sizeof(struct fi_eq_cm_entry) + RAW_DATA];
	};
};

/* Threading and wait object of domains and queues opened from now on */
extern enum fi_threading raw_threading;
extern enum fi_wait_obj raw_wait_obj;

/* Opens a fabric; dest: the address to connect to, NULL for a listener. */
void raw_open_fabric(struct raw_side *side, const char *prov, const void *dest,
		     size_t destlen);
/* Opens an endpoint; cw: with conditional writes. */
void raw_open_ep(struct raw_side *side, struct fi_info *info, bool cw);
/* Makes progress without reading a completion. */
void raw_progress(struct raw_side *side);
/* Waits for one event, while the other side makes progress. */
void raw_wait_event(struct raw_side *side, struct raw_side *other,
		    uint32_t want, struct raw_event *event);
/*
 * Waits for one completion; returns as fi_cq_read() does, or the negative error
 * of an error entry
 */
ssize_t raw_wait_comp(struct raw_side *side, struct raw_side *other,
		      struct fi_cq_data_entry *entry);
void raw_close_ep(struct raw_side *side);
void raw_close_side(struct raw_side *side);

/* Returns the provider list of the core alone. */
const char *raw_core_name(void);
/*
 * Posts four receives of 512 bytes. The context of each receive is its buffer.
 * Over verbs a message arrives only if the receiver has posted a receive.
 */
void raw_post_room(struct raw_side *ctl);
/*
 * Makes private data that asks for a control connection as a reliable datagram
 * endpoint with the name @as does; @number is the number of the endpoint that
 * is asked. Returns the length of the data
 */
#define RAW_PEER_MARK 128 /* maximum bytes of such private data */
size_t raw_peer_mark(uint8_t *mark, const void *as, size_t len, uint64_t nonce,
		     uint32_t number);
/* Opens a listener for invented names; returns its port */
uint16_t raw_witness_open(struct raw_side *witness);
/*
 * Answers @yes to each question whether a connection is the witness's. Returns
 * the number of questions
 */
unsigned raw_witness_poll(struct raw_side *witness, bool yes);
/* Stores a number in little-endian order */
void raw_put(uint8_t *to, uint64_t value, unsigned bytes);
/*
 * Write a message and return its length: HELLO, of 32 bytes; or TAG, of 64
 * bytes, which exposes a buffer under id for the write with tag 1000 + id
 */
size_t raw_hello(uint8_t *msg, uint64_t cookie);
size_t raw_tag(uint8_t *msg, uint64_t id);

#endif /* CW_RAW_H */
