/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file of recorded requests, as it is on disk: what sys/observe/trace_file
 * writes and fi_mrrc_trace(1) and fi_mrrc_sim(1) read.
 *
 * The file has a header of head_size bytes, then chunks of chunk_size bytes.
 * Each chunk belongs to one thread at a time: records of rec_size bytes in the
 * order of their time, valid up to the first record whose op is 0. A record's
 * op is written last, so each valid record is complete however the process
 * ended. Everything is little-endian. Offsets from the start of the file are
 * multiples of rec_size, so a record is one cache line.
 *
 * Part of core: a format and pure functions of it.
 */
#ifndef MRRC_TRACE_H
#define MRRC_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cost/cost.h"

#define MRRC_TRACE_MAGIC "mrrctrac" /* 8 bytes, no NUL */
/*
 * New fields take bytes that were 0, which then mean "not known"; the version
 * changes only if an older reader would misunderstand the file.
 */
#define MRRC_TRACE_VERSION 1
#define MRRC_TRACE_HEAD	   4096
#define MRRC_TRACE_CHUNK   65536
#define MRRC_TRACE_DOMAINS 24 /* domains described in the header */
#define MRRC_TRACE_COSTS   16 /* domains described with their costs */

/*
 * X(ENUM, "name", "help"): the call that made the request. Files contain the
 * numbers of the enum: never change a number.
 */
#define MRRC_TRACE_OPS(X)                                             \
	X(NONE, "none", "not written")                                \
	X(SEND, "send", "a message")                                  \
	X(RECV, "recv", "a receive")                                  \
	X(TSEND, "tsend", "a tagged message")                         \
	X(TRECV, "trecv", "a tagged receive")                         \
	X(WRITE, "write", "a write to a peer")                        \
	X(READ, "read", "a read from a peer")                         \
	X(ATOMIC, "atomic", "an atomic operation")                    \
	X(REG, "reg", "fi_mr_reg and its kin")                        \
	X(EXPOSE, "expose", "the target of conditional writes, kept") \
	X(CWRITE, "cwrite", "a conditional write")

enum mrrc_trace_op {
#define X(id, name, help) MRRC_TRACE_##id,
	MRRC_TRACE_OPS(X)
#undef X
		MRRC_TRACE_OP_CNT
};

/* X(ENUM, "name", "help"): the result of the request. */
#define MRRC_TRACE_RESULTS(X)                                          \
	X(HIT, "hit", "served by what was registered")                 \
	X(MISS, "miss", "something had to be registered")              \
	X(CORE, "core", "the core's own registration, past the cache") \
	X(FAILED, "failed", "could not be registered")                 \
	X(COPY, "copy", "a miss for which copying is cheaper")

enum mrrc_trace_result {
#define X(id, name, help) MRRC_TRACE_##id,
	MRRC_TRACE_RESULTS(X)
#undef X
		MRRC_TRACE_RESULT_CNT
};

enum mrrc_trace_peer {
	MRRC_TRACE_NOBODY,
	MRRC_TRACE_ADDR, /* a fi_addr_t */
	MRRC_TRACE_EP,	 /* an endpoint of the process, from 1 */
	MRRC_TRACE_PEER_CNT
};

/*
 * A request. Times are nanoseconds since the header's start. A thread's
 * previous call site is the call site of its previous record.
 */
struct mrrc_trace_rec {
	uint64_t begin;
	uint64_t end; /* end of the hold; 0, or with the bit OPEN: not ended */
	uint64_t addr;
	uint64_t len;
	uint64_t peer;
	uint64_t site; /* return address of the call */
	uint64_t cost; /* nanoseconds, except for a hit */
	uint32_t thread;
	uint16_t domain; /* from 0, in the order of opening */
	uint8_t op;	 /* enum mrrc_trace_op, written last */
	uint8_t how;	 /* access | result << 3 | kind of peer << 6 */
};

#define MRRC_TRACE_OPEN (1ULL << 63)

struct mrrc_trace_domain {
	char provider[32]; /* strings end with a NUL */
	char policy[64];
	char monitor[16];
	uint64_t max_bytes;
	uint64_t max_regions;
};

/* The model in force (core/cost/cost.h); doubles as IEEE 754 has them. */
struct mrrc_trace_cost {
	uint64_t reg_page, reg, dereg_page, dereg, copy_page, copy;
	uint32_t page; /* 0: not known */
	uint32_t batch;
};

struct mrrc_trace_head {
	char magic[8];
	uint32_t version;
	uint32_t head_size;
	uint32_t rec_size;
	uint32_t chunk_size;
	uint32_t pid;
	uint32_t page;	    /* bytes */
	uint64_t start;	    /* nanoseconds since 1970 */
	uint64_t max_bytes; /* maximum size of the file */
	uint64_t dropped;   /* number of requests that found no room */
	uint32_t domains;   /* number of domains opened so far */
	uint32_t reserved;
	char program[64];
	struct mrrc_trace_domain domain[MRRC_TRACE_DOMAINS];
	struct mrrc_trace_cost cost[MRRC_TRACE_COSTS]; /* by domain */
};

_Static_assert(sizeof(struct mrrc_trace_rec) == 64, "a cache line");
_Static_assert(sizeof(struct mrrc_trace_head) <= MRRC_TRACE_HEAD, "fits");

const char *mrrc_trace_op_name(enum mrrc_trace_op op);
const char *mrrc_trace_op_help(enum mrrc_trace_op op);
const char *mrrc_trace_result_name(enum mrrc_trace_result result);
const char *mrrc_trace_result_help(enum mrrc_trace_result result);

static inline uint8_t mrrc_trace_how(unsigned access,
				     enum mrrc_trace_result result,
				     enum mrrc_trace_peer peer)
{
	return access | result << 3 | peer << 6;
}

static inline unsigned mrrc_trace_access(const struct mrrc_trace_rec *rec)
{
	return rec->how & 7;
}

static inline enum mrrc_trace_result
mrrc_trace_result(const struct mrrc_trace_rec *rec)
{
	return rec->how >> 3 & 7;
}

static inline enum mrrc_trace_peer
mrrc_trace_peer(const struct mrrc_trace_rec *rec)
{
	return rec->how >> 6;
}

/*
 * Converts a record in place between the byte orders of the file and of the
 * machine.
 */
void mrrc_trace_swap_rec(struct mrrc_trace_rec *rec);
void mrrc_trace_swap_head(struct mrrc_trace_head *head);

/*
 * Convert a cost model to and from its form in the file, in the machine's byte
 * order. mrrc_trace_get_cost() returns false: the file has no known costs.
 */
void mrrc_trace_put_cost(const struct mrrc_cost *cost,
			 struct mrrc_trace_cost *to);
bool mrrc_trace_get_cost(const struct mrrc_trace_cost *from,
			 struct mrrc_cost *cost);
void mrrc_trace_swap_cost(struct mrrc_trace_cost *cost);

/*
 * Describes a fault of the record, which is in the machine's byte order; NULL:
 * no fault.
 */
const char *mrrc_trace_check_rec(const struct mrrc_trace_rec *rec);
const char *mrrc_trace_check_head(const struct mrrc_trace_head *head);

#endif /* MRRC_TRACE_H */
