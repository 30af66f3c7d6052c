/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Computes and reports the gain that a program would have from a cache
 * (gain.h). CSV and JSON reports share one list of figures.
 */
#include "config.h"
#include "sim/gain.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>

#define SECONDS(ns) ((ns) / 1e9)
#define PERCENT(x)  (100 * (x))
#define MIB(x)	    ((double) (x) / (1 << 20))

static const struct {
	const char *name;
	const char *title;
} ways[SIM_GAIN_CNT] = {
	[SIM_GAIN_NONE] = { SIM_NAME_NONE, "no cache" },
	[SIM_GAIN_LF] = { SIM_NAME_LF, "libfabric's cache" },
	[SIM_GAIN_LF_ALL] = { SIM_NAME_LF_ALL, "the same, unlimited" },
	[SIM_GAIN_OURS] = { "ofi_mrrc", "ofi_mrrc" },
	[SIM_GAIN_ALLOC] = { SIM_NAME_ALLOC, "fi_mr_alloc" },
	[SIM_GAIN_STATIC] = { SIM_NAME_STATIC, "static" },
};

/* ---- the advice ---- */

__attribute__((format(printf, 2, 3))) static void
advise(struct sim_gain *gain, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(gain->advice[gain->advices++], SIM_GAIN_LINE, format, args);
	va_end(args);
}

static uint64_t evictions(const struct sim_gain *gain, enum sim_gain_way way)
{
	return gain->row[way].result.stats.value[MRRC_STAT_EVICTIONS];
}

/* Returns the saving of libfabric's cache with room for more regions. */
static double gain_by_count(const struct sim_gain *gain)
{
	return gain->share[SIM_GAIN_LF] - gain->share[SIM_GAIN_LF_ALL];
}

static size_t regions_of(const struct sim_gain *gain)
{
	return gain->row[SIM_GAIN_LF_ALL].result.regions_peak + 1;
}

/* Returns the saving of one way to register, in percent of the run. */
static double saves(const struct sim_gain *gain, enum sim_gain_way way)
{
	return PERCENT(gain->share[SIM_GAIN_NONE] - gain->share[way]);
}

/* Advises which cache to use, and libfabric's limit. */
static void advise_cache(struct sim_gain *gain)
{
	const double *share = gain->share;
	const bool count = gain_by_count(gain) >= SIM_GAIN_LEAST;
	const enum sim_gain_way best = count ? SIM_GAIN_LF_ALL : SIM_GAIN_LF;

	if (share[best] - share[SIM_GAIN_OURS] >= SIM_GAIN_LEAST)
		advise(gain,
		       "Set FI_HOOK=mrrc: it saves %.2f %% of the run, "
		       "libfabric's cache %.2f %%.",
		       saves(gain, SIM_GAIN_OURS), saves(gain, SIM_GAIN_LF));
	else if (count)
		advise(gain,
		       "Set FI_MR_CACHE_MAX_COUNT=%zu: libfabric's cache then "
		       "saves %.2f %% of the run, not %.2f %%; ofi_mrrc would "
		       "save %.2f %%.",
		       regions_of(gain), saves(gain, SIM_GAIN_LF_ALL),
		       saves(gain, SIM_GAIN_LF), saves(gain, SIM_GAIN_OURS));
	else
		advise(gain,
		       "Keep libfabric's cache: it saves %.2f %% of the run, "
		       "ofi_mrrc would save %.2f %%.",
		       saves(gain, SIM_GAIN_LF), saves(gain, SIM_GAIN_OURS));
}

/* Advises higher limits of ofi_mrrc's cache, if the limits cost much. */
static void advise_limits(struct sim_gain *gain)
{
	const uint64_t count = evictions(gain, SIM_GAIN_OURS);

	if (count &&
	    gain->share[SIM_GAIN_OURS] - gain->share[SIM_GAIN_STATIC] >=
		    SIM_GAIN_LEAST)
		advise(gain,
		       "ofi_mrrc evicted %llu regions: raise "
		       "FI_OFI_MRRC_CACHE_MAX_SIZE or "
		       "FI_OFI_MRRC_CACHE_MAX_COUNT.",
		       (unsigned long long) count);
}

static void advise_all(struct sim_gain *gain)
{
	const double *share = gain->share;
	const double ours = share[SIM_GAIN_OURS], lf = share[SIM_GAIN_LF_ALL];
	const double cached = ours < lf ? ours : lf;

	if (gain->run <= 0) {
		advise(gain, "All requests came at one time: there is no run "
			     "to compare with.");
		return;
	}
	if (share[SIM_GAIN_NONE] < SIM_GAIN_LEAST) {
		advise(gain,
		       "Nothing to gain: without a cache, registrations take "
		       "%.2f %% of the run.",
		       PERCENT(share[SIM_GAIN_NONE]));
		return;
	}
	advise_cache(gain);
	advise_limits(gain);
	if (cached - share[SIM_GAIN_ALLOC] >= SIM_GAIN_LEAST)
		advise(gain,
		       "Allocate the buffers by fi_mr_alloc(3): that saves "
		       "another %.2f %% of the run.",
		       PERCENT(cached - share[SIM_GAIN_ALLOC]));
}

void sim_gain(const struct sim_row *row, struct sim_gain *gain)
{
	const struct sim_trace *trace = row->trace;
	const uint64_t us =
		trace->req[trace->count - 1].time - trace->req[0].time;
	int i;

	*gain = (struct sim_gain){
		.row = row,
		.run = us / 1e6 * sim_trace_parallel(trace),
	};
	for (i = 0; i < SIM_GAIN_CNT && gain->run > 0; i++)
		gain->share[i] = SECONDS(sim_total(&row[i].result)) / gain->run;
	advise_all(gain);
}

/* ---- reports ---- */

/* Returns the figures of way i, in the order of the columns. */
#define FIGURES(X)                                          \
	X("registrations", r->registrations)                \
	X("evictions", r->stats.value[MRRC_STAT_EVICTIONS]) \
	X("seconds", SECONDS(sim_total(r)))                 \
	X("on_path_seconds", SECONDS(sim_on_path(r)))       \
	X("share", gain->share[i])                          \
	X("mean_bytes", r->pinned_mean)                     \
	X("peak_bytes", r->pinned_peak)

static void csv(const struct sim_gain *gain, FILE *out)
{
	int i;

	for (i = 0; i < SIM_GAIN_CNT; i++) {
		const struct sim_row *row = &gain->row[i];
		const struct sim_result *r = &row->result;

		sim_csv_text(row->trace->name, out);
		fprintf(out, ",%zu,", row->page);
		sim_csv_text(row->model, out);
		fprintf(out, ",%s", ways[i].name);
#define X(name, value) fprintf(out, ",%.15g", (double) (value));
		FIGURES(X)
#undef X
		fputc('\n', out);
	}
}

static json_t *json(const struct sim_gain *gain)
{
	json_t *object = json_object(), *caches = json_array();
	json_t *advice = json_array(), *cache;
	const struct sim_row *row = gain->row;
	unsigned n;
	int i;

	json_object_set_new(object, "trace", sim_json_text(row->trace->name));
	json_object_set_new(object, "requests",
			    json_integer(row->trace->count));
	json_object_set_new(object, "run_seconds", json_real(gain->run));
	json_object_set_new(object, "footprint_bytes",
			    sim_json_count(row->footprint));
	json_object_set_new(object, "page", json_integer(row->page));
	json_object_set_new(object, "model", sim_json_text(row->model));
	for (i = 0; i < SIM_GAIN_CNT; i++) {
		const struct sim_result *r = &row[i].result;

		cache = json_object();
		json_object_set_new(cache, "cache", json_string(ways[i].name));
#define X(name, value) json_object_set_new(cache, name, sim_json_figure(value));
		FIGURES(X)
#undef X
		json_array_append_new(caches, cache);
	}
	json_object_set_new(object, "caches", caches);
	for (n = 0; n < gain->advices; n++)
		json_array_append_new(advice, json_string(gain->advice[n]));
	json_object_set_new(object, "advice", advice);
	return object;
}

static void table(const struct sim_gain *gain, FILE *out)
{
	const struct sim_trace *trace = gain->row->trace;
	const unsigned parallel = sim_trace_parallel(trace);
	unsigned n;
	int i;

	fprintf(out, "\n%s: %zu requests", trace->name, trace->count);
	if (parallel > 1)
		fprintf(out, " of %u processes", parallel);
	fprintf(out, " in %.3f s, footprint %.1f MiB; model %s\n",
		gain->run / parallel, MIB(gain->row->footprint),
		gain->row->model);
	fprintf(out, "  %-19s %13s %11s %11s %13s\n", "", "registrations",
		"seconds", "of the run", "peak");
	for (i = 0; i < SIM_GAIN_CNT; i++) {
		const struct sim_result *r = &gain->row[i].result;

		if (i == SIM_GAIN_LF_ALL && !evictions(gain, SIM_GAIN_LF))
			/* the saving is equal to that of the limited cache */
			continue;
		fprintf(out, "  %-19s %13llu %11.5f %10.2f%% %10.1fMiB\n",
			ways[i].title, (unsigned long long) r->registrations,
			SECONDS(sim_total(r)), PERCENT(gain->share[i]),
			MIB(r->pinned_peak));
	}
	for (n = 0; n < gain->advices; n++)
		fprintf(out, "  %s\n", gain->advice[n]);
}

int sim_gain_report(const struct sim_row *rows, size_t cnt,
		    enum sim_format format, FILE *out)
{
	json_t *array = json_array();
	struct sim_gain gain;
	size_t i;
	int ret = 0;

	if (format == SIM_CSV) {
		fputs("trace,page,model,cache", out);
#define X(name, value) fputs("," name, out);
		FIGURES(X)
#undef X
		fputc('\n', out);
	}
	for (i = 0; i < cnt; i += SIM_GAIN_CNT) {
		sim_gain(&rows[i], &gain);
		if (format == SIM_CSV)
			csv(&gain, out);
		else if (format == SIM_JSON)
			json_array_append_new(array, json(&gain));
		else
			table(&gain, out);
	}
	if (format == SIM_JSON) {
		ret = json_dumpf(array, out,
				 JSON_INDENT(1) | JSON_REAL_PRECISION(15));
		fputc('\n', out);
	}
	json_decref(array);
	return ret ? -EIO : sim_report_end(out);
}
