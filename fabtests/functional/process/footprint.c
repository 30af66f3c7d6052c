/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_footprint: tests how much address space domains take of their
 * process, in a program that has little address space (ulimit -v), and in a
 * program with large thread-local variables, which libc puts on the stack of
 * each thread.
 */
#include "ft_mrrc.h"

#include <sys/resource.h>

#define FIRST_KIB  (16 << 10)
#define SECOND_KIB (8 << 10)
#define LIMIT_KIB  300000
#define HUGE_KIB   (1 << 20) /* a process under a sanitizer has more */
#define LEN	   (64UL << 10)
#define ROUNDS	   200

/*
 * Thread-local memory larger than the stack that the provider's threads need.
 */
static __thread volatile char local[512 << 10];

static size_t addresses_kib(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	FT_CHECK(file && fscanf(file, "%lu", &pages) == 1, "/proc/self/statm");
	fclose(file);
	return pages * FT_PAGE / 1024;
}

static void domains(void)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_info *info = ft_getinfo(&attr);
	struct fid_domain *domain[2];
	struct fid_fabric *fabric;
	size_t kib[3];
	int i;

	FT_CALL(fi_fabric(info->fabric_attr, &fabric, NULL));
	kib[0] = addresses_kib();
	for (i = 0; i < 2; i++) {
		FT_CALL(fi_domain(fabric, info, &domain[i], NULL));
		kib[i + 1] = addresses_kib();
	}
	ft_log("%zu, then %zu KiB", kib[1] - kib[0], kib[2] - kib[1]);
	FT_CHECK(kib[1] - kib[0] <= FIRST_KIB,
		 "the first domain takes %zu KiB of addresses",
		 kib[1] - kib[0]);
	FT_CHECK(kib[2] - kib[1] <= SECOND_KIB,
		 "the second domain takes %zu KiB of addresses",
		 kib[2] - kib[1]);
	for (i = 0; i < 2; i++)
		FT_CALL(fi_close(&domain[i]->fid));
	FT_CALL(fi_close(&fabric->fid));
	fi_freeinfo(info);
}

static void transfers(void)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	struct ft_pair pair;
	char *to, *from;
	unsigned i;

	ft_pair_open(&pair, &attr);
	from = ft_map(NULL, LEN);
	to = ft_map(NULL, LEN);
	for (i = 0; i < ROUNDS; i++) {
		ft_verify_pair(&pair.c, from, to, LEN, i);
		ft_release_pair(&pair);
	}
	if (ft_caches(&pair.dom[1]) && ft_stats(&pair.dom[1], &st))
		FT_CHECK(st.hits >= ROUNDS / 2, "%" PRIu64 " hits", st.hits);
	ft_unmap(from, LEN);
	ft_unmap(to, LEN);
	ft_pair_close(&pair);
}

int main(int argc, char **argv)
{
	const struct rlimit limit = { LIMIT_KIB * 1024UL, LIMIT_KIB * 1024UL };

	ft_init(argc, argv);
	local[0] = 1;
	if (addresses_kib() > HUGE_KIB || ft_valgrind())
		ft_skip("a tool takes addresses of its own");
	if (!ft_core("tcp"))
		ft_skip("other cores take addresses of their own");
	domains();
	ft_stage("few addresses");
	FT_CALL(setrlimit(RLIMIT_AS, &limit));
	transfers();
	return ft_done();
}
