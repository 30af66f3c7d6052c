/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_mappings: tests the number of mappings. Watching a buffer splits the
 * mapping in which the buffer lies, and the mappings of a process are limited
 * (vm.max_map_count). In the test four domains cache as many buffers as the
 * provider allows. Beside the four domains the application makes at least 95 %
 * of the mappings that it could make without domains, and starts threads. After
 * a long run the application can still make as many mappings. The buffers of
 * the run are neighbours at first, in one mapping, so that more of the buffers
 * can be watched than if they were separate; later the buffers lie anywhere.
 *
 * The number of mappings has an upper limit: the application's mappings, half
 * of the mappings that a process may have, and the mappings made between two
 * checks (mon_room.c). A check is made each time that a 64th of that half was
 * watched, a range takes two mappings at most, and the caches give up the
 * excess by the second check after that.
 */
#include "ft_mrrc.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

/* pages of a range in which no huge page can be made */
#define HUGE 512
/* buffers of each domain; more than the domains can keep */
#define BUFS	10000
#define PAGES	(1 << 20) /* pages in which buffers lie */
#define LONG	24000	  /* steps of the long run */
#define MANY	300000	  /* number of mappings that are too many to try */
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

/*
 * Makes as many mappings as possible, at most `most`; the kernel can merge no
 * two of these mappings.
 */
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

/* Maps pages at @at, or anywhere; new pages are merged with the rest. */
static char *map_bufs(char *at, size_t pages)
{
	char *bufs = mmap(at, pages * FT_PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
				  (at ? MAP_FIXED : 0),
			  -1, 0);

	FT_CHECK(bufs != MAP_FAILED, "%zu pages are not mapped", pages);
	return bufs;
}

/* Prevents huge pages, which are watched as a whole and split nothing. */
static void prevent_huge(char *bufs)
{
	size_t i;

	for (i = HUGE / 2; i < PAGES; i += HUGE)
		madvise(bufs + i * FT_PAGE, FT_PAGE, MADV_DONTDUMP);
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

/* Registers a buffer, which the cache then keeps. */
static void use(struct ft_pair *pair, unsigned which, char *buf)
{
	struct fid_domain *domain = pair[which / 2].dom[which % 2].domain;
	struct fid_mr *mr;

	FT_CALL(fi_mr_reg(domain, buf, FT_PAGE, FI_SEND | FI_RECV, 0, 1, 0, &mr,
			  NULL));
	FT_CALL(fi_close(&mr->fid));
}

/* Registers each @step-th page, in four domains. */
static void fill(struct ft_pair *pair, char *bufs, size_t step)
{
	size_t i;

	for (i = 0; i < 4 * BUFS; i++)
		use(pair, i / BUFS, bufs + i * step * FT_PAGE);
}

/*
 * Each domain keeps some regions, and all domains together keep within the
 * limit.
 */
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

/* Checks that 95 % as many mappings are possible as without domains. */
static void check_maps(size_t without, size_t max)
{
	size_t with = map_all(without - max / 20);

	FT_CHECK(with == without - max / 20, "%zu mappings, %zu without", with,
		 without);
	unmap_all(with);
	with = map_all(without - max / 20 - 2 * THREADS);
	threads();
	unmap_all(with);
}

/* Registers pages anywhere; unmaps one page in 16. */
static void run_long(struct ft_pair *pair, char *bufs, size_t most)
{
	size_t now, peak = 0;
	unsigned i;
	char *buf;

	fill(pair, bufs, 1);
	for (i = 1; i <= LONG; i++) {
		buf = bufs + ft_rand() % PAGES * FT_PAGE;
		use(pair, i % 4, buf);
		if (i % 16 == 0)
			map_bufs(buf, 1);
		if (i % 500)
			continue;
		threads();
		now = ft_mappings();
		if (now > peak)
			peak = now;
		FT_CHECK(now <= most, "%zu mappings, %zu at most", now, most);
	}
	/*
	 * a lower peak means that the run was too short, except where more
	 * mappings are allowed than there are buffers
	 */
	FT_CHECK(peak > most / 4 * 3 || most > 8 * BUFS,
		 "%zu mappings, %zu at most", peak, most);
}

int main(int argc, char **argv)
{
	size_t max, without, before;
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
	bufs = map_bufs(NULL, PAGES);
	prevent_huge(bufs);
	out = ft_map(NULL, FT_PAGE);
	in = ft_map(NULL, FT_PAGE);
	for (i = 0; i < 2; i++)
		ft_pair_open(&pair[i], &attr);
	without = map_all(max);
	unmap_all(without);

	before = ft_mappings();

	ft_stage("four domains");
	fill(pair, bufs, 2);
	check_share(pair, max);
	check_maps(without, max);

	ft_stage("a long run");
	run_long(pair, bufs, before + max / 2 + 3 * (max / 32));
	check_maps(without, max);

	ft_stage("and goes on");
	for (i = 0; i < 2; i++) {
		ft_verify_pair(&pair[i].c, out, in, FT_PAGE, i);
		ft_pair_close(&pair[i]);
	}
	return ft_done();
}
