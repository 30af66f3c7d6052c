/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A biased lock, for data of one thread that other threads need now and then:
 * the owner enters with two plain stores; another thread shuts the lock, which
 * costs a system call.
 *
 * The owner stores that it is inside the lock, and then looks whether the lock
 * is shut. Another thread shuts the lock, makes every running thread pass a
 * barrier (membarrier(2)), and waits until the owner is outside. Without
 * membarrier(2) the lock never opens, and its owner takes the slow path.
 *
 * The callers serialise shutting. A thread that shuts a biased lock holds no
 * lock that the owner takes inside the biased lock.
 */
#ifndef MRRC_BIASED_LOCK_H
#define MRRC_BIASED_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>

struct mrrc_biased_lock {
	atomic_int inside;
	atomic_int shut;
	bool works;
};

/* Initially shut: the owner cannot enter. */
#define MRRC_BIASED_SHUT  \
	{                 \
		.shut = 1 \
	}

/*
 * Called before the first biased lock is made: checks once whether
 * membarrier(2) exists. A later call of membarrier(2) may still fail.
 */
void mrrc_biased_setup(void);

/*
 * Checks for membarrier(2) again. Called when no biased lock exists, as in a
 * forked child.
 */
void mrrc_biased_renew(void);

/* Did membarrier(2) exist at the last check? */
bool mrrc_biased_possible(void);

/* @works false: the owner never enters. */
void mrrc_biased_init(struct mrrc_biased_lock *biased, bool works);

/*
 * Called by the owner outside of the lock: enters the lock. false: the lock is
 * shut, and the owner has to take the slow path.
 */
static inline bool mrrc_biased_enter(struct mrrc_biased_lock *biased)
{
#ifdef __SANITIZE_THREAD__
	/* ThreadSanitizer does not know membarrier: use a lock instead */
	int out = 0;

	if (!biased->works)
		return false;
	return atomic_compare_exchange_strong(&biased->inside, &out, 1);
#else
	atomic_store_explicit(&biased->inside, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(!atomic_load_explicit(&biased->shut,
						   memory_order_acquire),
			     1))
		return true;
	atomic_store_explicit(&biased->inside, 0, memory_order_release);
	return false;
#endif
}

static inline void mrrc_biased_leave(struct mrrc_biased_lock *biased)
{
	atomic_store_explicit(&biased->inside, 0, memory_order_release);
}

/*
 * Shuts the lock. Until it is opened, the data behind it belong to the caller.
 */
void mrrc_biased_shut(struct mrrc_biased_lock *biased);
void mrrc_biased_open(struct mrrc_biased_lock *biased);

/*
 * Shut many locks with one barrier: mrrc_biased_begin() for each lock, then
 * mrrc_biased_barrier(), then mrrc_biased_end() for each lock.
 */
void mrrc_biased_begin(struct mrrc_biased_lock *biased);
void mrrc_biased_end(struct mrrc_biased_lock *biased);

/*
 * To wait until the owners that are inside have left, without shutting their
 * locks: call mrrc_biased_barrier() once, then mrrc_biased_wait() for each
 * lock. An owner that enters after the barrier sees all stores made before the
 * barrier.
 */
void mrrc_biased_barrier(void);
void mrrc_biased_wait(struct mrrc_biased_lock *biased);

#endif /* MRRC_BIASED_LOCK_H */
