/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls of libfabric whose symbol version depends on the size of the structures
 * in struct fi_info, bound to the versions of the libfabric that loaded the
 * provider.
 *
 * Linked as usual, the calls would have the versions of the libfabric that the
 * provider was built with. An older libfabric lacks these versions, and would
 * silently not load the provider; a newer libfabric keeps old versions for old
 * applications, and leaves out newer attributes. libfabric's structures grow at
 * their ends, so the provider can also use structures of a newer version.
 *
 * Only the provider finds the definitions below, before libfabric's.
 *
 * Threading: mrrc_abi_bind() runs once, before libfabric knows the provider.
 */
#include "config.h"
#include "fi/abi.h"
#include <dlfcn.h>

#include "fi/mrrc_fi.h"

static int (*abi_getinfo)(uint32_t version, const char *node,
			  const char *service, uint64_t flags,
			  const struct fi_info *hints, struct fi_info **info);
static void (*abi_freeinfo)(struct fi_info *info);
static struct fi_info *(*abi_dupinfo)(const struct fi_info *info);

bool mrrc_abi_bind(void)
{
	/* without a version, dlsym() finds the newest */
	*(void **) &abi_getinfo = dlsym(RTLD_DEFAULT, "fi_getinfo");
	*(void **) &abi_freeinfo = dlsym(RTLD_DEFAULT, "fi_freeinfo");
	*(void **) &abi_dupinfo = dlsym(RTLD_DEFAULT, "fi_dupinfo");
	return abi_getinfo && abi_freeinfo && abi_dupinfo;
}

int fi_getinfo(uint32_t version, const char *node, const char *service,
	       uint64_t flags, const struct fi_info *hints,
	       struct fi_info **info)
{
	return abi_getinfo(version, node, service, flags, hints, info);
}

void fi_freeinfo(struct fi_info *info)
{
	abi_freeinfo(info);
}

struct fi_info *fi_dupinfo(const struct fi_info *info)
{
	return abi_dupinfo(info);
}
