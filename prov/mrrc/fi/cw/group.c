/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Groups of control endpoints, and the state that a domain and an endpoint have
 * for conditional writes: see cw/cw.h.
 *
 * Lock order: the domain's cw->lock, then a group's.
 */
#include "config.h"
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "fi/attr.h"
#include "fi/blocks.h"
#include "fi/cw/group.h"
#include "fi/cw/link.h"
#include "fi/cw/rdm.h"
#include "sys/base/pause.h"
#include "sys/base/pool.h"

/* operations of a domain that have not ended */
#define CW_RECS_MAX (1U << 19)

static void cw_group_free(struct mrrc_cw_group *group)
{
	mrrc_cw_over->shut(group);
	mrrc_cw_unlisten(group, true);
	if (group->cq)
		fi_close(&group->cq->fid);
	if (group->eq)
		fi_close(&group->eq->fid);
	if (group->timer_fd >= 0)
		close(group->timer_fd);
	if (group->spare_fd >= 0)
		close(group->spare_fd);
	mrrc_mutex_fini(&group->lock);
	free(group);
}

static int cw_group_open(struct mrrc_cw_domain *cwd, struct mrrc_domain *domain,
			 const struct sockaddr_storage *at,
			 struct mrrc_cw_group **group_out)
{
	struct mrrc_cq_attrs cq_attr = { { {
		.size = CW_CQ_SIZE,
		.format = FI_CQ_FORMAT_MSG,
		.wait_obj = FI_WAIT_FD,
	} } };
	struct mrrc_eq_attrs eq_attr = { { { .wait_obj = FI_WAIT_FD } } };
	struct mrrc_cw_group *group;
	int ret;

	group = calloc(1, sizeof(*group));
	if (!group)
		return -FI_ENOMEM;
	group->cwd = cwd;
	group->domain = domain;
	group->at = *at;
	mrrc_mutex_init(&group->lock, MRRC_RANK_CW_GROUP);
	STAILQ_INIT(&group->requests);
	STAILQ_INIT(&group->asks);
	TAILQ_INIT(&group->eps);
	TAILQ_INIT(&group->lost);
	TAILQ_INIT(&group->unsent);
	TAILQ_INIT(&group->full);
	STAILQ_INIT(&group->ended);
	ret = fi_cq_open(domain->core, cq_attr.attr, &group->cq, NULL);
	if (!ret)
		ret = fi_eq_open(domain->fabric->core, eq_attr.attr, &group->eq,
				 NULL);
	if (!ret)
		ret = fi_control(&group->cq->fid, FI_GETWAIT, &group->cq_fd);
	if (!ret)
		ret = fi_control(&group->eq->fid, FI_GETWAIT, &group->eq_fd);
	group->timer_fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (!ret && group->timer_fd < 0)
		ret = -errno;
	group->spare_fd = ret ? -1 : fcntl(group->timer_fd, F_DUPFD_CLOEXEC, 0);
	if (!ret && group->spare_fd < 0)
		ret = -errno;
	if (!ret)
		ret = mrrc_cw_epoll_group(cwd->wake_fd, group);
	if (ret) {
		cw_group_free(group);
		return ret;
	}
	*group_out = group;
	return 0;
}

/*
 * Finds a group with this address that has room for one more endpoint. cw->lock
 * held
 */
static int cw_group_find(struct mrrc_cw_domain *cwd, struct mrrc_domain *domain,
			 const struct fi_info *info,
			 struct mrrc_cw_group **group_out)
{
	struct mrrc_cw_group *group = atomic_load(&cwd->groups);
	struct sockaddr_storage at;
	struct mrrc_cw_cq *ccq;
	int ret;

	mrrc_cw_listen_at(info, &at);
	while (group &&
	       (group->cnt >= CW_GROUP || memcmp(&group->at, &at, sizeof(at))))
		group = group->next;
	if (!group) {
		ret = cw_group_open(cwd, domain, &at, &group);
		if (ret)
			return ret;
		group->next = atomic_load(&cwd->groups);
		atomic_store(&cwd->groups, group);
		LIST_FOREACH(ccq, &cwd->cqs, link)
			mrrc_cw_cq_add_group(ccq, group);
	}
	*group_out = group;
	return 0;
}

static bool cw_large(const struct mrrc_cw_ep *cw)
{
	return cw->inline_max > MRRC_CW_INLINE_MIN;
}

int mrrc_cw_group_join(struct mrrc_cw_ep *cw)
{
	struct mrrc_cw_domain *cwd = cw->ep->domain->cw;
	int ret;

	TAILQ_INIT(&cw->confirms);
	mrrc_mutex_lock(&cwd->lock);
	ret = cw_group_find(cwd, cw->via->domain, cw->ep->info, &cw->group);
	if (!ret) {
		mrrc_mutex_lock(&cw->group->lock);
		TAILQ_INSERT_TAIL(&cw->group->eps, cw, link);
		cw->group->cnt++;
		cw->inline_max =
			mrrc_cw_inline_max(cw->via->domain, cwd->large);
		cwd->large += cw_large(cw);
		mrrc_cw_link_init(cw);
		mrrc_cw_map_init(&cw->by_context, NULL);
		mrrc_mutex_unlock(&cw->group->lock);
	}
	mrrc_mutex_unlock(&cwd->lock);
	return ret;
}

int mrrc_cw_group_home(struct mrrc_ep *ep, struct mrrc_ep *via,
		       struct mrrc_cw_group **group_out)
{
	struct mrrc_cw_domain *cwd = ep->domain->cw;
	struct mrrc_cw_group *group;
	int ret;

	mrrc_mutex_lock(&cwd->lock);
	ret = cw_group_find(cwd, via->domain, ep->info, &group);
	if (!ret) {
		mrrc_mutex_lock(&group->lock);
		ret = mrrc_cw_listen(group, via);
		group->cnt += !ret;
		group->awaited += !ret;
		mrrc_cw_group_release(group);
	}
	mrrc_mutex_unlock(&cwd->lock);
	if (ret)
		MRRC_WARN(EP_CTRL,
			  "cannot listen for control connections: "
			  "%s\n",
			  fi_strerror(-ret));
	else
		*group_out = group;
	return ret;
}

void mrrc_cw_group_leave_home(struct mrrc_cw_group *group)
{
	mrrc_mutex_lock(&group->lock);
	group->cnt--;
	if (!--group->awaited)
		mrrc_cw_unlisten(group, false);
	mrrc_cw_group_unlock(group);
}

bool mrrc_cw_inherited(const struct mrrc_domain *domain)
{
	return domain->cw->pid != getpid();
}

void mrrc_cw_link_free(struct mrrc_cw_ep *cw, int err)
{
	struct mrrc_cw_domain *cwd = cw->ep->domain->cw;
	struct mrrc_cw_group *group = cw->group;
	unsigned tries = 0;

	mrrc_mutex_lock(&group->lock);
	cw->gone = true;
	if (cw->deferred)
		mrrc_cw_refuse(cw->deferred);
	cw->deferred = NULL;
	mrrc_cw_end_all(cw, err);
	mrrc_cw_group_unlock(group);
	/* until other threads have finished with it */
	while (atomic_load(&cw->ending))
		mrrc_pause(&tries);

	mrrc_mutex_lock(&cwd->lock);
	mrrc_mutex_lock(&group->lock);
	TAILQ_REMOVE(&group->eps, cw, link);
	group->cnt--;
	cwd->large -= cw_large(cw);
	mrrc_mutex_unlock(&group->lock);
	mrrc_mutex_unlock(&cwd->lock);
	mrrc_mutex_lock(&group->lock);
	mrrc_cw_listen_tend(group, false);
	mrrc_cw_group_unlock(group);
	mrrc_cw_fini(&cw->sm);
	mrrc_cw_map_fini(&cw->by_context);
	if (cw->mr)
		fi_close(&cw->mr->fid);
	free(cw->mem);
	free(cw);
}

void mrrc_cw_ep_close(struct mrrc_ep *ep)
{
	struct mrrc_cw_ep *cw = ep->cw;

	if (mrrc_cw_inherited(ep->domain)) {
		/*
		 * the core did not close the control endpoint, which keeps its
		 * domain open
		 */
		mrrc_ref_get(&ep->domain->ref);
		ep->cw = NULL;
		return;
	}
	/* from here on no event leads to the link */
	mrrc_mutex_lock(&ep->domain->fabric->track_lock);
	ep->cw = NULL;
	mrrc_mutex_unlock(&ep->domain->fabric->track_lock);

	mrrc_cw_close_wait(cw);
	mrrc_cw_link_free(cw, FI_ECANCELED);
}

static int cw_domain_new(struct mrrc_cw_domain **cwd_out)
{
	struct mrrc_cw_domain *cwd = calloc(1, sizeof(*cwd));
	int ret;

	if (!cwd)
		return -FI_ENOMEM;
	ret = mrrc_pool_open(sizeof(struct cw_rec), CW_RECS_MAX, &cwd->recs);
	if (ret)
		goto err_free;
	ret = mrrc_comp_pool_open(CW_RECS_MAX, &cwd->comps);
	if (ret)
		goto err_recs;
	cwd->wake_fd = epoll_create1(EPOLL_CLOEXEC);
	if (cwd->wake_fd < 0) {
		ret = -errno;
		goto err_comps;
	}
	cwd->pid = getpid();
	mrrc_mutex_init(&cwd->enabling, MRRC_RANK_CW_ENABLE);
	mrrc_mutex_init(&cwd->lock, MRRC_RANK_CW_DOMAIN);
	LIST_INIT(&cwd->rdms);
	*cwd_out = cwd;
	return 0;
err_comps:
	mrrc_pool_close(cwd->comps);
err_recs:
	mrrc_pool_close(cwd->recs);
err_free:
	free(cwd);
	return ret;
}

static int cw_domain_close(struct mrrc_domain *domain)
{
	struct mrrc_cw_group *group, *next;

	/* a child that closed a listener would take it from its parent */
	if (mrrc_cw_inherited(domain))
		return -FI_EBUSY;
	mrrc_cw_auto_stop(domain->cw);
	for (group = atomic_load(&domain->cw->groups); group; group = next) {
		next = group->next;
		cw_group_free(group);
	}
	mrrc_cw_below_close(domain->cw);
	close(domain->cw->wake_fd);
	mrrc_pool_close(domain->cw->comps);
	mrrc_pool_close(domain->cw->recs);
	mrrc_mutex_fini(&domain->cw->lock);
	mrrc_mutex_fini(&domain->cw->enabling);
	free(domain->cw);
	domain->over = NULL;
	domain->cw = NULL;
	return 0;
}

static void cw_domain_progress(struct mrrc_domain *domain)
{
	mrrc_cw_seen(domain->cw);
	mrrc_cw_progress(domain->cw, false);
}

/*
 * Finds a write without a tag whose source is part of a file that another
 * process waits to change. Lock held.
 */
static struct cw_rec *cw_wanted(struct mrrc_cw_group *group)
{
	struct mrrc_block *block;
	struct mrrc_cw_ep *cw;
	struct mrrc_cw_wr *wr;
	struct cw_rec *rec;

	TAILQ_FOREACH(cw, &group->eps, link) {
		TAILQ_FOREACH(wr, &cw->sm.wrs, all) {
			rec = container_of(wr, struct cw_rec, wr);
			block = rec->op ? rec->op->bounces : NULL;
			if (wr->state == MRRC_CW_WR_HELD && block &&
			    block->class == MRRC_BLOCK_FILE &&
			    block->ops->wanted(block))
				return rec;
		}
	}
	return NULL;
}

static void cw_yield(struct cw_rec *rec, struct mrrc_spare *spare)
{
	struct mrrc_block *block = rec->op->bounces;

	if (!spare->buf || spare->domain != rec->op->domain ||
	    spare->len != rec->wr.len ||
	    !block->ops->yield(rec->op, block, spare->buf, &rec->desc[0]))
		return;
	rec->iov[0] = (struct iovec){ spare->buf, spare->len };
	rec->iov_cnt = 1;
	spare->buf = NULL;
}

/* Does not wait for a group's lock: the caller will try again soon. */
static void cw_domain_yield(struct mrrc_domain *domain,
			    struct mrrc_spare *spare)
{
	struct mrrc_cw_group *group = atomic_load(&domain->cw->groups);
	struct cw_rec *rec = NULL;

	for (; group && !rec; group = group->next) {
		if (!mrrc_mutex_try(&group->lock))
			continue;
		rec = cw_wanted(group);
		if (rec) {
			cw_yield(rec, spare);
			rec = cw_wanted(group);
		}
		if (rec) {
			spare->domain = rec->op->domain;
			spare->len = rec->wr.len;
		}
		mrrc_mutex_unlock(&group->lock);
	}
	if (!rec)
		spare->len = 0;
}

static const struct mrrc_domain_over cw_domain_over = {
	.close = cw_domain_close,
	.progress = cw_domain_progress,
	.yield = cw_domain_yield,
};

int mrrc_cw_domain_open(struct mrrc_domain *domain)
{
	struct mrrc_cw_domain *cwd = NULL;
	int ret = 0;

	mrrc_mutex_lock(&domain->cq_lock);
	if (!domain->cw) {
		ret = cw_domain_new(&cwd);
		if (!ret) {
			domain->cw = cwd;
			domain->over = &cw_domain_over;
		}
	}
	mrrc_mutex_unlock(&domain->cq_lock);
	return ret;
}
