/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_sim --list (options.h).
 */
#include "config.h"
#include "sim/options.h"

#include <stdio.h>

#include "sim/gen.h"
#include "sim/libfabric.h"
#include "sim/models.h"
#include "sim/policies.h"
#include "sys/observe/cost_file.h"

static void list_policies(void)
{
	const struct mrrc_policy_ops *const *ops;
	const struct mrrc_policy_param *param;
	int i;

	printf("Policies (all have pieces, 1 to %d; batch, 1 to 65536; and "
	       "merge, 0 or 1):\n",
	       MRRC_PIECES_MAX);
	for (ops = sim_policies; *ops; ops++) {
		printf("  %-10s %s\n%13spieces=%zu, batch=%zu, merge=%zu\n",
		       (*ops)->name, (*ops)->help, "", (*ops)->pieces,
		       (*ops)->batch, (*ops)->merge);
		for (i = 0; i < MRRC_POLICY_PARAMS; i++) {
			param = &(*ops)->param[i];
			if (param->name)
				printf("%13s%s=%zu, %zu to %zu: %s\n", "",
				       param->name, param->value, param->min,
				       param->max, param->help);
		}
	}
	printf("  %-10s registered for each request, and then gone\n"
	       "  %-10s libfabric's own cache, of %d regions; %s: of any\n"
	       "  %-10s allocated by fi_mr_alloc: blocks, registered once\n"
	       "  %-10s all memory registered once, at the start\n"
	       "  %-10s a heuristic that knows the future\n"
	       "  %-10s the lower bound of all policies\n",
	       SIM_NAME_NONE, SIM_NAME_LF, SIM_LF_COUNT, SIM_NAME_LF_ALL,
	       SIM_NAME_ALLOC, SIM_NAME_STATIC, SIM_NAME_OFFLINE,
	       SIM_NAME_BOUND);
}

void sim_options_list(void)
{
	const struct sim_cost_model *model;
	const struct sim_gen *gen;
	size_t i;

	list_policies();
	printf("Models (ns: a page and a call to register, the same to "
	       "deregister):\n");
	for (model = sim_cost_models; model->name; model++)
		printf("  %-16s %s\n%19s%g, %g; %g, %g\n", model->name,
		       model->help, "", model->cost.reg_page, model->cost.reg,
		       model->cost.dereg_page, model->cost.dereg);
	printf("  %-16s what the provider went by when the trace was "
	       "recorded\n  %-16s what fi_mrrc_prof saved there\n",
	       SIM_MODEL_TRACE, MRRC_COST_FILE "PATH");
	printf("Generators:\n");
	for (i = 0; (gen = sim_gen_at(i)); i++)
		printf("  %-10s %s\n", gen->name, gen->help);
}
