/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Statistics of requests: sizes, how soon the same memory is requested again,
 * and how much of the requested memory was requested before.
 */
#ifndef TRACE_SUMMARY_H
#define TRACE_SUMMARY_H

#include "trace/records.h"

#define TRACE_LOG2 65 /* buckets: 0, then [2^(i-1), 2^i) */
/* buckets: no page, four quarters without the last page, all pages */
#define TRACE_SHARES 6

struct trace_summary {
	uint64_t requests;
	uint64_t bytes;
	uint64_t ns; /* time from the first request to the last */
	uint64_t count[MRRC_TRACE_OP_CNT][MRRC_TRACE_RESULT_CNT];
	uint64_t threads, peers, sites, procs; /* numbers of different values */
	/* number of different ranges of pages */
	uint64_t buffers;
	uint64_t footprint; /* bytes of all pages, each page counted once */
	uint64_t ended;	    /* requests whose end is known */
	double held_ns;	    /* sum of the ns that requests were held */
	uint64_t priced;    /* requests that were not hits */
	double cost_ns;	    /* sum of the ns that requests cost */
	uint64_t cost_max;
	uint64_t size[TRACE_LOG2];
	/*
	 * requests by the number of other buffers requested since the last
	 * request for the same buffer; first: requests for a buffer that was
	 * not requested before
	 */
	uint64_t reuse[TRACE_LOG2];
	uint64_t first;
	/* share of each request's pages that an earlier request had */
	uint64_t overlap[TRACE_SHARES];
};

int trace_summary(const struct trace_records *records,
		  struct trace_summary *summary);

/*
 * Return the bucket of a number in the arrays size and reuse, and the number at
 * which a bucket begins.
 */
unsigned trace_log2(uint64_t number);
uint64_t trace_log2_from(unsigned bucket);

extern const char *const trace_share_names[TRACE_SHARES];

#endif /* TRACE_SUMMARY_H */
