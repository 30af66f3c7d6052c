/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests that functions whose nth allocation fails return -ENOMEM and leak
 * nothing, as a sanitizer checks. The test is linked with --wrap of malloc,
 * calloc, realloc and strdup.
 */
#include "config.h"
#include "test/case.h"
#include "sim/engine.h"
#include "sim/gen.h"
#include "sim/helpers.h"
#include "sim/libfabric.h"
#include "sim/once.h"

static unsigned int left; /* allocations until the failing one; 0: none fails */
static bool failed_one;

void *__real_malloc(size_t size);
void *__real_calloc(size_t cnt, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t cnt, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);

static bool fails(void)
{
	if (!left || --left)
		return false;
	failed_one = true;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t cnt, size_t size)
{
	return fails() ? NULL : __real_calloc(cnt, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
	return fails() ? NULL : __real_strdup(text);
}

/* ---- what is tried, without Check's calls: they allocate ------------------ */

static struct sim_trace input; /* requests made in advance */

static int try_read(struct sim_trace *trace)
{
	static const char text[] = "time_us,addr,len\n1,2,3\n4,5,6\n";
	FILE *file = fmemopen((void *) text, sizeof(text) - 1, "rb");
	char err[SIM_ERR_MAX] = "";
	int ret;

	if (!file)
		return -errno;
	ret = sim_trace_read_file(file, "t", err, sizeof(err), trace);
	fclose(file);
	return ret && !strstr(err, strerror(ENOMEM)) ? -EIO : ret;
}

static int try_merge(struct sim_trace *trace)
{
	const struct sim_trace *traces[] = { &input, &input };

	return sim_trace_merge(traces, 2, "merged", trace);
}

static int try_footprint(struct sim_trace *trace)
{
	uint64_t bytes;
	int ret;

	ret = sim_trace_footprint(&input, SIM_PAGE, &bytes);
	if (!ret)
		*trace = (struct sim_trace){ 0 };
	return ret;
}

static int try_cello(struct sim_trace *trace)
{
	return sim_gen_cello.make(1, 3000, trace);
}

static int try_httpd(struct sim_trace *trace)
{
	return sim_gen_httpd.make(1, 3000, trace);
}

static int try_nas(struct sim_trace *trace)
{
	return sim_gen_nas.make(1, 3000, trace);
}

static int try_kv(struct sim_trace *trace)
{
	return sim_gen_kv.make(1, 3000, trace);
}

static int try_run(const char *policy, struct sim_trace *trace)
{
	const struct mrrc_cost cost = { 10, 100, 1, 50, 30, 0, 4096, false };
	struct sim_future future = { 0 };
	struct sim_result result;
	struct sim_cell cell = {
		.trace = &input,
		.policy = policy,
		.future = &future,
		.kind = policy ? SIM_CACHE : SIM_OFFLINE,
		.cost = &cost,
		.max_bytes = 64 << 20,
		.max_regions = 12,
		.page = 4096,
		.bounce = true,
	};
	int ret = 0;

	if (!policy)
		ret = sim_future_make(&input, 4096, &future);
	if (!ret)
		ret = sim_run(&cell, &result);
	sim_future_free(&future);
	return ret ? ret : sim_trace_init(trace, "ran");
}

static int try_gdl(struct sim_trace *trace)
{
	return try_run("gdl:batch=1", trace);
}

static int try_offline(struct sim_trace *trace)
{
	return try_run(NULL, trace);
}

static int try_way(int (*run)(const struct sim_cell *, struct sim_result *),
		   struct sim_trace *trace)
{
	const struct mrrc_cost cost = { 10, 100, 1, 50, 30, 0, 4096, false };
	const struct sim_cell cell = {
		.trace = &input,
		.cost = &cost,
		.max_bytes = 64 << 20,
		.max_regions = 12,
		.page = 4096,
	};
	struct sim_result result;
	int ret;

	ret = run(&cell, &result);
	return ret ? ret : sim_trace_init(trace, "ran");
}

static int try_libfabric(struct sim_trace *trace)
{
	return try_way(sim_lf_run, trace);
}

static int run_blocks(const struct sim_cell *cell, struct sim_result *result)
{
	return sim_once_run(cell, true, result);
}

static int try_once(struct sim_trace *trace)
{
	return try_way(run_blocks, trace);
}

static int try_helpers(struct sim_trace *trace)
{
	static char *helper[] = { "predict", "offline", "timeout:us=1000" };
	static size_t page = 4096;
	struct sim_model model = {
		.name = "m",
		.cost = { 10, 100, 1, 50, 30, 0, 4096, false },
	};
	const struct sim_grid grid = {
		.trace = &input,
		.traces = 1,
		.page = &page,
		.pages = 1,
		.model = &model,
		.models = 1,
		.helper = helper,
		.helpers = 3,
	};
	struct sim_helper_row *rows;
	size_t cnt;
	int ret;

	ret = sim_helpers_run(&grid, &rows, &cnt);
	if (ret)
		return ret;
	free(rows);
	return sim_trace_init(trace, "ran");
}

static int (*const tries[])(struct sim_trace *trace) = {
	try_read,  try_merge,	  try_footprint, try_cello,
	try_httpd, try_nas,	  try_kv,	 try_gdl,
	try_once,  try_libfabric, try_offline,	 try_helpers,
};

TEST_CASE(memory, NULL, NULL);

EACH_TEST(test_memory, tries)
{
	struct sim_trace trace;
	unsigned int n;
	int ret;

	ck_assert_int_eq(sim_gen_nas.make(1, 3000, &input), 0);
	for (n = 1;; n++) {
		trace.count = 77;
		failed_one = false;
		left = n;
		ret = tries[_i](&trace);
		left = 0;
		if (!failed_one)
			break;
		ck_assert_int_eq(ret, -ENOMEM);
		ck_assert_uint_eq(trace.count, 77);
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_gt(n, 1);
	sim_trace_fini(&trace);
	sim_trace_fini(&input);
}
