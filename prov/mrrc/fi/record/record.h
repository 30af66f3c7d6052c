/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The recorder writes every request for registered memory to a file of the
 * process (FI_OFI_MRRC_TRACE; core/text/trace.h has the format).
 *
 * Recorded endpoints have tables of calls (data/recorded.c) that note which
 * call the application makes, and then make the usual calls. A request is
 * recorded where the cache, or the core, is asked, and its end where the region
 * is put.
 *
 * A forked child that opens a domain records into its own file if the path has
 * %p; otherwise it records nothing.
 *
 * Any thread, no lock held, except in mrrc_record_end().
 */
#ifndef MRRC_RECORD_H
#define MRRC_RECORD_H

#include "core/text/trace.h"
#include "fi/mrrc_fi.h"
#include "sys/cache/cache_mt.h"

/* Called when a domain is open: sets reg->traced if it is recorded. */
void mrrc_record_open(struct mrrc_reg *reg);

/* A number for an endpoint, from 1. */
uint64_t mrrc_record_ep(void);

/* Notes which call of this thread makes the next request. */
void mrrc_record_by(enum mrrc_trace_op op, enum mrrc_trace_peer kind,
		    uint64_t peer, const void *site);

/*
 * Calls mrrc_cache_mt_get_pieces() if admit is NULL, else
 * mrrc_cache_mt_get_or_copy(), and records the request; *chain is for
 * mrrc_record_end(): on entry 0, or the requests that end together with this
 * one.
 */
int mrrc_record_get(struct mrrc_reg *reg, uint64_t *chain,
		    const struct iovec *iov, enum mrrc_access access,
		    unsigned pieces, struct mrrc_plan *plan,
		    struct mrrc_admit *admit, bool *copy);

/* Records a request that was found registered. chain may be NULL. */
void mrrc_record_hit(const struct mrrc_reg *reg, uint64_t *chain,
		     const void *addr, size_t len, enum mrrc_access access);

/* mrrc_cache_mt_get(), recorded if the domain is recorded. */
static inline int mrrc_record_get_one(struct mrrc_reg *reg, uint64_t *chain,
				      const struct iovec *iov,
				      enum mrrc_access access,
				      struct mrrc_region **region)
{
	struct mrrc_plan plan;
	int ret;

	if (!mrrc_unlikely(reg->traced))
		return mrrc_cache_mt_get(reg->cache, iov->iov_base,
					 iov->iov_len, access, region);
	ret = mrrc_record_get(reg, chain, iov, access, 1, &plan, NULL, NULL);
	if (!ret)
		*region = plan.piece[0].region;
	return ret;
}

/*
 * Records a registration of the core's own, before which mrrc_record_start()
 * was called. @start 0: the registration is not recorded. chain NULL: the
 * registration's end is not recorded.
 */
uint64_t mrrc_record_start(const struct mrrc_reg *reg);
void mrrc_record_own(const struct mrrc_reg *reg, uint64_t start,
		     const struct fi_mr_attr *attr, int ret, uint64_t *chain);

/* Records the end of a hold; *chain becomes 0. Any lock may be held. */
void mrrc_record_end(uint64_t *chain);

/*
 * Between mrrc_record_end_begin() and mrrc_record_end_done(), all ends of this
 * thread have the same time.
 */
void mrrc_record_end_begin(void);
void mrrc_record_end_done(void);

/* Used in calls that register memory: notes the caller. */
#define MRRC_RECORD_REG(reg)                                                 \
	({                                                                   \
		if ((reg)->traced)                                           \
			mrrc_record_by(MRRC_TRACE_REG, MRRC_TRACE_NOBODY, 0, \
				       __builtin_return_address(0));         \
	})

#endif /* MRRC_RECORD_H */
