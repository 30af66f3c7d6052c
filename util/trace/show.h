/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Prints requests and summaries for people and programs. All functions flush,
 * and return 0 or -E*.
 */
#ifndef TRACE_SHOW_H
#define TRACE_SHOW_H

#include "trace/summary.h"

int trace_show_table(const struct trace_records *records, FILE *out);
int trace_show_csv(const struct trace_records *records, FILE *out);
int trace_show_json(const struct trace_records *records, FILE *out);
/*
 * Prints records in the provider's format; -ERANGE: more than 65536 processes.
 */
int trace_show_raw(const struct trace_records *records, FILE *out);

int trace_show_summary(const struct trace_records *records,
		       const struct trace_summary *summary, FILE *out);
int trace_show_summary_json(const struct trace_records *records,
			    const struct trace_summary *summary, FILE *out);

#endif /* TRACE_SHOW_H */
