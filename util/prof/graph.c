/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Drives the kernel's function_graph tracer (graph.h). A filter limits tracing
 * to the functions of graph_funcs, so that tracing disturbs the measurement
 * little.
 */
#include "config.h"
#include "prof/graph.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * All functions that the kernel has are traced, except where one function of a
 * kind is enough: if the system call itself can be traced, the later functions
 * of its kind are not.
 */
static const struct {
	const char *name;
	enum prof_func func;
	bool enough;
} graph_funcs[] = {
	{ "__x64_sys_ioctl", PROF_FUNC_CALL, true },
	{ "__arm64_sys_ioctl", PROF_FUNC_CALL, true },
	{ "ib_uverbs_ioctl", PROF_FUNC_CALL, true },
	{ "ib_umem_get", PROF_FUNC_UMEM, false },
	{ "pin_user_pages_fast", PROF_FUNC_PIN, false },
	{ "pin_user_pages", PROF_FUNC_PIN, false },
	{ "ib_umem_release", PROF_FUNC_RELEASE, false },
};

#define FUNCS (sizeof(graph_funcs) / sizeof(*graph_funcs))

/* ---- tracefs ---- */

static int put(const struct prof_graph *graph, const char *name, int flags,
	       const char *text)
{
	char path[128];
	const size_t len = strlen(text);
	int fd, ret = 0;

	snprintf(path, sizeof(path), "%s/%s", graph->dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC | flags);
	if (fd < 0)
		return -errno;
	if (len && write(fd, text, len) != (ssize_t) len)
		ret = -errno;
	close(fd);
	return ret;
}

/* Reads a file's first line. */
static int get(const struct prof_graph *graph, const char *name, char *text,
	       size_t size)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", graph->dir, name);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	if (!fgets(text, (int) size, file))
		text[0] = '\0';
	fclose(file);
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

/* Do the tracer's settings differ from those of an unused tracer? */
static bool is_busy(const struct prof_graph *graph)
{
	static const struct {
		const char *name, *idle;
	} files[] = {
		{ "current_tracer", "nop" },
		{ "tracing_on", "1" },
		{ "events/enable", "0" },
		{ "set_ftrace_filter", "#### all functions enabled ####" },
		{ "set_ftrace_pid", "no pid" },
	};
	char text[64];
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(*files); i++) {
		if (!get(graph, files[i].name, text, sizeof(text)) &&
		    strcmp(text, files[i].idle))
			return true;
	}
	return false;
}

/*
 * Finds the directory of tracefs. Without access to debugfs, as in a container,
 * even root finds tracefs only in the usual place.
 */
static int find_dir(struct prof_graph *graph)
{
	static const char *const dirs[] = {
		"/sys/kernel/tracing",
		"/sys/kernel/debug/tracing",
	};
	char text[64];
	int ret, first = 0;
	size_t i;

	for (i = 0; i < sizeof(dirs) / sizeof(*dirs); i++) {
		snprintf(graph->dir, sizeof(graph->dir), "%s", dirs[i]);
		ret = get(graph, "current_tracer", text, sizeof(text));
		if (!ret)
			return is_busy(graph) ? -EBUSY : 0;
		if ((ret == -EACCES || ret == -EPERM) && (!i || geteuid()))
			return ret;
		if (!i)
			first = ret;
	}
	snprintf(graph->dir, sizeof(graph->dir), "%s", dirs[0]);
	return first;
}

static const char *graph_why(int ret)
{
	switch (-ret) {
	case EACCES:
	case EPERM:
		return geteuid() ? "needs root" :
				   "not even root may, as in a container, or "
				   "where the kernel is locked down";
	case ENOENT:
		return access("/sys/kernel/tracing", F_OK) ?
			       "this kernel has no tracefs" :
			       "no tracefs: mount -t tracefs nodev "
			       "/sys/kernel/tracing";
	case EBUSY:
		return "it is in use, or events, a filter, a pid or "
		       "tracing_on were left other than they are at first";
	case EINVAL:
		return "this kernel has no function_graph tracer";
	case ENOTTY:
		return "this kernel has none of the functions of verbs";
	default:
		return strerror(-ret);
	}
}

/*
 * Sets the filter to the system call itself, and to the functions that take
 * most of the call's time.
 */
static int set_filter(struct prof_graph *graph)
{
	bool has[PROF_FUNC_CNT] = { false }, enough[PROF_FUNC_CNT] = { false };
	enum prof_func func;
	size_t i;
	int ret;

	ret = put(graph, "set_ftrace_filter", O_TRUNC, "");
	for (i = 0; i < FUNCS && !ret; i++) {
		func = graph_funcs[i].func;
		if (enough[func] || put(graph, "set_ftrace_filter", O_APPEND,
					graph_funcs[i].name))
			continue;
		has[func] = true;
		enough[func] = graph_funcs[i].enough;
	}
	if (ret)
		return ret;
	for (i = 0; i < PROF_FUNC_CNT; i++) {
		if (!has[i])
			return -ENOTTY;
	}
	return 0;
}

static int set_up(struct prof_graph *graph)
{
	char tid[24];
	int ret;

	snprintf(tid, sizeof(tid), "%ld", syscall(SYS_gettid));
	ret = put(graph, "tracing_on", 0, "0");
	if (!ret)
		ret = set_filter(graph);
	if (!ret)
		ret = put(graph, "set_ftrace_pid", O_TRUNC, tid);
	if (!ret)
		ret = put(graph, "current_tracer", 0, "function_graph");
	/*
	 * the option funcgraph-tail (function names where calls end) exists
	 * only while function_graph is the current tracer
	 */
	if (!ret)
		ret = put(graph, "options/funcgraph-tail", 0, "1");
	return ret;
}

int prof_graph_open(struct prof_graph *graph, char *why, size_t size)
{
	int ret;

	ret = find_dir(graph);
	if (!ret) {
		ret = set_up(graph);
		if (ret)
			prof_graph_close(graph);
	}
	if (ret)
		snprintf(why, size, "%s: %s", graph->dir, graph_why(ret));
	return ret;
}

void prof_graph_close(struct prof_graph *graph)
{
	put(graph, "tracing_on", 0, "0");
	put(graph, "options/funcgraph-tail", 0, "0");
	put(graph, "current_tracer", 0, "nop");
	put(graph, "set_ftrace_filter", O_TRUNC, "");
	put(graph, "set_ftrace_pid", O_TRUNC, "");
	put(graph, "trace", O_TRUNC, "");
	put(graph, "tracing_on", 0, "1");
}

/* ---- the tracer's output ---- */

/*
 * Finds the function's name in a line of the tracer: after the bar, or in a
 * comment at the line's end.
 */
static const char *line_name(const char *line, size_t *len)
{
	const char *at = strchr(line, '|');

	if (!at)
		return NULL;
	at += 1 + strspn(at + 1, " \t");
	if (*at == '}') {
		at = strstr(at, "/* ");
		if (!at)
			return NULL;
		at += 3;
	} else if (!strstr(at, ");") && !strstr(at, ";")) {
		return NULL; /* a function begins */
	}
	*len = strcspn(at, " (*\n");
	return at;
}

/* Reads the digits before "us" in "3) + 23.456 us |". */
static bool line_us(const char *line, double *us)
{
	const char *bar = strchr(line, '|'), *unit = strstr(line, " us");
	const char *at = unit;
	char *end;

	if (!unit || !bar || unit > bar)
		return false;
	while (at > line && (at[-1] == '.' || (at[-1] >= '0' && at[-1] <= '9')))
		at--;
	*us = strtod(at, &end);
	return end == unit && end != at;
}

bool prof_graph_line(const char *line, enum prof_func *func, double *us)
{
	const char *name;
	size_t len = 0, i;

	name = line_name(line, &len);
	if (!name || !line_us(line, us))
		return false;
	for (i = 0; i < FUNCS; i++) {
		if (strlen(graph_funcs[i].name) == len &&
		    !strncmp(graph_funcs[i].name, name, len)) {
			*func = graph_funcs[i].func;
			return true;
		}
	}
	return false;
}

int prof_graph_start(struct prof_graph *graph)
{
	int ret;

	graph->calls = 0;
	ret = put(graph, "trace", O_TRUNC, "");
	return ret ? ret : put(graph, "tracing_on", 0, "1");
}

/* Reads calls; a called function ends before its caller. */
static void read_calls(struct prof_graph *graph, FILE *file)
{
	struct prof_call call = { 0 };
	enum prof_func func;
	char line[512];
	double us;

	while (fgets(line, sizeof(line), file) && graph->calls < PROF_CALLS) {
		if (!prof_graph_line(line, &func, &us))
			continue;
		call.us[func] += us;
		if (func != PROF_FUNC_CALL)
			continue;
		graph->call[graph->calls++] = call;
		call = (struct prof_call){ 0 };
	}
}

int prof_graph_stop(struct prof_graph *graph)
{
	char path[128];
	FILE *file;
	int ret;

	ret = put(graph, "tracing_on", 0, "0");
	if (ret)
		return ret;
	snprintf(path, sizeof(path), "%s/trace", graph->dir);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	read_calls(graph, file);
	fclose(file);
	return 0;
}
