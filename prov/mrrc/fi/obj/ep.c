/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints and shared receive contexts. When an endpoint is opened, the
 * provider decides once whether the endpoint gets resolving or forwarding data
 * calls.
 */
#include "config.h"
#include "fi/obj/ep.h"
#include "fi/info.h"
#include "fi/rxm.h"
#include "fi/data/op.h"
#include "fi/record/record.h"
#include "fi/data/flush.h"
#include "fi/data/pending.h"
#include "fi/data/tables.h"
#include "fi/fid.h"
#include "fi/obj/cq.h"
#include "fi/obj/obj.h"
#include "fi/obj/request.h"

/*
 * ofi_rxm over verbs uses an endpoint that it has closed and freed if a message
 * of its flow control is still unread (rxm_close_conn() and
 * rxm_handle_credit(), 1.17): so as many such messages as possible are read
 * before the close. The CQs cannot be read before the endpoint is enabled.
 */
static void ep_settle(struct mrrc_ep *ep)
{
	if (!ep->desc_always || !ep->domain->implicit || !ep->connecting)
		return;
	if (ep->rx.cq)
		mrrc_cq_drain(ep->rx.cq);
	if (ep->tx.cq && ep->tx.cq != ep->rx.cq)
		mrrc_cq_drain(ep->tx.cq);
}

/*
 * ofi_rxm's progress assumes that each endpoint of a CQ is enabled. So the
 * provider does not read the CQ on its own while an endpoint is bound and not
 * enabled; without this hold, the provider would read the CQ when another
 * endpoint closes or posts.
 */
static void ep_hold_cq(struct mrrc_ep *ep, struct mrrc_ep_dir *dir)
{
	if (!ep->desc_always || !ep->domain->ops || ep->connecting ||
	    ep->base != ep || dir->holds_cq)
		return;
	dir->holds_cq = true;
	mrrc_cq_leave_alone(dir->cq);
}

static void ep_release_cqs(struct mrrc_ep *ep)
{
	struct mrrc_ep_dir *dirs[] = { &ep->base->tx, &ep->base->rx };
	size_t i;

	for (i = 0; i < count_of(dirs); i++) {
		if (!dirs[i]->holds_cq)
			continue;
		dirs[i]->holds_cq = false;
		mrrc_cq_leave_alone_end(dirs[i]->cq);
	}
}

static int ep_take_way(struct mrrc_ep *ep, enum mrrc_rx_way way)
{
	struct mrrc_cq *cq = ep->rx.cq;
	int ret = 0;

	ep = ep->base;
	mrrc_mutex_lock(&ep->domain->cq_lock);
	if (cq->rx_ways[way ^ 1]) {
		MRRC_WARN(
			EP_CTRL,
			"a completion queue reports receives of endpoints "
			"with and without %s\n",
			way < MRRC_RX_BUFFERED ?
				"FI_SELECTIVE_COMPLETION, of a shared context" :
				"FI_BUFFERED_RECV");
		ret = -FI_EINVAL;
	} else if (!ep->rx_way[way]) {
		cq->rx_ways[way]++;
		ep->rx_way[way] = true;
	}
	mrrc_mutex_unlock(&ep->domain->cq_lock);
	return ret;
}

static void ep_leave_ways(struct mrrc_ep *ep)
{
	int way;

	mrrc_mutex_lock(&ep->domain->cq_lock);
	for (way = 0; way < MRRC_RX_WAYS; way++) {
		if (ep->rx_way[way])
			ep->rx.cq->rx_ways[way]--;
	}
	mrrc_mutex_unlock(&ep->domain->cq_lock);
}

/* Decides how the endpoint's receives are treated. */
static int ep_choose_ways(struct mrrc_ep *ep)
{
	const struct mrrc_domain *domain = ep->domain;
	struct mrrc_cq *cq = ep->rx.cq;
	int ret = 0;

	if (!cq || !domain->ops)
		return 0;
	/* where each receive has a record, an offer is an entry without one */
	if (ep->buffered || !(domain->reg.below & MRRC_BELOW_LEN_CLAIMED))
		ret = ep_take_way(ep, ep->buffered ? MRRC_RX_BUFFERED :
						     MRRC_RX_PLAIN);
	if (ret)
		return ret;
	if (ep->shared_rx && !(domain->reg.below & MRRC_BELOW_RX_ALWAYS)) {
		ret = ep_take_way(ep, ep->rx.selective ? MRRC_RX_SELECTIVE :
							 MRRC_RX_ALL);
		if (ret)
			return ret;
		/* readers of completions read it without the lock */
		if (cq->rx_selective != ep->rx.selective)
			cq->rx_selective = ep->rx.selective;
	}
	if (ep->buffered)
		mrrc_cq_set_buffered(cq);
	return 0;
}

static int ep_close(struct fid *fid)
{
	struct mrrc_ep *ep = container_of(fid, struct mrrc_ep, ep.fid);
	struct mrrc_ep *base = ep->base != ep ? ep->base : NULL;
	int ret;

	if (mrrc_ref_busy(&ep->ref))
		return -FI_EBUSY;
	if (!base)
		ep_settle(ep);
	ret = fi_close(&ep->core->fid);
	if (ret)
		return ret;

	if (base) {
		/* operations posted through an alias belong to its endpoint */
		mrrc_ref_put(&base->ref);
		free(ep);
		return 0;
	}
	mrrc_fid_untrack(ep->domain->fabric, &ep->track);
	ep_release_cqs(ep);
	if (ep->domain->ops)
		mrrc_ep_flush_ops(ep);
	if (ep->tx.cq)
		mrrc_ref_put(&ep->tx.cq->ref);
	if (ep->rx.cq) {
		ep_leave_ways(ep);
		mrrc_ref_put(&ep->rx.cq->ref);
	}
	if (ep->own_cq)
		fi_close(&ep->own_cq->cq.fid);
	fi_freeinfo(ep->info);
	mrrc_ref_put(&ep->domain->ref);
	free(ep);
	return 0;
}

static void ep_set_cq(struct mrrc_ep_dir *dir, struct mrrc_cq *cq,
		      uint64_t flags)
{
	mrrc_ref_get(&cq->ref);
	if (dir->cq)
		mrrc_ref_put(&dir->cq->ref);
	dir->cq = cq;
	dir->selective = flags & FI_SELECTIVE_COMPLETION;
}

static int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct mrrc_ep *ep = container_of(fid, struct mrrc_ep, ep.fid);
	const uint64_t all_flags = flags;
	struct mrrc_cq *cq;
	int ret;

	/* a CQ finds the record of an operation in the CQ's own domain */
	if (ep->domain->ops && bfid->fclass == FI_CLASS_CQ &&
	    (flags & (FI_TRANSMIT | FI_RECV)) && mrrc_fid_core(bfid) &&
	    container_of(bfid, struct mrrc_cq, cq.fid)->domain != ep->domain)
		return -FI_EINVAL;
	/*
	 * tcp takes FI_COMPLETION for receives from a shared context from the
	 * endpoint's CQ, and only at fi_enable() it is known whether there is a
	 * shared context.
	 */
	if (ep->domain->implicit && !ep->is_srx &&
	    bfid->fclass == FI_CLASS_CQ && (flags & FI_RECV) &&
	    (flags & FI_SELECTIVE_COMPLETION)) {
		/* return the errors that the core would */
		if (!mrrc_fid_core(bfid))
			return -FI_EINVAL;
		if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION))
			return -FI_EBADFLAGS;
		if (ep->rx.cq)
			return -FI_EINVAL;
		flags &= ~FI_RECV;
	}
	/* the core does not know of the CQ that is bound late */
	if (bfid->fclass == FI_CLASS_CQ && (flags & FI_RECV) &&
	    ep->rx_bind_late)
		return -FI_EINVAL;
	if (flags == all_flags || (flags & FI_TRANSMIT)) {
		ret = mrrc_fid_bind(fid, bfid, flags);
		if (ret)
			return ret;
	}

	switch (bfid->fclass) {
	case FI_CLASS_CQ:
		cq = container_of(bfid, struct mrrc_cq, cq.fid);
		if (flags & FI_TRANSMIT)
			ep_set_cq(&ep->tx, cq, flags);
		if (all_flags & FI_RECV)
			ep_set_cq(&ep->rx, cq, all_flags);
		if (flags & FI_TRANSMIT)
			ep_hold_cq(ep, &ep->tx);
		if (all_flags & FI_RECV)
			ep_hold_cq(ep, &ep->rx);
		if (flags != all_flags)
			ep->rx_bind_late = true;
		break;
	case FI_CLASS_CNTR:
		if (flags & (FI_SEND | FI_WRITE | FI_READ))
			ep->tx.counter = true;
		if (flags & FI_RECV)
			ep->rx.counter = true;
		break;
	case FI_CLASS_SRX_CTX:
		ep->shared_rx = true;
		break;
	case FI_CLASS_AV:
		ep->av = container_of(bfid, struct mrrc_av, av.fid);
		break;
	case FI_CLASS_EQ:
		ep->eq = container_of(bfid, struct mrrc_eq, eq.fid);
		break;
	}
	return 0;
}

static bool dir_lacks(const struct mrrc_ep_dir *dir, uint64_t caps,
		      uint64_t wanted)
{
	const uint64_t any = FI_SEND | FI_RECV | FI_READ | FI_WRITE |
			     FI_REMOTE_READ | FI_REMOTE_WRITE;

	return !dir->cq && !dir->counter && (caps & wanted || !(caps & any));
}

/* Is an object unbound that the core needs to enable the endpoint? */
static bool ep_lacks(const struct mrrc_ep *ep)
{
	const struct fi_info *info = ep->base->info;

	if (dir_lacks(&ep->tx, info->caps, FI_SEND | FI_READ | FI_WRITE) ||
	    dir_lacks(&ep->rx, info->caps, FI_RECV))
		return true;
	return info->ep_attr->type == FI_EP_MSG ? !ep->eq : !ep->av;
}

/* Binds a CQ of the provider to a direction that has only a counter. */
static int ep_bind_own_cq(struct mrrc_ep *ep, struct mrrc_ep_dir *dir,
			  uint64_t flags)
{
	int ret;

	if (dir->cq || !dir->counter)
		return 0;
	if (!ep->own_cq) {
		ret = mrrc_cq_open_internal(ep->domain, &ep->own_cq);
		if (ret)
			return ret;
	}
	if (dir == &ep->tx || !ep->shared_rx)
		flags |= FI_SELECTIVE_COMPLETION;
	ret = fi_ep_bind(ep->core, &ep->own_cq->core->fid, flags);
	if (!ret)
		ep_set_cq(dir, ep->own_cq, flags);
	return ret;
}

/*
 * Decides whether an endpoint may use copies. Incoming data are copied from a
 * block only when their completion is read: no counter may count the receive
 * earlier, and the length of a receive must be known.
 */
static void ep_allow_copies(struct mrrc_ep *ep)
{
	if (!ep->domain->blocks || !ep->plain)
		return;
	ep->copies.out = true;
	ep->copies.read = ep->tx.cq && !ep->tx.counter;
	ep->copies.recv = ep->rx.cq && !ep->rx.counter && !ep->buffered &&
			  !ep->shared_rx &&
			  ep->rx.cq->core_entry_size >=
				  sizeof(struct fi_cq_msg_entry);
}

/* @copied: the longest message that the core copies without being asked. */
static void ep_set_least(const struct mrrc_ep *ep, struct mrrc_least *least,
			 size_t copied)
{
	const size_t most = copied > ep->inject_size ? copied : ep->inject_size;

	least->known = ep->domain->core_local ? most + 1 : 1;
	/* recording needs a function call */
	if (!ep->domain->reg.traced)
		least->quick = least->known;
}

/*
 * Decides which transmissions without flags can go out with nothing but a
 * descriptor added: transmissions that complete by default, on a CQ that the
 * application reads, and that the core does not copy.
 */
static void ep_set_known(struct mrrc_ep *ep)
{
	const uint64_t flags = ep->tx.op_flags;

	ep->least_msg = ep->least_rma =
		(struct mrrc_least){ SIZE_MAX, SIZE_MAX };
	if (!ep->tx.cq || ep->tx.cq->internal ||
	    (ep->tx.selective && !(flags & FI_COMPLETION)) ||
	    flags & (FI_INJECT | FI_TRIGGER | FI_CLAIM | FI_MULTI_RECV))
		return;
	ep_set_least(ep, &ep->least_rma, 0);
	ep_set_least(ep, &ep->least_msg, ep->copied);
}

/*
 * Prepares an endpoint for its first transfer. Cores enable an endpoint in
 * fi_enable(), or (verbs) when it connects without fi_enable().
 */
int mrrc_ep_prepare(struct mrrc_ep *ep)
{
	int ret;

	ret = ep_choose_ways(ep);
	if (ret)
		return ret;
	if (ep->rx_bind_late) {
		ret = fi_ep_bind(ep->core, &ep->rx.cq->core->fid,
				 FI_RECV | (ep->shared_rx ?
						    0 :
						    FI_SELECTIVE_COMPLETION));
		if (ret)
			return ret;
		ep->rx_bind_late = false;
	}
	/* the provider's CQ stays bound, so the application can bind none */
	if (ep->domain->implicit && !ep->is_srx && !ep_lacks(ep)) {
		ret = ep_bind_own_cq(ep, &ep->tx, FI_TRANSMIT);
		if (!ret)
			ret = ep_bind_own_cq(ep, &ep->rx, FI_RECV);
		if (ret)
			return ret;
	}
	ep_allow_copies(ep);
	ep_set_known(ep);
	return 0;
}

static void ep_set_op_flags(struct mrrc_ep *ep, uint64_t flags)
{
	if (flags & FI_TRANSMIT)
		ep->tx.op_flags = flags & ~(FI_TRANSMIT | FI_RECV);
	if (flags & FI_RECV)
		ep->rx.op_flags = flags & ~(FI_TRANSMIT | FI_RECV);
	ep_set_known(ep);
}

static int ep_alias(struct mrrc_ep *ep, struct fi_alias *arg);

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct mrrc_ep *ep = container_of(fid, struct mrrc_ep, ep.fid);
	int ret;

	switch (command) {
	case FI_ENABLE:
		ret = mrrc_ep_prepare(ep);
		if (!ret)
			ret = fi_enable(ep->core);
		if (!ret && ep->av)
			ep->connecting = true;
		if (!ret)
			ep_release_cqs(ep);
		return ret;
	case FI_ALIAS:
		return ep_alias(ep, arg);
	case FI_SETOPSFLAG:
		ret = fi_control(&ep->core->fid, command, arg);
		if (!ret)
			ep_set_op_flags(ep, *(uint64_t *) arg);
		return ret;
	default:
		return mrrc_fid_control(fid, command, arg);
	}
}

const struct fi_mrrc_ops_cw *mrrc_ep_cw_ops;

struct fi_ops mrrc_ep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = mrrc_fid_ops_open,
	.tostr = mrrc_fid_tostr,
	.ops_set = mrrc_fid_ops_set,
};

static int ep_getopt(fid_t fid, int level, int optname, void *optval,
		     size_t *optlen)
{
	return fi_getopt(mrrc_fid_core(fid), level, optname, optval, optlen);
}

static int ep_setopt(fid_t fid, int level, int optname, const void *optval,
		     size_t optlen)
{
	return fi_setopt(mrrc_fid_core(fid), level, optname, optval, optlen);
}

static int ep_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr,
		     struct fid_ep **tx_ep, void *context)
{
	return -FI_ENOSYS;
}

static int ep_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr,
		     struct fid_ep **rx_ep, void *context)
{
	return -FI_ENOSYS;
}

/* deprecated calls: in the core's table, but not in fi_endpoint.h */
static ssize_t ep_rx_size_left(struct fid_ep *ep)
{
	struct fid_ep *core = mrrc_ep_of(ep)->core;

	return core->ops->rx_size_left(core);
}

static ssize_t ep_tx_size_left(struct fid_ep *ep)
{
	struct fid_ep *core = mrrc_ep_of(ep)->core;

	return core->ops->tx_size_left(core);
}

struct fi_ops_ep mrrc_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = mrrc_ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = ep_tx_ctx,
	.rx_ctx = ep_rx_ctx,
	.rx_size_left = ep_rx_size_left,
	.tx_size_left = ep_tx_size_left,
#ifdef MRRC_XPU_CALLS
	.export_xpu = mrrc_ep_export_xpu,
#endif
};

static void ep_record(struct mrrc_ep *ep)
{
	ep->ep.msg = &mrrc_recorded_msg_ops;
	ep->ep.rma = &mrrc_recorded_rma_ops;
	ep->ep.tagged = &mrrc_recorded_tagged_ops;
	ep->ep.atomic = &mrrc_recorded_atomic_ops;
}

static void ep_check_receives(struct mrrc_ep *ep)
{
	ep->ep.msg = &mrrc_msg_checked_ops;
	ep->ep.tagged = &mrrc_tagged_checked_ops;
}

static void ep_note(struct mrrc_ep *ep)
{
	ep->ep.msg = &mrrc_noted_msg_ops;
	ep->ep.rma = &mrrc_noted_rma_ops;
	ep->ep.tagged = &mrrc_noted_tagged_ops;
}

/*
 * Decides which calls with descriptors have a record: those whose context could
 * be the address of a record, and, if the core passes on lengths that peers
 * claim, all receives. All receives of a shared context have a record, too,
 * since the receiving endpoint decides whether a completion is wanted.
 */
static void ep_init_records(struct mrrc_ep *ep)
{
	const struct mrrc_domain *domain = ep->domain;

	if (!domain->ops)
		return;
	ep->tx.ops_base = ep->rx.ops_base = (uintptr_t) domain->ops->base;
	ep->tx.ops_len = ep->rx.ops_len = domain->ops->span;
	if (ep->ep.fid.fclass == FI_CLASS_SRX_CTX ||
	    domain->reg.below & MRRC_BELOW_LEN_CLAIMED) {
		ep->rx.ops_base = 0;
		ep->rx.ops_len = SIZE_MAX;
	}
}

/* Sets all fields except the core's endpoint. */
static void ep_init(struct mrrc_ep *ep, struct mrrc_domain *domain,
		    size_t fclass, void *context)
{
	ep->domain = domain;
	ep->base = ep;
	ep->desc_always = domain->reg.below & MRRC_BELOW_LAYERED;
	ep->ep.fid.fclass = fclass;
	ep->ep.fid.context = context;
	ep->ep.fid.ops = &mrrc_ep_fid_ops;
	ep->ep.ops = &mrrc_ep_ops;
	ep->ep.cm = &mrrc_cm_ops;
	ep->ep.collective = &mrrc_collective_fwd_ops;
	ep->ext_cw.ops = mrrc_ep_cw_ops;
	ep_init_records(ep);
	if (domain->implicit) {
		ep->ep.msg = &mrrc_msg_ops;
		ep->ep.rma = &mrrc_rma_ops;
		ep->ep.tagged = &mrrc_tagged_ops;
		ep->ep.atomic = &mrrc_atomic_ops;
		if (domain->reg.predicts)
			ep_note(ep);
		if (domain->reg.traced)
			ep_record(ep);
	} else {
		ep->ep.msg = &mrrc_msg_fwd_ops;
		ep->ep.rma = &mrrc_rma_fwd_ops;
		ep->ep.tagged = &mrrc_tagged_fwd_ops;
		ep->ep.atomic = &mrrc_atomic_fwd_ops;
	}
}

/* Calls that the core's endpoint lacks stay NULL, as applications expect. */
static void ep_trim(struct mrrc_ep *ep)
{
	if (!ep->core->msg)
		ep->ep.msg = NULL;
	if (!ep->core->rma)
		ep->ep.rma = NULL;
	if (!ep->core->tagged)
		ep->ep.tagged = NULL;
	if (!ep->core->atomic)
		ep->ep.atomic = NULL;
	if (!ep->core->collective)
		ep->ep.collective = NULL;
	if (!ep->core->cm)
		ep->ep.cm = NULL;
}

static size_t mrrc_iov_limit(size_t limit)
{
	return limit && limit < MRRC_IOV_MAX ? limit : MRRC_IOV_MAX;
}

static void ep_init_attr(struct mrrc_ep *ep, const struct fi_info *info)
{
	const bool connected = info->ep_attr &&
			       info->ep_attr->type == FI_EP_MSG;
	/* a message's prefix is expected in one buffer */
	const bool splits = info->ep_attr &&
			    info->ep_attr->type != FI_EP_DGRAM &&
			    !(info->mode & FI_MSG_PREFIX);
	/* iWARP adapters read into one buffer, despite tx_attr */
	const bool splits_reads = splits &&
				  info->ep_attr->protocol != FI_PROTO_IWARP;
	const bool splits_msgs =
		splits && !(ep->domain->reg.below & MRRC_BELOW_RECVV_TWICE);

	ep->plain = splits;
	if (connected && ep->domain->reg.traced)
		ep->trace_ep = mrrc_record_ep();
	if (info->tx_attr) {
		ep->tx.op_flags = info->tx_attr->op_flags;
		ep->tx.iov_limit = mrrc_iov_limit(info->tx_attr->iov_limit);
		ep->inject_size = info->tx_attr->inject_size;
		if (ep->domain->reg.below & MRRC_BELOW_PEERS_READ &&
		    ep->domain->core_local && !ep->domain->reg.hmem)
			ep->copied = mrrc_rxm_copied();
		if (splits && info->tx_attr->iov_limit)
			ep->write_split_limit = ep->tx.iov_limit;
		if (splits_reads && info->tx_attr->iov_limit)
			ep->read_split_limit = ep->tx.iov_limit;
		if (splits_msgs && info->tx_attr->iov_limit)
			ep->tx.split_limit = ep->tx.iov_limit;
	}
	if (info->rx_attr) {
		ep->rx.op_flags = info->rx_attr->op_flags;
		ep->rx.iov_limit = mrrc_iov_limit(info->rx_attr->iov_limit);
		if (splits_msgs && info->rx_attr->iov_limit)
			ep->rx.split_limit = ep->rx.iov_limit;
	}
}

static int ep_alias(struct mrrc_ep *ep, struct fi_alias *arg)
{
	struct fi_alias core_alias = *arg;
	struct mrrc_ep *alias;
	struct fid *core;
	int ret;

	alias = malloc(sizeof(*alias));
	if (!alias)
		return -FI_ENOMEM;
	core_alias.fid = &core;
	ret = fi_control(&ep->core->fid, FI_ALIAS, &core_alias);
	if (ret) {
		free(alias);
		return ret;
	}
	*alias = *ep;
	alias->core = container_of(core, struct fid_ep, fid);
	alias->own_cq = NULL;
	alias->info = NULL;
	atomic_init(&alias->ref, 0);
	ep_set_op_flags(alias, arg->flags);
	mrrc_ref_get(&alias->base->ref);
	*arg->fid = &alias->ep.fid;
	return 0;
}

/* Notes the length of the core's buffers, which later limits do not change. */
static void ep_set_buffered_max(struct mrrc_ep *ep)
{
	size_t size = sizeof(ep->buffered_max);

	if (fi_getopt(&ep->core->fid, FI_OPT_ENDPOINT, FI_OPT_BUFFERED_LIMIT,
		      &ep->buffered_max, &size))
		ep->buffered_max = SIZE_MAX;
}

int mrrc_ep_open2(struct fid_domain *domain_fid, struct fi_info *info,
		  struct fid_ep **ep_fid, uint64_t flags, void *context)
{
	struct mrrc_domain *domain = mrrc_domain_of(domain_fid);
	struct fi_info *core_info;
	struct mrrc_ep *ep;
	int ret;

	if (!info)
		return -FI_EINVAL;
	if (flags & (FI_PEER | FI_XPU))
		return -FI_ENOSYS;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;

	ep_init(ep, domain, FI_CLASS_EP, context);
	ep_init_attr(ep, info);
	ep->eq = domain->eq;
	ep->buffered = info->mode & FI_BUFFERED_RECV;
	if (!domain->implicit && domain->ops)
		ep_check_receives(ep);
	ret = mrrc_info_to_core(domain, domain->fabric, info, &core_info);
	if (ret)
		goto err_free;
	ret = fi_endpoint2(domain->core, core_info, &ep->core, flags,
			   &ep->ep.fid);
	if (ret) {
		fi_freeinfo(core_info);
		goto err_free;
	}
	if (core_info->handle) {
		ep->accepts = core_info->handle->fclass == FI_CLASS_CONNREQ;
		ep->request_noted =
			mrrc_request_take(domain->fabric, core_info->handle);
	}
	core_info->handle = NULL; /* the endpoint took it */
	ep->info = core_info;
	if (ep->buffered)
		ep_set_buffered_max(ep);

	ep_trim(ep);
	mrrc_fid_track(domain->fabric, &ep->track, &ep->core->fid, &ep->ep.fid);
	mrrc_ref_get(&domain->ref);
	*ep_fid = &ep->ep;
	return 0;

err_free:
	free(ep);
	return ret;
}

int mrrc_ep_stand_in(struct mrrc_domain *domain, const struct fi_info *info,
		     struct mrrc_ep **ep_out)
{
	struct mrrc_ep *ep;
	int ret;

	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ep_init(ep, domain, FI_CLASS_EP, NULL);
	ep_init_attr(ep, info);
	ret = mrrc_info_to_core(domain, domain->fabric, info, &ep->info);
	if (ret) {
		free(ep);
		return ret;
	}
	ep_allow_copies(ep);
	mrrc_ref_get(&domain->ref);
	*ep_out = ep;
	return 0;
}

void mrrc_ep_stand_in_free(struct mrrc_ep *ep)
{
	mrrc_ref_put(&ep->domain->ref);
	fi_freeinfo(ep->info);
	free(ep);
}

int mrrc_ep_open(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **ep, void *context)
{
	return mrrc_ep_open2(domain, info, ep, 0, context);
}

int mrrc_srx_open(struct fid_domain *domain_fid, struct fi_rx_attr *attr,
		  struct fid_ep **srx_fid, void *context)
{
	struct mrrc_domain *domain = mrrc_domain_of(domain_fid);
	struct mrrc_ep *srx;
	int ret;

	if (attr && (attr->op_flags & FI_PEER))
		return -FI_ENOSYS;
	srx = calloc(1, sizeof(*srx));
	if (!srx)
		return -FI_ENOMEM;
	ep_init(srx, domain, FI_CLASS_SRX_CTX, context);
	srx->is_srx = true;
	srx->rx.iov_limit = MRRC_IOV_MAX;
	if (attr) {
		srx->rx.op_flags = attr->op_flags;
		srx->rx.iov_limit = mrrc_iov_limit(attr->iov_limit);
	}
	ret = fi_srx_context(domain->core, attr, &srx->core, &srx->ep.fid);
	if (ret) {
		free(srx);
		return ret;
	}
	ep_trim(srx);
	mrrc_fid_track(domain->fabric, &srx->track, &srx->core->fid,
		       &srx->ep.fid);
	mrrc_ref_get(&domain->ref);
	*srx_fid = &srx->ep;
	return 0;
}

/* No supported core has scalable endpoints. */
int mrrc_sep_open(struct fid_domain *domain, struct fi_info *info,
		  struct fid_ep **sep, void *context)
{
	return -FI_ENOSYS;
}
