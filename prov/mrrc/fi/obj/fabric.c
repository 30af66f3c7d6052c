/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fabric: the root of the wrapped objects.
 */
#include "config.h"
#include "fi/fid.h"
#include "fi/getinfo.h"
#include "fi/mrrc_fi.h"
#include "fi/names.h"
#include "fi/obj/obj.h"
#include "fi/obj/request.h"

static int fabric_close(struct fid *fid)
{
	struct mrrc_fabric *fabric =
		container_of(fid, struct mrrc_fabric, fabric.fid);
	int ret;

	if (mrrc_ref_busy(&fabric->ref))
		return -FI_EBUSY;
	ret = fi_close(&fabric->core->fid);
	if (ret)
		return ret;
	mrrc_requests_free(fabric);
	mrrc_mutex_fini(&fabric->track_lock);
	free(fabric->core_prov_name);
	free(fabric);
	return 0;
}

static struct fi_ops mrrc_fabric_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.bind = mrrc_fid_bind,
	.control = mrrc_fid_control,
	.ops_open = mrrc_fid_ops_open,
	.tostr = mrrc_fid_tostr,
	.ops_set = mrrc_fid_ops_set,
};

static int fabric_domain(struct fid_fabric *fabric, struct fi_info *info,
			 struct fid_domain **domain, void *context)
{
	return mrrc_domain_open2(fabric, info, domain, 0, context);
}

static struct fi_ops_fabric mrrc_fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = fabric_domain,
	.passive_ep = mrrc_pep_open,
	.eq_open = mrrc_eq_open,
	.wait_open = mrrc_wait_open,
	.trywait = mrrc_trywait,
	.domain2 = mrrc_domain_open2,
};

/*
 * Makes the core's attributes from the application's. If prov_name names no
 * core, ask which core has a fabric of this name.
 */
static int fabric_core_attr(const struct fi_fabric_attr *attr,
			    struct fi_info **core_info)
{
	struct fi_info *hints, *info;
	char *name;
	int ret;

	hints = fi_allocinfo();
	if (!hints)
		return -FI_ENOMEM;
	name = mrrc_prov_name_below(attr->prov_name);
	if (!name) {
		ret = -FI_ENOMEM;
		goto free_hints;
	}
	hints->fabric_attr->name = strdup(attr->name);
	if (!hints->fabric_attr->name) {
		free(name);
		ret = -FI_ENOMEM;
		goto free_hints;
	}
	hints->fabric_attr->prov_name = name;
	hints->fabric_attr->prov_version = attr->prov_version;
	hints->fabric_attr->api_version = attr->api_version;
	if (*name) {
		*core_info = hints;
		return 0;
	}

	hints->mode = ~0ULL;
	if (FI_VERSION_GE(attr->api_version, FI_VERSION(1, 5)))
		hints->domain_attr->mr_mode = MRRC_ALL_MR_MODES;
	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = strdup(MRRC_PROV_NAME);
	if (!hints->fabric_attr->prov_name) {
		ret = -FI_ENOMEM;
		goto free_hints;
	}
	ret = mrrc_getinfo_best(attr->api_version, hints, &info);
	if (ret)
		goto free_hints;
	info->fabric_attr->api_version = attr->api_version;
	*core_info = info;
	ret = 0;

free_hints:
	fi_freeinfo(hints);
	return ret;
}

int mrrc_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		     void *context)
{
	struct mrrc_fabric *fab;
	struct fi_info *core_info;
	int ret;

	/* libfabric 2.x may be asked to open a fabric that is open */
	if (attr->fabric)
		return -FI_EINVAL;

	ret = fabric_core_attr(attr, &core_info);
	if (ret)
		return ret;

	fab = calloc(1, sizeof(*fab));
	if (!fab) {
		ret = -FI_ENOMEM;
		goto err_info;
	}
	fab->core_prov_name = strdup(core_info->fabric_attr->prov_name);
	if (!fab->core_prov_name) {
		ret = -FI_ENOMEM;
		goto err_free;
	}
	ret = fi_fabric(core_info->fabric_attr, &fab->core, fab);
	if (ret) {
		MRRC_WARN(FABRIC,
			  "core provider %s cannot open fabric %s: "
			  "%s\n",
			  fab->core_prov_name, attr->name, fi_strerror(-ret));
		goto err_name;
	}

	mrrc_mutex_init(&fab->track_lock, MRRC_RANK_TRACK);
	fab->fabric.fid.fclass = FI_CLASS_FABRIC;
	fab->fabric.fid.context = context;
	fab->fabric.fid.ops = &mrrc_fabric_fid_ops;
	fab->fabric.ops = &mrrc_fabric_ops;
	fab->fabric.api_version = attr->api_version;
	fi_freeinfo(core_info);
	*fabric = &fab->fabric;
	return 0;

err_name:
	free(fab->core_prov_name);
err_free:
	free(fab);
err_info:
	fi_freeinfo(core_info);
	return ret;
}
