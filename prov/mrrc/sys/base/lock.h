/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Locks with ranks. A thread takes locks in rising rank only. With MRRC_DEBUG
 * every wrong order or owner fails an assertion; without MRRC_DEBUG the locks
 * are plain pthread mutexes.
 *
 * No struct mrrc_lock is held across a registration, malloc, free, mmap or
 * munmap: the monitor's handler needs MONITOR and CACHE to let an unmapping
 * thread go on. A pool, which no monitor watches, maps its own addresses under
 * its leaf lock. struct mrrc_mutex is for the layer above sys: a mutex may be
 * held across all these calls, and across calls of a core provider.
 */
#ifndef MRRC_LOCK_H
#define MRRC_LOCK_H

#ifndef PACKAGE_NAME
#error "config.h comes first: MRRC_DEBUG changes struct mrrc_lock"
#endif

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Ranks, in the order in which locks are taken. */
enum mrrc_rank {
	/* struct mrrc_mutex */
	MRRC_RANK_PROCESS,   /* domains of which a process allocates memory */
	MRRC_RANK_FILES,     /* files of records and of statistics */
	MRRC_RANK_CW_ENABLE, /* an endpoint of a domain opts in */
	MRRC_RANK_CW_DOMAIN, /* groups, CQs and endpoints that opted in */
	MRRC_RANK_CW_AV,     /* names, links of endpoints */
	MRRC_RANK_CW_GROUP,  /* control endpoints */
	MRRC_RANK_CQS,	     /* a domain's list; then each CQ's spin lock */
	MRRC_RANK_POLL,	     /* CQs of a poll set */
	MRRC_RANK_TRACK,     /* a fabric's objects, by the core's objects */
	MRRC_RANK_FILE,	     /* an open file's lease */
	MRRC_RANK_KEEPERS,   /* allocators that share the budget of a node */
	/* struct mrrc_lock */
	MRRC_RANK_REGISTRY, /* monitor registry: open and close */
	MRRC_RANK_NOTIFIER, /* a notifier: one watch at a time */
	MRRC_RANK_HINTS,    /* tables of threads */
	MRRC_RANK_MONITOR,  /* subscribers, events, watched ranges */
	MRRC_RANK_BUDGET,   /* caches that share the budget of a node */
	MRRC_RANK_CACHE,
	MRRC_RANK_LEAF, /* no other lock is taken under it */
	MRRC_RANK_CNT
};

struct mrrc_lock {
	pthread_mutex_t mutex;
#ifdef MRRC_DEBUG
	enum mrrc_rank rank;
	pthread_t owner; /* written by the owner only */
	int owned;	 /* atomic */
#endif
};

struct mrrc_mutex {
	pthread_mutex_t mutex;
#ifdef MRRC_DEBUG
	enum mrrc_rank rank;
#endif
};

#ifdef MRRC_DEBUG
#define MRRC_MUTEX_INIT(rank)                   \
	{                                       \
		PTHREAD_MUTEX_INITIALIZER, rank \
	}
#else
#define MRRC_MUTEX_INIT(rank)             \
	{                                 \
		PTHREAD_MUTEX_INITIALIZER \
	}
#endif

void mrrc_mutex_init(struct mrrc_mutex *mutex, enum mrrc_rank rank);
void mrrc_mutex_fini(struct mrrc_mutex *mutex);

int mrrc_lock_init(struct mrrc_lock *lock, enum mrrc_rank rank);
void mrrc_lock_fini(struct mrrc_lock *lock);

/*
 * Is this thread inside a lock of ours, or about to take or release a lock? For
 * signal handlers, which must not wait for the thread that they interrupted.
 */
static inline bool mrrc_lock_inside(void);

/* Like pthread_cond_wait() with the lock held, but no cancellation point. */
void mrrc_lock_wait(struct mrrc_lock *lock, pthread_cond_t *cond);

/*
 * Like mrrc_lock_wait(), but at most until @ns of CLOCK_MONOTONIC, which is the
 * clock of @cond.
 */
void mrrc_lock_wait_until(struct mrrc_lock *lock, pthread_cond_t *cond,
			  uint64_t ns);

/* Initialises a condition for mrrc_lock_wait(). 0 or -E*. */
int mrrc_lock_cond_init(pthread_cond_t *cond);

/* Called only in a forked child: forgets an owner that does not exist there. */
void mrrc_lock_reset(struct mrrc_lock *lock, enum mrrc_rank rank);

/*
 * Number of locks that this thread is inside. In static TLS: a thread's first
 * access to dynamic TLS allocates memory, and a thread that reads events must
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
/*
 * Does not wait for the lock, so locks may be tried in any order of ranks. This
 * thread must not hold the lock already.
 */
bool mrrc_lock_try(struct mrrc_lock *lock);
void mrrc_lock_release(struct mrrc_lock *lock);
void mrrc_lock_assert_held(const struct mrrc_lock *lock);
/*
 * Asserts that this thread holds no mrrc_lock. Called by code that may block or
 * calls the core provider.
 */
void mrrc_lock_assert_none(void);

void mrrc_mutex_lock(struct mrrc_mutex *mutex);
/* Does not wait, so it may be called in any order of ranks. */
bool mrrc_mutex_try(struct mrrc_mutex *mutex);
void mrrc_mutex_unlock(struct mrrc_mutex *mutex);

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
}

static inline void mrrc_lock_assert_none(void)
{
}

static inline void mrrc_mutex_lock(struct mrrc_mutex *mutex)
{
	pthread_mutex_lock(&mutex->mutex);
}

static inline bool mrrc_mutex_try(struct mrrc_mutex *mutex)
{
	return !pthread_mutex_trylock(&mutex->mutex);
}

static inline void mrrc_mutex_unlock(struct mrrc_mutex *mutex)
{
	pthread_mutex_unlock(&mutex->mutex);
}

#endif /* MRRC_DEBUG */

#endif /* MRRC_LOCK_H */
