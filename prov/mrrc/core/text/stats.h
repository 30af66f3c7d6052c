/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The counters of a cache: one list for the enum and the names.
 *
 * Counters only grow; gauges follow the present state or its maximum. The
 * cache's lock guards them, but for those of conditional writes, which are
 * added to atomically; a snapshot is a copy made under that lock. Other
 * processes read them without the lock (sys/observe/stats_shm.h): each value is
 * read whole, but the values are not of the same moment.
 */
#ifndef MRRC_STATS_H
#define MRRC_STATS_H

#include <stdint.h>

/* X(ENUM, "name", "help") */
#define MRRC_STATS(X)                                                         \
	X(LOOKUPS, "lookups", "requests for a registered range")              \
	X(HITS, "hits", "served by an indexed region")                        \
	X(MISSES, "misses", "no indexed region covered the range")            \
	X(DUPLICATES, "duplicates",                                           \
	  "registered, but another thread had inserted it first")             \
	X(JOINED, "joined",                                                   \
	  "misses that waited for another thread's registration")             \
	X(SPLITS, "splits", "requests served by several regions")             \
	X(MERGES, "merges", "registered again together with what missed")     \
	X(INSERTIONS, "insertions", "regions put into the index")             \
	X(EVICTIONS, "evictions", "uncached for want of budget")              \
	X(OVERLAPS, "overlaps", "uncached for an overlapping insertion")      \
	X(INVALIDATIONS, "invalidations", "uncached by the monitor")          \
	X(REVOCATIONS, "revocations", "uncached: closed, and not used again") \
	X(REGISTRATIONS, "registrations", "successful registrations")         \
	X(REG_FAILURES, "registration_failures", "failed attempts")           \
	X(DEREGISTRATIONS, "deregistrations", "regions deregistered")         \
	X(RO_FALLBACKS, "read_only_fallbacks",                                \
	  "memory that could only be registered for reading")                 \
	X(PROBES, "probes",                                                   \
	  "times that the kernel was asked whether memory is quiet")          \
	X(BUSY, "monitor_busy", "lookups that found an unmap under way")      \
	X(UNCACHED_NO_MONITOR, "uncached_no_monitor",                         \
	  "used once: nothing watches memory")                                \
	X(UNCACHED_NOT_PRIVATE, "uncached_not_private",                       \
	  "used once: shared, file-backed or unknown memory")                 \
	X(UNCACHED_UNWATCHABLE, "uncached_unwatchable",                       \
	  "used once: the monitor refused the range")                         \
	X(UNCACHED_WATCH_LIMIT, "uncached_watch_limit",                       \
	  "used once: no room for another watched range")                     \
	X(UNCACHED_RACED, "uncached_raced",                                   \
	  "used once: memory changed meanwhile")                              \
	X(UNCACHED_TOO_BIG, "uncached_too_big",                               \
	  "used once: larger than the cache")                                 \
	X(UNCACHED_FULL, "uncached_full",                                     \
	  "used once: everything cached is in use")                           \
	X(BOUNCES, "bounces", "copied: cheaper, or not to be registered")     \
	X(BOUNCED_BYTES, "bounced_bytes", "of those, asked for")              \
	X(ALLOCS, "allocations",                                              \
	  "by fi_mr_alloc, as last added up from all threads")                \
	X(FREES, "frees", "of those")                                         \
	X(ALLOC_REGS, "alloc_registrations", "blocks registered for them")    \
	X(ALLOC_DEREGS, "alloc_deregistrations", "of those")                  \
	X(ALLOC_REG_FAILURES, "alloc_registration_failures",                  \
	  "failed attempts")                                                  \
	X(ALLOC_LIMITS, "alloc_limits",                                       \
	  "blocks refused by a limit, or for want of memory")                 \
	X(ALLOC_MISTAKES, "alloc_mistakes",                                   \
	  "of the application: double frees and the like")                    \
	X(ALLOC_BLOCKS, "alloc_blocks", "gauge: blocks registered now")       \
	X(ALLOC_BYTES, "alloc_bytes", "gauge: bytes in them")                 \
	X(CW_WRITES, "cw_writes", "conditional writes posted")                \
	X(CW_TAGS, "cw_tags", "tags that were announced to peers")            \
	X(CW_IMMEDIATE, "cw_immediate",                                       \
	  "conditional writes issued in the posting call")                    \
	X(CW_HELD, "cw_held", "and later: when the tag arrived")              \
	X(CW_WRITES_ENDED, "cw_writes_ended", "in whatever way")              \
	X(CW_TAGS_ENDED, "cw_tags_ended", "in whatever way")                  \
	X(CW_TRUNCATED, "cw_truncated", "writes and tags that ended so")      \
	X(CW_CANCELLED, "cw_cancelled", "writes and tags that ended so")      \
	X(CW_SENT, "cw_messages_sent", "between the provider and its like")   \
	X(CW_RECEIVED, "cw_messages_received", "of those")                    \
	X(CW_STALLS, "cw_stalls",                                             \
	  "times that messages waited for room at the peer")                  \
	X(NOTED, "noted_uses",                                                \
	  "uses of large buffers that a predicting helper was told of")       \
	X(NOTES_LOST, "noted_uses_lost", "of those, before it read them")     \
	X(PREDICTED, "predicted", "uses for which a time had been predicted") \
	X(PREDICTED_5, "predicted_within_5",                                  \
	  "of those, not more than 5 % from it")                              \
	X(EARLY, "early_deregistrations",                                     \
	  "by a predicting helper, between two uses")                         \
	X(AHEAD, "ahead_registrations",                                       \
	  "by a predicting helper, ahead of a use")                           \
	X(AHEAD_REFUSED, "ahead_refused",                                     \
	  "not registered ahead: the memory has changed, or no room")         \
	X(AHEAD_USED, "ahead_used", "uses that found it registered ahead")    \
	X(AHEAD_UNUSED, "ahead_unused",                                       \
	  "buffers registered ahead, and not used")                           \
	X(LATE, "late_uses",                                                  \
	  "uses of what a predicting helper had deregistered")                \
	X(SAVED, "saved_byte_seconds", "deregistered by it, times how long")  \
	X(AWAY_BYTES, "away_bytes", "gauge: deregistered by it now")          \
	X(BYTES, "bytes", "gauge: indexed now")                               \
	X(BYTES_PEAK, "bytes_peak", "gauge: indexed at most")                 \
	X(REGIONS, "regions", "gauge: indexed now")                           \
	X(REGIONS_PEAK, "regions_peak", "gauge: indexed at most")             \
	X(PINNED, "pinned_bytes", "gauge: registered now")                    \
	X(PINNED_PEAK, "pinned_bytes_peak", "gauge: registered at most")      \
	X(BOUNCE_MEMORY, "bounce_memory", "gauge: registered for copies")     \
	X(COST_REG_PAGE, "cost_register_page_ns",                             \
	  "gauge: the cost model's a, registering a page")                    \
	X(COST_REG, "cost_register_ns", "gauge: its b, registering")          \
	X(COST_DEREG_PAGE, "cost_deregister_page_ns",                         \
	  "gauge: its c, deregistering a page")                               \
	X(COST_DEREG, "cost_deregister_ns", "gauge: its d, deregistering")    \
	X(COST_COPY_PAGE, "cost_copy_page_ns",                                \
	  "gauge: copying a page; 0: not known")                              \
	X(NODE_BUDGET, "node_budget_bytes",                                   \
	  "gauge: of all processes of the node; 0: no limit")                 \
	X(NODE_RESERVED, "node_reserved_bytes",                               \
	  "gauge: of these, reserved by all, as last seen")                   \
	X(NODE_OWN, "node_own_bytes", "gauge: reserved by this process")      \
	X(NODE_WANT, "node_want_bytes", "gauge: that it lacks")               \
	X(NODE_GIVEN, "node_given_bytes", "given back for others")            \
	X(NODE_TAKEN, "node_taken_bytes", "added to its reservation")

enum mrrc_stat {
#define X(id, name, help) MRRC_STAT_##id,
	MRRC_STATS(X)
#undef X
		MRRC_STAT_CNT
};

struct mrrc_stats {
	uint64_t value[MRRC_STAT_CNT];
};

/* Adds atomically, under any lock. NULL: not counted. */
static inline void mrrc_stats_add(struct mrrc_stats *stats, enum mrrc_stat stat,
				  uint64_t count)
{
	if (stats)
		__atomic_fetch_add(&stats->value[stat], count,
				   __ATOMIC_RELAXED);
}

void mrrc_stats_copy(struct mrrc_stats *to, const struct mrrc_stats *from);

const char *mrrc_stat_name(enum mrrc_stat stat);
const char *mrrc_stat_help(enum mrrc_stat stat);

#endif /* MRRC_STATS_H */
