/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cost models by name (models.h).
 */
#include "config.h"
#include "sim/models.h"

#include <string.h>

#define K4 4096u
#define M2 (2048u * 1024)

const struct sim_cost_model sim_cost_models[] = {
	{ "ou2009", "InfiniBand of 2003, batches save (ou2009, section 5)",
	  MRRC_COST_OU2009 },
	{ "ou2009-nobatch",
	  "the same, where a batch saves nothing",
	  { 770, 7420, 220, 1100, 0, 0, K4, false } },
	/*
	 * UCX's default for InfiniBand: 16 us + .06 ns a byte. UCX has no cost
	 * of deregistration: the proportion is ou2009's.
	 */
	{ "ucx",
	  "UCX's default for today's InfiniBand; no batches",
	  { 246, 16000, 70, 2400, 0, 0, K4, false } },
	/*
	 * Published measurements, completed by UCX's overhead and ou2009's
	 * shares of deregistration. mlx5: 4 MiB registered and deregistered in
	 * 114.5 us (minio/minio-rs, pull request 236). EFA: 391 MB of host
	 * memory on 32 adapters in turn in 580 ms (kvcache-ai/Mooncake, 3210
	 * and 3219).
	 */
	{ "mlx5",
	  "mlx5: 4 MiB in 114.5 us; a call as UCX has it",
	  { 73, 16000, 21, 2400, 0, 0, K4, false } },
	{ "efa",
	  "EFA: 391 MB in 18 ms; a call as UCX has it",
	  { 190, 16000, 54, 2400, 0, 0, K4, false } },
	/*
	 * mietke2006, table 3: the line through the smallest and the largest
	 * buffer, pages not present; the line's overhead is smaller than its
	 * error. The paper has no figure for deregistration: the proportion is
	 * ou2009's.
	 */
	{ "mietke2006",
	  "pages of 4 KiB, not present (mietke2006, table 3)",
	  { 3534, 7420, 1010, 1100, 0, 0, K4, false } },
	{ "mietke2006-huge",
	  "the same in pages of 2 MiB",
	  { 1403000, 97000, 401000, 14400, 0, 0, M2, false } },
	/*
	 * fi_mrrc_reg_lat over raw verbs in the virtual machine, pages present:
	 * 9 sizes from 4 KiB to 16 MiB, medians of three runs. The machine is
	 * emulated: use this model only for measurements made on that machine.
	 */
	{ "rxe",
	  "Soft-RoCE in an emulated guest, measured",
	  { 370, 56000, 120, 24000, 1500, 0, K4, false } },
	{ 0 },
};

int sim_cost_parse(const char *text, struct mrrc_cost *cost)
{
	const struct sim_cost_model *model;

	for (model = sim_cost_models; model->name; model++) {
		if (!strcmp(model->name, text)) {
			*cost = model->cost;
			return 0;
		}
	}
	return mrrc_cost_parse(text, cost);
}
