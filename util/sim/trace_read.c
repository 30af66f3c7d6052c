/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads a trace (trace.h): makes requests of the records that read.h reads.
 */
#include "config.h"
#include "sim/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct reading {
	struct sim_trace trace;
	struct mrrc_trace_cost cost[MRRC_TRACE_COSTS];
	struct mrrc_trace_domain domain[MRRC_TRACE_COSTS];
	uint64_t requests[MRRC_TRACE_COSTS]; /* requests of each domain */
};

static void head(void *arg, const struct mrrc_trace_head *from)
{
	struct reading *reading = arg;

	/* without a PID it is a recording of several programs */
	reading->trace.parallel = from->pid ? 1 : 0;
	memcpy(reading->cost, from->cost, sizeof(reading->cost));
	memcpy(reading->domain, from->domain, sizeof(reading->domain));
}

/*
 * Takes the costs and limits of the domain with the most requests, among
 * domains with known costs.
 */
static void take_cost(struct reading *reading)
{
	struct sim_trace *trace = &reading->trace;
	uint64_t most = 0;
	int i;

	for (i = 0; i < MRRC_TRACE_COSTS; i++) {
		if (reading->requests[i] > most &&
		    mrrc_trace_get_cost(&reading->cost[i], &trace->cost)) {
			most = reading->requests[i];
			trace->priced = true;
			trace->max_bytes = reading->domain[i].max_bytes;
			trace->max_regions = reading->domain[i].max_regions;
		}
	}
}

static int add(void *arg, const struct sim_rec *rec, const char **cause)
{
	struct reading *reading = arg;
	int ret;

	if (rec->proc < MRRC_TRACE_COSTS)
		reading->requests[rec->proc]++;
	ret = sim_trace_append(&reading->trace,
			       &(struct sim_req){
				       .time = rec->time_us,
				       .addr = rec->rec.addr,
				       .len = rec->rec.len,
				       .proc = rec->proc,
				       .access = mrrc_trace_access(&rec->rec),
				       .thread = rec->rec.thread,
				       .site = rec->rec.site,
				       .held = rec->held_us,
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

/* Reads a trace. @file NULL: opens the path. */
static int read_trace(FILE *file, const char *path, char *err, size_t err_len,
		      struct sim_trace *trace)
{
	struct reading reading = { 0 };
	const struct sim_sink sink = {
		.add = add,
		.head = head,
		.arg = &reading,
	};
	int ret;

	ret = name_trace(strcmp(path, "-") ? path : "stdin", &reading.trace);
	if (ret) {
		snprintf(err, err_len, "%s: %s", path, strerror(-ret));
		return ret;
	}
	ret = file ? sim_read_file(file, path, err, err_len, &sink) :
		     sim_read(path, err, err_len, &sink);
	if (ret) {
		sim_trace_fini(&reading.trace);
		return ret;
	}
	take_cost(&reading);
	*trace = reading.trace;
	return 0;
}

int sim_trace_read_file(FILE *file, const char *path, char *err, size_t err_len,
			struct sim_trace *trace)
{
	return read_trace(file, path, err, err_len, trace);
}

int sim_trace_read(const char *path, char *err, size_t err_len,
		   struct sim_trace *trace)
{
	return read_trace(NULL, path, err, err_len, trace);
}
