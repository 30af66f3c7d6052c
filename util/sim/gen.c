/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table of generators (gen.h).
 */
#include "config.h"
#include "sim/gen.h"

#include <string.h>

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
