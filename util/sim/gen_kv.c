/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * kv: transfers of key-value caches in the inference of large language models,
 * from a node that computes prompts to nodes that generate text.
 *
 * No paper describes this workload. The model is a paged cache, as in serving
 * systems. Each layer has a pool of blocks; a block holds 16 tokens. A model of
 * 32 layers and 8 heads of 128 numbers of 16 bits, which keeps keys and values,
 * needs 16 * 2 * 8 * 128 * 2 B = 64 KiB for a block and layer. A sequence is
 * sent layer by layer, blocks that lie next to each other as one transfer.
 *
 * Assumed: 4096 blocks (8 GiB in all); 8 sequences at a time; prompts that
 * begin with one of 256 prefixes of 4 to 64 blocks in 4 of 5 cases, chosen by
 * Zipf's law with exponent 0.75, and continue with 2 to 96 blocks of their own;
 * prefixes stay until memory is needed, and the prefix that was unused for
 * longest is dropped first; blocks are taken from the head of a free list and
 * given back to its tail; 2 ms of computation a layer. All requests are sends,
 * hence read-only.
 */
#include "config.h"
#include "sim/gen.h"
#include "sim/rng.h"

#include <errno.h>
#include <stdlib.h>

#define KV_REQUESTS  100000
#define LAYERS	     32
#define BLOCK	     (UINT64_C(64) << 10)
#define POOL	     4096		 /* blocks */
#define POOL_GAP     (UINT64_C(2) << 20) /* between two layers' pools */
#define BASE	     UINT64_C(0x7e0000000000)
#define TRANSFER_MAX 64 /* blocks: 4 MiB */
#define PREFIXES     256
#define PREFIX_MIN   4
#define PREFIX_MAX   64
#define OWN_MIN	     2
#define OWN_MAX	     96
#define SEQUENCES    8 /* at a time */
#define NO_PREFIX    5 /* 1 in 5 has no prefix */
#define LAYER_US     2000
#define BLOCK_US     5 /* time to send a block */

struct prefix {
	uint32_t len;	/* blocks */
	uint32_t users; /* sequences */
	uint64_t used;	/* time of the last use */
	bool present;
	uint16_t block[PREFIX_MAX];
};

struct sequence {
	uint64_t time;
	struct prefix *prefix; /* or NULL */
	uint32_t layer;	       /* the next layer to send */
	uint32_t sent;	       /* sent blocks of this layer */
	uint32_t len;
	uint32_t shared; /* the first blocks are the prefix's */
	uint16_t block[PREFIX_MAX + OWN_MAX];
};

struct kv {
	struct sim_rng rng;
	struct sim_zipf zipf;
	struct prefix prefix[PREFIXES];
	struct sequence seq[SEQUENCES];
	uint16_t ring[POOL]; /* the free list */
	uint32_t head, free;
};

/* ---- blocks -------------------------------------------------------------- */

static void kv_give(struct kv *kv, const uint16_t *block, uint32_t cnt)
{
	for (; cnt; cnt--)
		kv->ring[(kv->head + kv->free++) % POOL] = *block++;
}

/*
 * There are enough blocks: 8 sequences with their prefixes take at most 1280.
 */
static void kv_take(struct kv *kv, uint16_t *block, uint32_t cnt)
{
	struct prefix *prefix, *oldest;

	while (kv->free < cnt) {
		oldest = NULL;
		for (prefix = kv->prefix; prefix < kv->prefix + PREFIXES;
		     prefix++) {
			if (prefix->present && !prefix->users &&
			    (!oldest || prefix->used < oldest->used))
				oldest = prefix;
		}
		oldest->present = false;
		kv_give(kv, oldest->block, oldest->len);
	}
	kv->free -= cnt;
	for (; cnt; cnt--) {
		*block++ = kv->ring[kv->head];
		kv->head = (kv->head + 1) % POOL;
	}
}

/* ---- sequences ----------------------------------------------------------- */

static struct prefix *kv_prefix(struct kv *kv, uint64_t time)
{
	struct prefix *prefix;

	if (!sim_rng_below(&kv->rng, NO_PREFIX))
		return NULL;
	prefix = &kv->prefix[sim_zipf_next(&kv->zipf, &kv->rng)];
	prefix->users++;
	prefix->used = time;
	if (!prefix->present)
		kv_take(kv, prefix->block, prefix->len);
	prefix->present = true;
	return prefix;
}

static void kv_begin(struct kv *kv, struct sequence *seq)
{
	uint32_t i, own;

	seq->prefix = kv_prefix(kv, seq->time);
	seq->shared = seq->prefix ? seq->prefix->len : 0;
	for (i = 0; i < seq->shared; i++)
		seq->block[i] = seq->prefix->block[i];
	own = OWN_MIN + sim_rng_below(&kv->rng, OWN_MAX - OWN_MIN + 1);
	kv_take(kv, seq->block + seq->shared, own);
	seq->len = seq->shared + own;
	seq->layer = 0;
	seq->sent = 0;
}

static void kv_end(struct kv *kv, struct sequence *seq)
{
	if (seq->prefix)
		seq->prefix->users--;
	kv_give(kv, seq->block + seq->shared, seq->len - seq->shared);
}

/* Counts adjacent blocks, beginning with the next block to send. */
static uint32_t seq_run(const struct sequence *seq)
{
	const uint16_t *block = seq->block + seq->sent;
	uint32_t left = seq->len - seq->sent, cnt = 1;

	while (cnt < left && cnt < TRANSFER_MAX &&
	       block[cnt] == block[cnt - 1] + 1)
		cnt++;
	return cnt;
}

static int kv_request(struct kv *kv, struct sim_trace *trace)
{
	struct sequence *seq = kv->seq;
	struct sim_req req;
	uint32_t i, cnt;

	for (i = 1; i < SEQUENCES; i++) {
		if (kv->seq[i].time < seq->time)
			seq = &kv->seq[i];
	}
	if (seq->layer == LAYERS) {
		kv_end(kv, seq);
		kv_begin(kv, seq);
	}
	cnt = seq_run(seq);
	req = (struct sim_req){
		.time = seq->time,
		.addr = BASE + seq->layer * (POOL * BLOCK + POOL_GAP) +
			seq->block[seq->sent] * BLOCK,
		.len = cnt * BLOCK,
		.access = SIM_RO,
	};
	seq->sent += cnt;
	seq->time += BLOCK_US * cnt;
	if (seq->sent == seq->len) {
		seq->sent = 0;
		seq->layer++;
		seq->time += sim_rng_about(&kv->rng, LAYER_US);
	}
	return sim_trace_append(trace, &req);
}

static int kv_init(struct kv *kv, uint64_t seed)
{
	uint16_t block;
	uint32_t i;

	sim_rng_init(&kv->rng, seed);
	for (i = 0; i < POOL; i++) {
		block = i;
		kv_give(kv, &block, 1);
	}
	for (i = 0; i < PREFIXES; i++)
		kv->prefix[i].len =
			PREFIX_MIN +
			sim_rng_below(&kv->rng, PREFIX_MAX - PREFIX_MIN + 1);
	if (sim_zipf_init(&kv->zipf, PREFIXES))
		return -ENOMEM;
	for (i = 0; i < SEQUENCES; i++) {
		kv->seq[i].time = sim_rng_below(&kv->rng, LAYERS * LAYER_US);
		kv_begin(kv, &kv->seq[i]);
	}
	return 0;
}

static int kv_make(uint64_t seed, size_t requests, struct sim_trace *trace)
{
	struct kv *kv = calloc(1, sizeof(*kv));
	struct sim_trace out;
	int ret;

	if (!kv)
		return -ENOMEM;
	if (!requests)
		requests = KV_REQUESTS;
	ret = kv_init(kv, seed);
	if (ret)
		goto out_free;
	ret = sim_trace_init(&out, sim_gen_kv.name);
	if (ret)
		goto out_free;
	while (!ret && out.count < requests)
		ret = kv_request(kv, &out);
	if (ret)
		sim_trace_fini(&out);
	else
		*trace = out;
out_free:
	sim_zipf_fini(&kv->zipf);
	free(kv);
	return ret;
}

const struct sim_gen sim_gen_kv = {
	.name = "kv",
	.help = "key-value caches of language models, by layer and block",
	.requests = KV_REQUESTS,
	.make = kv_make,
};
