/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writing a trace (trace.h).
 */
#include "config.h"
#include "sim/read.h"
#include "sim/write.h"

#include <errno.h>
#include <inttypes.h>

/* The columns whose values differ from the defaults of a reader. */
struct columns {
	bool proc, access, end, thread, site;
};

static struct columns columns_of(const struct sim_trace *trace)
{
	struct columns columns = { .proc = trace->procs > 1 };
	const struct sim_req *req;

	for (req = trace->req; req < trace->req + trace->count; req++) {
		columns.access |= req->access != SIM_RW;
		columns.end |= req->held != 0;
		columns.thread |= req->thread != 0;
		columns.site |= req->site != 0;
	}
	return columns;
}

static void write_head(const struct columns *columns, FILE *file)
{
	fprintf(file, "time_us,addr,len%s%s%s%s%s\n",
		columns->proc ? ",proc" : "", columns->access ? ",access" : "",
		columns->end ? ",end_ns" : "", columns->thread ? ",thread" : "",
		columns->site ? ",site" : "");
}

/* Returns the end of a request; 0 would mean that the request had not ended. */
static uint64_t end_ns(const struct sim_req *req)
{
	return req->held == SIM_ENDLESS ? 0 :
					  (req->time + req->held) * 1000 + 1;
}

static bool write_req(const struct columns *columns, const struct sim_req *req,
		      FILE *file)
{
	fprintf(file, "%" PRIu64 ",%" PRIu64 ",%" PRIu64, req->time, req->addr,
		req->len);
	if (columns->proc)
		fprintf(file, ",%" PRIu32, (uint32_t) req->proc);
	if (columns->access)
		fprintf(file, ",%s", sim_access_name(req->access));
	if (columns->end)
		fprintf(file, ",%" PRIu64, end_ns(req));
	if (columns->thread)
		fprintf(file, ",%" PRIu32, req->thread);
	if (columns->site)
		fprintf(file, ",0x%" PRIx64, req->site);
	return putc('\n', file) != EOF;
}

int sim_trace_write_file(const struct sim_trace *trace, const char *comment,
			 FILE *file)
{
	const struct columns columns = columns_of(trace);
	size_t i;

	errno = 0;
	if (comment)
		fprintf(file, "# %s\n", comment);
	write_head(&columns, file);
	for (i = 0; i < trace->count; i++) {
		if (!write_req(&columns, &trace->req[i], file))
			break;
	}
	if (fflush(file) || ferror(file))
		return errno ? -errno : -EIO;
	return 0;
}

struct put {
	const struct sim_trace *trace;
	const char *comment;
};

static int put(FILE *file, void *arg)
{
	const struct put *what = arg;

	return sim_trace_write_file(what->trace, what->comment, file);
}

int sim_trace_write(const struct sim_trace *trace, const char *comment,
		    const char *path, char *err, size_t err_len)
{
	struct put what = { trace, comment };

	return sim_write(path, put, &what, err, err_len);
}
