/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests, one by one (show.h).
 */
#include "config.h"
#include "trace/show.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int finish(FILE *out)
{
	if (fflush(out) || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}

/* Formats an endpoint or peer: "ep3", "17" or nothing. */
static const char *peer_text(const struct mrrc_trace_rec *rec, char buf[24])
{
	const enum mrrc_trace_peer kind = mrrc_trace_peer(rec);

	buf[0] = '\0';
	if (kind != MRRC_TRACE_NOBODY)
		snprintf(buf, 24, "%s%" PRIu64,
			 kind == MRRC_TRACE_EP ? "ep" : "", rec->peer);
	return buf;
}

int trace_show_table(const struct trace_records *records, FILE *out)
{
	const struct mrrc_trace_rec *rec;
	const uint64_t first = records->count ? records->rec[0].rec.begin : 0;
	char buf[24];
	size_t i;

	errno = 0;
	fprintf(out,
		"%14s %11s %4s %8s %-6s %-6s %-18s %12s %-5s %-6s "
		"%10s %-18s %s\n",
		"time us", "held us", "proc", "thread", "op", "peer", "address",
		"bytes", "acc.", "result", "cost ns", "site", "previous");
	for (i = 0; i < records->count; i++) {
		rec = &records->rec[i].rec;
		fprintf(out, "%14.3f ", (double) (rec->begin - first) / 1e3);
		if (rec->end >= rec->begin)
			fprintf(out, "%11.3f",
				(double) (rec->end - rec->begin) / 1e3);
		else
			fprintf(out, "%11s", "-");
		fprintf(out,
			" %4" PRIu32 " %8" PRIu32 " %-6s %-6s 0x%-16" PRIx64
			" %12" PRIu64 " %-5s %-6s %10" PRIu64 " 0x%-16" PRIx64
			" 0x%" PRIx64 "\n",
			records->rec[i].proc, rec->thread,
			mrrc_trace_op_name(rec->op), peer_text(rec, buf),
			rec->addr, rec->len,
			sim_access_name(mrrc_trace_access(rec)),
			mrrc_trace_result_name(mrrc_trace_result(rec)),
			rec->cost, rec->site, records->rec[i].previous);
		if (ferror(out))
			break;
	}
	return finish(out);
}

int trace_show_csv(const struct trace_records *records, FILE *out)
{
	const struct mrrc_trace_rec *rec;
	const struct sim_rec *at;
	char buf[24];
	size_t i;

	errno = 0;
	fputs("time_us,addr,len,proc,access,result,begin_ns,end_ns,thread,op,"
	      "peer,cost_ns,site,previous\n",
	      out);
	for (i = 0; i < records->count; i++) {
		at = &records->rec[i];
		rec = &at->rec;
		fprintf(out,
			"%" PRIu64 ",0x%" PRIx64 ",%" PRIu64 ",%" PRIu32
			",%s,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu32
			",%s,%s,%" PRIu64 ",0x%" PRIx64 ",0x%" PRIx64 "\n",
			at->time_us, rec->addr, rec->len, at->proc,
			sim_access_name(mrrc_trace_access(rec)),
			mrrc_trace_result_name(mrrc_trace_result(rec)),
			rec->begin, rec->end, rec->thread,
			mrrc_trace_op_name(rec->op), peer_text(rec, buf),
			rec->cost, rec->site, at->previous);
		if (ferror(out))
			break;
	}
	return finish(out);
}

/* Prints a line for each request: no name needs quoting. */
int trace_show_json(const struct trace_records *records, FILE *out)
{
	const struct mrrc_trace_rec *rec;
	const struct sim_rec *at;
	char buf[24];
	size_t i;

	errno = 0;
	for (i = 0; i < records->count; i++) {
		at = &records->rec[i];
		rec = &at->rec;
		fprintf(out,
			"{\"begin_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64
			", \"proc\": %" PRIu32 ", \"thread\": %" PRIu32
			", \"op\": \"%s\", \"peer\": \"%s\", \"addr\": %" PRIu64
			", \"len\": %" PRIu64 ", \"access\": \"%s\", "
			"\"result\": \"%s\", \"cost_ns\": %" PRIu64
			", \"site\": %" PRIu64 ", \"previous\": %" PRIu64 "}\n",
			rec->begin, rec->end, at->proc, rec->thread,
			mrrc_trace_op_name(rec->op), peer_text(rec, buf),
			rec->addr, rec->len,
			sim_access_name(mrrc_trace_access(rec)),
			mrrc_trace_result_name(mrrc_trace_result(rec)),
			rec->cost, rec->site, at->previous);
		if (ferror(out))
			break;
	}
	return finish(out);
}

/* ---- as the provider writes it ---- */

static int put_head(const struct trace_records *records, FILE *out)
{
	union {
		struct mrrc_trace_head head;
		char page[MRRC_TRACE_HEAD];
	} head = { .head = {
			   .version = MRRC_TRACE_VERSION,
			   .head_size = MRRC_TRACE_HEAD,
			   .rec_size = sizeof(struct mrrc_trace_rec),
			   .chunk_size = MRRC_TRACE_CHUNK,
			   .page = records->page,
			   .start = records->start,
			   .dropped = records->dropped,
			   .domains = records->procs,
		   } };
	const struct trace_source *source;
	size_t i;

	memcpy(head.head.magic, MRRC_TRACE_MAGIC, sizeof(head.head.magic));
	for (i = 0; i < records->sources; i++) {
		source = &records->source[i];
		if (source->proc < MRRC_TRACE_DOMAINS)
			head.head.domain[source->proc] = source->domain;
		if (source->proc < MRRC_TRACE_COSTS)
			head.head.cost[source->proc] = source->cost;
	}
	/* records of several processes, which may have one PID, name no program */
	if (records->files == 1 && records->sources) {
		head.head.pid = records->source[0].pid;
		memcpy(head.head.program, records->source[0].program,
		       sizeof(head.head.program));
	}
	mrrc_trace_swap_head(&head.head);
	fwrite(&head, sizeof(head), 1, out);
	return finish(out);
}

int trace_show_raw(const struct trace_records *records, FILE *out)
{
	struct mrrc_trace_rec rec;
	size_t i;
	int ret;

	if (records->procs > UINT16_MAX + 1)
		return -ERANGE;
	errno = 0;
	ret = put_head(records, out);
	for (i = 0; i < records->count && !ret; i++) {
		rec = records->rec[i].rec;
		rec.domain = records->rec[i].proc;
		mrrc_trace_swap_rec(&rec);
		if (fwrite(&rec, sizeof(rec), 1, out) != 1)
			break;
	}
	return ret ? ret : finish(out);
}
