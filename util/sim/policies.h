/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The policies that the simulator knows by name: the provider's, and others for
 * comparison only.
 */
#ifndef SIM_POLICIES_H
#define SIM_POLICIES_H

#include "core/policy/policy.h"

extern const struct mrrc_policy_ops mrrc_policy_gdsf_ops;

/* the list ends with NULL */
extern const struct mrrc_policy_ops *const sim_policies[];

#endif /* SIM_POLICIES_H */
