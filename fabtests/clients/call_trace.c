/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * call_trace: preloaded by util/sh/calls.sh. A library that was compiled with
 * -finstrument-functions reports its calls to call_trace, also calls of inlined
 * functions. When the process ends, call_trace writes the calls of the first
 * thread that made one to the file that $CALL_TRACE names. A line of that file
 * has the depth of a call and the function's offset in its library.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CALLS_MAX (1u << 22)

void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);

static struct {
	pthread_t thread;
	bool runs;
	unsigned depth;
	/* number of calls, stored or not */
	size_t count;
	struct {
		void *function;
		unsigned depth;
	} call[CALLS_MAX];
} trace;

void __cyg_profile_func_enter(void *function, void *caller)
{
	if (!trace.runs) {
		trace.thread = pthread_self();
		trace.runs = true;
	}
	if (!pthread_equal(trace.thread, pthread_self()))
		return;
	if (trace.count < CALLS_MAX) {
		trace.call[trace.count].function = function;
		trace.call[trace.count].depth = trace.depth;
	}
	trace.count++;
	trace.depth++;
}

void __cyg_profile_func_exit(void *function, void *caller)
{
	if (trace.runs && pthread_equal(trace.thread, pthread_self()))
		trace.depth--;
}

__attribute__((destructor)) static void trace_write(void)
{
	const char *name = getenv("CALL_TRACE");
	FILE *file = name && trace.count ? fopen(name, "w") : NULL;
	Dl_info info;
	size_t i;

	if (!file)
		return;
	if (trace.count > CALLS_MAX || !dladdr(trace.call[0].function, &info))
		fputs("too many calls\n", file);
	for (i = 0; trace.count <= CALLS_MAX && i < trace.count; i++)
		fprintf(file, "%u %#tx\n", trace.call[i].depth,
			(char *) trace.call[i].function -
				(char *) info.dli_fbase);
	fclose(file);
}
