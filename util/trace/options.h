/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The command line of fi_mrrc_trace. Errors in the command line are printed to
 * stderr, and end the program with status 2.
 */
#ifndef TRACE_OPTIONS_H
#define TRACE_OPTIONS_H

#include "trace/records.h"

enum trace_format { TRACE_TABLE, TRACE_CSV, TRACE_JSON, TRACE_RAW };

struct trace_options {
	char **path;
	size_t paths;
	enum trace_format format;
	bool summary;
	const char *output; /* "-": standard output */
	struct trace_filter filter;
};

void trace_options_parse(int argc, char **argv, struct trace_options *options);
void trace_options_free(struct trace_options *options);

#endif /* TRACE_OPTIONS_H */
