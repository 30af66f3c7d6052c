/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Uses of memory by a thread, and their times (uses.h). */
#include "config.h"
#include "sys/cache/uses.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "sys/base/apart.h"

/* minimum ns between two readings from which the counter's rate is computed */
#define RATE_NS	  1000000
#define INVARIANT (1u << 8)

bool mrrc_ticks_counter(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & INVARIANT;
#else
	return false;
#endif
}

struct mrrc_uses *mrrc_uses_new(bool counter)
{
	struct mrrc_uses *uses = mrrc_apart_grow(NULL, sizeof(*uses));

	if (uses)
		uses->counter = counter;
	return uses;
}

void mrrc_uses_free(struct mrrc_uses *uses)
{
	mrrc_apart_free(uses);
}

size_t mrrc_uses_read(struct mrrc_uses *uses, struct mrrc_use *out, size_t max,
		      uint64_t *lost)
{
	const uint64_t tail = uses->tail;
	struct mrrc_uses_slot *slot;
	uint64_t head, from, good;
	size_t count, i;

	head = atomic_load_explicit(&uses->head, memory_order_acquire);
	from = head - tail > MRRC_USES_RING ? head - MRRC_USES_RING : tail;
	count = head - from < max ? head - from : max;
	for (i = 0; i < count; i++) {
		slot = &uses->slot[(from + i) % MRRC_USES_RING];
		out[i].site =
			atomic_load_explicit(&slot->site, memory_order_relaxed);
		out[i].addr =
			atomic_load_explicit(&slot->addr, memory_order_relaxed);
		out[i].len =
			atomic_load_explicit(&slot->len, memory_order_relaxed);
		out[i].when =
			atomic_load_explicit(&slot->when, memory_order_relaxed);
	}
	mrrc_fence(acquire);
	/*
	 * the owner may be overwriting the oldest slot, which is MRRC_USES_RING
	 * before the head
	 */
	head = atomic_load_explicit(&uses->head, memory_order_relaxed);
	good = head < MRRC_USES_RING ? 0 : head - MRRC_USES_RING + 1;
	if (good < from)
		good = from;
	uses->tail = from + count > good ? from + count : good;
	count = uses->tail - good;
	memmove(out, out + (good - from < max ? good - from : 0),
		count * sizeof(*out));
	*lost += good - tail;
	return count;
}

/* ---- times --------------------------------------------------------------- */

void mrrc_ticks_init(struct mrrc_ticks *ticks, bool counter)
{
	*ticks = (struct mrrc_ticks){ .counter = counter };
	mrrc_ticks_look(ticks);
	ticks->ticks0 = ticks->ticks;
	ticks->ns0 = ticks->ns;
}

uint64_t mrrc_ticks_look(struct mrrc_ticks *ticks)
{
	ticks->ns = mrrc_uses_ns();
	ticks->ticks = mrrc_ticks_now(ticks->counter);
	if (!ticks->counter)
		ticks->rate = 1;
	else if (ticks->ns - ticks->ns0 >= RATE_NS &&
		 ticks->ticks > ticks->ticks0)
		ticks->rate = (double) (ticks->ns - ticks->ns0) /
			      (double) (ticks->ticks - ticks->ticks0);
	return ticks->ns;
}

uint64_t mrrc_ticks_ns(const struct mrrc_ticks *ticks, uint64_t when)
{
	double ago;

	if (when >= ticks->ticks)
		return ticks->ns;
	ago = (double) (ticks->ticks - when) * ticks->rate;
	return ago < (double) ticks->ns ? ticks->ns - (uint64_t) ago : 0;
}
