/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cost models in numbers (cost.h).
 */
#include "config.h"
#include "core/cost/cost.h"

#include <errno.h>
#include <string.h>

#define K4 4096u

#define MRRC_COST_LINE 256 /* a longer text is not a model */

const struct mrrc_cost mrrc_cost_default = MRRC_COST_OU2009;

/* Is the time finite, and not negative? The comparison fails for NaN. */
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
	unsigned seen = 0;
	size_t i, len;

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
	/* the first four costs are required */
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
