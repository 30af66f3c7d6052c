/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads recordings of the provider (core/text/trace.h): chunks of threads,
 * merged by time. The process may still be writing, or have been killed.
 */
#include "config.h"
#include "sim/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/text.h"

#define RECS_CHUNK (MRRC_TRACE_CHUNK / sizeof(struct mrrc_trace_rec))

struct recorded {
	struct mrrc_trace_rec *rec;
	size_t count;
	size_t max;
};

/* Terminals must not obey the text of a recording. */
static void make_plain(struct mrrc_trace_head *head)
{
	int i;

	mrrc_text_plain(head->program);
	for (i = 0; i < MRRC_TRACE_DOMAINS; i++) {
		mrrc_text_plain(head->domain[i].provider);
		mrrc_text_plain(head->domain[i].policy);
		mrrc_text_plain(head->domain[i].monitor);
	}
}

static int read_head(struct sim_lines *lines, struct mrrc_trace_head *head,
		     const char **cause)
{
	char page[MRRC_TRACE_HEAD];
	size_t len;
	int ret;

	ret = sim_lines_bytes(lines, page, sizeof(page), &len);
	if (ret)
		return ret;
	if (len < sizeof(page)) {
		*cause = "truncated header";
		return -EINVAL;
	}
	memcpy(head, page, sizeof(*head));
	mrrc_trace_swap_head(head);
	*cause = mrrc_trace_check_head(head);
	if (*cause)
		return -EINVAL;
	make_plain(head);
	return 0;
}

static int grow(struct recorded *recorded)
{
	size_t max = recorded->max ? 2 * recorded->max : RECS_CHUNK;
	void *more;

	if (recorded->count + RECS_CHUNK <= recorded->max)
		return 0;
	if (max < recorded->count + RECS_CHUNK)
		max = recorded->count + RECS_CHUNK;
	more = reallocarray(recorded->rec, max, sizeof(*recorded->rec));
	if (!more)
		return -ENOMEM;
	recorded->rec = more;
	recorded->max = max;
	return 0;
}

/* Takes the records before the first record that was not written. */
static int take_chunk(struct recorded *recorded, size_t count,
		      const char **cause)
{
	struct mrrc_trace_rec *rec = recorded->rec + recorded->count;
	size_t i;

	for (i = 0; i < count && rec[i].op; i++) {
		mrrc_trace_swap_rec(&rec[i]);
		*cause = mrrc_trace_check_rec(&rec[i]);
		if (*cause)
			return -EINVAL;
		if (rec[i].end & MRRC_TRACE_OPEN)
			rec[i].end = 0;
		if (mrrc_trace_peer(&rec[i]) == MRRC_TRACE_NOBODY)
			rec[i].peer = 0;
	}
	recorded->count += i;
	return 0;
}

static int read_chunks(struct sim_lines *lines, struct recorded *recorded,
		       uint64_t *chunk, const char **cause)
{
	size_t len = MRRC_TRACE_CHUNK;
	int ret;

	while (len == MRRC_TRACE_CHUNK) {
		ret = grow(recorded);
		if (ret)
			return ret;
		ret = sim_lines_bytes(lines, recorded->rec + recorded->count,
				      MRRC_TRACE_CHUNK, &len);
		if (ret)
			return ret;
		++*chunk;
		/*
		 * a copy of a file may end at any byte: only complete records
		 * count
		 */
		ret = take_chunk(recorded, len / sizeof(*recorded->rec), cause);
		if (ret)
			return ret;
	}
	return 0;
}

/*
 * Orders records by time, at equal times by thread; records of one thread are
 * in order already.
 */
static int by_time(const void *left, const void *right)
{
	const struct mrrc_trace_rec *a = left, *b = right;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return (a->thread > b->thread) - (a->thread < b->thread);
}

int sim_recorded(struct sim_lines *lines, struct mrrc_trace_head *head,
		 struct mrrc_trace_rec **recs, size_t *count, uint64_t *chunk,
		 const char **cause)
{
	struct recorded recorded = { 0 };
	int ret;

	*chunk = 0;
	*cause = NULL;
	ret = read_head(lines, head, cause);
	if (!ret)
		ret = read_chunks(lines, &recorded, chunk, cause);
	if (ret) {
		if (!*cause)
			*cause = lines->cause;
		free(recorded.rec);
		return ret;
	}
	qsort(recorded.rec, recorded.count, sizeof(*recorded.rec), by_time);
	*recs = recorded.rec;
	*count = recorded.count;
	return 0;
}
