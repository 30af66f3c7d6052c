/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A trace in memory: the requests that a registration cache would see, in order
 * of time. Readers and generators make traces, the simulator only reads traces.
 *
 * Only one thread may change a trace.
 *
 * Invariants (sim_trace_valid):
 *   T1 time never runs backwards
 *   T2 every range is within [0, SIM_ADDR_MAX) and not empty
 *   T3 procs is one more than the highest proc, at most SIM_PROCS_MAX; 0 in
 *      an empty trace
 */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/cost/cost.h"

/*
 * SIM_ADDR_MAX limits addresses, so that the end of a range can be rounded up
 * to any page size.
 */
#define SIM_ADDR_MAX  (UINT64_C(1) << 63)
#define SIM_REQ_MAX   (UINT64_C(1) << 32)
#define SIM_PROCS_MAX 65536
/* a request that was still held when the recording ended */
#define SIM_ENDLESS  UINT64_MAX
#define SIM_LINE_MAX 4096 /* bytes of a line without its LF */
#define SIM_ERR_MAX  512  /* room for any message */

/*
 * Kinds of access, with the same values as in enum mrrc_access
 * (core/index/region.h); the values without a name here give peers access, too.
 */
enum sim_access {
	SIM_RO = 0,
	SIM_RW = 1,
	SIM_ACCESS_CNT = 8,
};

struct sim_req {
	uint64_t time; /* us */
	uint64_t addr;
	uint64_t len;	     /* bytes */
	uint32_t proc : 24;  /* each process has its own addresses */
	uint32_t access : 8; /* enum mrrc_access */
	uint32_t thread;     /* thread of the process */
	uint64_t site;	     /* site of the call; 0: not known */
	uint64_t held;	     /* us of holding; 0: not known */
};

struct sim_trace {
	char *name;
	struct sim_req *req;
	size_t count;
	size_t max; /* number of requests for which req has room */
	uint32_t procs;
	bool priced; /* cost was recorded */
	struct mrrc_cost cost;
	/* Limits of each cache during the recording; 0: not known. */
	uint64_t max_bytes, max_regions;
	/*
	 * Number of processes that ran in parallel, for recordings in which
	 * processes had several domains; 0: the number in procs.
	 */
	uint32_t parallel;
};

static inline uint32_t sim_trace_parallel(const struct sim_trace *trace)
{
	return trace->parallel ? trace->parallel : trace->procs;
}

/* Adjacent pages of one process. */
struct sim_extent {
	uint64_t start, end;
	uint32_t proc;
};

/* Makes an empty trace; the name is copied. */
int sim_trace_init(struct sim_trace *trace, const char *name);
void sim_trace_fini(struct sim_trace *trace);

/*
 * Appends a request. Returns -EINVAL if the request would break T1, T2 or the
 * kinds of access, -E2BIG at T3's limit, -EFBIG at SIM_REQ_MAX, or -ENOMEM.
 */
int sim_trace_append(struct sim_trace *trace, const struct sim_req *req);

bool sim_trace_valid(const struct sim_trace *trace);

/*
 * Lists the pages that the requests touch, by process and address, neither
 * adjacent nor overlapping; the caller frees *extent. The page's size is a
 * power of two up to SIM_ADDR_MAX.
 */
int sim_trace_extents(const struct sim_trace *trace, uint64_t page,
		      struct sim_extent **extent, size_t *cnt);

/* Returns the total bytes of the extents, up to UINT64_MAX. */
int sim_trace_footprint(const struct sim_trace *trace, uint64_t page,
			uint64_t *bytes);

/*
 * Merges the requests of all traces by time (at equal times the earlier trace's
 * first), with the costs of the longest trace that has costs. Processes of
 * different traces stay different.
 */
int sim_trace_merge(const struct sim_trace *const *traces, size_t cnt,
		    const char *name, struct sim_trace *merged);

/*
 * Reads a recording of the provider (core/text/trace.h), each domain as a
 * process, or lines of comma-separated fields; plain or compressed by xz, as
 * the first bytes tell. The first line names the columns (time_us, addr and
 * len, perhaps proc, access, result, end_ns, thread and site, others are
 * ignored) or, where it begins with a digit, is already a request of
 * time_us,addr,len. Numbers are decimal or 0x...; access is r, ro, w or rw,
 * perhaps followed by +r, +w or +rw for the access of peers, and rw without
 * that column. A request whose result is core or failed is left out, as the
 * cache had no part in the request. An end before the request's time means that
 * the operation had not ended. Blank lines and lines with # are skipped.
 *
 * On failure @err, of @err_len bytes, has the reason: "FILE:LINE: cause".
 * -EINVAL: malformed; -EBADMSG: not sound xz; -EFBIG and -E2BIG: as from
 * sim_trace_append(); -ENOMEM; or the error of open or read.
 *
 * The trace's name is the file's, without its folder, .xz and .csv.
 */
int sim_trace_read(const char *path, char *err, size_t err_len,
		   struct sim_trace *trace); /* "-" is stdin */
int sim_trace_read_file(FILE *file, const char *path, char *err, size_t err_len,
			struct sim_trace *trace);

/*
 * Writes a trace as sim_trace_read() reads it; @comment, a line or NULL, goes
 * first. The file gets its name when complete; "-" is stdout.
 */
int sim_trace_write(const struct sim_trace *trace, const char *comment,
		    const char *path, char *err, size_t err_len);
int sim_trace_write_file(const struct sim_trace *trace, const char *comment,
			 FILE *file);

#endif /* SIM_TRACE_H */
