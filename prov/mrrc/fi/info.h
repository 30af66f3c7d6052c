/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Conversion of struct fi_info to and from the core's, and queries about it. */
#ifndef MRRC_INFO_H
#define MRRC_INFO_H

#include "fi/mrrc_fi.h"

/*
 * Capabilities that the provider does not offer, even if the core has them:
 * objects of a GPU (obj/xpu.c); and triggered operations, whose contexts name
 * the application's counters, which the core would take for its own.
 */
#define MRRC_CAPS_NEVER (FI_XPU | FI_TRIGGER)

/* The caller's hints as the core should see them; freed with fi_freeinfo() */
struct fi_info *mrrc_hints_to_core(uint32_t version,
				   const struct fi_info *hints,
				   const char *below);
/*
 * Returns a copy of an application's info for the core, which the caller frees
 * with fi_freeinfo(). domain is NULL if no domain is open yet.
 */
int mrrc_info_to_core(const struct mrrc_domain *domain,
		      const struct mrrc_fabric *fabric,
		      const struct fi_info *info, struct fi_info **core_info);
/*
 * Tells the core that local memory is registered (FI_MR_LOCAL). The old mode
 * bit goes with every mr_mode, the new mode bit only where mr_mode is a set of
 * bits.
 */
void mrrc_info_add_local(struct fi_info *core);
/* Changes the core's info in place into what the application sees. */
void mrrc_info_from_core(struct fi_info *info);
/* Returns mr_mode, with FI_MR_BASIC and FI_MR_SCALABLE as the bits they mean. */
int mrrc_info_mr_bits(int mr_mode);
/* Is the core's domain opened for calls from any thread? */
bool mrrc_info_thread_safe(const struct fi_info *info);

#endif /* MRRC_INFO_H */
