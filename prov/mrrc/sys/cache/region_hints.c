/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Region hints: tables of the regions that threads used before
 * (region_hints.h).
 *
 * Lock order: HINTS (the list of tables of a cache, and the cache's existence)
 * -> CACHE. No memory is allocated or freed under these locks.
 */
#include "config.h"
#include "sys/cache/region_hints.h"

#include "sys/base/apart.h"
#include "sys/base/biased_lock.h"
#include "sys/base/lock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/cache/plan.h"

#define MRRC_HINTS_MIN 6  /* log2 of the sets at first */
#define MRRC_HINTS_MAX 18 /* at most: 16 MiB, a million regions */

struct mrrc_hints mrrc_hints_none;
_Thread_local struct mrrc_hints *mrrc_hints_recent
	__attribute__((tls_model("initial-exec"))) = &mrrc_hints_none;

static struct {
	pthread_once_t once;
	int ready;
	struct mrrc_lock lock; /* HINTS */
	pthread_key_t key;     /* ends a thread's tables */
	_Atomic uint64_t next_id;
} mrrc_hints_all = { .once = PTHREAD_ONCE_INIT };

/* Empties a table; the caller frees the former entries. */
static bool hints_alloc(struct mrrc_hints *hints, unsigned bits)
{
	const size_t size = sizeof(*hints->entry) * MRRC_HINTS_WAYS << bits;
	struct mrrc_hint *entry;

	entry = aligned_alloc(64, size);
	if (!entry)
		return false;
	memset(entry, 0, size);
	hints->entry = entry;
	hints->bits = bits;
	hints->mask = ((1u << bits) - 1) * sizeof(*entry) * MRRC_HINTS_WAYS;
	hints->displaced = 0;
	hints->big = false;
	return true;
}

static unsigned hints_unit(uint64_t key)
{
	return key & MRRC_HINTS_IS_BIG ? MRRC_HINTS_BIG : 12;
}

/* The set of @key, and the entry of it that has the key or is free. */
static int hints_way(const struct mrrc_hints *hints, uint64_t key,
		     struct mrrc_hint **set)
{
	int i;

	*set = mrrc_hints_set(hints, key, hints_unit(key));
	for (i = 0; i < MRRC_HINTS_WAYS; i++) {
		if (!(*set)[i].key || (*set)[i].key == key)
			break;
	}
	return i;
}

/*
 * Makes the table four times as large; entries are kept unless a set overflows.
 */
static bool hints_grow(struct mrrc_hints *hints)
{
	const size_t count = (size_t) MRRC_HINTS_WAYS << hints->bits;
	struct mrrc_hint *const old = hints->entry, *set;
	const bool big = hints->big;
	size_t i;
	int way;

	if (hints->bits == MRRC_HINTS_MAX ||
	    !hints_alloc(hints, hints->bits + 2))
		return false;
	for (i = 0; i < count; i++) {
		if (!old[i].key)
			continue;
		way = hints_way(hints, old[i].key, &set);
		if (way < MRRC_HINTS_WAYS)
			set[way] = old[i];
	}
	hints->big = big;
	free(old);
	return true;
}

static void hints_free(struct mrrc_hints *hints)
{
	mrrc_apart_free(hints->lanes);
	free(hints->entry);
	free(hints);
}

/* ---- holds ---- */

static unsigned mrrc_hints_held(const struct mrrc_holders *holders,
				const struct mrrc_region *region)
{
	const struct mrrc_hints_list *list =
		(const void *) ((const char *) holders -
				offsetof(struct mrrc_hints_list, holders));
	const size_t offset = (const char *) region - list->regions->base;
	const struct mrrc_hints *hints;
	unsigned held = 0;

	TAILQ_FOREACH(hints, &list->head, link)
		held += atomic_load(mrrc_hints_lane(hints, offset));
	return held;
}

static void mrrc_hints_settle(const struct mrrc_holders *holders)
{
	mrrc_biased_barrier();
}

/*
 * Moves the table's counts of operations to the regions' own counters. Called
 * with the cache's lock held, or in a forked child.
 */
static void mrrc_hints_fold(struct mrrc_hints *hints)
{
	struct mrrc_pool *regions = hints->list->regions;
	const size_t used =
		(size_t) atomic_load(&regions->fresh) * regions->size;
	struct mrrc_region *region;
	_Atomic uint32_t *lane;
	size_t offset;

	for (offset = 0; offset < used; offset += regions->size) {
		lane = mrrc_hints_lane(hints, offset);
		if (!atomic_load_explicit(lane, memory_order_relaxed))
			continue;
		region = (struct mrrc_region *) (regions->base + offset);
		atomic_fetch_add(&region->held, atomic_load(lane));
		atomic_store(lane, 0);
	}
}

/* ---- what the owner left for the cache ---- */

void mrrc_hints_count(struct mrrc_hints *hints, struct mrrc_cache *core)
{
	const uint64_t hits =
		atomic_load_explicit(&hints->hits, memory_order_relaxed);
	const uint64_t probes =
		atomic_load_explicit(&hints->probes, memory_order_relaxed);

	core->stats->value[MRRC_STAT_LOOKUPS] += hits - hints->counted;
	core->stats->value[MRRC_STAT_HITS] += hits - hints->counted;
	core->stats->value[MRRC_STAT_PROBES] += probes - hints->probes_counted;
	hints->counted = hits;
	hints->probes_counted = probes;
}

static void hints_collect_one(struct mrrc_hints *hints, struct mrrc_cache *core)
{
	const uint64_t hits =
		atomic_load_explicit(&hints->hits, memory_order_acquire);
	struct mrrc_hints_note *note;
	uintptr_t addr;
	uint64_t what;
	size_t len;

	mrrc_hints_count(hints, core);
	if (hits - hints->told > MRRC_HINTS_LOG)
		hints->told = hits - MRRC_HINTS_LOG;
	for (; hints->told != hits; hints->told++) {
		note = &hints->note[hints->told % MRRC_HINTS_LOG];
		addr = atomic_load_explicit(&note->addr, memory_order_relaxed);
		what = atomic_load_explicit(&note->what, memory_order_relaxed);
		len = what >> 3;
		/*
		 * The owner may be writing the entry now: any valid range will
		 * do.
		 */
		if (len && len < UINTPTR_MAX - addr)
			mrrc_cache_served(core, addr, len, what & 7);
	}
}

void mrrc_hints_collect(struct mrrc_hints_list *list)
{
	struct mrrc_hints *hints;

	TAILQ_FOREACH(hints, &list->head, link)
		hints_collect_one(hints, list->core);
}

/* ---- threads ---- */

/* Takes a table from its cache. HINTS lock held: the cache exists. */
static void hints_leave(struct mrrc_hints *hints)
{
	struct mrrc_hints_list *list = hints->list;

	if (!list)
		return;
	mrrc_lock_acquire(list->lock);
	hints_collect_one(hints, list->core);
	mrrc_hints_fold(hints);
	TAILQ_REMOVE(&list->head, hints, link);
	if (hints->uses)
		hints->uses->ended = true;
	hints->uses = NULL;
	mrrc_lock_release(list->lock);
	while (hints->spares)
		mrrc_pool_free(list->records, hints->spare[hints->spares--]);
	hints->list = NULL;
}

static void hints_thread_ends(void *arg)
{
	struct mrrc_hints *tables = arg;
	struct mrrc_hints *hints;

	/* Later destructors may look up again, with a new table. */
	mrrc_hints_recent = &mrrc_hints_none;
	mrrc_lock_acquire(&mrrc_hints_all.lock);
	for (hints = tables; hints; hints = hints->next)
		hints_leave(hints);
	mrrc_lock_release(&mrrc_hints_all.lock);
	while ((hints = tables)) {
		tables = hints->next;
		hints_free(hints);
	}
}

/*
 * Runs in the only thread of a forked child, which does not use the parent's
 * caches again; these caches' locks may be held permanently.
 */
static void hints_fork_child(void)
{
	struct mrrc_hints *hints;

	mrrc_lock_reset(&mrrc_hints_all.lock, MRRC_RANK_HINTS);
	mrrc_biased_renew();
	for (hints = pthread_getspecific(mrrc_hints_all.key); hints;
	     hints = hints->next) {
		/* regions of the parent's cache are still mapped */
		if (hints->list)
			mrrc_hints_fold(hints);
		hints->list = NULL;
		hints->spares = 0;
		atomic_store(&hints->cache, 0);
		/* its hits so far belong to the parent's cache */
		hints->counted = hints->told = atomic_load(&hints->hits);
		hints->probes_counted = atomic_load(&hints->probes);
	}
}

static void hints_init(void)
{
	mrrc_biased_setup();
	mrrc_hints_all.ready =
		mrrc_lock_init(&mrrc_hints_all.lock, MRRC_RANK_HINTS);
	if (!mrrc_hints_all.ready)
		mrrc_hints_all.ready = -pthread_key_create(&mrrc_hints_all.key,
							   hints_thread_ends);
	if (!mrrc_hints_all.ready)
		mrrc_hints_all.ready =
			-pthread_atfork(NULL, NULL, hints_fork_child);
}

static bool mrrc_hints_ready(void)
{
	pthread_once(&mrrc_hints_all.once, hints_init);
	return !mrrc_hints_all.ready;
}

static struct mrrc_hints *hints_new(void)
{
	struct mrrc_hints *hints;

	hints = aligned_alloc(64, (sizeof(*hints) + 63) & ~(size_t) 63);
	if (!hints)
		return NULL;
	memset(hints, 0, sizeof(*hints));
	if (!hints_alloc(hints, MRRC_HINTS_MIN)) {
		free(hints);
		return NULL;
	}
	return hints;
}

/* A table of a closed cache, emptied, or a new table. */
static struct mrrc_hints *hints_take(struct mrrc_hints *tables)
{
	struct mrrc_hint *old;
	struct mrrc_hints *hints;

	for (hints = tables; hints; hints = hints->next) {
		old = hints->entry;
		if (!atomic_load_explicit(&hints->cache,
					  memory_order_acquire) &&
		    hints_alloc(hints, MRRC_HINTS_MIN)) {
			free(old);
			return hints;
		}
	}
	hints = hints_new();
	if (!hints)
		return NULL;
	hints->next = tables;
	if (pthread_setspecific(mrrc_hints_all.key, hints)) {
		hints_free(hints);
		return NULL;
	}
	return hints;
}

static struct mrrc_hints *hints_attach(struct mrrc_hints_list *list,
				       struct mrrc_hints *tables)
{
	struct mrrc_hints *hints;
	char *lanes;

	hints = hints_take(tables);
	if (!hints)
		return NULL;
	/* the lanes for another cache are all 0, and may be fewer */
	lanes = mrrc_apart_grow(hints->lanes, list->regions->span / 16);
	if (!lanes)
		return NULL;
	hints->lanes = lanes;
	/* without a ring the thread's uses are not noted */
	hints->uses = list->notes ? mrrc_uses_new(list->counter) : NULL;
	mrrc_lock_acquire(&mrrc_hints_all.lock);
	mrrc_lock_acquire(list->lock);
	if (hints->uses)
		TAILQ_INSERT_TAIL(&list->uses, hints->uses, link);
	hints->list = list;
	TAILQ_INSERT_TAIL(&list->head, hints, link);
	atomic_store(&hints->cache, list->id);
	mrrc_lock_release(list->lock);
	mrrc_lock_release(&mrrc_hints_all.lock);
	return hints;
}

struct mrrc_hints *mrrc_hints_of(const struct mrrc_hints_list *list)
{
	struct mrrc_hints *hints;

	if (mrrc_hints_recent == &mrrc_hints_none)
		return NULL;
	for (hints = pthread_getspecific(mrrc_hints_all.key); hints;
	     hints = hints->next) {
		if (atomic_load_explicit(&hints->cache, memory_order_relaxed) ==
		    list->id) {
			mrrc_hints_recent = hints;
			break;
		}
	}
	return hints;
}

struct mrrc_hints *mrrc_hints_get(struct mrrc_hints_list *list)
{
	struct mrrc_hints *hints = mrrc_hints_mine(list);

	if (hints)
		return hints;
	if (!mrrc_hints_ready() || !mrrc_biased_possible())
		return NULL;
	hints = hints_attach(list, pthread_getspecific(mrrc_hints_all.key));
	if (hints)
		mrrc_hints_recent = hints;
	return hints;
}

void mrrc_hints_list_init(struct mrrc_hints_list *list, struct mrrc_lock *lock,
			  struct mrrc_cache *core, struct mrrc_pool *regions,
			  struct mrrc_pool *records)
{
	TAILQ_INIT(&list->head);
	TAILQ_INIT(&list->uses);
	list->regions = regions;
	list->notes = list->counter = false;
	list->holders = (struct mrrc_holders){
		.count = mrrc_hints_held,
		.settle = mrrc_hints_settle,
	};
	list->records = records;
	list->lock = lock;
	list->core = core;
	list->id = atomic_fetch_add(&mrrc_hints_all.next_id, 1) + 1;
}

void mrrc_hints_list_note(struct mrrc_hints_list *list, bool counter)
{
	list->notes = true;
	list->counter = counter;
}

void mrrc_hints_detach(struct mrrc_hints_list *list)
{
	struct mrrc_hints *hints;

	if (!mrrc_hints_ready())
		return;
	/*
	 * Takes the lock even if the list is empty, as an ending thread may
	 * still be using the list.
	 */
	mrrc_lock_acquire(&mrrc_hints_all.lock);
	while ((hints = TAILQ_FIRST(&list->head))) {
		hints_leave(hints);
		atomic_store_explicit(&hints->cache, 0, memory_order_release);
	}
	mrrc_lock_release(&mrrc_hints_all.lock);
}

/* ---- filling ---- */

/* The entry of a full set to replace: an entry whose region is gone, if any. */
static int hints_victim(struct mrrc_hints *hints, const char *regions,
			const struct mrrc_hint *set)
{
	int i;

	for (i = 0; i < MRRC_HINTS_WAYS; i++) {
		if (mrrc_region_tag(mrrc_hints_region(regions, set[i].ref)) !=
		    set[i].ref >> MRRC_REGION_TAG)
			return i;
	}
	return hints->displaced++ % MRRC_HINTS_WAYS;
}

void mrrc_hints_fill(struct mrrc_hints *hints, const char *regions,
		     uintptr_t addr, enum mrrc_access access, uint64_t ref,
		     bool big)
{
	const uint64_t key = big ? mrrc_hints_big_key(addr, access) :
				   mrrc_hints_key(addr, access);
	struct mrrc_hint *set;
	int way = hints_way(hints, key, &set);

	if (way == MRRC_HINTS_WAYS) {
		way = hints_victim(hints, regions, set);
		/* a sixteenth of the sets overflowed: the table is too small */
		if (hints->displaced >> (hints->bits - 4) && hints_grow(hints))
			way = hints_way(hints, key, &set) % MRRC_HINTS_WAYS;
	}
	hints->big |= big;
	set[way] = (struct mrrc_hint){ key, ref };
}
