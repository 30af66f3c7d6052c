/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writing a trace (trace.h).
 */
#include "config.h"
#include "sim/read.h"
#include "sim/write.h"

#include <errno.h>
#include <inttypes.h>

static bool has_access(const struct sim_trace *trace)
{
	size_t i;

	for (i = 0; i < trace->count; i++) {
		if (trace->req[i].access != SIM_RW)
			return true;
	}
	return false;
}

int sim_trace_write_file(const struct sim_trace *trace, const char *comment,
			 FILE *file)
{
	bool access = has_access(trace), procs = trace->procs > 1;
	const struct sim_req *req;

	errno = 0;
	if (comment)
		fprintf(file, "# %s\n", comment);
	fprintf(file, "time_us,addr,len%s%s\n", procs ? ",proc" : "",
		access ? ",access" : "");
	for (req = trace->req; req < trace->req + trace->count; req++) {
		fprintf(file, "%" PRIu64 ",%" PRIu64 ",%" PRIu64, req->time,
			req->addr, req->len);
		if (procs)
			fprintf(file, ",%" PRIu32, req->proc);
		if (access)
			fprintf(file, ",%s", sim_access_name(req->access));
		if (putc('\n', file) == EOF)
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
