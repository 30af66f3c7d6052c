/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_memlock: tests a limit of 64 KiB of locked memory, without
 * privileges. First the raw core proves that the limit is real; then, over
 * ofi_mrrc, buffers within the limit work, and go on working, and larger
 * buffers get an error that names the limit. At the end a cache may keep 64
 * times as many bytes as the system allows: each registration that fails makes
 * room, and small buffers are copied where there is no room. With a helper that
 * predicts, buffers that together exceed the limit are registered ahead of
 * their uses, one after the other; a program that leaves such buffers
 * registered fails.
 */
#include "ft_mrrc.h"
#include "ft_priv.h"

#include <sys/resource.h>

#define LIMIT (64 * 1024UL)
#define SMALL (4 * FT_PAGE)
#define LARGE (1024 * 1024UL)

static char output[65536];

static void restrict_memory(void)
{
	struct rlimit limit = { LIMIT, LIMIT };

	FT_CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit), "setrlimit: %s",
		 strerror(errno));
	ft_drop_caps();
}

/* Exits with 0 if registering 1 MiB fails on the raw core. */
static void raw_fails(void)
{
	struct ft_attr attr = FT_ATTR;
	struct ft_pair pair;
	struct fid_mr *mr;
	char *p = ft_map(NULL, LARGE);
	int ret;

	ft_opts.raw = true;
	ft_opts.prov = "verbs";
	ft_pair_open(&pair, &attr);
	ret = fi_mr_reg(pair.dom[0].domain, p, LARGE, FI_RECV, 0, 1, 0, &mr,
			NULL);
	if (!ret)
		ft_skip("the limit of locked memory has no effect here");
	ft_log("registering %lu bytes: %s", LARGE, fi_strerror(-ret));
}

static void too_large(struct ft_pair *pair, char *p)
{
	ssize_t ret;

	ret = fi_recv(pair->s.ep, p, LARGE, NULL, FI_ADDR_UNSPEC, p);
	FT_CHECK(ret == -FI_ENOMEM || ret == -FI_EPERM,
		 "a receive of %lu bytes: %zd (%s)", LARGE, ret,
		 fi_strerror((int) -ret));
	ret = fi_send(pair->c.ep, p, LARGE, NULL, pair->c.to, p);
	FT_CHECK(ret == -FI_ENOMEM || ret == -FI_EPERM,
		 "a send of %lu bytes: %zd (%s)", LARGE, ret,
		 fi_strerror((int) -ret));
	ft_expect_none(&pair->c, 10);
	ft_expect_none(&pair->s, 1);
}

/* Both sides are in one process, and share the limit of locked memory. */
static void over_us(void)
{
	char *p = ft_map(NULL, 2 * LARGE), *q = ft_map(NULL, LARGE);
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	struct ft_pair pair;
	unsigned i;

	setenv("FI_LOG_LEVEL", "warn", 1);
	ft_pair_open(&pair, &attr);
	for (i = 0; i < ft_iters(30); i++) {
		ft_stage("what fits, round %u", i);
		/*
		 * use another buffer in each round: cached regions have to make
		 * room
		 */
		ft_verify_pair(&pair.c, p + i * 2 * SMALL, q, SMALL, i);
	}
	ft_stage("what does not fit");
	too_large(&pair, p);
	for (i = 0; i < ft_iters(30); i++) {
		ft_stage("what fits, again, round %u", i);
		ft_verify_pair(&pair.s, q + i * 2 * SMALL, p, SMALL, i);
	}
	ft_check_idle(&pair.dom[0], "all done");
	ft_stats(&pair.dom[0], &st);
	FT_CHECK(st.registration_failures, "no failure was counted");
	FT_CHECK(st.max_bytes <= LIMIT, "limit in force: %" PRIu64 " bytes",
		 st.max_bytes);
	ft_pair_close(&pair);
}

/* ---- a cache that may keep more than the system allows ---- */

#define PRESSURE (1024 * 1024UL)
#define COUNT	 400

static void press(struct ft_pair *pair, char *p, char *q, size_t len)
{
	unsigned i;

	for (i = 0; i < COUNT; i++) {
		ft_stage("pressure, %zu bytes, round %u", len, i);
		/* some buffers come again, others never do */
		ft_verify_pair(&pair->c, p + (i % 7 ? i : 0) * 2 * SMALL,
			       q + i % 5 * 2 * SMALL, len, i);
	}
}

/*
 * While receives hold all memory that the system allows to lock, small buffers
 * are still sent, by copies.
 */
static void all_held(struct ft_pair *pair, char *p, char *q)
{
	struct fi_mrrc_stats before, after;
	struct ft_comp comp;
	unsigned n = 0, i;

	ft_stage("everything is held");
	while (n < 2 * PRESSURE / SMALL &&
	       !fi_recv(pair->s.ep, p + n * 2 * SMALL, SMALL, NULL,
			FI_ADDR_UNSPEC, p + n * 2 * SMALL))
		n++;
	ft_log("%u receives", n);
	FT_CHECK(n, "no receive at all");
	ft_stats(&pair->dom[1], &before);
	for (i = 0; i < n; i++) {
		ft_fill(q, 2000, i);
		FT_POST(&pair->c,
			fi_send(pair->c.ep, q, 2000, NULL, pair->c.to, q));
		ft_wait(&pair->s, FT_RX, &comp);
		FT_CHECK(comp.ctx == p + i * 2 * SMALL, "order");
		FT_CHECK_BUF(p + i * 2 * SMALL, 2000, i, "while all is held");
		ft_wait(&pair->c, FT_TX, &comp);
		q += FT_PAGE;
	}
	ft_stats(&pair->dom[1], &after);
	FT_CHECK(after.bounces > before.bounces, "nothing was copied");
}

static void beyond(void)
{
	struct rlimit limit = { PRESSURE, PRESSURE };
	char *p = ft_map(NULL, COUNT * 2 * SMALL);
	char *q = ft_map(NULL, COUNT * 2 * SMALL);
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	struct ft_pair pair;

	FT_CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit), "setrlimit: %s",
		 strerror(errno));
	ft_drop_caps();
	setenv("FI_OFI_MRRC_CACHE_MAX_SIZE", "64M", 1);
	setenv("FI_OFI_MRRC_COST",
	       "reg_page=100:reg=20000:dereg_page=0:dereg=0:copy_page=5000", 1);
	setenv("FI_OFI_MRRC_BOUNCE_SIZE", "16K", 1);
	attr.abandons = true;
	ft_pair_open(&pair, &attr);
	press(&pair, p, q, 3000);
	press(&pair, p, q, SMALL);
	ft_check_idle(&pair.dom[0], "pressed");
	ft_check_idle(&pair.dom[1], "pressed");
	ft_stats(&pair.dom[1], &st);
	FT_CHECK(st.registration_failures && st.evictions && st.bounces,
		 "%" PRIu64 " failures, %" PRIu64 " evictions, %" PRIu64
		 " copies",
		 st.registration_failures, st.evictions, st.bounces);
	/* a failed registration does not evict all regions */
	FT_CHECK(st.regions > 1, "%" PRIu64 " regions", st.regions);
	all_held(&pair, p, q);
	ft_check_idle(&pair.dom[0], "all done");
	ft_check_flushed(&pair.dom[0], "all done");
	ft_check_flushed(&pair.dom[1], "all done");
	ft_pair_close(&pair);
}

/* ---- more memory than may be locked, used in turn ---- */

#define TURN	   6 /* buffers */
#define TURN_LIMIT (LARGE * 9 / 2)
#define GAP_US	   30000
#define FORESEEN   10

static void restrict_turns(void)
{
	struct rlimit limit = { TURN_LIMIT, TURN_LIMIT };

	FT_CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit), "setrlimit: %s",
		 strerror(errno));
	ft_drop_caps();
}

/* Over the raw core a program cannot leave all used buffers registered. */
static void turns_raw(void)
{
	char *p = ft_map(NULL, TURN * LARGE);
	struct ft_attr attr = FT_ATTR;
	struct ft_pair pair;
	struct fid_mr *mr;
	unsigned i = 0;

	restrict_turns();
	ft_opts.raw = true;
	ft_opts.prov = "verbs";
	ft_pair_open(&pair, &attr);
	while (i < TURN && !fi_mr_reg(pair.dom[0].domain, p + i * LARGE, LARGE,
				      FI_SEND, 0, i, 0, &mr, NULL))
		i++;
	FT_CHECK(i && i < TURN, "%u buffers of %u were registered", i, TURN);
}

static void turns(void)
{
	/* on a loaded machine few intervals between uses are alike */
	const uint64_t end = ft_deadline();
	char *p = ft_map(NULL, TURN * LARGE), *q = ft_map(NULL, LARGE);
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	struct ft_pair pair;
	unsigned i = 0;

	restrict_turns();
	setenv("FI_OFI_MRRC_HELPER", "predict", 1);
	/* the helper works also while all processors are busy */
	setenv("FI_OFI_MRRC_HELPER_NODE", "aggressive", 1);
	ft_pair_open(&pair, &attr);
	do {
		ft_stage("more than may be locked, message %u", i);
		ft_verify_pair(&pair.c, p + i % TURN * LARGE, q, LARGE, i);
		i++;
		usleep(GAP_US);
		ft_stats(&pair.dom[1], &st);
		FT_CHECK(st.bytes <= TURN_LIMIT, "%" PRIu64 " bytes", st.bytes);
		FT_CHECK(ft_limit_us() < end,
			 "%" PRIu64 " of %u uses were foreseen, %" PRIu64
			 " late",
			 ft_counter(&pair.dom[1], "ahead_used"), i,
			 ft_counter(&pair.dom[1], "late_uses"));
	} while (i < 2 * TURN ||
		 (ft_caches(&pair.dom[1]) &&
		  ft_counter(&pair.dom[1], "ahead_used") < FORESEEN));
	ft_pair_close(&pair);
}

struct part {
	void (*run)(void);
	bool restricted;
};

static void run_part(const void *arg)
{
	const struct part *part = arg;

	if (part->restricted)
		restrict_memory();
	part->run();
}

static void in_child(const char *name, void (*run)(void), bool restricted)
{
	const struct part part = { run, restricted };

	ft_in_child(name, run_part, &part, output, sizeof(output));
	if (ft_opts.verbose)
		fputs(output, stdout);
}

int main(int argc, char **argv)
{
	ft_init(argc, argv);
	if (!ft_core("verbs"))
		ft_skip("%s locks no memory", ft_opts.prov);
	in_child("the raw core", raw_fails, true);
	if (ft_opts.raw)
		return ft_done();
	in_child("over ofi_mrrc", over_us, true);
	FT_CHECK(strstr(output, "MEMLOCK") || strstr(output, "memlock"),
		 "the error names no limit:\n%s", output);
	in_child("beyond the limit", beyond, false);
	in_child("the raw core, in turn", turns_raw, false);
	in_child("in turn, with a helper", turns, false);
	return ft_done();
}
