/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Incoming connection requests for reliable datagram endpoints with conditional
 * writes: see cw/cw.h. A request has the number of the requested endpoint, the
 * sender's name, and a nonce of the attempt to connect. A request has no effect
 * until the endpoint named as sender has confirmed the request (cw/ask.c).
 *
 * Each pair of endpoints has one connection. If both sides of a pair connect at
 * once, the request of the side with the lesser name counts. The side with the
 * lesser name leaves the peer's request unanswered until its own request has
 * succeeded or failed; the other side drops its own request in favour of the
 * received request. The accepting side sends the nonce of its own attempt, and
 * so makes the attempt void: a void attempt cannot replace the connection that
 * both sides agreed on. A request with a newer nonce does replace a connection,
 * since the requesting peer has lost that connection.
 *
 * Requests are read under the lock of their listener's group, and handled
 * without that lock, since they are for links in other groups.
 */
#include "config.h"
#include <arpa/inet.h>

#include "fi/cw/group.h"
#include "fi/cw/link.h"
#include "fi/cw/mark.h"
#include "fi/cw/rdm.h"

#define CW_REQUESTS 1024 /* limit of waiting requests of a group */

static struct cw_request *cw_request_new(const struct cw_mark *mark,
					 const void *name)
{
	struct cw_request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	if (!mrrc_cw_name_read(name, &request->from)) {
		free(request);
		return NULL;
	}
	request->to = mark->number;
	request->nonce = mrrc_cw_mark_cookie(mark);
	return request;
}

static bool cw_greet_event(struct mrrc_cw_group *group, struct fi_info *info,
			   const void *data, size_t len)
{
	struct mrrc_cw_name name = { 0 };
	struct cw_request *request;
	struct cw_mark mark;
	size_t name_len;
	bool asks;

	asks = mrrc_cw_mark_read(data, len, CW_MARK_ASK, &mark);
	if (!asks && !mrrc_cw_mark_read(data, len, CW_MARK_PEER, &mark))
		return false;
	if (group->request_cnt >= CW_REQUESTS)
		return false;
	name_len = ntohs(mark.len);
	if (name_len > sizeof(name))
		return false;
	memcpy(&name, (const char *) data + sizeof(mark), name_len);
	if (!name.sa.sa_family || name_len != mrrc_cw_addr_len(&name.sa))
		return false;
	request = cw_request_new(&mark, &name);
	if (!request)
		return false;
	request->pep = group->pep;
	request->info = info;
	request->asks = asks;
	mrrc_cw_greet_later(group, request);
	return true;
}

/* ---- a link and a request ------------------------------------------------ */

static void cw_greet_accept(struct mrrc_cw_ep *cw, struct cw_request *request)
{
	struct cw_mark mark;
	int ret;

	mrrc_cw_mark_make(&mark, CW_MARK_ACCEPT, 0, cw->nonce, 0);
	ret = mrrc_cw_answer(cw, request->info, &mark, sizeof(mark));
	if (ret) {
		MRRC_WARN(EP_CTRL,
			  "cannot accept a control connection from "
			  "%s: %s\n",
			  mrrc_cw_addr_text(&request->from).text,
			  fi_strerror(-ret));
		mrrc_cw_lose(cw, fi_strerror(-ret));
		mrrc_cw_refuse(request);
		return;
	}
	fi_freeinfo(request->info);
	free(request);
}

static void cw_greet_defer(struct mrrc_cw_ep *cw, struct cw_request *request)
{
	if (cw->deferred)
		mrrc_cw_refuse(cw->deferred);
	cw->deferred = request;
}

/* Lock held */
static void cw_greet_link(struct mrrc_cw_ep *cw, struct cw_request *request)
{
	if (cw->lost)
		mrrc_cw_lost(cw);
	if (cw->gone || cw->hostile || request->nonce == cw->stale) {
		mrrc_cw_refuse(request);
		return;
	}
	if (mrrc_cw_make_way(cw, memcmp(&cw->rdm->name, &cw->peer,
					sizeof(cw->peer)) < 0))
		cw_greet_accept(cw, request);
	else
		cw_greet_defer(cw, request);
}

/* ---- the endpoint that a request is for ---------------------------------- */

/* The endpoint stays until its users are fewer. */
static struct mrrc_cw_rdm *cw_greet_whom(struct mrrc_cw_domain *cwd,
					 uint32_t number)
{
	struct mrrc_cw_rdm *rdm;

	mrrc_mutex_lock(&cwd->lock);
	LIST_FOREACH(rdm, &cwd->rdms, of_domain) {
		if (rdm->number == number)
			break;
	}
	if (rdm)
		atomic_fetch_add(&rdm->users, 1);
	mrrc_mutex_unlock(&cwd->lock);
	return rdm;
}

/*
 * Does the request come from the address in the sender's name? If not, the
 * named endpoint is not asked to confirm the request.
 */
static bool cw_greet_credible(const struct mrrc_cw_rdm *rdm,
			      const struct cw_request *request)
{
	const struct sockaddr *from = request->info->dest_addr;

	return atomic_load(&rdm->started) && from &&
	       mrrc_cw_addr_port((void *) from) &&
	       mrrc_cw_addr_same_host(from, &request->from);
}

/*
 * Does the request ask about our attempt to connect to the request's sender? If
 * so, the request is consumed.
 */
static int cw_greet_answer(struct mrrc_cw_rdm *rdm, struct cw_request *request)
{
	struct mrrc_cw_ep *cw = mrrc_cw_rdm_find(rdm, &request->from);
	struct cw_mark yes;
	bool ours;

	if (!cw)
		return -FI_ENOENT;
	mrrc_mutex_lock(&cw->group->lock);
	ours = mrrc_cw_attempt(cw, request->nonce);
	mrrc_cw_group_release(cw->group);
	mrrc_cw_put(cw);
	if (!ours)
		return -FI_ENOENT;
	mrrc_cw_mark_make(&yes, CW_MARK_YES, 0, request->nonce, 0);
	fi_reject(request->pep, request->info->handle, &yes, sizeof(yes));
	fi_freeinfo(request->info);
	free(request);
	return 0;
}

static int cw_greet_proven(struct mrrc_cw_rdm *rdm, struct cw_request *request)
{
	struct mrrc_cw_ep *cw;
	int ret;

	ret = mrrc_cw_rdm_get_from(rdm, &request->from, &cw);
	if (ret)
		return ret;
	mrrc_mutex_lock(&cw->group->lock);
	cw_greet_link(cw, request);
	mrrc_cw_group_unlock(cw->group);
	mrrc_cw_put(cw);
	return 0;
}

static int cw_greet_one(struct mrrc_cw_group *group, struct cw_request *request)
{
	struct mrrc_cw_rdm *rdm = cw_greet_whom(group->cwd, request->to);
	int ret;

	if (!rdm)
		return -FI_ENOENT;
	if (rdm->home->pep != request->pep || !cw_greet_credible(rdm, request))
		ret = -FI_EACCES;
	else if (request->asks)
		ret = cw_greet_answer(rdm, request);
	else if (!request->proven)
		ret = mrrc_cw_ask(group, rdm, request);
	else
		ret = cw_greet_proven(rdm, request);
	atomic_fetch_sub(&rdm->users, 1);
	return ret;
}

/* The first request that can be handled now, or NULL */
static struct cw_request *cw_greet_next(struct mrrc_cw_group *group)
{
	struct cw_request *request = STAILQ_FIRST(&group->requests);

	return request && (request->asks || request->proven ||
			   mrrc_cw_ask_room(group)) ?
		       request :
		       NULL;
}

static void cw_greet(struct mrrc_cw_group *group)
{
	struct cw_request *request;
	struct mrrc_cw_rdm *rdm;
	int ret;

	while (!group->greeting && (request = cw_greet_next(group))) {
		STAILQ_REMOVE(&group->requests, request, cw_request, link);
		group->request_cnt--;
		rdm = request->rdm;
		request->rdm = NULL;
		group->greeting = true;
		mrrc_cw_group_release(group);
		ret = cw_greet_one(group, request);
		if (ret && !request->asks)
			MRRC_WARN(EP_CTRL,
				  "control connection from %s is "
				  "refused: %s\n",
				  mrrc_cw_addr_text(&request->from).text,
				  fi_strerror(-ret));
		if (ret)
			mrrc_cw_refuse(request);
		if (rdm)
			atomic_fetch_sub(&rdm->users, 1);
		mrrc_mutex_lock(&group->lock);
		group->greeting = false;
		/* the group's timer depends on whether requests wait */
		if (group->ask_cnt)
			mrrc_cw_alarm(group);
	}
}

const struct mrrc_cw_over mrrc_cw_admission = {
	.count = mrrc_cw_rdm_count,
	.request = cw_greet_event,
	.answer = mrrc_cw_ask_event,
	.until = mrrc_cw_ask_until,
	.late = mrrc_cw_ask_late,
	.greet = cw_greet,
	.shut = mrrc_cw_ask_free,
};
