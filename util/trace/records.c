/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Recorded requests in memory (records.h).
 */
#include "config.h"
#include "trace/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 1024 /* requests, at first */

/* One file that is read. */
struct reading {
	struct trace_records *records;
	size_t first;  /* index of the file's first request */
	uint32_t base; /* number of the file's first process */
	uint64_t start;
	int ret; /* error of reading the head */
};

static int grow(struct trace_records *records)
{
	const size_t max = records->max ? 2 * records->max : ROOM;
	void *more;

	if (records->count < records->max)
		return 0;
	more = reallocarray(records->rec, max, sizeof(*records->rec));
	if (!more)
		return -ENOMEM;
	records->rec = more;
	records->max = max;
	return 0;
}

static int add(void *arg, const struct sim_rec *rec, const char **cause)
{
	struct reading *reading = arg;
	struct trace_records *records = reading->records;
	int ret;

	if (reading->ret)
		return reading->ret;
	if (rec->proc + reading->base >= SIM_PROCS_MAX) {
		*cause = "too many processes in all";
		return -E2BIG;
	}
	ret = grow(records);
	if (ret)
		return ret;
	records->rec[records->count] = *rec;
	records->rec[records->count].proc += reading->base;
	if (records->rec[records->count].proc >= records->procs)
		records->procs = records->rec[records->count].proc + 1;
	records->count++;
	return 0;
}

static void head(void *arg, const struct mrrc_trace_head *head)
{
	struct reading *reading = arg;
	struct trace_records *records = reading->records;
	struct trace_source *source;
	uint32_t i, domains = head->domains;

	if (domains > MRRC_TRACE_DOMAINS)
		domains = MRRC_TRACE_DOMAINS;
	reading->start = head->start;
	records->dropped += head->dropped;
	if (head->page && head->page <= 1U << 30 &&
	    !(head->page & (head->page - 1)))
		records->page = head->page;
	source = reallocarray(records->source, records->sources + domains + 1,
			      sizeof(*source));
	if (!source) {
		reading->ret = -ENOMEM;
		return;
	}
	records->source = source;
	for (i = 0; i < domains; i++) {
		source = &records->source[records->sources++];
		source->proc = reading->base + i;
		source->pid = head->pid;
		memcpy(source->program, head->program, sizeof(source->program));
		source->domain = head->domain[i];
		source->cost = i < MRRC_TRACE_COSTS ?
				       head->cost[i] :
				       (struct mrrc_trace_cost){ 0 };
	}
	/* processes without requests count as well */
	if (reading->base + domains > records->procs &&
	    reading->base + domains <= SIM_PROCS_MAX)
		records->procs = reading->base + domains;
}

/* Moves the times of a file that started later. */
static void shift(struct trace_records *records, size_t from, size_t to,
		  uint64_t ns)
{
	struct sim_rec *rec;

	for (; from < to; from++) {
		rec = &records->rec[from];
		if (__builtin_add_overflow(rec->rec.begin, ns, &rec->rec.begin))
			rec->rec.begin = UINT64_MAX;
		if (rec->rec.end &&
		    __builtin_add_overflow(rec->rec.end, ns, &rec->rec.end))
			rec->rec.end = UINT64_MAX;
		rec->time_us = rec->rec.begin / 1000;
	}
}

/* Moves all times to one clock: the clock of the file that started first. */
static void adjust(struct reading *reading)
{
	struct trace_records *records = reading->records;

	if (!reading->start)
		return;
	if (!records->start) {
		records->start = reading->start;
	} else if (reading->start >= records->start) {
		shift(records, reading->first, records->count,
		      reading->start - records->start);
	} else {
		shift(records, 0, reading->first,
		      records->start - reading->start);
		records->start = reading->start;
	}
}

/* Reads a file. FILE NULL: opens the path. */
static int read_records(struct trace_records *records, FILE *file,
			const char *path, char *err, size_t err_len)
{
	struct reading reading = {
		.records = records,
		.first = records->count,
		.base = records->procs,
	};
	const struct sim_sink sink = {
		.add = add,
		.head = head,
		.arg = &reading,
		.full = true,
	};
	int ret;

	records->files++;
	if (!records->page)
		records->page = 4096;
	ret = file ? sim_read_file(file, path, err, err_len, &sink) :
		     sim_read(path, err, err_len, &sink);
	if (!ret && reading.ret) {
		ret = reading.ret;
		snprintf(err, err_len, "%s: %s", path, strerror(-ret));
	}
	if (!ret)
		adjust(&reading);
	return ret;
}

int trace_records_read(struct trace_records *records, const char *path,
		       char *err, size_t err_len)
{
	return read_records(records, NULL, path, err, err_len);
}

int trace_records_read_file(struct trace_records *records, FILE *file,
			    const char *path, char *err, size_t err_len)
{
	return read_records(records, file, path, err, err_len);
}

static int by_time(const void *left, const void *right)
{
	const struct sim_rec *a = left, *b = right;

	if (a->rec.begin != b->rec.begin)
		return a->rec.begin < b->rec.begin ? -1 : 1;
	if (a->proc != b->proc)
		return a->proc < b->proc ? -1 : 1;
	return (a->rec.thread > b->rec.thread) -
	       (a->rec.thread < b->rec.thread);
}

void trace_records_sort(struct trace_records *records)
{
	size_t i;

	for (i = 1; i < records->count; i++) {
		if (records->rec[i].rec.begin < records->rec[i - 1].rec.begin)
			break;
	}
	if (i < records->count)
		qsort(records->rec, records->count, sizeof(*records->rec),
		      by_time);
}

void trace_records_fini(struct trace_records *records)
{
	free(records->rec);
	free(records->source);
	*records = (struct trace_records){ 0 };
}

/* ---- filter ---- */

static bool among(uint64_t number, const uint64_t *list, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (list[i] == number)
			return true;
	}
	return !count;
}

static bool peer_among(const struct mrrc_trace_rec *rec,
		       const struct trace_filter *filter)
{
	size_t i;

	for (i = 0; i < filter->peers; i++) {
		if (filter->peer[i].kind == mrrc_trace_peer(rec) &&
		    filter->peer[i].peer == rec->peer)
			return true;
	}
	return !filter->peers;
}

static bool is_wanted(const struct sim_rec *rec, uint64_t first,
		      const struct trace_filter *filter)
{
	const uint64_t since = rec->rec.begin - first;

	return (!filter->ops || filter->ops & 1U << rec->rec.op) &&
	       (!filter->results ||
		filter->results & 1U << mrrc_trace_result(&rec->rec)) &&
	       rec->rec.len >= filter->min_len &&
	       rec->rec.len <= filter->max_len && since >= filter->from &&
	       since <= filter->to &&
	       among(rec->rec.thread, filter->thread, filter->threads) &&
	       among(rec->proc, filter->proc, filter->procs) &&
	       peer_among(&rec->rec, filter);
}

void trace_records_filter(struct trace_records *records,
			  const struct trace_filter *filter)
{
	const uint64_t first = records->count ? records->rec[0].rec.begin : 0;
	size_t i, kept = 0;

	for (i = 0; i < records->count; i++) {
		if (is_wanted(&records->rec[i], first, filter))
			records->rec[kept++] = records->rec[i];
	}
	records->count = kept;
}
