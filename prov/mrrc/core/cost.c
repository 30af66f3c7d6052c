/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The cost models by name (cost.h).
 */
#include "config.h"
#include "core/cost.h"

#include <errno.h>
#include <string.h>

#define K4	4096u
#define M2	(2048u * 1024)

const struct mrrc_cost_model mrrc_cost_models[] = {
	/* Wu et al. 2003b, as ou2009 sections 5 and 8 quote it */
	{ "ou2009", "InfiniBand of 2003, batches save (ou2009, section 5)",
	  { 770, 7420, 220, 1100, 0, K4, true } },
	{ "ou2009-nobatch", "the same, where a batch saves nothing",
	  { 770, 7420, 220, 1100, 0, K4, false } },
	/*
	 * UCX's default for InfiniBand: 16 us + .06 ns a byte; it has none for
	 * deregistration, which is given the shares that ou2009 has.
	 */
	{ "ucx", "UCX's default for today's InfiniBand; no batches",
	  { 246, 16000, 70, 2400, 0, K4, false } },
	/*
	 * mietke2006, table 3: the line through the smallest and the largest
	 * buffer, pages not present; its overhead is within the error. No
	 * figure for deregistration: ou2009's shares again.
	 */
	{ "mietke2006", "pages of 4 KiB, not present (mietke2006, table 3)",
	  { 3534, 7420, 1010, 1100, 0, K4, false } },
	{ "mietke2006-huge", "the same in pages of 2 MiB",
	  { 1403000, 97000, 401000, 14400, 0, M2, false } },
	{ 0 },
};

const struct mrrc_cost *mrrc_cost_find(const char *name)
{
	const struct mrrc_cost_model *model;

	if (!name)
		name = MRRC_COST_DEFAULT;
	for (model = mrrc_cost_models; model->name; model++) {
		if (!strcmp(model->name, name))
			return &model->cost;
	}
	return NULL;
}

/* Finite, and not negative; written so that NaN fails. */
static bool mrrc_cost_sane(double ns)
{
	return ns >= 0 && ns < 1e15;
}

int mrrc_cost_check(const struct mrrc_cost *cost)
{
	if (!mrrc_cost_sane(cost->reg_page) || !mrrc_cost_sane(cost->reg) ||
	    !mrrc_cost_sane(cost->dereg_page) ||
	    !mrrc_cost_sane(cost->dereg) ||
	    !mrrc_cost_sane(cost->copy_page) || !cost->page ||
	    (cost->page & (cost->page - 1)))
		return -EINVAL;
	return 0;
}
