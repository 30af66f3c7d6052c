/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_bind: tests which objects can be bound to each other, as in the core.
 */
#include "ft_mrrc.h"

static struct ft_pair pair;
static struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_DATA };
static struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };

/* Checks that the next event is a refused connection of this endpoint. */
static void refused(struct fid_eq *eq, const struct fid_ep *ep)
{
	uint64_t end = ft_deadline();
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_cm_entry entry;
	uint32_t event;
	ssize_t ret;

	for (;;) {
		/* the listener's side has to make progress, too */
		ret = fi_eq_read(pair.peq, &event, &entry, sizeof(entry), 0);
		if (ret > 0) {
			FT_CHECK(event == FI_CONNREQ, "event %u", event);
			FT_CALL(fi_reject(pair.pep, entry.info->handle, NULL,
					  0));
			fi_freeinfo(entry.info);
		}
		ret = fi_eq_read(eq, &event, &entry, sizeof(entry), 0);
		if (ret == -FI_EAVAIL)
			break;
		FT_CHECK(ret == -FI_EAGAIN, "fi_eq_read: %zd", ret);
		FT_CHECK(ft_limit_us() < end, "no event");
	}
	ret = fi_eq_readerr(eq, &err, 0);
	FT_CHECK(ret > 0 && err.fid == &ep->fid, "%zd: %p, not %p", ret,
		 (void *) err.fid, (void *) &ep->fid);
}

/* A domain's EQ serves endpoints without an EQ of their own. */
static void default_eq(void)
{
	struct ft_dom *dom = &pair.dom[1];
	struct fid_domain *domain;
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_eq *eq;
	int ret;

	ft_stage("the domain's event queue");
	FT_CALL(fi_domain(dom->fabric, dom->info, &domain, NULL));
	FT_CALL(fi_eq_open(dom->fabric, &eq_attr, &eq, NULL));
	ret = fi_domain_bind(domain, &eq->fid, 0);
	if (ft_rxm())
		FT_CHECK(ret == -FI_ENOSYS, "fi_domain_bind: %d", ret);
	/* tcp of 2.1 writes no event to the domain's EQ */
	if (ft_core("tcp") && !ft_rdm() && FI_MAJOR_VERSION < 2) {
		FT_CHECK(!ret, "fi_domain_bind: %d", ret);
		FT_CALL(fi_cq_open(domain, &cq_attr, &cq, NULL));
		FT_CALL(fi_endpoint(domain, dom->info, &ep, NULL));
		FT_CALL(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
		FT_CALL(fi_enable(ep));
		FT_CALL(fi_connect(ep, dom->info->dest_addr, NULL, 0));
		refused(eq, ep);
		FT_CALL(fi_close(&ep->fid));
		FT_CALL(fi_close(&cq->fid));
		ret = fi_close(&eq->fid);
		FT_CHECK(ret == -FI_EBUSY, "closed while bound: %d", ret);
	}
	FT_CALL(fi_close(&domain->fid));
	FT_CALL(fi_close(&eq->fid));
}

/* A direction has one CQ, even if its completions are selective. */
static void one_cq(uint64_t flags)
{
	struct fi_av_attr av_attr = { .type = FI_AV_UNSPEC };
	struct ft_dom *dom = &pair.dom[1];
	struct fid_av *av = NULL;
	struct fid_eq *eq = NULL;
	struct fid_cq *cq[2];
	struct fid_ep *ep;
	int ret, i;

	ft_stage("two queues, flags %#" PRIx64, flags);
	for (i = 0; i < 2; i++)
		FT_CALL(fi_cq_open(dom->domain, &cq_attr, &cq[i], NULL));
	FT_CALL(fi_endpoint(dom->domain, dom->info, &ep, NULL));
	if (ft_rdm()) {
		/* ofi_rxm cannot close an endpoint without an AV */
		FT_CALL(fi_av_open(dom->domain, &av_attr, &av, NULL));
		FT_CALL(fi_ep_bind(ep, &av->fid, 0));
	}
	ret = fi_ep_bind(ep, &cq[0]->fid, flags | FI_READ);
	FT_CHECK(ret == -FI_EBADFLAGS, "bound with FI_READ: %d", ret);
	FT_CALL(fi_ep_bind(ep, &cq[0]->fid, flags));
	for (i = 0; i < 2; i++) {
		ret = fi_ep_bind(ep, &cq[i]->fid, flags);
		FT_CHECK(ret == -FI_EINVAL, "bound again: %d", ret);
	}
	if (flags & FI_RECV) {
		ret = fi_ep_bind(ep, &cq[1]->fid, FI_RECV);
		FT_CHECK(ret == -FI_EINVAL, "bound again, plain: %d", ret);
	}
	if (flags == FI_TRANSMIT) {
		ret = fi_ep_bind(ep, &cq[1]->fid,
				 FI_TRANSMIT | FI_RECV |
					 FI_SELECTIVE_COMPLETION);
		FT_CHECK(ret == -FI_EINVAL, "bound again, with more: %d", ret);
		/* the refused call has bound nothing */
		FT_CALL(fi_ep_bind(ep, &cq[1]->fid, FI_RECV));
		if (!ft_rdm()) {
			FT_CALL(fi_eq_open(dom->fabric, &eq_attr, &eq, NULL));
			FT_CALL(fi_ep_bind(ep, &eq->fid, 0));
		}
		FT_CALL(fi_enable(ep));
	}
	FT_CALL(fi_close(&ep->fid));
	if (av)
		FT_CALL(fi_close(&av->fid));
	if (eq)
		FT_CALL(fi_close(&eq->fid));
	for (i = 0; i < 2; i++)
		FT_CALL(fi_close(&cq[i]->fid));
}

/*
 * Another domain's queue would not know the endpoint's operations, and would
 * report them with wrong contexts.
 */
static void other_domain(uint64_t flags)
{
	struct fi_av_attr av_attr = { .type = FI_AV_UNSPEC };
	struct ft_dom *dom = &pair.dom[1];
	struct fid_domain *domain;
	struct fid_av *av = NULL;
	struct fid_cq *cq;
	struct fid_ep *ep;
	int ret;

	if (ft_opts.raw)
		return;
	ft_stage("another domain's queue, flags %#" PRIx64, flags);
	FT_CALL(fi_domain(dom->fabric, dom->info, &domain, NULL));
	FT_CALL(fi_cq_open(domain, &cq_attr, &cq, NULL));
	FT_CALL(fi_endpoint(dom->domain, dom->info, &ep, NULL));
	if (ft_rdm()) {
		/* ofi_rxm cannot close an endpoint without an AV */
		FT_CALL(fi_av_open(dom->domain, &av_attr, &av, NULL));
		FT_CALL(fi_ep_bind(ep, &av->fid, 0));
	}
	ret = fi_ep_bind(ep, &cq->fid, flags);
	FT_CHECK(ret == -FI_EINVAL, "bound: %d", ret);
	FT_CALL(fi_close(&ep->fid));
	if (av)
		FT_CALL(fi_close(&av->fid));
	FT_CALL(fi_close(&cq->fid));
	FT_CALL(fi_close(&domain->fid));
}

/*
 * An endpoint that has only a counter cannot be enabled; an endpoint with a
 * counter and a queue can be enabled.
 */
static void counter_first(bool parts)
{
	struct fi_av_attr av_attr = { .type = FI_AV_UNSPEC };
	struct fi_cntr_attr cntr_attr = { 0 };
	struct ft_dom *dom = &pair.dom[1];
	struct fid_av *av = NULL;
	struct fid_eq *eq = NULL;
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid_ep *ep;
	int ret;

	ft_stage("a counter, %s", parts ? "alone in its direction" : "alone");
	if (fi_cntr_open(dom->domain, &cntr_attr, &cntr, NULL))
		return; /* verbs has no counters */
	FT_CALL(fi_cq_open(dom->domain, &cq_attr, &cq, NULL));
	FT_CALL(fi_endpoint(dom->domain, dom->info, &ep, NULL));
	FT_CALL(fi_ep_bind(ep, &cntr->fid, FI_SEND | (parts ? 0 : FI_RECV)));
	if (ft_rdm()) {
		FT_CALL(fi_av_open(dom->domain, &av_attr, &av, NULL));
		/* the endpoint lacks a counter or a queue */
		if (parts)
			FT_CALL(fi_ep_bind(ep, &av->fid, 0));
	} else {
		FT_CALL(fi_eq_open(dom->fabric, &eq_attr, &eq, NULL));
		if (parts)
			FT_CALL(fi_ep_bind(ep, &eq->fid, 0));
	}
	ret = fi_enable(ep);
	FT_CHECK(ret, "enabled");
	FT_CALL(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	if (!parts)
		FT_CALL(fi_ep_bind(ep, av ? &av->fid : &eq->fid, 0));
	FT_CALL(fi_enable(ep));
	FT_CALL(fi_close(&ep->fid));
	if (av)
		FT_CALL(fi_close(&av->fid));
	if (eq)
		FT_CALL(fi_close(&eq->fid));
	FT_CALL(fi_close(&cq->fid));
	FT_CALL(fi_close(&cntr->fid));
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;

	ft_init(argc, argv);
	ft_pair_open(&pair, &attr);
	default_eq();
	one_cq(FI_RECV);
	one_cq(FI_TRANSMIT);
	one_cq(FI_RECV | FI_SELECTIVE_COMPLETION);
	one_cq(FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
	one_cq(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION);
	other_domain(FI_TRANSMIT);
	other_domain(FI_RECV | FI_SELECTIVE_COMPLETION);
	counter_first(true);
	counter_first(false);
	ft_pair_close(&pair);
	return ft_done();
}
