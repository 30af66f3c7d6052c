/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Entry point of the provider: libfabric loads us and calls fi_prov_ini(). The
 * hooking provider calls mrrc_prov_ini(), from its own library (hook/hook.c).
 *
 * Only init.c may include all folders: init.c passes functions of a folder to
 * another folder that may not include the first.
 */
#include "config.h"
#include <stdio.h>

#include "fi/abi.h"
#include "fi/alloc/alloc.h"
#include "fi/cw/cw.h"
#include "fi/data/tables.h"
#include "fi/file/file.h"
#include "fi/getinfo.h"
#include "fi/hook/hook.h"
#include "fi/init.h"
#include "fi/obj/obj.h"
#include "fi/param.h"

static void mrrc_cleanup(void)
{
}

/* not const: libfabric writes to it */
struct fi_provider mrrc_prov = {
	.version = FI_MRRC_VERSION,
	.name = MRRC_PROV_NAME,
	.getinfo = mrrc_getinfo,
	.fabric = mrrc_fabric_open,
	.cleanup = mrrc_cleanup,
};

struct mrrc_reg *mrrc_reg_of(struct fid_domain *domain)
{
	struct mrrc_reg *reg = mrrc_domain_reg(domain);

	return reg ? reg : mrrc_hook_domain_reg(domain);
}

static void prov_init(void)
{
	mrrc_params_init();
	mrrc_alloc_set_own(&mrrc_domain_fid_ops);
	mrrc_recorded_init();
	mrrc_checked_init();
	mrrc_noted_init();
	mrrc_cw_calls_init();
	mrrc_file_calls_init();
	mrrc_process_init();
}

struct fi_provider *mrrc_prov_ini(struct fi_provider *prov)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint32_t version = fi_version();

	/*
	 * A provider built for one major version does not understand the
	 * structures of another.
	 */
	if (FI_MAJOR(version) != FI_MAJOR_VERSION ||
	    FI_VERSION_LT(version, FI_VERSION(1, 17))) {
		fprintf(stderr,
			"%s: built for libfabric %d.x%s, but %d.%d "
			"loaded it: not used; rebuild with --with-libfabric\n",
			prov->name, FI_MAJOR_VERSION,
			FI_MAJOR_VERSION == 1 ? " (1.17 or newer)" : "",
			FI_MAJOR(version), FI_MINOR(version));
		return NULL;
	}
	if (!mrrc_abi_bind()) {
		fprintf(stderr,
			"%s is not used: it cannot find fi_getinfo() of "
			"libfabric %d.%d, which loaded it\n",
			prov->name, FI_MAJOR(version), FI_MINOR(version));
		return NULL;
	}
	/*
	 * With the version of the headers that we were built with, libfabric
	 * would leave us out if an application asks for a newer API, as some do
	 * that ask for the library's own version. See attr.h.
	 */
	prov->fi_version = version;
	pthread_once(&once, prov_init);
	return prov;
}

/* libfabric calls fi_prov_ini(), and declares it nowhere */
struct fi_provider *fi_prov_ini(void);

FI_EXT_INI
{
	return mrrc_prov_ini(&mrrc_prov);
}
