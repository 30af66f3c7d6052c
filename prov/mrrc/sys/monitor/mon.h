/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory monitors tell the caches that a mapping changed. Each kind of monitor
 * has a table of calls (mon_*.c), and one instance in a process, which all
 * caches share and whose users are counted. A cache subscribes, watches ranges
 * before they are pinned, and asks before every hit whether memory is quiet.
 *
 * A lookup is safe, although the kernel queues an unmap event only when the
 * mapping has gone, so that another thread may own the address before the event
 * has been read:
 *
 *   seq = mrrc_mon_seq(mon)        odd: events are being handled
 *   mrrc_mon_check(mon) == 0       no unmap is under way anywhere
 *   mrrc_mon_seq(mon) == seq       no event was read in between
 *
 *   then all caches have forgotten memory that was unmapped before the check
 *
 * mrrc_mon_quiet() makes these steps. A caller that holds a cache's lock, or
 * compares seq again once it has the lock, can trust the index for as long as
 * it holds the lock. If no other thread can unmap, the lookup only compares
 * seq.
 *
 * A thread of the monitor's, or any thread that finds memory busy
 * (mrrc_mon_drain), reads events while seq is odd, and handles the events under
 * the monitor's lock before seq becomes even again. An unmapping thread sleeps
 * until its event is read: so a thread that holds the MONITOR or a CACHE lock
 * must not malloc, free, map or unmap. But a signal handler that interrupts the
 * holder of such a lock may unmap, as the thread that reads events takes
 * neither lock.
 *
 * Hooks (sys/hooks/libc_hooks.h) announce libc's unmaps before the system call:
 * the range is invalidated and unwatched, and the kernel has nothing to report.
 * An announcement waits for no lock, since a signal may have stopped the lock's
 * holder until the call is over: if the lock is taken, the announcement becomes
 * an event. An unmap that was announced and has not happened yet needs no
 * record: a pending insertion is stale, and an insertion that begins after the
 * announcement watches the range again, so that the kernel reports the unmap.
 *
 * A monitor that failed, or cannot watch at all, leaves seq odd permanently:
 * lookups get no hits, nothing is cached, and mrrc_mon_reason() says why. In a
 * forked child the parent's monitors have failed; monitors that the child opens
 * are new.
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
 * ThreadSanitizer does not know fences; builds with it run only on processors
 * that order loads.
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
 * Embedded in each subscriber. MONITOR lock and @lock are held in all calls,
 * which must not malloc, free, map or unmap.
 */
struct mrrc_mon_sub {
	/* A CACHE lock, which guards the data that the calls use. Constant. */
	struct mrrc_lock *lock;
	/*
	 * Forgets the range. Returns the hull of the regions that shared a byte
	 * with the range: these regions need no watching any more.
	 */
	struct mrrc_range (*notify)(struct mrrc_mon_sub *sub, uintptr_t start,
				    uintptr_t end);
	/* The lowest range that ends after @pos and must stay watched. */
	struct mrrc_range (*cover)(struct mrrc_mon_sub *sub, uintptr_t pos);
	/*
	 * Number of ranges that must stay watched, which is read without @lock.
	 * The pointer is constant; NULL: not counted.
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
	 * Can hooks announce the changes that this kind of monitor reports
	 * (mrrc_mon_hook)?
	 */
	bool hookable;
	/* Watches nothing: the application reports its own unmaps. */
	bool manual;
	const char *name;
	/*
	 * In a kind with MRRC_ASK_OTHERS an unmapping thread continues only
	 * when seq is odd, or when its event was handled.
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
	 * found the lock taken (mon_libc.c). Returns 0, or MRRC_MON_SEEN if
	 * sees() need not examine the range; or -E*.
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
	 * seq odd. An error, with mon->reason set, ends the monitor.
	 */
	int (*drain)(struct mrrc_mon *mon);
	/*
	 * Adds one to seq, unless an event waits to be handled. MONITOR lock
	 * held, seq odd. NULL for kinds that read events only in drain().
	 */
	bool (*settle)(struct mrrc_mon *mon);
	/*
	 * In hookable kinds: adds an event for the next drain(), and makes seq
	 * odd until then. Any lock may be held; all signals are blocked.
	 */
	void (*post)(struct mrrc_mon *mon, uintptr_t start, uintptr_t end,
		     enum mrrc_mon_event event);
	/*
	 * Is memory quiet? Returns 0: yes; -EAGAIN: no; other errors: the
	 * monitor cannot be trusted. No lock.
	 */
	int (*check)(struct mrrc_mon *mon);
	/* Would every change of this watched range be reported? No lock. */
	bool (*sees)(struct mrrc_mon *mon, uintptr_t start, size_t len);
	/*
	 * Called when the monitor failed, or in a forked child: releases the
	 * threads that wait for an event to be read. Other threads may be in
	 * check().
	 */
	void (*stop)(struct mrrc_mon *mon);
};

/*
 * The number of ranges that may be watched. The mappings of a process are
 * limited, and each range can split one mapping in three, unless its neighbours
 * are also watched. Watching may use half of the mappings at most, and only
 * mappings that the application leaves free of 95 % of the limit, but always 5
 * % of the limit; if the application's calls of mmap(2) are not hooked, only
 * these 5 %.
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
 * Opens a monitor. @name: a kind, or NULL or "auto" for the best kind that
 * works here; "auto" always succeeds unless memory is short, with "none" and a
 * reason as the last resort. -ENOENT: unknown name. A kind that cannot work
 * here returns its error, and the reason as text in @why (NULL, or
 * MRRC_MON_REASON bytes).
 */
int mrrc_mon_open(const char *name, char *why, struct mrrc_mon **mon);
void mrrc_mon_close(struct mrrc_mon *mon);

/* Opens a separate instance, outside the registry, for tests. */
int mrrc_mon_open_ops(const struct mrrc_mon_ops *ops, char *why,
		      struct mrrc_mon **mon);

/*
 * Has libc's unmaps announced to this monitor, which makes unmaps cheaper,
 * until each user whose call succeeded has called mrrc_mon_unhook(), or the
 * monitor is closed. @why (NULL, or MRRC_LIBC_HOOKS_WHY bytes): the reason of a
 * failure, or the calls that are left to the kernel.
 */
int mrrc_mon_hook(struct mrrc_mon *mon, char *why);

/*
 * Ends one user's mrrc_mon_hook(). The monitor still works without hooks, by
 * the kernel's reports of changes.
 */
void mrrc_mon_unhook(struct mrrc_mon *mon);

/*
 * When lookups ask the kernel whether memory is quiet. AUTO: whenever another
 * thread could have unmapped, unless every unmap is announced and no code
 * evades the hooks. ALWAYS. HOOKED: never, as long as all hooks are in place;
 * for processes that unmap through libc alone. PROVEN: as AUTO, but code is
 * examined now, not only after many lookups have asked. Applies to all users of
 * the monitor; the last call decides. To be called before the first lookup,
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
 * To be called after every MRRC_MON_RENT times that a thread's lookups have
 * asked the kernel. No lock held.
 */
#define MRRC_MON_RENT 1024
void mrrc_mon_rented(struct mrrc_mon *mon);

/* mon_room.c */

/*
 * Makes room for a watch: the subscriber with the most ranges gives up some of
 * its ranges. Returns false if no subscriber has many more ranges than @sub. No
 * lock held.
 */
bool mrrc_mon_make_room(struct mrrc_mon *mon, struct mrrc_mon_sub *sub);

/* mon.c: one monitor */

/*
 * The reason why lookups ask the kernel (if @lone is set, in a process with
 * threads only), or "". For any thread.
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
 * Watches a page-aligned range that the subscriber's cover() already reports.
 * Returns 0, or the reason why changes in the range could go unnoticed:
 * -EINVAL, -EBUSY or -EPERM: the kernel refused; -EFAULT: not all of the range
 * is mapped; -ENOSPC: no room for more ranges (struct mrrc_mon_room); -ENOMEM:
 * the kernel has no room, after it has perhaps begun; -ENODEV: no monitor. No
 * lock held. The caller has to unwatch the range later, unless nothing of it
 * can be watched (mrrc_mon_watched). @token identifies the watch for
 * mrrc_mon_sees(); 0: mrrc_mon_sees() is true until a change is reported.
 */
int mrrc_mon_watch(struct mrrc_mon *mon, uintptr_t start, size_t len,
		   uint64_t *token);

/*
 * mrrc_mon_watch() for measurements. The caller alone uses the memory, and does
 * not unmap it before mrrc_mon_unwatch() and mrrc_mon_unwatch_idle(): an unmap
 * would wait for the thread that reads events, which may not run yet.
 */
int mrrc_mon_try_watch(struct mrrc_mon *mon, uintptr_t start, size_t len,
		       uint64_t *token);

/* From the result of mrrc_mon_watch(): does the range have to be unwatched? */
static inline bool mrrc_mon_watched(int ret)
{
	return ret != -EINVAL && ret != -EBUSY && ret != -EPERM &&
	       ret != -ENOSPC && ret != -ENODEV;
}

/* From the result of mrrc_mon_watch(): is there no room for the range? */
static inline bool mrrc_mon_no_room(int ret)
{
	return ret == -ENOSPC || ret == -ENOMEM;
}

/*
 * Does every change of this range, which has been watched since @token, make an
 * event? Best called when the range is pinned: then all its pages are present
 * and can be examined.
 */
bool mrrc_mon_sees(struct mrrc_mon *mon, uintptr_t start, size_t len,
		   uint64_t token);

/*
 * The token of a range for which mrrc_mon_sees() was true, if the range was
 * watched ever since and no change was reported: then all its pages are still
 * present. 0: the range may have changed, or the monitor unwatches at once. No
 * lock held.
 */
uint64_t mrrc_mon_unchanged(struct mrrc_mon *mon, uintptr_t start, size_t len);

/*
 * Stops watching the parts of the range that no subscriber covers any more.
 * Monitors that unwatch slowly keep the last MRRC_IDLE_MAX such ranges watched,
 * and report their changes. No lock held.
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
	 * The fence orders the caller's next read of seq after the kernel's
	 * answer.
	 */
	mrrc_fence(acquire);
	return !ret || ret == -EAGAIN ? ret : mrrc_mon_refused(mon, ret);
}

/*
 * As mrrc_mon_check(); 0 also means that the caches have forgotten all memory
 * that was unmapped before the call. *seq: the sequence number at that time.
 * *probes, which only the caller writes, grows by one if the kernel is asked.
 * Reads no event.
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
 * Makes all caches forget the range, as if it had been unmapped, for changes
 * that other means announce. No lock held.
 */
void mrrc_mon_invalidate(struct mrrc_mon *mon, uintptr_t start, size_t len);

/*
 * Ends the monitor permanently, and invalidates all ranges of its subscribers.
 * No lock held.
 */
void mrrc_mon_fail(struct mrrc_mon *mon, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Called by drain(): passes one event to all subscribers. Returns whether any
 * subscriber knew the range. MONITOR lock held.
 */
bool mrrc_mon_event(struct mrrc_mon *mon, uintptr_t start, uintptr_t end,
		    enum mrrc_mon_event event);

#endif /* MRRC_MON_H */
