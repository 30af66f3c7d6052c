/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo(): what the core provider offers, less FI_MR_LOCAL, and the way
 * back from an application's fi_info to the core's.
 *
 * We answer only where we are named: in hints->fabric_attr->prov_name or in
 * FI_PROVIDER. Any thread.
 */
#include "config.h"
#include <stdio.h>

#include "mrrc_fi.h"

#define MRRC_NAMES_MAX 16	/* layerings of us in FI_PROVIDER */

/* Layerings to ask for, by the names of what lies under us. */
struct mrrc_names {
	char *below[MRRC_NAMES_MAX];	/* "": the best core there is */
	size_t cnt;
	bool alone;	/* FI_PROVIDER has "ofi_mrrc": only that name passes */
	bool only;	/* FI_PROVIDER is a positive list */
};

/*
 * What "ofi_mrrc" alone stands on, in order of preference: a core, and what
 * else has the reliable datagrams that it lacks. Which of them an info is of
 * has to show somewhere, and libfabric leaves us the fabric's name:
 * "192.0.2.0/24|tcp;ofi_rxm". Of the core itself it is unchanged.
 */
#define MRRC_ALONE_MAX 3
static const char *const mrrc_alone[][MRRC_ALONE_MAX] = {
	{ "verbs", "verbs;ofi_rxm" },
	{ "tcp", "net", "tcp;ofi_rxm" },
};
#define MRRC_MARK '|'

/* Take the mark off a fabric's name: what it says, or NULL */
static const char *mrrc_fabric_name_split(char *name)
{
	char *mark = name ? strrchr(name, MRRC_MARK) : NULL;

	if (!mark)
		return NULL;
	*mark = '\0';
	return mark + 1;
}

static bool mrrc_alone_core(const char *name)
{
	size_t i;

	for (i = 0; i < count_of(mrrc_alone); i++) {
		if (!strcmp(name, mrrc_alone[i][0]))
			return true;
	}
	return false;
}

static void mrrc_fabric_name_mark(struct fi_fabric_attr *attr)
{
	char *name;

	if (mrrc_alone_core(attr->prov_name) ||
	    asprintf(&name, "%s%c%s", attr->name, MRRC_MARK,
		     attr->prov_name) < 0)
		return;
	free(attr->name);
	attr->name = name;
}

static bool mrrc_is_us(const char *name, size_t len)
{
	return len == strlen(MRRC_PROV_NAME) &&
	       !strncasecmp(name, MRRC_PROV_NAME, len);
}

static bool mrrc_names_us(const char *name, size_t len)
{
	const char *end = name + len, *sep;

	for (; name <= end; name = sep + 1) {
		sep = memchr(name, ';', end - name);
		if (!sep)
			sep = end;
		if (mrrc_is_us(name, sep - name))
			return true;
	}
	return false;
}

/* malloc'd copy of a layering without our name */
static char *mrrc_name_strip(const char *name, size_t len)
{
	const char *end = name + len, *sep;
	char *below, *out;

	below = out = calloc(1, len + 1);
	if (!below)
		return NULL;

	for (; name < end; name = sep + 1) {
		sep = memchr(name, ';', end - name);
		if (!sep)
			sep = end;
		if (mrrc_is_us(name, sep - name))
			continue;
		if (out != below)
			*out++ = ';';
		memcpy(out, name, sep - name);
		out += sep - name;
	}
	return below;
}

char *mrrc_prov_name_below(const char *name)
{
	return mrrc_name_strip(name, strlen(name));
}

static void mrrc_names_fini(struct mrrc_names *names)
{
	while (names->cnt)
		free(names->below[--names->cnt]);
}

static int mrrc_names_add(struct mrrc_names *names, const char *name,
			  size_t len)
{
	char *below;

	if (names->cnt == MRRC_NAMES_MAX)
		return 0;
	below = mrrc_name_strip(name, len);
	if (!below)
		return -FI_ENOMEM;
	names->below[names->cnt++] = below;
	return 0;
}

/* Add the layerings of us in FI_PROVIDER; wanted: only this one, or NULL */
static int mrrc_names_env(struct mrrc_names *names, const char *wanted)
{
	const char *list = getenv("FI_PROVIDER"), *end;
	size_t len;
	int ret;

	if (!list || *list == '^')
		return 0;
	names->only = *list != '\0';

	for (; *list; list = *end ? end + 1 : end) {
		end = strchrnul(list, ',');
		len = end - list;
		if (!mrrc_names_us(list, len))
			continue;
		if (mrrc_is_us(list, len))
			names->alone = true;
		ret = mrrc_names_add(names, list, len);
		if (ret)
			return ret;
		if (!wanted)
			continue;
		/* the application wants this core, with or without us */
		if (!*names->below[names->cnt - 1]) {
			free(names->below[--names->cnt]);
			ret = mrrc_names_add(names, wanted, strlen(wanted));
			if (ret)
				return ret;
		} else if (strcasecmp(names->below[names->cnt - 1], wanted)) {
			free(names->below[--names->cnt]);
		}
	}
	return 0;
}

/* Which layerings of us does the caller ask for? None: names->cnt == 0. */
static int mrrc_names_init(struct mrrc_names *names,
			   const struct fi_info *hints)
{
	const char *prov_name = NULL;
	int ret;

	memset(names, 0, sizeof(*names));
	if (hints && hints->fabric_attr)
		prov_name = hints->fabric_attr->prov_name;

	ret = mrrc_names_env(names, NULL);
	if (ret)
		goto err;
	if (!prov_name)
		return 0;

	if (!mrrc_names_us(prov_name, strlen(prov_name))) {
		mrrc_names_fini(names);
		ret = mrrc_names_env(names, prov_name);
	} else if (!mrrc_is_us(prov_name, strlen(prov_name)) || !names->cnt) {
		/* more precise than FI_PROVIDER, which filters afterwards */
		mrrc_names_fini(names);
		ret = mrrc_names_add(names, prov_name, strlen(prov_name));
	}
	if (ret)
		goto err;
	return 0;

err:
	mrrc_names_fini(names);
	return ret;
}

void mrrc_info_add_local(struct fi_info *core)
{
	core->mode |= FI_LOCAL_MR;
	if (core->domain_attr && core->domain_attr->mr_mode &&
	    core->domain_attr->mr_mode != FI_MR_BASIC &&
	    core->domain_attr->mr_mode != FI_MR_SCALABLE)
		core->domain_attr->mr_mode |= FI_MR_LOCAL;
}

/* The caller's hints as the core should see them; free with fi_freeinfo() */
static struct fi_info *
mrrc_hints_to_core(uint32_t version, const struct fi_info *hints,
		   const char *below)
{
	struct fi_info *core;
	struct fid *fid;

	core = hints ? fi_dupinfo(hints) : fi_allocinfo();
	if (!core)
		return NULL;
	if (!core->fabric_attr || !core->domain_attr)
		goto complete;

	free(core->fabric_attr->prov_name);
	core->fabric_attr->prov_name = strdup(below);
	if (!core->fabric_attr->prov_name)
		goto err_free;
	mrrc_fabric_name_split(core->fabric_attr->name);

	if (!hints) {
		core->mode = ~0ULL;
		if (FI_VERSION_GE(version, FI_VERSION(1, 5)))
			core->domain_attr->mr_mode = MRRC_ALL_MR_MODES;
	}

	if (mrrc_params.reg != MRRC_REGISTER_NEVER) {
		mrrc_info_add_local(core);
	}
	/* see mrrc_info_to_core() */
	if (core->domain_attr->threading != FI_THREAD_DOMAIN)
		core->domain_attr->threading = FI_THREAD_UNSPEC;

	if (core->fabric_attr->fabric) {
		fid = mrrc_fid_core(&core->fabric_attr->fabric->fid);
		core->fabric_attr->fabric = fid ? container_of(fid,
					struct fid_fabric, fid) : NULL;
	}
	if (core->domain_attr->domain) {
		fid = mrrc_fid_core(&core->domain_attr->domain->fid);
		core->domain_attr->domain = fid ? container_of(fid,
					struct fid_domain, fid) : NULL;
	}
	if (core->handle) {
		fid = mrrc_fid_core(core->handle);
		if (fid)
			core->handle = fid;
	}
	return core;

complete:
	/*
	 * Partial hints: give them the attributes that we must set. Of double
	 * size, since a newer libfabric reads more of them.
	 */
	if (!core->fabric_attr)
		core->fabric_attr = calloc(2, sizeof(*core->fabric_attr));
	if (!core->domain_attr) {
		core->domain_attr = calloc(2, sizeof(*core->domain_attr));
		if (core->domain_attr &&
		    FI_VERSION_GE(version, FI_VERSION(1, 5)))
			core->domain_attr->mr_mode = MRRC_ALL_MR_MODES;
	}
	if (core->fabric_attr && core->domain_attr) {
		struct fi_info *full;

		full = mrrc_hints_to_core(version, core, below);
		fi_freeinfo(core);
		return full;
	}
err_free:
	fi_freeinfo(core);
	return NULL;
}

void mrrc_info_from_core(struct fi_info *info)
{
	if (mrrc_params.reg == MRRC_REGISTER_NEVER)
		return;
	info->mode &= ~FI_LOCAL_MR;
	if (info->domain_attr) {
		info->domain_attr->mode &= ~FI_LOCAL_MR;
		info->domain_attr->mr_mode &= ~FI_MR_LOCAL;
	}
	if (info->tx_attr)
		info->tx_attr->mode &= ~FI_LOCAL_MR;
	if (info->rx_attr)
		info->rx_attr->mode &= ~FI_LOCAL_MR;
}

bool mrrc_info_thread_safe(const struct fi_info *info)
{
	return info->domain_attr->threading != FI_THREAD_DOMAIN ||
	       mrrc_params.helper == MRRC_HELPER_ALWAYS;
}

int mrrc_info_to_core(const struct mrrc_domain *domain,
		      const struct mrrc_fabric *fabric,
		      const struct fi_info *info, struct fi_info **core_info)
{
	struct fi_info *core;
	struct fid *fid;

	core = fi_dupinfo(info);
	if (!core)
		return -FI_ENOMEM;

	if (core->fabric_attr) {
		free(core->fabric_attr->prov_name);
		core->fabric_attr->prov_name = strdup(fabric->core_prov_name);
		if (!core->fabric_attr->prov_name) {
			fi_freeinfo(core);
			return -FI_ENOMEM;
		}
		core->fabric_attr->fabric = fabric->core;
		mrrc_fabric_name_split(core->fabric_attr->name);
	}
	if (core->domain_attr) {
		core->domain_attr->domain = domain ? domain->core : NULL;
		/*
		 * One thread's completion may deregister what another's
		 * posting uses, and postings read completion queues: unless
		 * the application serialises the whole domain, the core must.
		 * The helper's calls the application cannot serialise.
		 */
		if (mrrc_info_thread_safe(info))
			core->domain_attr->threading = FI_THREAD_SAFE;
	}
	if (domain && domain->core_local) {
		mrrc_info_add_local(core);
	}
	if (core->handle) {
		/* a connection request's handle is the core's own */
		fid = mrrc_fid_core(core->handle);
		if (fid)
			core->handle = fid;
	}
	*core_info = core;
	return 0;
}

/* Ask the layering below for one name; append to the list at *tail. */
static int mrrc_getinfo_below(uint32_t version, const char *node,
			      const char *service, uint64_t flags,
			      const struct fi_info *hints, const char *below,
			      bool hidden, struct fi_info **list)
{
	struct fi_info *core_hints, *info, *cur;
	enum fi_threading threading = FI_THREAD_UNSPEC;
	int ret;

	core_hints = mrrc_hints_to_core(version, hints, below);
	if (!core_hints)
		return -FI_ENOMEM;

	flags |= strchr(below, ';') ? MRRC_GETINFO_INTERNAL :
				      MRRC_GETINFO_CORE_ONLY;
	if (hidden)
		flags |= MRRC_GETINFO_HIDDEN;
	ret = fi_getinfo(version, node, service, flags, core_hints, &info);
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

static bool mrrc_any_rdm(const struct fi_info *info)
{
	while (info && info->ep_attr->type != FI_EP_RDM)
		info = info->next;
	return info;
}

/* One core, and the first of its fellows that has reliable datagrams. */
static void mrrc_getinfo_group(uint32_t version, const char *node,
			       const char *service, uint64_t flags,
			       const struct fi_info *hints, bool hidden,
			       const char *const *group, struct fi_info **list)
{
	struct fi_info *more;
	size_t i;

	mrrc_getinfo_below(version, node, service, flags, hints, group[0],
			   hidden, list);
	for (i = 1; i < MRRC_ALONE_MAX && group[i]; i++) {
		if (mrrc_any_rdm(*list))
			return;
		/* ofi_rxm does not find a core that FI_PROVIDER leaves out */
		if (hidden && strchr(group[i], ';'))
			continue;
		more = NULL;
		mrrc_getinfo_below(version, node, service, flags, hints,
				   group[i], hidden, &more);
		while (*list)
			list = &(*list)->next;
		*list = more;
	}
}

static int mrrc_getinfo_alone(uint32_t version, const char *node,
			      const char *service, uint64_t flags,
			      const struct fi_info *hints, bool hidden,
			      struct fi_info **list)
{
	struct fi_info *found = NULL, *any = NULL;
	size_t i;

	for (i = 0; !found && i < count_of(mrrc_alone); i++) {
		mrrc_getinfo_group(version, node, service, flags, hints,
				   hidden, mrrc_alone[i], &found);
		if (found || !hidden || !hints || !hints->ep_attr ||
		    hints->ep_attr->type != FI_EP_RDM)
			continue;
		mrrc_getinfo_below(version, NULL, NULL, 0, NULL,
				   mrrc_alone[i][0], hidden, &any);
		if (!any)
			continue;
		/* rather nothing than a slower network, unnoticed */
		if (mrrc_alone[i][1] && strchr(mrrc_alone[i][1], ';'))
			MRRC_WARN(CORE, "for reliable datagrams over %s, "
				  "FI_PROVIDER must name all of it: "
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
 * Let FI_PROVIDER="ofi_mrrc" pass libfabric's filter, which compares whole
 * names: with a NULL name libfabric sets ours alone.
 */
static void mrrc_info_name_alone(struct fi_info *info)
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

	if (inside)
		return -FI_ENODATA;

	ret = mrrc_names_init(&names, hints);
	if (ret)
		return ret;

	inside = true;
	for (i = 0; i < names.cnt; i++) {
		if (*names.below[i]) {
			ret = mrrc_getinfo_below(version, node, service, flags,
						 hints, names.below[i],
						 names.only, &list);
		} else {
			ret = mrrc_getinfo_alone(version, node, service,
						 flags, hints, names.only,
						 &list);
		}
		if (ret) {
			err = ret;
			MRRC_INFO(CORE, "nothing under us from \"%s\": %s\n",
				  names.below[i], fi_strerror(-ret));
		}
	}
	inside = false;
	if (list && names.alone)
		mrrc_info_name_alone(list);
	if (!names.cnt)
		return -FI_ENODATA;	/* nobody named us */
	mrrc_names_fini(&names);

	if (!list) {
		MRRC_WARN(CORE, "no core provider answers: is the one named "
			  "in FI_PROVIDER or in the hints spelt right, and has "
			  "it a device? (fi_info -l lists providers, fi_info "
			  "-p NAME what one offers)\n");
		return err;
	}
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
		ret = mrrc_getinfo_below(version, NULL, NULL, 0, hints, below,
					 true, info);
	for (i = 0; !below && ret && i < count_of(mrrc_alone); i++)
		ret = mrrc_getinfo_below(version, NULL, NULL, 0, hints,
					 mrrc_alone[i][0], true, info);
	free(name);
	return ret;
}

int mrrc_info_core_mr_mode(const struct mrrc_fabric *fabric,
			   const struct fi_info *info, int *mr_mode,
			   bool *local)
{
	uint32_t version = fabric->fabric.api_version;
	struct fi_info *hints, *core;
	uint64_t flags;
	int ret;

	/*
	 * The application's info had FI_MR_LOCAL taken out, and may have been
	 * made by hand: only the core knows. The weakest question about the
	 * same domain does.
	 */
	hints = fi_allocinfo();
	if (!hints)
		return -FI_ENOMEM;
	hints->mode = ~0ULL;
	if (FI_VERSION_GE(version, FI_VERSION(1, 5)))
		hints->domain_attr->mr_mode = MRRC_ALL_MR_MODES;
	hints->ep_attr->type = info->ep_attr ? info->ep_attr->type : 0;
	if (info->domain_attr && info->domain_attr->name)
		hints->domain_attr->name = strdup(info->domain_attr->name);
	hints->fabric_attr->prov_name = strdup(fabric->core_prov_name);
	if (!hints->fabric_attr->prov_name) {
		ret = -FI_ENOMEM;
		goto out;
	}

	flags = MRRC_GETINFO_HIDDEN |
		(strchr(fabric->core_prov_name, ';') ?
		 MRRC_GETINFO_INTERNAL : MRRC_GETINFO_CORE_ONLY);
	ret = fi_getinfo(version, NULL, NULL, flags, hints, &core);
	if (ret) {
		MRRC_WARN(DOMAIN, "core provider %s does not know domain %s: "
			  "%s\n", fabric->core_prov_name,
			  hints->domain_attr->name ? hints->domain_attr->name :
			  "(unnamed)", fi_strerror(-ret));
		goto out;
	}
	*mr_mode = core->domain_attr->mr_mode;
	*local = (core->domain_attr->mr_mode & FI_MR_LOCAL) ||
		 (core->mode & FI_LOCAL_MR);
	fi_freeinfo(core);
out:
	fi_freeinfo(hints);
	return ret;
}
