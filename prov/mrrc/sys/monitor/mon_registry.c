/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keeps the monitors of this process: opens, closes, hooks them, and handles
 * forks (mon.h).
 *
 * Lock order: REGISTRY -> MONITOR -> CACHE. The handler thread never takes
 * REGISTRY, so open and close may allocate and map while they hold REGISTRY.
 */
#include "config.h"
#include "sys/monitor/mon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/base/biased_lock.h"
#include "sys/hooks/libc_hooks.h"
#include "sys/proof/prove.h"
#include "sys/monitor/mon_libc.h"
#include "sys/monitor/mon_room.h"

/* In order of preference for "auto". */
static const struct mrrc_mon_ops *const mrrc_mon_kinds[] = {
	&mrrc_mon_uffd_ops,
	&mrrc_mon_none_ops,
	/* never chosen by "auto" */
	&mrrc_mon_manual_ops,
};

#define MRRC_MON_KINDS (sizeof(mrrc_mon_kinds) / sizeof(mrrc_mon_kinds[0]))

#define MRRC_MON_CHILD "this is a forked child"

static struct {
	pthread_once_t once;
	int ready;		    /* 0, or the error of its setup */
	struct mrrc_lock lock;	    /* REGISTRY */
	TAILQ_HEAD(, mrrc_mon) all; /* every instance of this process */
} mrrc_mon_registry = { .once = PTHREAD_ONCE_INIT };

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
 * Runs in the only thread of a forked child. Another thread may have held the
 * MONITOR or a CACHE lock during the fork: so the child does not use the data
 * that these locks guard (mrrc_mon_forked).
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
	/*
	 * before our threads start: the kernel takes 10 ms to register a
	 * process with several threads for membarrier(2)
	 */
	mrrc_biased_setup();
	return mrrc_mon_registry.ready;
}

/* ---- open and close ---- */

/*
 * Takes the REGISTRY lock; the thread is not cancelled while it has the lock.
 */
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

/*
 * Gets the shared instance of a kind, and opens it if it does not exist yet.
 * REGISTRY lock held.
 */
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

/* The first kind that works, or "none" with the reason. REGISTRY lock held. */
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
	/* a child without fork handlers may share the watching descriptors */
	if (!mrrc_mon_forked(mon))
		mrrc_mon_unwatch_idle(mon);
	/*
	 * The fork handlers know the monitor until its descriptors are closed.
	 */
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

/* ---- hooks ---- */

/*
 * Tries to take the REGISTRY lock for the proving thread; does not wait, as the
 * lock's holder may be waiting for the proving thread.
 */
static bool mon_prove_enter(void)
{
	return mrrc_lock_try(&mrrc_mon_registry.lock);
}

static void mon_prove_leave(void)
{
	mrrc_lock_release(&mrrc_mon_registry.lock);
}

/* Handles all queued events, of all monitors. */
static bool mon_settle_all(void)
{
	struct mrrc_mon *mon;

	if (!mon_prove_enter())
		return false;
	TAILQ_FOREACH(mon, &mrrc_mon_registry.all, link)
		mrrc_mon_drain(mon);
	mon_prove_leave();
	return true;
}

static const struct mrrc_prove_ops mrrc_mon_prove_ops = {
	.enter = mon_prove_enter,
	.leave = mon_prove_leave,
	.settle = mon_settle_all,
};

void mrrc_mon_rented(struct mrrc_mon *mon)
{
	if (atomic_load(&mon->trusting))
		mrrc_prove_rent(MRRC_MON_RENT);
}

bool mrrc_mon_set_probe(struct mrrc_mon *mon, enum mrrc_mon_probe probe)
{
	bool can, proves;
	int cancel;

	cancel = registry_enter();
	mon->ask = mon->ops->ask;
	if (mon->ask == MRRC_ASK_OTHERS && probe == MRRC_PROBE_ALWAYS)
		mon->ask = MRRC_ASK_ALWAYS;
	mon->trusting = probe != MRRC_PROBE_ALWAYS && mon->hooked;
	proves = mon->trusting && probe != MRRC_PROBE_HOOKED;
	if (proves)
		mrrc_prove_ready(&mrrc_mon_prove_ops,
				 probe == MRRC_PROBE_PROVEN);
	can = mrrc_libc_hooks_rely(!mon->trusting ? MRRC_TRUST_NOBODY :
				   probe == MRRC_PROBE_HOOKED ?
						    MRRC_TRUST_HOOKED :
						    MRRC_TRUST_PROVEN);
	/*
	 * without a proof, code may make threads or children that share memory,
	 * and unmap in these
	 */
	mon->lone = !(MRRC_PROVE_CAN && proves && can);
	registry_leave(cancel);
	if (proves)
		mrrc_prove_rent(0);
	return (can && mon->trusting) || probe != MRRC_PROBE_HOOKED;
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
	mon->hook_users += mon->hooked;
	if (why)
		memcpy(why, mon->unhooked, sizeof(mon->unhooked));
	registry_leave(cancel);
	return ret;
}

void mrrc_mon_unhook(struct mrrc_mon *mon)
{
	const int cancel = registry_enter();

	if (mon->hooked && !--mon->hook_users && !mrrc_mon_forked(mon)) {
		mrrc_libc_hooks_remove(mon);
		mon->hooked = false;
		atomic_store(&mon->trusting, false);
		atomic_store(&mon->lone, true);
	}
	mrrc_lock_release(&mrrc_mon_registry.lock);
	mrrc_prove_stop();
	pthread_setcancelstate(cancel, NULL);
}
