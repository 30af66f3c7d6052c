/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Magazines: what each thread keeps of each heap's freed objects, and the
 * heap's own store behind them, the depot (heap_priv.h).
 *
 * A thread's are behind its gate (gate.h), which it passes with plain stores.
 * Whoever trims, counts strictly or closes shuts it. The list of threads has a
 * lock of its own, without a rank because fork takes it in an order of
 * nobody's choice: under it gates are shut and heaps' locks taken, and no
 * thread takes it inside a gate or under another lock.
 */
#include "config.h"
#include "sys/heap_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sys/heap_fast.h"
#include "sys/heap_map.h"
#include "sys/heap_watch.h"

static struct {
	pthread_once_t once;
	int ready;
	pthread_key_t key;	/* a thread's end */
	pthread_mutex_t lock;	/* guards the rest */
	TAILQ_HEAD(, mrrc_tcache) threads;
	TAILQ_HEAD(, mrrc_heaps) domains;
	struct mrrc_heap *slot[MRRC_SLOTS];	/* 0: none's */
	bool taken[MRRC_SLOTS];
} mags = {
	.once = PTHREAD_ONCE_INIT,
	.ready = -EBUSY,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.threads = TAILQ_HEAD_INITIALIZER(mags.threads),
	.domains = TAILQ_HEAD_INITIALIZER(mags.domains),
};

_Thread_local struct mrrc_tcache *mrrc_tcache_self;

/* Of small sizes many, and of the largest what 16 in flight need. */
const uint8_t mrrc_mag_cap[MRRC_CLASSES] = {
	[0 ... 31] = MRRC_MAG,			/* to 1 KiB */
	[32 ... 63] = 48,			/* to 16 KiB */
	[64 ... 87] = 32,			/* to 128 KiB */
	[88 ... MRRC_CLASSES - 1] = 20,
};

/* What the depot holds beside: less of what is large. */
static unsigned depot_cap(unsigned class)
{
	return class < 64 ? MRRC_DEPOT : class < 88 ? 32 : 16;
}

/* ---- memory for bookkeeping ---------------------------------------------- */

static void *mags_map(size_t len)
{
	void *addr = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return addr == MAP_FAILED ? NULL : addr;
}

/* ---- depot: the heap's lock held ----------------------------------------- */

static void arena_give(struct mrrc_heap *heap, unsigned class,
		       const uintptr_t *object, unsigned count)
{
	struct mrrc_heap_block *block;
	unsigned i;

	if (count)
		heap->arena.now = mrrc_heap_now();
	for (i = 0; i < count; i++) {
		block = mrrc_heap_map_find(object[i]);
		mrrc_heap_debug_given(block, object[i]);
		mrrc_arena_give(&heap->arena, block, object[i], class);
	}
}

void mrrc_depot_give(struct mrrc_heap *heap, unsigned class,
		     const uintptr_t *object, unsigned count)
{
	struct mrrc_depot *depot = heap->depot;
	unsigned n = depot->n[class], room = depot_cap(class) - n;

	if (room > count)
		room = count;
	memcpy(&depot->object[class][n], object, room * sizeof(*object));
	depot->n[class] = n + room;
	arena_give(heap, class, object + room, count - room);
}

void mrrc_depot_drain(struct mrrc_heap *heap)
{
	struct mrrc_depot *depot = heap->depot;
	unsigned class;

	for (class = 0; class < MRRC_CLASSES; class++) {
		arena_give(heap, class, depot->object[class],
			   depot->n[class]);
		depot->n[class] = 0;
	}
}

static unsigned depot_take(struct mrrc_heap *heap, unsigned class,
			   unsigned count, uintptr_t *object)
{
	struct mrrc_depot *depot = heap->depot;
	const unsigned n = depot->n[class];

	if (!n)
		return mrrc_arena_take(&heap->arena, class, count, object);
	if (count > n)
		count = n;
	depot->n[class] = n - count;
	memcpy(object, &depot->object[class][n - count],
	       count * sizeof(*object));
	return count;
}

uintptr_t mrrc_depot_take(struct mrrc_heap *heap, unsigned class)
{
	uintptr_t object;

	return depot_take(heap, class, 1, &object) ? object : 0;
}

size_t mrrc_depot_kept(const struct mrrc_heap *heap)
{
	size_t bytes = 0;
	unsigned class;

	for (class = 0; class < MRRC_CLASSES; class++)
		bytes += heap->depot->n[class] * mrrc_class_size(class);
	return bytes;
}

/* ---- a thread's own: inside its gate ------------------------------------- */

static void mags_objects(const struct mrrc_mag_entry *entry, unsigned n,
			 uintptr_t *object)
{
	unsigned i;

	for (i = 0; i < n; i++)
		object[i] = entry[i].object;
}

static void mags_change(struct mrrc_mags *mag, unsigned class, int n,
			_Atomic uint64_t *counter)
{
	mrrc_mag_write(&mag->n[class], mrrc_mag_read(&mag->n[class]) + n);
	mrrc_mag_write(counter, mrrc_mag_read(counter) + abs(n));
}

unsigned mrrc_mags_refill(struct mrrc_heap *heap, struct mrrc_mags *mag,
			  unsigned class)
{
	unsigned want = mrrc_mag_cap[class] / 2, got, i;
	uintptr_t object[MRRC_MAG];
	size_t size = mrrc_class_size(class);

	/* not a whole block's worth at once, which others may need */
	while (want > 1 && want * size > MRRC_HEAP_BLOCK_MIN / 4)
		want /= 2;
	mrrc_lock_acquire(&heap->lock);
	got = depot_take(heap, class, want, object);
	mrrc_lock_release(&heap->lock);
	for (i = 0; i < got; i++)
		mag->entry[class][i] = (struct mrrc_mag_entry) {
			object[i], mrrc_heap_map_rec(object[i])
		};
	mags_change(mag, class, got, &mag->in);
	return got;
}

/* The half that has been there longest. */
void mrrc_mags_flush(struct mrrc_heap *heap, struct mrrc_mags *mag,
		     unsigned class)
{
	const unsigned n = mrrc_mag_n(mag, class), half = (n + 1) / 2;
	struct mrrc_mag_entry *entry = mag->entry[class];
	uintptr_t object[MRRC_MAG];

	mags_objects(entry, half, object);
	mrrc_lock_acquire(&heap->lock);
	mrrc_depot_give(heap, class, object, half);
	mrrc_lock_release(&heap->lock);
	memmove(entry, entry + half, (n - half) * sizeof(*entry));
	mags_change(mag, class, -(int) half, &mag->out);
}

/* All of it, past the depot. The heap's lock held, the gate shut. */
static void mags_empty(struct mrrc_heap *heap, struct mrrc_mags *mag)
{
	uintptr_t object[MRRC_MAG];
	unsigned class, n;

	for (class = 0; class < MRRC_CLASSES; class++) {
		n = mrrc_mag_n(mag, class);
		mags_objects(mag->entry[class], n, object);
		arena_give(heap, class, object, n);
		mags_change(mag, class, -(int) n, &mag->out);
	}
}

/* What came in by the heap or by a free, and did not go out, is there. */
static void mags_count(const struct mrrc_mags *mag, uint64_t *allocs,
		       uint64_t *frees, size_t *bytes)
{
	uint64_t word, here = 0, sum = 0;
	unsigned class;

	*bytes = 0;
	for (class = 0; class < MRRC_CLASSES; class++) {
		word = mrrc_mag_read(&mag->n[class]);
		sum += word >> MRRC_MAG_BITS;
		here += word & MRRC_MAG_MASK;
		*bytes += (word & MRRC_MAG_MASK) * mrrc_class_size(class);
	}
	*allocs = sum;
	*frees = here + sum + mrrc_mag_read(&mag->out) -
		 mrrc_mag_read(&mag->in);
}

/* Empty, and counted; the caller unmaps it. The list's lock held. */
static void mags_retire(struct mrrc_heap *heap, struct mrrc_mags *mag)
{
	uint64_t allocs, frees;
	size_t bytes;

	mags_count(mag, &allocs, &frees, &bytes);
	mrrc_lock_acquire(&heap->lock);
	mags_empty(heap, mag);
	heap->allocs += allocs;
	heap->frees += frees;
	mrrc_lock_release(&heap->lock);
}

/* ---- threads ------------------------------------------------------------- */

static void tcache_end(void *arg)
{
	struct mrrc_tcache *tcache = arg;
	unsigned i;

	mrrc_tcache_self = NULL;
	pthread_mutex_lock(&mags.lock);
	TAILQ_REMOVE(&mags.threads, tcache, link);
	for (i = 1; i < MRRC_SLOTS; i++) {
		if (tcache->mags[i])
			mags_retire(mags.slot[i], tcache->mags[i]);
	}
	pthread_mutex_unlock(&mags.lock);
	for (i = 1; i < MRRC_SLOTS; i++) {
		if (tcache->mags[i])
			munmap(tcache->mags[i], sizeof(*tcache->mags[i]));
	}
	munmap(tcache, sizeof(*tcache));
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
 * The only thread of the child: it has no magazines, so that its calls come
 * by where domains of the parent's are refused. What threads kept stays.
 */
static void mags_fork_child(void)
{
	struct mrrc_heaps *domain;

	TAILQ_FOREACH(domain, &mags.domains, link)
		atomic_store(&domain->forked, true);
	TAILQ_INIT(&mags.domains);
	TAILQ_INIT(&mags.threads);
	mrrc_tcache_self = NULL;
	pthread_setspecific(mags.key, NULL);
	mrrc_gate_setup();
	pthread_mutex_unlock(&mags.lock);
}

struct mrrc_class_table mrrc_class_table;

static void class_table_init(struct mrrc_class_table *table)
{
	size_t i;

	for (i = 0; i < sizeof(table->by_16); i++)
		table->by_16[i] = mrrc_class_of((i + 1) * 16);
	for (i = 0; i < sizeof(table->by_128); i++)
		table->by_128[i] = mrrc_class_of((i + 1) * 128);
	for (i = 0; i < sizeof(table->by_4096); i++)
		table->by_4096[i] = mrrc_class_of((i + 1) * 4096);
}

static void mags_init(void)
{
	class_table_init(&mrrc_class_table);
	mags.ready = -pthread_key_create(&mags.key, tcache_end);
	if (mags.ready)
		return;
	mrrc_gate_setup();
	mags.ready = -pthread_atfork(mags_fork_prepare, mags_fork_parent,
				     mags_fork_child);
}

struct mrrc_tcache *mrrc_tcache_get(void)
{
	struct mrrc_tcache *tcache = mrrc_tcache_self;

	if (tcache)
		return tcache;
	tcache = mags_map(sizeof(*tcache));
	if (!tcache)
		return NULL;
	mrrc_gate_init(&tcache->gate, !mrrc_heap_watched);
	if (pthread_setspecific(mags.key, tcache)) {
		munmap(tcache, sizeof(*tcache));
		return NULL;
	}
	pthread_mutex_lock(&mags.lock);
	TAILQ_INSERT_TAIL(&mags.threads, tcache, link);
	pthread_mutex_unlock(&mags.lock);
	mrrc_tcache_self = tcache;
	return tcache;
}

struct mrrc_mags *mrrc_mags_get(struct mrrc_tcache *tcache,
				struct mrrc_heap *heap)
{
	struct mrrc_mags *mag = tcache->mags[heap->slot];

	if (mag || !heap->slot)
		return mag;
	mag = mags_map(sizeof(*mag));
	/* others read it under the list's lock, with this gate shut */
	tcache->mags[heap->slot] = mag;
	return mag;
}

void mrrc_mags_drain(struct mrrc_heap *heap, bool idle_only)
{
	struct mrrc_tcache *tcache;
	uint64_t allocs, frees;
	struct mrrc_mags *mag;
	size_t bytes;

	if (!heap->slot)
		return;
	pthread_mutex_lock(&mags.lock);
	TAILQ_FOREACH(tcache, &mags.threads, link) {
		mrrc_gate_shut(&tcache->gate);
		mag = tcache->mags[heap->slot];
		if (mag)
			mags_count(mag, &allocs, &frees, &bytes);
		if (mag && (!idle_only || allocs + frees == mag->seen)) {
			mrrc_lock_acquire(&heap->lock);
			mags_empty(heap, mag);
			mrrc_lock_release(&heap->lock);
		}
		if (mag)
			mag->seen = allocs + frees;
		mrrc_gate_open(&tcache->gate);
	}
	pthread_mutex_unlock(&mags.lock);
}

size_t mrrc_mags_kept(struct mrrc_heap *heap, uint64_t *allocs,
		      uint64_t *frees)
{
	struct mrrc_tcache *tcache;
	uint64_t a, f;
	struct mrrc_mags *mag;
	size_t all = 0, bytes;

	*allocs = *frees = 0;
	if (!heap->slot)
		return 0;
	pthread_mutex_lock(&mags.lock);
	TAILQ_FOREACH(tcache, &mags.threads, link) {
		mrrc_gate_shut(&tcache->gate);
		mag = tcache->mags[heap->slot];
		if (mag)
			mags_count(mag, &a, &f, &bytes);
		mrrc_gate_open(&tcache->gate);
		if (!mag)
			continue;
		*allocs += a;
		*frees += f;
		all += bytes;
	}
	pthread_mutex_unlock(&mags.lock);
	return all;
}

/* ---- heaps and domains --------------------------------------------------- */

void mrrc_mags_attach(struct mrrc_heap *heap)
{
	unsigned i;

	pthread_mutex_lock(&mags.lock);
	for (i = 1; i < MRRC_SLOTS && mags.taken[i]; i++)
		;
	if (i < MRRC_SLOTS) {
		mags.taken[i] = true;
		mags.slot[i] = heap;
		heap->slot = i;
	}
	pthread_mutex_unlock(&mags.lock);
}

/* Threads may end meanwhile: one magazine at a time is nobody's but ours. */
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
			mrrc_gate_shut(&tcache->gate);
			mag = tcache->mags[heap->slot];
			tcache->mags[heap->slot] = NULL;
			mrrc_gate_open(&tcache->gate);
			if (!mag)
				continue;
			mags_retire(heap, mag);
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
