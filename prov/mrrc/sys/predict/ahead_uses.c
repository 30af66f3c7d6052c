/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Noted uses: assigns them to buffers, and reports them to the schedule
 * (ahead_priv.h).
 */
#include "config.h"
#include "sys/predict/ahead_priv.h"

#include "sys/base/vm.h"

/* Makes a buffer, in place of the least recently used one if necessary. */
static struct mrrc_buffer *buffer_new(struct mrrc_ahead *ahead, uintptr_t start,
				      size_t len)
{
	struct mrrc_buffer *buffer;

	if (ahead->made < MRRC_AHEAD_BUFFERS) {
		buffer = &ahead->buffer[ahead->made++];
	} else {
		buffer = TAILQ_FIRST(&ahead->used);
		TAILQ_REMOVE(&ahead->used, buffer, link);
		mrrc_schedule_forget(&ahead->schedule, &buffer->item);
		mrrc_spans_remove(&ahead->buffers, &buffer->span);
	}
	*buffer = (struct mrrc_buffer){ .prepared = false };
	mrrc_scheduled_init(&buffer->item, len);
	buffer->span.start = start;
	buffer->span.len = len;
	mrrc_spans_add(&ahead->buffers, &buffer->span);
	TAILQ_INSERT_TAIL(&ahead->used, buffer, link);
	return buffer;
}

static struct mrrc_buffer *buffer_get(struct mrrc_ahead *ahead, uintptr_t start,
				      size_t len)
{
	struct mrrc_span *span = mrrc_spans_at(&ahead->buffers, start);
	struct mrrc_buffer *buffer;

	if (!span)
		return buffer_new(ahead, start, len);
	buffer = mrrc_ahead_buffer(span);
	TAILQ_REMOVE(&ahead->used, buffer, link);
	TAILQ_INSERT_TAIL(&ahead->used, buffer, link);
	if (len > span->len) {
		mrrc_spans_resize(&ahead->buffers, span, len);
		buffer->item.len = len;
	}
	return buffer;
}

/*
 * Reports a use. The operation may last longer: that is noticed when the region
 * is to leave.
 */
static void ahead_use(struct mrrc_ahead *ahead, struct mrrc_uses *uses,
		      const struct mrrc_use *use)
{
	const uintptr_t mask = mrrc_vm_page() - 1;
	const uintptr_t start = use->addr & ~mask;
	struct mrrc_signature signature;
	struct mrrc_buffer *buffer;
	size_t len;

	/* not a range: the call fails */
	if (use->len > UINTPTR_MAX - mask ||
	    use->addr > UINTPTR_MAX - mask - use->len)
		return;
	len = ((use->addr + use->len + mask) & ~mask) - start;
	buffer = buffer_get(ahead, start, len);
	if (mrrc_away_back(ahead, start, len))
		mrrc_ahead_stat(ahead, MRRC_STAT_LATE, 1);
	else if (buffer->prepared)
		mrrc_ahead_stat(ahead, MRRC_STAT_AHEAD_USED, 1);
	buffer->prepared = false;
	/* the time since then may be more than one gap */
	if (buffer->item.last < ahead->lost)
		buffer->item.before = false;
	mrrc_predict_sign(&uses->context, use->site, use->addr, use->len,
			  &signature);
	mrrc_schedule_use(&ahead->schedule, &buffer->item, &signature,
			  mrrc_ticks_ns(&ahead->ticks, use->when));
	mrrc_schedule_done(&ahead->schedule, &buffer->item);
}

/* The next ring after this one that has uses. CACHE lock held. */
static struct mrrc_uses *ahead_ring(struct mrrc_ahead *ahead,
				    struct mrrc_uses *uses,
				    struct mrrc_uses_list *ended)
{
	struct mrrc_uses_list *list = &ahead->cache->hints_list.uses;
	struct mrrc_uses *next;

	uses = uses ? TAILQ_NEXT(uses, link) : TAILQ_FIRST(list);
	for (; uses && !mrrc_uses_any(uses); uses = next) {
		next = TAILQ_NEXT(uses, link);
		if (!uses->ended)
			continue;
		TAILQ_REMOVE(list, uses, link);
		TAILQ_INSERT_TAIL(ended, uses, link);
	}
	return uses;
}

bool mrrc_ahead_read(struct mrrc_ahead *ahead)
{
	struct mrrc_uses_list ended = TAILQ_HEAD_INITIALIZER(ended);
	struct mrrc_cache_mt *cache = ahead->cache;
	struct mrrc_uses *uses = NULL;
	uint64_t lost = 0, before, when;
	size_t count, total = 0, i;

	for (;;) {
		mrrc_lock_acquire(&cache->lock);
		uses = ahead_ring(ahead, uses, &ended);
		ahead->schedule.cost = cache->cache.cost;
		mrrc_lock_release(&cache->lock);
		if (!uses)
			break;
		before = lost;
		count = mrrc_uses_read(uses, ahead->use, MRRC_USES_RING, &lost);
		mrrc_ticks_look(&ahead->ticks);
		when = count ? mrrc_ticks_ns(&ahead->ticks, ahead->use->when) :
			       ahead->ticks.ns;
		/* another ring may have lost later ones */
		if (lost != before && when > ahead->lost)
			ahead->lost = when;
		for (i = 0; i < count; i++)
			ahead_use(ahead, uses, &ahead->use[i]);
		total += count;
	}
	mrrc_ahead_stat(ahead, MRRC_STAT_NOTED, total + lost);
	mrrc_ahead_stat(ahead, MRRC_STAT_NOTES_LOST, lost);
	while ((uses = TAILQ_FIRST(&ended))) {
		TAILQ_REMOVE(&ended, uses, link);
		mrrc_thread_outside();
		mrrc_uses_free(uses);
		mrrc_thread_inside();
	}
	return total;
}
