/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_alloc: tests preregistered memory. Operations on preregistered memory
 * without a descriptor register nothing; peers read and write preregistered
 * memory by key. Peers can reach neither the neighbours of an isolated
 * allocation nor freed memory. Wrong calls return an error; heaps are opened
 * and closed.
 */
#include <limits.h>
#include <sys/wait.h>

#include "ft_mrrc.h"

#define LEN    40000
#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct ft_pair pair;

static struct fid_domain *dom(int i)
{
	return pair.dom[i].domain;
}

static void *get(int i, size_t len, uint64_t access, uint64_t flags,
		 struct fid_mr **mr)
{
	void *buf;

	FT_CALL(fi_mr_alloc(dom(i), len, access, flags, &buf, mr));
	return buf;
}

static void put(int i, void *buf)
{
	FT_CALL(fi_mr_free(dom(i), buf));
}

static struct fi_mr_query_attr query(int i, const void *buf)
{
	struct fi_mr_query_attr attr = { .size = sizeof(attr) };

	FT_CALL(fi_mr_query(dom(i), buf, &attr));
	FT_CHECK(attr.size == sizeof(attr), "query filled in %zu bytes",
		 attr.size);
	return attr;
}

static struct fi_mr_heap_stats heap_stats(int i)
{
	struct fi_mr_heap_stats stats = { .size = sizeof(stats) };

	FT_CALL(fi_mr_alloc_stats_read(dom(i), &stats));
	return stats;
}

/*
 * ---- results of queries, and of wrong calls ---------------------------------
 */

static void answers(void)
{
	struct fi_mr_query_attr attr;
	struct fid_mr *mr;
	char *buf, *stack = (char *) &attr;

	ft_stage("what is answered");
	FT_CHECK(fi_mrrc_feature(&dom(0)->fid, "alloc") == 1,
		 "no feature alloc");
	FT_CHECK(fi_mrrc_feature(&dom(0)->fid, "heap") == 1, "no feature heap");
	FT_CHECK(fi_mrrc_feature(&dom(0)->fid, "tea") == 0, "a feature tea");
	buf = get(0, LEN, FI_REMOTE_READ, 0, &mr);
	attr = query(0, buf + 100);
	FT_CHECK(attr.base == buf && attr.len >= LEN && attr.mr == mr &&
			 attr.key == fi_mr_key(mr) &&
			 attr.desc == fi_mr_desc(mr) &&
			 attr.access == FI_REMOTE_READ &&
			 attr.page_size >= FT_PAGE,
		 "query of %p answers %p, %zu bytes", buf, attr.base, attr.len);
	FT_CHECK(attr.block_len >= 1 << 20 && (char *) attr.block_base <= buf,
		 "a block of %zu bytes", attr.block_len);
	FT_CHECK(fi_close(&mr->fid) == -FI_EBUSY, "a block's mr was closed");
	FT_CHECK(fi_mr_free(dom(0), buf + 16) == -FI_EINVAL, "inside");
	FT_CHECK(fi_mr_free(dom(0), stack) == -FI_EINVAL, "foreign");
	FT_CHECK(fi_mr_free(dom(1), buf) != 0, "of another domain");
	put(0, buf);
	FT_CHECK(fi_mr_free(dom(0), buf) == -FI_EALREADY, "double free");
	FT_CHECK(fi_mr_query(dom(0), buf, &attr) == -FI_ENOENT,
		 "what was freed is found");
	put(0, NULL);
	FT_CHECK(heap_stats(0).mistakes >= 3, "mistakes are not counted");
	FT_CHECK(fi_mr_alloc(dom(0), 0, 0, 0, (void **) &buf, &mr) ==
			 -FI_EINVAL,
		 "no bytes at all");
	FT_CHECK(fi_mr_alloc(dom(0), 1, 1, 0, (void **) &buf, &mr) ==
			 -FI_EINVAL,
		 "unknown access");
	FT_CHECK(fi_mr_alloc(dom(0), 1, 0, 1ULL << 40, (void **) &buf, &mr) ==
			 -FI_EBADFLAGS,
		 "unknown flags");
	FT_CHECK(fi_mr_alloc(dom(0), 1, 0, FI_MR_ALLOC_BASE | FI_MR_ALLOC_THP,
			     (void **) &buf, &mr) == -FI_EBADFLAGS,
		 "two kinds of pages");
	FT_CHECK(fi_mr_alloc(dom(0), 1, 0, FI_MR_ALLOC_HUGE(13), (void **) &buf,
			     &mr) == -FI_EBADFLAGS,
		 "pages of 8 KiB");
	FT_CHECK(fi_mr_memalign(dom(0), 3, 1, 0, 0, (void **) &buf, &mr) ==
			 -FI_EINVAL,
		 "an alignment of 3");
	FT_CALL(fi_mr_memalign(dom(0), 1 << 16, 1, 0, FI_MR_ALLOC_ZERO,
			       (void **) &buf, NULL));
	FT_CHECK(!((uintptr_t) buf & 0xffff) && !*buf, "aligned and zero");
	put(0, buf);
}

/* ---- local use ----------------------------------------------------------- */

static struct fi_mrrc_stats cache_stats(int i)
{
	struct fi_mrrc_stats stats;

	ft_stats(&pair.dom[i], &stats);
	return stats;
}

static void check_untouched(const struct fi_mrrc_stats *before, int i)
{
	struct fi_mrrc_stats now = cache_stats(i);

	FT_CHECK(now.registrations == before->registrations &&
			 now.lookups == before->lookups &&
			 now.uncached == before->uncached &&
			 now.evictions == before->evictions,
		 "side %d: %" PRIu64 " registrations and %" PRIu64
		 " lookups for memory that was registered",
		 i, now.registrations - before->registrations,
		 now.lookups - before->lookups);
	FT_CHECK(now.held_regions == 0, "side %d holds regions", i);
}

/*
 * Transfers messages of small and large sizes with null descriptors at both
 * ends; the cache is not involved.
 */
static void null_descriptors(void)
{
	static const size_t lens[] = { 1, 100, 5000, LEN, 1 << 20, 3 << 20 };
	struct fi_mrrc_stats before[2];
	uint64_t posts;
	char *out, *in;
	unsigned i, round;

	ft_stage("null descriptors");
	before[0] = cache_stats(0);
	before[1] = cache_stats(1);
	posts = before[0].posts;
	for (i = 0; i < 6; i++) {
		out = get(1, lens[i], 0, 0, NULL);
		in = get(0, lens[i], 0, 0, NULL);
		for (round = 0; round < 10; round++)
			ft_verify_pair(&pair.c, out, in, lens[i],
				       100 * i + round);
		put(1, out);
		put(0, in);
	}
	if (!ft_rxm())
		check_untouched(&before[0], 0);
	check_untouched(&before[1], 1);
	/*
	 * the provider finds the registrations and keeps no records, as with
	 * given descriptors; over tcp and net receives have records, since
	 * their lengths are checked, except in the hooking form
	 */
	if (!ft_opts.raw && (ft_core("tcp") || ft_core("net")))
		posts += 60;
	FT_CHECK(cache_stats(0).posts == posts, "%" PRIu64 " records",
		 cache_stats(0).posts - posts);
}

static void given_descriptors(void)
{
	struct fid_mr *mr[2];
	char *out, *in;

	ft_stage("descriptors of the block");
	out = get(1, LEN, 0, 0, &mr[1]);
	in = get(0, LEN, 0, 0, &mr[0]);
	ft_fill(out, LEN, 5);
	FT_POST(&pair.s,
		fi_recv(pair.s.ep, in, LEN, fi_mr_desc(mr[0]), FT_ANY, in));
	FT_POST(&pair.c, fi_send(pair.c.ep, out, LEN, fi_mr_desc(mr[1]),
				 pair.c.to, out));
	ft_wait_ctx(&pair.c, FT_TX, out, FI_SEND);
	ft_wait_ctx(&pair.s, FT_RX, in, FI_RECV);
	FT_CHECK_BUF(in, LEN, 5, "sent with descriptors");
	put(1, out);
	put(0, in);
}

/* ---- peers --------------------------------------------------------------- */

/* Under the hook the application has to give descriptors. */
static void *desc_of(const void *out)
{
	return ft_opts.raw ? query(1, out).desc : NULL;
}

static void write_to(const char *out, size_t len, uint64_t raddr, uint64_t key)
{
	void *desc = desc_of(out);
	const struct fi_rma_iov rma = { raddr, len, key };
	const struct iovec iov = { (void *) out, len };
	const struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = pair.c.to,
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = (void *) out,
	};

	FT_POST(&pair.c, fi_writemsg(pair.c.ep, &msg,
				     FI_COMPLETION | FI_DELIVERY_COMPLETE));
}

static void peers(void)
{
	static const size_t lens[] = { 64, 5000, LEN, 2 << 20 };
	struct fi_mr_query_attr attr;
	char *out, *back, *target;
	unsigned i;

	for (i = 0; i < 4; i++) {
		ft_stage("a peer writes and reads %zu bytes", lens[i]);
		target = get(0, lens[i], REMOTE, 0, NULL);
		out = get(1, lens[i], 0, 0, NULL);
		back = get(1, lens[i], 0, 0, NULL);
		attr = query(0, target);
		ft_fill(out, lens[i], 10 + i);
		write_to(out, lens[i], attr.raddr, attr.key);
		ft_wait_ctx(&pair.c, FT_TX, out, FI_WRITE);
		FT_CHECK_BUF(target, lens[i], 10 + i, "written by key");
		ft_fill(target, lens[i], 20 + i);
		FT_POST(&pair.c,
			fi_read(pair.c.ep, back, lens[i], desc_of(back),
				pair.c.to, attr.raddr, attr.key, back));
		ft_wait_ctx(&pair.c, FT_TX, back, FI_READ);
		FT_CHECK_BUF(back, lens[i], 20 + i, "read by key");
		put(0, target);
		put(1, out);
		put(1, back);
	}
}

/* Checks that a write fails; then makes a new connection. */
static void write_fails(const char *out, size_t len, uint64_t raddr,
			uint64_t key, const char *what)
{
	uint64_t end = ft_deadline();
	struct ft_comp comp = { 0 };

	write_to(out, len, raddr, key);
	while (!ft_take(&pair.c, FT_TX, &comp) && ft_limit_us() < end)
		ft_progress(&pair.c);
	FT_CHECK(comp.err, "%s: the write did not fail", what);
	ft_reconnect(&pair);
}

static void neighbours(void)
{
	struct fi_mr_query_attr attr;
	char *lone, *out, *shared;

	ft_stage("neighbours of an isolated allocation");
	out = get(1, LEN, 0, 0, NULL);
	ft_fill(out, LEN, 1);
	shared = get(0, LEN, REMOTE, 0, NULL);
	lone = get(0, FT_PAGE, REMOTE, FI_MR_ALLOC_ISOLATED, NULL);
	attr = query(0, lone);
	FT_CHECK(attr.block_base == lone && attr.block_len == FT_PAGE,
		 "an isolated page is registered with %zu bytes",
		 attr.block_len);
	FT_CHECK(attr.key != query(0, shared).key, "and shares a key");
	write_to(out, FT_PAGE, attr.raddr, attr.key);
	ft_wait_ctx(&pair.c, FT_TX, out, FI_WRITE);
	FT_CHECK_BUF(lone, FT_PAGE, 1, "written by key");

	ft_fill(lone, FT_PAGE, 2);
	ft_fill(shared, LEN, 3);
	write_fails(out, FT_PAGE + 1, attr.raddr, attr.key, "one byte more");
	FT_CHECK_BUF(lone, FT_PAGE, 2, "memory that was not to be written");
	write_fails(out, 100, attr.raddr + (shared - lone), attr.key,
		    "another allocation");
	FT_CHECK_BUF(shared, LEN, 3, "the neighbour");

	ft_stage("the key of what was freed");
	put(0, lone);
	write_fails(out, 100, attr.raddr, attr.key, "freed");
	/* the key of a shared block is invalid once the block is trimmed */
	attr = query(0, shared);
	put(0, shared);
	FT_CALL(fi_mr_trim(dom(0)));
	FT_CHECK(heap_stats(0).bytes == 0, "%" PRIu64 " bytes after trim",
		 heap_stats(0).bytes);
	write_fails(out, 100, attr.raddr, attr.key, "trimmed");
	put(1, out);
}

/*
 * Heaps keep local-only memory, and memory for each kind of remote access, in
 * separate blocks.
 */
static void classes(void)
{
	static const uint64_t access[] = { 0, FI_REMOTE_READ, FI_REMOTE_WRITE,
					   REMOTE };
	struct fi_mr_query_attr attr[4];
	void *buf[4];
	unsigned i, k;

	ft_stage("rights apart");
	for (i = 0; i < 4; i++) {
		buf[i] = get(0, 100, access[i], 0, NULL);
		attr[i] = query(0, buf[i]);
		FT_CHECK(attr[i].access == access[i], "access %u", i);
		for (k = 0; k < i; k++)
			FT_CHECK(attr[i].mr != attr[k].mr &&
					 attr[i].block_base !=
						 attr[k].block_base,
				 "rights %u and %u share a block", i, k);
	}
	for (i = 0; i < 4; i++)
		put(0, buf[i]);
}

/* ---- operations that are opened once -------------------------------------- */

static void kept(void)
{
	struct fi_ops calls = *dom(0)->fid.ops;
	struct fid_domain *foreign;
	const struct fi_mrrc_ops_alloc *ops;
	struct fi_mr_query_attr attr;
	void *buf, *none = &none;
	struct fid_mr *mr;

	ft_stage("operations that are opened once");
	FT_CALL(fi_mrrc_alloc_open(dom(0), &ops));
	FT_CALL(fi_mrrc_alloc(ops, dom(0), 100, FI_SEND | FI_REMOTE_WRITE, 0,
			      &buf, &mr));
	attr = query(0, buf);
	FT_CHECK(attr.mr == mr && attr.access == FI_REMOTE_WRITE,
		 "the registration, or its rights");
	FT_CALL(ops->release(dom(0), buf));
	FT_CALL(fi_mrrc_alloc(ops, dom(0), 100, 0, FI_MR_ALLOC_ISOLATED, &buf,
			      NULL));
	FT_CALL(ops->release(dom(0), buf));
	/* allocate, so that memory without rights for peers exists */
	FT_CALL(fi_mrrc_alloc(ops, dom(0), 1, 0, 0, &buf, NULL));
	FT_CALL(ops->release(dom(0), buf));
	FT_CHECK(fi_mrrc_alloc(ops, dom(0), 0, 0, 0, &none, NULL) ==
				 -FI_EINVAL &&
			 fi_mrrc_alloc(ops, dom(0), 1, FI_REMOTE_WRITE << 1, 0,
				       &none, NULL) == -FI_EINVAL &&
			 fi_mrrc_alloc(ops, dom(0), 1, 1, 0, &none, NULL) ==
				 -FI_EINVAL &&
			 none == &none,
		 "no length, or unknown rights");
	if (ft_opts.raw)
		return;
	/*
	 * a table of calls as of an older header, with no readable memory
	 * behind the table
	 */
	buf = ft_map(NULL, 2 * FT_PAGE);
	FT_CHECK(!mprotect((char *) buf + FT_PAGE, FT_PAGE, PROT_NONE),
		 "mprotect");
	foreign = (struct fid_domain *) ((char *) buf + FT_PAGE) - 1;
	*foreign = *dom(0);
	foreign->fid.ops = &calls;
	FT_CHECK(fi_mrrc_alloc(ops, foreign, 100, 0, 0, &none, NULL) ==
				 -FI_EINVAL &&
			 none == &none,
		 "a domain that is not ofi_mrrc's");
	FT_CHECK(ops->release(foreign, buf) == -FI_EINVAL,
		 "a free by a domain that is not ofi_mrrc's");
	ft_unmap(buf, 2 * FT_PAGE);
}

/* ---- heaps --------------------------------------------------------------- */

/*
 * The provider must refuse attributes of a newer header that set properties
 * unknown to the provider.
 */
static void newer(void)
{
	struct {
		struct fi_mr_heap_attr attr;
		uint64_t more;
	} newer = { .attr.size = sizeof(newer) };
	struct fid_mr_heap *heap;

	ft_stage("a newer heap");
	FT_CALL(fi_mr_heap_open(dom(0), &newer.attr, &heap, NULL));
	FT_CALL(fi_mr_heap_close(heap));
	newer.more = 1;
	FT_CHECK(fi_mr_heap_open(dom(0), &newer.attr, &heap, NULL) ==
			 -FI_EINVAL,
		 "an unknown property");
	newer.attr.size = SIZE_MAX;
	FT_CHECK(fi_mr_heap_open(dom(0), &newer.attr, &heap, NULL) ==
			 -FI_EINVAL,
		 "no size at all");
}

static void heaps(void)
{
	struct fi_mr_heap_attr attr = {
		.size = sizeof(attr),
		.access = FI_REMOTE_WRITE,
		.flags = FI_MR_ALLOC_BASE | FI_MR_HEAP_PREFAULT,
		.max_bytes = 2 << 20,
		.numa_node = FI_MR_HEAP_NODE(0),
	};
	struct fi_mr_heap_stats stats = { .size = sizeof(stats) };
	struct fi_mr_query_attr one, two;
	struct fid_mr_heap *heap, *other;
	void *buf[3], *none;

	ft_stage("heaps");
	FT_CALL(fi_mr_heap_open(dom(0), &attr, &heap, &pair));
	FT_CALL(fi_mr_heap_open(dom(0), NULL, &other, NULL));
	FT_CHECK(heap->fid.context == &pair, "context");
	FT_CHECK(heap->fid.fclass == FI_MRRC_CLASS_MR_HEAP, "class");
	FT_CALL(fi_mr_heap_alloc(heap, 700000, 0, &buf[0], NULL));
	FT_CALL(fi_mr_heap_memalign(heap, 4096, 700000, FI_MR_ALLOC_ZERO,
				    &buf[1], NULL));
	FT_CALL(fi_mr_heap_alloc(other, 100, 0, &buf[2], NULL));
	one = query(0, buf[1]);
	two = query(0, buf[2]);
	FT_CHECK(one.access == FI_REMOTE_WRITE && two.access == 0 &&
			 one.mr != two.mr,
		 "a heap's rights");
	FT_CHECK(one.page_size == FT_PAGE, "pages of %zu", one.page_size);
	FT_CHECK(fi_mr_heap_alloc(heap, 700000, 0, &none, NULL) == -FI_ENOMEM,
		 "beyond the limit");
	FT_CHECK(fi_mr_heap_alloc(heap, 1, FI_MR_ALLOC_THP, &none, NULL) ==
			 -FI_EBADFLAGS,
		 "pages from a heap");
	FT_CALL(fi_mr_heap_stats_read(heap, &stats));
	FT_CHECK(stats.live == 2 && stats.bytes <= attr.max_bytes &&
			 stats.limit == attr.max_bytes,
		 "%" PRIu64 " live, %" PRIu64 " bytes", stats.live,
		 stats.bytes);
	FT_CALL(fi_mr_heap_free(heap, NULL));
	FT_CALL(fi_mr_heap_free(heap, buf[0]));
	FT_CHECK(fi_mr_heap_free(heap, buf[0]) == -FI_EALREADY, "freed twice");
	put(0, buf[1]);
	FT_CALL(fi_mr_heap_trim(heap));
	stats.size = sizeof(stats);
	FT_CALL(fi_mr_heap_stats_read(heap, &stats));
	FT_CHECK(!stats.blocks, "%" PRIu64 " blocks after trim", stats.blocks);
	FT_CALL(fi_mr_heap_close(heap));
	/* close a heap that has an allocation */
	FT_CALL(fi_mr_heap_close(other));
	FT_CHECK(fi_mr_free(dom(0), buf[2]) == -FI_EINVAL,
		 "what went with its heap");
	attr.access = FI_SEND << 40;
	FT_CHECK(fi_mr_heap_open(dom(0), &attr, &heap, NULL) == -FI_EINVAL,
		 "unknown access");
	attr.access = 0;
	attr.flags = FI_MR_ALLOC_ZERO;
	FT_CHECK(fi_mr_heap_open(dom(0), &attr, &heap, NULL) == -FI_EBADFLAGS,
		 "a flag of allocations");
	attr.flags = 0;
	attr.numa_node = INT_MIN;
	FT_CHECK(fi_mr_heap_open(dom(0), &attr, &heap, NULL) == -FI_EINVAL,
		 "no such node");
	attr.numa_node = 0;
	attr.size = 0;
	FT_CHECK(fi_mr_heap_open(dom(0), &attr, &heap, NULL) == -FI_EINVAL,
		 "no size");
}

/*
 * Tries to close a domain that has no objects but an open heap, or an
 * allocation.
 */
static void busy(void)
{
	struct fid_mr_heap *heap;
	struct fid_domain *domain;
	void *buf, *freed;

	ft_stage("a domain with a heap");
	FT_CALL(fi_domain(pair.dom[0].fabric, pair.dom[0].info, &domain, NULL));
	FT_CALL(fi_mr_heap_open(domain, NULL, &heap, NULL));
	FT_CHECK(fi_close(&domain->fid) == -FI_EBUSY,
		 "a domain was closed under its heap");
	FT_CALL(fi_mr_heap_alloc(heap, 100, 0, &buf, NULL));
	FT_CALL(fi_mr_heap_close(heap));

	ft_stage("a domain with an allocation");
	FT_CALL(fi_mr_alloc(domain, 12345, 0, 0, &buf, NULL));
	FT_CALL(fi_mr_alloc(domain, 12345, 0, 0, &freed, NULL));
	FT_CALL(fi_mr_free(domain, freed));
	memset(buf, 1, 12345);
	FT_CHECK(fi_close(&domain->fid) == -FI_EBUSY,
		 "a domain was closed under an allocation");
	memset(buf, 2, 12345);
	FT_CALL(fi_mr_free(domain, buf));
	FT_CALL(fi_close(&domain->fid));
}

/* A child closes its parent's domain first, and then the domain's heap. */
static void orphan(void)
{
	struct fid_mr_heap *heap;
	struct fid_domain *domain;
	int status;
	void *buf;
	pid_t pid;

	/* over verbs a child shares the core's domain with its parent */
	if (ft_core("verbs"))
		return;
	ft_stage("a heap in a child without its domain");
	FT_CALL(fi_domain(pair.dom[0].fabric, pair.dom[0].info, &domain, NULL));
	FT_CALL(fi_mr_heap_open(domain, NULL, &heap, NULL));
	FT_CALL(fi_mr_heap_alloc(heap, 100, 0, &buf, NULL));
	pid = fork();
	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		fi_close(&domain->fid);
		_exit(fi_mr_heap_free(heap, buf) || fi_mr_heap_close(heap));
	}
	FT_CHECK(waitpid(pid, &status, 0) == pid && !status, "status %#x",
		 status);
	FT_CALL(fi_mr_heap_close(heap));
	FT_CALL(fi_close(&domain->fid));
}

static void pages(void)
{
	static const uint64_t kinds[] = { FI_MR_ALLOC_BASE, FI_MR_ALLOC_THP,
					  FI_MR_ALLOC_HUGE(21),
					  FI_MR_ALLOC_HUGE(30) };
	struct fi_mr_heap_attr attr = {
		.size = sizeof(attr),
		.max_bytes = 1 << 20,
	};
	struct fid_mr_heap *heap;
	void *none = &heap;
	char *buf, *in;
	unsigned i;
	int ret;

	for (i = 0; i < 4; i++) {
		ft_stage("pages of kind %u, in a heap of 1 MiB", i);
		attr.flags = kinds[i];
		FT_CALL(fi_mr_heap_open(dom(0), &attr, &heap, NULL));
		ret = fi_mr_heap_alloc(heap, 100, 0, &none, NULL);
		FT_CHECK(ret == (i ? -FI_ENOMEM : 0), "%d", ret);
		if (!ret)
			FT_CALL(fi_mr_free(dom(0), none));
		FT_CALL(fi_mr_heap_close(heap));
	}
	in = get(0, LEN, 0, 0, NULL);
	for (i = 0; i < 4; i++) {
		ft_stage("pages of kind %u", i);
		buf = get(1, LEN, 0, kinds[i], NULL);
		ft_verify_pair(&pair.c, buf, in, LEN, i);
		put(1, buf);
	}
	put(0, in);
}

/* Over a raw core there is no allocator: the calls return an error. */
static void absent(void)
{
	void *buf = &buf;

	if (ft_opts.raw && !getenv("FI_HOOK")) {
		FT_CHECK(fi_mr_alloc(dom(0), 100, 0, 0, &buf, NULL) < 0 &&
				 buf == &buf,
			 "a raw core allocates");
		FT_CHECK(fi_mrrc_feature(&dom(0)->fid, "alloc") < 0,
			 "a feature");
		ft_pair_close(&pair);
		exit(ft_done());
	}
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;

	ft_init(argc, argv);
	ft_pair_open(&pair, &attr);
	absent();
	answers();
	null_descriptors();
	given_descriptors();
	peers();
	classes();
	neighbours();
	kept();
	heaps();
	busy();
	orphan();
	newer();
	pages();
	ft_release_pair(&pair);
	ft_pair_close(&pair);
	return ft_done();
}
