/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See rows.h. */
#include "config.h"
#include "stat/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/*
 * Columns of a table; with blanks between, the columns fit terminals of 80
 * columns.
 */
static const struct {
	const char *name;
	const char *head;
	int width; /* width in characters; below 0: aligned to the left */
} column[STAT_COLUMNS] = {
	[STAT_PID] = { "pid", "PID", 7 },
	[STAT_COMMAND] = { "command", "COMMAND", -10 },
	[STAT_LOOKUPS] = { "lookups", "LOOK/S", 6 },
	[STAT_HITS] = { "hits", "HIT%", 5 },
	[STAT_MISSES] = { "misses", "MISSES", 6 },
	[STAT_EVICTED] = { "evicted", "EVICTED", 7 },
	[STAT_INVALID] = { "invalid", "INVALID", 7 },
	[STAT_UNCACHED] = { "uncached", "UNCACHED", 8 },
	[STAT_LOCKED] = { "locked", "LOCKED", 8 },
	[STAT_SAVED] = { "saved", "SAVED", 7 },
};

/* ---- values ---- */

static struct stat_row make_row(const struct stat_domain *domain,
				const struct stat_sample *before)
{
	const struct stat_pair pair = stat_pair(domain, before);
	const uint64_t lookups = stat_pair_total(&pair, MRRC_STAT_LOOKUPS);
	const uint64_t uncached = stat_pair_uncached(&pair);
	struct stat_row row = { .pair = pair };
	double *value = row.value;

	value[STAT_PID] = domain->pid;
	value[STAT_LOOKUPS] =
		pair.before && pair.seconds > 0 ?
			stat_pair_since(&pair, MRRC_STAT_LOOKUPS) /
				pair.seconds :
			-1;
	value[STAT_HITS] =
		lookups ? 100.0 * stat_pair_total(&pair, MRRC_STAT_HITS) /
				  lookups :
			  -1;
	value[STAT_MISSES] = stat_pair_total(&pair, MRRC_STAT_MISSES);
	value[STAT_EVICTED] = stat_pair_total(&pair, MRRC_STAT_EVICTIONS);
	value[STAT_INVALID] = stat_pair_total(&pair, MRRC_STAT_INVALIDATIONS);
	value[STAT_UNCACHED] = uncached;
	value[STAT_LOCKED] = stat_pair_total(&pair, MRRC_STAT_PINNED);
	value[STAT_SAVED] = stat_pair_saved(&pair);
	row.warns = uncached || *pair.now->lacks;
	return row;
}

static int compare_domains(const struct stat_domain *a,
			   const struct stat_domain *b)
{
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

static int compare(const void *a_, const void *b_, void *order_)
{
	const struct stat_row *a = a_, *b = b_;
	const struct stat_order *order = order_;
	const double x = a->value[order->column], y = b->value[order->column];
	int ret;

	if (order->column == STAT_PID)
		ret = compare_domains(a->pair.domain, b->pair.domain);
	else if (order->column == STAT_COMMAND)
		ret = strcmp(a->pair.domain->command, b->pair.domain->command);
	else
		ret = x > y ? -1 : x < y;
	/* rows with equal values stay in place from sample to sample */
	if (!ret)
		return compare_domains(a->pair.domain, b->pair.domain);
	return order->reverse ? -ret : ret;
}

int stat_rows_init(struct stat_rows *rows, const struct stat_sample *sample,
		   const struct stat_sample *before, struct stat_order order)
{
	size_t i;

	*rows = (struct stat_rows){
		.row = calloc(sample->domains + 1, sizeof(*rows->row)),
		.order = order,
	};
	if (!rows->row)
		return -ENOMEM;
	for (i = 0; i < sample->domains; i++)
		rows->row[rows->count++] = make_row(&sample->domain[i], before);
	qsort_r(rows->row, rows->count, sizeof(*rows->row), compare, &order);
	return 0;
}

void stat_rows_fini(struct stat_rows *rows)
{
	free(rows->row);
	*rows = (struct stat_rows){ 0 };
}

/* ---- text ---- */

/* Formats a count below 10^13 in at most six characters. */
static const char *count_text(double count, char *text, size_t size)
{
	static const char unit[] = "\0kMG";
	unsigned i;

	for (i = 0; count >= 99999.5 && i < 3; i++)
		count /= 1000;
	snprintf(text, size, "%.0f%.1s", count, unit + i);
	return text;
}

static const char *value_text(const struct stat_row *row,
			      enum stat_column which, char *text, size_t size)
{
	const double value = row->value[which];

	if (which == STAT_COMMAND)
		return row->pair.domain->command;
	if (value < 0)
		return "-";
	if (which == STAT_LOCKED)
		return stat_bytes_text(value, text, size);
	if (which == STAT_SAVED)
		return stat_seconds_text(value, text, size);
	if (which != STAT_PID && which != STAT_HITS)
		return count_text(value, text, size);
	snprintf(text, size, "%.*f", which == STAT_HITS, value);
	return text;
}

static void print_field(enum stat_column which, const char *text, FILE *out)
{
	const int width = column[which].width;

	fprintf(out, "%s%*.*s", which ? " " : "", width,
		which == STAT_COMMAND ? -width : 32, text);
}

/*
 * Prints the reasons for which buffers of @rows domains were not kept
 * registered. Returns false if all buffers were kept, and prints nothing then.
 */
static bool print_causes(const struct stat_row *row, size_t rows,
			 const char *prefix, FILE *out)
{
	bool any = false;
	uint64_t sum;
	unsigned i;
	size_t j;

	for (i = 0; i < STAT_CAUSES; i++) {
		for (sum = 0, j = 0; j < rows; j++)
			sum += stat_pair_total(&row[j].pair, stat_cause(i));
		if (!sum)
			continue;
		fprintf(out, "%s%" PRIu64 " %s", any ? ", " : prefix, sum,
			stat_cause_name(i));
		any = true;
	}
	return any;
}

static void print_row(const struct stat_row *row, FILE *out)
{
	const struct stat_segment *segment = row->pair.now;
	char text[32];
	int i;

	for (i = 0; i < STAT_COLUMNS; i++) {
		if (!segment->registers && i > STAT_COMMAND)
			break;
		print_field(i, value_text(row, i, text, sizeof(text)), out);
	}
	if (!segment->registers) {
		fprintf(out, " open, but %s\n", segment->lacks);
		return;
	}
	if (!print_causes(row, 1, "  ", out) && *segment->lacks)
		fprintf(out, "  lacks %s", segment->lacks);
	fputc('\n', out);
}

static size_t count_processes(const struct stat_rows *rows)
{
	size_t count = 0, i, j;

	for (i = 0; i < rows->count; i++) {
		for (j = 0; j < i; j++) {
			if (rows->row[j].value[STAT_PID] ==
			    rows->row[i].value[STAT_PID])
				break;
		}
		count += j == i;
	}
	return count;
}

/* Makes the sum over all domains, without rates that are not known. */
static double sum(const struct stat_rows *rows, enum stat_column which)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < rows->count; i++) {
		if (rows->row[i].value[which] > 0)
			sum += rows->row[i].value[which];
	}
	return sum;
}

static void print_sums(const struct stat_rows *rows, FILE *out)
{
	uint64_t lookups = 0, hits = 0;
	char text[32];
	size_t i;

	for (i = 0; i < rows->count; i++) {
		lookups +=
			stat_pair_total(&rows->row[i].pair, MRRC_STAT_LOOKUPS);
		hits += stat_pair_total(&rows->row[i].pair, MRRC_STAT_HITS);
	}
	fprintf(out, "%s lookups, ", count_text(lookups, text, sizeof(text)));
	fprintf(out, "%s a second, %.1f%% hits, ",
		count_text(sum(rows, STAT_LOOKUPS), text, sizeof(text)),
		lookups ? 100.0 * hits / lookups : 0.0);
	fprintf(out, "%s locked, ",
		stat_bytes_text(sum(rows, STAT_LOCKED), text, sizeof(text)));
	fprintf(out, "%s saved\n",
		stat_seconds_text(sum(rows, STAT_SAVED), text, sizeof(text)));
}

void stat_rows_print(const struct stat_rows *rows, FILE *out)
{
	const size_t processes = count_processes(rows);
	size_t i;

	fprintf(out, "%zu domain%s of %zu process%s, sorted by %s%s\n",
		rows->count, rows->count == 1 ? "" : "s", processes,
		processes == 1 ? "" : "es", column[rows->order.column].name,
		rows->order.reverse ? ", reversed" : "");
	print_sums(rows, out);
	if (!print_causes(rows->row, rows->count, "not kept: ", out))
		fputs("not kept: no buffer", out);
	fputc('\n', out);
	for (i = 0; i < STAT_COLUMNS; i++)
		print_field(i, column[i].head, out);
	fputc('\n', out);
	for (i = 0; i < rows->count; i++)
		print_row(&rows->row[i], out);
	if (!rows->count)
		fputs("no domain is open now\n", out);
}

/* ---- names ---- */

enum stat_column stat_column_find(const char *name)
{
	int i;

	for (i = 0; i < STAT_COLUMNS && strcasecmp(name, column[i].name); i++)
		;
	return i;
}

const char *stat_column_names(char *text, size_t size)
{
	size_t len = 0;
	int i;

	for (i = 0; i < STAT_COLUMNS && len < size; i++)
		len += snprintf(text + len, size - len, "%s%s", i ? ", " : "",
				column[i].name);
	return text;
}
