/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_unmap: tests transfers that use an address again after its memory was
 * replaced, in every way that Linux has: no transfer may touch the old pages.
 * Data is verified each time, and the invalidations are counted.
 */
#include "ft_mrrc.h"

#include <malloc.h>

#define LEN (16 * FT_PAGE)

static uint64_t seed;

/* Transfers from p and into p, twice: p is registered for both, then found. */
static void use(struct ft_pair *pair, char *p, size_t len, char *other)
{
	ft_verify_pair(&pair->c, p, other, len, ++seed);
	ft_verify_pair(&pair->s, other, p, len, ++seed);
	ft_verify_pair(&pair->c, p, other, len, ++seed);
	ft_verify_pair(&pair->s, other, p, len, ++seed);
	ft_release_pair(pair);
}

static void by_munmap(struct ft_pair *pair, char *other)
{
	char *p = ft_map(NULL, LEN);

	use(pair, p, LEN, other);
	ft_unmap(p, LEN);
	if (!ft_map_hole(p, LEN))
		p = ft_map(NULL, LEN);
	use(pair, p, LEN, other);
	ft_unmap(p, LEN);
}

/* The new mapping replaces the old one in one call. */
static void by_map_fixed(struct ft_pair *pair, char *other)
{
	char *p = ft_map(NULL, LEN);

	use(pair, p, LEN, other);
	ft_map(p, LEN);
	use(pair, p, LEN, other);
	/* replace only the middle: the first and the last page stay */
	ft_map(p + 5 * FT_PAGE, 3 * FT_PAGE);
	use(pair, p, LEN, other);
	ft_unmap(p, LEN);
}

static void by_mremap(struct ft_pair *pair, char *other)
{
	char *p = ft_map(NULL, LEN), *q = ft_map(NULL, LEN), *r;
	size_t len;

	use(pair, p, LEN, other);
	use(pair, q, LEN, other);
	/* p's pages move over q's */
	r = mremap(p, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, q);
	FT_CHECK(r == q, "mremap: %s", strerror(errno));
	use(pair, q, LEN, other);
	if (!ft_map_hole(p, LEN))
		p = ft_map(NULL, LEN);
	use(pair, p, LEN, other);
	/* shrink and grow the mapping in place */
	r = mremap(q, LEN, LEN / 2, 0);
	FT_CHECK(r == q, "mremap: %s", strerror(errno));
	len = ft_map_hole(q + LEN / 2, LEN / 2) ? LEN : LEN / 2;
	use(pair, q, len, other);
	ft_unmap(p, LEN);
	ft_unmap(q, len);
}

static void by_dontneed(struct ft_pair *pair, char *other)
{
	char *p = ft_map(NULL, LEN);
	size_t i;

	use(pair, p, LEN, other);
	FT_CHECK(!madvise(p + FT_PAGE, LEN / 2, MADV_DONTNEED), "madvise: %s",
		 strerror(errno));
	for (i = 0; i < LEN / 2; i++)
		FT_CHECK(!p[FT_PAGE + i], "MADV_DONTNEED left data at %zu", i);
	use(pair, p, LEN, other);
	ft_unmap(p, LEN);
}

/* glibc maps blocks of this size, and unmaps them when they are freed. */
static void by_free(struct ft_pair *pair, char *other)
{
	size_t len = 300 * 1024;
	char *p;
	int i;

	for (i = 0; i < 4; i++) {
		p = malloc(len + (size_t) i % 2 * FT_PAGE);
		FT_CHECK(p, "malloc");
		use(pair, p, LEN, other);
		free(p);
	}
}

static void by_sbrk(struct ft_pair *pair, char *other)
{
	char *p = sbrk(0), *q;
	size_t pad = (FT_PAGE - (uintptr_t) p % FT_PAGE) % FT_PAGE;

	if (sbrk((intptr_t) (pad + LEN)) != p)
		return;
	p += pad;
	use(pair, p, LEN, other);
	/* another caller (malloc) may have moved the program break meanwhile */
	if (sbrk(0) != p + LEN)
		return;
	FT_CHECK(sbrk(-(intptr_t) LEN) != (void *) -1, "sbrk");
	q = sbrk((intptr_t) LEN);
	if (q != p)
		return;
	use(pair, p, LEN, other);
	if (sbrk(0) == p + LEN)
		FT_CHECK(sbrk(-(intptr_t) LEN) != (void *) -1, "sbrk");
}

/*
 * Changes the protection of memory. (fork.c tests private copies made by a
 * fork.)
 */
static void by_mprotect(struct ft_pair *pair, char *other)
{
	char *p = ft_map(NULL, LEN);

	use(pair, p, LEN, other);
	FT_CHECK(!mprotect(p, LEN, PROT_READ), "mprotect");
	FT_CHECK(!mprotect(p, LEN, PROT_READ | PROT_WRITE), "mprotect");
	use(pair, p, LEN, other);
	ft_unmap(p, LEN);
}

struct way {
	const char *name;
	void (*run)(struct ft_pair *pair, char *other);
	unsigned uses; /* minimum number of invalidations in a round */
};

static const struct way ways[] = {
	{ "munmap", by_munmap, 2 },	{ "MAP_FIXED", by_map_fixed, 3 },
	{ "mremap", by_mremap, 4 },	{ "MADV_DONTNEED", by_dontneed, 2 },
	{ "free", by_free, 2 },		{ "sbrk", by_sbrk, 0 },
	{ "mprotect", by_mprotect, 1 },
};

static void run_way(struct ft_pair *pair, const struct way *way, char *other,
		    unsigned rounds)
{
	const uint64_t begin = ft_now_us();
	struct fi_mrrc_stats before, after;
	uint64_t end, gone;
	unsigned i;

	ft_stats(&pair->dom[1], &before);
	for (i = 0; ft_round(i, rounds, begin); i++) {
		ft_stage("%s, round %u", way->name, i);
		way->run(pair, other);
	}
	rounds = i;
	end = ft_deadline();
	ft_check_idle(&pair->dom[0], way->name);
	ft_check_idle(&pair->dom[1], way->name);
	if (!ft_caches(&pair->dom[1]))
		return;
	/*
	 * munmap() returns when its event is read; the counter may follow later
	 */
	do {
		ft_stats(&pair->dom[1], &after);
		gone = after.invalidations - before.invalidations +
		       after.uncached - before.uncached;
	} while (gone < (uint64_t) way->uses * rounds && ft_limit_us() < end);
	ft_log("%s: %" PRIu64 " invalidations, %" PRIu64 " hits, %" PRIu64
	       " registrations in %u rounds",
	       way->name, after.invalidations - before.invalidations,
	       after.hits - before.hits,
	       after.registrations - before.registrations, rounds);
	/*
	 * gone includes buffers that were not cached, since another unmap was
	 * under way
	 */
	FT_CHECK(gone >= (uint64_t) way->uses * rounds,
		 "%s: %" PRIu64 " invalidations in %u rounds", way->name,
		 after.invalidations - before.invalidations, rounds);
	FT_CHECK(after.hits > before.hits,
		 "%s: no hits: the test would prove nothing", way->name);
}

/*
 * The middle third of a buffer is unmapped while a receive into it is posted.
 * The operation may succeed (into pages that are gone) or fail; its context
 * comes back once, and later transfers are right.
 */
static void in_flight(struct ft_pair *pair, char *other)
{
	size_t third = 8 * FT_PAGE;
	char *p = ft_map(NULL, 3 * third);
	bool replace = seed % 2;
	struct ft_comp comp;
	void *d;

	seed++;
	ft_fill(other, 3 * third, seed);
	d = ft_desc(&pair->dom[0], p, 3 * third);
	FT_POST(&pair->s, fi_recv(pair->s.ep, p, 3 * third, d, FT_ANY, p));
	if (replace)
		ft_map(p + third, third);
	else
		ft_unmap(p + third, third);
	d = ft_desc(&pair->dom[1], other, 3 * third);
	FT_POST(&pair->c,
		fi_send(pair->c.ep, other, third, d, pair->c.to, other));
	ft_wait_any(&pair->s, FT_RX, &comp);
	FT_CHECK(comp.ctx == p, "context %p, not %p", comp.ctx, (void *) p);
	ft_wait_any(&pair->c, FT_TX, &comp);
	FT_CHECK(comp.ctx == other, "context %p", comp.ctx);
	FT_CHECK_BUF(p, third, seed, "the third that stayed");
	ft_release_pair(pair);
	ft_map(p + third, third);
	use(pair, p, 3 * third, other);
	ft_unmap(p, 3 * third);
}

/* Like in_flight(), but the receive is cancelled. */
static void in_flight_cancel(struct ft_pair *pair, char *other)
{
	size_t third = 8 * FT_PAGE;
	char *p = ft_map(NULL, 3 * third);
	struct ft_comp comp;
	ssize_t ret;
	void *d;

	d = ft_desc(&pair->dom[0], p, 3 * third);
	FT_POST(&pair->s, fi_recv(pair->s.ep, p, 3 * third, d, FT_ANY, p));
	ft_unmap(p + third, third);
	ret = fi_cancel(&pair->s.ep->fid, p);
	if (ret == -FI_ENOSYS || ret == -FI_EOPNOTSUPP) {
		d = ft_desc(&pair->dom[1], other, third);
		FT_POST(&pair->c, fi_send(pair->c.ep, other, third, d,
					  pair->c.to, other));
		ft_wait_any(&pair->s, FT_RX, &comp);
		ft_wait_any(&pair->c, FT_TX, &comp);
	} else {
		FT_CHECK(!ret, "fi_cancel: %zd", ret);
		ft_wait_any(&pair->s, FT_RX, &comp);
		FT_CHECK(comp.err == FI_ECANCELED, "error %d", comp.err);
		FT_CHECK(comp.ctx == p, "context %p", comp.ctx);
	}
	ft_release_pair(pair);
	ft_map(p + third, third);
	use(pair, p, 3 * third, other);
	ft_unmap(p, 3 * third);
}

/*
 * Maps and unmaps big blocks at addresses that are reused, and transfers parts
 * of the blocks, as applications usually do.
 */
static void churn(struct ft_pair *pair, char *other, unsigned rounds)
{
	const uint64_t begin = ft_now_us();
	char *block[8] = { NULL };
	size_t len[8] = { 0 };
	unsigned i, k;
	size_t off, n;

	for (i = 0; ft_round(i, rounds, begin); i++) {
		ft_stage("churn, round %u", i);
		k = ft_rand() % 8;
		if (block[k] && ft_rand() % 2) {
			ft_unmap(block[k], len[k]);
			block[k] = NULL;
		}
		if (!block[k]) {
			len[k] = (1 + ft_rand() % 16) * FT_PAGE;
			block[k] = ft_map(NULL, len[k]);
		}
		off = ft_rand() % len[k];
		n = 1 + ft_rand() % (len[k] - off);
		use(pair, block[k] + off, n, other);
	}
	for (k = 0; k < 8; k++) {
		if (block[k])
			ft_unmap(block[k], len[k]);
	}
}

/*
 * Unmaps registered memory, and maps memory, for a long time without a call of
 * the provider.
 */
static void silent(struct ft_pair *pair, char *other, unsigned rounds)
{
	char *p = ft_map(NULL, 8 * LEN), *block;
	uint64_t begin;
	size_t before = 0, after;
	unsigned i;

	ft_stage("silent");
	use(pair, p, 8 * LEN, other);
	ft_wait_quiet();
	begin = ft_now_us();
	for (i = 0; ft_round(i, rounds, begin); i++) {
		if (i % 2)
			ft_map(p + i % 8 * LEN, LEN);
		else
			madvise(p + i % 8 * LEN, LEN, MADV_DONTNEED);
		p[i % 8 * LEN] = 1;
		block = malloc(300 * 1024);
		FT_CHECK(block, "malloc");
		block[0] = 1;
		free(block);
		/* ft_round() promises at least this number of rounds */
		if (i + 1 == rounds / 20)
			before = ft_rss();
	}
	after = ft_rss();
	FT_CHECK(after < before + (1 << 20),
		 "%zu KiB more after %u rounds without a call",
		 (after - before) / 1024, i - rounds / 20);
	use(pair, p, LEN, other);
	ft_check_idle(&pair->dom[1], "after silence");
	ft_unmap(p, 8 * LEN);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	struct ft_pair pair;
	uint64_t begin;
	char *other;
	unsigned i, rounds;

	ft_init(argc, argv);
	rounds = ft_iters(ft_core("verbs") ? 40 : 400);
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
	ft_pair_open(&pair, &attr);
	other = ft_map(NULL, 2 * LEN);
	for (i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		run_way(&pair, &ways[i], other, rounds);
	begin = ft_now_us();
	for (i = 0; ft_round(i, rounds, begin); i++) {
		ft_stage("in flight, round %u", i);
		in_flight(&pair, other);
		in_flight_cancel(&pair, other);
	}
	churn(&pair, other, rounds * 10);
	ft_unmap(other, 2 * LEN);
	other = ft_map(NULL, 8 * LEN);
	silent(&pair, other, rounds * 100);
	ft_unmap(other, 8 * LEN);
	ft_pair_close(&pair);
	return ft_done();
}
