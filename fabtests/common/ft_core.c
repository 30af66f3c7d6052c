/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The core below ofi_mrrc, for tests that make the core refuse calls. */
#include "ft_mrrc.h"

void ft_core_ops(const char *name, struct ft_core_ops *ops)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fi_eq_attr eq_attr = { 0 };
	struct fi_cq_attr cq_attr = { .wait_obj = FI_WAIT_NONE };
	struct fi_av_attr av_attr = { .type = FI_AV_UNSPEC };
	const bool rxm = strchr(name, ';');
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_pep *pep;
	struct fid_ep *ep;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_av *av;

	FT_CHECK(hints, "fi_allocinfo");
	hints->fabric_attr->prov_name = strdup(name);
	hints->ep_attr->type = rxm ? FI_EP_RDM : FI_EP_MSG;
	hints->caps = FI_MSG | FI_RMA | (rxm ? FI_TAGGED : 0);
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	FT_CALL(fi_getinfo(FT_FIVERSION, ft_opts.addr, NULL, FI_SOURCE, hints,
			   &info));
	FT_CALL(fi_fabric(info->fabric_attr, &fabric, NULL));
	FT_CALL(fi_eq_open(fabric, &eq_attr, &eq, NULL));
	FT_CALL(fi_domain(fabric, info, &domain, NULL));
	FT_CALL(fi_cq_open(domain, &cq_attr, &cq, NULL));
	FT_CALL(fi_endpoint(domain, info, &ep, NULL));
	/* an endpoint of ofi_rxm does not close without an AV and a CQ */
	if (rxm) {
		FT_CALL(fi_av_open(domain, &av_attr, &av, NULL));
		FT_CALL(fi_ep_bind(ep, &av->fid, 0));
		FT_CALL(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	}
	if (!rxm) {
		FT_CALL(fi_passive_ep(fabric, info, &pep, NULL));
		ops->cm = ep->cm;
		ops->pep_cm = pep->cm;
		FT_CALL(fi_close(&pep->fid));
	}
	ops->ep = ep->fid.ops;
	ops->msg = ep->msg;
	ops->rma = ep->rma;
	ops->tagged = ep->tagged;
	ops->cq = cq->ops;
	ops->mr = domain->mr;
	FT_CALL(fi_close(&ep->fid));
	if (rxm)
		FT_CALL(fi_close(&av->fid));
	FT_CALL(fi_close(&cq->fid));
	FT_CALL(fi_close(&domain->fid));
	FT_CALL(fi_close(&eq->fid));
	FT_CALL(fi_close(&fabric->fid));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}
