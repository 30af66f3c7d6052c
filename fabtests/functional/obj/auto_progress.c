/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_auto_progress: where a core makes progress in a thread of its own
 * (ofi_rxm, FI_PROGRESS_AUTO), the core takes its locks although the
 * application promised FI_THREAD_DOMAIN. Injected writes make connections,
 * while the core's thread does its part of the work: without locks the writes
 * hang or crash.
 */
#include "ft_mrrc.h"

#define LEN   8
#define PEERS 4

static struct ft_pair pair;
static struct ft_ep target[PEERS], origin[PEERS];
static char mem[PEERS * PEERS * LEN], out[LEN];

/* Makes progress: over tcp data move by calls, not in the core's thread. */
static void poll_all(void)
{
	int i;

	for (i = 0; i < PEERS; i++) {
		ft_poll(&origin[i]);
		ft_poll(&target[i]);
	}
}

static void write_all(struct fid_mr *mr)
{
	const uint64_t key = fi_mr_key(mr);
	const uint64_t raddr = ft_raddr(&pair.dom[0], mem);
	uint64_t end;
	fi_addr_t to;
	ssize_t ret;
	int i;

	for (i = 0; i < PEERS * PEERS; i++) {
		end = ft_deadline();
		ft_fill(out, LEN, i);
		to = ft_rdm_insert(&origin[i / PEERS], &target[i % PEERS]);
		while ((ret = fi_inject_write(origin[i / PEERS].ep, out, LEN,
					      to, raddr + i * LEN, key)) ==
		       -FI_EAGAIN) {
			poll_all();
			FT_CHECK(ft_limit_us() < end, "-FI_EAGAIN");
		}
		FT_CALL(ret);
	}
	for (i = 0; i < PEERS * PEERS; i++) {
		end = ft_deadline();
		while (ft_differs(mem + i * LEN, LEN, i) >= 0) {
			poll_all();
			FT_CHECK(ft_limit_us() < end, "no write %d", i);
		}
	}
}

static void round_of(const struct ft_attr *attr)
{
	struct fid_mr *mr;
	int i;

	memset(mem, 0xff, sizeof(mem));
	pair = (struct ft_pair){ .attr = *attr };
	for (i = 0; i < 2; i++)
		ft_rdm_open(&pair, &pair.dom[i]);
	for (i = 0; i < PEERS; i++) {
		ft_rdm_ep_open(&pair, &target[i], &pair.dom[0]);
		ft_rdm_ep_open(&pair, &origin[i], &pair.dom[1]);
	}
	mr = ft_reg(&pair.dom[0], mem, sizeof(mem), FI_REMOTE_WRITE);
	write_all(mr);
	FT_CALL(fi_close(&mr->fid));
	for (i = 0; i < PEERS; i++) {
		ft_ep_close(&origin[i]);
		ft_ep_close(&target[i]);
	}
	ft_pair_close(&pair);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_info *info;
	unsigned i;

	ft_init(argc, argv);
	if (!ft_rdm())
		ft_skip("of reliable datagrams");
	attr.caps = FI_RMA;
	attr.threading = FI_THREAD_DOMAIN;
	attr.progress = FI_PROGRESS_AUTO;
	info = ft_getinfo(&attr);
	fi_freeinfo(info);
	for (i = 0; i < ft_iters(ft_core("verbs") ? 8 : 20); i++) {
		ft_stage("round %u", i);
		round_of(&attr);
	}
	return ft_done();
}
