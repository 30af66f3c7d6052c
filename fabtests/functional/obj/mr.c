/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_mr: tests explicit registrations next to the provider's own. A given
 * descriptor is used unchanged; keys that the application chooses are never
 * taken; a key is invalid once fi_close() has returned; and the ten thousandth
 * registration costs as much as the first.
 */
#include "ft_mrrc.h"

#include <fcntl.h>

#define LEN  (8 * FT_PAGE)
#define KEYS 500

/* numbers of all_keys() */
#define CACHED 300
#define EDGE   16
#define RANDOM 1000

/* number of loops in views() */
#define LOOPS 60

static struct ft_pair pair;
static char *out, *in;

/* The cache does not see operations with descriptors. */
static void given_descriptors(void)
{
	struct fid_mr *omr = ft_reg(&pair.dom[1], out, LEN,
				    FI_SEND | FI_RECV | FI_WRITE | FI_READ);
	struct fid_mr *imr = ft_reg(&pair.dom[0], in, LEN, FI_SEND | FI_RECV);
	struct fi_mrrc_stats before, after;
	unsigned i;

	ft_stage("given descriptors");
	FT_CHECK(fi_mr_desc(omr), "no descriptor");
	ft_stats(&pair.dom[1], &before);
	for (i = 0; i < 100; i++) {
		ft_fill(out, LEN, i);
		memset(in, 0, LEN);
		FT_POST(&pair.c, fi_recv(pair.s.ep, in, LEN, fi_mr_desc(imr),
					 FT_ANY, in));
		FT_POST(&pair.c, fi_send(pair.c.ep, out, LEN, fi_mr_desc(omr),
					 pair.c.to, out));
		ft_wait_ctx(&pair.s, FT_RX, in, FI_RECV);
		ft_wait_ctx(&pair.c, FT_TX, out, FI_SEND);
		FT_CHECK_BUF(in, LEN, i, "with descriptors");
	}
	if (ft_stats(&pair.dom[1], &after))
		FT_CHECK(after.lookups == before.lookups,
			 "%" PRIu64 " lookups for given descriptors",
			 after.lookups - before.lookups);
	FT_CALL(fi_close(&omr->fid));
	FT_CALL(fi_close(&imr->fid));
}

/*
 * Without FI_MR_LOCAL the application may pass the descriptor of any
 * registration, also of one for peers, with any rights.
 */
static void peers_descriptors(void)
{
	static const uint64_t access[] = {
		FI_REMOTE_READ,		  FI_REMOTE_WRITE,
		FI_SEND | FI_REMOTE_READ, FI_REMOTE_READ | FI_REMOTE_WRITE,
		FI_RECV | FI_READ,
	};
	struct fid_mr *omr, *imr;
	unsigned i;

	if (ft_opts.raw)
		return;
	for (i = 0; i < sizeof(access) / sizeof(*access); i++) {
		ft_stage("descriptors for access 0x%" PRIx64, access[i]);
		omr = ft_reg(&pair.dom[1], out, LEN, access[i]);
		imr = ft_reg(&pair.dom[0], in, LEN, access[i]);
		ft_fill(out, LEN, i);
		memset(in, 0, LEN);
		FT_POST(&pair.c, fi_recv(pair.s.ep, in, LEN, fi_mr_desc(imr),
					 FT_ANY, in));
		FT_POST(&pair.c, fi_send(pair.c.ep, out, LEN, fi_mr_desc(omr),
					 pair.c.to, out));
		ft_wait_ctx(&pair.s, FT_RX, in, FI_RECV);
		ft_wait_ctx(&pair.c, FT_TX, out, FI_SEND);
		FT_CHECK_BUF(in, LEN, i, "with descriptors for peers");
		FT_CALL(fi_close(&omr->fid));
		FT_CALL(fi_close(&imr->fid));
	}
}

/*
 * Uses the same memory with and without a descriptor, and closes the explicit
 * registration in between.
 */
static void side_by_side(void)
{
	struct fid_mr *mr;
	unsigned i;

	for (i = 0; i < ft_iters(200); i++) {
		ft_stage("side by side, round %u", i);
		mr = ft_reg(&pair.dom[1], out + i % 7 * 100, LEN / 2,
			    FI_SEND | FI_REMOTE_READ);
		ft_verify_pair(&pair.c, out, in, LEN, i);
		FT_CALL(fi_close(&mr->fid));
		ft_verify_pair(&pair.c, out, in, LEN, ~i);
		ft_release_pair(&pair);
	}
}

static int reg_key(uint64_t key, struct fid_mr **mr)
{
	return fi_mr_reg(pair.dom[1].domain, out, LEN, FI_REMOTE_READ, 0, key,
			 0, mr, NULL);
}

/*
 * Returns key i of chosen_keys(): small keys, large keys, and random keys must
 * all be available to the application.
 */
static uint64_t key_at(unsigned i)
{
	if (i < KEYS / 3)
		return i + 1000000;
	if (i < KEYS / 2)
		return ((uint64_t) i << 32) + 7;
	return ft_rand() | 1ULL << 50;
}

static void chosen_keys(void)
{
	struct fid_mr *mrs[KEYS], *twice;
	bool chosen;
	unsigned i;
	char *p;
	int ret;

	chosen = !(pair.dom[1].info->domain_attr->mr_mode & FI_MR_PROV_KEY);
	for (i = 0; i < KEYS; i++) {
		uint64_t key = key_at(i);

		ft_stage("chosen key %u: 0x%" PRIx64, i, key);
		/* the provider makes registrations of its own in between */
		p = ft_map(NULL, FT_PAGE);
		ft_verify_pair(&pair.c, p, in, FT_PAGE, i);
		FT_CALL(reg_key(key, &mrs[i]));
		if (chosen)
			FT_CHECK(fi_mr_key(mrs[i]) == key,
				 "asked for 0x%" PRIx64 ", got 0x%" PRIx64, key,
				 fi_mr_key(mrs[i]));
		ft_release_pair(&pair);
		if (i % 2)
			ft_unmap(p, FT_PAGE);
	}
	if (chosen) {
		ret = reg_key(fi_mr_key(mrs[3]), &twice);
		FT_CHECK(ret == -FI_ENOKEY, "a key twice: %d", ret);
	}
	for (i = 0; i < KEYS; i++)
		FT_CALL(fi_close(&mrs[i]->fid));
}

/* Returns keys at the ends of the range and at its middle, then random keys. */
static uint64_t any_key(unsigned i)
{
	switch (i / EDGE) {
	case 0:
		return i;
	case 1:
		return UINT64_MAX - i % EDGE;
	case 2:
		return (1ULL << 63) - EDGE / 2 + i % EDGE;
	default:
		return ft_rand() << 32 ^ ft_rand();
	}
}

/*
 * The provider's own registrations, hundreds of them, take no key from the
 * application. Each key of the application is held until the end, so that the
 * provider cannot reuse it.
 */
static void all_keys(void)
{
	static struct fid_mr *mrs[3 * EDGE + RANDOM];
	const unsigned n = sizeof(mrs) / sizeof(*mrs);
	char *p = ft_map(NULL, 2 * CACHED * FT_PAGE);
	struct fi_mrrc_stats st;
	uint64_t key;
	unsigned i;

	if (pair.dom[1].info->domain_attr->mr_mode & FI_MR_PROV_KEY ||
	    pair.dom[1].info->domain_attr->mr_key_size < 8) {
		ft_unmap(p, 2 * CACHED * FT_PAGE);
		return;
	}
	ft_stage("%u pieces of memory", CACHED);
	for (i = 0; i < CACHED; i++)
		ft_verify_pair(&pair.c, p + 2 * i * FT_PAGE, in, FT_PAGE, i);
	if (ft_caches(&pair.dom[1])) {
		ft_stats(&pair.dom[1], &st);
		FT_CHECK(st.regions >= CACHED / 2, "%" PRIu64 " regions of %u",
			 st.regions, CACHED);
	}
	for (i = 0; i < n; i++) {
		key = any_key(i);
		ft_stage("key %u: 0x%" PRIx64, i, key);
		FT_CALL(reg_key(key, &mrs[i]));
		FT_CHECK(fi_mr_key(mrs[i]) == key,
			 "asked for 0x%" PRIx64 ", got 0x%" PRIx64, key,
			 fi_mr_key(mrs[i]));
	}
	for (i = 0; i < n; i++)
		FT_CALL(fi_close(&mrs[i]->fid));
	ft_release_pair(&pair);
	ft_unmap(p, 2 * CACHED * FT_PAGE);
}

/*
 * ---- a core whose keys are taken ------------------------------------------
 */

#define OURS (1ULL << 63) /* set in each key that the provider chooses */

static struct fi_ops_mr core;
static unsigned taken; /* number of registrations to refuse from now on */

static int taken_regattr(struct fid *fid, const struct fi_mr_attr *attr,
			 uint64_t flags, struct fid_mr **mr)
{
	if (!taken)
		return core.regattr(fid, attr, flags, mr);
	taken--;
	return -FI_ENOKEY;
}

static int taken_regv(struct fid *fid, const struct iovec *iov, size_t count,
		      uint64_t access, uint64_t offset, uint64_t key,
		      uint64_t flags, struct fid_mr **mr, void *context)
{
	if (!taken)
		return core.regv(fid, iov, count, access, offset, key, flags,
				 mr, context);
	taken--;
	return -FI_ENOKEY;
}

/*
 * If a key is taken, the provider chooses another key for its own registration,
 * and gives up its own key if the application chooses that key.
 */
static void taken_keys(void)
{
	struct ft_core_ops ops;
	struct fi_mrrc_stats st;
	struct fid_mr *mr;
	char *p;

	if (ft_opts.raw || ft_rdm() || !ft_core("tcp"))
		return;
	ft_stage("keys that are taken");
	p = ft_map(NULL, LEN);
	ft_core_ops("tcp", &ops);
	core = *ops.mr;
	ops.mr->regattr = taken_regattr;
	ops.mr->regv = taken_regv;
	taken = 3;
	ft_verify_pair(&pair.c, p, in, LEN, 1);
	FT_CHECK(!taken, "nothing was registered");
	ft_stats(&pair.dom[1], &st);
	FT_CHECK(!st.registration_failures, "%" PRIu64 " failures",
		 st.registration_failures);
	/* no key of the provider's is as low */
	taken = 1;
	FT_CHECK(reg_key(5, &mr) == -FI_ENOKEY, "another's low key");
	FT_CHECK(!taken, "the key was not asked for");
	taken = ft_caches(&pair.dom[1]);
	FT_CALL(reg_key(OURS + 5, &mr));
	FT_CALL(fi_close(&mr->fid));
	taken = 2;
	FT_CHECK(reg_key(OURS + 5, &mr) == -FI_ENOKEY, "another's key");
	*ops.mr = core;
	ft_unmap(p, LEN);
}

static ssize_t write_flags(void *ctx, uint64_t key, uint64_t flags)
{
	struct iovec iov = { out, LEN };
	void *desc = ft_desc(&pair.dom[1], out, LEN);
	struct fi_rma_iov rma = { ft_raddr(&pair.dom[0], in), LEN, key };
	struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = pair.c.to,
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = ctx,
	};

	return fi_writemsg(pair.c.ep, &msg, flags);
}

/*
 * A write with the key of a closed registration fails, and nothing is written;
 * the failed write ends a reliable connection.
 */
static void revoked(void)
{
	struct fid_mr *mr = ft_reg(&pair.dom[0], in, LEN, FI_REMOTE_WRITE);
	uint64_t key = fi_mr_key(mr), end = ft_deadline();
	struct ft_comp comp = { 0 };
	unsigned i;

	ft_fill(out, LEN, 1);
	memset(in, 0, LEN);
	FT_POST(&pair.c,
		write_flags(out, key, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	ft_wait_ctx(&pair.c, FT_TX, out, FI_WRITE);
	FT_CHECK_BUF(in, LEN, 1, "written while the key was good");
	/* the memory is in the cache, too, from another use */
	ft_verify_pair(&pair.s, in, out, LEN, 2);
	FT_CALL(fi_close(&mr->fid));

	ft_fill(in, LEN, 3);
	ft_fill(out, LEN, 4);
	FT_POST(&pair.c,
		write_flags(out, key, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	while (!ft_take(&pair.c, FT_TX, &comp) && ft_limit_us() < end)
		ft_progress(&pair.c);
	FT_CHECK(comp.err, "a write with a revoked key did not fail");
	for (i = 0; i < 1000; i++)
		ft_progress(&pair.c);
	FT_CHECK_BUF(in, LEN, 3, "memory whose key was revoked");
	ft_release_pair(&pair);
	ft_reconnect(&pair);
}

/* Tests every form of the call; forms that the core lacks return an error. */
static void forms(void)
{
	struct iovec iov = { in, LEN };
	struct fi_mr_attr attr = {
		.mr_iov = &iov,
		.iov_count = 1,
		.access = FI_RECV | FI_SEND,
		.requested_key = 777777,
		.context = &pair,
	};
	struct fid_domain *dom = pair.dom[0].domain;
	struct fid_mr *mr;
	int ret;

	ft_stage("fi_mr_regv");
	FT_CALL(fi_mr_regv(dom, &iov, 1, FI_RECV, 0, 777778, 0, &mr, &iov));
	FT_CHECK(mr->fid.context == &iov && mr->fid.fclass == FI_CLASS_MR,
		 "context or class");
	FT_CALL(fi_close(&mr->fid));
	ft_stage("fi_mr_regattr");
	FT_CALL(fi_mr_regattr(dom, &attr, 0, &mr));
	FT_CHECK(mr->fid.context == &pair, "context");
	FT_CALL(fi_close(&mr->fid));
	ft_stage("a domain with an MR");
	mr = ft_reg(&pair.dom[0], in, LEN, FI_RECV);
	ret = fi_close(&dom->fid);
	FT_CHECK(ret == -FI_EBUSY, "closing a domain with an MR: %d", ret);
	/* registrations are never bound to a completion queue */
	ret = fi_mr_bind(mr, &pair.s.cq[FT_TX]->fid, 0);
	ft_log("fi_mr_bind to a completion queue: %d", ret);
	FT_CHECK(ret < 0, "fi_mr_bind to a completion queue: %d", ret);
	FT_CALL(fi_close(&mr->fid));
}

static unsigned open_files(void)
{
	unsigned n = 0;
	int fd;

	for (fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Were all of the last loops slower than the fastest of the first loops? */
static bool slower(uint64_t first, const uint64_t *last, unsigned count)
{
	unsigned i;

	for (i = 0; i < count && last[i] >= 2 * first + 1000; i++)
		;
	return i == count;
}

/* Registers parts of one buffer, all at once, again and again. */
static void views(void)
{
	const unsigned count = ft_iters(ft_core("verbs") ? 300 :
					ft_rdm()	 ? 2000 :
							   10000);
	struct fid_mr **mrs = calloc(count, sizeof(*mrs));
	uint64_t us = 0, first = UINT64_MAX, last[LOOPS / 4] = { 0 };
	char *p = ft_map(NULL, count * FT_PAGE);
	const unsigned files = open_files();
	unsigned loop, i;

	FT_CHECK(mrs, "calloc");
	/*
	 * other programs run on the machine: real growth would slow all later
	 * loops
	 */
	for (loop = 0; loop < LOOPS ||
		       (slower(first, last, LOOPS / 4) && loop < 5 * LOOPS);
	     loop++) {
		ft_stage("%u views, loop %u", count, loop);
		us = ft_cpu_us();
		for (i = 0; i < count; i++)
			FT_CALL(fi_mr_reg(pair.dom[1].domain, p + i * FT_PAGE,
					  FT_PAGE, FI_SEND | FI_RECV, 0,
					  3000000 + i, 0, &mrs[i], NULL));
		for (i = 0; i < count; i++)
			FT_CALL(fi_close(&mrs[i]->fid));
		us = ft_cpu_us() - us;
		if (loop && loop <= LOOPS / 4 && us < first)
			first = us;
		last[loop % (LOOPS / 4)] = us;
	}
	ft_log("%u views: %" PRIu64 " us, later %" PRIu64, count, first, us);
	FT_CHECK(!slower(first, last, LOOPS / 4),
		 "%u views took %" PRIu64 " us, later %" PRIu64, count, first,
		 us);
	/* the provider's threads open and close files at any time */
	FT_CHECK(open_files() <= files + 4, "%u files are open, %u were",
		 open_files(), files);
	ft_unmap(p, count * FT_PAGE);
	free(mrs);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	unsigned i;

	ft_init(argc, argv);
	/* the application chooses keys, where the core lets it choose */
	attr.scalable_mr = !ft_core("verbs");
	ft_pair_open(&pair, &attr);
	out = ft_map(NULL, LEN);
	in = ft_map(NULL, LEN);
	given_descriptors();
	peers_descriptors();
	side_by_side();
	chosen_keys();
	all_keys();
	taken_keys();
	forms();
	views();
	for (i = 0; i < 5; i++) {
		ft_stage("a revoked key, round %u", i);
		revoked();
	}
	ft_verify_pair(&pair.c, out, in, LEN, 99);
	ft_release_pair(&pair);
	ft_unmap(out, LEN);
	ft_unmap(in, LEN);
	ft_pair_close(&pair);
	return ft_done();
}
