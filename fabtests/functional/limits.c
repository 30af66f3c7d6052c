/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_limits: a cache of 16 regions and 1 MiB, and an application that
 * uses far more. Evictions happen, the limits hold (except for regions in use),
 * and data is right.
 */
#include "ft_mrrc.h"

#include <sys/wait.h>

#define MAX_COUNT 16
#define MAX_SIZE  (1024 * 1024)
#define BUFS	  200
#define BUF_LEN	  (3 * FT_PAGE)
#define HELD	  40 /* more operations at once than regions allowed */

static void check_limits(struct ft_dom *dom, const char *when)
{
	struct fi_mrrc_stats st;

	if (!ft_stats(dom, &st))
		return;
	FT_CHECK(st.max_regions == MAX_COUNT && st.max_bytes == MAX_SIZE,
		 "limits in force: %" PRIu64 " regions, %" PRIu64 " bytes",
		 st.max_regions, st.max_bytes);
	FT_CHECK(st.regions <= MAX_COUNT + st.held_regions,
		 "%s: %" PRIu64 " regions, %" PRIu64 " of them held", when,
		 st.regions, st.held_regions);
	if (!st.held_regions)
		FT_CHECK(st.bytes <= MAX_SIZE, "%s: %" PRIu64 " bytes", when,
			 st.bytes);
}

/* Far apart, so that no two are registered as one. */
static char *buf_at(char *base, unsigned i)
{
	return base + (size_t) i * 4 * BUF_LEN;
}

static void by_count(struct ft_pair *pair, char *base, char *other)
{
	unsigned i, k, n = ft_iters(ft_core("verbs") ? 1000 : 5000);

	for (i = 0; i < n; i++) {
		ft_stage("by count: transfer %u", i);
		k = i % 3 ? i % BUFS : (unsigned) (ft_rand() % BUFS);
		ft_verify_pair(&pair->c, buf_at(base, k), other, BUF_LEN, i);
		ft_release_pair(pair);
		check_limits(&pair->dom[1], "by count");
	}
}

static void by_size(struct ft_pair *pair, char *base, char *other)
{
	size_t len = MAX_SIZE / 3;
	unsigned i, n = ft_core("verbs") ? 60 : 300;

	for (i = 0; i < n; i++) {
		ft_stage("by size: transfer %u", i);
		ft_verify_pair(&pair->c, base + (i % 6) * (MAX_SIZE / 2), other,
			       len, i);
		ft_release_pair(pair);
		check_limits(&pair->dom[1], "by size");
	}
}

/* One buffer larger than the limit is still transferred. */
static void beyond(struct ft_pair *pair, char *base, char *other)
{
	ft_stage("one buffer beyond the limit");
	ft_verify_pair(&pair->c, base, other, 2 * MAX_SIZE, 77);
	ft_verify_pair(&pair->s, other, base, 2 * MAX_SIZE, 78);
	ft_release_pair(pair);
	check_limits(&pair->dom[1], "beyond");
	check_limits(&pair->dom[0], "beyond");
}

/* More operations at once than regions are allowed. */
static void many_held(struct ft_pair *pair, char *base, char *other)
{
	struct fi_mrrc_stats st;
	struct ft_comp comp;
	unsigned i;
	char *p;

	ft_stage("%d operations at once", HELD);
	for (i = 0; i < HELD; i++) {
		p = buf_at(base, i);
		FT_POST(&pair->s,
			fi_recv(pair->s.ep, p, BUF_LEN,
				ft_desc(&pair->dom[0], p, BUF_LEN), FT_ANY, p));
	}
	check_limits(&pair->dom[0], "many held");
	if (ft_stats(&pair->dom[0], &st))
		FT_CHECK(st.posts - st.completions == HELD,
			 "%" PRIu64 " operations outstanding, not %d",
			 st.posts - st.completions, HELD);
	for (i = 0; i < HELD; i++) {
		ft_fill(other, BUF_LEN, 1000 + i);
		FT_POST(&pair->c,
			fi_send(pair->c.ep, other, BUF_LEN,
				ft_desc(&pair->dom[1], other, BUF_LEN),
				pair->c.to, NULL));
		ft_wait_ctx(&pair->c, FT_TX, NULL, FI_SEND);
		ft_wait(&pair->s, FT_RX, &comp);
		FT_CHECK(comp.ctx == buf_at(base, i), "receive %u: context", i);
		FT_CHECK_BUF(comp.ctx, BUF_LEN, 1000 + i, "many held");
	}
	ft_release_pair(pair);
	check_limits(&pair->dom[0], "after many held");
	ft_check_idle(&pair->dom[0], "after many held");
}

static void check_counters(struct ft_pair *pair)
{
	struct fi_mrrc_stats st;

	if (!ft_caches(&pair->dom[1]))
		return;
	ft_stats(&pair->dom[1], &st);
	FT_CHECK(st.evictions > 100, "only %" PRIu64 " evictions",
		 st.evictions);
	FT_CHECK(st.regions_peak >= 4 && st.regions_peak <= MAX_COUNT + HELD,
		 "peak of %" PRIu64 " regions", st.regions_peak);
	FT_CHECK(st.registrations - st.deregistrations <= MAX_COUNT,
		 "%" PRIu64 " registrations are left",
		 st.registrations - st.deregistrations);
}

/* A limit of 0 keeps nothing, whichever it is. In a process of its own. */
static void nothing(int argc, char **argv, const char *limit)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	struct ft_pair pair;
	pid_t pid = fork();
	int status;
	char *buf;

	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (pid) {
		FT_CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
		if (status)
			exit(1);
		return;
	}
	setenv(limit, "0", 1);
	ft_init(argc, argv);
	ft_stage("%s=0", limit);
	ft_pair_open(&pair, &attr);
	buf = ft_map(NULL, 2 * BUF_LEN);
	ft_verify_pair(&pair.c, buf, buf + BUF_LEN, BUF_LEN, 1);
	ft_verify_pair(&pair.c, buf, buf + BUF_LEN, BUF_LEN, 2);
	if (ft_stats(&pair.dom[1], &st))
		FT_CHECK(!st.hits && !st.regions,
			 "%" PRIu64 " hits, %" PRIu64 " regions", st.hits,
			 st.regions);
	ft_unmap(buf, 2 * BUF_LEN);
	ft_pair_close(&pair);
	exit(0);
}

int main(int argc, char **argv)
{
	size_t len = (size_t) BUFS * 4 * BUF_LEN;
	struct ft_attr attr = FT_ATTR;
	struct ft_pair pair;
	char *base, *other;

	nothing(argc, argv, "FI_OFI_MRRC_CACHE_MAX_SIZE");
	nothing(argc, argv, "FI_OFI_MRRC_CACHE_MAX_COUNT");
	setenv("FI_OFI_MRRC_CACHE_MAX_COUNT", "16", 1);
	setenv("FI_OFI_MRRC_CACHE_MAX_SIZE", "1M", 1);
	ft_init(argc, argv);
	ft_pair_open(&pair, &attr);
	base = ft_map(NULL, len);
	other = ft_map(NULL, 2 * MAX_SIZE);
	by_count(&pair, base, other);
	by_size(&pair, base, other);
	beyond(&pair, base, other);
	many_held(&pair, base, other);
	check_counters(&pair);
	ft_unmap(base, len);
	ft_unmap(other, 2 * MAX_SIZE);
	ft_pair_close(&pair);
	return ft_done();
}
