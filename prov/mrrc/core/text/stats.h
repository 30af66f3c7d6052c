/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The counters of a domain: one list for the enum, the names, the fields of
 * struct fi_mrrc_stats, and everything that is shown of the counters.
 *
 * Counters only grow; gauges follow the present state or its maximum. The
 * cache's lock guards the counters, except the counters of conditional writes,
 * which are atomic; a snapshot is a copy made under that lock. Other processes
 * read the counters without the lock (sys/observe/stats_shm.h): each value is
 * consistent, but the values belong to slightly different times.
 */
#ifndef MRRC_STATS_H
#define MRRC_STATS_H

#include <stdint.h>

/*
 * X(ENUM, name, FIELD or OTHER, COUNTER or GAUGE, "unit", scope, "help"): FIELD
 * makes the counter a field of struct fi_mrrc_stats, of the same name. The unit
 * is empty where the help says what is counted.
 */
#define MRRC_STATS(X)                                                          \
	X(LOOKUPS, lookups, FIELD, COUNTER, "", DOMAIN,                        \
	  "buffers resolved without a descriptor")                             \
	X(HITS, hits, FIELD, COUNTER, "", DOMAIN,                              \
	  "lookups that found the buffer registered")                          \
	X(MISSES, misses, FIELD, COUNTER, "", DOMAIN,                          \
	  "lookups that did not find the buffer registered")                   \
	X(REGISTRATIONS, registrations, FIELD, COUNTER, "", DOMAIN,            \
	  "registrations by the core provider")                                \
	X(DEREGISTRATIONS, deregistrations, FIELD, COUNTER, "", DOMAIN,        \
	  "ended registrations")                                               \
	X(REG_FAILURES, registration_failures, FIELD, COUNTER, "", DOMAIN,     \
	  "failed registrations, including those repeated with success")       \
	X(EVICTIONS, evictions, FIELD, COUNTER, "", DOMAIN,                    \
	  "regions given up to make room for others")                          \
	X(INVALIDATIONS, invalidations, FIELD, COUNTER, "", DOMAIN,            \
	  "regions dropped because their memory was unmapped or changed")      \
	X(BOUNCES, bounces, FIELD, COUNTER, "", DOMAIN,                        \
	  "buffers copied, instead of registered")                             \
	X(REGIONS, regions, FIELD, GAUGE, "", DOMAIN,                          \
	  "regions kept registered")                                           \
	X(BYTES, bytes, FIELD, GAUGE, "bytes", DOMAIN,                         \
	  "bytes of regions kept registered")                                  \
	X(REGIONS_PEAK, regions_peak, FIELD, GAUGE, "", DOMAIN,                \
	  "largest value of regions")                                          \
	X(BYTES_PEAK, bytes_peak, FIELD, GAUGE, "bytes", DOMAIN,               \
	  "largest value of bytes")                                            \
	X(MAX_REGIONS, max_regions, FIELD, GAUGE, "", DOMAIN,                  \
	  "limit on regions")                                                  \
	X(MAX_BYTES, max_bytes, FIELD, GAUGE, "bytes", DOMAIN,                 \
	  "limit on bytes")                                                    \
	X(DUPLICATES, duplicates, OTHER, COUNTER, "", DOMAIN,                  \
	  "registered, but another thread had inserted it first")              \
	X(JOINED, joined, OTHER, COUNTER, "", DOMAIN,                          \
	  "misses that waited for another thread's registration")              \
	X(SPLITS, splits, OTHER, COUNTER, "", DOMAIN,                          \
	  "lookups served by several regions")                                 \
	X(MERGES, merges, OTHER, COUNTER, "", DOMAIN,                          \
	  "buffers registered with memory that was registered before")         \
	X(INSERTIONS, insertions, OTHER, COUNTER, "", DOMAIN,                  \
	  "regions put into the index")                                        \
	X(OVERLAPS, overlaps, OTHER, COUNTER, "", DOMAIN,                      \
	  "regions dropped for an overlapping insertion")                      \
	X(REVOCATIONS, revocations, OTHER, COUNTER, "", DOMAIN,                \
	  "closed regions that were not used again")                           \
	X(RO_FALLBACKS, read_only_fallbacks, OTHER, COUNTER, "", DOMAIN,       \
	  "memory that could only be registered for reading")                  \
	X(PROBES, probes, OTHER, COUNTER, "", DOMAIN,                          \
	  "lookups that asked the kernel if an unmap was in progress")         \
	X(BUSY, monitor_busy, OTHER, COUNTER, "", DOMAIN,                      \
	  "lookups that found an unmap under way")                             \
	X(UNCACHED_NO_MONITOR, uncached_no_monitor, OTHER, COUNTER, "",        \
	  DOMAIN, "used once: nothing watches memory")                         \
	X(UNCACHED_NOT_PRIVATE, uncached_not_private, OTHER, COUNTER, "",      \
	  DOMAIN, "used once: shared, file-backed or unknown memory")          \
	X(UNCACHED_UNWATCHABLE, uncached_unwatchable, OTHER, COUNTER, "",      \
	  DOMAIN, "used once: the monitor refused the range")                  \
	X(UNCACHED_WATCH_LIMIT, uncached_watch_limit, OTHER, COUNTER, "",      \
	  DOMAIN, "used once: no room for another watched range")              \
	X(UNCACHED_RACED, uncached_raced, OTHER, COUNTER, "", DOMAIN,          \
	  "used once: memory changed meanwhile")                               \
	X(UNCACHED_TOO_BIG, uncached_too_big, OTHER, COUNTER, "", DOMAIN,      \
	  "used once: larger than the cache")                                  \
	X(UNCACHED_FULL, uncached_full, OTHER, COUNTER, "", DOMAIN,            \
	  "used once: everything cached is in use")                            \
	X(BOUNCED_BYTES, bounced_bytes, OTHER, COUNTER, "bytes", DOMAIN,       \
	  "bytes of copied buffers")                                           \
	X(ALLOCS, allocations, OTHER, COUNTER, "", DOMAIN,                     \
	  "allocations by fi_mr_alloc, as last added up from all threads")     \
	X(FREES, frees, OTHER, COUNTER, "", DOMAIN,                            \
	  "freed allocations, as last added up from all threads")              \
	X(ALLOC_REGS, alloc_registrations, OTHER, COUNTER, "", DOMAIN,         \
	  "blocks registered for allocations")                                 \
	X(ALLOC_DEREGS, alloc_deregistrations, OTHER, COUNTER, "", DOMAIN,     \
	  "blocks for allocations deregistered")                               \
	X(ALLOC_REG_FAILURES, alloc_registration_failures, OTHER, COUNTER, "", \
	  DOMAIN, "failed registrations of blocks")                            \
	X(ALLOC_LIMITS, alloc_limits, OTHER, COUNTER, "", DOMAIN,              \
	  "blocks refused by a limit, or for want of memory")                  \
	X(ALLOC_MISTAKES, alloc_mistakes, OTHER, COUNTER, "", DOMAIN,          \
	  "double frees and other mistakes of the application")                \
	X(ALLOC_BLOCKS, alloc_blocks, OTHER, GAUGE, "", DOMAIN,                \
	  "blocks registered for allocations now")                             \
	X(ALLOC_BYTES, alloc_bytes, OTHER, GAUGE, "bytes", DOMAIN,             \
	  "bytes in these blocks")                                             \
	X(CW_WRITES, cw_writes, OTHER, COUNTER, "", DOMAIN,                    \
	  "conditional writes posted")                                         \
	X(CW_TAGS, cw_tags, OTHER, COUNTER, "", DOMAIN,                        \
	  "tags announced to peers")                                           \
	X(CW_IMMEDIATE, cw_immediate, OTHER, COUNTER, "", DOMAIN,              \
	  "conditional writes issued in the posting call")                     \
	X(CW_HELD, cw_held, OTHER, COUNTER, "", DOMAIN,                        \
	  "conditional writes issued when the tag arrived")                    \
	X(CW_WRITES_ENDED, cw_writes_ended, OTHER, COUNTER, "", DOMAIN,        \
	  "conditional writes ended, in whatever way")                         \
	X(CW_TAGS_ENDED, cw_tags_ended, OTHER, COUNTER, "", DOMAIN,            \
	  "tags ended, in whatever way")                                       \
	X(CW_TRUNCATED, cw_truncated, OTHER, COUNTER, "", DOMAIN,              \
	  "conditional writes and tags ended by truncation")                   \
	X(CW_CANCELLED, cw_cancelled, OTHER, COUNTER, "", DOMAIN,              \
	  "conditional writes and tags ended by cancelling")                   \
	X(CW_SENT, cw_messages_sent, OTHER, COUNTER, "", DOMAIN,               \
	  "messages sent to peers' providers")                                 \
	X(CW_RECEIVED, cw_messages_received, OTHER, COUNTER, "", DOMAIN,       \
	  "messages received from peers' providers")                           \
	X(CW_STALLS, cw_stalls, OTHER, COUNTER, "", DOMAIN,                    \
	  "times that messages waited for room at the peer")                   \
	X(NOTED, noted_uses, OTHER, COUNTER, "", DOMAIN,                       \
	  "uses of buffers above 16 KiB recorded for a predicting helper")     \
	X(NOTES_LOST, noted_uses_lost, OTHER, COUNTER, "", DOMAIN,             \
	  "recorded uses overwritten before the helper read them")             \
	X(PREDICTED, predicted, OTHER, COUNTER, "", DOMAIN,                    \
	  "uses with a predicted time")                                        \
	X(PREDICTED_5, predicted_within_5, OTHER, COUNTER, "", DOMAIN,         \
	  "uses predicted within 5 % of the gap")                              \
	X(EARLY, early_deregistrations, OTHER, COUNTER, "", DOMAIN,            \
	  "regions the helper deregistered between two uses")                  \
	X(AHEAD, ahead_registrations, OTHER, COUNTER, "", DOMAIN,              \
	  "regions the helper registered ahead of a use")                      \
	X(AHEAD_REFUSED, ahead_refused, OTHER, COUNTER, "", DOMAIN,            \
	  "regions not registered ahead: memory changed, no room, or failed")  \
	X(AHEAD_USED, ahead_used, OTHER, COUNTER, "", DOMAIN,                  \
	  "uses that found their buffer registered ahead")                     \
	X(AHEAD_UNUSED, ahead_unused, OTHER, COUNTER, "", DOMAIN,              \
	  "buffers registered ahead and deregistered without a use")           \
	X(LATE, late_uses, OTHER, COUNTER, "", DOMAIN,                         \
	  "uses that found their buffer deregistered by the helper")           \
	X(SAVED, saved_byte_seconds, OTHER, COUNTER, "byte seconds", DOMAIN,   \
	  "bytes that the helper had deregistered, times their duration")      \
	X(AWAY_BYTES, away_bytes, OTHER, GAUGE, "bytes", DOMAIN,               \
	  "bytes that the helper has deregistered now")                        \
	X(PINNED, pinned_bytes, OTHER, GAUGE, "bytes", DOMAIN,                 \
	  "bytes registered now")                                              \
	X(PINNED_PEAK, pinned_bytes_peak, OTHER, GAUGE, "bytes", DOMAIN,       \
	  "largest value of pinned_bytes")                                     \
	X(BOUNCE_MEMORY, bounce_memory, OTHER, GAUGE, "bytes", DOMAIN,         \
	  "bytes registered for copies")                                       \
	X(COST_REG_PAGE, cost_register_page_ns, OTHER, GAUGE, "nanoseconds",   \
	  DOMAIN, "cost model: registering, each page")                        \
	X(COST_REG, cost_register_ns, OTHER, GAUGE, "nanoseconds", DOMAIN,     \
	  "cost model: registering, each call")                                \
	X(COST_DEREG_PAGE, cost_deregister_page_ns, OTHER, GAUGE,              \
	  "nanoseconds", DOMAIN, "cost model: deregistering, each page")       \
	X(COST_DEREG, cost_deregister_ns, OTHER, GAUGE, "nanoseconds", DOMAIN, \
	  "cost model: deregistering, each call")                              \
	X(COST_COPY_PAGE, cost_copy_page_ns, OTHER, GAUGE, "nanoseconds",      \
	  DOMAIN,                                                              \
	  "cost model: copying a page; 0: not known, nothing is copied")       \
	X(NODE_BUDGET, node_budget_bytes, OTHER, GAUGE, "bytes", NODE,         \
	  "budget of the node's processes of this user; 0: no limit")          \
	X(NODE_RESERVED, node_reserved_bytes, OTHER, GAUGE, "bytes", NODE,     \
	  "bytes that they have reserved, as last seen")                       \
	X(NODE_OWN, node_own_bytes, OTHER, GAUGE, "bytes", PROCESS,            \
	  "bytes of the budget reserved by this process")                      \
	X(NODE_WANT, node_want_bytes, OTHER, GAUGE, "bytes", PROCESS,          \
	  "bytes that this process lacks")                                     \
	X(NODE_GIVEN, node_given_bytes, OTHER, COUNTER, "bytes", PROCESS,      \
	  "bytes given back for other processes")                              \
	X(NODE_TAKEN, node_taken_bytes, OTHER, COUNTER, "bytes", PROCESS,      \
	  "bytes added to the reservation")                                    \
	X(UNCACHED, uncached, FIELD, COUNTER, "", DOMAIN,                      \
	  "buffers registered for one operation only")                         \
	X(POSTS, posts, FIELD, COUNTER, "", DOMAIN,                            \
	  "operations posted with a buffer that the provider resolved")        \
	X(COMPLETIONS, completions, FIELD, COUNTER, "", DOMAIN,                \
	  "posts that completed, failed, were cancelled or flushed")           \
	X(HELD, held_regions, FIELD, GAUGE, "", DOMAIN,                        \
	  "regions in use by operations")                                      \
	X(CLAIMED, claimed_lengths, OTHER, COUNTER, "", DOMAIN,                \
	  "receives of messages that claimed to be longer than the buffers")   \
	X(HOOKS, hooks, OTHER, GAUGE, "", PROCESS,                             \
	  "functions of libc that are hooked now")                             \
	X(HOOKS_LOST, hooks_lost, OTHER, GAUGE, "", PROCESS,                   \
	  "functions whose hook another library overwrote")                    \
	X(ANNOUNCED, announced, OTHER, COUNTER, "", PROCESS,                   \
	  "calls that took memory away, announced by hooks")

enum mrrc_stat {
#define X(id, ...) MRRC_STAT_##id,
	MRRC_STATS(X)
#undef X
		MRRC_STAT_CNT,
	/*
	 * counters from UNCACHED on are computed on request, and not shared
	 * with other processes
	 */
	MRRC_STAT_SHARED = MRRC_STAT_UNCACHED
};

enum mrrc_stat_kind { MRRC_STAT_KIND_COUNTER, MRRC_STAT_KIND_GAUGE };

enum mrrc_stat_scope {
	MRRC_STAT_SCOPE_DOMAIN,
	MRRC_STAT_SCOPE_PROCESS,
	MRRC_STAT_SCOPE_NODE
};

struct mrrc_stat_text {
	const char *name;
	const char *help;
	const char *unit;
	enum mrrc_stat_kind kind;
	enum mrrc_stat_scope scope;
};

struct mrrc_stats {
	uint64_t value[MRRC_STAT_CNT];
};

/* Adds atomically, under any lock. If @stats is NULL, counts nothing. */
static inline void mrrc_stats_add(struct mrrc_stats *stats, enum mrrc_stat stat,
				  uint64_t count)
{
	if (stats)
		__atomic_fetch_add(&stats->value[stat], count,
				   __ATOMIC_RELAXED);
}

void mrrc_stats_copy(struct mrrc_stats *to, const struct mrrc_stats *from);

/* Indexed by enum mrrc_stat. */
extern const struct mrrc_stat_text mrrc_stat_text[MRRC_STAT_CNT];

static inline const char *mrrc_stat_name(enum mrrc_stat stat)
{
	return mrrc_stat_text[stat].name;
}

#endif /* MRRC_STATS_H */
