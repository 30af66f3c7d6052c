/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_split: transfers random parts of one arena, which is far larger than
 * the cache, so that buffers overlap registered regions in every way. Data is
 * right, and several regions serve one buffer.
 *
 * With -w FILE the requests are written to FILE, in the format of
 * fi_mrrc_sim(1), and the counters are printed: scripts/test_sim.sh compares
 * the counters with those of the simulated requests.
 */
#include "ft_mrrc.h"

#define ARENA 1024 /* pages */
#define PAGES 24   /* maximum pages of a transfer */
#define LEN   (PAGES * FT_PAGE)

static FILE *trace;

/* Returns a random number below n; small numbers are likelier. */
static unsigned skewed(unsigned n)
{
	return ft_rand() % (1 + ft_rand() % n);
}

static uint64_t lookups(struct ft_dom *dom)
{
	struct fi_mrrc_stats st = { 0 };

	ft_stats(dom, &st);
	return st.lookups;
}

/*
 * Records a request, unless it is a small write that the provider left to the
 * core to inject.
 */
static void record(struct ft_dom *dom, unsigned i, const char *buf, size_t len,
		   bool write, uint64_t before)
{
	bool injected = write && len <= dom->info->tx_attr->inject_size &&
			lookups(dom) == before;

	if (!injected)
		fprintf(trace, "%u,%" PRIuPTR ",%zu,%s\n", i, (uintptr_t) buf,
			len, write ? "r" : "rw");
}

static void transfer(struct ft_pair *pair, struct fid_mr *mr, char *buf,
		     char *target, size_t len, unsigned i, bool write)
{
	struct ft_ep *c = &pair->c;
	void *d = ft_desc(c->dom, buf, len);
	const uint64_t addr = ft_raddr(&pair->dom[0], target);

	ft_stage("transfer %u: %zu bytes %s", i, len,
		 write ? "written" : "read");
	ft_fill(write ? buf : target, len, i);
	memset(write ? target : buf, 0, len);
	if (write)
		FT_POST(c, fi_write(c->ep, buf, len, d, c->to, addr,
				    fi_mr_key(mr), buf));
	else
		FT_POST(c, fi_read(c->ep, buf, len, d, c->to, addr,
				   fi_mr_key(mr), buf));
	ft_wait_ctx(c, FT_TX, buf, FI_RMA | (write ? FI_WRITE : FI_READ));
	if (write)
		ft_wait_buf(&pair->s, target, len, i);
	else
		FT_CHECK_BUF(buf, len, i, "read");
	ft_release(c->dom);
}

static void run(struct ft_pair *pair, char *arena, char *target)
{
	const unsigned n = ft_iters(ft_core("verbs") ? 1000 : 4000);
	struct fid_mr *mr = ft_reg(&pair->dom[0], target, LEN,
				   FI_REMOTE_WRITE | FI_REMOTE_READ);
	uint64_t before = 0;
	unsigned i, page;
	size_t len, head;
	bool write;

	for (i = 0; i < n; i++) {
		page = skewed(ARENA - PAGES);
		head = i % 3 ? 0 : ft_rand() % FT_PAGE;
		len = (1 + skewed(PAGES)) * FT_PAGE - head;
		if (i % 5 == 0)
			len = 1 + ft_rand() % len;
		write = ft_rand() % 2;
		if (trace)
			before = lookups(&pair->dom[1]);
		transfer(pair, mr, arena + page * FT_PAGE + head, target, len,
			 i, write);
		if (trace)
			record(&pair->dom[1], i, arena + page * FT_PAGE + head,
			       len, write, before);
	}
	ft_check_idle(&pair->dom[1], "after all transfers");
	FT_CALL(fi_close(&mr->fid));
}

static void report(struct ft_dom *dom, const struct fi_mrrc_stats *before)
{
	struct fi_mrrc_stats st;
	uint64_t splits;

	if (!ft_caches(dom))
		return;
	ft_stats(dom, &st);
	splits = ft_counter(dom, "splits");
	FT_CHECK(st.evictions > before->evictions, "no evictions");
	printf("counters: %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
	       " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
	       st.lookups - before->lookups, st.hits - before->hits,
	       st.registrations - before->registrations,
	       st.deregistrations - before->deregistrations,
	       st.evictions - before->evictions, splits,
	       ft_counter(dom, "merges"));
	/* with a policy that the user asks for, buffers may be kept whole */
	if (!getenv("FI_OFI_MRRC_POLICY"))
		FT_CHECK(splits, "nothing was split");
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats before = { 0 };
	struct ft_pair pair;
	char *arena, *target;
	int op;

	setenv("FI_OFI_MRRC_CACHE_MAX_COUNT", "64", 0);
	setenv("FI_OFI_MRRC_CACHE_MAX_SIZE", "1M", 0);
	while ((op = getopt(argc, argv, FT_OPTS "w:")) != -1) {
		if (op == 'w') {
			trace = fopen(optarg, "w");
			FT_CHECK(trace, "%s: %s", optarg, strerror(errno));
			fputs("time_us,addr,len,access\n", trace);
		} else {
			ft_parse_opt(argv[0], op, optarg);
		}
	}
	ft_start(argv[0]);
	ft_pair_open(&pair, &attr);
	arena = ft_map(NULL, ARENA * FT_PAGE);
	target = ft_map(NULL, LEN);
	if (ft_caches(&pair.dom[1])) {
		FT_CALL(fi_mrrc_flush(pair.dom[1].domain));
		ft_stats(&pair.dom[1], &before);
	}
	run(&pair, arena, target);
	report(&pair.dom[1], &before);
	if (trace)
		FT_CHECK(!fclose(trace), "write: %s", strerror(errno));
	ft_unmap(arena, ARENA * FT_PAGE);
	ft_unmap(target, LEN);
	ft_pair_close(&pair);
	return ft_done();
}
