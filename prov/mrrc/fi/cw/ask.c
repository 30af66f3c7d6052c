/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Verifies the sender of a request for a reliable datagram endpoint: see cw.h.
 * An endpoint's name is no secret: any process could connect under the name. So
 * the provider asks the named endpoint, at the port in the name, which no other
 * process has while the named endpoint lives. The asked endpoint confirms the
 * request if it is connecting to the asking endpoint at the moment, with the
 * same nonce. So a forged request does not end an existing connection.
 *
 * A question is a connection request that is always refused; the refusal has
 * the answer, so the asked side needs neither an endpoint nor a message.
 */
#include "config.h"
#include "fi/cw/group.h"
#include "fi/cw/mark.h"
#include "fi/cw/rdm.h"

#define CW_ASKS 256 /* limit of a group's questions at a time */
/*
 * while other questions wait, a question is dropped when it has been unanswered
 * for this time
 */
#define CW_ASK_MS    1000
#define CW_ASK_TRIES 3 /* tries when the network fails */

/* Ends the question of a request. */
static void cw_ask_end(struct mrrc_cw_group *group, struct cw_request *request)
{
	int ret = fi_close(&request->ask->fid);

	if (ret)
		MRRC_WARN(EP_CTRL, "cannot close a control endpoint: %s\n",
			  fi_strerror(-ret));
	request->ask = NULL;
	STAILQ_REMOVE(&group->asks, request, cw_request, link);
	group->ask_cnt--;
	atomic_fetch_sub(&group->meeting, 1);
	mrrc_cw_alarm(group);
}

static void cw_ask_no(struct mrrc_cw_group *group, struct cw_request *request,
		      const char *why)
{
	cw_ask_end(group, request);
	/* a refusal is also usual when both sides connect at once */
	MRRC_INFO(EP_CTRL, "control connection from %s is refused: %s\n",
		  mrrc_cw_addr_text(&request->from).text, why);
	mrrc_cw_refuse(request);
}

bool mrrc_cw_ask_room(struct mrrc_cw_group *group)
{
	struct cw_request *oldest = STAILQ_FIRST(&group->asks);

	if (group->ask_cnt < CW_ASKS)
		return true;
	if (mrrc_now_ms() < oldest->ask_by - CW_MEET_MS + CW_ASK_MS)
		return false;
	cw_ask_no(group, oldest, "the endpoint there does not answer");
	return true;
}

int64_t mrrc_cw_ask_until(const struct mrrc_cw_group *group)
{
	const struct cw_request *oldest = STAILQ_FIRST(&group->asks);

	if (!oldest)
		return 0;
	return STAILQ_EMPTY(&group->requests) ?
		       oldest->ask_by :
		       oldest->ask_by - CW_MEET_MS + CW_ASK_MS;
}

static int cw_ask_connect(struct mrrc_cw_group *group,
			  const struct mrrc_cw_rdm *rdm,
			  struct cw_request *request, struct fi_info *info)
{
	const size_t len = mrrc_cw_addr_len(&rdm->name.sa);
	struct cw_peer_mark data;
	int ret;

	ret = fi_ep_bind(request->ask, &group->eq->fid, 0);
	if (!ret)
		ret = fi_ep_bind(request->ask, &group->cq->fid,
				 FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = fi_enable(request->ask);
	mrrc_cw_mark_make(&data.mark, CW_MARK_ASK, len, request->nonce, 0);
	data.mark.number = mrrc_cw_name_number(&request->from);
	data.name = rdm->name;
	if (!ret)
		ret = fi_connect(request->ask, info->dest_addr, &data,
				 sizeof(data.mark) + len);
	return ret;
}

/* Asks; the endpoint that the request is for exists. Lock held */
static int cw_ask_begin(struct mrrc_cw_group *group,
			const struct mrrc_cw_rdm *rdm,
			struct cw_request *request, struct fi_info *info)
{
	int ret = cw_ask_connect(group, rdm, request, info);

	if (ret) {
		fi_close(&request->ask->fid);
		request->ask = NULL;
		return ret;
	}
	request->ask_by = mrrc_now_ms() + CW_MEET_MS;
	STAILQ_INSERT_TAIL(&group->asks, request, link);
	group->ask_cnt++;
	atomic_fetch_add(&group->meeting, 1);
	mrrc_cw_alarm(group);
	return 0;
}

int mrrc_cw_ask(struct mrrc_cw_group *group, const struct mrrc_cw_rdm *rdm,
		struct cw_request *request)
{
	struct sockaddr_storage dest;
	struct fi_info *info;
	int ret;

	mrrc_cw_name_dest(&request->from, &dest);
	ret = mrrc_cw_info_to(group->cwd->below, (struct sockaddr *) &dest,
			      &rdm->name, &info);
	if (ret)
		return ret;
	info->tx_attr->size = info->rx_attr->size = 1;
	/* verbs resolves the route, which may take seconds */
	ret = fi_endpoint(group->domain->core, info, &request->ask, request);
	mrrc_mutex_lock(&group->lock);
	if (!ret)
		ret = cw_ask_begin(group, rdm, request, info);
	mrrc_cw_group_release(group);
	fi_freeinfo(info);
	return ret;
}

void mrrc_cw_ask_event(struct mrrc_cw_group *group, const struct fid *fid,
		       const void *data, size_t len, int err)
{
	struct cw_request *request;
	struct cw_mark mark;

	STAILQ_FOREACH(request, &group->asks, link) {
		if (fid == &request->ask->fid)
			break;
	}
	if (!request)
		return;
	if (err && err != FI_ECONNREFUSED && ++request->tries < CW_ASK_TRIES) {
		/* not a refusal: the network failed, or lacked room */
		cw_ask_end(group, request);
		mrrc_cw_greet_later(group, request);
		return;
	}
	if (!mrrc_cw_mark_read(data, len, CW_MARK_YES, &mark) ||
	    mrrc_cw_mark_cookie(&mark) != request->nonce) {
		cw_ask_no(group, request, "the endpoint there denies it");
		return;
	}
	cw_ask_end(group, request);
	request->proven = true;
	mrrc_cw_greet_later(group, request);
}

void mrrc_cw_ask_late(struct mrrc_cw_group *group)
{
	struct cw_request *oldest;

	while ((oldest = STAILQ_FIRST(&group->asks)) &&
	       mrrc_now_ms() > oldest->ask_by)
		cw_ask_no(group, oldest, "the endpoint there does not answer");
}

void mrrc_cw_ask_free(struct mrrc_cw_group *group)
{
	struct cw_request *request;

	while ((request = STAILQ_FIRST(&group->asks))) {
		cw_ask_end(group, request);
		mrrc_cw_refuse(request);
	}
}
