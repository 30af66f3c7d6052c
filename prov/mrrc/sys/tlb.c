/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tables of what threads used before (tlb.h).
 *
 * Lock order: TLB (which tables a cache has, and that it exists) -> CACHE.
 * Memory is taken and given back under neither.
 */
#include "config.h"
#include "sys/lock.h"
#include "sys/tlb.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MRRC_TLB_MIN	6	/* log2 of the sets at first */
#define MRRC_TLB_MAX	18	/* and at most: 16 MiB, a million regions */

struct mrrc_tlb mrrc_tlb_none;
_Thread_local struct mrrc_tlb *mrrc_tlb_recent
	__attribute__((tls_model("initial-exec"))) = &mrrc_tlb_none;

static struct {
	pthread_once_t once;
	int ready;
	struct mrrc_lock lock;		/* TLB */
	pthread_key_t key;		/* ends a thread's tables */
	_Atomic uint64_t next_id;
} mrrc_tlb_all = { .once = PTHREAD_ONCE_INIT };

/* Empty; the former entries are the caller's. */
static bool mrrc_tlb_alloc(struct mrrc_tlb *tlb, unsigned bits)
{
	const size_t size = sizeof(*tlb->entry) * MRRC_TLB_WAYS << bits;
	struct mrrc_tlb_entry *entry;

	entry = aligned_alloc(64, size);
	if (!entry)
		return false;
	memset(entry, 0, size);
	tlb->entry = entry;
	tlb->bits = bits;
	tlb->mask = ((1u << bits) - 1) * sizeof(*entry) * MRRC_TLB_WAYS;
	tlb->displaced = 0;
	tlb->big = false;
	return true;
}

static unsigned mrrc_tlb_unit(uint64_t key)
{
	return key & MRRC_TLB_IS_BIG ? MRRC_TLB_BIG : 12;
}

/* The set that @key belongs to, and which entry of it has that, or is free. */
static int mrrc_tlb_way(const struct mrrc_tlb *tlb, uint64_t key,
			struct mrrc_tlb_entry **set)
{
	int i;

	*set = mrrc_tlb_set(tlb, key, mrrc_tlb_unit(key));
	for (i = 0; i < MRRC_TLB_WAYS; i++) {
		if (!(*set)[i].key || (*set)[i].key == key)
			break;
	}
	return i;
}

/* Four times as large; what is in it stays, but for sets that run over. */
static bool mrrc_tlb_grow(struct mrrc_tlb *tlb)
{
	const size_t count = (size_t)MRRC_TLB_WAYS << tlb->bits;
	struct mrrc_tlb_entry *const old = tlb->entry, *set;
	const bool big = tlb->big;
	size_t i;
	int way;

	if (tlb->bits == MRRC_TLB_MAX || !mrrc_tlb_alloc(tlb, tlb->bits + 2))
		return false;
	for (i = 0; i < count; i++) {
		if (!old[i].key)
			continue;
		way = mrrc_tlb_way(tlb, old[i].key, &set);
		if (way < MRRC_TLB_WAYS)
			set[way] = old[i];
	}
	tlb->big = big;
	free(old);
	return true;
}

static void mrrc_tlb_free(struct mrrc_tlb *tlb)
{
	free(tlb->entry);
	free(tlb);
}

/* ---- what the owner left for the cache ---- */

void mrrc_tlb_count(struct mrrc_tlb *tlb, struct mrrc_cache *core)
{
	const uint64_t hits = atomic_load_explicit(&tlb->hits,
						   memory_order_relaxed);
	const uint64_t probes = atomic_load_explicit(&tlb->probes,
						     memory_order_relaxed);

	core->stats->value[MRRC_STAT_LOOKUPS] += hits - tlb->counted;
	core->stats->value[MRRC_STAT_HITS] += hits - tlb->counted;
	core->stats->value[MRRC_STAT_PROBES] += probes - tlb->probes_counted;
	tlb->counted = hits;
	tlb->probes_counted = probes;
}

static void mrrc_tlb_collect_one(struct mrrc_tlb *tlb,
				 struct mrrc_cache *core)
{
	const uint64_t hits = atomic_load_explicit(&tlb->hits,
						   memory_order_acquire);
	struct mrrc_tlb_note *note;
	uintptr_t addr;
	uint64_t what;
	size_t len;

	mrrc_tlb_count(tlb, core);
	if (hits - tlb->told > MRRC_TLB_LOG)
		tlb->told = hits - MRRC_TLB_LOG;
	for (; tlb->told != hits; tlb->told++) {
		note = &tlb->note[tlb->told % MRRC_TLB_LOG];
		addr = atomic_load_explicit(&note->addr, memory_order_relaxed);
		what = atomic_load_explicit(&note->what, memory_order_relaxed);
		len = what >> 3;
		/* The owner may just be writing: any range will do. */
		if (len && len < UINTPTR_MAX - addr)
			mrrc_cache_served(core, addr, len, what & 7);
	}
}

void mrrc_tlb_collect(struct mrrc_tlb_list *list)
{
	struct mrrc_tlb *tlb;

	TAILQ_FOREACH(tlb, &list->head, link)
		mrrc_tlb_collect_one(tlb, list->core);
}

/* ---- threads ---- */

/* TLB lock held: the cache lives. */
static void mrrc_tlb_leave(struct mrrc_tlb *tlb)
{
	struct mrrc_tlb_list *list = tlb->list;

	if (!list)
		return;
	mrrc_lock_acquire(list->lock);
	mrrc_tlb_collect_one(tlb, list->core);
	TAILQ_REMOVE(&list->head, tlb, link);
	mrrc_lock_release(list->lock);
	while (tlb->spares)
		mrrc_pool_free(list->records, tlb->spare[--tlb->spares]);
	tlb->list = NULL;
}

static void mrrc_tlb_thread_ends(void *arg)
{
	struct mrrc_tlb *tables = arg;
	struct mrrc_tlb *tlb;

	/* Later destructors may look up; they begin anew. */
	mrrc_tlb_recent = &mrrc_tlb_none;
	mrrc_lock_acquire(&mrrc_tlb_all.lock);
	for (tlb = tables; tlb; tlb = tlb->next)
		mrrc_tlb_leave(tlb);
	mrrc_lock_release(&mrrc_tlb_all.lock);
	while ((tlb = tables)) {
		tables = tlb->next;
		mrrc_tlb_free(tlb);
	}
}

/*
 * The only thread of a child. Its parent's caches are not looked at again,
 * and their locks may be anybody's.
 */
static void mrrc_tlb_fork_child(void)
{
	struct mrrc_tlb *tlb;

	mrrc_lock_reset(&mrrc_tlb_all.lock, MRRC_RANK_TLB);
	for (tlb = pthread_getspecific(mrrc_tlb_all.key); tlb;
	     tlb = tlb->next) {
		tlb->list = NULL;
		tlb->spares = 0;
		atomic_store(&tlb->cache, 0);
		/* its hits so far were the parent's cache's */
		tlb->counted = tlb->told = atomic_load(&tlb->hits);
		tlb->probes_counted = atomic_load(&tlb->probes);
	}
}

static void mrrc_tlb_init(void)
{
	mrrc_tlb_all.ready = mrrc_lock_init(&mrrc_tlb_all.lock,
					    MRRC_RANK_TLB);
	if (!mrrc_tlb_all.ready)
		mrrc_tlb_all.ready = -pthread_key_create(
			&mrrc_tlb_all.key, mrrc_tlb_thread_ends);
	if (!mrrc_tlb_all.ready)
		mrrc_tlb_all.ready = -pthread_atfork(NULL, NULL,
						     mrrc_tlb_fork_child);
}

static bool mrrc_tlb_usable(void)
{
	pthread_once(&mrrc_tlb_all.once, mrrc_tlb_init);
	return !mrrc_tlb_all.ready;
}

static struct mrrc_tlb *mrrc_tlb_new(void)
{
	struct mrrc_tlb *tlb;

	tlb = aligned_alloc(64, (sizeof(*tlb) + 63) & ~(size_t)63);
	if (!tlb)
		return NULL;
	memset(tlb, 0, sizeof(*tlb));
	if (!mrrc_tlb_alloc(tlb, MRRC_TLB_MIN)) {
		free(tlb);
		return NULL;
	}
	return tlb;
}

/* A table of a cache that is gone, with nothing in it, or a new one. */
static struct mrrc_tlb *mrrc_tlb_take(struct mrrc_tlb *tables)
{
	struct mrrc_tlb_entry *old;
	struct mrrc_tlb *tlb;

	for (tlb = tables; tlb; tlb = tlb->next) {
		old = tlb->entry;
		if (!atomic_load_explicit(&tlb->cache, memory_order_acquire) &&
		    mrrc_tlb_alloc(tlb, MRRC_TLB_MIN)) {
			free(old);
			return tlb;
		}
	}
	tlb = mrrc_tlb_new();
	if (!tlb)
		return NULL;
	tlb->next = tables;
	if (pthread_setspecific(mrrc_tlb_all.key, tlb)) {
		mrrc_tlb_free(tlb);
		return NULL;
	}
	return tlb;
}

static struct mrrc_tlb *mrrc_tlb_attach(struct mrrc_tlb_list *list,
					struct mrrc_tlb *tables)
{
	struct mrrc_tlb *tlb;

	tlb = mrrc_tlb_take(tables);
	if (!tlb)
		return NULL;
	mrrc_lock_acquire(&mrrc_tlb_all.lock);
	mrrc_lock_acquire(list->lock);
	tlb->list = list;
	TAILQ_INSERT_TAIL(&list->head, tlb, link);
	atomic_store(&tlb->cache, list->id);
	mrrc_lock_release(list->lock);
	mrrc_lock_release(&mrrc_tlb_all.lock);
	return tlb;
}

struct mrrc_tlb *mrrc_tlb_of(const struct mrrc_tlb_list *list)
{
	struct mrrc_tlb *tlb;

	if (mrrc_tlb_recent == &mrrc_tlb_none)
		return NULL;
	for (tlb = pthread_getspecific(mrrc_tlb_all.key); tlb;
	     tlb = tlb->next) {
		if (atomic_load_explicit(&tlb->cache, memory_order_relaxed) ==
		    list->id) {
			mrrc_tlb_recent = tlb;
			break;
		}
	}
	return tlb;
}

struct mrrc_tlb *mrrc_tlb_get(struct mrrc_tlb_list *list)
{
	struct mrrc_tlb *tlb = mrrc_tlb_mine(list);

	if (tlb)
		return tlb;
	if (!mrrc_tlb_usable())
		return NULL;
	tlb = mrrc_tlb_attach(list, pthread_getspecific(mrrc_tlb_all.key));
	if (tlb)
		mrrc_tlb_recent = tlb;
	return tlb;
}

void mrrc_tlb_list_init(struct mrrc_tlb_list *list, struct mrrc_lock *lock,
			struct mrrc_cache *core, struct mrrc_pool *records)
{
	TAILQ_INIT(&list->head);
	list->records = records;
	list->lock = lock;
	list->core = core;
	list->id = atomic_fetch_add(&mrrc_tlb_all.next_id, 1) + 1;
}

void mrrc_tlb_detach(struct mrrc_tlb_list *list)
{
	struct mrrc_tlb *tlb;

	if (!mrrc_tlb_usable())
		return;
	/* Even without a table: a thread that ends may be just letting go. */
	mrrc_lock_acquire(&mrrc_tlb_all.lock);
	while ((tlb = TAILQ_FIRST(&list->head))) {
		mrrc_tlb_leave(tlb);
		atomic_store_explicit(&tlb->cache, 0, memory_order_release);
	}
	mrrc_lock_release(&mrrc_tlb_all.lock);
}

/* ---- filling ---- */

/* Which entry of a full set goes: one whose region has gone, if there is one. */
static int mrrc_tlb_victim(struct mrrc_tlb *tlb, const char *regions,
			   const struct mrrc_tlb_entry *set)
{
	int i;

	for (i = 0; i < MRRC_TLB_WAYS; i++) {
		if (mrrc_region_tag(mrrc_tlb_region(regions, set[i].ref)) !=
		    set[i].ref >> MRRC_REGION_HOLDS)
			return i;
	}
	return tlb->displaced++ % MRRC_TLB_WAYS;
}

void mrrc_tlb_fill(struct mrrc_tlb *tlb, const char *regions, uintptr_t addr,
		   enum mrrc_access access, uint64_t ref, bool big)
{
	const uint64_t key = big ? mrrc_tlb_big_key(addr, access) :
				   mrrc_tlb_key(addr, access);
	struct mrrc_tlb_entry *set;
	int way = mrrc_tlb_way(tlb, key, &set);

	if (way == MRRC_TLB_WAYS) {
		way = mrrc_tlb_victim(tlb, regions, set);
		/* a sixteenth of the sets ran over: too small */
		if (tlb->displaced >> (tlb->bits - 4) && mrrc_tlb_grow(tlb))
			way = mrrc_tlb_way(tlb, key, &set) % MRRC_TLB_WAYS;
	}
	tlb->big |= big;
	set[way] = (struct mrrc_tlb_entry) { key, ref };
}
