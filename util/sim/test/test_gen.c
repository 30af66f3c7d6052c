/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sim/gen: a synthetic workload of a seed is the same on every machine.
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
	uint64_t hash; /* hash for seed 1 */
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
	/* a longer trace has the same start, another seed has not */
	make(name, 1, 2 * HASHED);
	ck_assert(hash_trace() == hash);
	sim_trace_fini(&trace);
	make(name, 2, 0); /* the default length */
	ck_assert(hash_trace() != hash);
	sim_trace_fini(&trace);
}
