/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_domains: tests that an open domain takes little memory, from a new
 * heap and from a heap that other domains have used, and that closing the
 * domain gives all of its memory back. The first domain does not change which
 * blocks malloc maps.
 */
#include "ft_mrrc.h"

#include <malloc.h>
#include <sys/prctl.h>

#define DOMAINS 32
#define MOST	(64 << 10)    /* maximum bytes of a domain */
#define BLOCK	(512UL << 10) /* a large block: glibc maps it by itself */

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain[DOMAINS + 1];

static void open_one(unsigned i)
{
	FT_CALL(fi_domain(fabric, info, &domain[i], NULL));
}

static void close_one(unsigned i)
{
	FT_CALL(fi_close(&domain[i]->fid));
}

static void open_all(const char *when)
{
	const size_t before = ft_rss();
	const double begin = ft_time_us();
	size_t each;
	unsigned i;

	ft_stage("%s", when);
	for (i = 0; i < DOMAINS; i++)
		open_one(i);
	each = (ft_rss() - before) / DOMAINS;
	ft_log("%s: %zu bytes and %.0f us for each domain", when, each,
	       (ft_time_us() - begin) / DOMAINS);
	FT_CHECK(!before || ft_rss() < before + DOMAINS * MOST,
		 "%s: a domain takes %zu bytes", when, each);
}

static void close_all(void)
{
	unsigned i;

	for (i = 0; i < DOMAINS; i++)
		close_one(i);
}

/*
 * Does malloc map a large block? Freeing a mapped block raises glibc's
 * threshold for the whole process.
 */
static bool malloc_maps(void)
{
	const size_t before = mallinfo2().hblks;
	static void *volatile block[2];
	bool maps;

	/* keep the blocks, since freeing them would raise the threshold, too */
	block[!!block[0]] = malloc(BLOCK);
	maps = mallinfo2().hblks > before;
	FT_CHECK(block[0], "malloc of %lu", BLOCK);
	return maps;
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	size_t rss;
	bool maps;

	ft_init(argc, argv);
	/* pages of 2 MiB would hide how much of the memory is used */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	info = ft_getinfo(&attr);
	FT_CALL(fi_fabric(info->fabric_attr, &fabric, NULL));
	/* the first domain starts the process's threads and measurements */
	maps = malloc_maps();
	open_one(DOMAINS);
	ft_wait_quiet();
	/* the drivers of verbs change malloc's threshold themselves */
	FT_CHECK(strstr(info->fabric_attr->prov_name, "verbs") ||
			 malloc_maps() == maps,
		 "malloc has changed");
	open_all("at first");
	close_all();
	malloc_trim(0);
	rss = ft_rss();
	open_all("again");
	close_all();
	malloc_trim(0);
	FT_CHECK(!rss || ft_rss() < rss + MOST, "%zu bytes more",
		 ft_rss() - rss);
	close_one(DOMAINS);
	FT_CALL(fi_close(&fabric->fid));
	fi_freeinfo(info);
	return ft_done();
}
