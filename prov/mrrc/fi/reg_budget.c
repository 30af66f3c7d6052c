/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Selects the budget of the node (sys/node/budget.h) in which this process
 * takes part: a budget of registered bytes, or, for helper threads that
 * predict, a budget without a limit.
 */
#include "config.h"
#include <stdio.h>

#include "fi/mrrc_fi.h"
#include "fi/param.h"
#include "fi/say.h"
#include "sys/node/budget.h"
#include "sys/node/node_shm.h"
#include "sys/base/vm.h"
#include "fi/reg_budget.h"

/* Logs the one line about the node's segment */
static void reg_say_alone(int alone)
{
	static const char hint[] = "let XDG_RUNTIME_DIR name a directory of "
				   "this user with mode 0700, or remove what "
				   "is in the way";
	static atomic_bool said;
	const bool limited = mrrc_params.node_max_size != SIZE_MAX;
	const char *what = limited ? "FI_OFI_MRRC_NODE_MAX_SIZE: no budget is "
				     "shared with other processes, and this "
				     "one has a limit of its own" :
				     "FI_OFI_MRRC_HELPER_NODE: the helper "
				     "threads of other processes are not known";
	const char *why = mrrc_node_shm_why(alone);
	char path[64];

	if (!alone)
		return;
	mrrc_node_shm_path("/dev/shm", path, sizeof(path));
	if (!why)
		why = fi_strerror(-alone);
	if (limited)
		mrrc_say(&said, FI_LOG_MR, "%s: %s: %s; %s", what, path, why,
			 hint);
	else if (!atomic_exchange(&said, true))
		MRRC_WARN(MR, "%s: %s: %s; %s\n", what, path, why, hint);
}

int mrrc_reg_join(bool predicts, struct mrrc_budget **budget)
{
	struct mrrc_budget_attr attr = { .bytes = mrrc_params.node_max_size };
	struct mrrc_vm_limits limits;
	int ret, alone;

	*budget = NULL;
	if (mrrc_params.node_max_size == SIZE_MAX && !predicts)
		return 0;
	mrrc_vm_default_limits(&limits);
	attr.alone = limits.max_bytes;
	ret = mrrc_budget_join(&attr, budget, &alone);
	if (!ret)
		reg_say_alone(alone);
	return ret;
}

size_t mrrc_reg_budget_limit(const struct mrrc_reg *reg)
{
	const size_t locked = mrrc_vm_memlock();
	size_t bytes;

	if (!reg->budget || mrrc_params.cache_max_size != SIZE_MAX)
		return 0;
	bytes = mrrc_budget_limit(reg->budget);
	if (bytes == MRRC_BUDGET_NONE)
		return 0;
	if (locked != MRRC_VM_UNLIMITED && bytes > locked / 4 * 3)
		bytes = locked / 4 * 3;
	return bytes > mrrc_vm_page() ? bytes : mrrc_vm_page();
}
