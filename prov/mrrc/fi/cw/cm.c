/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The application's connection of two endpoints with conditional writes, over
 * which their control endpoints learn of each other. See cw/cw.h.
 *
 * The control endpoints learn of each other from marks in front of the
 * application's private data: the connecting side says that it takes part; the
 * accepting side says the same, and adds the port where it listens for the
 * control endpoint, and a cookie that the control endpoint has to bring. The
 * provider has a listener of its own, as the application may close the
 * application's listener, or read no more events from it.
 *
 * The handle of a connection request is noted if the request had a mark
 * (obj/request.c).
 */
#include "config.h"
#include <arpa/inet.h>
#include <sys/random.h>

#include "fi/cw/cw.h"
#include "fi/cw/group.h"
#include "fi/cw/link.h"
#include "fi/cw/mark.h"
#include "fi/fid.h"
#include "fi/obj/request.h"

/* ---- connecting and accepting -------------------------------------------- */

/* Connects to the port that the peer gave. The group's lock is held. */
static int cw_connect(struct mrrc_cw_ep *cw, const struct cw_mark *mark)
{
	struct cw_mark mine;

	cw->cookie = mrrc_cw_mark_cookie(mark);
	cw->sm.attr.cookie = cw->sm.attr.my_cookie = cw->cookie;
	*mrrc_cw_addr_port(&cw->dest) = mark->port;
	mrrc_cw_mark_make(&mine, CW_MARK_CONTROL, 0, cw->cookie, 0);
	return mrrc_cw_dial(cw, (struct sockaddr *) &cw->dest, &mine,
			    sizeof(mine));
}

/* Allocates private data: the mark, then the application's data */
static void *cw_with_mark(const struct cw_mark *mark, const void *param,
			  size_t len)
{
	char *data = malloc(sizeof(*mark) + len);

	if (!data)
		return NULL;
	memcpy(data, mark, sizeof(*mark));
	if (len)
		memcpy(data + sizeof(*mark), param, len);
	return data;
}

/* Checks the length of the private data, as cores may not. */
static int cw_param_check(const struct mrrc_ep *ep, size_t len)
{
	size_t max = UINT16_MAX, size = sizeof(max);

	fi_getopt(&ep->core->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &max,
		  &size);
	if (len <= UINT16_MAX && len + sizeof(struct cw_mark) <= max)
		return 0;
	MRRC_WARN(EP_CTRL,
		  "%zu bytes of private data and %zu bytes for conditional "
		  "writes exceed the core provider's limit of %zu bytes "
		  "(FI_OPT_CM_DATA_SIZE)\n",
		  len, sizeof(struct cw_mark), max);
	return -FI_EINVAL;
}

int mrrc_cw_connect(struct mrrc_ep *ep, const void *addr, const void *param,
		    size_t paramlen)
{
	const struct sockaddr *dest = addr ? addr : ep->info->dest_addr;
	struct cw_mark mark;
	void *data;
	int ret;

	if (!dest || !mrrc_cw_addr_port((void *) dest))
		return -FI_EINVAL;
	ret = cw_param_check(ep, paramlen);
	if (ret)
		return ret;
	memcpy(&ep->cw->dest, dest, mrrc_cw_addr_len(dest));
	mrrc_cw_mark_make(&mark, CW_MARK_CONNECT, paramlen, 0, 0);
	data = cw_with_mark(&mark, param, paramlen);
	if (!data)
		return -FI_ENOMEM;
	ret = fi_connect(ep->core, addr, data, paramlen + sizeof(mark));
	free(data);
	return ret;
}

/*
 * Starts listening; sets the port and the cookie for the peer's control
 * endpoint
 */
static int cw_expect(struct mrrc_cw_ep *cw, uint16_t *port)
{
	uint64_t cookie;
	int ret;

	if (getrandom(&cookie, sizeof(cookie), 0) != sizeof(cookie))
		return -FI_EIO;
	mrrc_mutex_lock(&cw->group->lock);
	ret = -FI_EINVAL;
	if (mrrc_cw_step(cw, CW_ON_AWAIT) != CW_DO_REFUSE) {
		cw->accepts = true;
		cw->cookie = cookie;
		cw->sm.attr.cookie = cw->sm.attr.my_cookie = cookie;
		ret = mrrc_cw_listen(cw->group, cw->via);
		*port = cw->group->port;
		if (ret)
			mrrc_cw_step(cw, CW_ON_RECALL);
	}
	mrrc_cw_group_unlock(cw->group);
	if (ret)
		MRRC_WARN(EP_CTRL,
			  "cannot listen for control connections at "
			  "%s: %s\n",
			  mrrc_cw_addr_text(&cw->group->at).text,
			  fi_strerror(-ret));
	return ret;
}

int mrrc_cw_accept(struct mrrc_ep *ep, const void *param, size_t paramlen)
{
	struct mrrc_cw_ep *cw = ep->cw;
	struct cw_mark mark;
	uint16_t port = 0;
	void *data;
	int ret;

	if (!ep->request_noted) {
		mrrc_mutex_lock(&cw->group->lock);
		mrrc_cw_step(cw, CW_ON_PLAIN);
		mrrc_cw_group_unlock(cw->group);
		return fi_accept(ep->core, param, paramlen);
	}
	ret = cw_param_check(ep, paramlen);
	if (!ret)
		ret = cw_expect(cw, &port);
	if (ret)
		return ret;
	mrrc_cw_mark_make(&mark, CW_MARK_ACCEPT, paramlen, cw->cookie, port);
	ret = -FI_ENOMEM;
	data = cw_with_mark(&mark, param, paramlen);
	if (data)
		ret = fi_accept(ep->core, data, paramlen + sizeof(mark));
	free(data);
	if (ret) {
		mrrc_mutex_lock(&cw->group->lock);
		mrrc_cw_step(cw, CW_ON_RECALL);
		mrrc_cw_group_unlock(cw->group);
	}
	return ret;
}

void mrrc_cw_shutdown(struct mrrc_ep *ep)
{
	struct mrrc_cw_ep *cw = ep->cw;

	if (mrrc_cw_inherited(ep->domain))
		return;
	mrrc_cw_close_wait(cw);
	mrrc_mutex_lock(&cw->group->lock);
	mrrc_cw_lose(cw, "shut down");
	mrrc_cw_group_unlock(cw->group);
}

/*
 * Finds the link that an event names, if the link exists: the endpoint may
 * close concurrently, and an event that an application wrote may name any
 * object. The link stays until mrrc_cw_put().
 */
static struct mrrc_cw_ep *cw_get(struct mrrc_fabric *fabric,
				 const struct fid *core)
{
	struct mrrc_cw_ep *cw = NULL;
	struct fid *ours;

	mrrc_mutex_lock(&fabric->track_lock);
	ours = mrrc_fid_find_locked(fabric, core);
	if (ours && ours->fclass == FI_CLASS_EP)
		cw = container_of(ours, struct mrrc_ep, ep.fid)->cw;
	if (cw)
		atomic_fetch_add(&cw->ending, 1);
	mrrc_mutex_unlock(&fabric->track_lock);
	return cw;
}

/*
 * Handles acceptance, on the connecting side. mark: NULL if the peer does not
 * take part
 */
static void cw_accepted(struct mrrc_cw_ep *cw, const struct cw_mark *mark)
{
	int ret;

	mrrc_mutex_lock(&cw->group->lock);
	if (mrrc_cw_step(cw, mark ? CW_ON_JOIN : CW_ON_PLAIN) ==
	    CW_DO_CONNECT) {
		ret = cw_connect(cw, mark);
		if (ret) {
			MRRC_WARN(EP_CTRL,
				  "cannot open a control connection "
				  "to %s: %s\n",
				  mrrc_cw_addr_text(&cw->dest).text,
				  fi_strerror(-ret));
			mrrc_cw_lose(cw, fi_strerror(-ret));
		}
	}
	mrrc_cw_group_unlock(cw->group);
}

/*
 * The application's connection has ended. Connected control endpoints detect
 * the end of their own connection, after all data under way have arrived.
 */
static void cw_gone(struct mrrc_fabric *fabric, const struct fid *core)
{
	struct mrrc_cw_ep *cw = cw_get(fabric, core);

	if (!cw)
		return;
	mrrc_mutex_lock(&cw->group->lock);
	if (mrrc_cw_step(cw, CW_ON_QUIT) == CW_DO_LOSE)
		mrrc_cw_lose(cw, "the peer has gone before it came");
	mrrc_cw_group_unlock(cw->group);
	mrrc_cw_put(cw);
}

/* Does the connecting side's event have a mark? */
static bool cw_eq_connected(struct mrrc_eq *eq,
			    const struct fi_eq_cm_entry *entry, size_t data_len,
			    bool peek, struct cw_mark *mark)
{
	struct mrrc_cw_ep *cw = cw_get(eq->fabric, entry->fid);
	bool marked = false;

	if (!cw)
		return false;
	if (!cw->accepts) {
		marked = mrrc_cw_mark_read(entry->data, data_len,
					   CW_MARK_ACCEPT, mark);
		if (!peek)
			cw_accepted(cw, marked ? mark : NULL);
	}
	mrrc_cw_put(cw);
	return marked;
}

/* The length of the core's event without our mark */
static size_t cw_eq_event(struct mrrc_eq *eq, uint32_t event,
			  struct fi_eq_cm_entry *entry, size_t len, bool peek)
{
	size_t data_len = len - sizeof(*entry);
	bool marked = false;
	struct cw_mark mark;
	struct fid copy;

	/* an application may write such events, with an info of its own */
	if (event == FI_CONNREQ && entry->info &&
	    mrrc_fid_find(eq->fabric, entry->fid, &copy)) {
		marked = mrrc_cw_mark_read(entry->data, data_len,
					   CW_MARK_CONNECT, &mark);
		mrrc_request_note(eq->fabric, entry->info->handle, marked);
	} else if (event == FI_CONNECTED) {
		marked = cw_eq_connected(eq, entry, data_len, peek, &mark);
	} else if (event == FI_SHUTDOWN && !peek) {
		cw_gone(eq->fabric, entry->fid);
	}
	if (!marked)
		return len;
	data_len = ntohs(mark.len);
	memmove(entry->data, entry->data + sizeof(mark), data_len);
	return sizeof(*entry) + data_len;
}

/* Handles any event, in a buffer, as cw_eq_event() does. */
static size_t cw_eq_seen(struct mrrc_eq *eq, uint32_t event, void *buf,
			 size_t len, uint64_t flags)
{
	union {
		struct fi_eq_cm_entry cm;
		char room[sizeof(struct fi_eq_cm_entry) + MRRC_EQ_CM_DATA];
	} entry;

	/* a longer event is the application's */
	if (event > FI_JOIN_COMPLETE || len < sizeof(entry.cm) ||
	    len > sizeof(entry))
		return len;
	/* the buffer may be unaligned */
	memcpy(&entry, buf, len);
	len = cw_eq_event(eq, event, &entry.cm, len, flags & FI_PEEK);
	memcpy(buf, &entry, len);
	return len;
}

static const struct mrrc_eq_over cw_eq_over = {
	.seen = cw_eq_seen,
	.gone = cw_gone,
};

void mrrc_cw_eq_join(struct mrrc_eq *eq)
{
	atomic_store(&eq->over, &cw_eq_over);
}
