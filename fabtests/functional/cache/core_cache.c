/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_core_cache: tests that ofi_mrrc's domains do not use libfabric's own
 * cache, which verbs has, and that other domains of the process still use
 * libfabric's cache, in any order of opening.
 *
 * A registration that libfabric's cache has kept has the same key as before.
 */
#include "ft_mrrc.h"

#include <sys/wait.h>

#define LEN    (16 * FT_PAGE)
#define ROUNDS 20

static struct ft_pair pair;

/* Domain of the core alone, next to ofi_mrrc's. */
static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
} other;

static void other_open(void)
{
	const struct ft_attr attr = FT_ATTR;
	struct fi_info *hints = ft_hints(&attr);

	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = strdup("verbs");
	hints->domain_attr->mr_mode |= FI_MR_LOCAL;
	FT_CALL(fi_getinfo(FT_FIVERSION, ft_opts.addr, NULL, FI_SOURCE, hints,
			   &other.info));
	fi_freeinfo(hints);
	FT_CALL(fi_fabric(other.info->fabric_attr, &other.fabric, NULL));
	FT_CALL(fi_domain(other.fabric, other.info, &other.domain, NULL));
}

static void other_close(void)
{
	FT_CALL(fi_close(&other.domain->fid));
	FT_CALL(fi_close(&other.fabric->fid));
	fi_freeinfo(other.info);
}

static uint64_t key_of(struct fid_domain *domain, void *buf)
{
	struct fid_mr *mr;
	uint64_t key;

	FT_CALL(fi_mr_reg(domain, buf, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
			  0, 0, &mr, NULL));
	key = fi_mr_key(mr);
	FT_CALL(fi_close(&mr->fid));
	return key;
}

/* Do several registrations of the same memory have the same key? */
static bool cached(struct fid_domain *domain, void *buf)
{
	uint64_t key = key_of(domain, buf);

	return key_of(domain, buf) == key && key_of(domain, buf) == key;
}

/*
 * In the core's own domain libfabric's cache keeps a registration, and drops
 * the registration when its memory changes.
 */
static void others(char *buf)
{
	uint64_t key, end = ft_deadline();
	int i;

	ft_stage("the core's own domain");
	while (!cached(other.domain, buf))
		FT_CHECK(ft_limit_us() < end, "others have no cache any more");
	for (i = 0; i < ROUNDS; i++) {
		key = key_of(other.domain, buf);
		/*
		 * replaced in one call, as another thread could map into a hole
		 */
		FT_CHECK(ft_map(buf, LEN) == buf, "not the same address");
		memset(buf, i, LEN);
		FT_CHECK(key_of(other.domain, buf) != key,
			 "a stale registration, round %d", i);
	}
	/*
	 * the event for the last mapping may arrive late, and then also drops
	 * the new registration
	 */
	while (!cached(other.domain, buf))
		FT_CHECK(ft_limit_us() < end, "it is not cached again");
}

/*
 * In ofi_mrrc's domain closing a registration revokes its key; a registration
 * has the requested rights, no others.
 */
static void ours(char *buf, bool first)
{
	char *p = ft_map(NULL, LEN);
	struct fi_mrrc_stats st;

	ft_stage("our domain");
	FT_CHECK(!cached(pair.dom[1].domain, buf),
		 "a closed registration has its key again");
	ft_verify_pair(&pair.c, buf, p, LEN, 3);
	ft_fill(p, LEN, 4);
	FT_CALL(mprotect(p, LEN, PROT_READ));
	ft_send_recv(&pair.c, p, buf, LEN);
	FT_CHECK_BUF(buf, LEN, 4, "from read-only memory");
	/*
	 * while the core's cache is in use, its registrations have all rights
	 */
	if (ft_stats(&pair.dom[1], &st))
		FT_CHECK(!!st.bounces == !first, "%" PRIu64 " copies",
			 st.bounces);
	ft_unmap(p, LEN);
}

static void run(bool first)
{
	struct ft_attr attr = FT_ATTR;
	char *buf;

	if (!first)
		other_open();
	ft_pair_open(&pair, &attr);
	if (first)
		other_open();
	buf = ft_map(NULL, LEN);
	memset(buf, 1, LEN);
	others(buf);
	ours(buf, first);
	others(buf);
	other_close();
	ours(buf, first);
	ft_pair_close(&pair);
	ft_unmap(buf, LEN);
	exit(ft_done());
}

static void in_child(bool first)
{
	pid_t pid = fork();
	int status;

	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (!pid)
		run(first);
	FT_CHECK(waitpid(pid, &status, 0) == pid && !status,
		 "with ours %s: status 0x%x", first ? "first" : "second",
		 status);
}

int main(int argc, char **argv)
{
	ft_init(argc, argv);
	if (ft_opts.raw || !ft_core("verbs") || ft_rdm())
		ft_skip("it is about verbs beside verbs;ofi_mrrc");
	in_child(true);
	in_child(false);
	return ft_done();
}
