/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls of endpoints and passive endpoints on which fi_cw_enable() was
 * called: the calls do their part for conditional writes and then make the
 * usual calls (obj/ep.c, obj/cm.c, obj/pep.c).
 *
 * Threading: that of the usual calls.
 */
#include "config.h"
#include "fi/cw/cw.h"
#include "fi/cw/group.h"
#include "fi/cw/link.h"
#include "fi/cw/rdm.h"
#include "fi/obj/ep.h"
#include "fi/obj/obj.h"

static struct mrrc_ep *cw_ep_of(struct fid *fid)
{
	return container_of(fid, struct mrrc_ep, ep.fid);
}

/* ---- endpoints ----------------------------------------------------------- */

static int cw_ep_close(struct fid *fid)
{
	struct mrrc_ep *ep = cw_ep_of(fid);

	if (mrrc_ref_busy(&ep->ref))
		return -FI_EBUSY;
	if (ep->base == ep && ep->cw_rdm)
		mrrc_cw_rdm_close(ep);
	else if (ep->base == ep && ep->cw)
		mrrc_cw_ep_close(ep);
	return mrrc_ep_fid_ops.close(fid);
}

static int cw_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct mrrc_ep *ep = cw_ep_of(fid);
	int ret = mrrc_ep_fid_ops.bind(fid, bfid, flags);

	if (!ret && bfid->fclass == FI_CLASS_EQ && ep->cw)
		mrrc_cw_eq_join(ep->eq);
	return ret;
}

static int cw_ep_control(struct fid *fid, int command, void *arg)
{
	struct mrrc_ep *ep = cw_ep_of(fid);
	int ret = mrrc_ep_fid_ops.control(fid, command, arg);

	if (!ret && command == FI_ENABLE && ep->cw_rdm)
		mrrc_cw_rdm_start(ep);
	return ret;
}

static ssize_t cw_ep_cancel(struct fid *fid, void *context)
{
	struct mrrc_ep *ep = cw_ep_of(fid);

	if (ep->base == ep && mrrc_ep_has_cw(ep) &&
	    !mrrc_cw_cancel(ep, context))
		return 0;
	return mrrc_ep_ops.cancel(fid, context);
}

/* Part of a connection's private data is the provider's. */
static int cw_cm_data(int level, int optname, void *optval)
{
	const size_t mark = sizeof(struct cw_mark);
	size_t *len = optval;

	if (level == FI_OPT_ENDPOINT && optname == FI_OPT_CM_DATA_SIZE)
		*len = *len > mark ? *len - mark : 0;
	return 0;
}

static int cw_ep_getopt(struct fid *fid, int level, int optname, void *optval,
			size_t *optlen)
{
	int ret = mrrc_ep_ops.getopt(fid, level, optname, optval, optlen);

	return ret || !cw_ep_of(fid)->cw ? ret :
					   cw_cm_data(level, optname, optval);
}

static int cw_ep_getname(struct fid *fid, void *addr, size_t *addrlen)
{
	struct mrrc_ep *ep = cw_ep_of(fid);
	const size_t room = *addrlen;
	int ret = mrrc_cm_ops.getname(fid, addr, addrlen);

	if (ep->cw_rdm && (!ret || ret == -FI_ETOOSMALL))
		mrrc_cw_rdm_getname(ep, addr, room, *addrlen);
	return ret;
}

static int cw_ep_connect(struct fid_ep *ep_fid, const void *addr,
			 const void *param, size_t paramlen)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);
	int ret;

	if (!ep->cw)
		return mrrc_cm_ops.connect(ep_fid, addr, param, paramlen);
	ret = mrrc_ep_prepare(ep);
	if (ret)
		return ret;
	ep->connecting = true;
	return mrrc_cw_connect(ep, addr, param, paramlen);
}

static int cw_ep_accept(struct fid_ep *ep_fid, const void *param,
			size_t paramlen)
{
	struct mrrc_ep *ep = mrrc_ep_of(ep_fid);
	int ret;

	if (!ep->cw)
		return mrrc_cm_ops.accept(ep_fid, param, paramlen);
	ret = mrrc_ep_prepare(ep);
	if (ret)
		return ret;
	ep->connecting = true;
	return mrrc_cw_accept(ep, param, paramlen);
}

static int cw_ep_shutdown(struct fid_ep *ep_fid, uint64_t flags)
{
	if (mrrc_ep_of(ep_fid)->cw)
		mrrc_cw_shutdown(mrrc_ep_of(ep_fid));
	return mrrc_cm_ops.shutdown(ep_fid, flags);
}

static struct fi_ops cw_ep_fid_ops;
static struct fi_ops_ep cw_ep_ops;
static struct fi_ops_cm cw_cm_ops;

/* Replaces the calls, which other threads may be making. */
void mrrc_cw_ep_calls(struct mrrc_ep *ep)
{
	__atomic_store_n(&ep->ep.fid.ops, &cw_ep_fid_ops, __ATOMIC_RELEASE);
	__atomic_store_n(&ep->ep.ops, &cw_ep_ops, __ATOMIC_RELEASE);
	if (ep->ep.cm)
		__atomic_store_n(&ep->ep.cm, &cw_cm_ops, __ATOMIC_RELEASE);
}

/* ---- passive endpoints --------------------------------------------------- */

static int cw_pep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	int ret = mrrc_pep_fid_ops.bind(fid, bfid, flags);

	if (!ret && bfid->fclass == FI_CLASS_EQ)
		mrrc_cw_eq_join(container_of(bfid, struct mrrc_eq, eq.fid));
	return ret;
}

static int cw_pep_getopt(struct fid *fid, int level, int optname, void *optval,
			 size_t *optlen)
{
	int ret = mrrc_pep_ep_ops.getopt(fid, level, optname, optval, optlen);

	return ret ? ret : cw_cm_data(level, optname, optval);
}

static struct fi_ops cw_pep_fid_ops;
static struct fi_ops_ep cw_pep_ep_ops;

void mrrc_cw_pep_calls(struct mrrc_pep *pep)
{
	__atomic_store_n(&pep->pep.fid.ops, &cw_pep_fid_ops, __ATOMIC_RELEASE);
	__atomic_store_n(&pep->pep.ops, &cw_pep_ep_ops, __ATOMIC_RELEASE);
}

/* ---- once ---------------------------------------------------------------- */

void mrrc_cw_ep_init(void)
{
	cw_ep_fid_ops = mrrc_ep_fid_ops;
	cw_ep_fid_ops.close = cw_ep_close;
	cw_ep_fid_ops.bind = cw_ep_bind;
	cw_ep_fid_ops.control = cw_ep_control;
	cw_ep_ops = mrrc_ep_ops;
	cw_ep_ops.cancel = cw_ep_cancel;
	cw_ep_ops.getopt = cw_ep_getopt;
	cw_cm_ops = mrrc_cm_ops;
	cw_cm_ops.getname = cw_ep_getname;
	cw_cm_ops.connect = cw_ep_connect;
	cw_cm_ops.accept = cw_ep_accept;
	cw_cm_ops.shutdown = cw_ep_shutdown;

	cw_pep_fid_ops = mrrc_pep_fid_ops;
	cw_pep_fid_ops.bind = cw_pep_bind;
	cw_pep_ep_ops = mrrc_pep_ep_ops;
	cw_pep_ep_ops.getopt = cw_pep_getopt;
}
