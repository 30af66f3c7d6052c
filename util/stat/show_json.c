/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A sample as JSON (stat/show.h). Names are those of FI_OFI_MRRC_STATS_FILE.
 */
#include "config.h"
#include "stat/show.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "out.h"

/* JSON has no unsigned numbers; no counter gets that large. */
static json_t *number(uint64_t value)
{
	return json_integer(value < INT64_MAX ? (json_int_t) value : INT64_MAX);
}

static json_t *counters(const struct stat_segment *segment)
{
	json_t *object = json_object();
	int ret = object ? 0 : -1;
	size_t i;

	for (i = 0; !ret && i < segment->counters; i++)
		ret = json_object_set_new(object, segment->counter[i].name,
					  number(segment->counter[i].value));
	if (ret)
		json_decref(object);
	return ret ? NULL : object;
}

static json_t *domain(const struct stat_domain *domain)
{
	const struct stat_segment *segment = &domain->segment;

	return json_pack("{s:i, s:s, s:f, s:s, s:s, s:s, s:s*, s:s*, s:b, s:o, "
			 "s:o, s:o}",
			 "pid", (int) domain->pid, "command", domain->command,
			 "opened", segment->opened * 1e-9, "provider",
			 segment->provider, "policy", segment->policy,
			 "monitor", segment->monitor, "asks",
			 segment->says_asks ? segment->asks : NULL, "lacks",
			 segment->says_lacks ? segment->lacks : NULL,
			 "registers", segment->registers, "max_bytes",
			 number(segment->max_bytes), "max_regions",
			 number(segment->max_regions), "counters",
			 counters(segment));
}

int stat_show_json(const struct stat_sample *sample, FILE *out)
{
	json_t *array = json_array();
	char *text = NULL;
	int ret = array ? 0 : -1;
	size_t i;

	for (i = 0; !ret && i < sample->domains; i++)
		ret = json_array_append_new(array, domain(&sample->domain[i]));
	if (!ret)
		text = json_dumps(array, JSON_REAL_PRECISION(16));
	json_decref(array);
	if (!text)
		return -ENOMEM;
	fprintf(out, "%s\n", text);
	free(text);
	return out_flush(out);
}
