/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests with any bytes that the readers of traces either refuse the bytes, or
 * make a valid trace that reads the same after it was written, as CSV and as a
 * recording.
 */
#include "config.h"
#include "sim/libfabric.h"
#include "sim/trace.h"
#include "trace/show.h"
#include "test/fuzz/fuzz.h"

const char fuzz_corpus[] = "util/sim/test/corpus_trace";
const bool fuzz_each_byte = false;

static int read_mem(const void *data, size_t size, char *err,
		    struct sim_trace *trace)
{
	FILE *file = fmemopen((void *) data, size, "rb");
	int ret;

	must(file);
	ret = sim_trace_read_file(file, "fuzz", err, SIM_ERR_MAX, trace);
	fclose(file);
	return ret;
}

static void check_same(const struct sim_trace *trace,
		       const struct sim_trace *again)
{
	must(again->count == trace->count);
	must(again->procs == trace->procs);
	must(!memcmp(again->req, trace->req,
		     trace->count * sizeof(*trace->req)));
}

/* Simulates libfabric's cache, limited to a few regions, over this trace. */
static void check_libfabric(const struct sim_trace *trace)
{
	struct sim_result result;
	const struct sim_cell cell = {
		.trace = trace,
		.max_bytes = SIZE_MAX,
		.max_regions = 3,
		.page = 4096,
		.cost = &mrrc_cost_default,
	};

	must(!sim_lf_run(&cell, &result));
	must(result.requests == trace->count);
	must(result.hits + result.registrations == trace->count);
	must(result.deregistrations <= result.registrations);
}

static void check_trace(const struct sim_trace *trace)
{
	struct sim_trace again;
	char err[SIM_ERR_MAX];
	uint64_t bytes;
	size_t size;
	char *text;
	FILE *file;

	must(trace->count && sim_trace_valid(trace));
	must(!sim_trace_footprint(trace, 4096, &bytes));
	must(bytes >= 4096);
	check_libfabric(trace);
	file = open_memstream(&text, &size);
	must(file);
	must(!sim_trace_write_file(trace, "written", file));
	fclose(file);
	must(!read_mem(text, size, err, &again));
	check_same(trace, &again);
	sim_trace_fini(&again);
	free(text);
}

static void check_message(const char *err)
{
	must(memchr(err, '\0', SIM_ERR_MAX));
	must(!strncmp(err, "fuzz:", 5));
	must(!strpbrk(err, "\r\n\t\033"));
}

/* ---- all fields of records ---- */

static int read_records(const void *data, size_t size, char *err,
			struct trace_records *records)
{
	FILE *file = fmemopen((void *) data, size, "rb");
	int ret;

	must(file);
	*records = (struct trace_records){ 0 };
	ret = trace_records_read_file(records, file, "fuzz", err, SIM_ERR_MAX);
	fclose(file);
	return ret;
}

static void check_records_again(const struct trace_records *records,
				int (*show)(const struct trace_records *records,
					    FILE *out),
				bool raw)
{
	struct trace_records again;
	char err[SIM_ERR_MAX];
	size_t size, i;
	char *text;
	FILE *file;

	file = open_memstream(&text, &size);
	must(file);
	must(!show(records, file));
	fclose(file);
	must(!read_records(text, size, err, &again));
	must(again.count == records->count);
	for (i = 0; i < again.count; i++) {
		/* what is recorded has no domain besides proc, and the order
		 * of threads, hence what came before, may be another */
		again.rec[i].rec.domain = records->rec[i].rec.domain;
		if (raw) {
			again.rec[i].previous = records->rec[i].previous;
			again.rec[i].time_us = records->rec[i].time_us;
		}
		must(raw || !memcmp(&again.rec[i].rec, &records->rec[i].rec,
				    sizeof(records->rec[i].rec)));
		must(again.rec[i].rec.begin == records->rec[i].rec.begin);
		must(raw || again.rec[i].proc == records->rec[i].proc);
	}
	trace_records_fini(&again);
	free(text);
}

static void check_records(const void *data, size_t size)
{
	struct trace_records records;
	struct trace_summary summary;
	char err[SIM_ERR_MAX];
	uint64_t sum = 0;
	FILE *file;
	size_t i;

	if (read_records(data, size, err, &records)) {
		check_message(err);
		trace_records_fini(&records);
		return;
	}
	trace_records_sort(&records);
	for (i = 1; i < records.count; i++)
		must(records.rec[i].rec.begin >= records.rec[i - 1].rec.begin);
	must(!trace_summary(&records, &summary));
	must(summary.requests == records.count);
	for (i = 0; i < TRACE_SHARES; i++)
		sum += summary.overlap[i];
	for (i = 0; i < TRACE_LOG2; i++)
		sum -= summary.reuse[i];
	must(sum == summary.first);
	file = fopen("/dev/null", "w");
	must(file);
	must(!trace_show_summary(&records, &summary, file));
	must(!trace_show_table(&records, file));
	fclose(file);
	/* times of a CSV file may be any */
	if (size > 8 && !memcmp(data, MRRC_TRACE_MAGIC, 8))
		check_records_again(&records, trace_show_csv, false);
	check_records_again(&records, trace_show_raw, true);
	trace_records_fini(&records);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sim_trace trace;
	char err[SIM_ERR_MAX];

	if (!size)
		return 0;
	check_records(data, size);
	if (read_mem(data, size, err, &trace)) {
		check_message(err);
		return 0;
	}
	check_trace(&trace);
	sim_trace_fini(&trace);
	return 0;
}
