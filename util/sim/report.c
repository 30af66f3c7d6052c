/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reports (report.h). One list of figures serves CSV and JSON.
 */
#include "config.h"
#include "sim/report.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define MS(ns) ((ns) / 1e6)

static double sim_share(uint64_t part, uint64_t whole)
{
	return whole ? (double) part / (double) whole : 0;
}

/* Returns the figures of a row, in the order of the columns. */
#define SIM_FIGURES(X)                                             \
	X("requests", r->requests)                                 \
	X("hits", r->hits)                                         \
	X("hit_ratio", sim_share(r->hits, r->requests))            \
	X("byte_hit_ratio", sim_share(r->hit_bytes, r->bytes))     \
	X("pieces_per_request", sim_share(r->pieces, r->requests)) \
	X("registrations", r->registrations)                       \
	X("registered_pages", r->registered_pages)                 \
	X("deregistrations", r->deregistrations)                   \
	X("deregistered_pages", r->deregistered_pages)             \
	X("batches", r->batches)                                   \
	X("bounced", r->bounced)                                   \
	X("used_once", r->used_once)                               \
	X("evictions", r->stats.value[MRRC_STAT_EVICTIONS])        \
	X("splits", r->stats.value[MRRC_STAT_SPLITS])              \
	X("merges", r->stats.value[MRRC_STAT_MERGES])              \
	X("overlaps", r->stats.value[MRRC_STAT_OVERLAPS])          \
	X("registration_ms", MS(r->reg_ns))                        \
	X("deregistration_ms", MS(r->dereg_ns))                    \
	X("copy_ms", MS(r->copy_ns))                               \
	X("on_path_ms", MS(sim_on_path(r)))                        \
	X("off_path_ms", MS(sim_total(r) - sim_on_path(r)))        \
	X("total_ms", MS(sim_total(r)))                            \
	X("pinned_mean_bytes", r->pinned_mean)                     \
	X("pinned_peak_bytes", r->pinned_peak)

/* ---- CSV ---- */

/* Prints a text, in quotes if it contains a comma or a quote. */
void sim_csv_text(const char *text, FILE *out)
{
	if (!strpbrk(text, ",\"\n")) {
		fputs(text, out);
		return;
	}
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static void sim_csv_row(const struct sim_row *row, FILE *out)
{
	const struct sim_result *r = &row->result;

	sim_csv_text(row->trace->name, out);
	fprintf(out, ",%zu,", row->page);
	sim_csv_text(row->model, out);
	fprintf(out, ",%.10g,%zu,", row->limit->bytes ? 0 : row->limit->percent,
		row->max_bytes);
	if (row->count != SIZE_MAX)
		fprintf(out, "%zu", row->count);
	fputc(',', out);
	sim_csv_text(row->policy, out);
#define X(name, value) fprintf(out, ",%.15g", (double) (value));
	SIM_FIGURES(X)
#undef X
	fputc('\n', out);
}

static void sim_csv(const struct sim_row *rows, size_t cnt, FILE *out)
{
	size_t i;

	fputs("trace,page,model,percent,max_bytes,max_regions,policy", out);
#define X(name, value) fputs("," name, out);
	SIM_FIGURES(X)
#undef X
	fputc('\n', out);
	for (i = 0; i < cnt; i++)
		sim_csv_row(&rows[i], out);
}

/* ---- JSON ---- */

/* Makes a string for JSON, without bytes that are not UTF-8. */
json_t *sim_json_text(const char *text)
{
	json_t *string = json_string(text);

	return string ? string : json_string("(not UTF-8)");
}

json_t *sim_json_count(uint64_t count)
{
	/* a larger integer would be negative in JSON */
	return count <= INT64_MAX ? json_integer((json_int_t) count) :
				    json_real((double) count);
}

static json_t *sim_json_row(const struct sim_row *row)
{
	const struct sim_result *r = &row->result;
	json_t *object = json_object();
	json_t *pinned = json_array();
	size_t i;

	json_object_set_new(object, "trace", sim_json_text(row->trace->name));
	json_object_set_new(object, "footprint_bytes",
			    sim_json_count(row->footprint));
	json_object_set_new(object, "page", json_integer(row->page));
	json_object_set_new(object, "model", sim_json_text(row->model));
	json_object_set_new(object, "max_bytes",
			    sim_json_count(row->max_bytes));
	if (row->count != SIZE_MAX)
		json_object_set_new(object, "max_regions",
				    sim_json_count(row->count));
	json_object_set_new(object, "policy", json_string(row->policy));
#define X(name, value) \
	json_object_set_new(object, name, sim_json_figure(value));
	SIM_FIGURES(X)
#undef X
	for (i = 0; i < SIM_SERIES; i++)
		json_array_append_new(pinned, sim_json_count(r->pinned[i]));
	json_object_set_new(object, "pinned_over_time", pinned);
	return object;
}

static int sim_json(const struct sim_row *rows, size_t cnt, FILE *out)
{
	json_t *array = json_array();
	size_t i;
	int ret;

	for (i = 0; i < cnt; i++)
		json_array_append_new(array, sim_json_row(&rows[i]));
	ret = json_dumpf(array, out, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
	json_decref(array);
	fputc('\n', out);
	return ret ? -EIO : 0;
}

/* ---- table ---- */

static void sim_table_head(const struct sim_row *row, FILE *out)
{
	fprintf(out, "\n%s: %zu requests", row->trace->name, row->trace->count);
	if (row->trace->procs > 1)
		fprintf(out, " of %u processes", row->trace->procs);
	fprintf(out, ", footprint %.1f MiB; limit %.1f MiB",
		row->footprint / 1048576.0, row->max_bytes / 1048576.0);
	if (!row->limit->bytes)
		fprintf(out, " (%g%%)", row->limit->percent);
	if (row->count != SIZE_MAX)
		fprintf(out, ", %zu regions", row->count);
	if (row->trace->procs > 1)
		fputs(" each", out);
	fprintf(out, "; pages of %zu; model %s\n", row->page, row->model);
	fprintf(out, "  %-28s %6s %6s %6s %10s %10s %10s %6s\n", "policy",
		"hits", "bytes", "pieces", "on path", "off path", "total",
		"ratio");
}

static void sim_table_row(const struct sim_row *row, double first, FILE *out)
{
	const struct sim_result *r = &row->result;
	const double total = sim_total(r);

	if (!strcmp(row->policy, SIM_NAME_BOUND)) {
		fprintf(out, "  %-28s %6s %6s %6s %10s %10s %8.1fms %6.3f\n",
			row->policy, "", "", "", "", "", MS(total),
			first > 0 ? total / first : 0);
		return;
	}
	fprintf(out,
		"  %-28s %5.1f%% %5.1f%% %6.2f %8.1fms %8.1fms %8.1fms "
		"%6.3f\n",
		row->policy, 100 * sim_share(r->hits, r->requests),
		100 * sim_share(r->hit_bytes, r->bytes),
		sim_share(r->pieces, r->requests), MS(sim_on_path(r)),
		MS(total - sim_on_path(r)), MS(total),
		first > 0 ? total / first : 0);
}

static void sim_table(const struct sim_grid *grid, const struct sim_row *rows,
		      size_t cnt, FILE *out)
{
	double first = 0;
	size_t i;

	for (i = 0; i < cnt; i++) {
		if (i % grid->policies == 0) {
			first = sim_total(&rows[i].result);
			sim_table_head(&rows[i], out);
		}
		sim_table_row(&rows[i], first, out);
	}
}

int sim_report_end(FILE *out)
{
	errno = 0;
	if (fflush(out) || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}

int sim_report(const struct sim_grid *grid, const struct sim_row *rows,
	       size_t cnt, enum sim_format format, FILE *out)
{
	int ret = 0;

	switch (format) {
	case SIM_CSV:
		sim_csv(rows, cnt, out);
		break;
	case SIM_JSON:
		ret = sim_json(rows, cnt, out);
		break;
	default:
		sim_table(grid, rows, cnt, out);
	}
	return ret ? ret : sim_report_end(out);
}
