/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_mr_modes: tests that peers reach memory at the address that the
 * provider says, whichever mr_mode an application asks for: FI_MR_BASIC,
 * FI_MR_SCALABLE or no mode, with API 1.4 and 1.9. Peers write to memory of
 * fi_mr_alloc(), and make conditional writes.
 */
#include "ft_mrrc.h"

#define LEN 70000

#define MR_SCALABLE (1 << 1) /* libfabric 2.x warns of the name */

struct how {
	const char *what;
	uint32_t version;
	int mr_mode;
	bool verbs; /* does verbs have this mode? */
};

static struct ft_pair pair;

static void to_allocated(const char *what)
{
	struct fid_domain *domain = pair.dom[0].domain;
	struct fi_mr_query_attr attr = { .size = sizeof(attr) };
	struct fi_rma_iov rma = { .len = LEN };
	char *out = ft_map(NULL, LEN);
	struct iovec iov = { out, LEN };
	const struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = pair.c.to,
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = out,
	};
	void *target[2];
	int i;

	/* the second of two allocations does not begin a block */
	for (i = 0; i < 2; i++)
		FT_CALL(fi_mr_alloc(domain, LEN, FI_REMOTE_WRITE, 0, &target[i],
				    NULL));
	for (i = 0; i < 2; i++) {
		FT_CALL(fi_mr_query(domain, target[i], &attr));
		rma.addr = attr.raddr;
		rma.key = attr.key;
		ft_fill(out, LEN, i);
		FT_POST(&pair.c,
			fi_writemsg(pair.c.ep, &msg,
				    FI_COMPLETION | FI_DELIVERY_COMPLETE));
		ft_wait_ctx(&pair.c, FT_TX, out, FI_WRITE);
		FT_CHECK_BUF(target[i], LEN, i, what);
	}
	for (i = 0; i < 2; i++)
		FT_CALL(fi_mr_free(domain, target[i]));
	ft_unmap(out, LEN);
}

static void conditional(const char *what)
{
	static const uint64_t flags[] = { 0, FI_MRRC_CW_KEEP };
	char *out = ft_map(NULL, LEN), *in = ft_map(NULL, LEN + FT_PAGE);
	struct ft_comp comp;
	struct iovec iov = { in + 100, LEN };
	struct fi_msg_cw msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = pair.s.to,
	};
	uint64_t i;

	for (i = 0; i < 2; i++) {
		ft_fill(out, LEN, i);
		memset(in, 0xff, LEN);
		msg.cwtag = i;
		FT_CALL(fi_cwtagmsg(pair.s.cw, &msg, flags[i]));
		FT_CALL(fi_cwrite(pair.c.cw, out, LEN, NULL, pair.c.to, i,
				  out));
		ft_wait(&pair.c, FT_TX, &comp);
		ft_wait(&pair.s, FT_RX, &comp);
		FT_CHECK_BUF(in + 100, LEN, i, what);
	}
	ft_unmap(out, LEN);
	ft_unmap(in, LEN + FT_PAGE);
}

static void run(const void *arg)
{
	const struct how *how = arg;
	struct ft_attr attr = FT_ATTR;

	ft_fiversion = how->version;
	attr.mr_mode = how->mr_mode;
	attr.scalable_mr = true;
	attr.cw = attr.cw_pep = true;
	ft_pair_open(&pair, &attr);
	to_allocated(how->what);
	conditional(how->what);
	ft_pair_close(&pair);
}

int main(int argc, char **argv)
{
	static const struct how hows[] = {
		{ "FI_MR_BASIC", FI_VERSION(1, 9), FT_MR_BASIC, true },
		{ "FI_MR_SCALABLE", FI_VERSION(1, 9), MR_SCALABLE, false },
		{ "no mode", FI_VERSION(1, 9), 0, false },
		{ "FI_MR_BASIC of 1.4", FI_VERSION(1, 4), FT_MR_BASIC, true },
		{ "FI_MR_SCALABLE of 1.4", FI_VERSION(1, 4), MR_SCALABLE,
		  false },
		{ "no mode of 1.4", FI_VERSION(1, 4), 0, true },
	};
	size_t i;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has such memory");
	for (i = 0; i < sizeof(hows) / sizeof(*hows); i++)
		if (hows[i].verbs || !ft_core("verbs"))
			ft_in_child(hows[i].what, run, &hows[i], NULL, 0);
	return ft_done();
}
