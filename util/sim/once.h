/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Simulates memory that is registered once, before its first use, and stays
 * registered.
 */
#ifndef SIM_ONCE_H
#define SIM_ONCE_H

#include "sim/engine.h"

/*
 * Registers the pages that the trace touches: each extent by itself, or, with
 * @blocks, as if fi_mr_alloc(3) had allocated each extent. Returns -ENOMEM or
 * -EINVAL.
 */
int sim_once_run(const struct sim_cell *cell, bool blocks,
		 struct sim_result *result);

#endif /* SIM_ONCE_H */
