/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The cost models by name (cost.h).
 */
#include "config.h"
#include "core/cost/cost.h"

#include <errno.h>
#include <string.h>

#define K4 4096u
#define M2 (2048u * 1024)

#define MRRC_COST_LINE 256 /* a longer text is not a model */

const struct mrrc_cost_model mrrc_cost_models[] = {
	/* Wu et al. 2003b, as ou2009 sections 5 and 8 quote it */
	{ "ou2009",
	  "InfiniBand of 2003, batches save (ou2009, section 5)",
	  { 770, 7420, 220, 1100, 0, 0, K4, true } },
	{ "ou2009-nobatch",
	  "the same, where a batch saves nothing",
	  { 770, 7420, 220, 1100, 0, 0, K4, false } },
	/*
	 * UCX's default for InfiniBand: 16 us + .06 ns a byte. UCX has no cost
	 * of deregistration: it is set in the proportion that ou2009 has.
	 */
	{ "ucx",
	  "UCX's default for today's InfiniBand; no batches",
	  { 246, 16000, 70, 2400, 0, 0, K4, false } },
	/*
	 * Published points, with UCX's overhead and ou2009's shares of
	 * deregistration. mlx5: 4 MiB registered and deregistered in 114.5 us
	 * (minio/minio-rs, pull request 236). EFA: 391 MB of host memory on 32
	 * adapters in turn in 580 ms (kvcache-ai/Mooncake, 3210 and 3219).
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
	 * error. The paper has no figure for deregistration, which is set in
	 * the proportion that ou2009 has.
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
	 * emulated: use the model for measurements made on it alone.
	 */
	{ "rxe",
	  "Soft-RoCE in an emulated guest, measured",
	  { 370, 56000, 120, 24000, 1500, 0, K4, false } },
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
static bool cost_sane(double ns)
{
	return ns >= 0 && ns < 1e15;
}

int mrrc_cost_check(const struct mrrc_cost *cost)
{
	if (!cost_sane(cost->reg_page) || !cost_sane(cost->reg) ||
	    !cost_sane(cost->dereg_page) || !cost_sane(cost->dereg) ||
	    !cost_sane(cost->copy_page) || !cost_sane(cost->copy) ||
	    !cost->page || (cost->page & (cost->page - 1)))
		return -EINVAL;
	return 0;
}

/*
 * Reads digits, and perhaps a point and more digits; returns the end of the
 * number.
 */
static const char *cost_number(const char *text, double *out)
{
	double value = 0, unit = 1;
	size_t digits = 0;

	for (; *text >= '0' && *text <= '9'; text++, digits++)
		value = value * 10 + (*text - '0');
	if (*text == '.') {
		for (text++; *text >= '0' && *text <= '9'; text++, digits++)
			value += (*text - '0') * (unit /= 10);
	}
	if (!digits)
		return NULL;
	*out = value;
	return text;
}

int mrrc_cost_parse(const char *text, struct mrrc_cost *out)
{
	struct mrrc_cost cost = { 0 };
	double page = K4, batch = 0;
	const struct {
		const char *key;
		double *value;
	} keys[] = {
		{ "reg_page=", &cost.reg_page },
		{ "reg=", &cost.reg },
		{ "dereg_page=", &cost.dereg_page },
		{ "dereg=", &cost.dereg },
		{ "copy_page=", &cost.copy_page },
		{ "copy=", &cost.copy },
		{ "page=", &page },
		{ "batch=", &batch },
	};
	const size_t count = sizeof(keys) / sizeof(keys[0]);
	const struct mrrc_cost *known = mrrc_cost_find(text);
	unsigned seen = 0;
	size_t i, len;

	if (known) {
		*out = *known;
		return 0;
	}
	do {
		for (i = 0; i < count; i++) {
			len = strlen(keys[i].key);
			if (!strncmp(text, keys[i].key, len))
				break;
		}
		if (i == count || (seen & 1u << i))
			return -EINVAL;
		seen |= 1u << i;
		text = cost_number(text + len, keys[i].value);
	} while (text && *text++ == ':');
	/* the first four are required */
	if (!text || text[-1] || (seen & 15) != 15 || page >= 1ULL << 40 ||
	    (batch != 0 && batch != 1))
		return -EINVAL;
	cost.page = (size_t) page;
	cost.batch = batch != 0;
	if (mrrc_cost_check(&cost))
		return -EINVAL;
	*out = cost;
	return 0;
}

int mrrc_cost_parse_file(const char *text, struct mrrc_cost *out)
{
	struct mrrc_cost cost;
	char line[MRRC_COST_LINE];
	bool seen = false;
	size_t len;

	for (; *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		if (!len || *text == '#')
			continue;
		if (seen || len >= sizeof(line))
			return -EINVAL;
		memcpy(line, text, len);
		line[len] = '\0';
		if (mrrc_cost_parse(line, &cost))
			return -EINVAL;
		seen = true;
	}
	if (!seen)
		return -EINVAL;
	*out = cost;
	return 0;
}
