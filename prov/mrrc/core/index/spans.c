/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Address ranges that may overlap (spans.h). */
#include "config.h"
#include "core/index/spans.h"

/*
 * Spans with equal starts are ordered by address, which is arbitrary but fixed.
 */
static int mrrc_span_cmp(struct mrrc_span *a, struct mrrc_span *b)
{
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return ((uintptr_t) a > (uintptr_t) b) -
	       ((uintptr_t) a < (uintptr_t) b);
}

/* RB_GENERATE_STATIC of libbsd 0.11 wants a macro that it does not define. */
#define MRRC_UNUSED_STATIC __attribute__((unused)) static
RB_PROTOTYPE_INTERNAL(mrrc_span_tree, mrrc_span, node, mrrc_span_cmp,
		      MRRC_UNUSED_STATIC)
RB_GENERATE_INTERNAL(mrrc_span_tree, mrrc_span, node, mrrc_span_cmp,
		     MRRC_UNUSED_STATIC)

void mrrc_spans_init(struct mrrc_spans *spans)
{
	*spans = (struct mrrc_spans){ .count = 0 };
	RB_INIT(&spans->tree);
}

void mrrc_spans_add(struct mrrc_spans *spans, struct mrrc_span *span)
{
	RB_INSERT(mrrc_span_tree, &spans->tree, span);
	spans->count++;
	if (span->len > spans->longest)
		spans->longest = span->len;
}

void mrrc_spans_remove(struct mrrc_spans *spans, struct mrrc_span *span)
{
	RB_REMOVE(mrrc_span_tree, &spans->tree, span);
	if (!--spans->count)
		spans->longest = 0;
}

void mrrc_spans_resize(struct mrrc_spans *spans, struct mrrc_span *span,
		       size_t len)
{
	span->len = len;
	if (len > spans->longest)
		spans->longest = len;
}

/* The lowest span that begins at @start or later, or NULL. */
static struct mrrc_span *mrrc_spans_from(const struct mrrc_spans *spans,
					 uintptr_t start)
{
	struct mrrc_span *at = RB_ROOT(&spans->tree);
	struct mrrc_span *best = NULL;

	while (at) {
		if (at->start >= start) {
			best = at;
			at = RB_LEFT(at, node);
		} else {
			at = RB_RIGHT(at, node);
		}
	}
	return best;
}

struct mrrc_span *mrrc_spans_at(const struct mrrc_spans *spans, uintptr_t start)
{
	struct mrrc_span *span = mrrc_spans_from(spans, start);

	return span && span->start == start ? span : NULL;
}

/* The first span from @span on that shares a byte with the range, or NULL. */
static struct mrrc_span *mrrc_spans_overlap(struct mrrc_span *span,
					    uintptr_t start, size_t len)
{
	for (; span; span = RB_NEXT(mrrc_span_tree, NULL, span)) {
		if (span->start >= start && span->start - start >= len)
			return NULL;
		if (span->start >= start || start - span->start < span->len)
			return span;
	}
	return NULL;
}

struct mrrc_span *mrrc_spans_first(const struct mrrc_spans *spans,
				   uintptr_t start, size_t len)
{
	const uintptr_t from = start > spans->longest ? start - spans->longest :
							0;

	return mrrc_spans_overlap(mrrc_spans_from(spans, from), start, len);
}

struct mrrc_span *mrrc_spans_next(struct mrrc_span *span, uintptr_t start,
				  size_t len)
{
	return mrrc_spans_overlap(RB_NEXT(mrrc_span_tree, NULL, span), start,
				  len);
}
