/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The hooking provider's entry, and fabrics: libfabric shows us every fabric
 * that is opened, by an application or by another provider.
 *
 * Utility providers (ofi_*, off_*) are left alone: their registrations reach
 * the core below them, which is hooked as well.
 *
 * libhook_mrrc-fi.so only calls mrrc_hook_ini(): both providers are one
 * library, so that a process has one monitor and each provider knows of the
 * other.
 */
#include "config.h"
#include <dlfcn.h>

#include "fi/hook/hook.h"
#include "fi/import.h"
#include "fi/init.h"

#define MRRC_HOOK_NAME "ofi_hook_mrrc"

void *mrrc_hook_table(const void *table, size_t size, void *owner)
{
	char *block = malloc(2 * sizeof(void *) + size);

	if (!block)
		return NULL;
	block += 2 * sizeof(void *);
	memcpy(block, table, size);
	((void **) block)[-1] = owner;
	return block;
}

void mrrc_hook_table_free(void *table)
{
	if (table)
		free((char *) table - 2 * sizeof(void *));
}

/* Was the domain opened by libfabric itself or by another provider? */
static bool hook_by_provider(const void *from)
{
	Dl_info caller, libfabric;
	size_t len;

	if (!dladdr(from, &caller) || !dladdr(fi_version, &libfabric))
		return false;
	if (caller.dli_fbase == libfabric.dli_fbase)
		return true;
	len = strlen(caller.dli_fname);
	return len >= strlen(FI_LIB_SUFFIX) &&
	       !strcmp(caller.dli_fname + len - strlen(FI_LIB_SUFFIX),
		       FI_LIB_SUFFIX);
}

static int hook_domain(struct mrrc_hook_fabric *fabric, struct fi_info *info,
		       struct fid_domain **domain, uint64_t flags,
		       void *context, const void *from)
{
	bool ours = !mrrc_core_opening() &&
		    mrrc_hook_domain_wanted(info, flags);
	int ret;

	if (ours)
		mrrc_core_open_begin(mrrc_hook_domain_local(info));
	ret = flags ? fabric->fabric_ops->domain2(fabric->core, info, domain,
						  flags, context) :
		      fabric->fabric_ops->domain(fabric->core, info, domain,
						 context);
	if (!ours)
		return ret;
	mrrc_core_open_end();
	/* a domain that cannot be hooked works as without us */
	if (!ret && mrrc_hook_domain_install(fabric, info, *domain,
					     hook_by_provider(from)))
		MRRC_WARN(DOMAIN, "%s: registrations are not cached\n",
			  fabric->core_name);
	return ret;
}

static int hook_fabric_domain(struct fid_fabric *core, struct fi_info *info,
			      struct fid_domain **domain, void *context)
{
	return hook_domain(mrrc_hook_owner(core->ops), info, domain, 0, context,
			   __builtin_return_address(0));
}

static int hook_fabric_domain2(struct fid_fabric *core, struct fi_info *info,
			       struct fid_domain **domain, uint64_t flags,
			       void *context)
{
	return hook_domain(mrrc_hook_owner(core->ops), info, domain, flags,
			   context, __builtin_return_address(0));
}

static int hook_fabric_close(struct fid *fid)
{
	struct mrrc_hook_fabric *fabric = mrrc_hook_owner(fid->ops);
	struct fid_fabric *core = fabric->core;
	struct fi_ops *fid_ops = core->fid.ops;
	struct fi_ops_fabric *ops = core->ops;
	int ret;

	core->fid.ops = fabric->fid_ops;
	core->ops = fabric->fabric_ops;
	ret = fi_close(&core->fid);
	if (ret) {
		core->fid.ops = fid_ops;
		core->ops = ops;
		return ret;
	}
	mrrc_hook_table_free(fid_ops);
	mrrc_hook_table_free(ops);
	free(fabric);
	return 0;
}

static bool hook_has_prefix(const char *name, const char *prefix)
{
	return !strncasecmp(name, prefix, strlen(prefix));
}

static int hook_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out,
		       void *context)
{
	const struct fi_provider *core_prov = context;
	struct fid_fabric *core = attr->fabric;
	struct mrrc_hook_fabric *fabric;
	struct fi_ops_fabric *ops;
	struct fi_ops *fid_ops;

	if (hook_has_prefix(core_prov->name, "ofi_") ||
	    hook_has_prefix(core_prov->name, "off_") ||
	    core->fid.ops->close == hook_fabric_close)
		return -FI_EINVAL; /* libfabric continues without us */

	fabric = calloc(1, sizeof(*fabric));
	if (!fabric)
		return -FI_ENOMEM;
	fid_ops = mrrc_hook_table(core->fid.ops, core->fid.ops->size, fabric);
	ops = mrrc_hook_table(core->ops, core->ops->size, fabric);
	if (!fid_ops || !ops) {
		mrrc_hook_table_free(fid_ops);
		mrrc_hook_table_free(ops);
		free(fabric);
		return -FI_ENOMEM;
	}
	fabric->core = core;
	fabric->core_name = core_prov->name;
	fabric->fid_ops = core->fid.ops;
	fabric->fabric_ops = core->ops;
	fid_ops->close = hook_fabric_close;
	ops->domain = hook_fabric_domain;
	if (FI_CHECK_OP(core->ops, struct fi_ops_fabric, domain2))
		ops->domain2 = hook_fabric_domain2;
	core->fid.ops = fid_ops;
	core->ops = ops;
	*out = core;
	return 0;
}

static void hook_cleanup(void)
{
}

/* not const: libfabric writes to it */
static struct fi_provider hook_prov = {
	.version = FI_MRRC_VERSION,
	.name = MRRC_HOOK_NAME,
	.getinfo = NULL, /* which makes it a hook */
	.fabric = hook_fabric,
	.cleanup = hook_cleanup,
};

struct fi_provider *mrrc_hook_ini(void)
{
	return mrrc_prov_ini(&hook_prov);
}
