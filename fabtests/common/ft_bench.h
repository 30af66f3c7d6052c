/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Functions that the benchmarks share: a transfer is made in one of three ways,
 * and timed together with its registrations.
 */
#ifndef FT_BENCH_H
#define FT_BENCH_H

#include "ft_mrrc.h"

enum ft_mode {
	FT_REG_EACH,   /* raw core: register, transfer, deregister */
	FT_CORE_CACHE, /* raw core, through libfabric's own cache */
	FT_NULL_DESC,  /* over ofi_mrrc, null descriptors */
	FT_MODES
};
extern const char *const ft_mode_names[FT_MODES];

enum ft_bench_op { FT_WRITE, FT_SEND };
enum ft_metric { FT_LAT, FT_BW };

struct ft_task {
	enum ft_bench_op op;
	enum ft_metric metric;
	size_t len;
	unsigned iters;	 /* transfers */
	unsigned window; /* FT_BW: transfers at once */
};

struct ft_bench {
	struct ft_pair pair;
	enum ft_mode mode;
	size_t max;    /* bytes of each buffer */
	unsigned bufs; /* number of buffers, used in turn */
	char *local, *remote;
	struct fid_mr *target;
	uint64_t round;
	double *times;
	unsigned times_cnt;
};

/*
 * Turns the core's cache on or off, before libfabric starts. If this function
 * is not called, the core's cache is off in raw mode.
 */
void ft_core_cache(bool on);
/* Sets the provider list and environment of a mode; before ft_start(). */
void ft_bench_env(enum ft_mode mode, const char *core);
/*
 * Calls @run, which exits, in a new process for each way. Returns 1 if one of
 * the processes failed, else 0.
 */
int ft_bench_ways(const char *const *ways, int count, void (*run)(int way));
void ft_bench_open(struct ft_bench *b, enum ft_mode mode, size_t max,
		   unsigned bufs);
/* Returns median microseconds of a transfer, or MB/s; verifies the data. */
double ft_bench_run(struct ft_bench *b, const struct ft_task *task);
void ft_bench_close(struct ft_bench *b);

double ft_median(double *values, unsigned count); /* sorts */
/* Parses a list of sizes ("64,4096,1M"); returns the number of sizes. */
unsigned ft_parse_sizes(const char *text, size_t *sizes, unsigned max);
const char *ft_op_name(enum ft_bench_op op);
enum ft_bench_op ft_parse_op(const char *name);

#endif /* FT_BENCH_H */
