/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pending completions of a completion queue were read on the application's
 * behalf, because unsignalled operations had to be retired or an endpoint was
 * closed. The application gets pending completions before others, in their
 * order.
 *
 * Guarded by the CQ's spin lock.
 */
#include "config.h"
#include "fi/data/pending.h"
#include "fi/data/complete.h"
#include "fi/data/op.h"
#include "sys/base/pause.h"

/*
 * The size of the error entry of applications for an older API: API 1.20
 * appended src_addr, which this header, or the application's, may lack.
 */
#define MRRC_CQ_ERR_SIZE \
	(offsetof(struct fi_cq_err_entry, err_data_size) + sizeof(size_t))
#define MRRC_CQ_ERR_SIZE_1_20 (MRRC_CQ_ERR_SIZE + sizeof(fi_addr_t))

#define MRRC_SPINS 200 /* before yielding the processor */

struct mrrc_comp {
	STAILQ_ENTRY(mrrc_comp) link;
	struct mrrc_pool *pool; /* where to free it; NULL: malloc's heap */
	bool error;
	fi_addr_t src;
	union {
		struct fi_cq_err_entry entry; /* starts as all formats do */
		/*
		 * larger than the error entry of this header, since the core
		 * may know more fields
		 */
		char room[2 * sizeof(struct fi_cq_err_entry)];
	};
	char err_data[64];
};

void mrrc_cq_lock_slow(struct mrrc_cq *cq)
{
	unsigned tries = 0;
	int spins = 0;

	do {
		while (atomic_load_explicit(&cq->lock, memory_order_relaxed)) {
			if (++spins % MRRC_SPINS == 0)
				mrrc_pause(&tries);
		}
	} while (atomic_exchange_explicit(&cq->lock, 1, memory_order_acquire));
}

void mrrc_domain_lock_cqs(struct mrrc_domain *domain)
{
	struct mrrc_cq *cq;

	mrrc_mutex_lock(&domain->cq_lock);
	LIST_FOREACH(cq, &domain->cqs, link)
		mrrc_cq_lock(cq);
}

void mrrc_domain_unlock_cqs(struct mrrc_domain *domain)
{
	struct mrrc_cq *cq;

	LIST_FOREACH(cq, &domain->cqs, link)
		mrrc_cq_unlock(cq);
	mrrc_mutex_unlock(&domain->cq_lock);
}

/*
 * Copies an error entry as the core would: only the fields that the
 * application's API version has, and err_data into the application's buffer if
 * there is one.
 */
static void pending_copy_err(struct mrrc_cq *cq, struct mrrc_comp *comp,
			     struct fi_cq_err_entry *entry)
{
	uint32_t version = cq->domain->fabric->fabric.api_version;
	size_t size;
	void *buf;

	if (FI_VERSION_LT(version, FI_VERSION(1, 5))) {
		memcpy(entry, &comp->entry,
		       offsetof(struct fi_cq_err_entry, err_data_size));
		entry->err_data = NULL;
		return;
	}
	buf = entry->err_data;
	size = entry->err_data_size;
	memcpy(entry, comp->room,
	       FI_VERSION_LT(version, FI_VERSION(1, 20)) ?
		       MRRC_CQ_ERR_SIZE :
		       MRRC_CQ_ERR_SIZE_1_20);
	if (comp->entry.err_data != comp->err_data)
		return;
	if (size && buf) {
		if (size > comp->entry.err_data_size)
			size = comp->entry.err_data_size;
		memcpy(buf, comp->err_data, size);
		entry->err_data = buf;
		entry->err_data_size = size;
		return;
	}
	/* available until the CQ is read the next time */
	free(cq->err_data);
	cq->err_data = malloc(sizeof(comp->err_data));
	if (cq->err_data)
		memcpy(cq->err_data, comp->err_data, sizeof(comp->err_data));
	entry->err_data = cq->err_data;
	entry->err_data_size = cq->err_data ? comp->entry.err_data_size : 0;
}

static void pending_count(struct mrrc_cq *cq, int change)
{
	atomic_fetch_add(&cq->pending_cnt, change);
	if (cq->wait_set)
		atomic_fetch_add(&cq->wait_set->pending_cnt, change);
}

static void pending_add(struct mrrc_cq *cq, struct mrrc_comp *comp)
{
	STAILQ_INSERT_TAIL(&cq->pending, comp, link);
	pending_count(cq, 1);
}

static void pending_pop(struct mrrc_cq *cq)
{
	struct mrrc_comp *comp = STAILQ_FIRST(&cq->pending);

	STAILQ_REMOVE_HEAD(&cq->pending, link);
	pending_count(cq, -1);
	mrrc_comp_free(comp);
}

ssize_t mrrc_pending_read(struct mrrc_cq *cq, void *buf, size_t count,
			  fi_addr_t *src)
{
	struct mrrc_comp *comp;
	size_t i = 0;

	while (i < count && (comp = STAILQ_FIRST(&cq->pending))) {
		if (comp->error)
			return i ? (ssize_t) i : -FI_EAVAIL;
		memcpy((char *) buf + i * cq->entry_size, &comp->entry,
		       cq->entry_size);
		if (src)
			src[i] = comp->src;
		i++;
		pending_pop(cq);
	}
	return i;
}

ssize_t mrrc_pending_readerr(struct mrrc_cq *cq, struct fi_cq_err_entry *entry)
{
	struct mrrc_comp *comp = STAILQ_FIRST(&cq->pending);

	if (!comp->error)
		return -FI_EAGAIN;
	pending_copy_err(cq, comp, entry);
	pending_pop(cq);
	return 1;
}

void mrrc_pending_clear(struct mrrc_cq *cq)
{
	while (!STAILQ_EMPTY(&cq->pending))
		pending_pop(cq);
	free(cq->err_data);
	cq->err_data = NULL;
}

/*
 * Handles the offer of a buffered message. The offer names the core's endpoint,
 * which was opened with our fid as context. Without FI_MORE the application may
 * read all of the message in the core's buffer: a message that claims to be
 * longer than the buffer is discarded.
 */
bool mrrc_cq_offered(struct mrrc_cq *cq, const struct fi_cq_msg_entry *entry)
{
	struct fi_recv_context *offer = entry->op_context;
	struct fi_msg_tagged tagged = { .context = offer };
	struct fi_msg msg = { .context = offer };
	struct mrrc_ep *ep;
	struct fid *fid;

	if (!(entry->flags & FI_RECV) || (entry->flags & FI_CLAIM) || !offer)
		return true;
	fid = offer->ep->fid.context;
	ep = container_of(fid, struct mrrc_ep, ep.fid);
	if (!(entry->flags & FI_MORE) && entry->len > ep->buffered_max) {
		mrrc_cq_claimed(cq, entry->len, ep->buffered_max,
				"is thrown away");
		if (entry->flags & FI_TAGGED)
			fi_trecvmsg(offer->ep, &tagged, FI_DISCARD);
		else
			fi_recvmsg(offer->ep, &msg, FI_DISCARD);
		return false;
	}
	offer->ep = &ep->ep;
	return true;
}

/*
 * Reads one completion of the core into comp. Returns 1 if the application sees
 * the completion, 0 if it does not, or the core's error code. Lock held.
 */
static ssize_t pending_fetch(struct mrrc_cq *cq, struct mrrc_comp *comp,
			     struct mrrc_op **done)
{
	struct mrrc_op *op;
	ssize_t ret = -FI_ENOSYS;

	memset(comp, 0, sizeof(*comp));
	comp->src = FI_ADDR_NOTAVAIL;
	if (!cq->no_source) {
		ret = fi_cq_readfrom(cq->core, &comp->entry, 1, &comp->src);
		if (ret == -FI_ENOSYS)
			cq->no_source = true;
	}
	if (cq->no_source)
		ret = fi_cq_read(cq->core, &comp->entry, 1);
	if (ret == -FI_EAVAIL) {
		comp->error = true;
		/* older cores do not set it */
		memcpy(comp->room + MRRC_CQ_ERR_SIZE,
		       &(fi_addr_t){ FI_ADDR_NOTAVAIL }, sizeof(fi_addr_t));
		comp->entry.err_data = comp->err_data;
		comp->entry.err_data_size = sizeof(comp->err_data);
		ret = fi_cq_readerr(cq->core, &comp->entry, 0);
	}
	if (ret <= 0)
		return ret ? ret : -FI_EAGAIN;

	op = mrrc_op_of(cq->domain, comp->entry.op_context);
	if (op)
		return mrrc_op_claim(cq, op, &comp->entry, comp->entry.err,
				     &comp->entry.op_context, done);
	if (!comp->error && !mrrc_cq_offer(cq, &comp->entry))
		return 0;
	return !cq->internal;
}

/*
 * Maximum number of completions that one drain reads, so that a fast peer does
 * not hold up posting.
 */
#define MRRC_DRAIN_MAX 1024

void mrrc_cq_read_ahead(struct mrrc_cq *cq, size_t max, struct mrrc_op **done)
{
	struct mrrc_comp *comp;
	ssize_t ret;

	while (max--) {
		comp = mrrc_comp_new(NULL);
		if (!comp)
			break;
		while (!(ret = pending_fetch(cq, comp, done)))
			;
		if (ret < 0) {
			mrrc_comp_free(comp);
			break;
		}
		pending_add(cq, comp);
	}
}

int mrrc_comp_pool_open(uint32_t capacity, struct mrrc_pool **pool)
{
	return mrrc_pool_open(sizeof(struct mrrc_comp), capacity, pool);
}

struct mrrc_comp *mrrc_comp_new(struct mrrc_pool *pool)
{
	struct mrrc_comp *comp = pool ? mrrc_pool_alloc(pool) : NULL;

	if (!comp)
		return calloc(1, sizeof(*comp));
	comp->pool = pool;
	return comp;
}

void mrrc_comp_free(struct mrrc_comp *comp)
{
	if (comp && comp->pool)
		mrrc_pool_free(comp->pool, comp);
	else
		free(comp);
}

static void comp_fill(struct mrrc_comp *comp,
		      const struct fi_cq_err_entry *entry)
{
	comp->entry = *entry;
	comp->error = entry->err;
	comp->src = FI_ADDR_NOTAVAIL;
	memcpy(comp->room + MRRC_CQ_ERR_SIZE, &(fi_addr_t){ FI_ADDR_NOTAVAIL },
	       sizeof(fi_addr_t));
}

void mrrc_pending_error(struct mrrc_cq *cq, const struct fi_cq_err_entry *entry)
{
	struct mrrc_comp *comp = mrrc_comp_new(NULL);

	if (!comp)
		return;
	comp_fill(comp, entry);
	pending_add(cq, comp);
}

bool mrrc_pending_behind(struct mrrc_cq *cq, const void *entry, void *context,
			 fi_addr_t src)
{
	struct mrrc_comp *comp = mrrc_comp_new(NULL);

	if (!comp)
		return false;
	memcpy(&comp->entry, entry, cq->entry_size);
	comp->entry.op_context = context;
	comp->src = src;
	pending_add(cq, comp);
	return true;
}

void mrrc_pending_write(struct mrrc_cq *cq, struct mrrc_comp *comp,
			const struct fi_cq_err_entry *entry)
{
	comp_fill(comp, entry);
	mrrc_cq_lock(cq);
	pending_add(cq, comp);
	mrrc_cq_unlock(cq);
	mrrc_cq_wake(cq);
}

static void cq_collect(struct mrrc_cq *cq, struct mrrc_op **done)
{
	mrrc_cq_lock(cq);
	/* the core wakes a thread that sleeps in it, and that thread reads */
	if (!cq->sreaders)
		mrrc_cq_read_ahead(cq, MRRC_DRAIN_MAX, done);
	mrrc_cq_unlock(cq);
	mrrc_cq_wake(cq);
}

void mrrc_cq_drain(struct mrrc_cq *cq)
{
	struct mrrc_op *done = NULL;

	cq_collect(cq, &done);
	mrrc_op_end_list(done);
}

bool mrrc_cq_ready(struct mrrc_cq *cq)
{
	struct mrrc_op *done = NULL;
	bool ready;

	if (!cq->rx_selective &&
	    !atomic_load_explicit(&cq->silent, memory_order_relaxed))
		return true;

	mrrc_cq_lock(cq);
	if (!cq->sreaders && !atomic_load(&cq->pending_cnt))
		mrrc_cq_read_ahead(cq, 1, &done);
	ready = cq->sreaders || atomic_load(&cq->pending_cnt);
	mrrc_cq_unlock(cq);
	mrrc_cq_wake(cq);
	mrrc_op_end_list(done);
	return ready;
}

static void domain_drain(struct mrrc_domain *domain, bool all)
{
	struct mrrc_op *done = NULL;
	struct mrrc_cq *cq;

	mrrc_mutex_lock(&domain->cq_lock);
	LIST_FOREACH(cq, &domain->cqs, link) {
		if (cq->internal || all)
			cq_collect(cq, &done);
	}
	mrrc_mutex_unlock(&domain->cq_lock);
	mrrc_op_end_list(done);
}

void mrrc_domain_drain(struct mrrc_domain *domain)
{
	if (atomic_load_explicit(&domain->internal_cqs, memory_order_relaxed))
		domain_drain(domain, false);
}

void mrrc_domain_drain_all(struct mrrc_domain *domain)
{
	domain_drain(domain, true);
}
