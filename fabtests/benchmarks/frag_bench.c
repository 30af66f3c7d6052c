/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * frag_bench: replays the allocations and frees of a program (malloc_record.c,
 * on standard input) up to the peak of live bytes, asks how much memory the
 * allocator holds for the live bytes, replays the rest, frees all allocations
 * that are left, and trims.
 *
 * The allocator is fi_mr_alloc, and its memory is the registered bytes. With -m
 * the allocator is malloc, and its memory is the bytes that malloc has from the
 * system, by glibc's mallinfo2() or jemalloc's mallctl(). Each allocation is
 * written to at its beginning and in each page.
 *
 * Prints "peak LIVE HELD RATIO blocks N after HELD N".
 */
#include <dlfcn.h>
#include <malloc.h>

#include "ft_mrrc.h"

static struct fid_domain *domain;
static bool by_malloc;

struct op {
	uint32_t number; /* number of the allocation */
	uint32_t len;	 /* length in bytes; 0: free */
};

#define OPS_MAX ((size_t) 1 << 23)

static struct op *ops;
static size_t ops_cnt, numbers, peak_at, peak_live;

static void read_trace(void)
{
	size_t live = 0, *lens = ft_map(NULL, OPS_MAX * sizeof(*lens));
	long long value;
	struct op op;

	/* the trace is not kept in memory of the malloc under test */
	ops = ft_map(NULL, OPS_MAX * sizeof(*ops));
	while (scanf("%lld", &value) == 1) {
		FT_CHECK(ops_cnt < OPS_MAX, "more than %zu lines", OPS_MAX);
		if (value > 0) {
			op = (struct op){ numbers, value };
			lens[numbers++] = value;
			live += value;
		} else {
			FT_CHECK(-value <= (long long) numbers,
				 "line %zu frees what is not", ops_cnt + 1);
			op = (struct op){ numbers + value, 0 };
			live -= lens[op.number];
		}
		ops[ops_cnt++] = op;
		if (live > peak_live) {
			peak_live = live;
			peak_at = ops_cnt;
		}
	}
	FT_CHECK(ops_cnt && feof(stdin), "no trace");
	ft_unmap(lens, OPS_MAX * sizeof(*lens));
}

static struct fi_mr_heap_stats stats_of(void)
{
	struct fi_mr_heap_stats stats = { .size = sizeof(stats) };

	FT_CALL(fi_mr_alloc_stats_read(domain, &stats));
	return stats;
}

/* Returns the number of bytes that the allocator has from the system. */
static size_t held(void)
{
	int (*ctl)(const char *, void *, size_t *, void *, size_t) =
		(int (*)(const char *, void *, size_t *, void *,
			 size_t)) dlsym(RTLD_DEFAULT, "mallctl");
	size_t value, size = sizeof(value);
	struct mallinfo2 info;
	uint64_t epoch = 1;

	if (!by_malloc)
		return stats_of().bytes;
	if (ctl) {
		FT_CALL(ctl("epoch", NULL, NULL, &epoch, sizeof(epoch)));
		FT_CALL(ctl("stats.resident", &value, &size, NULL, 0));
		return value;
	}
	info = mallinfo2();
	return info.arena + info.hblkhd;
}

static void *get(size_t len)
{
	char *buf;
	size_t pos;

	if (by_malloc)
		buf = malloc(len);
	else
		FT_CALL(fi_mr_alloc(domain, len, 0, 0, (void **) &buf, NULL));
	FT_CHECK(buf, "no %zu bytes", len);
	for (pos = 0; pos < len; pos += FT_PAGE)
		buf[pos] = 1;
	return buf;
}

static void put(void *buf)
{
	if (by_malloc)
		free(buf);
	else
		FT_CALL(fi_mr_free(domain, buf));
}

/* Replays the trace. The bytes that were held @before it do not count. */
static void replay(size_t before)
{
	void **live = ft_map(NULL, numbers * sizeof(*live));
	size_t i, at_peak = 0, blocks = 0, after;

	for (i = 0; i < ops_cnt; i++) {
		void **buf = &live[ops[i].number];

		if (ops[i].len) {
			*buf = get(ops[i].len);
		} else {
			put(*buf);
			*buf = NULL;
		}
		if (i + 1 == peak_at) {
			at_peak = held() - before;
			blocks = by_malloc ? 0 : stats_of().blocks;
		}
	}
	for (i = 0; i < numbers; i++) {
		if (live[i])
			put(live[i]);
	}
	if (by_malloc)
		malloc_trim(0);
	else
		FT_CALL(fi_mr_trim(domain));
	after = held();
	printf("peak %zu %zu %.3f blocks %zu after %zu %" PRIu64 "\n",
	       peak_live, at_peak, (double) at_peak / (double) peak_live,
	       blocks, after > before ? after - before : 0,
	       by_malloc ? 0 : stats_of().blocks);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	struct fid_fabric *fabric;
	struct fi_info *info;

	by_malloc = argc > 1 && !strcmp(argv[1], "-m");
	if (by_malloc) {
		read_trace();
		replay(held());
		return 0;
	}
	ft_init(argc, argv);
	read_trace();
	info = ft_getinfo(&attr);
	FT_CALL(fi_fabric(info->fabric_attr, &fabric, NULL));
	FT_CALL(fi_domain(fabric, info, &domain, NULL));
	replay(0);
	FT_CALL(fi_close(&domain->fid));
	FT_CALL(fi_close(&fabric->fid));
	fi_freeinfo(info);
	return 0;
}
