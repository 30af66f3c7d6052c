/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Trust (trust.h).
 */
#include "config.h"
#include "sys/hooks/trust.h"

#define TRUST_RANGES 64

_Atomic uint64_t mrrc_trust_word;

static struct {
	_Atomic int mode;	   /* enum mrrc_trust_mode */
	atomic_uint count;	   /* number of ranges so far */
	_Atomic(const char *) why; /* why trust is broken */
	unsigned seen;		   /* ranges that the proving thread saw */
	struct {
		_Atomic uintptr_t start, end;
	} range[TRUST_RANGES];
} trust;

/* Clears bits, adds others; returns the former word. */
static uint64_t trust_change(uint64_t away, uint64_t add)
{
	uint64_t word = atomic_load(&mrrc_trust_word);

	while (!atomic_compare_exchange_weak(&mrrc_trust_word, &word,
					     (word & ~away) + add))
		;
	return word;
}

bool mrrc_trust_set(enum mrrc_trust_mode mode, bool hooked)
{
	bool can = hooked &&
		   !(atomic_load(&mrrc_trust_word) & MRRC_TRUST_BROKEN);

	if (!can)
		mode = MRRC_TRUST_NOBODY;
	if (mode == MRRC_TRUST_PROVEN &&
	    atomic_load(&trust.mode) == MRRC_TRUST_PROVEN)
		return true;
	atomic_store(&trust.mode, mode);
	trust_change(MRRC_TRUST_GIVEN, MRRC_TRUST_CHANGE);
	if (mode == MRRC_TRUST_HOOKED)
		can = mrrc_trust_give(atomic_load(&mrrc_trust_word));
	return can;
}

enum mrrc_trust_mode mrrc_trust_mode(void)
{
	return atomic_load(&trust.mode);
}

bool mrrc_trust_begin(void)
{
	if (atomic_load(&trust.mode) == MRRC_TRUST_HOOKED)
		return false;
	trust_change(MRRC_TRUST_GIVEN, MRRC_TRUST_INSIDE);
	return true;
}

void mrrc_trust_end(uintptr_t start, uintptr_t end)
{
	unsigned i;

	if (start != end) {
		i = atomic_fetch_add(&trust.count, 1) % TRUST_RANGES;
		atomic_store(&trust.range[i].start, start);
		atomic_store(&trust.range[i].end, end);
	}
	atomic_fetch_add(&mrrc_trust_word,
			 MRRC_TRUST_CHANGE - MRRC_TRUST_INSIDE);
}

void mrrc_trust_break(const char *why)
{
	if (atomic_load(&trust.mode) == MRRC_TRUST_NOBODY)
		return;
	atomic_store(&trust.why, why);
	trust_change(MRRC_TRUST_GIVEN | MRRC_TRUST_BROKEN, MRRC_TRUST_BROKEN);
}

const char *mrrc_trust_broken(void)
{
	const uint64_t word = atomic_load(&mrrc_trust_word);

	if (word & MRRC_TRUST_BROKEN)
		return atomic_load(&trust.why);
	return word & MRRC_TRUST_INSIDE_MASK ?
		       "a call that may bring or unmap code has not returned" :
		       NULL;
}

void mrrc_trust_surprised(void)
{
	if (mrrc_trusted())
		mrrc_trust_break("memory was unmapped by a way that nothing "
				 "announces");
}

void mrrc_trust_forked(void)
{
	atomic_store(&trust.mode, MRRC_TRUST_NOBODY);
	trust_change(MRRC_TRUST_GIVEN | MRRC_TRUST_INSIDE_MASK,
		     MRRC_TRUST_CHANGE);
}

bool mrrc_trust_wanted(uint64_t *word)
{
	*word = atomic_load(&mrrc_trust_word);
	return atomic_load(&trust.mode) == MRRC_TRUST_PROVEN &&
	       !(*word & (MRRC_TRUST_GIVEN | MRRC_TRUST_BROKEN |
			  MRRC_TRUST_INSIDE_MASK));
}

bool mrrc_trust_give(uint64_t word)
{
	if (word & (MRRC_TRUST_BROKEN | MRRC_TRUST_INSIDE_MASK))
		return false;
	return atomic_compare_exchange_strong(&mrrc_trust_word, &word,
					      word | MRRC_TRUST_GIVEN);
}

void mrrc_trust_touched(void (*touched)(void *arg, uintptr_t start,
					uintptr_t end),
			void *arg)
{
	const unsigned count = atomic_load(&trust.count), seen = trust.seen;

	/* a thread inside may have counted a range, and not yet written it */
	if (atomic_load(&mrrc_trust_word) & MRRC_TRUST_INSIDE_MASK)
		return;
	for (; count - seen <= TRUST_RANGES && trust.seen != count;
	     trust.seen++)
		touched(arg,
			atomic_load(
				&trust.range[trust.seen % TRUST_RANGES].start),
			atomic_load(
				&trust.range[trust.seen % TRUST_RANGES].end));
	/* later ranges may have been written over some of these */
	if (atomic_load(&trust.count) - seen > TRUST_RANGES)
		touched(arg, 0, UINTPTR_MAX);
	trust.seen = count;
}
