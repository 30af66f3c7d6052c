/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address ranges that may overlap each other, with a search for the ranges that
 * share a byte with a given range.
 *
 * Spans are ordered by start. A search begins as far below the given range as
 * the longest span is long, so the search is fast while spans have similar
 * lengths, or are few.
 *
 * Not thread-safe; allocates nothing, as the owner embeds the spans that it
 * adds.
 */
#ifndef MRRC_SPANS_H
#define MRRC_SPANS_H

#include <stddef.h>
#include <stdint.h>
#include <bsd/sys/tree.h>

struct mrrc_span {
	RB_ENTRY(mrrc_span) node;
	uintptr_t start;
	size_t len; /* not 0; start + len does not wrap */
};

struct mrrc_spans {
	RB_HEAD(mrrc_span_tree, mrrc_span) tree;
	size_t count;
	size_t longest; /* longest span since the set was last empty */
};

void mrrc_spans_init(struct mrrc_spans *spans);
void mrrc_spans_add(struct mrrc_spans *spans, struct mrrc_span *span);
void mrrc_spans_remove(struct mrrc_spans *spans, struct mrrc_span *span);

/* Makes a span that was added longer or shorter. */
void mrrc_spans_resize(struct mrrc_spans *spans, struct mrrc_span *span,
		       size_t len);

/* The first span that begins at @start, or NULL. */
struct mrrc_span *mrrc_spans_at(const struct mrrc_spans *spans,
				uintptr_t start);

/*
 * Return the lowest span that shares a byte with the range, and the next such
 * span after @span, or NULL.
 */
struct mrrc_span *mrrc_spans_first(const struct mrrc_spans *spans,
				   uintptr_t start, size_t len);
struct mrrc_span *mrrc_spans_next(struct mrrc_span *span, uintptr_t start,
				  size_t len);

#endif /* MRRC_SPANS_H */
