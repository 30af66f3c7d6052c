/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waiting connection requests of reliable datagram endpoints: see cw/cw.h.
 */
#include "config.h"
#include "fi/cw/group.h"
#include "fi/cw/rdm.h"

void mrrc_cw_refuse(struct cw_request *request)
{
	fi_reject(request->pep, request->info->handle, NULL, 0);
	fi_freeinfo(request->info);
	free(request);
}

void mrrc_cw_greet_later(struct mrrc_cw_group *group,
			 struct cw_request *request)
{
	/*
	 * requests that need no question, or whose question is answered, go
	 * first: other requests may have to wait
	 */
	if (request->asks || request->proven)
		STAILQ_INSERT_HEAD(&group->requests, request, link);
	else
		STAILQ_INSERT_TAIL(&group->requests, request, link);
	group->request_cnt++;
}

void mrrc_cw_greet_deferred(struct mrrc_cw_ep *cw)
{
	/* the endpoint waits for the link, so its listener stays until then */
	cw->deferred->rdm = cw->rdm;
	atomic_fetch_add(&cw->rdm->users, 1);
	mrrc_cw_greet_later(cw->group, cw->deferred);
	cw->deferred = NULL;
}
