/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cntr: endpoints with counters and without completion queues. Each
 * operation counts once, when its buffer is the application's again.
 */
#include "ft_mrrc.h"

#define LEN   6000
#define BATCH 20

static uint64_t sent, received;

static void sends(struct ft_pair *pair, char *out, char *in)
{
	struct ft_ep *c = &pair->c, *s = &pair->s;
	void *cd = ft_desc(c->dom, out, BATCH * LEN);
	void *sd = ft_desc(s->dom, in, BATCH * LEN);
	unsigned i;

	ft_fill(out, BATCH * LEN, sent);
	memset(in, 0, BATCH * LEN);
	for (i = 0; i < BATCH; i++)
		FT_POST(c, fi_recv(s->ep, in + i * LEN, LEN, sd, FT_ANY, NULL));
	for (i = 0; i < BATCH; i++)
		FT_POST(c, fi_send(c->ep, out + i * LEN, LEN, cd, c->to, NULL));
	ft_wait_cntr(s, FT_RX, received += BATCH);
	ft_wait_cntr(c, FT_TX, sent += BATCH);
	FT_CHECK_BUF(in, BATCH * LEN, sent - BATCH, "counted receives");
	ft_release(c->dom);
	ft_release(s->dom);
}

static void rma(struct ft_pair *pair, char *local, char *remote,
		struct fid_mr *mr, bool read)
{
	struct ft_ep *c = &pair->c, *s = &pair->s;
	void *cd = ft_desc(c->dom, local, BATCH * LEN);
	uint64_t addr = ft_raddr(s->dom, remote), key = fi_mr_key(mr);
	char *from = read ? remote : local, *to = read ? local : remote;
	unsigned i;

	ft_fill(from, BATCH * LEN, sent);
	memset(to, 0, BATCH * LEN);
	for (i = 0; i < BATCH; i++) {
		if (read)
			FT_POST(c, fi_read(c->ep, local + i * LEN, LEN, cd,
					   c->to, addr + i * LEN, key, NULL));
		else
			FT_POST(c, fi_write(c->ep, local + i * LEN, LEN, cd,
					    c->to, addr + i * LEN, key, NULL));
	}
	ft_wait_cntr(c, FT_TX, sent += BATCH);
	if (read)
		FT_CHECK_BUF(local, BATCH * LEN, sent - BATCH, "counted reads");
	ft_wait_buf(c, to, BATCH * LEN, sent - BATCH);
	ft_release(c->dom);
}

/* Counters do not move when nothing is done. */
static void still(struct ft_pair *pair)
{
	uint64_t end = ft_now_us() + 20000;

	while (ft_now_us() < end)
		ft_progress(&pair->c);
	FT_CHECK(fi_cntr_read(pair->c.cntr[FT_TX]) == sent &&
			 fi_cntr_read(pair->s.cntr[FT_RX]) == received &&
			 !fi_cntr_read(pair->c.cntr[FT_RX]) &&
			 !fi_cntr_read(pair->s.cntr[FT_TX]),
		 "counters moved by themselves");
}

static void setting(struct ft_pair *pair)
{
	struct fid_cntr *cntr = pair->c.cntr[FT_TX];

	ft_stage("setting and adding");
	FT_CALL(fi_cntr_add(cntr, 5));
	ft_wait_cntr(&pair->c, FT_TX, sent + 5);
	FT_CALL(fi_cntr_set(cntr, 0));
	sent = 0;
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	struct ft_pair pair;
	char *local, *remote;
	struct fid_mr *mr;
	unsigned i;

	ft_init(argc, argv);
	attr.no_cq = attr.cntr = true;
	attr.tx_selective = attr.rx_selective = true;
	ft_pair_open(&pair, &attr);
	local = ft_map(NULL, BATCH * LEN);
	remote = ft_map(NULL, BATCH * LEN);
	mr = ft_reg(&pair.dom[0], remote, BATCH * LEN,
		    FI_REMOTE_READ | FI_REMOTE_WRITE);
	for (i = 0; i < ft_iters(100); i++) {
		ft_stage("round %u", i);
		sends(&pair, local, remote);
		rma(&pair, local, remote, mr, false);
		rma(&pair, local, remote, mr, true);
		if (i == 50)
			setting(&pair);
	}
	still(&pair);
	ft_check_idle(&pair.dom[0], "all counted");
	ft_check_idle(&pair.dom[1], "all counted");
	FT_CALL(fi_close(&mr->fid));
	ft_unmap(local, BATCH * LEN);
	ft_unmap(remote, BATCH * LEN);
	ft_pair_close(&pair);
	return ft_done();
}
