/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opens and closes budgets, runs a budget's thread, and keeps the budget of
 * this process (budget.h).
 */
#include "config.h"
#include "sys/node/budget_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sys/node/node_dir.h"
#include "sys/base/threads.h"

#define GRAIN_PART 256 /* grains of a budget */
#define GRAIN_MIN  16u /* units: 64 KiB */
#define GRAIN_MAX  1024u
#define WANT_NS	   250000000 /* time between looks while bytes are lacking */

static uint64_t limit_units(size_t bytes)
{
	const uint64_t units = bytes / MRRC_NODE_UNIT;

	if (bytes == MRRC_BUDGET_NONE)
		return MRRC_BUDGET_NONE;
	return units < MRRC_NODE_UNITS ? units : MRRC_NODE_UNITS - 1;
}

static uint64_t grain(uint64_t limit)
{
	const uint64_t part = limit / GRAIN_PART;

	return part < GRAIN_MIN ? GRAIN_MIN :
	       part > GRAIN_MAX ? GRAIN_MAX :
				  part;
}

/*
 * Reads the bell's number before the slots: for later changes the bell rings
 * again, so that the wait returns at once.
 */
static void *budget_run(void *arg)
{
	struct mrrc_budget *budget = arg;
	uint32_t bell;
	bool want;

	while (!atomic_load(&budget->stop)) {
		bell = mrrc_node_shm_bell(budget->shm);
		mrrc_budget_answer(budget);
		if (!mrrc_node_shm_whole(budget->shm))
			break;
		atomic_store(&mrrc_node_shm_mine(budget->shm)->heard, bell);
		mrrc_lock_acquire(&budget->lock);
		want = budget->want;
		mrrc_lock_release(&budget->lock);
		if (!atomic_load(&budget->stop))
			mrrc_node_shm_wait(budget->shm, bell,
					   want ? WANT_NS : 0);
	}
	return NULL;
}

static void budget_stop(struct mrrc_budget *budget)
{
	if (!budget->runs)
		return;
	atomic_store(&budget->stop, true);
	mrrc_node_shm_ring(budget->shm);
	mrrc_thread_join(budget->thread);
}

/* Starts the thread. Without the thread the process keeps its reservation. */
static void budget_start(struct mrrc_budget *budget)
{
	budget->runs =
		!mrrc_thread_start(&budget->thread, 0, budget_run, budget);
	if (budget->runs)
		pthread_setname_np(budget->thread, "mrrc-node");
}

static int open_default(struct mrrc_node_shm **shm)
{
	struct mrrc_node_dirs dirs;

	mrrc_node_dirs(&dirs);
	return mrrc_node_dirs_open(&dirs, shm);
}

int mrrc_budget_open(const struct mrrc_budget_attr *attr,
		     struct mrrc_budget **out, int *alone)
{
	struct mrrc_budget *budget;
	int ret;

	budget = aligned_alloc(_Alignof(struct mrrc_budget), sizeof(*budget));
	if (!budget)
		return -ENOMEM;
	memset(budget, 0, sizeof(*budget));
	budget->limit = limit_units(attr->bytes);
	budget->alone = budget->limit;
	if (attr->bytes != MRRC_BUDGET_NONE && attr->alone < attr->bytes)
		budget->alone = limit_units(attr->alone);
	budget->used_at = mrrc_budget_now();
	budget->ring_ms = MRRC_BUDGET_RING_MS;
	budget->try_ms = MRRC_BUDGET_TRY_MS;
	TAILQ_INIT(&budget->members);
	TAILQ_INIT(&budget->keepers);
	mrrc_mutex_init(&budget->keepers_lock, MRRC_RANK_KEEPERS);
	budget->grain = grain(budget->limit);
	ret = mrrc_lock_init(&budget->lock, MRRC_RANK_LEAF);
	if (ret)
		goto err_free;
	ret = mrrc_lock_init(&budget->members_lock, MRRC_RANK_BUDGET);
	if (ret)
		goto err_lock;
	*alone = attr->dir ? mrrc_node_shm_open(attr->dir, &budget->shm) :
			     open_default(&budget->shm);
	if (*alone)
		budget->grain = grain(budget->alone);
	else if (budget->limit != MRRC_BUDGET_NONE)
		budget_start(budget);
	*out = budget;
	return 0;

err_lock:
	mrrc_lock_fini(&budget->lock);
err_free:
	mrrc_mutex_fini(&budget->keepers_lock);
	free(budget);
	return ret;
}

void mrrc_budget_close(struct mrrc_budget *budget)
{
	budget_stop(budget);
	if (budget->shm)
		mrrc_node_shm_close(budget->shm);
	mrrc_mutex_fini(&budget->keepers_lock);
	mrrc_lock_fini(&budget->members_lock);
	mrrc_lock_fini(&budget->lock);
	free(budget);
}

size_t mrrc_budget_limit(const struct mrrc_budget *budget)
{
	const uint64_t limit = budget->shm ? budget->limit : budget->alone;

	return limit == MRRC_BUDGET_NONE ? limit : limit * MRRC_NODE_UNIT;
}

void mrrc_budget_add(struct mrrc_budget *budget,
		     struct mrrc_budget_member *member)
{
	const size_t limit = mrrc_budget_limit(budget);

	if (member->stats)
		member->stats->value[MRRC_STAT_NODE_BUDGET] =
			limit == MRRC_BUDGET_NONE ? 0 : limit;
	mrrc_lock_acquire(&budget->members_lock);
	mrrc_lock_acquire(&budget->lock);
	TAILQ_INSERT_TAIL(&budget->members, member, link);
	mrrc_lock_release(&budget->lock);
	mrrc_lock_release(&budget->members_lock);
}

void mrrc_budget_remove(struct mrrc_budget *budget,
			struct mrrc_budget_member *member)
{
	mrrc_lock_acquire(&budget->members_lock);
	mrrc_lock_acquire(&budget->lock);
	TAILQ_REMOVE(&budget->members, member, link);
	mrrc_lock_release(&budget->lock);
	mrrc_lock_release(&budget->members_lock);
}

/* ---- the budget of this process ---- */

static struct {
	pthread_once_t once;
	pthread_mutex_t lock;
	struct mrrc_budget *budget; /* lock, with users and alone */
	unsigned users;
	int alone;
} own = {
	.once = PTHREAD_ONCE_INIT,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static void own_fork_prepare(void)
{
	pthread_mutex_lock(&own.lock);
}

static void own_fork_parent(void)
{
	pthread_mutex_unlock(&own.lock);
}

/*
 * A child does not change the parent's budget, whose lock may be held, and
 * whose thread does not exist in the child.
 */
static void own_fork_child(void)
{
	own.budget = NULL;
	own.users = 0;
	pthread_mutex_unlock(&own.lock);
}

static void own_once(void)
{
	mrrc_node_shm_init();
	pthread_atfork(own_fork_prepare, own_fork_parent, own_fork_child);
}

int mrrc_budget_join(const struct mrrc_budget_attr *attr,
		     struct mrrc_budget **budget, int *alone)
{
	int ret = 0, cancel;

	pthread_once(&own.once, own_once);
	/* a thread that is cancelled in open(2) would leave with the lock */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&own.lock);
	if (!own.users)
		ret = mrrc_budget_open(attr, &own.budget, &own.alone);
	if (!ret) {
		own.users++;
		*budget = own.budget;
		*alone = own.alone;
	}
	pthread_mutex_unlock(&own.lock);
	pthread_setcancelstate(cancel, NULL);
	return ret;
}

void mrrc_budget_leave(struct mrrc_budget *budget)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&own.lock);
	/* a forked child must not close its parent's budget */
	if (budget && budget == own.budget && !--own.users) {
		mrrc_budget_close(budget);
		own.budget = NULL;
	}
	pthread_mutex_unlock(&own.lock);
	pthread_setcancelstate(cancel, NULL);
}
