/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Prediction of the next use (predict.h).
 *
 * The table is set-associative: a key has WAYS places, and a new key replaces
 * the least recently used key. The constants were chosen on the NAS benchmarks
 * of fabtests/traces/own_time, and only checked on the other programs there.
 */
#include "config.h"
#include "core/helper/predict.h"

#include "core/text/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WAYS	 4
#define SETS_MIN 16
#define SETS_MAX (64 * 1024)
#define KEYS	 3		     /* keys of a signature */
#define GAP_MAX	 (UINT64_C(1) << 60) /* 36 years: sums do not wrap */

#define GAPS_ENOUGH 2 /* gaps of a signature that suffice */
/* gaps of all buffers that must be known before they are used */
#define GAPS_OF_ALL 8
#define ONCE_USES   4 /* uses of a call site before it is judged */
/*
 * a site's buffers are used once if fewer than one of this many was used again
 */
#define ONCE_PART 32
#define RATED_MAX 65536 /* older gaps count less */

struct mrrc_predict_entry {
	uint64_t key;
	/* the predictor's number of uses at the last use; 0: empty */
	uint64_t used;
	uint64_t shortest, longest; /* lengths of gaps, once there were gaps */
	uint32_t gaps;
	uint32_t uses; /* number of uses, of call sites only */
};

static size_t mrrc_predict_sets(size_t signatures)
{
	size_t sets = SETS_MIN;

	while (sets < SETS_MAX && sets * WAYS / KEYS < signatures)
		sets *= 2;
	return sets;
}

size_t mrrc_predict_bytes(size_t signatures)
{
	return mrrc_predict_sets(signatures) * WAYS *
	       sizeof(struct mrrc_predict_entry);
}

void mrrc_predict_place(struct mrrc_predict *predict, size_t signatures,
			void *zeroes)
{
	*predict = (struct mrrc_predict){
		.sets = mrrc_predict_sets(signatures),
		.entry = zeroes,
	};
}

int mrrc_predict_init(struct mrrc_predict *predict, size_t signatures)
{
	mrrc_predict_place(predict, signatures,
			   calloc(1, mrrc_predict_bytes(signatures)));
	return predict->entry ? 0 : -ENOMEM;
}

void mrrc_predict_fini(struct mrrc_predict *predict)
{
	free(predict->entry);
}

/* ---- signatures ---------------------------------------------------------- */

static uint64_t mrrc_predict_join(uint64_t key, uint64_t more)
{
	return mrrc_hash(mrrc_rotl(key, 17) + more);
}

/* The next power of two: lengths of similar size share a class. */
static uint64_t mrrc_predict_class(size_t len)
{
	return len ? 64 - __builtin_clzll(len) : 0;
}

void mrrc_predict_sign(struct mrrc_predict_context *context, uint64_t site,
		       uint64_t addr, size_t len,
		       struct mrrc_signature *signature)
{
	const uint64_t call = mrrc_predict_join(site, mrrc_predict_class(len));
	const uint64_t point = mrrc_predict_join(mrrc_hash(addr), call);
	uint64_t key = ~point;
	int i;

	signature->site = mrrc_hash(~call);
	signature->buffer = point;
	for (i = 0; i < MRRC_PREDICT_WINDOW; i++)
		key = mrrc_predict_join(key, context->point[i]);
	signature->context = key;
	for (i = MRRC_PREDICT_WINDOW - 1; i > 0; i--)
		context->point[i] = context->point[i - 1];
	context->point[0] = point;
}

/* ---- the table ----------------------------------------------------------- */

static struct mrrc_predict_entry *
mrrc_predict_set(const struct mrrc_predict *predict, uint64_t key)
{
	return predict->entry + (key & (predict->sets - 1)) * WAYS;
}

static struct mrrc_predict_entry *
mrrc_predict_find(const struct mrrc_predict *predict, uint64_t key)
{
	struct mrrc_predict_entry *entry = mrrc_predict_set(predict, key);
	int i;

	for (i = 0; i < WAYS; i++) {
		if (entry[i].used && entry[i].key == key)
			return &entry[i];
	}
	return NULL;
}

/*
 * Returns the key's entry; if the key has no entry, makes one, which may
 * replace the entry of another key.
 */
static struct mrrc_predict_entry *mrrc_predict_get(struct mrrc_predict *predict,
						   uint64_t key)
{
	struct mrrc_predict_entry *entry = mrrc_predict_find(predict, key);
	struct mrrc_predict_entry *set = mrrc_predict_set(predict, key);
	int i;

	if (!entry) {
		entry = set;
		for (i = 1; i < WAYS; i++) {
			if (set[i].used < entry->used)
				entry = &set[i];
		}
		*entry = (struct mrrc_predict_entry){ .key = key };
	}
	entry->used = predict->uses + 1;
	return entry;
}

/*
 * Returns the most specific entry for the buffer, even if the entry has seen
 * fewer than GAPS_ENOUGH gaps.
 */
static const struct mrrc_predict_entry *
mrrc_predict_known(const struct mrrc_predict *predict,
		   const struct mrrc_signature *signature)
{
	const struct mrrc_predict_entry *entry =
		mrrc_predict_find(predict, signature->context);

	return entry && entry->gaps >= GAPS_ENOUGH ?
		       entry :
		       mrrc_predict_find(predict, signature->buffer);
}

/* ---- limits -------------------------------------------------------------- */

/*
 * Subtracts a guard from the shortest gap: a 32nd of the gap, and half of the
 * gap divided by the number of gaps.
 */
static uint64_t mrrc_predict_from(uint64_t shortest, uint64_t gaps)
{
	const uint64_t guard = shortest / 32 + shortest / (2 * gaps);

	return guard < shortest ? shortest - guard : 0;
}

static uint64_t mrrc_predict_to(uint64_t longest, uint64_t gaps)
{
	return longest + longest / 2 + 2 * (longest / gaps);
}

/*
 * Returns the idle time after which a buffer is no longer kept, if nothing else
 * is known about the buffer; 0: not known. The idle time is doubled while too
 * few gaps were seen.
 */
static uint64_t mrrc_predict_idle(const struct mrrc_predict *predict)
{
	uint64_t most;

	if (predict->gaps < GAPS_OF_ALL)
		return 0;
	if (predict->gaps < MRRC_GAPS_PART)
		return mrrc_predict_to(predict->longest, predict->gaps);
	most = mrrc_gaps_most(&predict->lengths);
	return most + MRRC_GAPS_PART * (most / predict->gaps);
}

/* ---- learning ------------------------------------------------------------ */

void mrrc_predict_use(struct mrrc_predict *predict,
		      const struct mrrc_signature *signature)
{
	struct mrrc_predict_entry *site;

	predict->uses++;
	site = mrrc_predict_get(predict, signature->site);
	site->uses += site->uses < UINT32_MAX;
}

static unsigned mrrc_predict_rated(uint32_t gaps)
{
	return 31 - __builtin_clz(gaps);
}

/*
 * Rates the prediction: would the buffer have been registered too late for this
 * gap, whether or not it was deregistered?
 */
static void mrrc_predict_rate(struct mrrc_predict *predict,
			      const struct mrrc_signature *signature,
			      uint64_t gap)
{
	const struct mrrc_predict_entry *entry =
		mrrc_predict_known(predict, signature);
	struct mrrc_predict_rate *rate;
	uint64_t from;

	if (!entry || entry->gaps < GAPS_ENOUGH)
		return;
	from = mrrc_predict_from(entry->shortest, entry->gaps);
	if (!from)
		return;
	rate = &predict->rate[mrrc_predict_rated(entry->gaps)];
	if (rate->seen >= RATED_MAX) {
		rate->seen /= 2;
		rate->sooner /= 2;
	}
	rate->seen++;
	rate->sooner += gap < from;
}

static void mrrc_predict_learn(struct mrrc_predict *predict, uint64_t key,
			       uint64_t gap)
{
	struct mrrc_predict_entry *entry = mrrc_predict_get(predict, key);

	if (!entry->gaps || gap < entry->shortest)
		entry->shortest = gap;
	if (gap > entry->longest)
		entry->longest = gap;
	entry->gaps += entry->gaps < UINT32_MAX;
}

void mrrc_predict_gap(struct mrrc_predict *predict,
		      const struct mrrc_signature *signature, uint64_t gap)
{
	if (gap > GAP_MAX)
		gap = GAP_MAX;
	mrrc_predict_rate(predict, signature, gap);
	mrrc_predict_learn(predict, signature->context, gap);
	mrrc_predict_learn(predict, signature->buffer, gap);
	mrrc_predict_learn(predict, signature->site, gap);
	mrrc_gaps_add(&predict->lengths, gap);
	predict->gaps++;
	if (gap > predict->longest)
		predict->longest = gap;
}

/* ---- prediction ---------------------------------------------------------- */

/*
 * Does it pay to deregister the buffer until @from? Deregistering saves
 * registered time until @from, and makes the next use late if that use comes
 * sooner. Dropping buffers after the idle time makes about one use late for
 * each idle time saved; a prediction has to do better. While few gaps were
 * rated, the chance of a late use is taken to be 1/4 divided by the number of
 * gaps.
 */
static bool mrrc_predict_pays(const struct mrrc_predict *predict, uint32_t gaps,
			      uint64_t from)
{
	const struct mrrc_predict_rate *rate =
		&predict->rate[mrrc_predict_rated(gaps)];
	const double chance =
		(rate->sooner + .5) / (rate->seen + 2 * (double) gaps);

	return predict->gaps < GAPS_OF_ALL ||
	       chance * mrrc_gaps_most(&predict->lengths) <= from;
}

/*
 * Do the buffers of the call site with the key @key seem to be used only once?
 */
static bool mrrc_predict_once(const struct mrrc_predict *predict, uint64_t key)
{
	const struct mrrc_predict_entry *site = mrrc_predict_find(predict, key);

	return site && site->uses >= ONCE_USES &&
	       (uint64_t) site->gaps * ONCE_PART < site->uses;
}

/* Predicts from the gaps of the signature, or of the buffer. */
static void mrrc_predict_of(const struct mrrc_predict *predict,
			    const struct mrrc_predict_entry *entry,
			    struct mrrc_prediction *prediction)
{
	const uint64_t from = mrrc_predict_from(entry->shortest, entry->gaps);
	const uint64_t idle = mrrc_predict_idle(predict);

	if (mrrc_predict_pays(predict, entry->gaps, from))
		prediction->from = from;
	prediction->to = mrrc_predict_to(entry->longest, entry->gaps);
	/*
	 * with n gaps seen, the next one is the longest with a chance of 1 / n
	 */
	if (entry->gaps < MRRC_GAPS_PART && prediction->to < idle)
		prediction->to = idle;
}

void mrrc_predict_next(const struct mrrc_predict *predict,
		       const struct mrrc_signature *signature,
		       struct mrrc_prediction *prediction)
{
	const struct mrrc_predict_entry *entry;

	*prediction = (struct mrrc_prediction){ .to = MRRC_PREDICT_NEVER };
	entry = mrrc_predict_find(predict, signature->context);
	if (entry)
		prediction->period = entry->shortest;
	entry = mrrc_predict_known(predict, signature);
	if (entry && entry->gaps >= GAPS_ENOUGH)
		mrrc_predict_of(predict, entry, prediction);
	else if (!entry && mrrc_predict_once(predict, signature->site))
		prediction->to = 0;
	else if (predict->gaps >= GAPS_OF_ALL)
		prediction->to = mrrc_predict_idle(predict);
}
