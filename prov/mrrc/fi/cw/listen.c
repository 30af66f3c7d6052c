/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A group's listener, for control endpoints: see cw/cw.h. The listener has the
 * address of the application's endpoints and a separate port, stays open
 * while a connection is expected and a second longer, and is closed on exec.
 *
 * libfabric's provider tcp keeps silent connections without a limit of time or
 * number, and does not report these connections. So when tcp's event queue was
 * readable but had no event, silent connections are searched for, and ended if
 * they are too old or too many. If the event queue wakes threads without an
 * event again and again, because no descriptor is left or many connections
 * come, the event queue is muted for some time.
 *
 * tcp of libfabric 2.x may accept in a separate thread, without making its
 * event queue readable: with libfabric 2.x silent connections are searched for
 * at all times, but less often, and the listener stays open, as a listener
 * cannot be closed safely between two accepts.
 */
#include "config.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "fi/cw/group.h"
#include "fi/cw/mark.h"
#include "fi/cw/rdm.h"
#include "sys/base/sockets.h"

#define CW_SILENT	  64	/* limit of silent connections */
#define CW_SILENT_MS	  10000 /* before a silent connection is ended */
#define CW_SWEEP_MS	  1000	/* time between searches */
#define CW_SWEEP_BLIND_MS 5000	/* the same without events */
#define CW_VAIN		  256	/* useless wakes before muting */
#define CW_VAIN_AGAIN	  8	/* useless wakes to mute again */
#define CW_MUTE_MS	  100
#define CW_CLOSE_MS	  1000 /* after the last expected connection */

void mrrc_cw_listen_at(const struct fi_info *info, struct sockaddr_storage *at)
{
	const struct sockaddr *src = info->src_addr;

	memset(at, 0, sizeof(*at));
	at->ss_family = info->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 :
							       AF_INET;
	if (!src || !mrrc_cw_addr_port((void *) src))
		return;
	memcpy(at, src, mrrc_cw_addr_len(src));
	*mrrc_cw_addr_port(at) = 0;
	mrrc_cw_name_strip(at);
}

static bool cw_listen_sockets(const struct mrrc_cw_group *group)
{
	return group->domain->reg.below & MRRC_BELOW_SOCKETS;
}

/* The listener's address, with the port */
static void cw_listen_name(const struct mrrc_cw_group *group,
			   struct sockaddr_storage *at)
{
	*at = group->at;
	*mrrc_cw_addr_port(at) = group->port;
}

static bool cw_listen_blind(const struct mrrc_cw_group *group)
{
	return group->pep && FI_MAJOR(fi_version()) >= 2 &&
	       cw_listen_sockets(group);
}

static struct fi_info *cw_listen_info(const struct mrrc_cw_group *group,
				      const struct mrrc_ep *via)
{
	const struct sockaddr *at = (struct sockaddr *) &group->at;
	struct fi_info *info = mrrc_cw_info(via, NULL);

	if (!info)
		return NULL;
	free(info->src_addr);
	info->addr_format = mrrc_cw_addr_format(at);
	info->src_addrlen = mrrc_cw_addr_len(at);
	info->src_addr = malloc(info->src_addrlen);
	if (info->src_addr) {
		memcpy(info->src_addr, at, info->src_addrlen);
		return info;
	}
	fi_freeinfo(info);
	return NULL;
}

static int cw_listen_open(struct mrrc_cw_group *group,
			  const struct mrrc_ep *via, struct fid_pep **pep,
			  uint16_t *port)
{
	struct fi_info *info = cw_listen_info(group, via);
	struct sockaddr_storage at;
	size_t len = sizeof(at);
	int ret;

	if (!info)
		return -FI_ENOMEM;
	ret = fi_passive_ep(via->domain->fabric->core, info, pep, NULL);
	if (ret)
		goto err_info;
	ret = fi_pep_bind(*pep, &group->eq->fid, 0);
	if (!ret)
		ret = fi_listen(*pep);
	if (!ret)
		ret = fi_getname(&(*pep)->fid, &at, &len);
	if (!ret && !mrrc_cw_addr_port(&at))
		ret = -FI_EOPNOTSUPP;
	if (ret)
		goto err_pep;
	*port = *mrrc_cw_addr_port(&at);
	group->pep_info = info;
	return 0;

err_pep:
	fi_close(&(*pep)->fid);
err_info:
	fi_freeinfo(info);
	return ret;
}

int mrrc_cw_listen(struct mrrc_cw_group *group, struct mrrc_ep *via)
{
	struct sockaddr_storage at;
	struct fid_pep *pep;
	uint16_t port;
	int ret;

	if (group->pep)
		return 0;
	ret = cw_listen_open(group, via, &pep, &port);
	if (ret)
		return ret;
	group->pep = pep;
	atomic_store(&group->port, port);
	cw_listen_name(group, &at);
	if (cw_listen_sockets(group)) {
		mrrc_sockets_cloexec((struct sockaddr *) &at);
		mrrc_sockets_impatient((struct sockaddr *) &at);
	}
	if (cw_listen_blind(group))
		group->sweep_at = mrrc_now_ms() + CW_SWEEP_BLIND_MS;
	mrrc_cw_alarm(group);
	return 0;
}

/* Ends silent connections older than max_ms; returns the number of others */
static unsigned cw_listen_sweep(struct mrrc_cw_group *group, unsigned max_ms)
{
	struct sockaddr_storage at;
	unsigned left;

	if (!cw_listen_sockets(group))
		return 0;
	cw_listen_name(group, &at);
	left = mrrc_sockets_end_silent((struct sockaddr *) &at, max_ms,
				       CW_SILENT, group->spare_fd);
	dup3(group->timer_fd, group->spare_fd, O_CLOEXEC);
	return left;
}

/*
 * tcp (1.17) still uses a closed listener for connections that are half set up,
 * and loses the sockets of these connections when the event queue closes.
 * Therefore mrrc_cw_unlisten() takes three steps before the close: reading the
 * event queue makes tcp accept such connections, cw_listen_sweep() shuts down
 * the silent ones, and reading the event queue again makes tcp notice the
 * shutdowns.
 */
void mrrc_cw_unlisten(struct mrrc_cw_group *group, bool always)
{
	struct cw_request *request, *next;
	struct sockaddr_storage at;
	int i;

	if (!group->pep || group->greeting ||
	    (!always && cw_listen_blind(group)))
		return;
	for (i = 0; i < 2; i++) {
		mrrc_cw_events(group);
		cw_listen_sweep(group, 0);
		mrrc_cw_events(group);
	}
	cw_listen_name(group, &at);
	if (!always && cw_listen_sockets(group) &&
	    mrrc_sockets_unread((struct sockaddr *) &at))
		return;
	mrrc_cw_over->shut(group);
	/*
	 * requests at another group's listener are for links of this group
	 * whose endpoint has its home in that other group
	 */
	STAILQ_FOREACH_SAFE(request, &group->requests, link, next) {
		if (request->pep != group->pep)
			continue;
		STAILQ_REMOVE(&group->requests, request, cw_request, link);
		group->request_cnt--;
		mrrc_cw_refuse(request);
	}
	fi_close(&group->pep->fid);
	fi_freeinfo(group->pep_info);
	group->pep = NULL;
	atomic_store(&group->port, 0);
	group->sweep_at = group->close_at = 0;
	mrrc_cw_alarm(group);
}

bool mrrc_cw_listen_woken(const struct mrrc_cw_group *group)
{
	struct pollfd fd = { group->eq_fd, POLLIN, 0 };

	return group->pep && poll(&fd, 1, 0) > 0;
}

int64_t mrrc_cw_listen_until(const struct mrrc_cw_group *group)
{
	int64_t at = group->muted_until ? group->muted_until : group->sweep_at;

	return at && (!group->close_at || at < group->close_at) ?
		       at :
		       group->close_at;
}

static void cw_mute_at(int epoll_fd, int fd, bool mute)
{
	struct epoll_event event = { .events = mute ? 0 : EPOLLIN };

	epoll_ctl(epoll_fd, EPOLL_CTL_MOD, fd, &event);
}

/*
 * Stops the event queue from waking threads, or lets it wake them again; false:
 * not possible now
 */
static bool cw_mute(struct mrrc_cw_group *group, bool mute)
{
	struct mrrc_cw_domain *cwd = group->cwd;
	struct mrrc_cw_cq *ccq;

	/* the domain's lock ranks before a group's */
	if (!mrrc_mutex_try(&cwd->lock))
		return false;
	cw_mute_at(cwd->wake_fd, group->eq_fd, mute);
	LIST_FOREACH(ccq, &cwd->cqs, link) {
		if (ccq->epoll_fd >= 0)
			cw_mute_at(ccq->epoll_fd, group->eq_fd, mute);
	}
	mrrc_mutex_unlock(&cwd->lock);
	return true;
}

static void cw_listen_mute(struct mrrc_cw_group *group, int64_t now)
{
	if (group->muted_until && now >= group->muted_until &&
	    cw_mute(group, false)) {
		group->muted_until = 0;
		group->vain = CW_VAIN - CW_VAIN_AGAIN;
	} else if (!group->muted_until && group->vain >= CW_VAIN &&
		   cw_mute(group, true)) {
		group->muted_until = now + CW_MUTE_MS;
		group->sweep_at = now;
	}
}

static void cw_listen_close(struct mrrc_cw_group *group, int64_t now)
{
	if (group->awaited || !group->pep || cw_listen_blind(group)) {
		group->close_at = 0;
	} else if (!group->close_at) {
		group->close_at = now + CW_CLOSE_MS;
	} else if (now >= group->close_at) {
		group->close_at = now + CW_CLOSE_MS;
		mrrc_cw_unlisten(group, false);
	}
}

/* Sweeps; returns the time of the next sweep. */
static int64_t cw_listen_again(struct mrrc_cw_group *group, int64_t now)
{
	if (cw_listen_sweep(group, CW_SILENT_MS))
		return now + CW_SWEEP_MS;
	return cw_listen_blind(group) ? now + CW_SWEEP_BLIND_MS : 0;
}

void mrrc_cw_listen_tend(struct mrrc_cw_group *group, bool in_vain)
{
	int64_t before = mrrc_cw_listen_until(group), now;

	group->vain = in_vain ? group->vain + 1 : 0;
	if (!in_vain && !before && (group->awaited || !group->pep))
		return;
	now = mrrc_now_ms();
	cw_listen_close(group, now);
	cw_listen_mute(group, now);
	if (group->sweep_at && now >= group->sweep_at)
		group->sweep_at = cw_listen_again(group, now);
	else if (in_vain && group->pep && !group->sweep_at)
		group->sweep_at = now + CW_SWEEP_MS;
	if (mrrc_cw_listen_until(group) != before)
		mrrc_cw_alarm(group);
}
