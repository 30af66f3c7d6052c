/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sim/gen: the same trace on every machine, and what its source says of it.
 */
#include "config.h"
#include "test/case.h"
#include "sim/gen.h"
#include "sim/rng.h"

#define HASHED 10000

static struct sim_trace trace;

static void make(const char *name, uint64_t seed, size_t requests)
{
	const struct sim_gen *gen = sim_gen_find(name);

	ck_assert_ptr_nonnull(gen);
	ck_assert_int_eq(gen->make(seed, requests, &trace), 0);
	ck_assert_uint_eq(trace.count, requests ? requests : gen->requests);
	ck_assert_str_eq(trace.name, name);
	ck_assert(sim_trace_valid(&trace));
}

/*
 * Counted rather than asserted in loops over a trace: Check reports every
 * assertion to its parent.
 */
static uint64_t pages_of(const struct sim_req *req)
{
	return (req->addr + req->len - 1) / SIM_PAGE - req->addr / SIM_PAGE + 1;
}

/* ---- the same everywhere ------------------------------------------------- */

static uint64_t hash_number(uint64_t hash, uint64_t number)
{
	int i;

	for (i = 0; i < 8; i++, number >>= 8)
		hash = (hash ^ (number & 0xff)) * UINT64_C(0x100000001b3);
	return hash;
}

/* FNV-1a of the first requests */
static uint64_t hash_trace(void)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	const struct sim_req *req;

	for (req = trace.req; req < trace.req + HASHED; req++) {
		hash = hash_number(hash, req->time);
		hash = hash_number(hash, req->addr);
		hash = hash_number(hash, req->len);
		hash = hash_number(hash, req->proc);
		hash = hash_number(hash, req->access);
	}
	return hash;
}

static const struct {
	const char *name;
	uint64_t hash; /* of seed 1 */
} hashes[] = {
	{ "cello", UINT64_C(0xfff78a2e2482cd5a) },
	{ "httpd", UINT64_C(0xc42629b118d1b03c) },
	{ "nas", UINT64_C(0x354fb640f7f1945d) },
	{ "kv", UINT64_C(0x879ffacab0947450) },
};

TEST_CASE(gen, NULL, NULL);

EACH_TEST(test_hash, hashes)
{
	const char *name = hashes[_i].name;
	uint64_t hash;

	ck_assert_str_eq(sim_gen_at(_i)->name, name);
	make(name, 1, HASHED);
	hash = hash_trace();
	ck_assert_msg(hash == hashes[_i].hash, "%s: %#llx", name,
		      (unsigned long long) hash);
	sim_trace_fini(&trace);
	/* the start of a longer one is the same, another seed is not */
	make(name, 1, 2 * HASHED);
	ck_assert(hash_trace() == hash);
	sim_trace_fini(&trace);
	make(name, 2, HASHED);
	ck_assert(hash_trace() != hash);
	sim_trace_fini(&trace);
}

/* ---- as described -------------------------------------------------------- */

LOOP_TEST(test_cello, 1, 3)
{
	const struct sim_req *req;
	size_t two = 0, wrong = 0;
	uint64_t bytes;

	make("cello", _i, 0);
	for (req = trace.req; req < trace.req + trace.count; req++) {
		wrong += pages_of(req) > 2 || req->addr % SIM_PAGE ||
			 req->addr + req->len > UINT64_C(10400000000);
		two += pages_of(req) == 2;
	}
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_ge(two * 100, trace.count * 75);
	ck_assert_uint_le(two * 100, trace.count * 85);
	/* half a million take about a day */
	ck_assert_uint_ge(trace.req[trace.count - 1].time / 3600000000, 20);
	ck_assert_uint_le(trace.req[trace.count - 1].time / 3600000000, 28);
	/* more than any cache, less than the disks */
	ck_assert_int_eq(sim_trace_footprint(&trace, SIM_PAGE, &bytes), 0);
	ck_assert_uint_ge(bytes, UINT64_C(500) << 20);
	ck_assert_uint_eq(trace.procs, 1);
	sim_trace_fini(&trace);
}

LOOP_TEST(test_httpd, 1, 3)
{
	size_t sizes[34] = { 0 }, large = 0, wrong = 0;
	const struct sim_req *req;
	uint64_t bytes, pages;

	make("httpd", _i, 0);
	for (req = trace.req; req < trace.req + trace.count; req++) {
		pages = pages_of(req);
		wrong += req->access != SIM_RO;
		sizes[pages <= 32 ? pages : 33]++;
		large += pages >= 8;
	}
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(sizes[33], 0);
	for (pages = 1; pages <= 32; pages++)
		ck_assert_uint_gt(sizes[pages], 0);
	/* a wide distribution, with many large ones */
	ck_assert_uint_le(sizes[1] * 10, trace.count * 4);
	ck_assert_uint_ge(large * 10, trace.count * 2);
	ck_assert_int_eq(sim_trace_footprint(&trace, SIM_PAGE, &bytes), 0);
	ck_assert_uint_ge(bytes, UINT64_C(524) * 900000);
	ck_assert_uint_le(bytes, UINT64_C(524) * 1100000);
	ck_assert_uint_eq(trace.procs, 1);
	sim_trace_fini(&trace);
}

/* Equal ranges of a process next to each other, then by time. */
static int range_cmp(const void *left, const void *right)
{
	const struct sim_req *a = left, *b = right;

	if (a->proc != b->proc)
		return a->proc < b->proc ? -1 : 1;
	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	if (a->len != b->len)
		return a->len < b->len ? -1 : 1;
	return (a->time > b->time) - (a->time < b->time);
}

static bool same_range(const struct sim_req *a, const struct sim_req *b)
{
	return a->proc == b->proc && a->addr == b->addr && a->len == b->len;
}

/* Sorts the trace by range, too. */
static void count_ranges(size_t *distinct, size_t *once)
{
	size_t i, uses = 0;

	*distinct = *once = 0;
	qsort(trace.req, trace.count, sizeof(*trace.req), range_cmp);
	for (i = 0; i < trace.count; i++) {
		uses++;
		if (i + 1 < trace.count &&
		    same_range(&trace.req[i], &trace.req[i + 1]))
			continue;
		++*distinct;
		*once += uses == 1;
		uses = 0;
	}
}

/* Whether half of a range's gaps are within 5 % of the one before them. */
static bool periodic(const struct sim_req *req, size_t cnt)
{
	size_t i, stable = 0;
	uint64_t gap, last = 0;

	for (i = 1; i < cnt; i++, last = gap) {
		gap = req[i].time - req[i - 1].time;
		if (i > 1 && gap * 20 >= last * 19 && gap * 20 <= last * 21)
			stable++;
	}
	return stable * 2 >= cnt - 2;
}

LOOP_TEST(test_nas, 1, 3)
{
	size_t i, first = 0, large = 0, small = 0, distinct, once;
	size_t again = 0, regular = 0;

	make("nas", _i, 0);
	ck_assert_uint_eq(trace.procs, 4);
	for (i = 0; i < trace.count; i++) {
		large += trace.req[i].len >= 512 * 1024;
		small += trace.req[i].len < 16 * 1024;
	}
	ck_assert_uint_ge(large * 10, trace.count * 3);
	ck_assert_uint_ge(small * 10, trace.count * 3);
	count_ranges(&distinct, &once);
	/* one-off buffers: 10 to 20 of 100 messages */
	ck_assert_uint_ge(once * 10, trace.count);
	ck_assert_uint_le(once * 5, trace.count);
	/* the others are few and come back, most with a stable period */
	ck_assert_uint_le(distinct - once, 2000);
	for (i = 1; i <= trace.count; i++) {
		if (i < trace.count &&
		    same_range(&trace.req[first], &trace.req[i]))
			continue;
		if (i - first > 2) {
			again++;
			regular += periodic(&trace.req[first], i - first);
		}
		first = i;
	}
	ck_assert_uint_ge(regular * 10, again * 7);
	sim_trace_fini(&trace);
}
