/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_mappings: watching a buffer splits the mapping it lies in, and a
 * process can have only so many (vm.max_map_count). Four domains cache as much
 * as they can; then the application makes 95 % of the mappings that it could
 * have made without them, and starts threads.
 */
#include "ft_mrrc.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

#define BUFS	10000  /* of each domain; more than there is room for */
#define MANY	300000 /* mappings: too many to try */
#define THREADS 20

static char **own;

static size_t mappings_max(void)
{
	FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
	unsigned long max = 0;

	if (file) {
		if (fscanf(file, "%lu", &max) != 1)
			max = 0;
		fclose(file);
	}
	return max;
}

/* As many as possible, at most `most`; no two that the kernel could merge. */
static size_t map_all(size_t most)
{
	size_t n;

	for (n = 0; n < most; n++) {
		own[n] = mmap(NULL, FT_PAGE, n % 2 ? PROT_READ : PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (own[n] == MAP_FAILED)
			break;
	}
	return n;
}

static void unmap_all(size_t n)
{
	while (n--)
		munmap(own[n], FT_PAGE);
}

static void *nothing(void *arg)
{
	return arg;
}

static void threads(void)
{
	pthread_t thread[THREADS];
	unsigned i;

	for (i = 0; i < THREADS; i++)
		FT_CHECK(!pthread_create(&thread[i], NULL, nothing, NULL),
			 "thread %u", i);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

/* Every other page is registered, used and left to the cache. */
static void fill(struct ft_dom *dom, char *bufs)
{
	struct fid_mr *mr;
	unsigned i;

	for (i = 0; i < BUFS; i++) {
		FT_CALL(fi_mr_reg(dom->domain, bufs + i * 2 * FT_PAGE, FT_PAGE,
				  FI_SEND | FI_RECV, 0, i + 1, 0, &mr, NULL));
		FT_CALL(fi_close(&mr->fid));
	}
}

/* Each has some, and together they keep within the limit. */
static void check_share(struct ft_pair *pair, size_t max)
{
	struct fi_mrrc_stats st;
	uint64_t regions = 0;
	int i;

	for (i = 0; i < 4; i++) {
		FT_CHECK(ft_stats(&pair[i / 2].dom[i % 2], &st),
			 "no statistics");
		FT_CHECK(st.regions > max / 64 && !st.uncached,
			 "%" PRIu64 " regions, %" PRIu64 " uncached",
			 st.regions, st.uncached);
		regions += st.regions;
	}
	FT_CHECK(regions > max / 8 && regions <= max / 4, "%" PRIu64 " regions",
		 regions);
}

int main(int argc, char **argv)
{
	size_t max, without, with;
	struct ft_attr attr = FT_ATTR;
	struct ft_pair pair[2];
	char *bufs, *out, *in;
	int i;

	ft_init(argc, argv);
	if (!ft_core("tcp") || ft_rxm())
		ft_skip("it is the same over all cores");
	max = mappings_max();
	if (!max || max > MANY)
		ft_skip("%zu mappings: too many to try", max);
	own = ft_map(NULL, max * sizeof(*own));
	bufs = ft_map(NULL, 4 * BUFS * 2 * FT_PAGE);
	out = ft_map(NULL, FT_PAGE);
	in = ft_map(NULL, FT_PAGE);
	for (i = 0; i < 2; i++)
		ft_pair_open(&pair[i], &attr);
	without = map_all(max);
	unmap_all(without);

	ft_stage("four domains");
	for (i = 0; i < 4; i++)
		fill(&pair[i / 2].dom[i % 2], bufs + i * BUFS * 2 * FT_PAGE);
	check_share(pair, max);

	ft_stage("the application maps");
	with = map_all(without - max / 20);
	FT_CHECK(with == without - max / 20, "%zu mappings, %zu without", with,
		 without);
	unmap_all(with);
	with = map_all(without - max / 20 - 2 * THREADS);
	threads();
	unmap_all(with);

	ft_stage("and goes on");
	for (i = 0; i < 2; i++) {
		ft_verify_pair(&pair[i].c, out, in, FT_PAGE, i);
		ft_pair_close(&pair[i]);
	}
	return ft_done();
}
