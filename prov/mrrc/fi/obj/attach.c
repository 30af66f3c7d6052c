/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opens and closes the parts that a domain's registrations need (attach.h). */
#include "config.h"
#include "fi/measure.h"
#include "fi/obj/attach.h"
#include "fi/record/record.h"
#include "fi/record/stats_file.h"

void mrrc_attach(struct mrrc_reg *reg, struct fid_domain *core)
{
	struct mrrc_cost cost;

	mrrc_reg_attach(reg, core);
	if (reg->cache) {
		mrrc_measure_cost(reg, &cost);
		mrrc_reg_begin(reg, &cost);
	}
	mrrc_stats_file_add(reg);
	mrrc_record_open(reg);
}

void mrrc_detach(struct mrrc_reg *reg)
{
	mrrc_stats_file_close(reg);
	mrrc_reg_close(reg);
}
