/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Decides which processes of the node have a helper thread (budget.h): each
 * process decides for itself, by the published data of all processes.
 */
#include "config.h"
#include "sys/node/budget_priv.h"

/* Publishes the data of this process. Lock held. */
static void helper_publish(struct mrrc_budget *budget)
{
	struct mrrc_node_slot *slot;
	uint32_t flags;

	if (!budget->shm || !mrrc_node_shm_whole(budget->shm))
		return;
	slot = mrrc_node_shm_mine(budget->shm);
	flags = atomic_load(&slot->flags) & ~MRRC_NODE_HELPER;
	flags |= budget->would ? MRRC_NODE_HELPER : 0;
	atomic_store(&slot->flags, flags);
	atomic_store(&slot->cpus, budget->cpus.mask);
	atomic_store(&slot->used, atomic_load(&budget->used));
}

/*
 * Decides again whether this process may have a helper thread. members_lock
 * held.
 */
static void helper_decide(struct mrrc_budget *budget,
			  enum mrrc_node_helpers policy)
{
	const struct mrrc_node_cores cores = {
		.allowed = budget->cpus.allowed,
		.idle = budget->cpus.idle,
		.slice = budget->cpus.slice,
	};
	struct mrrc_node_view view;

	mrrc_lock_acquire(&budget->lock);
	helper_publish(budget);
	mrrc_budget_view(budget, true, mrrc_budget_now(), &view);
	if (view.count == 1)
		budget->share[0].helper = budget->would;
	budget->helper.may = mrrc_node_helper_may(&view, policy, &cores,
						  &budget->helper.move_ns);
	mrrc_lock_release(&budget->lock);
}

/*
 * Sets the time until the next decision: short after a change of the answer,
 * then longer. members_lock held.
 */
static void helper_period(struct mrrc_budget *budget, bool same)
{
	if (!same)
		budget->ask_ms = MRRC_BUDGET_HELPER_MS;
	else if (budget->ask_ms < MRRC_BUDGET_HELPER_MAX_MS)
		budget->ask_ms *= 2;
}

struct mrrc_budget_helper mrrc_budget_helper(struct mrrc_budget *budget,
					     struct mrrc_budget_member *member,
					     enum mrrc_node_helpers policy,
					     bool would)
{
	struct mrrc_budget_helper helper = { 0 };
	bool look, anew = false, may;
	uint64_t now;

	mrrc_lock_acquire(&budget->members_lock);
	now = mrrc_budget_now();
	if (would != member->would) {
		member->would = would;
		budget->would += would ? 1 : -1;
		/* true for the first such member, and after the last one */
		anew = budget->would == would;
	}
	may = budget->helper.may;
	look = budget->would &&
	       (!budget->asked_at || now - budget->asked_at >= budget->ask_ms);
	if (look) {
		mrrc_cpus_look(&budget->cpus, policy == MRRC_NODE_AUTO);
		budget->asked_at = now;
	}
	if (look || anew) {
		helper_decide(budget, policy);
		helper_period(budget, !anew && budget->helper.may == may);
	}
	if (would)
		helper = budget->helper;
	mrrc_lock_release(&budget->members_lock);
	return helper;
}
