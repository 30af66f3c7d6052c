/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table of generators (gen.h).
 */
#include "config.h"
#include "sim/gen.h"

#include <errno.h>
#include <string.h>

#include "core/text/text.h"

static const struct sim_gen *const gens[] = {
	&sim_gen_cello,
	&sim_gen_httpd,
	&sim_gen_nas,
	&sim_gen_kv,
};

const struct sim_gen *sim_gen_at(size_t i)
{
	return i < sizeof(gens) / sizeof(gens[0]) ? gens[i] : NULL;
}

const struct sim_gen *sim_gen_find(const char *name)
{
	const struct sim_gen *gen;
	size_t i;

	for (i = 0; (gen = sim_gen_at(i)); i++) {
		if (!strcmp(gen->name, name))
			return gen;
	}
	return NULL;
}

#define GEN_REQUESTS_MAX 1000000000 /* 48 GB */

int sim_gen_spec(const char *spec, struct sim_trace *trace)
{
	char name[64], *rest = name, *part;
	const struct sim_gen *gen;
	size_t seed = 1, requests = 0;
	int ret = 0;

	if (strlen(spec) >= sizeof(name))
		return -EINVAL;
	strcpy(name, spec);
	gen = sim_gen_find(strsep(&rest, ":"));
	if (!gen)
		return -ENOENT;
	while (!ret && (part = strsep(&rest, ":"))) {
		if (!strncmp(part, "seed=", 5))
			ret = mrrc_text_count(part + 5, &seed);
		else if (!strncmp(part, "requests=", 9) &&
			 !mrrc_text_count(part + 9, &requests) && requests &&
			 requests <= GEN_REQUESTS_MAX)
			ret = 0;
		else
			ret = -EINVAL;
	}
	return ret ? -EINVAL : gen->make(seed, requests, trace);
}
