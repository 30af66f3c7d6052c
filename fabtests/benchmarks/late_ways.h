/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ways to bring data into buffers that the receiver shows later than the data
 * is ready: their endpoints and memory, and the calls of each side. Each side
 * is one thread, which alone uses its endpoints (late_bench.c).
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
	 * ofi_rxm, FI_OFI_RXM_USE_RNDV_WRITE: request to send, ready to receive
	 * with address and key, write, end
	 */
	LATE_RTR,
	/* ofi_rxm's default: request to send with address and key, read, end */
	LATE_READ,
	/*
	 * clear to send, as NCCL does over verbs: the receiver writes address
	 * and key to a slot in the sender's memory; the sender polls the slot,
	 * and writes with remote CQ data
	 */
	LATE_FIFO,
	LATE_HAND,   /* a message with address and key, write, a message */
	LATE_COPIED, /* a message, received ahead in other memory */
	LATE_WAYS
};

/* A transaction: @depth buffers of @len bytes. */
struct late_job {
	unsigned way, depth, late_us;
	size_t len;
	bool computes; /* the sender computes, instead of polling all the time */
	bool whole;    /* compare all data */
	uint64_t turn; /* number of this transaction, not 0 */
};

/*
 * The receiver has a receive completion for each buffer, and the sender a
 * transmit completion.
 */
struct late_way {
	const char *name;
	/* Posts a receive, before anything is sent; may be NULL */
	void (*ahead)(int side, unsigned i);
	void (*post)(unsigned i); /* the sender's data is ready */
	void (*show)(unsigned i); /* the receiver's buffer is ready */
	/* The sender got a message for a buffer; NULL: it gets none */
	void (*asked)(const struct ft_comp *comp);
	/* The receiver got its ith completion; may be NULL */
	void (*heard)(unsigned i, const struct ft_comp *comp);
	void (*look)(void); /* The sender polls memory; may be NULL */
};

extern const struct late_way late_ways[LATE_WAYS];
extern struct late_job late_job; /* the transaction under way */

/* Only ofi_rxm's endpoints: this process makes rendezvous alone. */
void late_open(bool only_rxm);
/* That side's endpoint in the transaction */
struct ft_ep *late_ep(int side);
void late_fill(void);
void late_check(void);

#endif /* LATE_WAYS_H */
