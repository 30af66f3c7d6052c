/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_trace: converts the provider's recordings for people, the simulator
 * and other programs (fi_mrrc_trace(1)).
 */
#include "config.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "out.h"
#include "sim/write.h"
#include "trace/options.h"
#include "trace/show.h"

struct result {
	const struct trace_options *options;
	const struct trace_records *records;
	struct trace_summary summary;
};

static int complain(const char *text)
{
	fprintf(stderr, "fi_mrrc_trace: %s\n", text);
	return EXIT_FAILURE;
}

static int show(FILE *out, void *arg)
{
	const struct result *result = arg;

	if (result->options->summary)
		return result->options->format == TRACE_JSON ?
			       trace_show_summary_json(result->records,
						       &result->summary, out) :
			       trace_show_summary(result->records,
						  &result->summary, out);
	switch (result->options->format) {
	case TRACE_CSV:
		return trace_show_csv(result->records, out);
	case TRACE_JSON:
		return trace_show_json(result->records, out);
	case TRACE_RAW:
		return trace_show_raw(result->records, out);
	default:
		return trace_show_table(result->records, out);
	}
}

static int load(const struct trace_options *options,
		struct trace_records *records, size_t *read)
{
	char err[SIM_ERR_MAX];
	size_t i;

	for (i = 0; i < options->paths; i++) {
		if (trace_records_read(records, options->path[i], err,
				       sizeof(err)))
			return complain(err);
	}
	*read = records->count;
	trace_records_sort(records);
	trace_records_filter(records, &options->filter);
	return 0;
}

static bool registers(const struct trace_records *records)
{
	size_t i;

	for (i = 0; i < records->sources; i++) {
		if (*records->source[i].domain.policy)
			return true;
	}
	return false;
}

/* Prints why there is nothing to show. @read: requests before the filters. */
static void explain(const struct trace_records *records, size_t read)
{
	if (read)
		fprintf(stderr,
			"fi_mrrc_trace: none of the %zu requests passes the "
			"filters\n",
			read);
	else if (records->dropped)
		complain("no request found room: raise FI_OFI_MRRC_TRACE_SIZE");
	else if (!records->start) /* not recorded */
		complain("no requests");
	else if (!registers(records))
		complain("no requests: the domains registered nothing, as over "
			 "tcp; FI_OFI_MRRC_REGISTER=always has them do so");
	else
		complain("no requests: the program used no buffer that had to "
			 "be registered before the recording ended");
}

static int run(const struct trace_options *options,
	       struct trace_records *records)
{
	struct result result = { .options = options, .records = records };
	char err[SIM_ERR_MAX];
	size_t read;
	int ret;

	ret = load(options, records, &read);
	if (ret)
		return ret;
	/* programs that read the output want no words */
	if (!records->count &&
	    (options->summary || options->format == TRACE_TABLE))
		explain(records, read);
	if (options->summary) {
		ret = trace_summary(records, &result.summary);
		if (ret)
			return complain(strerror(-ret));
	}
	if (sim_write(options->output, show, &result, err, sizeof(err)))
		return complain(err);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct trace_records records = { 0 };
	struct trace_options options;
	int ret;

	out_check_at_exit("fi_mrrc_trace");
	argp_program_version = PACKAGE_STRING;
	trace_options_parse(argc, argv, &options);
	ret = run(&options, &records);
	trace_records_fini(&records);
	trace_options_free(&options);
	return ret;
}
