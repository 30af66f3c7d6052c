/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reports of helpers (report.h). One list of figures serves CSV and JSON. */
#include "config.h"
#include "sim/report.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static double share(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

/* The figures, in the order of the columns. */
#define FIGURES(X)                                             \
	X("requests", r->requests)                             \
	X("first", r->first)                                   \
	X("late", r->late)                                     \
	X("late_ratio", sim_helper_late(r))                    \
	X("registrations", r->registrations)                   \
	X("predicted", r->predicted)                           \
	X("within_5", share(r->within_5, r->predicted))        \
	X("within_05", share(r->within_05, r->predicted))      \
	X("mean_bytes", r->mean_bytes)                         \
	X("mean_ratio", share(r->mean_bytes, row->leave_mean)) \
	X("peak_bytes", r->peak_bytes)                         \
	X("peak_ratio", share(r->peak_bytes, row->leave_peak))

static void csv(const struct sim_helper_row *rows, size_t cnt, FILE *out)
{
	const struct sim_helper_row *row;

	fputs("trace,page,model,helper,idle_us", out);
#define X(name, value) fputs("," name, out);
	FIGURES(X)
#undef X
	fputc('\n', out);
	for (row = rows; row < rows + cnt; row++) {
		const struct sim_helper_result *r = &row->result;

		sim_csv_text(row->trace->name, out);
		fprintf(out, ",%zu,", row->page);
		sim_csv_text(row->model, out);
		fprintf(out, ",%s,", row->helper);
		if (row->kind == SIM_HELPER_TIMEOUT)
			fprintf(out, "%.15g", (double) row->idle_us);
#define X(name, value) fprintf(out, ",%.15g", (double) (value));
		FIGURES(X)
#undef X
		fputc('\n', out);
	}
}

static json_t *json_row(const struct sim_helper_row *row)
{
	const struct sim_helper_result *r = &row->result;
	json_t *object = json_object();
	json_t *bytes = json_array();
	size_t i;

	json_object_set_new(object, "trace", sim_json_text(row->trace->name));
	json_object_set_new(object, "footprint_bytes",
			    json_integer(row->footprint));
	json_object_set_new(object, "page", json_integer(row->page));
	json_object_set_new(object, "model", sim_json_text(row->model));
	json_object_set_new(object, "helper", json_string(row->helper));
	if (row->kind == SIM_HELPER_TIMEOUT)
		json_object_set_new(object, "idle_us",
				    json_integer(row->idle_us));
#define X(name, value) \
	json_object_set_new(object, name, sim_json_figure(value));
	FIGURES(X)
#undef X
	for (i = 0; i < SIM_SERIES_TIME; i++)
		json_array_append_new(bytes, json_integer(r->bytes[i]));
	json_object_set_new(object, "bytes_over_time", bytes);
	return object;
}

static int json(const struct sim_helper_row *rows, size_t cnt, FILE *out)
{
	json_t *array = json_array();
	size_t i;
	int ret;

	for (i = 0; i < cnt; i++)
		json_array_append_new(array, json_row(&rows[i]));
	ret = json_dumpf(array, out, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
	json_decref(array);
	fputc('\n', out);
	return ret ? -EIO : 0;
}

/* ---- table ---- */

static void table_head(const struct sim_helper_row *row, FILE *out)
{
	const struct sim_trace *trace = row->trace;

	fprintf(out, "\n%s: %zu requests", trace->name, trace->count);
	if (trace->procs > 1)
		fprintf(out, " of %u processes", trace->procs);
	fprintf(out, " in %.3f s, footprint %.1f MiB; pages of %zu; model %s\n",
		(trace->req[trace->count - 1].time - trace->req[0].time) / 1e6,
		row->footprint / 1048576.0, row->page, row->model);
	fprintf(out, "  %-18s %10s %6s %10s %6s %7s %7s %7s %8s\n", "helper",
		"average", "ratio", "peak", "ratio", "late", "in 5%", "in .5%",
		"regs");
}

static void table_row(const struct sim_helper_row *row, FILE *out)
{
	const struct sim_helper_result *r = &row->result;
	char name[64];

	snprintf(name, sizeof(name), "%s", row->helper);
	if (!strcmp(name, "timeout"))
		snprintf(name, sizeof(name), "timeout:us=%llu",
			 (unsigned long long) row->idle_us);
	fprintf(out, "  %-18s %7.2fMiB %6.3f %7.2fMiB %6.3f %6.2f%%", name,
		r->mean_bytes / 1048576, share(r->mean_bytes, row->leave_mean),
		r->peak_bytes / 1048576.0,
		share(r->peak_bytes, row->leave_peak),
		100 * sim_helper_late(r));
	if (r->predicted)
		fprintf(out, " %6.1f%% %6.1f%%",
			100 * share(r->within_5, r->predicted),
			100 * share(r->within_05, r->predicted));
	else
		fprintf(out, " %7s %7s", "", "");
	fprintf(out, " %8llu\n", (unsigned long long) r->registrations);
}

int sim_helpers_report(const struct sim_grid *grid,
		       const struct sim_helper_row *rows, size_t cnt,
		       enum sim_format format, FILE *out)
{
	size_t i;
	int ret = 0;

	switch (format) {
	case SIM_CSV:
		csv(rows, cnt, out);
		break;
	case SIM_JSON:
		ret = json(rows, cnt, out);
		break;
	default:
		for (i = 0; i < cnt; i++) {
			if (i % grid->helpers == 0)
				table_head(&rows[i], out);
			table_row(&rows[i], out);
		}
	}
	return ret ? ret : sim_report_end(out);
}
