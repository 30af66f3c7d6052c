/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The part of fi_mrrc_info that tests values outside the enumerations, in hints
 * and attributes: ofi_mrrc refuses such values as the core does.
 */
#include "info/info.h"

/* A value outside all enumerations, for hints, infos and attributes. */
#define NO_SUCH 99

static void bad_threading(struct fi_info *info)
{
	info->domain_attr->threading = (enum fi_threading) NO_SUCH;
}

static void bad_control(struct fi_info *info)
{
	info->domain_attr->control_progress = (enum fi_progress) NO_SUCH;
}

static void bad_progress(struct fi_info *info)
{
	info->domain_attr->data_progress = (enum fi_progress) NO_SUCH;
}

static void bad_resource_mgmt(struct fi_info *info)
{
	info->domain_attr->resource_mgmt = (enum fi_resource_mgmt) NO_SUCH;
}

static void bad_av_type(struct fi_info *info)
{
	info->domain_attr->av_type = (enum fi_av_type) NO_SUCH;
}

static void bad_protocol(struct fi_info *info)
{
	info->ep_attr->protocol = (uint32_t) 4711;
}

static void bad_addr_format(struct fi_info *info)
{
	info->addr_format = 4711;
}

static void bad_mr_mode(struct fi_info *info)
{
	info->domain_attr->mr_mode = 1 << 30;
}

static const struct bad {
	const char *name;
	void (*set)(struct fi_info *info);
} bads[] = {
	{ "threading", bad_threading },
	{ "control progress", bad_control },
	{ "data progress", bad_progress },
	{ "resource management", bad_resource_mgmt },
	{ "type of address vectors", bad_av_type },
	{ "protocol", bad_protocol },
	{ "address format", bad_addr_format },
	{ "mr_mode", bad_mr_mode },
};
#define BADS	    (sizeof(bads) / sizeof(*bads))
#define BAD_OBJECTS 8

struct answers {
	int hints[BADS], domain[BADS], object[BAD_OBJECTS];
};

/* Closes the object, if ret says that it was opened */
#define CLOSE_OPENED(obj, ret) ((ret) ? (ret) : close_fid(&(obj)->fid))

static int close_fid(struct fid *fid)
{
	FT_CALL(fi_close(fid));
	return 0;
}

static int open_cq(struct fid_domain *domain, enum fi_cq_format format,
		   enum fi_wait_obj wait_obj, enum fi_cq_wait_cond cond)
{
	struct fi_cq_attr attr = {
		.format = format,
		.wait_obj = wait_obj,
		.wait_cond = cond,
	};
	struct fid_cq *cq = NULL;
	int ret = fi_cq_open(domain, &attr, &cq, NULL);

	return CLOSE_OPENED(cq, ret);
}

static void open_objects(struct fid_fabric *fabric, struct fid_domain *domain,
			 int *ret)
{
	struct fi_eq_attr eq_attr = { .wait_obj = (enum fi_wait_obj) NO_SUCH };
	struct fi_cntr_attr cntr_attr = { .wait_obj = eq_attr.wait_obj };
	struct fi_av_attr av_attr = { .type = (enum fi_av_type) NO_SUCH };
	struct fid_cntr *cntr = NULL;
	struct fid_eq *eq = NULL;
	struct fid_av *av = NULL;

	*ret++ = open_cq(domain, (enum fi_cq_format) NO_SUCH, FI_WAIT_NONE, 0);
	*ret++ = open_cq(domain, 0, eq_attr.wait_obj, 0);
	*ret++ = open_cq(domain, 0, FI_WAIT_UNSPEC,
			 (enum fi_cq_wait_cond) NO_SUCH);
	*ret++ = open_cq(domain, 0, FI_WAIT_SET, 0);
	*ret = fi_eq_open(fabric, &eq_attr, &eq, NULL);
	*ret = CLOSE_OPENED(eq, *ret);
	*++ret = fi_cntr_open(domain, &cntr_attr, &cntr, NULL);
	*ret = CLOSE_OPENED(cntr, *ret);
	cntr_attr = (struct fi_cntr_attr){
		.events = (enum fi_cntr_events) NO_SUCH,
		.wait_obj = FI_WAIT_NONE,
	};
	*++ret = fi_cntr_open(domain, &cntr_attr, &cntr, NULL);
	*ret = CLOSE_OPENED(cntr, *ret);
	*++ret = fi_av_open(domain, &av_attr, &av, NULL);
	*ret = CLOSE_OPENED(av, *ret);
}

/* In domains with multi-receives the provider needs more of a CQ. */
static struct fi_info *bad_hints(const char *prov)
{
	struct fi_info *hints = info_hints(prov);

	if (!strstr(prov, "mrrc"))
		hints->domain_attr->mr_mode |= FI_MR_LOCAL;
	if (ft_rxm() || ft_core("net"))
		hints->caps |= FI_MULTI_RECV;
	return hints;
}

static void ask_bad(const char *prov, struct answers *answers)
{
	struct fi_info *hints = bad_hints(prov), *info, *bad;
	struct fid_domain *domain = NULL;
	struct fid_fabric *fabric;
	size_t i;
	int ret;

	FT_CALL(fi_getinfo(FT_FIVERSION, ft_opts.addr, NULL, FI_SOURCE, hints,
			   &info));
	FT_CALL(fi_fabric(info->fabric_attr, &fabric, NULL));
	for (i = 0; i < BADS; i++) {
		bad = fi_dupinfo(info);
		bads[i].set(bad);
		ret = fi_domain(fabric, bad, &domain, NULL);
		answers->domain[i] = CLOSE_OPENED(domain, ret);
		fi_freeinfo(bad);
		fi_freeinfo(hints);
		hints = bad_hints(prov);
		bads[i].set(hints);
		bad = NULL;
		answers->hints[i] = fi_getinfo(FT_FIVERSION, ft_opts.addr, NULL,
					       FI_SOURCE, hints, &bad);
		fi_freeinfo(bad);
	}
	FT_CALL(fi_domain(fabric, info, &domain, NULL));
	open_objects(fabric, domain, answers->object);
	FT_CALL(fi_close(&domain->fid));
	FT_CALL(fi_close(&fabric->fid));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* ofi_mrrc refuses the same values as the core. */
void unknown_values(void)
{
	struct answers core, ours;
	size_t i;

	ask_bad(info_core_name(), &core);
	ask_bad(ft_opts.prov, &ours);
	for (i = 0; i < BADS; i++) {
		FT_CHECK(ours.hints[i] == core.hints[i],
			 "%s in the hints: %d, and of the core %d",
			 bads[i].name, ours.hints[i], core.hints[i]);
		/* ofi_rxm's own domain checks less than its endpoints do */
		FT_CHECK(ours.domain[i] == core.domain[i] || !core.domain[i],
			 "%s of a domain: %d, and of the core %d", bads[i].name,
			 ours.domain[i], core.domain[i]);
	}
	for (i = 0; i < BAD_OBJECTS; i++)
		/* verbs has a separate error for each object */
		FT_CHECK(ours.object[i] == core.object[i] ||
				 (ft_core("verbs") && ours.object[i] &&
				  core.object[i]),
			 "object %zu: %d, and of the core %d", i,
			 ours.object[i], core.object[i]);
}
