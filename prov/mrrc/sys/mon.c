/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Monitor registry, lifecycle and event handling (mon.h).
 *
 * Lock order: REGISTRY (open, close, fork) -> MONITOR -> CACHE. The handler
 * thread never takes REGISTRY, so open and close may allocate and map while
 * they hold it.
 */
#include "config.h"
#include "sys/mon_priv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/libc_hooks.h"
#include "sys/prove.h"

/* In order of preference for "auto". */
static const struct mrrc_mon_ops *const mrrc_mon_kinds[] = {
	&mrrc_mon_uffd_ops,
	&mrrc_mon_none_ops,
	/* never chosen by "auto" */
	&mrrc_mon_manual_ops,
};

#define MRRC_MON_KINDS (sizeof(mrrc_mon_kinds) / sizeof(mrrc_mon_kinds[0]))

static const char *const mrrc_mon_name_list[MRRC_MON_KINDS + 1] = {
	"uffd",
	"none",
	"manual",
};

#define MRRC_MON_CHILD "this is a forked child"

static struct {
	pthread_once_t once;
	int ready;		    /* 0, or why the registry is not */
	struct mrrc_lock lock;	    /* REGISTRY */
	TAILQ_HEAD(, mrrc_mon) all; /* every instance of this process */
} mrrc_mon_registry = { .once = PTHREAD_ONCE_INIT };

const char *const *mrrc_mon_names(void)
{
	return mrrc_mon_name_list;
}

const char *mrrc_mon_name(const struct mrrc_mon *mon)
{
	return mon->ops->name;
}

const char *mrrc_mon_title(const struct mrrc_mon *mon)
{
	return mon->hooked ? "uffd+hooks" : mon->ops->name;
}

const char *mrrc_mon_reason(const struct mrrc_mon *mon)
{
	if (atomic_load(&((struct mrrc_mon *) mon)->failed))
		return mon->reason;
	return mrrc_mon_forked(mon) ? MRRC_MON_CHILD : "";
}

/* ---- fork: the child gets no events, and must not steal the parent's ---- */

static void mon_fork_prepare(void)
{
	mrrc_lock_acquire(&mrrc_mon_registry.lock);
}

static void mon_fork_parent(void)
{
	mrrc_lock_release(&mrrc_mon_registry.lock);
}

/*
 * The only thread of the child. Another thread may have held the MONITOR or a
 * CACHE lock: the data they guard are not used again (mrrc_mon_forked).
 */
static void mon_fork_child(void)
{
	struct mrrc_mon *mon;

	mrrc_libc_hooks_forked();
	mrrc_prove_forked();
	while ((mon = TAILQ_FIRST(&mrrc_mon_registry.all))) {
		TAILQ_REMOVE(&mrrc_mon_registry.all, mon, link);
		mon->listed = false;
		mrrc_lock_reset(&mon->lock, MRRC_RANK_MONITOR);
		TAILQ_INIT(&mon->subs);
		strcpy(mon->reason, MRRC_MON_CHILD);
		atomic_fetch_or(&mon->seq, 1);
		*mon->ours = 0;
		atomic_store(&mon->failed, true);
		mon->ops->stop(mon);
	}
	mrrc_lock_release(&mrrc_mon_registry.lock);
}

static void mon_registry_init(void)
{
	TAILQ_INIT(&mrrc_mon_registry.all);
	mrrc_mon_registry.ready =
		mrrc_lock_init(&mrrc_mon_registry.lock, MRRC_RANK_REGISTRY);
	if (!mrrc_mon_registry.ready)
		mrrc_mon_registry.ready = -pthread_atfork(mon_fork_prepare,
							  mon_fork_parent,
							  mon_fork_child);
}

static int mon_registry_ready(void)
{
	pthread_once(&mrrc_mon_registry.once, mon_registry_init);
	mrrc_threads_init();
	return mrrc_mon_registry.ready;
}

/* ---- open and close ---- */

/* The thread is not cancelled while it has the lock. */
static int registry_enter(void)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	mrrc_lock_acquire(&mrrc_mon_registry.lock);
	return cancel;
}

static void registry_leave(int cancel)
{
	mrrc_lock_release(&mrrc_mon_registry.lock);
	pthread_setcancelstate(cancel, NULL);
}

/* REGISTRY lock held. */
static int mon_create(const struct mrrc_mon_ops *ops, char *why,
		      struct mrrc_mon **out)
{
	struct mrrc_mon *mon;
	int ret;

	mon = calloc(1, sizeof(*mon));
	if (!mon)
		return -ENOMEM;
	mon->ops = ops;
	mon->ours = mrrc_ours_get();
	mon->ask = ops->ask;
	mon->lone = true;
	mon->refs = 1;
	if (ops->lazy)
		mrrc_mon_room_init(&mon->room);
	TAILQ_INIT(&mon->subs);
	ret = mrrc_lock_init(&mon->lock, MRRC_RANK_MONITOR);
	if (ret)
		goto err_free;
	ret = ops->open(mon);
	if (ret) {
		if (!mon->reason[0])
			snprintf(mon->reason, sizeof(mon->reason), "%s: %s",
				 ops->name, strerror(-ret));
		if (why)
			memcpy(why, mon->reason, sizeof(mon->reason));
		goto err_lock;
	}
	TAILQ_INSERT_TAIL(&mrrc_mon_registry.all, mon, link);
	mon->listed = true;
	*out = mon;
	return 0;

err_lock:
	mrrc_lock_fini(&mon->lock);
err_free:
	mrrc_ours_put(mon->ours);
	free(mon);
	return ret;
}

/* REGISTRY lock held: the shared instance of a kind, made if need be. */
static int mon_share(const struct mrrc_mon_ops *ops, char *why,
		     struct mrrc_mon **out)
{
	struct mrrc_mon *mon;
	int ret;

	TAILQ_FOREACH(mon, &mrrc_mon_registry.all, link) {
		if (mon->shared && mon->ops == ops) {
			mon->refs++;
			*out = mon;
			return 0;
		}
	}
	ret = mon_create(ops, why, out);
	if (!ret)
		(*out)->shared = true;
	return ret;
}

/* REGISTRY lock held: the first kind that works, "none" with the reason. */
static int mon_best(char *why, struct mrrc_mon **out)
{
	struct mrrc_mon *mon = NULL;
	size_t i;
	int ret = -ENODEV;

	for (i = 0; i < MRRC_MON_KINDS; i++) {
		ret = mon_share(mrrc_mon_kinds[i], why, &mon);
		if (!ret)
			break;
	}
	if (!ret)
		*out = mon;
	return ret;
}

int mrrc_mon_open(const char *name, char *why, struct mrrc_mon **mon)
{
	size_t i;
	int ret, cancel;

	if (why)
		why[0] = '\0';
	ret = mon_registry_ready();
	if (ret)
		return ret;
	cancel = registry_enter();
	if (!name || !strcmp(name, MRRC_MON_AUTO)) {
		ret = mon_best(why, mon);
	} else {
		ret = -ENOENT;
		for (i = 0; i < MRRC_MON_KINDS; i++) {
			if (strcmp(name, mrrc_mon_kinds[i]->name))
				continue;
			ret = mon_share(mrrc_mon_kinds[i], why, mon);
			break;
		}
	}
	registry_leave(cancel);
	return ret;
}

int mrrc_mon_open_ops(const struct mrrc_mon_ops *ops, char *why,
		      struct mrrc_mon **mon)
{
	int ret, cancel;

	if (why)
		why[0] = '\0';
	ret = mon_registry_ready();
	if (ret)
		return ret;
	cancel = registry_enter();
	ret = mon_create(ops, why, mon);
	registry_leave(cancel);
	return ret;
}

void mrrc_mon_close(struct mrrc_mon *mon)
{
	int cancel;
	bool proves;

	cancel = registry_enter();
	if (--mon->refs) {
		registry_leave(cancel);
		return;
	}
	assert(TAILQ_EMPTY(&mon->subs));
	if (mon->hooked && !mrrc_mon_forked(mon))
		mrrc_libc_hooks_remove(mon);
	/* a child without fork handlers may keep what watches */
	if (!mrrc_mon_forked(mon))
		mrrc_mon_unwatch_idle(mon);
	/* Known to the fork handlers until its descriptors are closed. */
	mon->ops->close(mon);
	if (mon->listed)
		TAILQ_REMOVE(&mrrc_mon_registry.all, mon, link);
	mrrc_ours_put(mon->ours);
	proves = !TAILQ_EMPTY(&mrrc_mon_registry.all);
	mrrc_lock_release(&mrrc_mon_registry.lock);

	if (!proves)
		mrrc_prove_stop();
	mrrc_lock_fini(&mon->lock);
	free(mon);
	pthread_setcancelstate(cancel, NULL);
}

void mrrc_mon_subscribe(struct mrrc_mon *mon, struct mrrc_mon_sub *sub)
{
	mrrc_lock_acquire(&mon->lock);
	TAILQ_INSERT_TAIL(&mon->subs, sub, link);
	mrrc_lock_release(&mon->lock);
}

void mrrc_mon_unsubscribe(struct mrrc_mon *mon, struct mrrc_mon_sub *sub)
{
	if (mrrc_mon_forked(mon))
		return;
	mrrc_lock_acquire(&mon->lock);
	TAILQ_REMOVE(&mon->subs, sub, link);
	mrrc_lock_release(&mon->lock);
}

/* ---- handling ---- */

/* MONITOR lock held, reason set. seq is odd and stays so. */
static void mon_fail_locked(struct mrrc_mon *mon)
{
	struct mrrc_mon_sub *sub;

	mrrc_lock_assert_held(&mon->lock);
	atomic_fetch_or(&mon->seq, 1);
	mrrc_fence(seq_cst);
	atomic_store(&mon->failed, true);
	TAILQ_FOREACH(sub, &mon->subs, link)
		sub->notify(sub, 0, UINTPTR_MAX);
	mon->ops->stop(mon);
}

/* MONITOR lock held: seq is odd from here until it is settled. */
static void mon_unsettle(struct mrrc_mon *mon)
{
	mrrc_lock_assert_held(&mon->lock);
	/* Odd before the first read: see mon.h. */
	atomic_fetch_or(&mon->seq, 1);
	mrrc_fence(seq_cst);
}

static bool mon_settle(struct mrrc_mon *mon)
{
	mrrc_lock_assert_held(&mon->lock);
	if (mon->ops->settle)
		return mon->ops->settle(mon);
	atomic_fetch_add(&mon->seq, 1);
	return true;
}

/* MONITOR lock held: all events up to now. */
static void mon_handle(struct mrrc_mon *mon)
{
	do {
		mon_unsettle(mon);
		if (mon->ops->drain(mon)) {
			mon_fail_locked(mon);
			return;
		}
	} while (!mon_settle(mon));
}

/* ---- watching ---- */

/* MONITOR lock held: unwatch the parts of the range that no cache covers. */
static void mon_uncover(struct mrrc_mon *mon, uintptr_t start, uintptr_t end)
{
	struct mrrc_mon_sub *sub;
	struct mrrc_range range;
	uintptr_t next;

	mrrc_lock_assert_held(&mon->lock);
	while (start < end) {
		next = end;
		TAILQ_FOREACH(sub, &mon->subs, link) {
			range = sub->cover(sub, start);
			if (range.start == range.end)
				continue;
			if (range.start <= start)
				break;
			if (range.start < next)
				next = range.start;
		}
		if (sub) {
			start = range.end;
		} else {
			mrrc_idle_forget(&mon->idle, start, next);
			mon->ops->unwatch(mon, start, next - start);
			start = next;
		}
	}
}

/* MONITOR lock held. */
bool mrrc_mon_unwatch_all_idle(struct mrrc_mon *mon)
{
	struct mrrc_idle_range range;
	bool any = false;

	while (mrrc_idle_take(&mon->idle, &range)) {
		mon_uncover(mon, range.start, range.end);
		any = true;
	}
	return any;
}

/* ---- watching, the calls ---- */

/* MONITOR lock held. Ranges known as private stay watched. */
static int mon_watch_locked(struct mrrc_mon *mon, uintptr_t start, size_t len,
			    uint64_t *token)
{
	const uint64_t same = mrrc_idle_seen(&mon->idle, start, start + len);
	int ret;

	if (same) {
		*token = same;
		return 0;
	}
	if (mrrc_mon_full(mon))
		return -ENOMEM;
	mrrc_libc_hooks_mark(start, len);
	ret = mon->ops->watch(mon, start, len);
	if (ret < 0)
		return ret;
	*token = mrrc_idle_watch(&mon->idle, start, start + len);
	if (ret == MRRC_MON_SEEN)
		mrrc_idle_saw(&mon->idle, start, *token);
	return 0;
}

int mrrc_mon_watch(struct mrrc_mon *mon, uintptr_t start, size_t len,
		   uint64_t *token)
{
	int ret = -ENODEV;

	mrrc_lock_acquire(&mon->lock);
	/* Earlier events must not count as changes of this range. */
	if (mrrc_mon_works(mon) && mrrc_mon_seq(mon) & 1)
		mon_handle(mon);
	if (mrrc_mon_works(mon))
		ret = mon_watch_locked(mon, start, len, token);
	/* Each range takes mappings, which are limited. */
	if (ret == -ENOMEM && mrrc_mon_unwatch_all_idle(mon))
		ret = mon_watch_locked(mon, start, len, token);
	mrrc_lock_release(&mon->lock);
	return ret;
}

bool mrrc_mon_sees(struct mrrc_mon *mon, uintptr_t start, size_t len,
		   uint64_t token)
{
	bool sees;

	if (!mrrc_mon_works(mon))
		return false;
	if (!mon->ops->lazy)
		return mon->ops->sees(mon, start, len);
	mrrc_lock_acquire(&mon->lock);
	sees = mrrc_idle_seen(&mon->idle, start, start + len);
	mrrc_lock_release(&mon->lock);
	if (sees)
		return mrrc_mon_works(mon);
	sees = mon->ops->sees(mon, start, len);
	if (!sees)
		return false;
	mrrc_lock_acquire(&mon->lock);
	mrrc_idle_saw(&mon->idle, start, token);
	mrrc_lock_release(&mon->lock);
	return true;
}

uint64_t mrrc_mon_unchanged(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	uint64_t token;

	mrrc_lock_acquire(&mon->lock);
	token = mrrc_mon_works(mon) && mon->ops->lazy ?
			mrrc_idle_seen(&mon->idle, start, start + len) :
			0;
	mrrc_lock_release(&mon->lock);
	return token;
}

/* Evicted memory often comes back: monitors that unwatch slowly do it later. */
void mrrc_mon_unwatch(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	struct mrrc_idle_range out = { .start = start, .end = start + len };

	mrrc_lock_acquire(&mon->lock);
	if (mrrc_mon_works(mon) &&
	    (!mon->ops->lazy ||
	     mrrc_idle_add(&mon->idle, start, start + len, &out)))
		mon_uncover(mon, out.start, out.end);
	mrrc_lock_release(&mon->lock);
}

void mrrc_mon_unwatch_idle(struct mrrc_mon *mon)
{
	mrrc_lock_acquire(&mon->lock);
	if (mrrc_mon_works(mon))
		mrrc_mon_unwatch_all_idle(mon);
	mrrc_lock_release(&mon->lock);
}

/* ---- events ---- */

int mrrc_mon_refused(struct mrrc_mon *mon, int ret)
{
	mrrc_mon_fail(mon, "%s: the probe answered \"%s\"", mon->ops->name,
		      strerror(-ret));
	return -ENODEV;
}

/*
 * Tell all subscribers to forget the range. The invalidated regions may be
 * larger; the rest of them may still be mapped, and watched without need.
 */
bool mrrc_mon_event(struct mrrc_mon *mon, uintptr_t start, uintptr_t end,
		    enum mrrc_mon_event event)
{
	struct mrrc_range hull = { start, end };
	struct mrrc_mon_sub *sub;
	struct mrrc_range range;
	bool known = false;

	mrrc_lock_assert_held(&mon->lock);
	mrrc_idle_forget(&mon->idle, start, end);
	TAILQ_FOREACH(sub, &mon->subs, link) {
		range = sub->notify(sub, start, end);
		if (range.start == range.end)
			continue;
		known = true;
		if (range.start < hull.start)
			hull.start = range.start;
		if (range.end > hull.end)
			hull.end = range.end;
	}
	if (event == MRRC_MON_REMOVE) {
		mon_uncover(mon, hull.start, hull.end);
	} else {
		mon_uncover(mon, hull.start, start);
		mon_uncover(mon, end, hull.end);
	}
	return known;
}

void mrrc_mon_fail(struct mrrc_mon *mon, const char *fmt, ...)
{
	va_list args;

	mrrc_lock_acquire(&mon->lock);
	if (mrrc_mon_works(mon)) {
		va_start(args, fmt);
		vsnprintf(mon->reason, sizeof(mon->reason), fmt, args);
		va_end(args);
		mon_fail_locked(mon);
	}
	mrrc_lock_release(&mon->lock);
}

void mrrc_mon_drain(struct mrrc_mon *mon)
{
	mrrc_lock_acquire(&mon->lock);
	if (mrrc_mon_works(mon))
		mon_handle(mon);
	mrrc_lock_release(&mon->lock);
}

/* Events read meanwhile are left to the next drain. */
void mrrc_mon_forget(struct mrrc_mon *mon, uintptr_t start, uintptr_t end)
{
	mon_unsettle(mon);
	mrrc_mon_event(mon, start, end, MRRC_MON_REMOVE);
	mon_settle(mon);
}

void mrrc_mon_invalidate(struct mrrc_mon *mon, uintptr_t start, size_t len)
{
	mrrc_lock_acquire(&mon->lock);
	if (mrrc_mon_works(mon))
		mrrc_mon_forget(mon, start, start + len);
	mrrc_lock_release(&mon->lock);
}

/* ---- hooks ---- */

/* Handles all queued events, of all monitors. The lock is not waited for: its
 * holder may be waiting for the calling thread. */
static bool mon_settle_all(void)
{
	struct mrrc_mon *mon;

	if (!mrrc_lock_try(&mrrc_mon_registry.lock))
		return false;
	TAILQ_FOREACH(mon, &mrrc_mon_registry.all, link)
		mrrc_mon_drain(mon);
	mrrc_lock_release(&mrrc_mon_registry.lock);
	return true;
}

static bool mon_alone(void (*run)(void *arg), void *arg)
{
	if (!mrrc_lock_try(&mrrc_mon_registry.lock))
		return false;
	run(arg);
	mrrc_lock_release(&mrrc_mon_registry.lock);
	return true;
}

static const struct mrrc_prove_ops mrrc_mon_prove_ops = {
	.settle = mon_settle_all,
	.alone = mon_alone,
};

bool mrrc_mon_set_probe(struct mrrc_mon *mon, enum mrrc_mon_probe probe)
{
	bool can, proves;
	int cancel;

	cancel = registry_enter();
	mon->ask = mon->ops->ask;
	if (mon->ask == MRRC_ASK_OTHERS && probe == MRRC_PROBE_ALWAYS)
		mon->ask = MRRC_ASK_ALWAYS;
	mon->trusting = probe != MRRC_PROBE_ALWAYS && mon->hooked;
	proves = mon->trusting && probe == MRRC_PROBE_AUTO;
	if (proves) {
		mrrc_prove_seal();
		mrrc_prove_start(&mrrc_mon_prove_ops);
	}
	can = mrrc_libc_hooks_rely(!mon->trusting ? MRRC_TRUST_NOBODY :
				   probe == MRRC_PROBE_HOOKED ?
						    MRRC_TRUST_HOOKED :
						    MRRC_TRUST_PROVEN);
	/* what may unmap by itself may make threads by itself, and children
	 * that share memory */
	mon->lone = !(MRRC_PROVE_CAN && proves && can);
	registry_leave(cancel);
	return (can && mon->trusting) || probe != MRRC_PROBE_HOOKED;
}

void mrrc_mon_asks(struct mrrc_mon *mon, char why[MRRC_TRUST_WHY])
{
	const enum mrrc_mon_ask ask = atomic_load(&mon->ask);
	const char *broken = mrrc_trust_broken();

	*why = '\0';
	if (ask == MRRC_ASK_NEVER || !mrrc_mon_works(mon))
		return;
	if (ask == MRRC_ASK_ALWAYS)
		strcpy(why, "they always are to");
	else if (atomic_load(&mon->trusting) && broken)
		snprintf(why, MRRC_TRUST_WHY, "%s", broken);
	else if (!atomic_load(&mon->trusting) ||
		 mrrc_trust_mode() == MRRC_TRUST_NOBODY)
		strcpy(why, "libc's calls are not hooked");
	else if (mrrc_trust_mode() == MRRC_TRUST_PROVEN)
		mrrc_prove_why(why);
}

int mrrc_mon_hook(struct mrrc_mon *mon, char *why)
{
	int ret = 0, cancel;

	if (why)
		why[0] = '\0';
	if (!mrrc_mon_works(mon)) {
		if (why)
			snprintf(why, MRRC_LIBC_HOOKS_WHY,
				 "nothing is watched");
		return -ENODEV;
	}
	cancel = registry_enter();
	if (!mon->hooked) {
		ret = mrrc_libc_hooks_add(mrrc_mon_announce, mon,
					  mon->unhooked);
		mon->hooked = !ret;
		if (!ret)
			mrrc_mon_mark(mon);
	}
	if (why)
		memcpy(why, mon->unhooked, sizeof(mon->unhooked));
	registry_leave(cancel);
	return ret;
}
