/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The part of a completion queue that its calls share: the lock under which it
 * is read, and pending completions, which were read on the application's
 * behalf.
 */
#ifndef MRRC_PENDING_H
#define MRRC_PENDING_H

#include <time.h>

#include "fi/mrrc_fi.h"

/* ms: waits this short do not check the CQ's operations again. */
#define MRRC_CQ_BRIEF 1

/* CLOCK_MONOTONIC: it is never set. */
static inline int64_t mrrc_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static inline struct mrrc_cq *mrrc_cq_of(struct fid_cq *cq)
{
	return container_of(cq, struct mrrc_cq, cq);
}

/*
 * Calls that replace a CQ's own, possibly while the CQ is in use. The CQ's own
 * calls, and calls on other objects, call the replacements.
 */
struct mrrc_cq_over {
	/* pending completions came: wake the sleeping threads */
	void (*wake)(struct mrrc_cq *cq);
	/* before fi_trywait(): 0 or -FI_EAGAIN */
	int (*trywait)(struct mrrc_cq *cq);
	/* FI_GETWAIT of FI_WAIT_FD */
	int (*getwait)(struct mrrc_cq *cq, int *fd);
	/*
	 * makes ops the queue's own calls from now on; the domain's cq_lock
	 * held
	 */
	void (*set_below)(struct mrrc_cq *cq, struct fi_ops_cq *ops);
	/* the core's CQ is closed */
	void (*close)(struct mrrc_cq *cq);
};

void mrrc_cq_lock_slow(struct mrrc_cq *cq);

/*
 * Spin lock. While it is held the core may be read, but nothing is deregistered
 */
static inline void mrrc_cq_lock(struct mrrc_cq *cq)
{
	if (mrrc_unlikely(atomic_exchange_explicit(&cq->lock, 1,
						   memory_order_acquire)))
		mrrc_cq_lock_slow(cq);
}

static inline void mrrc_cq_unlock(struct mrrc_cq *cq)
{
	atomic_store_explicit(&cq->lock, 0, memory_order_release);
}

/*
 * Allocates a completion of the provider, which becomes pending for the
 * application. The caller allocates when it posts the operation, so that the
 * operation's end needs no memory. The application reads entry, which is an
 * error if its err is set. No lock held. pool: a pool of struct mrrc_comp that
 * is open until the CQ is closed, or NULL; if the pool is empty, the completion
 * is from malloc.
 */
struct mrrc_comp *mrrc_comp_new(struct mrrc_pool *pool);
int mrrc_comp_pool_open(uint32_t capacity, struct mrrc_pool **pool);
void mrrc_comp_free(struct mrrc_comp *comp);
void mrrc_pending_write(struct mrrc_cq *cq, struct mrrc_comp *comp,
			const struct fi_cq_err_entry *entry);

/*
 * Makes pending a core's completion that became an error, and then the
 * completions behind this error, in their order. Completions for which there is
 * no memory are lost. Returns false if memory was short. Lock held.
 */
void mrrc_pending_error(struct mrrc_cq *cq,
			const struct fi_cq_err_entry *entry);
bool mrrc_pending_behind(struct mrrc_cq *cq, const void *entry, void *context,
			 fi_addr_t src);

/*
 * Serve the application from the pending completions; at least one is pending.
 * Lock held.
 */
ssize_t mrrc_pending_read(struct mrrc_cq *cq, void *buf, size_t count,
			  fi_addr_t *src);
ssize_t mrrc_pending_readerr(struct mrrc_cq *cq, struct fi_cq_err_entry *entry);

/*
 * Reads the core's completions; those for the application, at most max, become
 * pending. Lock held, no thread in the core's sread.
 */
void mrrc_cq_read_ahead(struct mrrc_cq *cq, size_t max, struct mrrc_op **done);

/*
 * To be called without the lock after completions became pending, unless the
 * caller serves all of them itself: polling the CQ's descriptor, and a thread in
 * the core's sread, see only the core's completions.
 */
static inline void mrrc_cq_wake(struct mrrc_cq *cq)
{
	const struct mrrc_cq_over *over;

	if (!cq->wait || !atomic_load(&cq->pending_cnt))
		return;
	over = atomic_load(&cq->over);
	if (over)
		over->wake(cq);
	else
		fi_cq_signal(cq->core);
}

/*
 * Called when the core reports a completion: does the CQ have a completion that
 * the application sees? No lock held.
 */
bool mrrc_cq_ready(struct mrrc_cq *cq);

/*
 * A completion without a record may offer a buffered message. false: the
 * application does not see the completion. Lock held.
 */
bool mrrc_cq_offered(struct mrrc_cq *cq, const struct fi_cq_msg_entry *entry);

static inline bool mrrc_cq_offer(struct mrrc_cq *cq, const void *entry)
{
	return mrrc_likely(!cq->buffered) || mrrc_cq_offered(cq, entry);
}

void mrrc_pending_clear(struct mrrc_cq *cq);

/* Takes, or releases, the lock of every CQ of a domain */
void mrrc_domain_lock_cqs(struct mrrc_domain *domain);
void mrrc_domain_unlock_cqs(struct mrrc_domain *domain);

/* Read completions on the application's behalf; any thread. */
void mrrc_cq_drain(struct mrrc_cq *cq);
void mrrc_domain_drain(struct mrrc_domain *domain);
/* Like mrrc_domain_drain(), for all CQs of the domain. */
void mrrc_domain_drain_all(struct mrrc_domain *domain);

#endif /* MRRC_PENDING_H */
