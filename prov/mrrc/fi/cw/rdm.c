/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reliable datagram endpoints with conditional writes: a link for each peer
 * with which there are operations, found by the peer's name. A link is
 * connected when it is first needed, or when the peer connects (cw/accept.c).
 * See cw/cw.h.
 *
 * A link outlives its connections: the next operation connects a lost link
 * again. A link ends when the peer's address is removed, or with the endpoint.
 *
 * Lock order: the AV's lock of names, then a group's. A link is found under the
 * AV's lock, held by its count (ending), and used under the group's.
 */
#include "config.h"
#include <inttypes.h>
#include <limits.h>
#include <sys/random.h>

#include "fi/cw/cw.h"
#include "fi/cw/group.h"
#include "fi/cw/link.h"
#include "fi/cw/mark.h"
#include "fi/cw/rdm.h"
#include "fi/say.h"
#include "fi/secret.h"
#include "sys/base/pause.h"

/* ---- links --------------------------------------------------------------- */

static struct mrrc_cw_ep *cw_link_of(const struct mrrc_cw_rdm *rdm,
				     const struct mrrc_cw_name *name)
{
	struct mrrc_cw_node *first, *node;
	struct mrrc_cw_ep *cw;

	first = mrrc_cw_map_first(&rdm->by_name, mrrc_cw_name_key(name));
	for (node = first; node;) {
		cw = container_of(node, struct mrrc_cw_ep, by_name);
		if (mrrc_cw_name_same(&cw->peer, name))
			return cw;
		node = node->next != first ? node->next : NULL;
	}
	return NULL;
}

static void cw_link_add(struct mrrc_cw_ep *cw, bool stranger)
{
	struct mrrc_cw_rdm *rdm = cw->rdm;

	cw->stranger = stranger;
	rdm->strangers += stranger;
	TAILQ_INSERT_TAIL(&rdm->links, cw, of_rdm);
	mrrc_cw_map_add(&rdm->by_name, &cw->by_name,
			mrrc_cw_name_key(&cw->peer));
}

/* Removes a link: it is not found any more. */
static void cw_link_remove(struct mrrc_cw_ep *cw)
{
	struct mrrc_cw_rdm *rdm = cw->rdm;

	rdm->strangers -= cw->stranger;
	TAILQ_REMOVE(&rdm->links, cw, of_rdm);
	mrrc_cw_map_remove(&rdm->by_name, &cw->by_name);
}

static int cw_link_new(struct mrrc_cw_rdm *rdm, const struct mrrc_cw_name *name,
		       struct mrrc_cw_ep **cw_out)
{
	struct mrrc_cw_ep *cw;
	int ret;

	cw = calloc(1, sizeof(*cw));
	if (!cw)
		return -FI_ENOMEM;
	cw->ep = rdm->ep;
	cw->via = rdm->ep->domain->cw->below;
	cw->rdm = rdm;
	cw->peer = *name;
	ret = mrrc_cw_group_join(cw);
	if (ret) {
		free(cw);
		return ret;
	}
	*cw_out = cw;
	return 0;
}

/* Frees a removed link, and keeps its counters. */
static void cw_link_free(struct mrrc_cw_ep *cw, int err)
{
	struct mrrc_cw_rdm *rdm = cw->rdm;
	struct mrrc_av *av = rdm->ep->av;
	struct mrrc_cw_group *group = cw->group;

	mrrc_mutex_lock(&group->lock);
	cw->gone = true;
	mrrc_cw_end_all(cw, err);
	mrrc_cw_group_unlock(group);
	mrrc_mutex_lock(&av->cw->lock);
	mrrc_mutex_lock(&group->lock);
	mrrc_cw_stats_add(&rdm->past, cw);
	mrrc_mutex_unlock(&group->lock);
	mrrc_mutex_unlock(&av->cw->lock);
	mrrc_cw_link_free(cw, err);
}

/*
 * Returns how much a stranger's link (a link whose peer is not in the AV)
 * deserves to stay. 0: not connected and not connecting; 1: connected or
 * connecting, and the peer has sent no HELLO; 2: quarantined; 3: the peer has
 * sent HELLO.
 */
static unsigned cw_stranger_merit(struct mrrc_cw_ep *cw)
{
	bool heard;

	if (!mrrc_cw_meets(cw))
		return atomic_load(&cw->hostile) ? 2 : 0;
	mrrc_mutex_lock(&cw->group->lock);
	heard = cw->sm.heard;
	mrrc_mutex_unlock(&cw->group->lock);
	return heard ? 3 : 1;
}

/* Number of strangers of the link's host */
static unsigned cw_stranger_kin(const struct mrrc_cw_rdm *rdm,
				const struct mrrc_cw_ep *cw)
{
	struct mrrc_cw_ep *other;
	unsigned cnt = 0;

	TAILQ_FOREACH(other, &rdm->links, of_rdm)
		cnt += other->stranger &&
		       mrrc_cw_addr_same_host(&other->peer, &cw->peer);
	return cnt;
}

/*
 * Chooses the stranger that makes room for another: a stranger without a
 * connection; else one that has sent nothing; else a quarantined stranger,
 * whose quarantine is then forgotten; else a stranger of the host with most
 * strangers. Among equals, the oldest is chosen.
 */
static struct mrrc_cw_ep *cw_stranger_least(const struct mrrc_cw_rdm *rdm)
{
	unsigned merit, kin, least = UINT_MAX, most = 0;
	struct mrrc_cw_ep *cw, *found = NULL;

	TAILQ_FOREACH(cw, &rdm->links, of_rdm) {
		if (!cw->stranger || atomic_load(&cw->ending))
			continue;
		merit = cw_stranger_merit(cw);
		kin = cw_stranger_kin(rdm, cw);
		if (merit > least || (merit == least && kin <= most))
			continue;
		least = merit;
		most = kin;
		found = cw;
	}
	return found;
}

void mrrc_cw_rdm_count(struct mrrc_cw_ep *cw)
{
	struct mrrc_cw_rdm *rdm = cw->rdm;
	uint32_t cnt;

	if (!rdm)
		return;
	cnt = atomic_load(&cw->stranger) ? cw->sm.rtag_cnt : 0;
	if (cnt == cw->counted)
		return;
	atomic_fetch_add(&rdm->strange_tags, cnt - cw->counted);
	cw->counted = cnt;
	if (atomic_load(&rdm->strange_tags) > CW_PENDING &&
	    cnt > CW_PENDING / (atomic_load(&rdm->strangers) + 1))
		mrrc_cw_lose(cw, "strangers have too many tags");
}

struct mrrc_cw_ep *mrrc_cw_rdm_find(struct mrrc_cw_rdm *rdm,
				    const struct mrrc_cw_name *name)
{
	struct mrrc_av *av = rdm->ep->av;
	struct mrrc_cw_ep *cw;

	mrrc_mutex_lock(&av->cw->lock);
	cw = cw_link_of(rdm, name);
	if (cw)
		atomic_fetch_add(&cw->ending, 1);
	mrrc_mutex_unlock(&av->cw->lock);
	return cw;
}

/*
 * Warns of a name without the provider's mark: an application that passes names
 * on may omit a part of a name.
 */
static void cw_say_nameless(fi_addr_t addr)
{
	static atomic_bool said;

	mrrc_say(&said, FI_LOG_EP_CTRL,
		 "conditional writes cannot reach address %" PRIu64
		 ": insert into the address vector, unchanged, all that the "
		 "peer's fi_getname() returns after its fi_cw_enable()",
		 addr);
}

int mrrc_cw_rdm_get(struct mrrc_ep *ep, fi_addr_t addr,
		    struct mrrc_cw_ep **cw_out)
{
	struct mrrc_cw_ep *cw = NULL, *fresh = NULL;
	struct mrrc_cw_rdm *rdm = ep->cw_rdm;
	struct mrrc_av *av = ep->av;
	struct mrrc_cw_name name;
	bool known;
	int ret = 0;

	if (!atomic_load(&rdm->started))
		return -FI_EOPBADSTATE;
	if (addr == FI_ADDR_UNSPEC)
		return -FI_EINVAL;
	/* a link that does not exist yet is opened without this lock */
	do {
		mrrc_mutex_lock(&av->cw->lock);
		known = mrrc_cw_av_name(av, addr, &name);
		if (known)
			cw = cw_link_of(rdm, &name);
		if (known && !cw && fresh &&
		    mrrc_cw_name_same(&fresh->peer, &name)) {
			cw = fresh;
			fresh = NULL;
			cw_link_add(cw, false);
		}
		if (cw)
			atomic_fetch_add(&cw->ending, 1);
		mrrc_mutex_unlock(&av->cw->lock);
		if (cw || !known || fresh)
			break;
		if (!rdm->name.sa.sa_family ||
		    mrrc_cw_name_same(&name, &rdm->name))
			return -FI_EOPNOTSUPP;
		ret = cw_link_new(rdm, &name, &fresh);
	} while (!ret);
	if (fresh)
		mrrc_cw_link_free(fresh, FI_ECANCELED);
	if (ret)
		return ret;
	if (!known) /* the name was removed meanwhile, or is not marked */
		cw_say_nameless(addr);
	if (!cw)
		return -FI_EOPNOTSUPP;
	*cw_out = cw;
	return 0;
}

int mrrc_cw_rdm_get_from(struct mrrc_cw_rdm *rdm,
			 const struct mrrc_cw_name *name,
			 struct mrrc_cw_ep **cw_out)
{
	struct mrrc_cw_ep *cw, *fresh = NULL, *old = NULL;
	struct mrrc_av *av = rdm->ep->av;
	bool stranger;
	int ret = 0;

	do {
		mrrc_mutex_lock(&av->cw->lock);
		cw = cw_link_of(rdm, name);
		if (!cw && fresh) {
			stranger = !mrrc_cw_av_knows(av, name);
			if (stranger && rdm->strangers >= CW_STRANGERS) {
				old = cw_stranger_least(rdm);
				ret = old ? 0 : -FI_ENOSPC;
			}
			if (old)
				cw_link_remove(old);
			if (!ret) {
				cw = fresh;
				fresh = NULL;
				cw_link_add(cw, stranger);
			}
		}
		if (cw)
			atomic_fetch_add(&cw->ending, 1);
		mrrc_mutex_unlock(&av->cw->lock);
		if (cw || ret)
			break;
		ret = cw_link_new(rdm, name, &fresh);
	} while (!ret);
	if (old)
		cw_link_free(old, FI_ECONNABORTED);
	if (fresh)
		mrrc_cw_link_free(fresh, FI_ECONNABORTED);
	if (!ret)
		*cw_out = cw;
	return ret;
}

static int cw_rdm_dial(struct mrrc_cw_ep *cw)
{
	struct mrrc_cw_rdm *rdm = cw->rdm;
	const size_t len = mrrc_cw_addr_len(&rdm->name.sa);
	struct sockaddr_storage dest;
	struct mrrc_secret secret;
	struct cw_peer_mark data;
	int ret;

	mrrc_secret_make(&secret);
	cw->nonce = secret.word[0];
	mrrc_cw_mark_make(&data.mark, CW_MARK_PEER, len, cw->nonce, 0);
	data.mark.number = mrrc_cw_name_number(&cw->peer);
	data.name = rdm->name;
	mrrc_cw_name_dest(&cw->peer, &dest);
	ret = mrrc_cw_dial(cw, (struct sockaddr *) &dest, &data,
			   sizeof(data.mark) + len);
	if (!ret)
		return 0;
	MRRC_WARN(EP_CTRL, "cannot open a control connection to %s: %s\n",
		  mrrc_cw_addr_text(&dest).text, fi_strerror(-ret));
	mrrc_cw_unlink(cw);
	return ret;
}

int mrrc_cw_rdm_ready(struct mrrc_cw_ep *cw)
{
	enum cw_act act;

	if (cw->gone)
		return -FI_EOPNOTSUPP;
	if (cw->lost)
		mrrc_cw_lost(cw);
	if (cw->hostile)
		return -FI_EACCES;
	act = mrrc_cw_step(cw, CW_ON_POST);
	if (act == CW_DO_RENEW)
		mrrc_cw_renew(cw);
	return act == CW_DO_RENEW || act == CW_DO_CONNECT ? cw_rdm_dial(cw) : 0;
}

/* ---- changes of the AV --------------------------------------------------- */

void mrrc_cw_rdm_meet(struct mrrc_av *av, const struct mrrc_cw_name *name)
{
	struct mrrc_cw_rdm *rdm;
	struct mrrc_cw_ep *cw;

	LIST_FOREACH(rdm, &av->cw->rdms, of_av) {
		cw = cw_link_of(rdm, name);
		if (!cw || !cw->stranger)
			continue;
		mrrc_mutex_lock(&cw->group->lock);
		cw->stranger = false;
		rdm->strangers--;
		mrrc_cw_rdm_count(cw);
		mrrc_mutex_unlock(&cw->group->lock);
	}
}

void mrrc_cw_rdm_forget(struct mrrc_av *av, const struct mrrc_cw_name *name)
{
	TAILQ_HEAD(, mrrc_cw_ep) gone = TAILQ_HEAD_INITIALIZER(gone);
	struct mrrc_cw_rdm *rdm;
	struct mrrc_cw_ep *cw;

	mrrc_mutex_lock(&av->cw->lock);
	LIST_FOREACH(rdm, &av->cw->rdms, of_av) {
		cw = cw_link_of(rdm, name);
		if (!cw)
			continue;
		cw_link_remove(cw);
		TAILQ_INSERT_TAIL(&gone, cw, of_rdm);
		/* the close of the endpoint waits for the link */
		atomic_fetch_add(&rdm->users, 1);
	}
	mrrc_mutex_unlock(&av->cw->lock);
	while ((cw = TAILQ_FIRST(&gone))) {
		TAILQ_REMOVE(&gone, cw, of_rdm);
		rdm = cw->rdm;
		cw_link_free(cw, FI_ECANCELED);
		atomic_fetch_sub(&rdm->users, 1);
	}
}

/* ---- endpoints ----------------------------------------------------------- */

/* A number that no other endpoint of the domain has. cw->lock held */
static int cw_rdm_number(const struct mrrc_cw_domain *cwd, uint32_t *number)
{
	const struct mrrc_cw_rdm *other;

	do {
		if (getrandom(number, sizeof(*number), 0) != sizeof(*number))
			return -FI_EIO;
		LIST_FOREACH(other, &cwd->rdms, of_domain) {
			if (other->number == *number)
				break;
		}
	} while (other || !*number);
	return 0;
}

int mrrc_cw_rdm_open(struct mrrc_ep *ep)
{
	struct mrrc_cw_domain *cwd = ep->domain->cw;
	struct mrrc_secret secret;
	struct mrrc_cw_rdm *rdm;
	int ret;

	rdm = calloc(1, sizeof(*rdm));
	if (!rdm)
		return -FI_ENOMEM;
	rdm->ep = ep;
	TAILQ_INIT(&rdm->links);
	mrrc_secret_make(&secret);
	mrrc_cw_map_init(&rdm->by_name, &secret);
	mrrc_mutex_lock(&cwd->lock);
	ret = mrrc_cw_below_open(ep->domain, ep->info);
	if (!ret)
		ret = cw_rdm_number(cwd, &rdm->number);
	mrrc_mutex_unlock(&cwd->lock);
	if (!ret)
		ret = mrrc_cw_group_home(ep, cwd->below, &rdm->home);
	if (ret) {
		free(rdm);
		return ret;
	}
	mrrc_mutex_lock(&cwd->lock);
	LIST_INSERT_HEAD(&cwd->rdms, rdm, of_domain);
	mrrc_mutex_unlock(&cwd->lock);
	mrrc_mutex_lock(&ep->av->cw->lock);
	LIST_INSERT_HEAD(&ep->av->cw->rdms, rdm, of_av);
	mrrc_mutex_unlock(&ep->av->cw->lock);
	ep->cw_rdm = rdm;
	return 0;
}

void mrrc_cw_rdm_start(struct mrrc_ep *ep)
{
	struct mrrc_cw_rdm *rdm = ep->cw_rdm;
	struct sockaddr_storage addr = { 0 };
	size_t len = sizeof(addr);
	int ret;

	ret = fi_getname(&ep->core->fid, &addr, &len);
	if (!ret &&
	    !mrrc_cw_name_make(&addr, rdm->home->port, rdm->number, &rdm->name))
		ret = -FI_EOPNOTSUPP;
	if (ret)
		MRRC_WARN(EP_CTRL,
			  "the address %s has no room to announce "
			  "conditional writes: %s\n",
			  mrrc_cw_addr_text(&addr).text, fi_strerror(-ret));
	atomic_store(&rdm->started, true);
}

void mrrc_cw_rdm_getname(struct mrrc_ep *ep, void *addr, size_t room,
			 size_t addrlen)
{
	const struct mrrc_cw_rdm *rdm = mrrc_cw_base(ep)->cw_rdm;

	if (atomic_load(&rdm->started) && rdm->name.sa.sa_family &&
	    addrlen == mrrc_cw_addr_len(&rdm->name.sa))
		memcpy(addr, &rdm->name, room < addrlen ? room : addrlen);
}

static void cw_rdm_linger(struct mrrc_cw_rdm *rdm)
{
	int64_t end = mrrc_now_ms() + CW_LINGER_MS;
	struct mrrc_cw_ep *cw;

	/* the list does not change any more */
	TAILQ_FOREACH(cw, &rdm->links, of_rdm)
		mrrc_cw_linger(cw, end);
	/* each link sends its last message before one of them waits */
	TAILQ_FOREACH(cw, &rdm->links, of_rdm)
		mrrc_cw_wait_arrived(cw, 0);
	end = mrrc_now_ms() + CW_ARRIVED_MS;
	TAILQ_FOREACH(cw, &rdm->links, of_rdm)
		mrrc_cw_wait_arrived(cw, end);
}

/*
 * Waits until no thread uses the endpoint's links, and deferred requests are
 * refused.
 */
static void cw_rdm_wait(struct mrrc_cw_rdm *rdm)
{
	unsigned tries = 0;

	while (atomic_load(&rdm->users)) {
		mrrc_cw_progress(rdm->ep->domain->cw, true);
		mrrc_pause(&tries);
	}
}

void mrrc_cw_rdm_close(struct mrrc_ep *ep)
{
	struct mrrc_cw_domain *cwd = ep->domain->cw;
	struct mrrc_cw_rdm *rdm = ep->cw_rdm;
	struct mrrc_cw_ep *cw;

	if (mrrc_cw_inherited(ep->domain)) {
		/*
		 * in a child the core does not close control endpoints, which
		 * keep their domain open
		 */
		mrrc_ref_get(&ep->domain->ref);
		ep->cw_rdm = NULL;
		return;
	}
	mrrc_mutex_lock(&cwd->lock);
	LIST_REMOVE(rdm, of_domain);
	mrrc_mutex_unlock(&cwd->lock);
	mrrc_mutex_lock(&ep->av->cw->lock);
	LIST_REMOVE(rdm, of_av);
	mrrc_mutex_unlock(&ep->av->cw->lock);
	cw_rdm_wait(rdm);
	cw_rdm_linger(rdm);
	while ((cw = TAILQ_FIRST(&rdm->links))) {
		mrrc_mutex_lock(&ep->av->cw->lock);
		cw_link_remove(cw);
		mrrc_mutex_unlock(&ep->av->cw->lock);
		mrrc_cw_link_free(cw, FI_ECANCELED);
	}
	/* a link may have deferred a request until it ended */
	cw_rdm_wait(rdm);
	mrrc_cw_group_leave_home(rdm->home);
	mrrc_cw_map_fini(&rdm->by_name);
	ep->cw_rdm = NULL;
	free(rdm);
}

/* ---- of all links -------------------------------------------------------- */

void mrrc_cw_rdm_stats(struct mrrc_ep *ep, struct fi_mrrc_cw_stats *sum)
{
	struct mrrc_cw_rdm *rdm = ep->cw_rdm;
	struct mrrc_cw_ep *cw;

	mrrc_mutex_lock(&ep->av->cw->lock);
	*sum = rdm->past;
	TAILQ_FOREACH(cw, &rdm->links, of_rdm) {
		mrrc_mutex_lock(&cw->group->lock);
		mrrc_cw_stats_add(sum, cw);
		mrrc_mutex_unlock(&cw->group->lock);
	}
	mrrc_mutex_unlock(&ep->av->cw->lock);
}

struct mrrc_cw_ep *mrrc_cw_rdm_oldest(struct mrrc_ep *ep, const void *context)
{
	struct mrrc_cw_rdm *rdm = ep->cw_rdm;
	struct mrrc_cw_ep *cw, *found = NULL;
	uint64_t oldest = UINT64_MAX;
	const struct cw_rec *rec;

	mrrc_mutex_lock(&ep->av->cw->lock);
	TAILQ_FOREACH(cw, &rdm->links, of_rdm) {
		mrrc_mutex_lock(&cw->group->lock);
		rec = mrrc_cw_oldest(cw, context);
		if (rec && rec->seq < oldest) {
			oldest = rec->seq;
			found = cw;
		}
		mrrc_mutex_unlock(&cw->group->lock);
	}
	if (found)
		atomic_fetch_add(&found->ending, 1);
	mrrc_mutex_unlock(&ep->av->cw->lock);
	return found;
}
