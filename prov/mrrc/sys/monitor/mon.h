/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory monitors: they tell the caches that a mapping changed. One table of
 * calls per kind (mon_*.c), one instance per kind and process, shared by all
 * caches and counted. A cache subscribes, watches ranges before they are
 * pinned, and asks before every hit whether memory is quiet.
 *
 * How a lookup is made safe. The kernel queues an unmap event after the mapping
 * is gone, so another thread may own the address before the event has been
 * read. Hence:
 *
 *   seq = mrrc_mon_seq(mon)        odd: events are being handled
 *   mrrc_mon_check(mon) == 0       no unmap is under way anywhere
 *   mrrc_mon_seq(mon) == seq       no event was read in between
 *
 *   what was unmapped before the check is forgotten everywhere
 *
 * mrrc_mon_quiet() makes these steps. A caller that holds a cache's lock, or
 * compares seq again once it has the lock, can trust the index for as long as
 * it holds the lock. If no other thread can unmap, comparing seq is enough.
 *
 * Events are read with seq odd, and handled under the monitor's lock before it
 * becomes even again, by a thread of the monitor's or by any thread that finds
 * memory busy (mrrc_mon_drain). The unmapping thread sleeps until its event is
 * read: a thread that holds the MONITOR or a CACHE lock must not malloc, free,
 * map or unmap. A signal handler in a thread that holds such a lock may unmap
 * nevertheless, as the thread that reads events takes neither lock.
 *
 * Hooks (sys/hooks/libc_hooks.h) announce libc's unmaps before the system call:
 * the range is invalidated and unwatched, and the kernel has nothing to report.
 * An announcement waits for no lock, since its holder may be a thread that a
 * signal has stopped until the call is over: if the lock is taken, the
 * announcement becomes an event. An unmap that was announced and has not
 * happened yet needs no record: a pending insertion is stale, and one that
 * begins after it watches the range again, so that the kernel reports the
 * unmap.
 *
 * A monitor that failed, or cannot watch at all, leaves seq odd permanently: no
 * hit, nothing cached, mrrc_mon_reason() says why. After fork the child's
 * instance has failed; monitors that the child opens are new.
 */
#ifndef MRRC_MON_H
#define MRRC_MON_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <bsd/sys/queue.h>

#include "sys/monitor/huge.h"
#include "sys/monitor/idle.h"
#include "sys/hooks/libc_hooks.h"
#include "sys/base/lock.h"
#include "sys/base/ours.h"
#include "sys/base/threads.h"

/*
 * ThreadSanitizer does not know fences, and runs on processors that order loads
 * anyway.
 */
#ifdef __SANITIZE_THREAD__
#define mrrc_fence(order) __asm__ volatile("" ::: "memory")
#else
#define mrrc_fence(order) atomic_thread_fence(memory_order_##order)
#endif

#define MRRC_MON_AUTO	"auto"
#define MRRC_MON_REASON 256 /* bytes of a reason */

enum mrrc_mon_event {
	MRRC_MON_UNMAP,	 /* mapping gone, nothing is watched there */
	MRRC_MON_REMOVE, /* pages dropped, the mapping stays watched */
};

/* [start, end), empty where both are equal. */
struct mrrc_range {
	uintptr_t start;
	uintptr_t end;
};

/*
 * Embedded in the subscriber. MONITOR lock and @lock held in all calls, so that
 * no call may malloc, free, map or unmap.
 */
struct mrrc_mon_sub {
	/* A CACHE lock, which guards the data that the calls use. Constant. */
	struct mrrc_lock *lock;
	/*
	 * Forget the range. Returns the hull of the regions that shared a byte
	 * with the range, which need no watching any more.
	 */
	struct mrrc_range (*notify)(struct mrrc_mon_sub *sub, uintptr_t start,
				    uintptr_t end);
	/* The lowest range that ends after @pos and must stay watched. */
	struct mrrc_range (*cover)(struct mrrc_mon_sub *sub, uintptr_t pos);
	/*
	 * Number of ranges that must stay watched, read without @lock; or NULL.
	 * Constant.
	 */
	const _Atomic size_t *ranges;
	TAILQ_ENTRY(mrrc_mon_sub) link; /* MONITOR lock */
};

struct mrrc_mon;

/* When lookups have to ask the kernel (ops->check) for pending events. */
enum mrrc_mon_ask {
	MRRC_ASK_ALWAYS,
	MRRC_ASK_OTHERS, /* if another thread could have unmapped */
	MRRC_ASK_NEVER,	 /* only the application tells */
};

#define MRRC_MON_SEEN 1

/*
 * All calls are set, except that begin, settle and post may be NULL, and
 * without huge pages also widen and one_mapping.
 */
struct mrrc_mon_ops {
	/* Watching is slow: ranges no longer needed stay watched for later. */
	bool lazy;
	/*
	 * Hooks may announce changes that this monitor would see
	 * (mrrc_mon_hook).
	 */
	bool hookable;
	/* Watches nothing: the application reports its own unmaps. */
	bool manual;
	const char *name;
	/*
	 * OTHERS: an unmapping thread continues only when seq is odd, or when
	 * its event was handled.
	 */
	enum mrrc_mon_ask ask;
	/* Sets mon->impl; on failure mon->reason may say why. */
	int (*open)(struct mrrc_mon *mon);
	/* Prepares for the first watch; NULL: nothing to do. No lock held. */
	int (*begin)(struct mrrc_mon *mon);
	/* Called when no thread uses the monitor any more. */
	void (*close)(struct mrrc_mon *mon);
	/*
	 * Watches a range. MONITOR lock held, except in an announcement that
	 * cannot take it (mon_libc.c). Returns 0, or MRRC_MON_SEEN if sees()
	 * need not examine the range.
	 */
	int (*watch)(struct mrrc_mon *mon, uintptr_t start, size_t len);
	/*
	 * Watches [@lo, @hi) around the range at @start before that range
	 * itself is watched. On an error nothing more is watched.
	 */
	int (*widen)(struct mrrc_mon *mon, uintptr_t start, uintptr_t lo,
		     uintptr_t hi);
	/*
	 * Is the watched range at @start a part of one mapping of private
	 * memory?
	 */
	bool (*one_mapping)(struct mrrc_mon *mon, uintptr_t start, size_t len);
	void (*unwatch)(struct mrrc_mon *mon, uintptr_t start, size_t len);
	/*
	 * Reads events, and calls mrrc_mon_event for each. MONITOR lock held,
	 * seq odd. An error is the end of the monitor, with mon->reason set.
	 */
	int (*drain)(struct mrrc_mon *mon);
	/*
	 * For kinds whose events are read at any time, else NULL: adds one to
	 * seq, unless an event waits to be handled. MONITOR lock held, seq odd.
	 */
	bool (*settle)(struct mrrc_mon *mon);
	/*
	 * For hookable kinds: adds an event for the next drain, and makes seq
	 * odd until then. Under any lock, all signals blocked.
	 */
	void (*post)(struct mrrc_mon *mon, uintptr_t start, uintptr_t end,
		     enum mrrc_mon_event event);
	/*
	 * Is memory quiet? Returns 0: yes; -EAGAIN: no; else the monitor cannot
	 * be trusted. No lock.
	 */
	int (*check)(struct mrrc_mon *mon);
	/* Would every change of this watched range be reported? No lock. */
	bool (*sees)(struct mrrc_mon *mon, uintptr_t start, size_t len);
	/*
	 * Releases the threads that wait for an event, when the monitor failed
	 * or in a forked child. Other threads may be in check.
	 */
	void (*stop)(struct mrrc_mon *mon);
};

/*
 * The number of ranges that may be watched. The mappings of a process are
 * limited, and each range can split one mapping in three, unless its neighbours
 * are also watched. Watching may use at most half of the mappings, and no more
 * than the application leaves free of 95 % of them, but always 5 %; if the
 * application's calls of mmap(2) are not hooked, watching may use 5 % alone.
 */
struct mrrc_mon_room {
	size_t mappings; /* limit of a process; 0: no limit */
	size_t most;	 /* ranges allowed, by the last count */
	/* ranges that may be watched before the mappings are counted again */
	size_t look;
};

struct mrrc_mon {
	const struct mrrc_mon_ops *ops;
	void *impl; /* the kind's own state */
	/*
	 * odd: lookups have to wait; becomes even only under the MONITOR lock
	 */
	_Atomic uint64_t seq;
	_Atomic enum mrrc_mon_ask ask; /* ops->ask, or MRRC_ASK_ALWAYS */
	atomic_bool trusting;	       /* asks nothing while trusted */
	/* mrrc_mon_told() is also true if libc knows of no other thread */
	atomic_bool lone;
	atomic_bool begun;	      /* something was to be watched */
	atomic_bool failed;	      /* permanently; set after reason */
	mrrc_ours *ours;	      /* cleared in a child, which has a copy */
	char reason[MRRC_MON_REASON]; /* why it failed or cannot watch */
	struct mrrc_lock lock;	      /* MONITOR: subs, events, watches */
	TAILQ_HEAD(, mrrc_mon_sub) subs;
	bool entered;	       /* MONITOR lock: all subscribers' locks held */
	struct mrrc_idle idle; /* MONITOR lock; used by lazy kinds */
	/* MONITOR lock; size: constant, at most MRRC_LIBC_HOOKS_CHUNK */
	struct mrrc_huge huge;
	struct mrrc_mon_room room; /* MONITOR lock */
	bool shared;		   /* REGISTRY lock: opened by name */
	bool hooked;		   /* REGISTRY lock */
	unsigned hook_users;	   /* REGISTRY lock */
	/* REGISTRY lock: the calls that are left to the kernel */
	char unhooked[MRRC_LIBC_HOOKS_WHY];
	bool listed;		    /* REGISTRY lock */
	unsigned refs;		    /* REGISTRY lock */
	TAILQ_ENTRY(mrrc_mon) link; /* REGISTRY lock */
};

extern const struct mrrc_mon_ops mrrc_mon_uffd_ops;
extern const struct mrrc_mon_ops mrrc_mon_none_ops;
extern const struct mrrc_mon_ops mrrc_mon_manual_ops;

/* mon_registry.c: the monitors of this process */

/*
 * @name: a kind, or NULL or "auto" for the best that works here; "auto" always
 * succeeds unless memory is short, with "none" and a reason as the last
 * resort. -ENOENT for an unknown name; a kind that cannot work here returns its
 * error, with the reason as text in @why (NULL, or MRRC_MON_REASON bytes).
 */
int mrrc_mon_open(const char *name, char *why, struct mrrc_mon **mon);
void mrrc_mon_close(struct mrrc_mon *mon);

/* Opens a separate instance, outside the registry, for tests. */
int mrrc_mon_open_ops(const struct mrrc_mon_ops *ops, char *why,
		      struct mrrc_mon **mon);

/*
 * Has libc's unmaps announced to this monitor, which makes them cheaper, until
 * each user that succeeded has called mrrc_mon_unhook(), or the monitor is
 * closed. @why (NULL, or MRRC_LIBC_HOOKS_WHY bytes): the reason of a failure,
 * or the calls that are left to the kernel.
 */
int mrrc_mon_hook(struct mrrc_mon *mon, char *why);

/*
 * Ends one user's mrrc_mon_hook(). Other users may still use the monitor, to
 * which the kernel reports changes.
 */
void mrrc_mon_unhook(struct mrrc_mon *mon);

/*
 * When lookups ask the kernel whether memory is quiet. AUTO: whenever another
 * thread could have unmapped, unless every unmap is announced and no code
 * evades the hooks. ALWAYS. HOOKED: never as long as hooks announce every
 * unmap, for processes that unmap through libc alone. PROVEN: as AUTO, but code
 * is examined now, not only after many lookups have asked. Applies to all users
 * of the monitor; the last call decides. To be called before the first lookup,
 * after mrrc_mon_hook(). Returns false if hooks that @probe needs are missing.
 */
enum mrrc_mon_probe {
	MRRC_PROBE_AUTO,
	MRRC_PROBE_ALWAYS,
	MRRC_PROBE_HOOKED,
	MRRC_PROBE_PROVEN,
};
bool mrrc_mon_set_probe(struct mrrc_mon *mon, enum mrrc_mon_probe probe);

const char *mrrc_mon_name(const struct mrrc_mon *mon);

/* What the kind can do (struct mrrc_mon_ops). */
static inline bool mrrc_mon_hookable(const struct mrrc_mon *mon)
{
	return mon->ops->hookable;
}

static inline bool mrrc_mon_manual(const struct mrrc_mon *mon)
{
	return mon->ops->manual;
}

/* Can mrrc_mon_unchanged() be other than 0? */
static inline bool mrrc_mon_remembers(const struct mrrc_mon *mon)
{
	return mon->ops->lazy;
}

/* For logs: the name, and "+hooks" where calls are announced. */
const char *mrrc_mon_title(const struct mrrc_mon *mon);

/* Why the monitor does not work; "" while it works. Constant once not empty. */
const char *mrrc_mon_reason(const struct mrrc_mon *mon);

/*
 * To be called each time a thread's lookups have asked the kernel MRRC_MON_RENT
 * times more. No lock held.
 */
#define MRRC_MON_RENT 1024
void mrrc_mon_rented(struct mrrc_mon *mon);

/* mon_room.c */

/*
 * Makes room for a watch: subscribers with many more ranges than @sub give some
 * up. Returns false if there are no such subscribers. No lock held.
 */
bool mrrc_mon_make_room(struct mrrc_mon *mon, struct mrrc_mon_sub *sub);

/* mon.c: one monitor */

/*
 * The reason why lookups ask the kernel (unless lone: in a process with
 * threads), or "". For any thread.
 */
void mrrc_mon_asks(struct mrrc_mon *mon, char why[MRRC_TRUST_WHY]);

/* Whether this instance belongs to the parent of this process. */
static inline bool mrrc_mon_forked(const struct mrrc_mon *mon)
{
	return !*mon->ours;
}

void mrrc_mon_subscribe(struct mrrc_mon *mon, struct mrrc_mon_sub *sub);
void mrrc_mon_unsubscribe(struct mrrc_mon *mon, struct mrrc_mon_sub *sub);

/*
 * Watch a page-aligned range that the subscriber's cover() already reports.
 * Returns 0, or the reason why changes in the range could go unnoticed: -EINVAL
 * or -EBUSY: the kernel refused; -EFAULT: not all of the range is mapped;
 * -ENOMEM: no room for more ranges (struct mrrc_mon_room); -ENODEV: no monitor.
 * No lock held. Unwatch the range afterwards, unless it was refused or there is
 * no monitor (mrrc_mon_watched). @token identifies the watch for
 * mrrc_mon_sees(); 0: mrrc_mon_sees() is true until a change is reported.
 */
int mrrc_mon_watch(struct mrrc_mon *mon, uintptr_t start, size_t len,
		   uint64_t *token);

/*
 * mrrc_mon_watch() for measurements. The caller alone has the memory, and does
 * not change it before mrrc_mon_unwatch() and mrrc_mon_unwatch_idle(): the
 * thread that reads events, which an unmap would wait for, may not run yet.
 */
int mrrc_mon_try_watch(struct mrrc_mon *mon, uintptr_t start, size_t len,
		       uint64_t *token);

/* From the result of mrrc_mon_watch(): does the range have to be unwatched? */
static inline bool mrrc_mon_watched(int ret)
{
	return ret != -EINVAL && ret != -EBUSY && ret != -ENODEV;
}

/*
 * Does every change of this range, watched since @token, make an event? Best
 * called when the range is pinned, because then all its pages are present and
 * can be examined.
 */
bool mrrc_mon_sees(struct mrrc_mon *mon, uintptr_t start, size_t len,
		   uint64_t token);

/*
 * The token of a range for which mrrc_mon_sees() was true, if the range was
 * watched ever since and no change was reported: all its pages are still there.
 * 0: the range may have changed; also for monitors that stop watching at once.
 * No lock held.
 */
uint64_t mrrc_mon_unchanged(struct mrrc_mon *mon, uintptr_t start, size_t len);

/*
 * Stop watching the parts of the range that no subscriber covers any more.
 * Monitors that unwatch slowly keep the last MRRC_IDLE_MAX ranges watched, and
 * their changes are reported. No lock held.
 */
void mrrc_mon_unwatch(struct mrrc_mon *mon, uintptr_t start, size_t len);

/* Unwatches the ranges that mrrc_mon_unwatch() kept watched. No lock held. */
void mrrc_mon_unwatch_idle(struct mrrc_mon *mon);

static inline uint64_t mrrc_mon_seq(struct mrrc_mon *mon)
{
	return atomic_load_explicit(&mon->seq, memory_order_acquire);
}

static inline bool mrrc_mon_works(struct mrrc_mon *mon)
{
	return !atomic_load_explicit(&mon->failed, memory_order_acquire) &&
	       !mrrc_mon_forked(mon);
}

/* Does seq, read after this call, reflect every unmap without a probe? */
static inline bool mrrc_mon_told(struct mrrc_mon *mon)
{
	const enum mrrc_mon_ask ask =
		atomic_load_explicit(&mon->ask, memory_order_relaxed);

	if (ask == MRRC_ASK_NEVER)
		return true;
	if (ask == MRRC_ASK_ALWAYS)
		return false;
	if (atomic_load_explicit(&mon->trusting, memory_order_relaxed) &&
	    mrrc_trusted())
		return true;
	return atomic_load_explicit(&mon->lone, memory_order_relaxed) &&
	       mrrc_threads_alone();
}

/* Is memory quiet, without asking the kernel? */
static inline bool mrrc_mon_is_told(struct mrrc_mon *mon)
{
	return mrrc_mon_told(mon) && !(mrrc_mon_seq(mon) & 1);
}

/* Ends the monitor, because the probe was refused. Returns -ENODEV. */
int mrrc_mon_refused(struct mrrc_mon *mon, int ret);

/*
 * Asks the kernel whether memory is quiet. Returns 0: yes; -EAGAIN: drain and
 * ask again; -ENODEV: the monitor has failed.
 */
static inline int mrrc_mon_check(struct mrrc_mon *mon)
{
	int ret = mon->ops->check(mon);

	/*
	 * The caller reads seq next: the fence keeps that read after the
	 * kernel's answer.
	 */
	mrrc_fence(acquire);
	return !ret || ret == -EAGAIN ? ret : mrrc_mon_refused(mon, ret);
}

/*
 * As mrrc_mon_check(), and in addition all memory that was unmapped before the
 * call has been forgotten. *seq: the sequence number at that time. *probes,
 * which the caller alone writes, grows by one if the kernel is asked. Reads no
 * event itself.
 */
static inline __attribute__((always_inline)) int
mrrc_mon_quiet(struct mrrc_mon *mon, uint64_t *seq, _Atomic uint64_t *probes)
{
	const bool told = mrrc_mon_told(mon);
	uint64_t count;
	int ret;

	*seq = mrrc_mon_seq(mon);
	if (*seq & 1)
		return mrrc_mon_works(mon) ? -EAGAIN : -ENODEV;
	if (told)
		return 0;
	count = 1 + atomic_load_explicit(probes, memory_order_relaxed);
	atomic_store_explicit(probes, count, memory_order_relaxed);
	if (!(count % MRRC_MON_RENT))
		mrrc_mon_rented(mon);
	ret = mrrc_mon_check(mon);
	if (!ret && mrrc_mon_seq(mon) != *seq)
		ret = -EAGAIN;
	return ret;
}

/* Handle the events that are queued now. No lock held. */
void mrrc_mon_drain(struct mrrc_mon *mon);

/*
 * All caches forget the range, as if it had been unmapped: for changes that are
 * announced by other means. No lock held.
 */
void mrrc_mon_invalidate(struct mrrc_mon *mon, uintptr_t start, size_t len);

/*
 * Ends the monitor permanently: all ranges of its subscribers are invalidated.
 * No lock held.
 */
void mrrc_mon_fail(struct mrrc_mon *mon, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Passes one event to all subscribers; for drain. Returns whether any of them
 * knew the range. MONITOR lock held.
 */
bool mrrc_mon_event(struct mrrc_mon *mon, uintptr_t start, uintptr_t end,
		    enum mrrc_mon_event event);

#endif /* MRRC_MON_H */
