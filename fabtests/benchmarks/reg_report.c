/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A library that is preloaded into an MPI program with reg_count.c, and at the
 * program's end prints "reg_report REGISTRATIONS STARTED PEAK NS START CPU" to
 * stderr: the number of the device's registrations, the number until MPI_Init()
 * had returned, the maximum bytes registered at a time, the nanoseconds of
 * registering and deregistering, and the processor time (ms) until MPI_Init()
 * had returned and in all.
 */
#define _GNU_SOURCE
#include "reg_count.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>

#define SHOWN __attribute__((visibility("default")))

static uint64_t started;
static double start; /* 0: MPI_Init() has not returned, in this process */

static double processor_ms(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (double) (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e3 +
	       (double) (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e3;
}

static void init_done(void)
{
	start = processor_ms();
	started = reg_count();
}

/* C programs call MPI_Init*(), Fortran's MPI library calls PMPI_Init*(). */
#define INIT(name)                                          \
	SHOWN int name(int *argc, char ***argv);            \
	int name(int *argc, char ***argv)                   \
	{                                                   \
		int (*real)(int *, char ***);               \
		int ret;                                    \
                                                            \
		*(void **) &real = dlsym(RTLD_NEXT, #name); \
		ret = real(argc, argv);                     \
		init_done();                                \
		return ret;                                 \
	}
#define INIT_THREAD(name)                                            \
	SHOWN int name(int *argc, char ***argv, int want, int *got); \
	int name(int *argc, char ***argv, int want, int *got)        \
	{                                                            \
		int (*real)(int *, char ***, int, int *);            \
		int ret;                                             \
                                                                     \
		*(void **) &real = dlsym(RTLD_NEXT, #name);          \
		ret = real(argc, argv, want, got);                   \
		init_done();                                         \
		return ret;                                          \
	}

__attribute__((constructor)) static void begin(void)
{
	reg_count_time();
}

INIT(MPI_Init)
INIT(PMPI_Init)
INIT_THREAD(MPI_Init_thread)
INIT_THREAD(PMPI_Init_thread)

__attribute__((destructor)) static void report(void)
{
	if (start > 0)
		fprintf(stderr, "reg_report %llu %llu %llu %llu %.1f %.1f\n",
			(unsigned long long) reg_count(),
			(unsigned long long) started,
			(unsigned long long) reg_count_peak(),
			(unsigned long long) reg_count_ns(), start,
			processor_ms());
}
