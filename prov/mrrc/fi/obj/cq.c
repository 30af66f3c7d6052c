/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues: the core's, but operations with a record get the
 * application's context back, and completions of unsignalled operations are
 * left out.
 *
 * Reading the core and claiming the records behind its completions is one step
 * under the CQ's spin lock, so that the close of an endpoint, which takes the
 * same lock, finds every record either claimed or in flight. A thread inside
 * the core's sread holds no lock. While a thread is there, only the application
 * reads this CQ, so that completions keep their order and no thread sleeps
 * while completions are pending.
 *
 * data/pending.c reads a CQ on the application's behalf: completions read there
 * are pending, and the application gets pending completions first.
 */
#include "config.h"

#include "fi/attr.h"
#include "fi/obj/cq.h"
#include "fi/data/complete.h"
#include "fi/data/flush.h"
#include "fi/data/op.h"
#include "fi/fid.h"
#include "fi/obj/cq_fwd.h"
#include "fi/obj/obj.h"

#define MRRC_CQ_BATCH 16 /* entries of a wider format read at once */

static ssize_t mrrc_cq_map_behind(struct mrrc_cq *cq, char *to, char *from,
				  ssize_t n, fi_addr_t *src,
				  const fi_addr_t *from_src,
				  struct mrrc_op **done);

/*
 * Maps n entries of the core, at from, to the application's entries, at to (the
 * same place, or a place with smaller entries). @behind: the entries follow an
 * entry that became an error, and become pending like that error, if there is
 * memory. The CQ's lock is held.
 */
static inline __attribute__((always_inline)) ssize_t
mrrc_cq_map(struct mrrc_cq *cq, char *to, char *from, ssize_t n, fi_addr_t *src,
	    const fi_addr_t *from_src, struct mrrc_op **done, bool behind)
{
	const size_t in = cq->core_entry_size, out = cq->entry_size;
	struct mrrc_op *op;
	ssize_t i, seen = 0;
	void *context;

	for (i = 0; i < n; i++, from += in) {
		context = ((const struct fi_cq_entry *) from)->op_context;
		op = mrrc_op_of(cq->domain, context);
		if (!op && !mrrc_cq_offer(cq, from))
			continue;
		if (op && !mrrc_op_claim(cq, op, from, 0, &context, done)) {
			if (behind ||
			    !atomic_load_explicit(&cq->pending_cnt,
						  memory_order_relaxed))
				continue;
			i++;
			return seen +
			       mrrc_cq_map_behind(cq, to, from + in, n - i,
						  src ? src + seen : NULL,
						  src ? from_src + i : NULL,
						  done);
		}
		if (behind &&
		    mrrc_pending_behind(cq, from, context,
					src ? from_src[i] : FI_ADDR_NOTAVAIL))
			continue;
		if (to != from)
			memmove(to, from, out);
		((struct fi_cq_entry *) to)->op_context = context;
		if (src)
			src[seen] = from_src[i];
		seen++;
		to += out;
	}
	return seen;
}

static ssize_t __attribute__((noinline))
mrrc_cq_map_behind(struct mrrc_cq *cq, char *to, char *from, ssize_t n,
		   fi_addr_t *src, const fi_addr_t *from_src,
		   struct mrrc_op **done)
{
	return mrrc_cq_map(cq, to, from, n, src, from_src, done, true);
}

/* Does one of the n completions at buf belong to an operation with a record? */
static inline bool cq_any_ours(const struct mrrc_cq *cq, const char *buf,
			       ssize_t n)
{
	do {
		if (mrrc_pool_owns(cq->ops, *(void *const *) buf))
			return true;
		buf += cq->entry_size;
	} while (--n);
	return false;
}

static inline ssize_t cq_core_read(struct mrrc_cq *cq, void *buf, size_t count,
				   fi_addr_t *src)
{
	return src ? fi_cq_readfrom(cq->core, buf, count, src) :
		     fi_cq_read(cq->core, buf, count);
}

/* Reads without waiting. The caller holds no lock. */
static ssize_t __attribute__((noinline))
mrrc_cq_poll(struct mrrc_cq *cq, void *buf, size_t count, fi_addr_t *src)
{
	struct fi_cq_tagged_entry wide[MRRC_CQ_BATCH];
	bool narrow = cq->core_entry_size != cq->entry_size;
	void *core_buf = narrow ? wide : buf;
	struct mrrc_op *done = NULL;
	ssize_t n = 0, ret;

	if (mrrc_unlikely(!count)) {
		/* a read of no entries only drives progress */
		ret = cq_core_read(cq, buf, 0, src);
		if (ret == -FI_EAGAIN && atomic_load(&cq->pending_cnt))
			return 0;
		return !ret && !mrrc_cq_ready(cq) ? -FI_EAGAIN : ret;
	}
	if (narrow && count > MRRC_CQ_BATCH)
		count = MRRC_CQ_BATCH;

	mrrc_cq_lock(cq);
	do {
		if (mrrc_unlikely(atomic_load_explicit(&cq->pending_cnt,
						       memory_order_relaxed))) {
			ret = mrrc_pending_read(cq, buf, count, src);
			break;
		}
		ret = n = cq_core_read(cq, core_buf, count, src);
		if (n > 0)
			ret = mrrc_cq_map(cq, buf, core_buf, n, src, src, &done,
					  false);
		/* if all completions were unsignalled, others may follow */
	} while (n > 0 && !ret);
	mrrc_cq_unlock(cq);

	if (n > 0)
		mrrc_cq_wake(cq);
	mrrc_op_end_list(done);
	return ret;
}

/* Called after a read of n completions, some with records. Unlocks the CQ. */
static ssize_t __attribute__((noinline))
mrrc_cq_read_mixed(struct mrrc_cq *cq, void *buf, size_t count, ssize_t n)
{
	struct mrrc_op *done = NULL;

	n = mrrc_cq_map(cq, buf, buf, n, NULL, NULL, &done, false);
	mrrc_cq_unlock(cq);
	mrrc_cq_wake(cq);
	mrrc_op_end_list(done);
	return n ? n : mrrc_cq_poll(cq, buf, count, NULL);
}

/* Like mrrc_cq_read_mixed(), but a short operation alone needs no list. */
static ssize_t MRRC_UNGUARDED __attribute__((noinline))
mrrc_cq_read_ours(struct mrrc_cq *cq, void *buf, size_t count, ssize_t n)
{
	struct mrrc_domain *domain = cq->domain;
	struct fi_cq_entry *entry = buf;
	struct mrrc_op *op = entry->op_context;
	struct mrrc_hints *hints;

	if (n != 1 || !mrrc_op_is_short(op))
		return mrrc_cq_read_mixed(cq, buf, count, n);
	hints = mrrc_cache_hit_table(domain->reg.cache);
	/* the record is spare again; flushes examine it under the lock */
	if (mrrc_unlikely(!hints || !mrrc_hints_keep_spare(hints, op)))
		return mrrc_cq_read_mixed(cq, buf, count, n);
	entry->op_context = op->context;
	atomic_store_explicit(&op->flags, MRRC_OP_CLAIMED,
			      memory_order_relaxed);
	mrrc_count_one(&cq->completions);
	mrrc_cq_unlock(cq);
	mrrc_cache_hit_put(domain->reg.cache, hints, op->region[0]);
	return 1;
}

/*
 * Called after a read of no entries. Not inline: otherwise each read would save
 * and restore registers for this call.
 */
static ssize_t __attribute__((noinline))
mrrc_cq_read_nothing(struct mrrc_cq *cq)
{
	return mrrc_cq_ready(cq) ? 0 : -FI_EAGAIN;
}

static ssize_t cq_read(struct fid_cq *cq_fid, void *buf, size_t count)
{
	struct mrrc_cq *cq = mrrc_cq_of(cq_fid);
	ssize_t ret;

	mrrc_cq_lock(cq);
	if (mrrc_unlikely(atomic_load_explicit(&cq->pending_cnt,
					       memory_order_relaxed))) {
		ret = mrrc_pending_read(cq, buf, count, NULL);
	} else {
		ret = fi_cq_read(cq->core, buf, count);
		if (ret > 0 && cq_any_ours(cq, buf, ret))
			return mrrc_cq_read_ours(cq, buf, count, ret);
	}
	mrrc_cq_unlock(cq);
	return mrrc_unlikely(!ret) ? mrrc_cq_read_nothing(cq) : ret;
}

static ssize_t cq_read_narrow(struct fid_cq *cq_fid, void *buf, size_t count)
{
	return mrrc_cq_poll(mrrc_cq_of(cq_fid), buf, count, NULL);
}

static ssize_t cq_readfrom(struct fid_cq *cq_fid, void *buf, size_t count,
			   fi_addr_t *src)
{
	return mrrc_cq_poll(mrrc_cq_of(cq_fid), buf, count, src);
}

static ssize_t cq_readerr(struct fid_cq *cq_fid, struct fi_cq_err_entry *entry,
			  uint64_t flags)
{
	struct mrrc_cq *cq = mrrc_cq_of(cq_fid);
	struct mrrc_op *op, *done = NULL;
	ssize_t ret = -FI_EAGAIN;

	mrrc_cq_lock(cq);
	if (atomic_load_explicit(&cq->pending_cnt, memory_order_relaxed))
		ret = mrrc_pending_readerr(cq, entry);
	/*
	 * the caller asks for the core's error; the pending completions came
	 * after the error was reported
	 */
	if (ret == -FI_EAGAIN) {
		/* not fi_cq_readerr(): see cq_fwd.c */
		ret = cq->core->ops->readerr(cq->core, entry, flags);
		if (ret > 0 &&
		    (op = mrrc_op_of(cq->domain, entry->op_context)) &&
		    !mrrc_op_claim(cq, op, entry, entry->err,
				   &entry->op_context, &done))
			ret = -FI_EAGAIN; /* not reported */
	}
	mrrc_cq_unlock(cq);
	mrrc_op_end_list(done);
	return ret;
}

/* Called by a thread that leaves the core's sread. Unlocks the CQ. */
static void cq_sread_end(struct mrrc_cq *cq, struct mrrc_op *done)
{
	if (!--cq->sreaders && mrrc_unlikely(cq->zombies || cq->awaited))
		mrrc_cq_reap(cq, &done);
	mrrc_cq_unlock(cq);
	mrrc_op_end_list(done);
}

void mrrc_cq_leave_alone(struct mrrc_cq *cq)
{
	mrrc_cq_lock(cq);
	cq->sreaders++;
	mrrc_cq_unlock(cq);
}

void mrrc_cq_leave_alone_end(struct mrrc_cq *cq)
{
	mrrc_cq_lock(cq);
	cq_sread_end(cq, NULL);
}

static void cq_sread_cancelled(void *cq)
{
	mrrc_cq_leave_alone_end(cq);
}

/* Waits in the core, where the thread may be cancelled (pthread_cancel()). */
static ssize_t cq_core_wait(struct mrrc_cq *cq, void *buf, size_t count,
			    fi_addr_t *src, const void *cond, int timeout)
{
	ssize_t ret;

	pthread_cleanup_push(cq_sread_cancelled, cq);
	ret = src ? fi_cq_sreadfrom(cq->core, buf, count, src, cond, timeout) :
		    fi_cq_sread(cq->core, buf, count, cond, timeout);
	pthread_cleanup_pop(0);
	return ret;
}

/* Waits in the core once. The caller holds no lock. */
static ssize_t cq_core_sread(struct mrrc_cq *cq, void *buf, size_t count,
			     fi_addr_t *src, const void *cond, int timeout)
{
	struct fi_cq_tagged_entry wide[MRRC_CQ_BATCH];
	bool narrow = cq->core_entry_size != cq->entry_size;
	void *core_buf = narrow ? wide : buf;
	struct mrrc_op *done = NULL;
	ssize_t ret;

	if (narrow && count > MRRC_CQ_BATCH)
		count = MRRC_CQ_BATCH;
	mrrc_cq_lock(cq);
	if (atomic_load_explicit(&cq->pending_cnt, memory_order_relaxed)) {
		/*
		 * completions became pending since mrrc_cq_poll(): the core
		 * wakes no thread for them
		 */
		mrrc_cq_unlock(cq);
		return 0;
	}
	cq->sreaders++;
	mrrc_cq_unlock(cq);

	ret = cq_core_wait(cq, core_buf, count, src, cond, timeout);

	mrrc_cq_lock(cq);
	if (ret > 0)
		ret = mrrc_cq_map(cq, buf, core_buf, ret, src, src, &done,
				  false);
	cq_sread_end(cq, done);
	if (ret >= 0)
		mrrc_cq_wake(cq);
	return ret;
}

static ssize_t cq_sreadfrom(struct fid_cq *cq_fid, void *buf, size_t count,
			    fi_addr_t *src, const void *cond, int timeout)
{
	struct mrrc_cq *cq = mrrc_cq_of(cq_fid);
	int64_t end = timeout > 0 ? mrrc_now_ms() + timeout : 0;
	size_t want = cq->threshold ? (size_t) (uintptr_t) cond : 1, cur = 0;
	/* without a wait object the core decides, before any completion is read */
	bool poll = cq->wait;
	struct fi_ops_cq *ops;
	const void *rest;
	ssize_t ret;

	/* without room for entries the core decides, too */
	if (!count)
		return src ? fi_cq_sreadfrom(cq->core, buf, count, src, cond,
					     timeout) :
			     fi_cq_sread(cq->core, buf, count, cond, timeout);
	if (want > count)
		want = count;
	if (!want)
		want = 1;

	for (;;) {
		rest = cq->threshold ? (void *) (uintptr_t) (want - cur) : cond;
		/*
		 * the CQ's calls were replaced meanwhile: the new calls
		 * continue the wait
		 */
		ops = __atomic_load_n(&cq_fid->ops, __ATOMIC_ACQUIRE);
		if (mrrc_unlikely(ops->sreadfrom != cq_sreadfrom) && cq->wait &&
		    (timeout < 0 || timeout > MRRC_CQ_BRIEF)) {
			ret = ops->sreadfrom(
				cq_fid, (char *) buf + cur * cq->entry_size,
				count - cur, src ? src + cur : NULL, rest,
				timeout);
			cur += ret > 0 ? ret : 0;
			break;
		}
		ret = poll ? mrrc_cq_poll(cq,
					  (char *) buf + cur * cq->entry_size,
					  count - cur, src ? src + cur : NULL) :
			     -FI_EAGAIN;
		poll = true;
		if (ret == -FI_EAGAIN) {
			ret = cq_core_sread(cq,
					    (char *) buf + cur * cq->entry_size,
					    count - cur, src ? src + cur : NULL,
					    rest, timeout);
			/*
			 * the provider signals the core, too: only a signal of
			 * the application ends the wait (sockets: -FI_ECANCELED)
			 */
			if ((ret == -FI_EAGAIN || ret == -FI_ECANCELED) &&
			    !(timeout && atomic_exchange(&cq->signalled, 0)))
				ret = timeout < 0 || (timeout &&
						      mrrc_now_ms() < end) ?
					      0 :
					      -FI_EAGAIN;
		}
		if (ret < 0)
			break;
		cur += ret;
		if (cur >= want)
			break;
		if (timeout > 0) {
			timeout = end - mrrc_now_ms();
			if (timeout < 0)
				timeout = 0;
		}
	}
	return cur ? (ssize_t) cur : ret;
}

static ssize_t cq_sread(struct fid_cq *cq_fid, void *buf, size_t count,
			const void *cond, int timeout)
{
	return cq_sreadfrom(cq_fid, buf, count, NULL, cond, timeout);
}

static int cq_signal_ours(struct fid_cq *cq_fid)
{
	atomic_store(&mrrc_cq_of(cq_fid)->signalled, 1);
	return mrrc_cq_signal(cq_fid);
}

static struct fi_ops_cq mrrc_cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal_ours,
	.strerror = mrrc_cq_strerror,
#ifdef MRRC_XPU_CALLS
	.export_xpu = mrrc_cq_export_xpu,
#endif
};

/* for CQs whose entries are wider in the core, or are examined one by one */
static struct fi_ops_cq mrrc_cq_narrow_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read_narrow,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal_ours,
	.strerror = mrrc_cq_strerror,
#ifdef MRRC_XPU_CALLS
	.export_xpu = mrrc_cq_export_xpu,
#endif
};

static int cq_close(struct fid *fid)
{
	struct mrrc_cq *cq = container_of(fid, struct mrrc_cq, cq.fid);
	struct mrrc_domain *domain = cq->domain;
	const struct mrrc_cq_over *over;
	int ret;

	if (mrrc_ref_busy(&cq->ref))
		return -FI_EBUSY;
	mrrc_mutex_lock(&domain->cq_lock);
	ret = fi_close(&cq->core->fid);
	if (!ret) {
		LIST_REMOVE(cq, link);
		atomic_fetch_add(&domain->posts, atomic_load(&cq->posts));
		atomic_fetch_add(&domain->completions,
				 atomic_load(&cq->completions));
	}
	mrrc_mutex_unlock(&domain->cq_lock);
	if (ret)
		return ret;

	over = atomic_load(&cq->over);
	if (over)
		over->close(cq);
	mrrc_pending_clear(cq);
	if (cq->internal)
		atomic_fetch_sub(&domain->internal_cqs, 1);
	if (cq->wait_set)
		mrrc_ref_put(&cq->wait_set->ref);
	mrrc_ref_put(&domain->ref);
	free(cq);
	return 0;
}

/* If the CQ's calls are replaced, the core's descriptor is not enough. */
static int cq_getwait(struct mrrc_cq *cq, void *arg)
{
	const struct mrrc_cq_over *over = NULL;
	int ret = 0;

	mrrc_mutex_lock(&cq->domain->cq_lock);
	if (cq->wait_obj == FI_WAIT_FD)
		over = atomic_load(&cq->over);
	if (!over) {
		ret = mrrc_fid_control(&cq->cq.fid, FI_GETWAIT, arg);
		cq->wait_taken |= !ret;
	}
	mrrc_mutex_unlock(&cq->domain->cq_lock);
	return over ? over->getwait(cq, arg) : ret;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	struct mrrc_cq *cq = container_of(fid, struct mrrc_cq, cq.fid);

	return command == FI_GETWAIT ? cq_getwait(cq, arg) :
				       mrrc_fid_control(fid, command, arg);
}

static struct fi_ops mrrc_cq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.bind = mrrc_fid_bind,
	.control = cq_control,
	.ops_open = mrrc_fid_ops_open,
	.tostr = mrrc_fid_tostr,
	.ops_set = mrrc_fid_ops_set,
};

static size_t format_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_TAGGED:
		return sizeof(struct fi_cq_tagged_entry);
	default:
		return sizeof(struct fi_cq_entry);
	}
}

/*
 * complete.c needs flags, length and place of multi-receives, and the length of
 * every receive over a core that passes on lengths that peers claim.
 */
static enum fi_cq_format core_format(const struct mrrc_domain *domain,
				     enum fi_cq_format format)
{
	enum fi_cq_format least = FI_CQ_FORMAT_UNSPEC;

	if (domain->ops && domain->multi_recv)
		least = FI_CQ_FORMAT_DATA;
	else if (domain->ops && domain->reg.below & MRRC_BELOW_LEN_CLAIMED)
		least = FI_CQ_FORMAT_MSG;
	return (unsigned) format < (unsigned) least ? least : format;
}

static int cq_init(struct mrrc_domain *domain, struct fi_cq_attr *attr,
		   bool internal, void *context, struct mrrc_cq **cq_out)
{
	const enum fi_cq_format format = core_format(domain, attr->format);
	struct fi_cq_attr *core_attr = attr;
	struct mrrc_cq_attrs copy;
	struct fid *wait = NULL;
	struct mrrc_cq *cq;
	int ret;

	/* with FI_PEER the context is a structure of the caller's, not a fid */
	if (attr->flags & FI_PEER)
		return -FI_ENOSYS;
	/* the error of cores without such queues; see xpu.c */
	if (attr->flags & FI_XPU)
		return -FI_EINVAL;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	cq->domain = domain;
	cq->internal = internal;
	cq->wait = attr->wait_obj != FI_WAIT_NONE;
	cq->wait_obj = attr->wait_obj;
	cq->threshold = attr->wait_cond == FI_CQ_COND_THRESHOLD;
	STAILQ_INIT(&cq->pending);
	if (attr->wait_obj == FI_WAIT_SET || format != attr->format)
		core_attr = mrrc_cq_attr_copy(&copy, attr);
	if (attr->wait_obj == FI_WAIT_SET) {
		if (attr->wait_set)
			wait = mrrc_fid_core(&attr->wait_set->fid);
		if (!wait) {
			free(cq);
			return -FI_EINVAL;
		}
		core_attr->wait_set = container_of(wait, struct fid_wait, fid);
		cq->wait_set =
			container_of(attr->wait_set, struct mrrc_wait, wait);
	}
	if (core_attr != attr)
		core_attr->format = format;

	ret = fi_cq_open(domain->core, core_attr, &cq->core, &cq->cq.fid);
	if (ret) {
		free(cq);
		return ret;
	}
	/*
	 * cores write the size back if the application left the size open;
	 * other fields of attr are unchanged
	 */
	if (attr->size != core_attr->size)
		attr->size = core_attr->size;
	cq->entry_size = format_size(attr->format);
	cq->core_entry_size = format_size(format);

	cq->ops = domain->ops;
	cq->cq.fid.fclass = FI_CLASS_CQ;
	cq->cq.fid.context = context;
	cq->cq.fid.ops = &mrrc_cq_fid_ops;
	if (!domain->ops)
		cq->cq.ops = &mrrc_cq_fwd_ops;
	else if (cq->core_entry_size != cq->entry_size)
		cq->cq.ops = &mrrc_cq_narrow_ops;
	else
		cq->cq.ops = &mrrc_cq_ops;
	mrrc_ref_get(&domain->ref);
	if (cq->wait_set)
		mrrc_ref_get(&cq->wait_set->ref);
	mrrc_mutex_lock(&domain->cq_lock);
	LIST_INSERT_HEAD(&domain->cqs, cq, link);
	mrrc_mutex_unlock(&domain->cq_lock);
	if (internal)
		atomic_fetch_add(&domain->internal_cqs, 1);
	*cq_out = cq;
	return 0;
}

int mrrc_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		 struct fid_cq **cq_fid, void *context)
{
	/* the defaults of sockets, the core that accepts attr NULL */
	struct mrrc_cq_attrs none = { {
		{ .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_FD },
	} };
	struct mrrc_cq *cq;
	int ret;

	ret = cq_init(mrrc_domain_of(domain), attr ? attr : none.attr, false,
		      context, &cq);
	if (!ret)
		*cq_fid = &cq->cq;
	return ret;
}

void mrrc_cq_set_buffered(struct mrrc_cq *cq)
{
	const struct mrrc_cq_over *over;

	/* entries without flags do not tell messages from buffers */
	if (cq->core_entry_size < sizeof(struct fi_cq_msg_entry))
		return;
	mrrc_mutex_lock(&cq->domain->cq_lock);
	mrrc_cq_lock(cq);
	cq->buffered = true;
	mrrc_cq_unlock(cq);
	/* use the table that examines every entry */
	over = atomic_load(&cq->over);
	if (over)
		over->set_below(cq, &mrrc_cq_narrow_ops);
	else
		__atomic_store_n(&cq->cq.ops, &mrrc_cq_narrow_ops,
				 __ATOMIC_RELEASE);
	mrrc_mutex_unlock(&cq->domain->cq_lock);
}

int mrrc_cq_open_internal(struct mrrc_domain *domain, struct mrrc_cq **cq)
{
	struct mrrc_cq_attrs own = { {
		{ .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE },
	} };

	return cq_init(domain, own.attr, true, NULL, cq);
}
