/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ways to transfer data into buffers that the receiver shows after the data is
 * ready: the endpoints and memory of these ways, and the calls of each side.
 * Each side is one thread, which alone uses its endpoints (late_bench.c).
 */
#ifndef LATE_WAYS_H
#define LATE_WAYS_H

#include "ft_bench.h"

#define LATE_DEPTH_MAX 16
#define LATE_LEN_MAX   (1UL << 20)

enum { LATE_RECEIVER, LATE_SENDER };
enum {
	LATE_CWRITE, /* fi_cwrite() and fi_cwtag() */
	/*
	 * ofi_rxm with FI_OFI_RXM_USE_RNDV_WRITE: messages "request to send",
	 * "ready to receive" with address and key, write, message "end"
	 */
	LATE_RTR,
	/*
	 * ofi_rxm's default: "request to send" with address and key, read,
	 * "end"
	 */
	LATE_READ,
	/*
	 * "clear to send", as NCCL does over verbs: the receiver writes address
	 * and key to a slot in the sender's memory; the sender polls the slot,
	 * and writes with remote CQ data
	 */
	LATE_FIFO,
	LATE_HAND,   /* a message with address and key, a write, a message */
	LATE_COPIED, /* a message, received ahead into other memory */
	LATE_WAYS
};

/* A transaction: @depth buffers of @len bytes. */
struct late_job {
	unsigned way, depth, late_us;
	size_t len;
	/* the sender computes, instead of polling all the time */
	bool computes;
	bool whole;    /* compare all bytes of the data */
	uint64_t turn; /* number of this transaction, not 0 */
};

/*
 * A way, by which the receiver gets a receive completion for each buffer, and
 * the sender a transmit completion.
 */
struct late_way {
	const char *name;
	/* Posts a receive, before anything is sent; may be NULL */
	void (*ahead)(int side, unsigned i);
	void (*post)(unsigned i); /* the sender's data is ready */
	void (*show)(unsigned i); /* the receiver's buffer is ready */
	/*
	 * called at the sender for a message about a buffer; NULL: the sender
	 * gets no such message
	 */
	void (*asked)(const struct ft_comp *comp);
	/* The receiver got its ith completion; may be NULL */
	void (*heard)(unsigned i, const struct ft_comp *comp);
	void (*look)(void); /* The sender polls memory; may be NULL */
};

extern const struct late_way late_ways[LATE_WAYS];
extern struct late_job late_job; /* the transaction under way */

/* Opens endpoints; only_rxm: only ofi_rxm's, for the process of LATE_RTR. */
void late_open(bool only_rxm);
/* Returns that side's endpoint in the transaction */
struct ft_ep *late_ep(int side);
void late_fill(void);
void late_check(void);

#endif /* LATE_WAYS_H */
