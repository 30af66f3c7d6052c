/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Locks with ranks. A thread takes locks in rising rank only; with MRRC_DEBUG
 * every order and ownership fault asserts, else this is a pthread mutex.
 *
 * No lock is held across a registration, malloc, free, mmap or munmap: the
 * monitor's handler needs MONITOR and CACHE to let an unmapping thread go on.
 */
#ifndef MRRC_LOCK_H
#define MRRC_LOCK_H

#ifndef PACKAGE_NAME
#error "config.h comes first: MRRC_DEBUG changes struct mrrc_lock"
#endif

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

/* Taken in this order. */
enum mrrc_rank {
	MRRC_RANK_REGISTRY,	/* monitor registry: open and close */
	MRRC_RANK_FABRIC,
	MRRC_RANK_DOMAIN,
	MRRC_RANK_EP,
	MRRC_RANK_CQ,
	MRRC_RANK_TLB,		/* tables of threads */
	MRRC_RANK_MONITOR,	/* subscribers, events, watched ranges */
	MRRC_RANK_CACHE,
	MRRC_RANK_LEAF,		/* holds nothing else */
	MRRC_RANK_CNT
};

struct mrrc_lock {
	pthread_mutex_t mutex;
#ifdef MRRC_DEBUG
	enum mrrc_rank rank;
	pthread_t owner;	/* written by the owner only */
	int owned;		/* atomic */
#endif
};

int mrrc_lock_init(struct mrrc_lock *lock, enum mrrc_rank rank);
void mrrc_lock_fini(struct mrrc_lock *lock);

/*
 * Whether this thread is inside any lock of ours, or about to take one or to
 * leave it. Asked by what runs in signal handlers, which must not wait for
 * the thread that it interrupted.
 */
static inline bool mrrc_lock_inside(void);

/* pthread_cond_wait with the lock held, and no cancellation point. */
void mrrc_lock_wait(struct mrrc_lock *lock, pthread_cond_t *cond);

/* In a forked child only: forget an owner that does not exist there. */
void mrrc_lock_reset(struct mrrc_lock *lock, enum mrrc_rank rank);

/*
 * How many locks this thread is in. In static TLS: a module's other kind is
 * allocated at a thread's first access, and a thread that reads events must
 * not allocate.
 */
extern _Thread_local unsigned mrrc_locks_inside
	__attribute__((tls_model("initial-exec")));

static inline bool mrrc_lock_inside(void)
{
	return mrrc_locks_inside;
}

#ifdef MRRC_DEBUG

void mrrc_lock_acquire(struct mrrc_lock *lock);
/* Only where mrrc_lock_inside() is false. */
bool mrrc_lock_try(struct mrrc_lock *lock);
void mrrc_lock_release(struct mrrc_lock *lock);
void mrrc_lock_assert_held(const struct mrrc_lock *lock);
/* For code that may block or call out: this thread holds no lock. */
void mrrc_lock_assert_none(void);

#else

static inline void mrrc_lock_acquire(struct mrrc_lock *lock)
{
	mrrc_locks_inside++;
	pthread_mutex_lock(&lock->mutex);
}

static inline bool mrrc_lock_try(struct mrrc_lock *lock)
{
	mrrc_locks_inside++;
	if (!pthread_mutex_trylock(&lock->mutex))
		return true;
	mrrc_locks_inside--;
	return false;
}

static inline void mrrc_lock_release(struct mrrc_lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
	mrrc_locks_inside--;
}

static inline void mrrc_lock_assert_held(const struct mrrc_lock *lock)
{
	(void)lock;
}

static inline void mrrc_lock_assert_none(void)
{
}

#endif /* MRRC_DEBUG */

#endif /* MRRC_LOCK_H */
