/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Entry point of the provider: libfabric loads us and calls fi_prov_ini().
 */
#include "config.h"
#include <stdio.h>

#include "mrrc_fi.h"

static void mrrc_cleanup(void)
{
}

/* libfabric writes to it: it must not be const */
struct fi_provider mrrc_prov = {
	.version = FI_VERSION(0, 1),
	.name = MRRC_PROV_NAME,
	.getinfo = mrrc_getinfo,
	.fabric = mrrc_fabric_open,
	.cleanup = mrrc_cleanup,
};

FI_EXT_INI
{
	uint32_t version = fi_version();

	/*
	 * A provider built for one major version does not understand the
	 * structures of another.
	 */
	if (FI_MAJOR(version) != FI_MAJOR_VERSION ||
	    FI_VERSION_LT(version, FI_VERSION(1, 17))) {
		fprintf(stderr, MRRC_PROV_NAME ": built for libfabric %d.x%s, "
			"but %d.%d loaded it: not used; rebuild with "
			"--with-libfabric\n", FI_MAJOR_VERSION,
			FI_MAJOR_VERSION == 1 ? " (1.17 or newer)" : "",
			FI_MAJOR(version), FI_MINOR(version));
		return NULL;
	}
	if (!mrrc_abi_bind()) {
		fprintf(stderr, MRRC_PROV_NAME ": libfabric %d.%d loaded it, "
			"and its fi_getinfo() cannot be found: not used\n",
			FI_MAJOR(version), FI_MINOR(version));
		return NULL;
	}
	mrrc_prov.fi_version = version;
	mrrc_params_init();
	return &mrrc_prov;
}
