/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Takes, puts and gives back units of the budget (budget.h).
 *
 * Invariants:
 *   B1 reserved = used + left, when no call is under way
 *   B2 the slot has `reserved`: raised before bytes are used, lowered after
 *   B3 over is at most what operations hold that took bytes beyond the budget
 */
#include "config.h"
#include "sys/node/budget_priv.h"

#include <time.h>

#include "sys/base/threads.h"
#include "sys/node/budget_keep.h"

#define WANT_GRAINS 8	 /* grains that a small process may lack */
#define WANT_MS	    250	 /* ms until a lack counts as ended */
#define IDLE_MS	    1000 /* ms without a request: not active */
#define RING_MAX_MS 256
/* part of its reservation that a process gives up as a trial */
#define TRY_PART 8
/* ms: a lack of bytes within this time after a trial is due to the trial */
#define MISSED_MS  1000
#define TRY_MAX_MS 64000

uint64_t mrrc_budget_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Takes at most @most of the units that are reserved and not used. */
static uint64_t left_take(struct mrrc_budget *budget, uint64_t most)
{
	uint64_t left = atomic_load(&budget->left);
	uint64_t got;

	do {
		got = least(left, most);
	} while (got && !atomic_compare_exchange_weak(&budget->left, &left,
						      left - got));
	return got;
}

/* ---- lock held ---- */

/* Is there a segment, with its descriptor still open? */
static bool shared(struct mrrc_budget *budget)
{
	return budget->shm && mrrc_node_shm_whole(budget->shm);
}

static void publish(struct mrrc_budget *budget)
{
	if (shared(budget))
		mrrc_node_shm_reserve(budget->shm, budget->reserved);
}

void mrrc_budget_view(struct mrrc_budget *budget, bool look, uint64_t now,
		      struct mrrc_node_view *view)
{
	*view = (struct mrrc_node_view){
		.share = budget->share,
		.budget = budget->limit,
		.count = 1,
	};
	if (shared(budget)) {
		view->count = mrrc_node_shm_read(budget->shm, look, now,
						 budget->share, &view->self);
	} else {
		view->budget = budget->alone;
		budget->share[0] = (struct mrrc_node_share){
			.reserved = budget->reserved,
			.active = true,
		};
	}
	budget->node = mrrc_node_reserved(view);
}

/* Updates the statistics of all members. */
static void count(struct mrrc_budget *budget)
{
	const uint64_t value[] = { budget->node, budget->reserved, budget->want,
				   budget->given, budget->taken };
	struct mrrc_budget_member *member;
	unsigned i;

	TAILQ_FOREACH(member, &budget->members, link) {
		for (i = 0; member->stats && i < 5; i++)
			__atomic_store_n(
				&member->stats
					 ->value[MRRC_STAT_NODE_RESERVED + i],
				value[i] * MRRC_NODE_UNIT, __ATOMIC_RELAXED);
	}
}

static void set_want(struct mrrc_budget *budget, uint64_t want)
{
	budget->want = want;
	if (shared(budget))
		atomic_store(&mrrc_node_shm_mine(budget->shm)->want, want);
}

/*
 * Rings, but not too often, since a ring wakes a thread in each process. A
 * process that has its share rings too, unless another process has rung
 * already: the answers show which processes are idle.
 */
static void ring(struct mrrc_budget *budget, uint64_t now)
{
	struct mrrc_node_view view;
	uint32_t bell;
	bool lacks;

	if (!shared(budget) || now - budget->rang_at < budget->ring_ms)
		return;
	mrrc_budget_view(budget, false, now, &view);
	lacks = mrrc_node_lacks(&view);
	bell = mrrc_node_shm_bell(budget->shm);
	budget->rang_at = now;
	budget->ring_ms = least(2 * budget->ring_ms, RING_MAX_MS);
	if (lacks || bell == budget->bell)
		mrrc_node_shm_ring(budget->shm);
	budget->bell = mrrc_node_shm_bell(budget->shm);
}

/*
 * Notes that the process needs @units. If soon after a trial the process needs
 * at least half of the units that the trial released, the trial has failed. A
 * smaller need may be for units released before the trial.
 */
static void miss(struct mrrc_budget *budget, uint64_t units, uint64_t now)
{
	if (budget->missed || !budget->tried_at ||
	    now - budget->tried_at >= MISSED_MS)
		return;
	budget->trial -= least(budget->trial, units);
	if (budget->trial)
		return;
	budget->missed = true;
	budget->try_ms = least(2 * budget->try_ms + MISSED_MS, TRY_MAX_MS);
}

/* Publishes that @units are lacking, and rings. */
static void lack(struct mrrc_budget *budget, uint64_t units, uint64_t now)
{
	uint64_t most = WANT_GRAINS * budget->grain;

	if (most < budget->reserved)
		most = budget->reserved;
	if (most < units)
		most = units;
	set_want(budget, least(budget->want + units, most));
	budget->lacked_at = now;
	miss(budget, units, now);
	ring(budget, now);
}

/*
 * Adds at least @least_units, at most @ask units to the reservation; returns
 * the number of units added, or 0.
 */
static uint64_t extend(struct mrrc_budget *budget, uint64_t ask,
		       uint64_t least_units, uint64_t now)
{
	struct mrrc_node_view view;
	uint64_t got, beyond;

	mrrc_budget_view(budget, false, now, &view);
	got = mrrc_node_take(&view, ask);
	if (got < least_units && budget->looked_at != now) {
		/* leave out the bytes of processes that have died */
		budget->looked_at = now;
		mrrc_budget_view(budget, true, now, &view);
		got = mrrc_node_take(&view, ask);
	}
	if (got < least_units)
		return 0;
	budget->reserved += got;
	publish(budget);
	/* other processes may have published at the same time */
	mrrc_budget_view(budget, false, now, &view);
	beyond = budget->node > view.budget ? budget->node - view.budget : 0;
	beyond = least(beyond, got);
	if (got - beyond < least_units)
		beyond = got;
	budget->reserved -= beyond;
	if (beyond)
		publish(budget);
	return got - beyond;
}

/* ---- entry points ---- */

static bool take_more(struct mrrc_budget *budget, uint64_t units, bool tells)
{
	const uint64_t ask = units > budget->grain ? units : budget->grain;
	uint64_t got, left, need, now;

	mrrc_lock_acquire(&budget->lock);
	now = mrrc_budget_now();
	left = left_take(budget, units);
	need = units - left;
	got = need ? extend(budget, ask, need, now) : 0;
	if (got < need) {
		atomic_fetch_add(&budget->left, left);
		if (tells)
			lack(budget, need, now);
	} else {
		atomic_fetch_add(&budget->left, got - need);
		atomic_fetch_add(&budget->used, units);
		budget->taken += got;
		if (got) {
			budget->ring_ms = MRRC_BUDGET_RING_MS;
			miss(budget, got, now);
		}
		if (budget->want)
			set_want(budget,
				 budget->want - least(budget->want, got));
	}
	count(budget);
	mrrc_lock_release(&budget->lock);
	return got >= need;
}

static bool take(struct mrrc_budget *budget, uint64_t units, bool tells)
{
	uint64_t left = atomic_load(&budget->left);

	if (budget->limit == MRRC_BUDGET_NONE) {
		atomic_fetch_add(&budget->used, units);
		return true;
	}
	while (left >= units) {
		if (atomic_compare_exchange_weak(&budget->left, &left,
						 left - units)) {
			atomic_fetch_add(&budget->used, units);
			return true;
		}
	}
	return take_more(budget, units, tells);
}

bool mrrc_budget_take(struct mrrc_budget *budget, size_t bytes)
{
	return take(budget, mrrc_budget_units(bytes), true);
}

bool mrrc_budget_try(struct mrrc_budget *budget, size_t bytes)
{
	return take(budget, mrrc_budget_units(bytes), false);
}

bool mrrc_budget_take_over(struct mrrc_budget *budget, size_t bytes)
{
	const uint64_t units = mrrc_budget_units(bytes);
	uint64_t more;

	if (mrrc_budget_take(budget, bytes))
		return true;
	mrrc_lock_acquire(&budget->lock);
	more = units - left_take(budget, units);
	atomic_fetch_add(&budget->over, more);
	atomic_fetch_add(&budget->used, units);
	budget->reserved += more;
	publish(budget);
	count(budget);
	mrrc_lock_release(&budget->lock);
	return !more;
}

/*
 * Gives back units that other processes lack, or unused units beyond two
 * grains. Lock held.
 */
static void put_back(struct mrrc_budget *budget)
{
	const uint64_t left = atomic_load(&budget->left);
	const uint64_t owe = atomic_load(&budget->owe);
	uint64_t most = left > 2 * budget->grain ? left - budget->grain : 0;
	uint64_t back;

	back = left_take(budget, owe > most ? owe : most);
	atomic_store(&budget->owe, owe - least(owe, back));
	budget->given += least(owe, back);
	budget->reserved -= back;
}

static void put_slow(struct mrrc_budget *budget, uint64_t units)
{
	uint64_t over;

	mrrc_lock_acquire(&budget->lock);
	over = least(atomic_load(&budget->over), units);
	atomic_fetch_sub(&budget->over, over);
	budget->reserved -= over;
	atomic_fetch_add(&budget->left, units - over);
	put_back(budget);
	publish(budget);
	count(budget);
	mrrc_lock_release(&budget->lock);
}

void mrrc_budget_put(struct mrrc_budget *budget, size_t bytes)
{
	const uint64_t units = mrrc_budget_units(bytes);

	atomic_fetch_sub(&budget->used, units);
	if (budget->limit == MRRC_BUDGET_NONE)
		return;
	if (atomic_load(&budget->over) || atomic_load(&budget->owe) ||
	    atomic_load(&budget->left) + units > 2 * budget->grain)
		put_slow(budget, units);
	else
		atomic_fetch_add(&budget->left, units);
}

/* ---- giving ---- */

uint64_t mrrc_budget_evict(struct mrrc_budget *budget,
			   const struct mrrc_budget_member *except,
			   uint64_t units)
{
	struct mrrc_budget_member *member;
	uint64_t got = 0;

	TAILQ_FOREACH(member, &budget->members, link) {
		if (got >= units)
			break;
		if (member != except)
			got += member->evict(member,
					     (units - got) * MRRC_NODE_UNIT) /
			       MRRC_NODE_UNIT;
	}
	/* start with another member the next time */
	member = TAILQ_FIRST(&budget->members);
	if (member) {
		mrrc_lock_acquire(&budget->lock);
		TAILQ_REMOVE(&budget->members, member, link);
		TAILQ_INSERT_TAIL(&budget->members, member, link);
		mrrc_lock_release(&budget->lock);
	}
	return got;
}

size_t mrrc_budget_evict_others(struct mrrc_budget *budget,
				struct mrrc_budget_member *member, size_t bytes)
{
	uint64_t got;

	mrrc_lock_acquire(&budget->members_lock);
	got = mrrc_budget_evict(budget, member, mrrc_budget_units(bytes));
	mrrc_lock_release(&budget->members_lock);
	return got * MRRC_NODE_UNIT;
}

/* Has any member been used lately? members_lock held. */
static bool active(struct mrrc_budget *budget, uint64_t now)
{
	struct mrrc_budget_member *member;
	uint64_t uses = 0;

	TAILQ_FOREACH(member, &budget->members, link)
		uses += member->uses(member);
	if (uses != budget->uses) {
		budget->uses = uses;
		budget->used_at = now;
	}
	return now - budget->used_at <= IDLE_MS;
}

/*
 * A process that lacks no units may have more units than it uses, even within
 * its share. As a trial, releases an eighth of the reservation; further trials
 * follow unless the process needs these units back soon. Each failed trial
 * delays the next one, unless the process has reserved more units in between:
 * then the number of units that it uses is not known. Lock held.
 */
static uint64_t part_to_miss(struct mrrc_budget *budget, uint64_t now,
			     const struct mrrc_node_view *view)
{
	const uint64_t units = budget->reserved / TRY_PART;

	if (budget->reserved - units > budget->tried_with) {
		budget->missed = false;
		budget->try_ms = MRRC_BUDGET_TRY_MS;
	}
	if (budget->want || now - budget->tried_at < budget->try_ms ||
	    !mrrc_node_others_want(view))
		return 0;
	if (!budget->missed)
		budget->try_ms = MRRC_BUDGET_TRY_MS;
	budget->missed = false;
	budget->tried_at = now;
	budget->tried_with = budget->reserved;
	budget->trial = units - units / 2;
	return units;
}

/*
 * Gives unused units back, and returns the number of further units that the
 * process has to evict, and owes from now on. Lock held.
 */
static uint64_t give(struct mrrc_budget *budget, uint64_t now)
{
	const uint64_t owed = atomic_load(&budget->owe);
	struct mrrc_node_view view;
	uint64_t units, back;

	mrrc_budget_view(budget, false, now, &view);
	units = mrrc_node_give(&view);
	if (units) {
		/*
		 * Recheck with dead processes excluded before giving anything
		 */
		mrrc_budget_view(budget, true, now, &view);
		units = mrrc_node_give(&view);
	}
	if (!units && !owed)
		units = part_to_miss(budget, now, &view);
	back = left_take(budget, units);
	budget->given += back;
	budget->reserved -= back;
	units -= back;
	atomic_store(&budget->owe, units);
	return units > owed ? units - owed : 0;
}

/*
 * Called when eviction fell short by @units: takes these units from idle blocks
 * of allocators, and cancels the rest of the debt.
 */
static void owe_less(struct mrrc_budget *budget, uint64_t units)
{
	mrrc_thread_outside();
	units -= least(units, mrrc_budget_give_kept(budget, units));
	mrrc_thread_inside();
	mrrc_lock_acquire(&budget->lock);
	atomic_fetch_sub(&budget->owe, least(atomic_load(&budget->owe), units));
	mrrc_lock_release(&budget->lock);
}

void mrrc_budget_answer(struct mrrc_budget *budget)
{
	struct mrrc_node_slot *slot;
	uint64_t units = 0, got, now;
	uint32_t flags;
	bool is_active;

	mrrc_lock_acquire(&budget->members_lock);
	is_active = active(budget, mrrc_budget_now());
	mrrc_lock_acquire(&budget->lock);
	now = mrrc_budget_now();
	if (budget->want && now - budget->lacked_at > WANT_MS)
		set_want(budget, 0);
	if (shared(budget)) {
		slot = mrrc_node_shm_mine(budget->shm);
		flags = atomic_load(&slot->flags) & ~MRRC_NODE_ACTIVE;
		flags |= is_active ? MRRC_NODE_ACTIVE : 0;
		atomic_store(&slot->flags, flags);
		units = give(budget, now);
		publish(budget);
		count(budget);
	}
	mrrc_lock_release(&budget->lock);
	got = units ? mrrc_budget_evict(budget, NULL, units) : 0;
	mrrc_lock_release(&budget->members_lock);
	if (got < units)
		owe_less(budget, units - got);
}

void mrrc_budget_stats(struct mrrc_budget *budget,
		       struct mrrc_budget_stats *stats)
{
	struct mrrc_node_view view;

	*stats = (struct mrrc_budget_stats){ 0 };
	if (budget->limit == MRRC_BUDGET_NONE)
		return;
	mrrc_lock_acquire(&budget->lock);
	mrrc_budget_view(budget, true, mrrc_budget_now(), &view);
	*stats = (struct mrrc_budget_stats){
		.budget = view.budget * MRRC_NODE_UNIT,
		.node = budget->node * MRRC_NODE_UNIT,
		.reserved = budget->reserved * MRRC_NODE_UNIT,
		.want = budget->want * MRRC_NODE_UNIT,
		.given = budget->given * MRRC_NODE_UNIT,
		.taken = budget->taken * MRRC_NODE_UNIT,
	};
	count(budget);
	mrrc_lock_release(&budget->lock);
}
