/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Groups of control endpoints, and what a domain and an endpoint have of
 * conditional writes: see cw.h.
 *
 * Lock order: the domain's cw->lock, then a group's.
 */
#include "config.h"
#include <sched.h>
#include <time.h>

#include "cw.h"

#define CW_LINGER_NS	20000000

void mrrc_cw_progress(struct mrrc_cw_domain *domain)
{
	struct mrrc_cw_group *group = atomic_load(&domain->groups);

	for (; group; group = group->next) {
		/* whoever has it makes progress */
		if (!group->cnt || pthread_mutex_trylock(&group->lock))
			continue;
		mrrc_cw_group_poll(group);
		mrrc_cw_group_unlock(group);
	}
}

/* ---- groups -------------------------------------------------------------- */

static void cw_group_free(struct mrrc_cw_group *group)
{
	if (group->pep)
		fi_close(&group->pep->fid);
	if (group->cq)
		fi_close(&group->cq->fid);
	if (group->eq)
		fi_close(&group->eq->fid);
	pthread_mutex_destroy(&group->lock);
	free(group);
}

static int cw_group_open(struct mrrc_domain *domain,
			 struct mrrc_cw_group **group_out)
{
	struct fi_cq_attr cq_attr = {
		.size = CW_GROUP * (CW_TX + CW_RX + 1),
		.format = FI_CQ_FORMAT_MSG,
		.wait_obj = FI_WAIT_FD,
	};
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_FD };
	struct mrrc_cw_group *group;
	int ret;

	group = calloc(1, sizeof(*group));
	if (!group)
		return -FI_ENOMEM;
	group->domain = domain;
	pthread_mutex_init(&group->lock, NULL);
	TAILQ_INIT(&group->eps);
	TAILQ_INIT(&group->lost);
	STAILQ_INIT(&group->ended);
	ret = fi_cq_open(domain->core, &cq_attr, &group->cq, NULL);
	if (!ret)
		ret = fi_eq_open(domain->fabric->core, &eq_attr, &group->eq,
				 NULL);
	if (!ret)
		ret = fi_control(&group->cq->fid, FI_GETWAIT, &group->cq_fd);
	if (!ret)
		ret = fi_control(&group->eq->fid, FI_GETWAIT, &group->eq_fd);
	if (ret) {
		cw_group_free(group);
		return ret;
	}
	*group_out = group;
	return 0;
}

static int cw_group_find(struct mrrc_domain *domain,
			 struct mrrc_cw_group **group_out)
{
	struct mrrc_cw_domain *cwd = domain->cw;
	struct mrrc_cw_group *group = atomic_load(&cwd->groups);
	struct mrrc_cw_cq *ccq;
	int ret;

	while (group && group->cnt >= CW_GROUP)
		group = group->next;
	if (!group) {
		ret = cw_group_open(domain, &group);
		if (ret)
			return ret;
		group->next = atomic_load(&cwd->groups);
		atomic_store(&cwd->groups, group);
		for (ccq = cwd->cqs; ccq; ccq = ccq->next)
			mrrc_cw_cq_add_group(ccq, group);
	}
	*group_out = group;
	return 0;
}

int mrrc_cw_group_join(struct mrrc_cw_ep *cw)
{
	const struct mrrc_cw_attr attr = {
		.credits = CW_RX,
		.pending = FI_CW_PENDING,
	};
	struct mrrc_domain *domain = cw->ep->domain;
	int ret;

	pthread_mutex_lock(&domain->cw->lock);
	ret = cw_group_find(domain, &cw->group);
	if (!ret) {
		pthread_mutex_lock(&cw->group->lock);
		TAILQ_INSERT_TAIL(&cw->group->eps, cw, link);
		cw->group->cnt++;
		mrrc_cw_init(&cw->sm, &attr, &mrrc_cw_sm_ops, cw);
		pthread_mutex_unlock(&cw->group->lock);
	}
	pthread_mutex_unlock(&domain->cw->lock);
	return ret;
}

/*
 * What was said to the peer goes out first: it has the bytes and would not
 * know.
 */
static void cw_linger(struct mrrc_cw_ep *cw)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	while (cw->phase == CW_UP && !cw->lost &&
	       (cw->busy || !TAILQ_EMPTY(&cw->sm.replies))) {
		mrrc_cw_group_poll(cw->group);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if ((now.tv_sec - start.tv_sec) * 1000000000LL +
		    now.tv_nsec - start.tv_nsec > CW_LINGER_NS)
			break;
	}
}

void mrrc_cw_ep_close(struct mrrc_ep *ep)
{
	struct mrrc_cw_ep *cw = ep->cw;
	struct mrrc_cw_group *group = cw->group;

	pthread_mutex_lock(&group->lock);
	cw_linger(cw);
	mrrc_cw_end_all(cw, FI_ECANCELED);
	mrrc_cw_group_unlock(group);
	/* other threads' */
	while (atomic_load(&cw->ending))
		sched_yield();

	pthread_mutex_lock(&ep->domain->cw->lock);
	pthread_mutex_lock(&group->lock);
	TAILQ_REMOVE(&group->eps, cw, link);
	group->cnt--;
	pthread_mutex_unlock(&group->lock);
	pthread_mutex_unlock(&ep->domain->cw->lock);
	mrrc_cw_fini(&cw->sm);
	if (cw->mr)
		fi_close(&cw->mr->fid);
	free(cw->mem);
	free(cw);
	ep->cw = NULL;
}

int mrrc_cw_domain_open(struct mrrc_domain *domain)
{
	struct mrrc_cw_domain *cwd;
	int ret = 0;

	pthread_mutex_lock(&domain->cq_lock);
	if (!domain->cw) {
		cwd = calloc(1, sizeof(*cwd));
		if (cwd)
			pthread_mutex_init(&cwd->lock, NULL);
		else
			ret = -FI_ENOMEM;
		domain->cw = cwd;
	}
	pthread_mutex_unlock(&domain->cq_lock);
	return ret;
}

void mrrc_cw_domain_close(struct mrrc_domain *domain)
{
	struct mrrc_cw_group *group, *next;

	if (!domain->cw)
		return;
	mrrc_cw_auto_stop(domain->cw);
	for (group = atomic_load(&domain->cw->groups); group; group = next) {
		next = group->next;
		cw_group_free(group);
	}
	pthread_mutex_destroy(&domain->cw->lock);
	free(domain->cw);
	domain->cw = NULL;
}
