/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lock ranks (lock.h): creation, and the checks of debug builds.
 */
#include "config.h"
#include "sys/base/lock.h"

_Thread_local unsigned mrrc_locks_inside
	__attribute__((tls_model("initial-exec")));

#ifdef MRRC_DEBUG

/* The number of locks of each rank that this thread holds. */
static _Thread_local unsigned lock_ranks[MRRC_RANK_CNT]
	__attribute__((tls_model("initial-exec")));

/* Does this thread hold a lock of this rank or above? */
static bool lock_above(enum mrrc_rank rank)
{
	while (rank < MRRC_RANK_CNT && !lock_ranks[rank])
		rank++;
	return rank < MRRC_RANK_CNT;
}

static void lock_own(struct mrrc_lock *lock)
{
	lock->owner = pthread_self();
	__atomic_store_n(&lock->owned, 1, __ATOMIC_RELEASE);
	lock_ranks[lock->rank]++;
}

void mrrc_lock_acquire(struct mrrc_lock *lock)
{
	assert(!lock_above(lock->rank));
	mrrc_locks_inside++;
	pthread_mutex_lock(&lock->mutex);
	lock_own(lock);
}

bool mrrc_lock_try(struct mrrc_lock *lock)
{
	mrrc_locks_inside++;
	if (!pthread_mutex_trylock(&lock->mutex)) {
		lock_own(lock);
		return true;
	}
	mrrc_locks_inside--;
	return false;
}

void mrrc_lock_release(struct mrrc_lock *lock)
{
	mrrc_lock_assert_held(lock);
	lock_ranks[lock->rank]--;
	__atomic_store_n(&lock->owned, 0, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock->mutex);
	mrrc_locks_inside--;
}

void mrrc_lock_assert_held(const struct mrrc_lock *lock)
{
	assert(lock_ranks[lock->rank]);
	assert(__atomic_load_n(&lock->owned, __ATOMIC_ACQUIRE) &&
	       pthread_equal(lock->owner, pthread_self()));
}

void mrrc_lock_assert_none(void)
{
	assert(!lock_above(MRRC_RANK_REGISTRY));
}

void mrrc_mutex_lock(struct mrrc_mutex *mutex)
{
	assert(!lock_above(mutex->rank));
	pthread_mutex_lock(&mutex->mutex);
	lock_ranks[mutex->rank]++;
}

bool mrrc_mutex_try(struct mrrc_mutex *mutex)
{
	if (pthread_mutex_trylock(&mutex->mutex))
		return false;
	lock_ranks[mutex->rank]++;
	return true;
}

void mrrc_mutex_unlock(struct mrrc_mutex *mutex)
{
	assert(lock_ranks[mutex->rank]);
	lock_ranks[mutex->rank]--;
	pthread_mutex_unlock(&mutex->mutex);
}

#endif /* MRRC_DEBUG */

int mrrc_lock_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;
	int ret;

	ret = -pthread_condattr_init(&attr);
	if (ret)
		return ret;
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	ret = -pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
	return ret;
}

/* Waits until @end, or without limit if @end is NULL. */
static void lock_wait(struct mrrc_lock *lock, pthread_cond_t *cond,
		      const struct timespec *end)
{
	int cancel;

	mrrc_lock_assert_held(lock);
#ifdef MRRC_DEBUG
	__atomic_store_n(&lock->owned, 0, __ATOMIC_RELEASE);
	lock_ranks[lock->rank]--;
#endif
	/* a cancelled thread would leave with the lock held */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (end)
		pthread_cond_timedwait(cond, &lock->mutex, end);
	else
		pthread_cond_wait(cond, &lock->mutex);
	pthread_setcancelstate(cancel, NULL);
#ifdef MRRC_DEBUG
	lock_own(lock);
#endif
}

void mrrc_lock_wait(struct mrrc_lock *lock, pthread_cond_t *cond)
{
	lock_wait(lock, cond, NULL);
}

void mrrc_lock_wait_until(struct mrrc_lock *lock, pthread_cond_t *cond,
			  uint64_t ns)
{
	const struct timespec end = {
		.tv_sec = (time_t) (ns / 1000000000),
		.tv_nsec = (long) (ns % 1000000000),
	};

	lock_wait(lock, cond, &end);
}

void mrrc_mutex_init(struct mrrc_mutex *mutex, enum mrrc_rank rank)
{
#ifdef MRRC_DEBUG
	mutex->rank = rank;
#endif
	pthread_mutex_init(&mutex->mutex, NULL);
}

void mrrc_mutex_fini(struct mrrc_mutex *mutex)
{
	pthread_mutex_destroy(&mutex->mutex);
}

int mrrc_lock_init(struct mrrc_lock *lock, enum mrrc_rank rank)
{
#ifdef MRRC_DEBUG
	lock->rank = rank;
	lock->owned = 0;
#endif
	pthread_mutexattr_t attr;
	int ret;

	/* leaf locks are held briefly, so spinning is worth it */
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, rank == MRRC_RANK_LEAF ?
						 PTHREAD_MUTEX_ADAPTIVE_NP :
						 PTHREAD_MUTEX_DEFAULT);
	ret = -pthread_mutex_init(&lock->mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	return ret;
}

void mrrc_lock_fini(struct mrrc_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
}

void mrrc_lock_reset(struct mrrc_lock *lock, enum mrrc_rank rank)
{
	mrrc_lock_init(lock, rank);
}
