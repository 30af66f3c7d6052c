/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reading a trace (trace.h): what read.h reads becomes requests.
 */
#include "config.h"
#include "sim/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int add(void *arg, const struct sim_rec *rec, const char **cause)
{
	int ret;

	ret = sim_trace_append(arg, &(struct sim_req) {
		.time = rec->time_us,
		.addr = rec->rec.addr,
		.len = rec->rec.len,
		.proc = rec->proc,
		.access = mrrc_trace_access(&rec->rec),
	});
	if (ret == -EFBIG)
		*cause = "more than 2^32 requests";
	return ret;
}

static void cut_suffix(char *name, const char *suffix)
{
	size_t len = strlen(name), cut = strlen(suffix);

	if (len > cut && !strcmp(name + len - cut, suffix))
		name[len - cut] = '\0';
}

static int name_trace(const char *path, struct sim_trace *trace)
{
	const char *slash = strrchr(path, '/');
	int ret;

	ret = sim_trace_init(trace, slash ? slash + 1 : path);
	if (ret)
		return ret;
	cut_suffix(trace->name, ".xz");
	cut_suffix(trace->name, ".csv");
	return 0;
}

/* FILE NULL: the path is opened. */
static int read_trace(FILE *file, const char *path, char *err, size_t err_len,
		      struct sim_trace *trace)
{
	struct sim_trace out;
	const struct sim_sink sink = { .add = add, .arg = &out };
	int ret;

	ret = name_trace(strcmp(path, "-") ? path : "stdin", &out);
	if (ret) {
		snprintf(err, err_len, "%s: %s", path, strerror(-ret));
		return ret;
	}
	ret = file ? sim_read_file(file, path, err, err_len, &sink) :
		     sim_read(path, err, err_len, &sink);
	if (ret)
		sim_trace_fini(&out);
	else
		*trace = out;
	return ret;
}

int sim_trace_read_file(FILE *file, const char *path, char *err,
			size_t err_len, struct sim_trace *trace)
{
	return read_trace(file, path, err, err_len, trace);
}

int sim_trace_read(const char *path, char *err, size_t err_len,
		   struct sim_trace *trace)
{
	return read_trace(NULL, path, err, err_len, trace);
}
