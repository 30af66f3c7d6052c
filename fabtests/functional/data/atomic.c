/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_atomic: tests atomics with null descriptors, in every variant whose
 * operation and type the core supports. The null descriptors of operand, result
 * and compare buffers are all resolved.
 */
#include "ft_mrrc.h"

enum form { PLAIN, VECTOR, MESSAGE, FORMS };

struct bufs {
	uint64_t *operand, *result, *compare, *target;
	struct fid_mr *mr;
	void *od, *rd, *cd;
};

static uint64_t taddr;
static unsigned done;
/*
 * libfabric's verbs gives the device the address of an operand in place of its
 * value (1.17, verbs_ep.c: compare_add = (uintptr_t) buf; the message forms
 * take msg->addr). fi_mrrc_atomic only checks which buffers verbs uses.
 */
static bool by_address;

/* Connected endpoints ignore addresses, but verbs takes one for the operand. */
#define ADDR(ep, b) (ft_rdm() ? (ep)->to : (uintptr_t) (b)->operand)

static uint64_t value_of(const uint64_t *buf)
{
	return by_address ? (uintptr_t) buf : *buf;
}

static ssize_t post_base(struct ft_ep *ep, struct bufs *b, enum form form,
			 enum fi_op op)
{
	struct fi_ioc ioc = { b->operand, 1 };
	struct fi_rma_ioc rma = { taddr, 1, fi_mr_key(b->mr) };
	struct fi_msg_atomic msg = {
		.msg_iov = &ioc,
		.desc = &b->od,
		.iov_count = 1,
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.datatype = FI_UINT64,
		.op = op,
		.context = b,
		.addr = ADDR(ep, b),
	};

	switch (form) {
	case PLAIN:
		return fi_atomic(ep->ep, b->operand, 1, b->od, ADDR(ep, b),
				 taddr, rma.key, FI_UINT64, op, b);
	case VECTOR:
		return fi_atomicv(ep->ep, &ioc, &b->od, 1, ADDR(ep, b), taddr,
				  rma.key, FI_UINT64, op, b);
	default:
		return fi_atomicmsg(ep->ep, &msg, FI_COMPLETION);
	}
}

static ssize_t post_fetch(struct ft_ep *ep, struct bufs *b, enum form form,
			  enum fi_op op)
{
	struct fi_ioc ioc = { b->operand, 1 }, res = { b->result, 1 };
	struct fi_rma_ioc rma = { taddr, 1, fi_mr_key(b->mr) };
	struct fi_msg_atomic msg = {
		.msg_iov = &ioc,
		.desc = &b->od,
		.iov_count = 1,
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.datatype = FI_UINT64,
		.op = op,
		.context = b,
		.addr = ADDR(ep, b),
	};

	switch (form) {
	case PLAIN:
		return fi_fetch_atomic(ep->ep, b->operand, 1, b->od, b->result,
				       b->rd, ADDR(ep, b), taddr, rma.key,
				       FI_UINT64, op, b);
	case VECTOR:
		return fi_fetch_atomicv(ep->ep, &ioc, &b->od, 1, &res, &b->rd,
					1, ADDR(ep, b), taddr, rma.key,
					FI_UINT64, op, b);
	default:
		return fi_fetch_atomicmsg(ep->ep, &msg, &res, &b->rd, 1,
					  FI_COMPLETION);
	}
}

static ssize_t post_compare(struct ft_ep *ep, struct bufs *b, enum form form,
			    enum fi_op op)
{
	struct fi_ioc ioc = { b->operand, 1 }, res = { b->result, 1 };
	struct fi_ioc cmp = { b->compare, 1 };
	struct fi_rma_ioc rma = { taddr, 1, fi_mr_key(b->mr) };
	struct fi_msg_atomic msg = {
		.msg_iov = &ioc,
		.desc = &b->od,
		.iov_count = 1,
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.datatype = FI_UINT64,
		.op = op,
		.context = b,
		.addr = ADDR(ep, b),
	};

	switch (form) {
	case PLAIN:
		return fi_compare_atomic(ep->ep, b->operand, 1, b->od,
					 b->compare, b->cd, b->result, b->rd,
					 ADDR(ep, b), taddr, rma.key, FI_UINT64,
					 op, b);
	case VECTOR:
		return fi_compare_atomicv(ep->ep, &ioc, &b->od, 1, &cmp, &b->cd,
					  1, &res, &b->rd, 1, ADDR(ep, b),
					  taddr, rma.key, FI_UINT64, op, b);
	default:
		return fi_compare_atomicmsg(ep->ep, &msg, &cmp, &b->cd, 1, &res,
					    &b->rd, 1, FI_COMPLETION);
	}
}

/* Returns false if the core lacks a form of the call, which is skipped. */
static bool posted(ssize_t ret, const char *what, enum form form)
{
	static const char *const forms[] = { "plain", "vector", "message" };

	if (ret == -FI_ENOSYS || ret == -FI_EOPNOTSUPP) {
		printf("note: %s, %s: %s\n", what, forms[form],
		       fi_strerror((int) -ret));
		return false;
	}
	FT_CHECK(!ret, "%s, %s: %zd (%s)", what, forms[form], ret,
		 fi_strerror((int) -ret));
	done++;
	return true;
}

static void base_write(struct ft_ep *ep, struct bufs *b, enum form form)
{
	uint64_t end = ft_deadline();
	size_t count;

	if (fi_atomicvalid(ep->ep, FI_UINT64, FI_ATOMIC_WRITE, &count))
		return;
	*b->operand = ft_rand();
	*b->target = 0;
	if (!posted(post_base(ep, b, form, FI_ATOMIC_WRITE), "write", form))
		return;
	/*
	 * verbs makes an RMA write of an atomic write, and reports an RMA write
	 */
	ft_wait_ctx(ep, FT_TX, b, 0);
	while (*(volatile uint64_t *) b->target != *b->operand) {
		ft_progress(ep);
		FT_CHECK(ft_limit_us() < end, "atomic write: never there");
	}
}

static void fetch_sum(struct ft_ep *ep, struct bufs *b, enum form form)
{
	uint64_t old = ft_rand();
	size_t count;

	if (fi_fetch_atomicvalid(ep->ep, FI_UINT64, FI_SUM, &count))
		return;
	*b->operand = ft_rand();
	*b->target = old;
	*b->result = 0;
	if (!posted(post_fetch(ep, b, form, FI_SUM), "fetch and add", form))
		return;
	ft_wait_ctx(ep, FT_TX, b, FI_ATOMIC);
	FT_CHECK(*b->result == old, "fetched 0x%" PRIx64 ", not 0x%" PRIx64,
		 *b->result, old);
	if (*b->target == old + (uintptr_t) b->operand && !by_address) {
		printf("note: this core adds the operand's address\n");
		by_address = true;
	}
	FT_CHECK(*b->target == old + value_of(b->operand),
		 "sum is 0x%" PRIx64 ", not 0x%" PRIx64, *b->target,
		 old + value_of(b->operand));
}

static void fetch_read(struct ft_ep *ep, struct bufs *b, enum form form)
{
	size_t count;

	if (fi_fetch_atomicvalid(ep->ep, FI_UINT64, FI_ATOMIC_READ, &count))
		return;
	*b->target = ft_rand();
	*b->result = 0;
	if (!posted(post_fetch(ep, b, form, FI_ATOMIC_READ), "read", form))
		return;
	/* verbs makes an RMA read of an atomic read */
	ft_wait_ctx(ep, FT_TX, b, 0);
	FT_CHECK(*b->result == *b->target, "read 0x%" PRIx64, *b->result);
}

static void cswap(struct ft_ep *ep, struct bufs *b, enum form form, bool equal)
{
	uint64_t old, want;
	size_t count;

	if (fi_compare_atomicvalid(ep->ep, FI_UINT64, FI_CSWAP, &count))
		return;
	*b->operand = ft_rand();
	*b->compare = ft_rand();
	old = value_of(b->compare) + !equal;
	*b->target = old;
	*b->result = 0;
	want = equal ? value_of(b->operand) : old;
	if (!posted(post_compare(ep, b, form, FI_CSWAP), "compare and swap",
		    form))
		return;
	ft_wait_ctx(ep, FT_TX, b, FI_ATOMIC);
	FT_CHECK(*b->result == old, "old value 0x%" PRIx64, *b->result);
	FT_CHECK(*b->target == want, "swap %d went wrong", equal);
}

static void all(struct ft_pair *pair, struct bufs *b)
{
	struct ft_ep *ep = &pair->c;
	unsigned form;

	b->od = ft_desc(ep->dom, b->operand, 8);
	b->rd = ft_desc(ep->dom, b->result, 8);
	b->cd = ft_desc(ep->dom, b->compare, 8);
	for (form = 0; form < FORMS; form++) {
		base_write(ep, b, form);
		fetch_sum(ep, b, form);
		fetch_read(ep, b, form);
		cswap(ep, b, form, true);
		cswap(ep, b, form, false);
	}
	ft_release(ep->dom);
}

/* Types whose bits survive being copied as a value. */
static const struct {
	enum fi_datatype type;
	size_t size;
} types[] = {
	{ FI_INT8, 1 },	  { FI_UINT8, 1 },	   { FI_INT16, 2 },
	{ FI_UINT16, 2 }, { FI_INT32, 4 },	   { FI_UINT32, 4 },
	{ FI_INT64, 8 },  { FI_UINT64, 8 },	   { FI_FLOAT, 4 },
	{ FI_DOUBLE, 8 }, { FI_FLOAT_COMPLEX, 8 }, { FI_DOUBLE_COMPLEX, 16 },
};

/*
 * Transfers arrays with as many elements as the core takes, and checks that all
 * elements arrive.
 */
static void array(struct ft_ep *ep, struct bufs *b, unsigned t, uint64_t seed)
{
	const enum fi_datatype type = types[t].type;
	char *operand = (char *) b->operand, *result = (char *) b->result;
	size_t count, len;

	if (fi_atomicvalid(ep->ep, type, FI_ATOMIC_WRITE, &count))
		return;
	if (count * types[t].size > FT_PAGE)
		count = FT_PAGE / types[t].size;
	len = count * types[t].size;
	ft_stage("%zu elements of type %d", count, type);
	ft_fill(operand, len, seed);
	memset(b->target, 0, FT_PAGE);
	FT_POST(ep, fi_atomic(ep->ep, operand, count, b->od, ep->to, taddr,
			      fi_mr_key(b->mr), type, FI_ATOMIC_WRITE, b));
	ft_wait_ctx(ep, FT_TX, b, 0);
	ft_wait_buf(ep, b->target, len, seed);
	FT_CHECK(len == FT_PAGE || !((char *) b->target)[len],
		 "more than %zu bytes were written", len);
	if (fi_fetch_atomicvalid(ep->ep, type, FI_ATOMIC_READ, &count) ||
	    count * types[t].size < len)
		return;
	memset(result, 0, FT_PAGE);
	FT_POST(ep, fi_fetch_atomic(ep->ep, NULL, len / types[t].size, NULL,
				    result, b->rd, ep->to, taddr,
				    fi_mr_key(b->mr), type, FI_ATOMIC_READ, b));
	ft_wait_ctx(ep, FT_TX, b, 0);
	FT_CHECK_BUF(result, len, seed, "fetched");
}

static void injected(struct ft_ep *ep, struct bufs *b, uint64_t seed)
{
	uint64_t end = ft_deadline();
	size_t count;

	if (fi_atomicvalid(ep->ep, FI_UINT64, FI_SUM, &count))
		return;
	ft_stage("injected");
	*b->target = 1000;
	*b->operand = seed;
	FT_POST(ep, fi_inject_atomic(ep->ep, b->operand, 1, ep->to, taddr,
				     fi_mr_key(b->mr), FI_UINT64, FI_SUM));
	*b->operand = 77;
	while (*(volatile uint64_t *) b->target == 1000) {
		ft_progress(ep);
		FT_CHECK(ft_limit_us() < end, "never added");
	}
	FT_CHECK(*b->target == 1000 + seed, "0x%" PRIx64, *b->target);
}

/*
 * Tests ofi_rxm, which has all variants; verbs takes an operand for an address.
 */
static void arrays(struct ft_pair *pair, struct bufs *b)
{
	struct ft_ep *ep = &pair->c;
	unsigned t;

	if (!ft_rxm())
		return;
	b->od = ft_desc(ep->dom, b->operand, FT_PAGE);
	b->rd = ft_desc(ep->dom, b->result, FT_PAGE);
	for (t = 0; t < sizeof(types) / sizeof(*types); t++)
		array(ep, b, t, 100 + t);
	injected(ep, b, 5);
	ft_release(ep->dom);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	struct ft_pair pair;
	struct bufs b;
	uint64_t *pages;
	unsigned i;

	ft_init(argc, argv);
	attr.caps = FI_MSG | FI_RMA | FI_ATOMIC;
	ft_pair_open(&pair, &attr);
	pages = ft_map(NULL, 8 * FT_PAGE);
	b.target = pages;
	b.mr = ft_reg(&pair.dom[0], pages, FT_PAGE,
		      FI_REMOTE_READ | FI_REMOTE_WRITE);
	taddr = ft_raddr(&pair.dom[0], pages);
	for (i = 0; i < ft_iters(20); i++) {
		ft_stage("round %u", i);
		/*
		 * the buffers lie on separate pages, then side by side on one
		 * page
		 */
		b.operand = pages + (i % 2 ? 1024 : 1024 + i);
		b.result = pages + (i % 2 ? 2048 : 1100 + i);
		b.compare = pages + (i % 2 ? 3072 : 1200 + i);
		all(&pair, &b);
	}
	b.operand = pages + 1024;
	b.result = pages + 2048;
	arrays(&pair, &b);
	if (!done)
		ft_skip("%s has none of the atomics", ft_opts.prov);
	if (ft_stats(&pair.dom[1], &st))
		FT_CHECK(st.lookups >= done,
			 "%" PRIu64 " lookups for %u "
			 "atomics",
			 st.lookups, done);
	FT_CALL(fi_close(&b.mr->fid));
	ft_unmap(pages, 8 * FT_PAGE);
	ft_pair_close(&pair);
	return ft_done();
}
