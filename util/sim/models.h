/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cost models by name, published and measured.
 */
#ifndef SIM_MODELS_H
#define SIM_MODELS_H

#include "core/cost/cost.h"

#define SIM_MODEL_DEFAULT "ou2009"

struct sim_cost_model {
	const char *name;
	const char *help;
	struct mrrc_cost cost;
};

/* The list of models, which ends with an entry without a name. */
extern const struct sim_cost_model sim_cost_models[];

/*
 * Parses the name of a model, or a text for mrrc_cost_parse(). Returns -EINVAL
 * for other text.
 */
int sim_cost_parse(const char *text, struct mrrc_cost *cost);

#endif /* SIM_MODELS_H */
