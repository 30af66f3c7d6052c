/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keeps the list of all threads that allocate, from their first allocation to
 * their end, also across forks; gives heaps their slots in the threads' tables;
 * trims, counts exactly and closes.
 *
 * A thread's biased lock (biased_lock.h), which the thread enters with plain
 * stores, guards its magazines. Trimming, exact counting and closing shut the
 * biased lock. The list of threads has its own lock, without a rank, as fork
 * handlers run in an order that the provider does not choose. Under the list's
 * lock biased locks are shut and heaps' locks taken; no thread takes the list's
 * lock inside a biased lock or under another lock.
 */
#include "config.h"
#include "sys/heap/heap_thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sys/heap/heap_map.h"
#include "sys/heap/heap_watch.h"
#include "sys/heap/heap_mag.h"
#include "sys/heap/heap_depot.h"
#include "sys/heap/heap_shard.h"

static struct {
	pthread_once_t once;
	int ready;
	pthread_key_t key;    /* tells a thread's end */
	pthread_mutex_t lock; /* guards the rest */
	TAILQ_HEAD(, mrrc_tcache) threads;
	TAILQ_HEAD(, mrrc_heaps) domains;
	struct mrrc_heap *slot[MRRC_SLOTS]; /* entry 0: no heap */
	bool taken[MRRC_SLOTS];
	unsigned served[MRRC_SHARDS_MAX]; /* threads, by mrrc_tcache.shard */
} mags = {
	.once = PTHREAD_ONCE_INIT,
	.ready = -EBUSY,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.threads = TAILQ_HEAD_INITIALIZER(mags.threads),
	.domains = TAILQ_HEAD_INITIALIZER(mags.domains),
};

static char no_domain; /* an address that no domain has, and that is not NULL */

struct mrrc_tcache mrrc_tcache_none = { .biased = MRRC_BIASED_SHUT };
_Thread_local struct mrrc_tcache *mrrc_tcache_self = &mrrc_tcache_none;

/* Sets the slot for all threads that the heap or shard serves. */
static void serves_set(struct mrrc_heap *heap, unsigned slot)
{
	unsigned i;

	for (i = 0; i < MRRC_SHARDS_MAX; i++) {
		if (heap->main == heap || mrrc_heap_serves(heap, i))
			atomic_store(&heap->main->serves[i], slot);
	}
}

/* ---- threads ------------------------------------------------------------- */

static struct mrrc_tcache *tcache_map(void)
{
	char *at = mrrc_mags_map(MRRC_TCACHE_PAD + sizeof(struct mrrc_tcache));

	return at ? (void *) (at + MRRC_TCACHE_PAD) : NULL;
}

static void tcache_unmap(struct mrrc_tcache *tcache)
{
	munmap((char *) tcache - MRRC_TCACHE_PAD,
	       MRRC_TCACHE_PAD + sizeof(*tcache));
}

static void tcache_end(void *arg)
{
	struct mrrc_tcache *tcache = arg;
	unsigned i;

	mrrc_tcache_self = &mrrc_tcache_none;
	pthread_mutex_lock(&mags.lock);
	TAILQ_REMOVE(&mags.threads, tcache, link);
	mags.served[tcache->shard]--;
	for (i = 1; i < MRRC_SLOTS; i++) {
		if (tcache->mags[i])
			mrrc_mags_retire(mags.slot[i], tcache);
	}
	pthread_mutex_unlock(&mags.lock);
	for (i = 1; i < MRRC_SLOTS; i++) {
		if (tcache->mags[i])
			munmap(tcache->mags[i], sizeof(*tcache->mags[i]));
	}
	tcache_unmap(tcache);
}

static void mags_fork_prepare(void)
{
	pthread_mutex_lock(&mags.lock);
}

static void mags_fork_parent(void)
{
	pthread_mutex_unlock(&mags.lock);
}

/*
 * The only thread of a child has no magazines at first, so that its calls take
 * the slow path, which refuses the parent's domains. Other threads' magazines
 * stay. The slots of the parent's heaps become free for the child's heaps.
 */
static void mags_fork_child(void)
{
	struct mrrc_heaps *domain;
	unsigned i;

	for (i = 1; i < MRRC_SLOTS; i++) {
		if (mags.slot[i])
			serves_set(mags.slot[i], 0);
		mags.slot[i] = NULL;
		mags.taken[i] = false;
	}
	TAILQ_FOREACH(domain, &mags.domains, link) {
		atomic_store(&domain->forked, true);
		atomic_store(&domain->own, &no_domain);
	}
	TAILQ_INIT(&mags.domains);
	TAILQ_INIT(&mags.threads);
	memset(mags.served, 0, sizeof(mags.served));
	mrrc_tcache_self = &mrrc_tcache_none;
	pthread_setspecific(mags.key, NULL);
	mrrc_biased_renew();
	pthread_mutex_unlock(&mags.lock);
}

static void mags_init(void)
{
	mrrc_class_table_init();
	mags.ready = -pthread_key_create(&mags.key, tcache_end);
	if (mags.ready)
		return;
	mrrc_biased_setup();
	mags.ready = -pthread_atfork(mags_fork_prepare, mags_fork_parent,
				     mags_fork_child);
}

/*
 * The shard number that the fewest threads have. Threads that run one after
 * another get the same shard, so that no more shards have blocks than threads
 * run at once.
 */
static unsigned mags_shard(void)
{
	unsigned i, least = 0;

	for (i = 1; i < MRRC_SHARDS_MAX; i++) {
		if (mags.served[i] < mags.served[least])
			least = i;
	}
	mags.served[least]++;
	return least;
}

struct mrrc_tcache *mrrc_tcache_get(void)
{
	struct mrrc_tcache *tcache = mrrc_tcache_self;

	if (tcache != &mrrc_tcache_none)
		return tcache;
	tcache = tcache_map();
	if (!tcache)
		return NULL;
	mrrc_biased_init(&tcache->biased, !mrrc_heap_watched);
	atomic_init(&tcache->hot.domain, &no_domain);
	if (pthread_setspecific(mags.key, tcache)) {
		tcache_unmap(tcache);
		return NULL;
	}
	pthread_mutex_lock(&mags.lock);
	tcache->shard = mags_shard();
	TAILQ_INSERT_TAIL(&mags.threads, tcache, link);
	pthread_mutex_unlock(&mags.lock);
	mrrc_tcache_self = tcache;
	return tcache;
}

/* ---- magazines of all threads -------------------------------------------- */

#define MAGS_FOREACH(tcache) TAILQ_FOREACH(tcache, &mags.threads, link)

/* Shuts all biased locks, until mags_open(). The list's lock held in both. */
static void mags_shut(void)
{
	struct mrrc_tcache *tcache;

	MAGS_FOREACH(tcache)
	mrrc_biased_begin(&tcache->biased);
	mrrc_biased_barrier();
	MAGS_FOREACH(tcache)
	mrrc_biased_end(&tcache->biased);
}

static void mags_open(void)
{
	struct mrrc_tcache *tcache;

	MAGS_FOREACH(tcache)
	mrrc_biased_open(&tcache->biased);
}

void mrrc_mags_drain(struct mrrc_heap *heap, bool idle_only)
{
	struct mrrc_mag_count *count;
	struct mrrc_tcache *tcache;
	uint64_t allocs, frees;
	size_t bytes;

	if (!heap->slot)
		return;
	pthread_mutex_lock(&mags.lock);
	mags_shut();
	mrrc_lock_acquire(&heap->lock);
	MAGS_FOREACH(tcache)
	{
		count = &tcache->count[heap->slot];
		mrrc_mags_count(tcache, heap->slot, &allocs, &frees, &bytes);
		if (!idle_only || allocs + frees == count->seen)
			mrrc_mags_empty(heap, tcache);
		count->seen = allocs + frees;
	}
	mrrc_lock_release(&heap->lock);
	mags_open();
	pthread_mutex_unlock(&mags.lock);
}

bool mrrc_mags_reclaim(struct mrrc_heap *heap, size_t least)
{
	struct mrrc_tcache *tcache;
	size_t kept;

	/* a heap without magazines has only the depot */
	if (!heap->slot)
		return mrrc_depot_reclaim(heap, least);
	pthread_mutex_lock(&mags.lock);
	mags_shut();
	mrrc_lock_acquire(&heap->lock);
	kept = mrrc_depot_kept(heap);
	MAGS_FOREACH(tcache)
	kept += mrrc_mags_bytes(tcache, heap->slot);
	if (kept >= least) {
		MAGS_FOREACH(tcache)
		mrrc_mags_empty(heap, tcache);
		mrrc_depot_drain(heap);
	}
	mrrc_lock_release(&heap->lock);
	mags_open();
	pthread_mutex_unlock(&mags.lock);
	return kept >= least;
}

size_t mrrc_mags_kept(struct mrrc_heap *heap, uint64_t *allocs, uint64_t *frees)
{
	struct mrrc_tcache *tcache;
	uint64_t a, f;
	size_t all = 0, bytes;

	pthread_mutex_lock(&mags.lock);
	/*
	 * under the list's lock no thread ends, which would add the thread's
	 * counts to the heap's
	 */
	mrrc_lock_acquire(&heap->lock);
	*allocs = heap->allocs;
	*frees = heap->frees;
	mrrc_lock_release(&heap->lock);
	if (heap->slot) {
		mags_shut();
		MAGS_FOREACH(tcache)
		{
			mrrc_mags_count(tcache, heap->slot, &a, &f, &bytes);
			*allocs += a;
			*frees += f;
			all += bytes;
		}
		mags_open();
	}
	pthread_mutex_unlock(&mags.lock);
	return all;
}

/*
 * ---- objects that other threads may free ----------------------------------
 */

struct mrrc_tcache *mrrc_heap_look(void)
{
	struct mrrc_tcache *tcache = mrrc_tcache_self;

	if (tcache && mrrc_biased_enter(&tcache->biased))
		return tcache;
	pthread_mutex_lock(&mags.lock);
	return NULL;
}

void mrrc_heap_looked(struct mrrc_tcache *look)
{
	if (look)
		mrrc_biased_leave(&look->biased);
	else
		pthread_mutex_unlock(&mags.lock);
}

/*
 * The owner may store another object in the slot at the same time. If that
 * object's domain is lost, its free finds the object by the map. The other
 * object cannot be of this block, which has no object that is allocated or can
 * be allocated.
 */
static void hot_forget(struct mrrc_hot *hot, uintptr_t base, size_t len)
{
	if (__atomic_load_n(&hot->object, __ATOMIC_RELAXED) - base < len)
		atomic_store_explicit(&hot->domain, &no_domain,
				      memory_order_relaxed);
}

void mrrc_mags_settle(uintptr_t base, size_t len)
{
	struct mrrc_tcache *tcache;

	pthread_mutex_lock(&mags.lock);
	TAILQ_FOREACH(tcache, &mags.threads, link)
		hot_forget(&tcache->hot, base, len);
	/*
	 * a thread that enters its biased lock after the barrier finds the
	 * block neither in a slot nor in the map
	 */
	mrrc_biased_barrier();
	TAILQ_FOREACH(tcache, &mags.threads, link)
		mrrc_biased_wait(&tcache->biased);
	pthread_mutex_unlock(&mags.lock);
}

/* ---- heaps and domains --------------------------------------------------- */

void mrrc_mags_attach(struct mrrc_heap *heap)
{
	/*
	 * leaves half of the slots to heaps: a heap without a slot has no
	 * magazines, but a shard without a slot is not made
	 */
	const unsigned end = heap->main == heap ? MRRC_SLOTS : MRRC_SLOTS / 2;
	unsigned i;

	pthread_mutex_lock(&mags.lock);
	for (i = 1; i < end && mags.taken[i]; i++)
		;
	if (i < end) {
		mags.taken[i] = true;
		mags.slot[i] = heap;
		heap->slot = i;
		serves_set(heap, i);
	}
	pthread_mutex_unlock(&mags.lock);
}

/*
 * Detaches the magazines of one thread at a time, as threads may end meanwhile:
 * detached magazines belong to the caller alone.
 */
void mrrc_mags_detach(struct mrrc_heap *heap)
{
	struct mrrc_tcache *tcache;
	struct mrrc_mags *mag;

	if (!heap->slot)
		return;
	do {
		mag = NULL;
		pthread_mutex_lock(&mags.lock);
		TAILQ_FOREACH(tcache, &mags.threads, link) {
			mrrc_biased_shut(&tcache->biased);
			mag = tcache->mags[heap->slot];
			if (mag)
				mrrc_mags_retire(heap, tcache);
			if (tcache->usual.small == mag ||
			    tcache->usual.large == mag)
				tcache->usual.key = 0;
			tcache->mags[heap->slot] = NULL;
			tcache->count[heap->slot] =
				(struct mrrc_mag_count){ 0 };
			mrrc_biased_open(&tcache->biased);
			if (mag)
				break;
		}
		if (!mag) {
			mags.taken[heap->slot] = false;
			mags.slot[heap->slot] = NULL;
		}
		pthread_mutex_unlock(&mags.lock);
		if (mag)
			munmap(mag, sizeof(*mag));
	} while (mag);
	/* the slot may be another heap's by now */
	heap->slot = 0;
}

int mrrc_mags_domain_add(struct mrrc_heaps *heaps)
{
	pthread_once(&mags.once, mags_init);
	if (mags.ready)
		return mags.ready;
	pthread_mutex_lock(&mags.lock);
	TAILQ_INSERT_TAIL(&mags.domains, heaps, link);
	pthread_mutex_unlock(&mags.lock);
	return 0;
}

void mrrc_mags_domain_remove(struct mrrc_heaps *heaps)
{
	pthread_mutex_lock(&mags.lock);
	TAILQ_REMOVE(&mags.domains, heaps, link);
	pthread_mutex_unlock(&mags.lock);
}
