/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_hook_keys: tests FI_OFI_MRRC_REVOKE_MS in the hooking form. The key
 * of a closed registration is invalid. Where the setting keeps the key, the key
 * reaches its registration's memory, and never other memory at the same
 * address, until the key's time is over. Buffers that share a page are
 * registered once each.
 *
 * Each setting runs in its own process, since the provider reads the setting
 * once.
 */
#include "ft_mrrc.h"

#include <sys/wait.h>

#define LEN   (16 * FT_PAGE)
#define PARTS 16
#define PART  (2 * FT_PAGE + 1000)

static struct ft_pair pair;
static char *out, *in;

static struct fid_mr *reg(void)
{
	struct fid_mr *mr = NULL;

	FT_CALL(fi_mr_reg(pair.dom[0].domain, in, LEN, FI_REMOTE_WRITE, 0, 77,
			  0, &mr, NULL));
	return mr;
}

/* Does a write with this key arrive? If not, the connection has ended. */
static bool arrives(uint64_t key, unsigned seed)
{
	uint64_t end = ft_deadline();
	struct iovec iov = { out, LEN };
	void *desc = ft_desc(&pair.dom[1], out, LEN);
	struct fi_rma_iov rma = { ft_raddr(&pair.dom[0], in), LEN, key };
	const struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = pair.c.to,
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = out,
	};
	struct ft_comp comp = { 0 };
	int i;

	ft_fill(in, LEN, seed + 1);
	ft_fill(out, LEN, seed);
	FT_POST(&pair.c, fi_writemsg(pair.c.ep, &msg,
				     FI_COMPLETION | FI_DELIVERY_COMPLETE));
	while (!ft_take(&pair.c, FT_TX, &comp)) {
		FT_CHECK(ft_limit_us() < end, "a write does not end");
		ft_progress(&pair.c);
	}
	for (i = 0; i < 1000; i++)
		ft_progress(&pair.c);
	FT_CHECK_BUF(in, LEN, comp.err ? seed + 1 : seed,
		     comp.err ? "a write that failed" :
				"a write that succeeded");
	if (!comp.err)
		return true;
	ft_release(&pair.dom[1]);
	ft_reconnect(&pair);
	return false;
}

/* The memory of a key is replaced: no write may change the new memory. */
static void remapped(uint64_t key)
{
	struct fi_mrrc_stats st = { .size = sizeof(st) };
	uint64_t end = ft_deadline();

	ft_stage("other memory at its address");
	FT_CHECK(ft_map(in, LEN) == in, "not the same address");
	do {
		FT_CHECK(ft_limit_us() < end, "its registration stays");
		ft_progress(&pair.s);
		FT_CALL(fi_mrrc_stats_read(pair.dom[0].domain, &st));
		/*
		 * the region leaves the cache first, and is deregistered later
		 */
	} while (st.regions || st.deregistrations < st.registrations);
	FT_CHECK(!arrives(key, 30), "a key works for other memory");
}

/*
 * Registers parts of one buffer for peers, one after another; the parts share
 * pages.
 */
static void neighbours(void)
{
	struct fi_mrrc_stats was = { .size = sizeof(was) }, is = was;
	const size_t len = FT_PAGE * (PARTS * PART / FT_PAGE + 1);
	char *parts = ft_map(NULL, len);
	struct fid_mr *mr;
	unsigned i;

	ft_stage("neighbours");
	FT_CALL(fi_mrrc_stats_read(pair.dom[0].domain, &was));
	for (i = 0; i < 4 * PARTS; i++) {
		mr = NULL;
		FT_CALL(fi_mr_reg(pair.dom[0].domain, parts + i % PARTS * PART,
				  PART, FI_REMOTE_READ, 0, 77, 0, &mr, NULL));
		FT_CALL(fi_close(&mr->fid));
	}
	FT_CALL(fi_mrrc_stats_read(pair.dom[0].domain, &is));
	FT_CHECK(is.registrations - was.registrations == PARTS,
		 "%" PRIu64 " registrations of %d parts",
		 is.registrations - was.registrations, PARTS);
	ft_unmap(parts, len);
}

/*
 * May keys be kept? Keys may be kept if the core chooses keys, and peers
 * address memory by its own address.
 */
static bool may_be_kept(void)
{
	const int modes = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;

	return (pair.dom[0].info->domain_attr->mr_mode & modes) == modes;
}

enum after { DEAD, ENDS, KEPT };

static const struct setting {
	const char *revoke, *count, *helper;
	enum after after; /* fi_close() */
} settings[] = {
	{ "0", NULL, NULL, DEAD },
	/* "auto" takes the setting of libfabric's own cache, which is off */
	{ "auto", "0", NULL, DEAD },
	/* without a helper no thread could revoke the key */
	{ "600000", NULL, "never", DEAD },
	{ "10", NULL, NULL, ENDS },
	{ NULL, NULL, NULL, ENDS },
	/* the key is kept for longer than the test lasts */
	{ "600000", NULL, NULL, KEPT },
	{ "unlimited", NULL, NULL, KEPT },
};
#define SETTINGS (sizeof(settings) / sizeof(*settings))

/* The helper revokes kept keys, without a call of this process. */
static void ends(void)
{
	struct fi_mrrc_stats st = { .size = sizeof(st) };
	uint64_t end = ft_deadline();

	do {
		FT_CHECK(ft_limit_us() < end, "its registration stays");
		usleep(1000);
		FT_CALL(fi_mrrc_stats_read(pair.dom[0].domain, &st));
	} while (st.regions || st.deregistrations < st.registrations);
	FT_CHECK(st.registrations, "it was not kept");
}

static int with(const struct setting *set)
{
	struct ft_attr attr = FT_ATTR;
	enum after after = set->after;
	struct fid_mr *mr;
	uint64_t key;
	int i;

	ft_pair_open(&pair, &attr);
	if (!may_be_kept())
		after = DEAD;
	out = ft_map(NULL, LEN);
	in = ft_map(NULL, LEN);
	/* the second round uses the regions of the first round */
	for (i = 0; i < 2; i++) {
		ft_stage("REVOKE_MS=%s, round %d", set->revoke, i);
		mr = reg();
		key = fi_mr_key(mr);
		FT_CHECK(arrives(key, 10 + i), "a good key does not work");
		FT_CALL(fi_close(&mr->fid));
		if (after == ENDS)
			ends();
		FT_CHECK(arrives(key, 20 + i) == (after == KEPT),
			 "%s: a key %s", set->revoke,
			 after == KEPT ? "is not kept" :
					 "outlives its registration");
	}
	if (after == KEPT) {
		remapped(key);
		neighbours();
	}
	ft_unmap(out, LEN);
	ft_unmap(in, LEN);
	ft_pair_close(&pair);
	return ft_done();
}

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;
	size_t i;

	setenv("FI_HOOK", "mrrc", 1);
	for (i = 0; i < SETTINGS; i++) {
		pid = fork();
		FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
		if (!pid) {
			set("FI_OFI_MRRC_REVOKE_MS", settings[i].revoke);
			set("FI_MR_CACHE_MAX_COUNT", settings[i].count);
			set("FI_OFI_MRRC_HELPER", settings[i].helper);
			ft_init(argc, argv);
			ft_set_raw();
			if (ft_rdm())
				ft_skip("of connected endpoints");
			exit(with(&settings[i]));
		}
		FT_CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
		if (status)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	}
	return 0;
}
