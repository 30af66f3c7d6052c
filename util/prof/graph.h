/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Measures times of the calling thread, by the kernel's function_graph tracer.
 *
 * The system has only one tracer: these functions do not take the tracer from
 * another user, and restore the tracer's settings.
 */
#ifndef PROF_GRAPH_H
#define PROF_GRAPH_H

#include <stdbool.h>
#include <stddef.h>

/* The measured functions, under the names that kernels have for them. */
enum prof_func {
	PROF_FUNC_CALL,	   /* the system call that uses the device */
	PROF_FUNC_UMEM,	   /* finding, pinning and translating the pages */
	PROF_FUNC_PIN,	   /* a part of UMEM: finding and pinning */
	PROF_FUNC_RELEASE, /* the reverse of UMEM */
	PROF_FUNC_CNT
};

#define PROF_CALLS 64 /* maximum number of stored system calls */

/* The times of a system call and of its parts; 0: not called. */
struct prof_call {
	double us[PROF_FUNC_CNT];
};

struct prof_graph {
	char dir[64];
	struct prof_call call[PROF_CALLS]; /* calls since the last start */
	unsigned calls;
};

/* Opens the tracer. Returns -E*, with the reason and a remedy in @why. */
int prof_graph_open(struct prof_graph *graph, char *why, size_t size);
void prof_graph_close(struct prof_graph *graph);

/* Start and stop tracing the calls of this thread. */
int prof_graph_start(struct prof_graph *graph);
int prof_graph_stop(struct prof_graph *graph);

/*
 * Parses one line of the tracer. Returns false unless a measured function ends
 * in the line.
 */
bool prof_graph_line(const char *line, enum prof_func *func, double *us);

#endif /* PROF_GRAPH_H */
