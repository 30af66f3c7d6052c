/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo(): offers what the core provider offers, without FI_MR_LOCAL; and
 * the queries that the provider itself makes to the core.
 *
 * The provider answers only if hints->fabric_attr->prov_name or FI_PROVIDER
 * names the provider (names.h). Any thread.
 */
#include "config.h"
#include "fi/getinfo.h"
#include "fi/below.h"
#include "fi/info.h"
#include "fi/names.h"

/* Does libfabric order the core's reliable datagrams specially? */
static bool mrrc_reorders(const char *core, const struct fi_info *hints)
{
	return (!strcasecmp(core, "tcp") || !strcasecmp(core, "net")) &&
	       (!hints->ep_attr || hints->ep_attr->type == FI_EP_UNSPEC);
}

/*
 * Moves the core's infos of reliable datagrams to their place, since libfabric
 * does not order these lists: before those of ofi_rxm over the core, else to
 * the end. ("net" in 1.x and "tcp" in 2.x have such infos; the "tcp" of 1.x has
 * none.)
 */
static void reorder(const char *core, struct fi_info **list)
{
	struct fi_info *info, *rdm = NULL, **last = &rdm, **next = list;
	size_t len = strlen(core);

	while ((info = *next)) {
		if (info->ep_attr->type != FI_EP_RDM ||
		    strcasecmp(info->fabric_attr->prov_name, core)) {
			next = &info->next;
			continue;
		}
		*next = info->next;
		info->next = NULL;
		*last = info;
		last = &info->next;
	}
	while (*list &&
	       (strncasecmp((*list)->fabric_attr->prov_name, core, len) ||
		strcasecmp((*list)->fabric_attr->prov_name + len, ";ofi_rxm")))
		list = &(*list)->next;
	*last = *list;
	*list = rdm;
}

static void drop_others(const char *name, struct fi_info **list)
{
	struct fi_info *info;

	while ((info = *list)) {
		if (!strcasecmp(info->fabric_attr->prov_name, name)) {
			list = &info->next;
			continue;
		}
		*list = info->next;
		info->next = NULL;
		fi_freeinfo(info);
	}
}

/*
 * Gets the infos of a stack of providers, in the order that an application gets
 * if it names the stack without us. If the order depends on ofi_rxm's answer,
 * ofi_rxm is asked, too.
 */
static int getinfo_ordered(uint32_t version, const char *node,
			   const char *service, uint64_t flags,
			   const struct fi_info *hints, const char *below,
			   bool hidden, struct fi_info **info)
{
	bool reorders = mrrc_reorders(below, hints);
	int ret;

	if (strchr(below, ';'))
		flags |= MRRC_GETINFO_INTERNAL;
	else if (!reorders)
		flags |= MRRC_GETINFO_CORE_ONLY;
	if (hidden)
		flags |= MRRC_GETINFO_HIDDEN;
	ret = fi_getinfo(version, node, service, flags, hints, info);
	if (ret || !reorders)
		return ret;
	if (hidden)
		reorder(below, info);
	drop_others(below, info);
	return *info ? 0 : -FI_ENODATA;
}

/* Asks the providers below for one name; appends their infos to *list. */
static int getinfo_below(uint32_t version, const char *node,
			 const char *service, uint64_t flags,
			 const struct fi_info *hints, const char *below,
			 bool hidden, struct fi_info **list)
{
	struct fi_info *core_hints, *info, *cur;
	enum fi_threading threading = FI_THREAD_UNSPEC;
	struct fid *core_handle;
	int ret;

	core_hints = mrrc_hints_to_core(version, hints, below);
	if (!core_hints)
		return -FI_ENOMEM;
	core_handle = core_hints->handle;

	ret = getinfo_ordered(version, node, service, flags, core_hints, below,
			      hidden, &info);
	fi_freeinfo(core_hints);
	if (ret)
		return ret;

	if (hints && hints->domain_attr)
		threading = hints->domain_attr->threading;
	for (cur = info; cur; cur = cur->next) {
		mrrc_info_from_core(cur);
		if (threading != FI_THREAD_UNSPEC && cur->domain_attr &&
		    cur->domain_attr->threading == FI_THREAD_SAFE)
			cur->domain_attr->threading = threading;
		if (hints && cur->handle == core_handle)
			cur->handle = hints->handle;
		if (cur->fabric_attr)
			cur->fabric_attr->fabric = NULL;
		if (cur->domain_attr)
			cur->domain_attr->domain = NULL;
	}

	while (*list)
		list = &(*list)->next;
	*list = info;
	return 0;
}

static bool any_rdm(const struct fi_info *info)
{
	while (info && info->ep_attr->type != FI_EP_RDM)
		info = info->next;
	return info;
}

/* Asks a core, and the first of its group that has reliable datagrams. */
static void getinfo_group(uint32_t version, const char *node,
			  const char *service, uint64_t flags,
			  const struct fi_info *hints, bool hidden,
			  const char *const *group, struct fi_info **list)
{
	struct fi_info *more;
	size_t i;

	getinfo_below(version, node, service, flags, hints, group[0], hidden,
		      list);
	for (i = 1; i < MRRC_ALONE_MAX && group[i]; i++) {
		if (any_rdm(*list))
			return;
		/* ofi_rxm does not find a core that FI_PROVIDER leaves out */
		if (hidden && strchr(group[i], ';'))
			continue;
		more = NULL;
		getinfo_below(version, node, service, flags, hints, group[i],
			      hidden, &more);
		while (*list)
			list = &(*list)->next;
		*list = more;
	}
}

static int getinfo_alone(uint32_t version, const char *node,
			 const char *service, uint64_t flags,
			 const struct fi_info *hints, bool hidden,
			 struct fi_info **list)
{
	struct fi_info *found = NULL, *any = NULL;
	size_t i;

	for (i = 0; !found && i < MRRC_ALONE_CNT; i++) {
		getinfo_group(version, node, service, flags, hints, hidden,
			      mrrc_alone[i], &found);
		if (found || !hidden || !hints || !hints->ep_attr ||
		    hints->ep_attr->type != FI_EP_RDM)
			continue;
		getinfo_below(version, NULL, NULL, 0, NULL, mrrc_alone[i][0],
			      hidden, &any);
		if (!any)
			continue;
		/* no answer is better than a slower network, unnoticed */
		if (mrrc_alone[i][1] && strchr(mrrc_alone[i][1], ';'))
			MRRC_WARN(CORE,
				  "for reliable datagrams over %s, "
				  "FI_PROVIDER must name all providers: "
				  "\"%s;" MRRC_PROV_NAME "\"\n",
				  mrrc_alone[i][0], mrrc_alone[i][1]);
		fi_freeinfo(any);
		return -FI_ENODATA;
	}
	if (!found)
		return -FI_ENODATA;
	while (*list)
		list = &(*list)->next;
	*list = found;
	return 0;
}

/*
 * Lets infos pass libfabric's filter for FI_PROVIDER="ofi_mrrc", which compares
 * whole names: if the name is NULL, libfabric sets our name alone.
 */
static void info_name_alone(struct fi_info *info)
{
	for (; info; info = info->next) {
		mrrc_fabric_name_mark(info->fabric_attr);
		free(info->fabric_attr->prov_name);
		info->fabric_attr->prov_name = NULL;
	}
}

int mrrc_getinfo(uint32_t version, const char *node, const char *service,
		 uint64_t flags, const struct fi_info *hints,
		 struct fi_info **info)
{
	static _Thread_local bool inside
		__attribute__((tls_model("initial-exec")));
	struct mrrc_names names;
	struct fi_info *list = NULL;
	size_t i;
	int ret, err = -FI_ENODATA;

	if (inside || (hints && hints->caps & MRRC_CAPS_NEVER))
		return -FI_ENODATA;

	ret = mrrc_names_init(&names, hints);
	if (ret)
		return ret;

	inside = true;
	for (i = 0; i < names.cnt; i++) {
		if (*names.below[i]) {
			ret = getinfo_below(version, node, service, flags,
					    hints, names.below[i], names.only,
					    &list);
		} else {
			ret = getinfo_alone(version, node, service, flags,
					    hints, names.only, &list);
		}
		if (ret) {
			err = ret;
			MRRC_INFO(CORE,
				  "core provider \"%s\" offers nothing: "
				  "%s\n",
				  names.below[i], fi_strerror(-ret));
		}
	}
	inside = false;
	if (list && names.alone)
		info_name_alone(list);
	if (!names.cnt)
		return -FI_ENODATA; /* our name is not asked for */
	if (!list)
		MRRC_WARN(CORE,
			  "no core provider matched \"%s\": check "
			  "FI_PROVIDER and the hints, and that a device is "
			  "present (fi_info -l lists providers, fi_info -p "
			  "NAME the domains of one)\n",
			  *names.below[0] ? names.below[0] : MRRC_PROV_NAME);
	mrrc_names_fini(&names);
	if (!list)
		return err;
	*info = list;
	return 0;
}

int mrrc_getinfo_best(uint32_t version, const struct fi_info *hints,
		      struct fi_info **info)
{
	const char *below;
	char *name;
	size_t i;
	int ret = -FI_ENODATA;

	name = strdup(hints->fabric_attr->name);
	if (!name)
		return -FI_ENOMEM;
	below = mrrc_fabric_name_split(name);
	*info = NULL;
	if (below)
		ret = getinfo_below(version, NULL, NULL, 0, hints, below, true,
				    info);
	for (i = 0; !below && ret && i < MRRC_ALONE_CNT; i++)
		ret = getinfo_below(version, NULL, NULL, 0, hints,
				    mrrc_alone[i][0], true, info);
	free(name);
	return ret;
}

int mrrc_getinfo_msg(uint32_t version, const struct fi_info *app,
		     const char *core_name, struct fi_info **info)
{
	struct fi_info *hints = fi_allocinfo();
	int ret = -FI_ENOMEM;

	*info = NULL;
	if (!hints)
		return ret;
	/* memory of devices is not copied */
	hints->caps = FI_MSG | FI_RMA | (app->caps & FI_HMEM);
	hints->mode = FI_CONTEXT | FI_CONTEXT2 | FI_RX_CQ_DATA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->addr_format = app->addr_format;
	if (FI_VERSION_GE(version, FI_VERSION(1, 5)))
		hints->domain_attr->mr_mode =
			FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
			(app->caps & FI_HMEM ? FI_MR_HMEM : 0);
	if (app->domain_attr->name) {
		hints->domain_attr->name = strdup(app->domain_attr->name);
		if (!hints->domain_attr->name)
			goto out;
	}
	if (app->src_addr) {
		hints->src_addr = malloc(app->src_addrlen);
		if (!hints->src_addr)
			goto out;
		memcpy(hints->src_addr, app->src_addr, app->src_addrlen);
		hints->src_addrlen = app->src_addrlen;
	}
	ret = getinfo_below(version, NULL, NULL, 0, hints, core_name, true,
			    info);
out:
	fi_freeinfo(hints);
	return ret;
}

int mrrc_info_core_needs(const struct mrrc_fabric *fabric,
			 const struct fi_info *info, int *mr_mode, bool *local,
			 bool *safe)
{
	uint32_t version = fabric->fabric.api_version;
	struct fi_info *hints, *core;
	uint64_t flags;
	int ret;

	/*
	 * The application's info had FI_MR_LOCAL removed and its own threading
	 * set, and may have been made by hand: only the core knows the core's
	 * needs. So the core is asked with the weakest hints for the same
	 * domain.
	 */
	hints = fi_allocinfo();
	if (!hints)
		return -FI_ENOMEM;
	hints->mode = ~0ULL;
	if (FI_VERSION_GE(version, FI_VERSION(1, 5)))
		hints->domain_attr->mr_mode = MRRC_ALL_MR_MODES;
	hints->ep_attr->type = info->ep_attr ? info->ep_attr->type : 0;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	if (info->domain_attr) {
		hints->domain_attr->data_progress =
			info->domain_attr->data_progress;
		if (info->domain_attr->name)
			hints->domain_attr->name =
				strdup(info->domain_attr->name);
	}
	hints->fabric_attr->prov_name = strdup(fabric->core_prov_name);
	if (!hints->fabric_attr->prov_name) {
		ret = -FI_ENOMEM;
		goto out;
	}

	flags = MRRC_GETINFO_HIDDEN |
		(mrrc_below(fabric->core_prov_name) & MRRC_BELOW_LAYERED ?
			 MRRC_GETINFO_INTERNAL :
			 MRRC_GETINFO_CORE_ONLY);
	ret = fi_getinfo(version, NULL, NULL, flags, hints, &core);
	if (ret == -FI_ENODATA) {
		/* cores open a domain whatever else the info asks for */
		hints->ep_attr->type = FI_EP_UNSPEC;
		hints->domain_attr->data_progress = FI_PROGRESS_UNSPEC;
		ret = fi_getinfo(version, NULL, NULL, flags, hints, &core);
	}
	if (ret) {
		MRRC_WARN(DOMAIN,
			  "core provider %s does not know domain %s: "
			  "%s\n",
			  fabric->core_prov_name,
			  hints->domain_attr->name ? hints->domain_attr->name :
						     "(unnamed)",
			  fi_strerror(-ret));
		goto out;
	}
	*mr_mode = core->domain_attr->mr_mode;
	*local = (core->domain_attr->mr_mode & FI_MR_LOCAL) ||
		 (core->mode & FI_LOCAL_MR);
	*safe = core->domain_attr->threading == FI_THREAD_SAFE;
	fi_freeinfo(core);
out:
	fi_freeinfo(hints);
	return ret;
}
