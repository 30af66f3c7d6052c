/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connection of a link, from its first phase to its end: one side listens,
 * the other connects, and each side gives up after CW_MEET_MS. See cw/cw.h.
 *
 * A group listens at one port (cw/listen.c) for connections to all endpoints of
 * the group, and to reliable datagram endpoints whose home is the group.
 */
#include "config.h"

#include "fi/cw/group.h"
#include "fi/cw/link.h"
#include "fi/cw/mark.h"
#include "fi/cw/rdm.h"
#include "fi/secret.h"

#define CW_EVENT_DATA 512

static bool cw_meeting(enum cw_phase phase)
{
	return phase == CW_LISTENING || phase == CW_CONNECTING;
}

bool mrrc_cw_meets(const struct mrrc_cw_ep *cw)
{
	return cw_meeting(cw->phase) || cw->phase == CW_UP;
}

static void cw_set_phase(struct mrrc_cw_ep *cw, enum cw_phase phase)
{
	bool met = cw_meeting(cw->phase), meets = cw_meeting(phase);

	/*
	 * the listener for a reliable datagram endpoint stays as long as the
	 * endpoint
	 */
	if (!cw->rdm)
		cw->group->awaited +=
			(phase == CW_LISTENING) - (cw->phase == CW_LISTENING);
	cw->phase = phase;
	if (met == meets)
		return;
	if (meets) {
		cw->meet_by = mrrc_now_ms() + CW_MEET_MS;
		atomic_fetch_add(&cw->group->meeting, 1);
	} else {
		atomic_fetch_sub(&cw->group->meeting, 1);
	}
	mrrc_cw_alarm(cw->group);
}

enum cw_act mrrc_cw_step(struct mrrc_cw_ep *cw, enum cw_event event)
{
	const enum cw_phase phase = cw->phase;
	const struct cw_step step = mrrc_cw_phase_step(phase, event);

	if (step.act == CW_DO_REFUSE)
		MRRC_WARN(EP_CTRL,
			  "%s must not happen while a control connection is "
			  "%s\n",
			  mrrc_cw_event_name(event), mrrc_cw_phase_name(phase));
	else if (step.next != phase)
		cw_set_phase(cw, step.next);
	return step.act;
}

int64_t mrrc_cw_until(const struct mrrc_cw_ep *cw)
{
	const struct cw_rec *oldest = TAILQ_FIRST(&cw->confirms);

	if (cw_meeting(cw->phase))
		return cw->meet_by;
	return oldest ? oldest->confirm_by : 0;
}

/* ---- ends ---------------------------------------------------------------- */

static void cw_end(struct mrrc_cw_ep *cw)
{
	if (cw->lost)
		TAILQ_REMOVE(&cw->group->lost, cw, lost_link);
	cw->lost = false;
	mrrc_cw_step(cw, CW_ON_CLOSE);
	mrrc_cw_link_close(cw);
}

void mrrc_cw_end_all(struct mrrc_cw_ep *cw, int err)
{
	cw_end(cw);
	mrrc_cw_down(&cw->sm, err);
	mrrc_cw_over->count(cw);
}

void mrrc_cw_link_init(struct mrrc_cw_ep *cw)
{
	struct mrrc_cw_attr attr = {
		.credits = CW_RX,
		.pending = CW_PENDING,
		.inline_max = cw->inline_max,
	};
	struct mrrc_cache_mt *cache = cw->ep->domain->reg.cache;

	if (cache)
		attr.stats = mrrc_cache_mt_shared_stats(cache);
	mrrc_secret_make(&attr.secret);
	if (cw->rdm) {
		attr.cookie = mrrc_cw_name_number(&cw->peer);
		attr.my_cookie = cw->rdm->number;
	}
	mrrc_cw_init(&cw->sm, &attr, &mrrc_cw_sm_ops, cw);
}

void mrrc_cw_renew(struct mrrc_cw_ep *cw)
{
	const struct mrrc_cw_stats stats = cw->sm.stats;

	mrrc_cw_fini(&cw->sm);
	mrrc_cw_link_init(cw);
	cw->sm.stats = stats;
	cw->busy = 0;
	cw->partial = NULL;
	mrrc_cw_step(cw, CW_ON_RESET);
}

void mrrc_cw_unlink(struct mrrc_cw_ep *cw)
{
	/* messages may come before FI_CONNECTED */
	if (cw->sm.heard || cw->sm.err || cw->hostile) {
		mrrc_cw_end_all(cw, FI_ECONNABORTED);
		mrrc_cw_renew(cw);
	} else {
		cw_end(cw);
		mrrc_cw_step(cw, CW_ON_RESET);
	}
}

void mrrc_cw_lost(struct mrrc_cw_ep *cw)
{
	if (!cw->deferred) {
		mrrc_cw_end_all(cw, FI_ECONNABORTED);
		return;
	}
	mrrc_cw_unlink(cw);
	mrrc_cw_greet_deferred(cw);
}

/* ---- connecting ---------------------------------------------------------- */

int mrrc_cw_dial(struct mrrc_cw_ep *cw, const struct sockaddr *dest,
		 const void *param, size_t len)
{
	struct fi_info *info;
	int ret;

	ret = mrrc_cw_info_to(cw->via, dest, cw->rdm ? &cw->rdm->name : NULL,
			      &info);
	if (ret)
		return ret;
	ret = mrrc_cw_link_open(cw, info);
	if (!ret) {
		mrrc_cw_step(cw, CW_ON_DIAL);
		ret = fi_connect(cw->ctl, info->dest_addr, param, len);
	}
	fi_freeinfo(info);
	return ret;
}

int mrrc_cw_answer(struct mrrc_cw_ep *cw, struct fi_info *info,
		   const void *param, size_t len)
{
	int ret;

	mrrc_cw_info_adapt(info);
	ret = mrrc_cw_link_open(cw, info);
	if (ret)
		return ret;
	ret = fi_accept(cw->ctl, param, len);
	if (ret) {
		/*
		 * the control endpoint may own the request, which is rejected
		 * next
		 */
		fi_close(&cw->ctl->fid);
		cw->ctl = NULL;
	}
	return ret;
}

bool mrrc_cw_make_way(struct mrrc_cw_ep *cw, bool ours_first)
{
	enum cw_act act = mrrc_cw_step(cw, CW_ON_REQUEST);

	if (act == CW_DO_CHOOSE && ours_first)
		return false;
	if (act == CW_DO_CHOOSE || act == CW_DO_DROP)
		mrrc_cw_unlink(cw);
	if (act == CW_DO_END)
		mrrc_cw_end_all(cw, FI_ECONNABORTED);
	if (act == CW_DO_END || act == CW_DO_RENEW)
		mrrc_cw_renew(cw);
	mrrc_cw_step(cw, CW_ON_AWAIT);
	return true;
}

bool mrrc_cw_attempt(struct mrrc_cw_ep *cw, uint64_t nonce)
{
	if (cw->phase != CW_CONNECTING || cw->nonce != nonce)
		return false;
	cw->meet_by = mrrc_now_ms() + CW_MEET_MS;
	mrrc_cw_alarm(cw->group);
	return true;
}

/*
 * Handles a connection request at our listener: finds the link by the cookie.
 */
static void cw_connreq(struct mrrc_cw_group *group, struct fi_info *info,
		       const void *data, size_t len)
{
	struct mrrc_cw_ep *cw = NULL;
	struct cw_mark mark;
	int ret;

	if (mrrc_cw_mark_read(data, len, CW_MARK_CONTROL, &mark)) {
		TAILQ_FOREACH(cw, &group->eps, link) {
			if (cw->phase == CW_LISTENING && !cw->ctl && !cw->rdm &&
			    cw->cookie == mrrc_cw_mark_cookie(&mark))
				break;
		}
	}
	if (!cw) {
		MRRC_WARN(EP_CTRL,
			  "connection from %s is refused: no control "
			  "connection is expected from this address\n",
			  mrrc_cw_addr_text(info->dest_addr).text);
		fi_reject(group->pep, info->handle, NULL, 0);
		return;
	}
	ret = mrrc_cw_answer(cw, info, NULL, 0);
	if (ret) {
		/* cores free a request when it is accepted or rejected */
		fi_reject(group->pep, info->handle, NULL, 0);
		MRRC_WARN(EP_CTRL,
			  "cannot accept a control connection from "
			  "%s: %s\n",
			  mrrc_cw_addr_text(info->dest_addr).text,
			  fi_strerror(-ret));
		mrrc_cw_lose(cw, fi_strerror(-ret));
	}
}

static void cw_connected(struct mrrc_cw_ep *cw, const void *data, size_t len)
{
	struct cw_mark mark;

	if (cw->rdm && cw->phase == CW_CONNECTING) {
		if (!mrrc_cw_mark_read(data, len, CW_MARK_ACCEPT, &mark)) {
			mrrc_cw_lose(cw, "this is not where the peer listens");
			return;
		}
		cw->stale = mrrc_cw_mark_cookie(&mark);
	}
	if (mrrc_cw_step(cw, CW_ON_MET) != CW_DO_GREET)
		return;
	if (cw->deferred)
		mrrc_cw_greet_deferred(cw);
	mrrc_cw_hello(&cw->sm);
	mrrc_cw_after(cw);
}

/*
 * Finds the link of an event by address, since the object that the event names
 * may be closed.
 */
static struct mrrc_cw_ep *cw_find(struct mrrc_cw_group *group,
				  const struct fid *fid)
{
	struct mrrc_cw_ep *cw;

	TAILQ_FOREACH(cw, &group->eps, link) {
		if (cw->ctl && fid == &cw->ctl->fid)
			return cw;
	}
	return NULL;
}

/* Ends the connection after the messages that came before its end. */
static void cw_gone(struct mrrc_cw_ep *cw, const char *why)
{
	mrrc_cw_links_drain(cw->group);
	mrrc_cw_lose(cw, why);
}

static void cw_event(struct mrrc_cw_group *group, uint32_t event,
		     struct fi_eq_cm_entry *entry, size_t len)
{
	struct mrrc_cw_ep *cw = cw_find(group, entry->fid);

	switch (event) {
	case FI_CONNREQ:
		if (!group->pep || !entry->info)
			break;
		if (mrrc_cw_over->request(group, entry->info, entry->data,
					  len - sizeof(*entry)))
			break;
		cw_connreq(group, entry->info, entry->data,
			   len - sizeof(*entry));
		fi_freeinfo(entry->info);
		break;
	case FI_CONNECTED:
		if (cw)
			cw_connected(cw, entry->data, len - sizeof(*entry));
		else /* a question, which is never accepted */
			mrrc_cw_over->answer(group, entry->fid, NULL, 0, 0);
		break;
	case FI_SHUTDOWN:
		if (cw)
			cw_gone(cw, "the peer has gone");
		else
			mrrc_cw_over->answer(group, entry->fid, NULL, 0, 0);
		break;
	default:
		break;
	}
}

unsigned mrrc_cw_events(struct mrrc_cw_group *group)
{
	union {
		struct fi_eq_cm_entry cm;
		char room[sizeof(struct fi_eq_cm_entry) + CW_EVENT_DATA];
	} entry;
	struct fi_eq_err_entry err;
	struct mrrc_cw_ep *cw;
	unsigned cnt = 0;
	uint32_t event;
	ssize_t ret;

	for (;; cnt++) {
		/*
		 * tcp (2.1) reports errno as the reason why a connection ended
		 */
		errno = 0;
		ret = fi_eq_read(group->eq, &event, &entry, sizeof(entry), 0);
		if (ret >= (ssize_t) sizeof(entry.cm)) {
			cw_event(group, event, &entry.cm, ret);
			continue;
		}
		if (ret != -FI_EAVAIL)
			return cnt;
		memset(&err, 0, sizeof(err));
		errno = 0;
		if (fi_eq_readerr(group->eq, &err, 0) <= 0)
			return cnt;
		/* a listener continues: one connection to it has failed */
		cw = cw_find(group, err.fid);
		if (cw)
			cw_gone(cw, fi_strerror(err.err));
		else
			mrrc_cw_over->answer(group, err.fid, err.err_data,
					     err.err_data_size, err.err);
	}
}
