/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Predicts when a buffer will be used again: the context-aware predictor of
 * li2011, section 3.1.
 *
 * A use has a signature: its call site, its address, the class of its length,
 * and the communication points of its thread before it. For each signature the
 * predictor learns the shortest and the longest gap from such a use to the next
 * use of the same buffer. The paper predicts the shortest gap, and keeps the
 * buffer from then on; in this predictor, the longest gap limits how long the
 * buffer is kept. The paper identifies a use by a hash of the stack, and two
 * earlier points. In the provider the call site is often the same address in an
 * MPI library, so lengths and more points stand for the stack.
 *
 * If a signature is new, the gaps of the buffer at that call site in any
 * context are used. If these gaps are unknown, too, the call site predicts
 * whether its buffers are used more than once, and the gaps of all buffers
 * (gaps.h) say how long to wait: an idle time that few of these gaps exceed. A
 * buffer whose signature has few gaps is kept at least for the idle time.
 *
 * Some gaps cannot be predicted by the shortest gap, such as the gaps between
 * uses of heap memory. So the predictor counts how often the next gap was
 * shorter than predicted, in classes by the number of gaps seen before. Nothing
 * is predicted, and the buffer is kept for the idle time, if deregistrations at
 * that number of gaps would cost more in late uses than the registered time
 * that they save is worth.
 *
 * Times are nanoseconds, and passed as arguments: there is no clock. Not
 * thread-safe. Only init allocates; new entries replace entries that were not
 * used for long.
 */
#ifndef MRRC_PREDICT_H
#define MRRC_PREDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/helper/gaps.h"

#define MRRC_PREDICT_WINDOW 6 /* earlier points that a signature includes */
#define MRRC_PREDICT_NEVER  UINT64_MAX
#define MRRC_PREDICT_RATES  32 /* classes of numbers of gaps: powers of two */

/* The last communication points of a thread; zero: no point yet. */
struct mrrc_predict_context {
	uint64_t point[MRRC_PREDICT_WINDOW]; /* the latest first */
};

struct mrrc_signature {
	uint64_t context; /* call site, address, length and earlier points */
	uint64_t buffer;  /* call site, address and length */
	uint64_t site;	  /* call site and length */
};

/* Times relative to the use. */
struct mrrc_prediction {
	uint64_t period; /* the shortest gap; 0: not known */
	uint64_t from;	 /* no use before this, less a guard; 0: unsure */
	uint64_t to;	 /* no use after this; NEVER: unknown, 0: at once */
};

struct mrrc_predict_entry;

/* Quality of the predictions that were made after a certain number of gaps. */
struct mrrc_predict_rate {
	uint32_t seen;
	uint32_t sooner; /* gaps shorter than predicted */
};

struct mrrc_predict {
	struct mrrc_predict_entry *entry;
	size_t sets;	  /* a power of two */
	uint64_t uses;	  /* recorded so far */
	uint64_t gaps;	  /* number of gaps learned so far */
	uint64_t longest; /* the longest gap so far */
	struct mrrc_gaps lengths;
	struct mrrc_predict_rate rate[MRRC_PREDICT_RATES];
};

/*
 * Initialises a predictor for about @signatures signatures. Returns 0 or
 * -ENOMEM.
 */
int mrrc_predict_init(struct mrrc_predict *predict, size_t signatures);
void mrrc_predict_fini(struct mrrc_predict *predict);

/*
 * Initialises a predictor in the caller's memory: mrrc_predict_bytes() bytes,
 * all zero.
 */
size_t mrrc_predict_bytes(size_t signatures);
void mrrc_predict_place(struct mrrc_predict *predict, size_t signatures,
			void *zeroes);

/*
 * Records that the context's thread is at a new communication point. Only the
 * class of the length counts: the next power of two.
 */
void mrrc_predict_sign(struct mrrc_predict_context *context, uint64_t site,
		       uint64_t addr, size_t len,
		       struct mrrc_signature *signature);

/* Records a use with the signature @signature. */
void mrrc_predict_use(struct mrrc_predict *predict,
		      const struct mrrc_signature *signature);

/*
 * Records that a buffer was used again, @gap ns after its use with the
 * signature @signature.
 */
void mrrc_predict_gap(struct mrrc_predict *predict,
		      const struct mrrc_signature *signature, uint64_t gap);

/*
 * Predicts the next use of a buffer after a use with the signature @signature.
 */
void mrrc_predict_next(const struct mrrc_predict *predict,
		       const struct mrrc_signature *signature,
		       struct mrrc_prediction *prediction);

#endif /* MRRC_PREDICT_H */
