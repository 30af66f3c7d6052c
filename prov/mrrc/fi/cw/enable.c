/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opting in to conditional writes: fi_cw_enable(). See cw/cw.h.
 */
#include "config.h"
#include "fi/cw/cw.h"
#include "fi/cw/group.h"
#include "fi/cw/link.h"
#include "fi/cw/rdm.h"

int mrrc_cw_enable_pep(struct mrrc_pep *pep)
{
	if (!pep->eq) {
		MRRC_WARN(EP_CTRL, "fi_cw_enable() of a passive endpoint must "
				   "come after its event queue is bound\n");
		return -FI_ENOEQ;
	}
	mrrc_cw_eq_join(pep->eq);
	mrrc_cw_pep_calls(pep);
	return 0;
}

/*
 * Has this info IP addresses? The addresses in connection requests of verbs are
 * not of the format that the info says.
 */
static bool cw_inet(const struct fi_info *info)
{
	const struct sockaddr *addr = info->src_addr ? info->src_addr :
						       info->dest_addr;

	if (addr)
		return addr->sa_family == AF_INET ||
		       addr->sa_family == AF_INET6;
	return info->addr_format == FI_SOCKADDR ||
	       info->addr_format == FI_SOCKADDR_IN ||
	       info->addr_format == FI_SOCKADDR_IN6;
}

/* The requirement that the endpoint does not meet, or NULL */
static const char *cw_lacks(const struct mrrc_ep *ep)
{
	const struct fi_info *info = ep->info;

	if (!info || (info->ep_attr->type != FI_EP_MSG &&
		      info->ep_attr->type != FI_EP_RDM))
		return "an endpoint of type FI_EP_MSG or FI_EP_RDM";
	if (ep->shared_rx)
		return "an endpoint without shared receive context";
	if (!cw_inet(info))
		return "addresses of FI_SOCKADDR_IN or FI_SOCKADDR_IN6";
	if (info->ep_attr->type == FI_EP_RDM)
		/* the MSG domain has to meet the other requirements */
		return NULL;
	if (!ep->core->rma || !(info->caps & FI_RMA))
		return "an endpoint with FI_RMA";
	if (ep->domain->reg.mr_mode & CW_NO_MODES)
		return "a core with simple registrations";
	return NULL;
}

static int cw_check_ep(const struct mrrc_ep *ep)
{
	const char *what = cw_lacks(ep);

	if (what) {
		MRRC_WARN(EP_CTRL, "conditional writes need %s (%s)\n", what,
			  ep->info ? fi_tostr(&ep->info->addr_format,
					      FI_TYPE_ADDR_FORMAT) :
				     "unknown");
		return -FI_EOPNOTSUPP;
	}
	if (ep->tx.op_flags & CW_NO_LEVELS) {
		MRRC_WARN(EP_CTRL,
			  "conditional writes complete before they are "
			  "delivered, but tx_attr->op_flags are %s: give "
			  "completion levels to the calls that need them, "
			  "and not to fi_endpoint()\n",
			  fi_tostr(&ep->tx.op_flags, FI_TYPE_OP_FLAGS));
		return -FI_EOPNOTSUPP;
	}
	if (ep->connecting)
		return -FI_EBUSY;
	if (!ep->tx.cq || ep->tx.cq->internal || !ep->rx.cq ||
	    ep->rx.cq->internal)
		return -FI_ENOCQ;
	if (ep->info->ep_attr->type == FI_EP_RDM)
		return ep->av ? 0 : -FI_ENOAV;
	return ep->eq ? 0 : -FI_ENOEQ;
}

static int cw_enable_msg(struct mrrc_ep *ep)
{
	struct mrrc_cw_ep *cw;
	int ret;

	cw = calloc(1, sizeof(*cw));
	if (!cw)
		return -FI_ENOMEM;
	cw->ep = cw->via = ep;
	/* the application may give tags before it accepts the connection */
	cw->accepts = ep->accepts;
	ret = mrrc_cw_group_join(cw);
	if (ret) {
		free(cw);
		return ret;
	}
	/*
	 * a reader of events may find ep already: a late event may name an
	 * earlier object that had the core endpoint's address
	 */
	mrrc_mutex_lock(&ep->domain->fabric->track_lock);
	ep->cw = cw;
	mrrc_mutex_unlock(&ep->domain->fabric->track_lock);
	mrrc_cw_eq_join(ep->eq);
	return 0;
}

/*
 * Enables conditional writes. domain->cw->enabling is held, as another thread
 * may enable the endpoint, too.
 */
static int cw_enable_once(struct mrrc_ep *ep)
{
	int ret;

	if (mrrc_ep_has_cw(ep))
		return 0;
	ret = cw_check_ep(ep);
	if (!ret)
		ret = mrrc_cw_cq_join(ep->tx.cq);
	if (!ret)
		ret = mrrc_cw_cq_join(ep->rx.cq);
	if (!ret)
		ret = mrrc_cw_auto_start(ep->domain);
	if (ret)
		return ret;
	ret = ep->info->ep_attr->type == FI_EP_RDM ? mrrc_cw_rdm_open(ep) :
						     cw_enable_msg(ep);
	if (!ret)
		mrrc_cw_ep_calls(ep);
	return ret;
}

int mrrc_cw_enable_ep(struct mrrc_ep *ep)
{
	int ret;

	if (ep->base != ep)
		return -FI_EINVAL;
	ret = mrrc_cw_domain_open(ep->domain);
	if (ret)
		return ret;
	mrrc_mutex_lock(&ep->domain->cw->enabling);
	ret = cw_enable_once(ep);
	mrrc_mutex_unlock(&ep->domain->cw->enabling);
	return ret;
}
