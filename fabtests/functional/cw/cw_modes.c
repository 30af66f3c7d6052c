/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cw_modes: tests conditional writes where no thread of the provider
 * makes progress, because of the requested threading or progress, and over
 * IPv6: with the write or the tag posted first, and with a thread that sleeps.
 */
#include "ft_mrrc.h"

#define LEN 70000

static struct ft_pair pair;
static char *out, *in;

static void transfer(struct ft_ep *w, struct ft_ep *t, bool tag_first,
		     uint64_t tag)
{
	struct ft_comp comp;

	ft_fill(out, LEN, tag);
	memset(in, 0, LEN);
	if (!tag_first)
		FT_CALL(fi_cwrite(w->cw, out, LEN, NULL, 0, tag, out));
	FT_CALL(fi_cwtag(t->cw, in, LEN, NULL, 0, tag, in));
	if (tag_first) {
		ft_expect_none(t, 2);
		FT_CALL(fi_cwrite(w->cw, out, LEN, NULL, 0, tag, out));
	}
	ft_wait(w, FT_TX, &comp);
	ft_wait(t, FT_RX, &comp);
	FT_CHECK_BUF(in, LEN, tag, "conditional write");
}

/* Each side makes progress only by its own waiting; the sides take turns. */
static void asleep(struct ft_ep *w, struct ft_ep *t, uint64_t tag)
{
	uint64_t end = ft_deadline();
	struct fi_cq_data_entry entry;
	struct ft_ep *ep[] = { w, t };
	enum ft_dir dir[] = { FT_TX, FT_RX };
	bool done[2] = { false };
	ssize_t ret;
	int i;

	ft_fill(out, LEN, tag);
	FT_CALL(fi_cwrite(w->cw, out, LEN, NULL, 0, tag, out));
	FT_CALL(fi_cwtag(t->cw, in, LEN, NULL, 0, tag, in));
	for (i = 0; !done[0] || !done[1]; i ^= 1) {
		FT_CHECK(ft_limit_us() < end, "write %d, tag %d", done[0],
			 done[1]);
		ret = fi_cq_sread(ep[i]->cq[dir[i]], &entry, 1, NULL, 10);
		FT_CHECK(ret == 1 || ret == -FI_EAGAIN, "fi_cq_sread: %zd",
			 ret);
		done[i] |= ret == 1;
	}
	FT_CHECK_BUF(in, LEN, tag, "conditional write");
}

static void run(const struct ft_attr *how, const char *what, bool automatic)
{
	struct ft_attr attr = *how;
	unsigned i, n = ft_iters(20);

	ft_stage("%s", what);
	attr.format = FI_CQ_FORMAT_DATA;
	attr.wait_obj = FI_WAIT_UNSPEC;
	attr.cw = attr.cw_pep = true;
	ft_pair_open(&pair, &attr);
	FT_CHECK(fi_mrrc_feature(&pair.c.ep->fid, "cw-auto-progress") ==
			 automatic,
		 "%s: whose progress?", what);
	for (i = 0; i < n; i++) {
		/*
		 * every connection is used, since tcp (1.17) leaks connections
		 * that close half accepted
		 */
		if (i % 5 == 4)
			ft_reconnect(&pair);
		transfer(&pair.c, &pair.s, i % 2, 3 * i);
		transfer(&pair.s, &pair.c, i % 2, 3 * i + 1);
		asleep(&pair.c, &pair.s, 3 * i + 2);
	}
	ft_check_idle(&pair.dom[0], what);
	ft_check_idle(&pair.dom[1], what);
	ft_pair_close(&pair);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has conditional writes");
	if (ft_rdm() || !ft_core("tcp"))
		ft_skip("of tcp it is known what it has");
	out = ft_map(NULL, LEN);
	in = ft_map(NULL, LEN);
	attr.threading = FI_THREAD_DOMAIN;
	run(&attr, "FI_THREAD_DOMAIN", false);
	attr = FT_ATTR;
	attr.progress = FI_PROGRESS_MANUAL;
	run(&attr, "FI_PROGRESS_MANUAL", false);
	attr = FT_ATTR;
	run(&attr, "IPv4", true);
	if (!access("/proc/net/if_inet6", R_OK)) {
		ft_opts.addr = "::1";
		run(&attr, "IPv6", true);
	}
	ft_unmap(out, LEN);
	ft_unmap(in, LEN);
	return ft_done();
}
