/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The cost of registering on a device, measured when the process opens the
 * first domain with a cache on the device, and known to the process from then
 * on.
 */
#ifndef MRRC_MEASURE_H
#define MRRC_MEASURE_H

#include "core/cost/cost.h"
#include "fi/reg.h"

/*
 * Sets the cost model by the parameter `cost`: a measured model, a given model,
 * or the default model if the measurement makes no sense. The core's domain is
 * open, and nothing else uses reg yet.
 */
void mrrc_measure_cost(struct mrrc_reg *reg, struct mrrc_cost *cost);

#endif /* MRRC_MEASURE_H */
