/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls of sequences.c: each function draws its random numbers, makes a
 * call, and records the result. Results that depend on time or addresses are
 * not recorded.
 */
#include "obj/sequences.h"

#define ONE_OF(list) ((list)[below(sizeof(list) / sizeof(*(list)))])
#define BUF_SIZE     (1UL << 16)
#define KEY_MIN	     1000 /* above the keys that cores choose by counting */

static char buf[BUF_SIZE] __attribute__((aligned(4096)));
static uint64_t next_key = KEY_MIN + 8;

static uint64_t random_bit(void)
{
	return once_in(8) ? 1ULL << below(60) : 0;
}

/* ---- open ------------------------------------------------------------- */

/* Names the member that random_info() changed, for the report. */
static char changed[64];

static void change(struct fi_info *info)
{
#define CHANGE(member, type, fmt, value)                            \
	do {                                                        \
		info->member = (type) (value);                      \
		snprintf(changed, sizeof(changed), #member " " fmt, \
			 info->member);                             \
	} while (0)
	switch (below(24)) {
	case 0:
		CHANGE(ep_attr->type, enum fi_ep_type, "%d", below(8));
		break;
	case 1:
		CHANGE(caps, uint64_t, "%#" PRIx64, FI_MSG);
		break;
	case 2:
		CHANGE(caps, uint64_t, "%#" PRIx64, 1ULL << below(60));
		break;
	case 3:
		CHANGE(ep_attr->rx_ctx_cnt, size_t, "%zu", FI_SHARED_CONTEXT);
		break;
	case 4:
		CHANGE(tx_attr->iov_limit, size_t, "%zu", below(100));
		break;
	case 5:
		CHANGE(tx_attr->size, size_t, "%zu", 1UL << below(20));
		break;
	case 6:
		CHANGE(rx_attr->size, size_t, "%zu", 1UL << below(20));
		break;
	case 7:
		CHANGE(domain_attr->threading, enum fi_threading, "%d",
		       below(6));
		break;
	case 8:
		CHANGE(tx_attr->op_flags, uint64_t, "%#" PRIx64,
		       1ULL << below(60));
		break;
	case 9:
		CHANGE(domain_attr->mr_mode, int, "%#x", 1 << below(12));
		break;
	case 10:
		CHANGE(domain_attr->data_progress, enum fi_progress, "%d",
		       below(4));
		break;
	case 11:
		CHANGE(ep_attr->tx_ctx_cnt, size_t, "%zu", below(3));
		break;
	}
#undef CHANGE
}

static struct fi_info *random_info(void)
{
	unsigned nth = below(info_cnt[side]);
	struct fi_info *info = fi_dupinfo(infos[side][nth]);

	FT_CHECK(info, "no memory");
	snprintf(changed, sizeof(changed), "as it is");
	change(info);
	say("info", "%u, %s", nth, changed);
	return info;
}

void open_fabric(void)
{
	struct fi_info *info = infos[side][below(info_cnt[side])];
	struct fid_fabric *fabric;
	void *context = random_context();
	int ret;

	if (!room())
		return;
	ret = fi_fabric(info->fabric_attr, &fabric, context);
	say("fabric", "= %d", ret);
	if (!ret)
		opened(FABRIC, &fabric->fid);
}

void open_domain(void)
{
	struct obj *in = pick(FABRIC);
	struct fi_info *info = random_info();
	void *context = random_context();
	struct fid_domain *domain;
	int ret;

	if (in && room()) {
		ret = fi_domain((struct fid_fabric *) in->fid, info, &domain,
				context);
		say("domain", "%s = %d", name(in), ret);
		if (!ret)
			opened(DOMAIN, &domain->fid);
	}
	fi_freeinfo(info);
}

static void open_eq(void)
{
	struct obj *in = pick(FABRIC);
	struct fi_eq_attr attr = {
		.size = once_in(2) ? 0 : 1 << below(10),
		.flags = (once_in(2) ? FI_WRITE : 0) | random_bit(),
		.wait_obj = (enum fi_wait_obj) below(once_in(4) ? 9 : 2),
	};
	void *context = random_context();
	struct fid_eq *eq;
	int ret;

	if (!in || !room())
		return;
	ret = fi_eq_open((struct fid_fabric *) in->fid, &attr, &eq, context);
	say("eq_open", "%s size %zu flags %#" PRIx64 " wait %d = %d", name(in),
	    attr.size, attr.flags, attr.wait_obj, ret);
	if (!ret)
		opened(EQ, &eq->fid);
}

static void open_cq(void)
{
	struct obj *in = pick(DOMAIN);
	struct fi_cq_attr attr = {
		.size = once_in(2) ? 0 : 1 << below(10),
		.flags = random_bit(),
		.format = (enum fi_cq_format) below(5),
		.wait_obj = (enum fi_wait_obj) below(once_in(4) ? 9 : 2),
		.signaling_vector = once_in(8) ? -1 : 0,
		.wait_cond = (enum fi_cq_wait_cond) below(2),
	};
	void *context = random_context();
	struct fid_cq *cq;
	struct obj *obj;
	int ret;

	if (!in || !room())
		return;
	ret = fi_cq_open((struct fid_domain *) in->fid, &attr, &cq, context);
	say("cq_open", "%s flags %#" PRIx64 " format %d wait %d = %d, size %zu",
	    name(in), attr.flags, attr.format, attr.wait_obj, ret,
	    ret ? 0 : attr.size);
	if (!ret) {
		obj = opened(CQ, &cq->fid);
		obj->waits = attr.wait_obj != FI_WAIT_NONE;
		obj->domain = in;
	}
}

static void open_cntr(void)
{
	struct obj *in = pick(DOMAIN);
	struct fi_cntr_attr attr = {
		.events = (enum fi_cntr_events) below(once_in(8) ? 4 : 1),
		.wait_obj = (enum fi_wait_obj) below(once_in(4) ? 9 : 2),
		.flags = random_bit(),
	};
	bool null = once_in(100);
	void *context = random_context();
	struct fid_cntr *cntr;
	int ret;

	if (!in || !room())
		return;
	ret = fi_cntr_open((struct fid_domain *) in->fid, null ? NULL : &attr,
			   &cntr, context);
	say("cntr_open", "%s%s events %d wait %d flags %#" PRIx64 " = %d",
	    name(in), null ? " NULL" : "", attr.events, attr.wait_obj,
	    attr.flags, ret);
	if (!ret)
		opened(CNTR, &cntr->fid);
}

static void open_av(void)
{
	struct obj *in = pick(DOMAIN);
	struct fi_av_attr attr = {
		.type = (enum fi_av_type) below(once_in(8) ? 9 : 3),
		.rx_ctx_bits = once_in(8) ? (int) below(70) : 0,
		.count = below(100),
		.ep_per_node = below(3),
		.flags = (once_in(8) ? FI_EVENT : 0) | random_bit(),
	};
	void *context = random_context();
	struct fid_av *av;
	int ret;

	if (!in || !room())
		return;
	ret = fi_av_open((struct fid_domain *) in->fid, &attr, &av, context);
	say("av_open", "%s bits %d flags %#" PRIx64 " = %d, type %d", name(in),
	    attr.rx_ctx_bits, attr.flags, ret, ret ? 0 : attr.type);
	if (!ret)
		opened(AV, &av->fid);
}

static void open_ep(void)
{
	struct obj *in = pick(DOMAIN), *obj;
	struct fi_info *info = random_info();
	uint64_t flags = once_in(16) ? random_bit() : 0;
	void *context = random_context();
	struct fid_ep *ep;
	int ret;

	if (in && room()) {
		ret = fi_endpoint2((struct fid_domain *) in->fid, info, &ep,
				   flags, context);
		say("endpoint", "%s flags %#" PRIx64 " = %d", name(in), flags,
		    ret);
		if (!ret) {
			obj = opened(EP, &ep->fid);
			obj->domain = in;
			say("endpoint.calls", "%s %d %d %d %d %d %d", name(obj),
			    !!ep->msg, !!ep->rma, !!ep->tagged, !!ep->atomic,
			    !!ep->cm, ep->fid.context == context);
		}
	}
	fi_freeinfo(info);
}

static void open_srx(void)
{
	struct obj *in = pick(DOMAIN);
	struct fi_info *info = random_info();
	void *context = random_context();
	struct fid_ep *srx;
	int ret;

	if (in && room()) {
		ret = fi_srx_context((struct fid_domain *) in->fid,
				     info->rx_attr, &srx, context);
		say("srx_context", "%s = %d", name(in), ret);
		if (!ret)
			opened(SRX, &srx->fid);
	}
	fi_freeinfo(info);
}

static void open_stx(void)
{
	struct obj *in = pick(DOMAIN);
	struct fi_info *info = random_info();
	void *context = random_context();
	struct fid_stx *stx;
	int ret;

	if (in && room()) {
		ret = fi_stx_context((struct fid_domain *) in->fid,
				     info->tx_attr, &stx, context);
		say("stx_context", "%s = %d", name(in), ret);
		if (!ret)
			opened(STX, &stx->fid);
	}
	fi_freeinfo(info);
}

/* None of the cores has scalable endpoints. */
static void open_sep(void)
{
	struct obj *in = pick(DOMAIN);
	struct fi_info *info = random_info();
	struct fid_ep *sep;
	int ret;

	if (in) {
		ret = fi_scalable_ep((struct fid_domain *) in->fid, info, &sep,
				     NULL);
		say("scalable_ep", "%s = %d", name(in), ret);
	}
	fi_freeinfo(info);
}

static void open_pep(void)
{
	struct obj *in = pick(FABRIC);
	struct fi_info *info = random_info();
	void *context = random_context();
	struct fid_pep *pep;
	int ret;

	if (in && room()) {
		ret = fi_passive_ep((struct fid_fabric *) in->fid, info, &pep,
				    context);
		say("passive_ep", "%s = %d", name(in), ret);
		if (!ret)
			opened(PEP, &pep->fid);
	}
	fi_freeinfo(info);
}

static void open_mr(void)
{
	static const uint64_t rights[] = {
		FI_SEND,
		FI_RECV,
		FI_SEND | FI_RECV,
		FI_REMOTE_READ,
		FI_REMOTE_WRITE,
		FI_READ | FI_WRITE,
		FI_REMOTE_READ | FI_REMOTE_WRITE,
		0,
	};
	struct obj *in = pick(DOMAIN);
	uint64_t access = ONE_OF(rights) | random_bit();
	bool remote = access & (FI_REMOTE_READ | FI_REMOTE_WRITE);
	/* local registrations take no key of the domain */
	uint64_t key = once_in(4) && remote ? KEY_MIN + below(8) : next_key++;
	uint64_t flags = once_in(8) ? random_bit() : 0;
	size_t at = below(BUF_SIZE), len = below(BUF_SIZE - at);
	const struct iovec iov[] = { { buf + at, len }, { buf, 1 + at } };
	struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = 1 + once_in(8),
		.access = access,
		.requested_key = key,
	};
	void *context = random_context();
	unsigned how = below(3);
	struct fid_mr *mr;
	int ret;

	if (!in || !room())
		return;
	attr.context = context;
	if (how == 0)
		ret = fi_mr_reg((struct fid_domain *) in->fid, buf + at, len,
				access, 0, key, flags, &mr, context);
	else if (how == 1)
		ret = fi_mr_regv((struct fid_domain *) in->fid, iov,
				 attr.iov_count, access, 0, key, flags, &mr,
				 context);
	else
		ret = fi_mr_regattr((struct fid_domain *) in->fid, &attr, flags,
				    &mr);
	say(remote ? "mr_reg.remote" : "mr_reg.local",
	    "%s how %u len %zu count %zu access %#" PRIx64 " key %" PRIu64
	    " flags %#" PRIx64 " = %d",
	    name(in), how, len, attr.iov_count, access, key, flags, ret);
	if (ret)
		return;
	opened(MR, &mr->fid);
	say(remote ? "mr.remote_key" : "mr.local_key", "%d, context %d",
	    fi_mr_key(mr) == key, mr->fid.context == context);
}

/* ---- bind, enable, close ---------------------------------------------- */

static void say_bind(struct obj *obj, struct obj *to, uint64_t flags, int ret)
{
	say((obj->enabled || obj->connect_failed) && to->class == CQ ?
		    "bind.late" :
		    "bind",
	    "%s to %s flags %#" PRIx64 " = %d%s", name(obj), name(to), flags,
	    ret,
	    to->class == CQ && obj->domain && obj->domain != to->domain ?
		    ", of another domain" :
		    "");
	obj->has_eq |= !ret && to->class == EQ;
	obj->has_queue |= !ret && (to->class == CQ || to->class == CNTR);
}

static void bind(void)
{
	static const uint64_t cq_flags[] = {
		FI_TRANSMIT,
		FI_RECV,
		FI_TRANSMIT | FI_RECV,
		FI_TRANSMIT | FI_RECV,
		FI_SEND,
		0,
		FI_TRANSMIT | FI_SELECTIVE_COMPLETION,
		FI_RECV | FI_SELECTIVE_COMPLETION,
	};
	static const uint64_t cntr_flags[] = {
		FI_SEND,	FI_RECV,	 FI_READ,	    FI_WRITE,
		FI_REMOTE_READ, FI_REMOTE_WRITE, FI_SEND | FI_RECV, 0,
	};
	struct obj *obj = pick(once_in(2) ? EP : ANY_CLASS);
	struct obj *to = pick(ANY_CLASS);
	uint64_t cq = ONE_OF(cq_flags), cntr = ONE_OF(cntr_flags);
	uint64_t flags = random_bit() | (once_in(8) ? FI_REG_MR : 0);
	int ret;

	if (!obj || !to)
		return;
	/*
	 * a connected endpoint of tcp that is bound to an address vector stays
	 * in the address vector when the endpoint is freed
	 */
	if (to->class == AV && !ft_rdm())
		return;
	if (to->class == CQ)
		flags |= cq;
	else if (to->class == CNTR)
		flags |= cntr;
	say("binding", "%s to %s flags %#" PRIx64, name(obj), name(to), flags);
	ret = obj->fid->ops->bind(obj->fid, to->fid, flags);
	say_bind(obj, to, flags, ret);
}

/* Binds the objects that most endpoints need to be enabled. */
static void bind_all(void)
{
	struct obj *ep = pick(EP);
	struct obj *to[] = { pick(CQ), pick(once_in(2) ? EQ : CNTR),
			     ft_rdm() ? pick(AV) : NULL };
	const uint64_t flags[] = { FI_TRANSMIT | FI_RECV, 0, 0 };
	unsigned i;
	int ret;

	for (i = 0; ep && i < 3; i++) {
		if (!to[i])
			continue;
		say("binding", "%s to %s", name(ep), name(to[i]));
		ret = fi_ep_bind((struct fid_ep *) ep->fid, to[i]->fid,
				 to[i]->class == CNTR ? FI_SEND : flags[i]);
		say_bind(ep, to[i], 0, ret);
	}
}

static void enable(void)
{
	struct obj *obj = pick(once_in(8) ? SRX : EP);
	int ret;

	/*
	 * ofi_rxm starts a thread in each call, but waits for one thread only
	 */
	if (!obj || (obj->enabled && ft_rdm()))
		return;
	say("enabling", "%s", name(obj));
	ret = fi_enable((struct fid_ep *) obj->fid);
	say("enable", "%s = %d", name(obj), ret);
	obj->enabled |= !ret;
}

static void close_one(void)
{
	struct obj *obj = pick(ANY_CLASS);
	bool forced = once_in(8);

	if (obj && (obj->class != DOMAIN || !ft_rxm() || forced))
		close_obj(obj);
}

const struct random_call open_calls[] = {
	CALL(open_fabric, 1), CALL(open_domain, 2), CALL(open_eq, 4),
	CALL(open_cq, 6),     CALL(open_cntr, 4),   CALL(open_av, 3),
	CALL(open_ep, 8),     CALL(open_srx, 3),    CALL(open_stx, 1),
	CALL(open_sep, 1),    CALL(open_pep, 3),    CALL(open_mr, 8),
	CALL(bind, 12),	      CALL(bind_all, 6),    CALL(enable, 6),
	CALL(close_one, 6),   { NULL, NULL, 0 },
};
