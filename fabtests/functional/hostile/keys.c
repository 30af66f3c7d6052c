/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_keys: tests a hostile peer that was given one key and guesses other
 * keys near this key. The peer reaches no other memory: neither allocations of
 * another heap, nor buffers exposed to another write. Keys that the core
 * chooses are not tested.
 */
#include "ft_mrrc.h"

#include <stdatomic.h>

#define LEN	8192 /* more than a message takes */
#define GUESSES 1000
#define KEYS	256

static struct ft_pair pair;
static char *out, *in;

/* ---- allocations --------------------------------------------------------- */

static char *alloc(struct fid_mr_heap **heap, uint64_t *key)
{
	struct fi_mr_heap_attr attr = {
		.size = sizeof(attr),
		.access = FI_REMOTE_WRITE,
	};
	struct fid_mr *mr;
	void *buf;

	FT_CALL(fi_mr_heap_open(pair.dom[0].domain, &attr, heap, NULL));
	FT_CALL(fi_mr_heap_alloc(*heap, LEN, 0, &buf, &mr));
	*key = fi_mr_key(mr);
	return buf;
}

/* Does a write with this key succeed? If not, the connection has ended. */
static bool arrives(const char *at, uint64_t key)
{
	struct fi_mr_query_attr attr = { .size = sizeof(attr) };
	struct fi_rma_iov rma = { .len = LEN, .key = key };
	struct iovec iov = { out, LEN };
	struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = pair.c.to,
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = out,
	};
	struct ft_comp comp;

	FT_CALL(fi_mr_query(pair.dom[0].domain, at, &attr));
	rma.addr = attr.raddr;
	FT_POST(&pair.c, fi_writemsg(pair.c.ep, &msg,
				     FI_COMPLETION | FI_DELIVERY_COMPLETE));
	ft_wait_any(&pair.c, FT_TX, &comp);
	if (comp.err)
		ft_reconnect(&pair);
	return !comp.err;
}

static int compare(const void *a, const void *b)
{
	const uint64_t one = *(const uint64_t *) a;
	const uint64_t other = *(const uint64_t *) b;

	return one < other ? -1 : one > other;
}

/* Registers many heaps: no two of their keys are close to each other. */
static void far_apart(void)
{
	struct fid_mr_heap *heap[KEYS];
	uint64_t key[KEYS];
	unsigned i;

	ft_stage("%u keys", KEYS);
	for (i = 0; i < KEYS; i++)
		alloc(&heap[i], &key[i]);
	qsort(key, KEYS, sizeof(*key), compare);
	for (i = 1; i < KEYS; i++)
		FT_CHECK(key[i] - key[i - 1] > GUESSES,
			 "keys %#" PRIx64 " and %#" PRIx64, key[i - 1], key[i]);
	for (i = 0; i < KEYS; i++)
		FT_CALL(fi_mr_heap_close(heap[i]));
}

static void guess_heaps(void)
{
	/* ofi_rxm takes a while to make a new connection */
	const unsigned guesses = ft_iters(ft_rdm() ? 20 : GUESSES);
	struct fid_mr_heap *before, *given, *after;
	uint64_t key, other;
	char *own, *secret[2];
	unsigned i;

	secret[0] = alloc(&before, &other);
	own = alloc(&given, &key);
	secret[1] = alloc(&after, &other);
	ft_fill(secret[0], LEN, 1);
	ft_fill(secret[1], LEN, 2);
	ft_fill(out, LEN, 3);
	ft_stage("the key that was given");
	FT_CHECK(arrives(own, key), "a good key does not work");
	FT_CHECK_BUF(own, LEN, 3, "a write with a good key");
	for (i = 1; i <= guesses; i++) {
		ft_stage("guess %u", i);
		FT_CHECK(!arrives(secret[1], key + i), "key + %u works", i);
		FT_CHECK(i > guesses / 10 || !arrives(secret[0], key - i),
			 "key - %u works", i);
	}
	FT_CHECK_BUF(secret[0], LEN, 1, "the heap before");
	FT_CHECK_BUF(secret[1], LEN, 2, "the heap after");
	FT_CALL(fi_mr_heap_close(before));
	FT_CALL(fi_mr_heap_close(given));
	FT_CALL(fi_mr_heap_close(after));
}

/* ---- exposed buffers ----------------------------------------------------- */

static ssize_t (*core_writemsg)(struct fid_ep *ep, const struct fi_msg_rma *msg,
				uint64_t flags);
static atomic_int wrong; /* offset of the hostile peer's key from a valid key */

static ssize_t hostile_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
				uint64_t flags)
{
	struct fi_rma_iov rma = *msg->rma_iov;
	struct fi_msg_rma other = *msg;

	rma.key += atomic_load(&wrong);
	other.rma_iov = &rma;
	return core_writemsg(ep, &other, flags);
}

static void expose(unsigned i)
{
	FT_POST(&pair.s, fi_cwtag(pair.s.cw, in + i * LEN, LEN, NULL, pair.s.to,
				  i, in + i * LEN));
}

/* Exposes three buffers, of which the peer was given the second. */
static void guess_exposed(int by)
{
	struct ft_comp comp;
	unsigned i;

	ft_stage("exposed, key %+d", by);
	ft_fill(in, 3 * LEN, 7);
	ft_fill(out, LEN, 8);
	for (i = 0; i < 3; i++)
		expose(i);
	atomic_store(&wrong, by);
	FT_POST(&pair.c,
		fi_cwrite(pair.c.cw, out, LEN, NULL, pair.c.to, 1, out));
	ft_wait_any(&pair.c, FT_TX, &comp);
	ft_wait_any(&pair.s, FT_RX, &comp);
	atomic_store(&wrong, 0);
	if (!by) {
		FT_CHECK(!comp.err, "a good key: %s", fi_strerror(comp.err));
		FT_CHECK_BUF(in + LEN, LEN, 8, "a good key");
		memcpy(in + LEN, in, LEN);
		ft_fill(in, 3 * LEN, 7);
	} else {
		FT_CHECK(comp.err, "a wrong key works");
	}
	FT_CHECK_BUF(in, 3 * LEN, 7, "what is exposed to others");
	ft_reconnect(&pair);
}

static void exposed(void)
{
	struct ft_core_ops core;
	int by;

	/* ofi_rxm and net use tcp's endpoints and their table of calls */
	ft_core_ops("tcp", &core);
	core_writemsg = core.rma->writemsg;
	core.rma->writemsg = hostile_writemsg;
	guess_exposed(0);
	for (by = 1; by <= 4; by++) {
		guess_exposed(by);
		guess_exposed(-by);
	}
	core.rma->writemsg = core_writemsg;
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has keys of its own");
	attr.cw = attr.cw_pep = true;
	out = ft_map(NULL, LEN);
	in = ft_map(NULL, 3 * LEN);
	ft_pair_open(&pair, &attr);
	if (pair.dom[0].info->domain_attr->mr_mode & FI_MR_PROV_KEY)
		ft_skip("the core chooses keys");
	far_apart();
	guess_heaps();
	exposed();
	ft_unmap(out, LEN);
	ft_unmap(in, 3 * LEN);
	ft_pair_close(&pair);
	return ft_done();
}
