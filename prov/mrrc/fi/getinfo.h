/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_getinfo(3), and queries to the core's. */
#ifndef MRRC_GETINFO_H
#define MRRC_GETINFO_H

#include "fi/mrrc_fi.h"

int mrrc_getinfo(uint32_t version, const char *node, const char *service,
		 uint64_t flags, const struct fi_info *hints,
		 struct fi_info **info);
/* The core's info for a fabric that was opened by "ofi_mrrc" alone. */
int mrrc_getinfo_best(uint32_t version, const struct fi_info *hints,
		      struct fi_info **info);
/*
 * Gets the info of this core's connected endpoints on the device of @app. @app
 * is the info of a datagram endpoint.
 */
int mrrc_getinfo_msg(uint32_t version, const struct fi_info *app,
		     const char *core_name, struct fi_info **info);
/*
 * Asks the core under fabric: does it require local descriptors (*local), and
 * which mr_mode? Does the core answer FI_THREAD_SAFE to this threading (*safe)?
 */
int mrrc_info_core_needs(const struct mrrc_fabric *fabric,
			 const struct fi_info *info, int *mr_mode, bool *local,
			 bool *safe);

#endif /* MRRC_GETINFO_H */
