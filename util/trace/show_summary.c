/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Summaries (show.h): a text with histograms, or JSON.
 */
#include "config.h"
#include "trace/show.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define BAR 40 /* characters of the longest bar */

static double share(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double) part / (double) whole : 0;
}

/* Formats 1536 as 1.5K. */
static const char *size_text(uint64_t bytes, char buf[16])
{
	static const char unit[] = " KMGTPE";
	double value = (double) bytes;
	unsigned i = 0;

	for (; value >= 1024 && i < 6; i++)
		value /= 1024;
	snprintf(buf, 16,
		 value == (double) (uint64_t) value ? "%.0f%c" : "%.1f%c",
		 value, unit[i]);
	if (!i)
		buf[strlen(buf) - 1] = '\0';
	return buf;
}

static void put_bar(uint64_t count, uint64_t most, FILE *out)
{
	unsigned len =
		most ? (unsigned) ((double) count / (double) most * BAR + .5) :
		       0;

	fputs("  ", out);
	if (count && !len)
		len = 1;
	while (len--)
		fputc('#', out);
	fputc('\n', out);
}

static uint64_t most_of(const uint64_t *count, size_t cnt)
{
	uint64_t most = 0;
	size_t i;

	for (i = 0; i < cnt; i++)
		most = count[i] > most ? count[i] : most;
	return most;
}

/* Prints counts by powers of two; first: a row before them, or NULL. */
static void put_log2(const uint64_t *count, const char *first,
		     uint64_t first_count, bool bytes, FILE *out)
{
	uint64_t most = most_of(count, TRACE_LOG2);
	char from[16];
	unsigned i;

	most = first && first_count > most ? first_count : most;
	if (first && first_count) {
		fprintf(out, "  %-22s %10" PRIu64, first, first_count);
		put_bar(first_count, most, out);
	}
	for (i = 0; i < TRACE_LOG2; i++) {
		if (!count[i])
			continue;
		if (bytes)
			size_text(trace_log2_from(i), from);
		else
			snprintf(from, sizeof(from), "%" PRIu64,
				 trace_log2_from(i));
		fprintf(out, "  %s %-14s %10" PRIu64, i ? "from   " : "       ",
			from, count[i]);
		put_bar(count[i], most, out);
	}
}

static void put_overlap(const struct trace_summary *summary, FILE *out)
{
	const uint64_t most = most_of(summary->overlap, TRACE_SHARES);
	int i;

	for (i = 0; i < TRACE_SHARES; i++) {
		fprintf(out, "  %-22s %10" PRIu64, trace_share_names[i],
			summary->overlap[i]);
		put_bar(summary->overlap[i], most, out);
	}
}

static void put_sources(const struct trace_records *records, FILE *out)
{
	const struct trace_source *source;
	struct mrrc_cost cost;
	char size[16];
	size_t i;

	for (i = 0; i < records->sources; i++) {
		source = &records->source[i];
		fprintf(out, "proc %" PRIu32 ": %s (%" PRIu32 "), %s",
			source->proc, source->program, source->pid,
			source->domain.provider);
		if (*source->domain.policy)
			fprintf(out,
				", policy %s, monitor %s, at most %s in "
				"%" PRIu64 " regions",
				source->domain.policy, source->domain.monitor,
				size_text(source->domain.max_bytes, size),
				source->domain.max_regions);
		fputc('\n', out);
		if (mrrc_trace_get_cost(&source->cost, &cost))
			fprintf(out,
				"  registering p pages takes %.0f * p + "
				"%.0f ns, deregistering %.0f * p + %.0f, "
				"copying %.0f * p + %.0f\n",
				cost.reg_page, cost.reg, cost.dereg_page,
				cost.dereg, cost.copy_page, cost.copy);
	}
}

static void put_counts(const struct trace_summary *summary, FILE *out)
{
	int op, result;

	fprintf(out, "\n%-10s", "");
	for (result = 0; result < MRRC_TRACE_RESULT_CNT; result++)
		fprintf(out, " %10s", mrrc_trace_result_name(result));
	fputc('\n', out);
	for (op = 1; op < MRRC_TRACE_OP_CNT; op++) {
		if (!most_of(summary->count[op], MRRC_TRACE_RESULT_CNT))
			continue;
		fprintf(out, "%-10s", mrrc_trace_op_name(op));
		for (result = 0; result < MRRC_TRACE_RESULT_CNT; result++)
			fprintf(out, " %10" PRIu64, summary->count[op][result]);
		fputc('\n', out);
	}
}

static uint64_t total(const struct trace_summary *summary,
		      enum mrrc_trace_result result)
{
	uint64_t sum = 0;
	int op;

	for (op = 0; op < MRRC_TRACE_OP_CNT; op++)
		sum += summary->count[op][result];
	return sum;
}

static double mean(double sum, uint64_t count)
{
	return count ? sum / (double) count : 0;
}

int trace_show_summary(const struct trace_records *records,
		       const struct trace_summary *summary, FILE *out)
{
	const uint64_t hits = total(summary, MRRC_TRACE_HIT);
	char bytes[16], footprint[16];

	errno = 0;
	put_sources(records, out);
	fprintf(out, "%" PRIu64 " requests in %.6f s, %s; %.1f %% hits\n",
		summary->requests, (double) summary->ns / 1e9,
		size_text(summary->bytes, bytes),
		share(hits, hits + total(summary, MRRC_TRACE_MISS)));
	fprintf(out,
		"%" PRIu64 " processes or domains, %" PRIu64
		" threads, %" PRIu64 " peers, %" PRIu64 " call sites\n",
		summary->procs, summary->threads, summary->peers,
		summary->sites);
	fprintf(out, "%" PRIu64 " different buffers, on %s of pages\n",
		summary->buffers, size_text(summary->footprint, footprint));
	if (summary->priced)
		fprintf(out,
			"%" PRIu64 " requests without a hit took %.3f us "
			"on average, %.3f at most\n",
			summary->priced,
			mean(summary->cost_ns, summary->priced) / 1e3,
			(double) summary->cost_max / 1e3);
	if (summary->ended)
		fprintf(out,
			"%" PRIu64 " requests ended after %.3f us on average\n",
			summary->ended,
			mean(summary->held_ns, summary->ended) / 1e3);
	if (records->dropped)
		fprintf(out,
			"%" PRIu64 " more requests were not recorded, as "
			"the file had no room\n",
			records->dropped);
	put_counts(summary, out);
	fputs("\nBytes\n", out);
	put_log2(summary->size, NULL, 0, true, out);
	fputs("\nReuse distance: other buffers until the same one comes "
	      "again\n",
	      out);
	put_log2(summary->reuse, "first time", summary->first, false, out);
	fputs("\nOverlap: pages that an earlier request had\n", out);
	put_overlap(summary, out);
	if (fflush(out) || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}

/* ---- JSON ---- */

static int set(json_t *to, const char *key, uint64_t value)
{
	/* a larger number would be negative in JSON */
	return json_object_set_new(to, key,
				   value <= INT64_MAX ?
					   json_integer((json_int_t) value) :
					   json_real((double) value));
}

static json_t *json_log2(const uint64_t *count)
{
	json_t *array = json_array(), *bucket;
	unsigned i;

	for (i = 0; i < TRACE_LOG2; i++) {
		if (!count[i])
			continue;
		bucket = json_object();
		set(bucket, "from", trace_log2_from(i));
		set(bucket, "count", count[i]);
		json_array_append_new(array, bucket);
	}
	return array;
}

static json_t *json_overlap(const struct trace_summary *summary)
{
	json_t *array = json_array(), *bucket;
	int i;

	for (i = 0; i < TRACE_SHARES; i++) {
		bucket = json_object();
		json_object_set_new(bucket, "share",
				    json_string(trace_share_names[i]));
		set(bucket, "count", summary->overlap[i]);
		json_array_append_new(array, bucket);
	}
	return array;
}

static json_t *json_counts(const struct trace_summary *summary)
{
	json_t *ops = json_object(), *results;
	int op, result;

	for (op = 1; op < MRRC_TRACE_OP_CNT; op++) {
		results = json_object();
		for (result = 0; result < MRRC_TRACE_RESULT_CNT; result++)
			set(results, mrrc_trace_result_name(result),
			    summary->count[op][result]);
		json_object_set_new(ops, mrrc_trace_op_name(op), results);
	}
	return ops;
}

/* Names of programs may have any bytes. */
static json_t *json_text(const char *text)
{
	json_t *value = json_string(text);

	return value ? value : json_string("?");
}

/* Makes an object with the names of the provider's parameter. */
static json_t *json_cost(const struct mrrc_cost *cost)
{
	json_t *object = json_object();

	json_object_set_new(object, "reg_page", json_real(cost->reg_page));
	json_object_set_new(object, "reg", json_real(cost->reg));
	json_object_set_new(object, "dereg_page", json_real(cost->dereg_page));
	json_object_set_new(object, "dereg", json_real(cost->dereg));
	json_object_set_new(object, "copy_page", json_real(cost->copy_page));
	json_object_set_new(object, "copy", json_real(cost->copy));
	set(object, "page", cost->page);
	json_object_set_new(object, "batch", json_boolean(cost->batch));
	return object;
}

static json_t *json_sources(const struct trace_records *records)
{
	json_t *array = json_array(), *object;
	struct mrrc_cost cost;
	const struct trace_source *source;
	size_t i;

	for (i = 0; i < records->sources; i++) {
		source = &records->source[i];
		object = json_object();
		set(object, "proc", source->proc);
		set(object, "pid", source->pid);
		json_object_set_new(object, "program",
				    json_text(source->program));
		json_object_set_new(object, "provider",
				    json_text(source->domain.provider));
		json_object_set_new(object, "policy",
				    json_text(source->domain.policy));
		json_object_set_new(object, "monitor",
				    json_text(source->domain.monitor));
		set(object, "max_bytes", source->domain.max_bytes);
		set(object, "max_regions", source->domain.max_regions);
		if (mrrc_trace_get_cost(&source->cost, &cost))
			json_object_set_new(object, "cost", json_cost(&cost));
		json_array_append_new(array, object);
	}
	return array;
}

int trace_show_summary_json(const struct trace_records *records,
			    const struct trace_summary *summary, FILE *out)
{
	json_t *root = json_object();
	int ret;

	json_object_set_new(root, "domains", json_sources(records));
	set(root, "requests", summary->requests);
	set(root, "dropped", records->dropped);
	set(root, "bytes", summary->bytes);
	set(root, "duration_ns", summary->ns);
	set(root, "procs", summary->procs);
	set(root, "threads", summary->threads);
	set(root, "peers", summary->peers);
	set(root, "sites", summary->sites);
	set(root, "buffers", summary->buffers);
	set(root, "footprint_bytes", summary->footprint);
	set(root, "cost_max_ns", summary->cost_max);
	json_object_set_new(root, "cost_mean_ns",
			    json_real(mean(summary->cost_ns, summary->priced)));
	json_object_set_new(root, "held_mean_ns",
			    json_real(mean(summary->held_ns, summary->ended)));
	json_object_set_new(root, "counts", json_counts(summary));
	json_object_set_new(root, "size", json_log2(summary->size));
	set(root, "first_time", summary->first);
	json_object_set_new(root, "reuse_distance", json_log2(summary->reuse));
	if (json_object_set_new(root, "overlap", json_overlap(summary))) {
		json_decref(root);
		return -ENOMEM;
	}
	errno = 0;
	ret = json_dumpf(root, out, JSON_INDENT(2));
	json_decref(root);
	fputc('\n', out);
	if (ret || fflush(out) || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}
