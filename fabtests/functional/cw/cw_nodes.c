/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reliable datagram endpoints with each other's address: see cw_nodes.h. */
#include "cw/cw_nodes.h"

struct ft_attr attr;
struct ft_pair pair;
struct node node[EPS];
char *out, *in;

void poll_all(void)
{
	int i;

	for (i = 0; i < EPS; i++) {
		if (node[i].ep.dom)
			ft_poll(&node[i].ep);
	}
}

void open_node(int i)
{
	memset(&node[i], 0, sizeof(node[i]));
	ft_rdm_ep_open(&pair, &node[i].ep, &pair.dom[i % 2]);
}

void know(int i, int k)
{
	node[i].peer[k] = ft_rdm_insert(&node[i].ep, &node[k].ep);
}

void open_all(int n)
{
	int i, k;

	for (i = 0; i < n; i++)
		open_node(i);
	for (i = 0; i < n; i++) {
		for (k = 0; k < n; k++)
			know(i, k);
	}
}

void close_all(void)
{
	int i;

	for (i = 0; i < EPS; i++)
		ft_ep_close(&node[i].ep);
}

void wait_comp(int i, enum ft_dir dir, struct ft_comp *comp)
{
	uint64_t end = ft_deadline();

	while (!ft_take(&node[i].ep, dir, comp)) {
		poll_all();
		FT_CHECK(ft_limit_us() < end, "endpoint %d: nothing completes",
			 i);
	}
}

void wait_err(int i, enum ft_dir dir, void *ctx, int err)
{
	struct ft_comp comp;

	wait_comp(i, dir, &comp);
	FT_CHECK(comp.ctx == ctx && comp.err == err,
		 "endpoint %d: context %p, error %d (%s), not %d", i, comp.ctx,
		 comp.err, fi_strerror(comp.err), err);
}

void write_to(int i, int k, uint64_t tag)
{
	char *from = out + tag % 1024 * LEN;

	FT_CALL(fi_cwrite(node[i].ep.cw, from, LEN, NULL, node[i].peer[k], tag,
			  from));
}

void expose(int i, int k, uint64_t tag)
{
	char *to = in + tag % 1024 * LEN;

	FT_CALL(fi_cwtag(node[i].ep.cw, to, LEN, NULL, node[i].peer[k], tag,
			 to));
}

void transfer(int w, int t, uint64_t tag)
{
	memset(in + tag % 1024 * LEN, 0, LEN);
	ft_fill(out + tag % 1024 * LEN, LEN, tag);
	write_to(w, t, tag);
	expose(t, w, tag);
	wait_err(w, FT_TX, out + tag % 1024 * LEN, 0);
	wait_err(t, FT_RX, in + tag % 1024 * LEN, 0);
	FT_CHECK_BUF(in + tag % 1024 * LEN, LEN, tag, "conditional write");
}

void check_none(int i)
{
	struct fi_mrrc_cw_stats st = { .size = sizeof(st) };

	FT_CALL(fi_cw_stats_read(node[i].ep.cw, &st));
	FT_CHECK(!st.pending_writes && !st.pending_tags &&
			 st.writes == st.writes_ended &&
			 st.tags == st.tags_ended,
		 "endpoint %d: something is left", i);
}
