/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues of endpoints with conditional writes: see cw/cw.h. Reading
 * the queue of such an endpoint makes progress with conditional writes, and
 * first returns the pending completions of conditional writes. Otherwise the
 * queue works like any other queue (the table below). A thread that waits is
 * woken by the core's CQ, by the control endpoints' CQs and by pending
 * completions alike.
 *
 * Threading: any, as for the CQ. The domain's cw->lock guards its list of CQs;
 * whether a CQ takes part is also guarded by the domain's cq_lock, which is
 * taken under cw->lock. A CQ may begin to take part while other threads read
 * it: a thread that uses the new table of calls sees all state that was set up
 * before.
 */
#include "config.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fi/cw/group.h"
#include "fi/obj/cq_fwd.h"
#include "fi/obj/obj.h"

#define CW_FDS	    64
#define CW_SLICE_MS 500 /* the core's descriptors may change */

static struct mrrc_cq *cw_cq_of(struct fid_cq *cq_fid)
{
	/* the caller loaded the table without ordering later loads */
	(void) __atomic_load_n(&cq_fid->ops, __ATOMIC_ACQUIRE);
	return mrrc_cq_of(cq_fid);
}

static ssize_t cw_cq_pending(struct mrrc_cq *cq, void *buf, size_t count,
			     fi_addr_t *src)
{
	ssize_t ret = 0;

	if (!atomic_load(&cq->pending_cnt) || !count)
		return 0;
	mrrc_cq_lock(cq);
	if (atomic_load(&cq->pending_cnt))
		ret = mrrc_pending_read(cq, buf, count, src);
	mrrc_cq_unlock(cq);
	return ret;
}

static ssize_t cw_cq_readfrom(struct fid_cq *cq_fid, void *buf, size_t count,
			      fi_addr_t *src)
{
	struct mrrc_cq *cq = cw_cq_of(cq_fid);
	ssize_t ret;

	mrrc_cw_seen(cq->domain->cw);
	mrrc_cw_progress(cq->domain->cw, false);
	ret = cw_cq_pending(cq, buf, count, src);
	if (ret)
		return ret;
	ret = src ? cq->cw->below->readfrom(cq_fid, buf, count, src) :
		    cq->cw->below->read(cq_fid, buf, count);
	/* completions exist, but the caller gave no room for one */
	if (!count && ret == -FI_EAGAIN && atomic_load(&cq->pending_cnt))
		ret = 0;
	return ret;
}

static ssize_t cw_cq_read(struct fid_cq *cq_fid, void *buf, size_t count)
{
	return cw_cq_readfrom(cq_fid, buf, count, NULL);
}

static ssize_t cw_cq_readerr(struct fid_cq *cq_fid,
			     struct fi_cq_err_entry *entry, uint64_t flags)
{
	struct mrrc_cq *cq = cw_cq_of(cq_fid);
	ssize_t ret = -FI_EAGAIN;

	mrrc_cq_lock(cq);
	if (atomic_load(&cq->pending_cnt))
		ret = mrrc_pending_readerr(cq, entry);
	mrrc_cq_unlock(cq);
	/*
	 * the caller asks for the core's error; the pending completions came
	 * after the error was reported
	 */
	return ret != -FI_EAGAIN ? ret :
				   cq->cw->below->readerr(cq_fid, entry, flags);
}

/* ---- waiting ------------------------------------------------------------- */

static void cw_cq_clear(const struct mrrc_cw_cq *ccq)
{
	uint64_t value;
	ssize_t ret = read(ccq->wake_fd, &value, sizeof(value));

	(void) ret;
}

static void cw_cq_wake(struct mrrc_cq *cq)
{
	uint64_t one = 1;
	ssize_t ret = write(cq->cw->wake_fd, &one, sizeof(one));

	(void) ret;
}

static int cw_cq_trywait(struct mrrc_cq *cq)
{
	struct mrrc_cw_group *group;
	struct fid *fids[2];
	int ret = 0;

	cw_cq_clear(cq->cw);
	mrrc_cw_seen(cq->domain->cw);
	mrrc_cw_progress(cq->domain->cw, true);
	if (atomic_load(&cq->pending_cnt)) {
		/*
		 * this caller does not need to read the completions for which
		 * other threads are woken
		 */
		cw_cq_wake(cq);
		return -FI_EAGAIN;
	}
	group = atomic_load(&cq->domain->cw->groups);
	for (; group && !ret; group = group->next) {
		fids[0] = &group->cq->fid;
		fids[1] = &group->eq->fid;
		mrrc_mutex_lock(&group->lock);
		/*
		 * FI_MORE held messages back, and the last thread that held the
		 * lock did not send them
		 */
		if (mrrc_cw_group_waits(group))
			ret = -FI_EAGAIN;
		else
			ret = fi_trywait(group->domain->fabric->core, fids, 2);
		mrrc_mutex_unlock(&group->lock);
	}
	return ret ? -FI_EAGAIN : 0;
}

/* Lists the core's descriptors, then ours. Returns their number or an error. */
static int cw_cq_fds(struct mrrc_cq *cq, struct pollfd *fds, int *core_cnt)
{
	struct fi_wait_pollfd set = { .nfds = CW_FDS - 2, .fd = fds };
	int ret, cnt = 1;

	if (cq->cw->pollfd) {
		ret = fi_control(&cq->core->fid, FI_GETWAIT, &set);
		cnt = set.nfds;
	} else {
		ret = fi_control(&cq->core->fid, FI_GETWAIT, &fds[0].fd);
		fds[0].events = POLLIN;
	}
	if (ret)
		return ret;
	*core_cnt = cnt;
	fds[cnt++] = (struct pollfd){ cq->cw->wake_fd, POLLIN, 0 };
	fds[cnt++] = (struct pollfd){ cq->domain->cw->wake_fd, POLLIN, 0 };
	return cnt;
}

/*
 * Sleeps until a descriptor is ready; only briefly if the core has more
 * descriptors than fit. Returns whether a descriptor is ready.
 */
static bool cw_cq_sleep(struct mrrc_cq *cq, int timeout)
{
	struct fid *fid = &cq->cq.fid;
	struct pollfd fds[CW_FDS];
	int cnt, core_cnt = 0;

	if (mrrc_trywait(&cq->domain->fabric->fabric, &fid, 1))
		return false;
	/*
	 * another thread may have consumed the signal that was to wake this one
	 */
	if (atomic_load(&cq->cw->signalled))
		return false;
	if (timeout < 0 || timeout > CW_SLICE_MS)
		timeout = CW_SLICE_MS;
	cnt = cw_cq_fds(cq, fds, &core_cnt);
	if (cnt < 0) {
		cnt = 0;
		if (timeout > 1)
			timeout = 1;
	}
	if (poll(fds, cnt, timeout) <= 0)
		return false;
	while (core_cnt-- && !fds[core_cnt].revents)
		;
	return core_cnt >= 0;
}

/* Waits in the core with the shortest timeout. */
static ssize_t cw_cq_below_sread(struct mrrc_cq *cq, void *buf, size_t count,
				 fi_addr_t *src)
{
	const void *cond = cq->threshold ? (void *) 1 : NULL;
	struct fi_ops_cq *below = cq->cw->below;

	return src ? below->sreadfrom(&cq->cq, buf, count, src, cond,
				      MRRC_CQ_BRIEF) :
		     below->sread(&cq->cq, buf, count, cond, MRRC_CQ_BRIEF);
}

static ssize_t cw_cq_sreadfrom(struct fid_cq *cq_fid, void *buf, size_t count,
			       fi_addr_t *src, const void *cond, int timeout)
{
	struct mrrc_cq *cq = cw_cq_of(cq_fid);
	int64_t end = timeout > 0 ? mrrc_now_ms() + timeout : 0;
	size_t want = cq->threshold ? (size_t) (uintptr_t) cond : 1, cur = 0;
	bool ready = false;
	int left = timeout;
	ssize_t ret;

	if (!cq->wait || !count)
		return src ? cq->cw->below->sreadfrom(cq_fid, buf, count, src,
						      cond, timeout) :
			     cq->cw->below->sread(cq_fid, buf, count, cond,
						  timeout);
	if (want > count)
		want = count;
	for (;;) {
		ret = cw_cq_readfrom(cq_fid,
				     (char *) buf + cur * cq->entry_size,
				     count - cur, src ? src + cur : NULL);
		if (ret == -FI_EAGAIN && atomic_exchange(&cq->cw->signalled, 0))
			break;
		/*
		 * A descriptor is ready, but there is no event: in tcp and net
		 * (1.17) a descriptor is reset only by the core's own wait.
		 */
		if (ret == -FI_EAGAIN && ready)
			ret = cw_cq_below_sread(
				cq, (char *) buf + cur * cq->entry_size,
				count - cur, src ? src + cur : NULL);
		ready = false;
		if (ret > 0) {
			cur += ret;
			if (cur >= want)
				break;
			continue;
		}
		if (ret && ret != -FI_EAGAIN)
			break;
		ret = -FI_EAGAIN;
		if (timeout >= 0) {
			left = timeout ? end - mrrc_now_ms() : 0;
			if (left <= 0)
				break;
		}
		ready = cw_cq_sleep(cq, left);
	}
	return cur ? (ssize_t) cur : ret;
}

static ssize_t cw_cq_sread(struct fid_cq *cq_fid, void *buf, size_t count,
			   const void *cond, int timeout)
{
	return cw_cq_sreadfrom(cq_fid, buf, count, NULL, cond, timeout);
}

static int cw_cq_signal(struct fid_cq *cq_fid)
{
	struct mrrc_cq *cq = cw_cq_of(cq_fid);

	atomic_store(&cq->cw->signalled, 1);
	cw_cq_wake(cq);
	return 0;
}

static struct fi_ops_cq mrrc_cw_cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cw_cq_read,
	.readfrom = cw_cq_readfrom,
	.readerr = cw_cq_readerr,
	.sread = cw_cq_sread,
	.sreadfrom = cw_cq_sreadfrom,
	.signal = cw_cq_signal,
	.strerror = mrrc_cq_strerror,
#ifdef MRRC_XPU_CALLS
	.export_xpu = mrrc_cq_export_xpu,
#endif
};

/* ---- joining and leaving ------------------------------------------------- */

static int cw_epoll_add(int epoll_fd, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int mrrc_cw_epoll_group(int epoll_fd, const struct mrrc_cw_group *group)
{
	int ret = cw_epoll_add(epoll_fd, group->cq_fd);

	if (!ret)
		ret = cw_epoll_add(epoll_fd, group->eq_fd);
	if (!ret)
		ret = cw_epoll_add(epoll_fd, group->timer_fd);
	return ret;
}

void mrrc_cw_cq_add_group(struct mrrc_cw_cq *ccq, struct mrrc_cw_group *group)
{
	int ret;

	if (ccq->epoll_fd < 0)
		return;
	ret = mrrc_cw_epoll_group(ccq->epoll_fd, group);
	if (ret)
		MRRC_WARN(CQ,
			  "conditional writes will not wake the wait "
			  "descriptor of a completion queue: %s\n",
			  fi_strerror(-ret));
}

static int cw_cq_getwait(struct mrrc_cq *cq, int *fd)
{
	struct mrrc_cw_domain *cwd = cq->domain->cw;
	struct mrrc_cw_cq *ccq = cq->cw;
	struct mrrc_cw_group *group;
	int ret, core_fd;

	ret = fi_control(&cq->core->fid, FI_GETWAIT, &core_fd);
	if (ret)
		return ret;
	mrrc_mutex_lock(&cwd->lock);
	if (ccq->epoll_fd < 0) {
		ccq->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
		if (ccq->epoll_fd < 0)
			ret = -errno;
		if (!ret)
			ret = cw_epoll_add(ccq->epoll_fd, core_fd);
		if (!ret)
			ret = cw_epoll_add(ccq->epoll_fd, ccq->wake_fd);
		group = atomic_load(&cwd->groups);
		for (; !ret && group; group = group->next)
			mrrc_cw_cq_add_group(ccq, group);
		if (ret && ccq->epoll_fd >= 0) {
			close(ccq->epoll_fd);
			ccq->epoll_fd = -1;
		}
	}
	mrrc_mutex_unlock(&cwd->lock);
	if (!ret)
		*fd = ccq->epoll_fd;
	return ret;
}

static void cw_cq_free(struct mrrc_cw_cq *ccq)
{
	if (ccq->epoll_fd >= 0)
		close(ccq->epoll_fd);
	close(ccq->wake_fd);
	free(ccq);
}

static int cw_cq_open(struct mrrc_cq *cq, struct mrrc_cw_cq **ccq_out)
{
	enum fi_wait_obj obj = cq->wait_obj;
	struct mrrc_cw_cq *ccq;
	int ret;

	if (obj != FI_WAIT_NONE && obj != FI_WAIT_UNSPEC && obj != FI_WAIT_FD) {
		MRRC_WARN(CQ, "conditional writes need completion queues with "
			      "FI_WAIT_NONE, FI_WAIT_UNSPEC or FI_WAIT_FD\n");
		return -FI_EOPNOTSUPP;
	}
	ccq = calloc(1, sizeof(*ccq));
	if (!ccq)
		return -FI_ENOMEM;
	ccq->cq = cq;
	ccq->epoll_fd = -1;
	ccq->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (ccq->wake_fd < 0) {
		ret = -errno;
		free(ccq);
		return ret;
	}
	if (obj == FI_WAIT_UNSPEC &&
	    !fi_control(&cq->core->fid, FI_GETWAITOBJ, &obj))
		ccq->pollfd = obj == FI_WAIT_POLLFD;
	*ccq_out = ccq;
	return 0;
}

static void cw_cq_set_below(struct mrrc_cq *cq, struct fi_ops_cq *ops)
{
	cq->cw->below = ops;
}

static void cw_cq_close(struct mrrc_cq *cq)
{
	struct mrrc_cw_domain *cwd = cq->domain->cw;
	struct mrrc_cw_cq *ccq = cq->cw;

	mrrc_mutex_lock(&cwd->lock);
	LIST_REMOVE(ccq, link);
	mrrc_mutex_unlock(&cwd->lock);
	cw_cq_free(ccq);
}

static const struct mrrc_cq_over cw_cq_over = {
	.wake = cw_cq_wake,
	.trywait = cw_cq_trywait,
	.getwait = cw_cq_getwait,
	.set_below = cw_cq_set_below,
	.close = cw_cq_close,
};

/*
 * Replaces the CQ's calls, unless the application has got the CQ's file
 * descriptor. Other threads may be asking for the descriptor just now.
 */
static int cw_cq_publish(struct mrrc_cq *cq, struct mrrc_cw_cq *ccq)
{
	bool taken;

	mrrc_mutex_lock(&cq->domain->cq_lock);
	taken = cq->wait_taken;
	if (!taken) {
		ccq->below = cq->cq.ops;
		cq->cw = ccq;
		cq->over = &cw_cq_over;
		__atomic_store_n(&cq->cq.ops, &mrrc_cw_cq_ops,
				 __ATOMIC_RELEASE);
	}
	mrrc_mutex_unlock(&cq->domain->cq_lock);
	if (taken)
		MRRC_WARN(CQ, "fi_cw_enable() of an endpoint must come before "
			      "FI_GETWAIT of its completion queue\n");
	return taken ? -FI_EBUSY : 0;
}

int mrrc_cw_cq_join(struct mrrc_cq *cq)
{
	struct mrrc_cw_domain *cwd = cq->domain->cw;
	struct mrrc_cw_cq *ccq = NULL;
	int ret = 0;

	mrrc_mutex_lock(&cwd->lock);
	if (cq->cw)
		goto unlock;
	ret = cw_cq_open(cq, &ccq);
	if (ret)
		goto unlock;
	ret = cw_cq_publish(cq, ccq);
	if (ret) {
		cw_cq_free(ccq);
		goto unlock;
	}
	LIST_INSERT_HEAD(&cwd->cqs, ccq, link);
	mrrc_mutex_unlock(&cwd->lock);
	/*
	 * a thread inside the core's sread does not know of the new calls yet
	 */
	if (cq->wait)
		fi_cq_signal(cq->core);
	return 0;
unlock:
	mrrc_mutex_unlock(&cwd->lock);
	return ret;
}
