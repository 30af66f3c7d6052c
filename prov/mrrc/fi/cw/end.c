/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ends conditional operations (cw/cw.h): their completions are written, and the
 * registrations of their buffers released, when the group's lock is released.
 */
#include "config.h"
#include "fi/cw/group.h"
#include "fi/cw/link.h"
#include "fi/data/bounce.h"
#include "fi/data/resolve.h"
#include "fi/param.h"
#include "fi/record/record.h"
#include "sys/base/pool.h"

void mrrc_cw_rec_free(struct cw_rec *rec)
{
	mrrc_comp_free(rec->comp);
	if (rec->iov != rec->few)
		free(rec->iov);
	mrrc_pool_free(rec->cw->group->cwd->recs, rec);
}

void mrrc_cw_conceal(struct mrrc_domain *domain, struct cw_rec *rec)
{
	int ret;

	if (mrrc_unlikely(rec->trace))
		mrrc_record_end(&rec->trace);
	while (rec->mr_cnt--) {
		if (rec->region[rec->mr_cnt]) {
			mrrc_cache_mt_put(domain->reg.cache,
					  rec->region[rec->mr_cnt]);
			continue;
		}
		ret = fi_close(&rec->mr[rec->mr_cnt]->fid);
		if (ret)
			MRRC_WARN(
				MR,
				"cannot close the registration of an "
				"exposed buffer: peers can still write to it: "
				"%s\n",
				fi_strerror(-ret));
	}
}

/* ---- cancelled targets --------------------------------------------------- */

/*
 * While the peer's confirmation is awaited, the link counts as connecting, so
 * that the group's deadlines are checked.
 */
void mrrc_cw_confirm(struct cw_rec *rec)
{
	struct mrrc_cw_ep *cw = rec->cw;
	const bool first = TAILQ_EMPTY(&cw->confirms);

	if (!mrrc_params.cw_cancel)
		return;
	rec->confirm_by = mrrc_now_ms() + mrrc_params.cw_cancel;
	TAILQ_INSERT_TAIL(&cw->confirms, rec, confirm_link);
	atomic_fetch_add(&cw->group->meeting, 1);
	if (first)
		mrrc_cw_alarm(cw->group);
}

void mrrc_cw_confirmed(struct cw_rec *rec)
{
	struct mrrc_cw_ep *cw = rec->cw;
	const bool first = rec == TAILQ_FIRST(&cw->confirms);

	rec->confirm_by = 0;
	TAILQ_REMOVE(&cw->confirms, rec, confirm_link);
	atomic_fetch_sub(&cw->group->meeting, 1);
	if (first)
		mrrc_cw_alarm(cw->group);
}

/* ---- the end ------------------------------------------------------------- */

static void cw_report(struct cw_rec *rec)
{
	struct mrrc_ep *ep = rec->cw->ep;
	const struct mrrc_ep_dir *dir = rec->is_wr ? &ep->tx : &ep->rx;
	struct fi_cq_err_entry entry = {
		.op_context = rec->context,
		.flags = FI_MRRC_CW | FI_RMA |
			 (rec->is_wr ? FI_WRITE : FI_REMOTE_WRITE),
		.buf = rec->is_wr ? NULL : rec->buf,
		.len = rec->is_wr ? 0 : rec->end.len,
		.tag = rec->is_wr ? rec->wr.cwtag : rec->target.cwtag,
		.err = rec->end.err,
		.prov_errno = rec->end.err,
	};

	if (dir->cq->internal ||
	    (!rec->end.err && dir->selective && !(rec->flags & FI_COMPLETION)))
		return;
	if (rec->end.has_data) {
		entry.flags |= FI_REMOTE_CQ_DATA;
		entry.data = rec->end.data;
	}
	mrrc_pending_write(dir->cq, rec->comp, &entry);
	rec->comp = NULL;
}

void mrrc_cw_finish(struct cw_list *list)
{
	struct mrrc_cw_ep *cw;
	struct cw_rec *rec;

	while ((rec = STAILQ_FIRST(list))) {
		STAILQ_REMOVE_HEAD(list, link);
		cw = rec->cw;
		if (rec->is_wr && rec->op) {
			if (!rec->end.err && mrrc_bounce_lost(rec->op))
				rec->end.err = FI_EIO;
			mrrc_op_end(rec->op);
		} else if (!rec->is_wr)
			mrrc_cw_conceal(cw->via->domain, rec);
		cw_report(rec);
		mrrc_cw_rec_free(rec);
		/* from now on the endpoint may be gone */
		atomic_fetch_sub(&cw->ending, 1);
	}
}
