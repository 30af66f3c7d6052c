/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_info: tests the results of fi_getinfo(), calls for which fi_getinfo()
 * must return no info, and the provider's parameters. Each case is a child
 * process, because libfabric reads its environment once.
 */
#include "info/info.h"

static char output[65536]; /* output of the latest child */

struct fi_info *info_hints(const char *prov)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_info *hints = ft_hints(&attr);

	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = prov ? strdup(prov) : NULL;
	return hints;
}

static int ask(const char *prov, struct fi_info **info)
{
	struct fi_info *hints = info_hints(prov);
	int ret;

	ret = fi_getinfo(FT_FIVERSION, ft_opts.addr, NULL, FI_SOURCE, hints,
			 info);
	fi_freeinfo(hints);
	return ret;
}

static bool any_is_ours(struct fi_info *info)
{
	for (; info; info = info->next) {
		if (strstr(info->fabric_attr->prov_name, "mrrc"))
			return true;
	}
	return false;
}

/* Returns the name of the provider below ofi_mrrc. */
const char *info_core_name(void)
{
	static char name[64];
	char *us;

	snprintf(name, sizeof(name), "%s", ft_opts.prov);
	us = strstr(name, ";ofi_mrrc");
	if (us)
		*us = '\0';
	return name;
}

static bool has_type(void)
{
	struct fi_info *hints = info_hints(info_core_name()), *info = NULL;
	int ret;

	hints->domain_attr->mr_mode |= FI_MR_LOCAL;
	ret = fi_getinfo(FT_FIVERSION, ft_opts.addr, NULL, FI_SOURCE, hints,
			 &info);
	fi_freeinfo(hints);
	fi_freeinfo(info);
	return !ret;
}

/* ---- cases: each runs alone in a child --------------------------------- */

static void named_in_hints(void)
{
	struct fi_info *info, *i;

	if (!has_type())
		ft_skip("%s has no such endpoints", info_core_name());
	FT_CALL(ask(ft_opts.prov, &info));
	for (i = info; i; i = i->next) {
		FT_CHECK(!strcmp(i->fabric_attr->prov_name, ft_opts.prov),
			 "named %s", i->fabric_attr->prov_name);
		FT_CHECK(!(i->domain_attr->mr_mode & FI_MR_LOCAL),
			 "FI_MR_LOCAL is asked for");
		FT_CHECK(i->tx_attr->iov_limit && i->rx_attr->iov_limit,
			 "no iov at all");
		FT_CHECK((i->caps & (FI_MSG | FI_RMA)) == (FI_MSG | FI_RMA),
			 "caps");
		FT_CHECK(i->ep_attr->type == ft_ep_type(), "type");
	}
	fi_freeinfo(info);
}

/* An application that supports FI_MR_LOCAL need not register local buffers. */
static void mr_local_in_hints(void)
{
	struct fi_info *hints = info_hints(ft_opts.prov), *info;

	hints->domain_attr->mr_mode |= FI_MR_LOCAL;
	FT_CALL(fi_getinfo(FT_FIVERSION, ft_opts.addr, NULL, FI_SOURCE, hints,
			   &info));
	fi_freeinfo(hints);
	FT_CHECK(!(info->domain_attr->mr_mode & FI_MR_LOCAL),
		 "FI_MR_LOCAL is asked for");
	fi_freeinfo(info);
}

static void not_named(void)
{
	struct fi_info *info = NULL;
	int ret;

	ret = fi_getinfo(FT_FIVERSION, NULL, NULL, 0, NULL, &info);
	FT_CHECK(!ret || ret == -FI_ENODATA, "fi_getinfo: %d", ret);
	FT_CHECK(!any_is_ours(info), "we answer without being named");
	fi_freeinfo(info);
	info = NULL;
	ask(NULL, &info);
	FT_CHECK(!any_is_ours(info), "we answer hints without a name");
	fi_freeinfo(info);
}

static void core_named(void)
{
	struct fi_info *hints = info_hints(info_core_name()), *info = NULL;

	hints->domain_attr->mr_mode |= FI_MR_LOCAL;
	FT_CALL(fi_getinfo(FT_FIVERSION, ft_opts.addr, NULL, FI_SOURCE, hints,
			   &info));
	fi_freeinfo(hints);
	FT_CHECK(!any_is_ours(info), "we answer for the core");
	fi_freeinfo(info);
}

/* Where the provider is not named, the core's FI_MR_LOCAL must be visible. */
static void core_without_local(void)
{
	struct fi_info *info = NULL;
	int ret = ask(info_core_name(), &info);

	FT_CHECK(ret == (ft_core("verbs") && !ft_rxm() ? -FI_ENODATA : 0),
		 "the core alone, without FI_MR_LOCAL: %d", ret);
	FT_CHECK(!any_is_ours(info), "we answer for the core");
	fi_freeinfo(info);
}

static void core_in_environment(void)
{
	setenv("FI_PROVIDER", info_core_name(), 1);
	not_named();
}

static void in_environment(void)
{
	struct fi_info *info, *i;

	setenv("FI_PROVIDER", ft_opts.prov, 1);
	FT_CALL(ask(NULL, &info));
	for (i = info; i; i = i->next)
		FT_CHECK(!strcmp(i->fabric_attr->prov_name, ft_opts.prov),
			 "FI_PROVIDER names us, %s answers",
			 i->fabric_attr->prov_name);
	fi_freeinfo(info);
}

/* A core's name in the hints stands for the utility providers over it, too. */
static void core_of_utility(void)
{
	struct fi_info *info, *i;
	char core[64];

	setenv("FI_PROVIDER", ft_opts.prov, 1);
	snprintf(core, sizeof(core), "%.*s", (int) strcspn(ft_opts.prov, ";"),
		 ft_opts.prov);
	FT_CALL(ask(core, &info));
	for (i = info; i; i = i->next)
		FT_CHECK(!strcmp(i->fabric_attr->prov_name, ft_opts.prov),
			 "FI_PROVIDER names us over %s, %s answers", core,
			 i->fabric_attr->prov_name);
	fi_freeinfo(info);
}

static void alone_in_environment(void)
{
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fi_info *info;
	int ret;

	setenv("FI_PROVIDER", "ofi_mrrc", 1);
	ret = ask(NULL, &info);
	/*
	 * ofi_rxm does not find cores that FI_PROVIDER excludes, and verbs has
	 * no reliable datagrams itself
	 */
	if (ft_core("verbs") && ft_rdm()) {
		FT_CHECK(ret == -FI_ENODATA, "fi_getinfo: %d", ret);
		return;
	}
	FT_CALL(ret);
	FT_CHECK(any_is_ours(info), "FI_PROVIDER=ofi_mrrc, %s answers",
		 info->fabric_attr->prov_name);
	FT_CALL(fi_fabric(info->fabric_attr, &fabric, NULL));
	FT_CALL(fi_domain(fabric, info, &domain, NULL));
	FT_CALL(fi_close(&domain->fid));
	FT_CALL(fi_close(&fabric->fid));
	fi_freeinfo(info);
}

/* The usual mistake in the order of names: the log says what is right. */
static void wrong_order(void)
{
	struct fi_info *info = NULL;
	char name[128];

	snprintf(name, sizeof(name), "ofi_mrrc;%s", info_core_name());
	setenv("FI_PROVIDER", name, 1);
	setenv("FI_LOG_LEVEL", "warn", 1);
	FT_CHECK(ask(NULL, &info) == -FI_ENODATA, "FI_PROVIDER=%s", name);
}

static void excluded(void)
{
	struct fi_info *info = NULL;
	int ret;

	setenv("FI_PROVIDER", "^ofi_mrrc", 1);
	ret = ask(ft_opts.prov, &info);
	FT_CHECK(ret == -FI_ENODATA || !any_is_ours(info),
		 "excluded, we answer");
}

static void unknown_core(void)
{
	struct fi_info *info = NULL;
	int ret = ask("nosuch;ofi_mrrc", &info);

	FT_CHECK(ret == -FI_ENODATA, "an unknown core: %d (%s)", ret,
		 ret ? fi_strerror(-ret) : info->fabric_attr->prov_name);
}

/*
 * Properties that no core supports must not become possible by naming ofi_mrrc.
 */
static void impossible(void)
{
	struct fi_info *hints = info_hints(ft_opts.prov), *info = NULL;
	int ret;

	hints->tx_attr->iov_limit = 100000;
	ret = fi_getinfo(FT_FIVERSION, ft_opts.addr, NULL, FI_SOURCE, hints,
			 &info);
	FT_CHECK(ret == -FI_ENODATA, "100000 iovs: %d", ret);
	fi_freeinfo(hints);
	hints = info_hints(ft_opts.prov);
	hints->ep_attr->type = (enum fi_ep_type) 99;
	ret = fi_getinfo(FT_FIVERSION, ft_opts.addr, NULL, FI_SOURCE, hints,
			 &info);
	FT_CHECK(ret == -FI_ENODATA, "endpoint type 99: %d", ret);
	fi_freeinfo(hints);
}

/*
 * A listener in the hints is returned in the info, and an endpoint can be
 * opened with that info.
 */
static void handle_in_hints(void)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_info *hints, *info, *again, *i;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_pep *pep;
	struct fid_eq *eq;
	struct fid_ep *ep;

	if (ft_rdm())
		return; /* reliable datagrams have no listeners */
	FT_CALL(ask(ft_opts.prov, &info));
	FT_CALL(fi_fabric(info->fabric_attr, &fabric, NULL));
	FT_CALL(fi_eq_open(fabric, &eq_attr, &eq, NULL));
	FT_CALL(fi_passive_ep(fabric, info, &pep, NULL));
	hints = info_hints(ft_opts.prov);
	hints->handle = &pep->fid;
	FT_CALL(fi_getinfo(FT_FIVERSION, ft_opts.addr, NULL, FI_SOURCE, hints,
			   &again));
	for (i = again; i; i = i->next)
		FT_CHECK(i->handle == &pep->fid, "handle %p, not %p",
			 (void *) i->handle, (void *) &pep->fid);
	FT_CALL(fi_domain(fabric, again, &domain, NULL));
	/* verbs opens no endpoint at a listener's address */
	if (!ft_core("verbs")) {
		FT_CALL(fi_endpoint(domain, again, &ep, NULL));
		FT_CALL(fi_close(&ep->fid));
	}
	FT_CALL(fi_close(&domain->fid));
	FT_CALL(fi_close(&pep->fid));
	FT_CALL(fi_close(&eq->fid));
	FT_CALL(fi_close(&fabric->fid));
	hints->handle = NULL;
	fi_freeinfo(hints);
	fi_freeinfo(again);
	fi_freeinfo(info);
}

static void check_limits(const char *size, uint64_t bytes)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	struct ft_pair pair;

	setenv("FI_OFI_MRRC_CACHE_MAX_SIZE", size, 1);
	setenv("FI_OFI_MRRC_CACHE_MAX_COUNT", "77", 1);
	ft_pair_open(&pair, &attr);
	ft_stats(&pair.dom[1], &st);
	FT_CHECK(st.max_bytes == bytes && st.max_regions == 77,
		 "%s: %" PRIu64 " bytes, %" PRIu64 " regions", size,
		 st.max_bytes, st.max_regions);
	ft_pair_close(&pair);
}

static void size_k(void)
{
	check_limits("512k", 512 << 10);
}

static void size_m(void)
{
	check_limits("4M", 4 << 20);
}

static void size_g(void)
{
	check_limits("1G", 1 << 30);
}

static void size_plain(void)
{
	check_limits("123456", 123456);
}

/* A limit of the cache that is no number is ignored, with a warning. */
static void size_wrong(void)
{
	struct fi_info *info;

	setenv("FI_LOG_LEVEL", "warn", 1);
	setenv("FI_OFI_MRRC_CACHE_MAX_SIZE", "lots", 1);
	FT_CALL(ask(ft_opts.prov, &info));
	fi_freeinfo(info);
}

/* Checks that counters and log show the monitor in force. */
static void check_monitor(const char *name, const char *hooks,
			  const char *title)
{
	char *p = ft_map(NULL, 2 * FT_PAGE);
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	struct ft_pair pair;
	uint64_t hooked;
	unsigned i;

	setenv("FI_LOG_LEVEL", "info", 1);
	setenv("FI_LOG_PROV", "ofi_mrrc", 1);
	setenv("FI_OFI_MRRC_MONITOR", name, 1);
	setenv("FI_OFI_MRRC_HOOKS", hooks, 1);
	ft_pair_open(&pair, &attr);
	for (i = 0; i < 5; i++)
		ft_verify_pair(&pair.c, p, p + FT_PAGE, FT_PAGE, i);
	ft_stats(&pair.dom[1], &st);
	hooked = ft_counter(&pair.dom[1], "hooks");
	/* uffd_denied.c tests processes without userfaultfd */
	if (!strncmp(title, "uffd", 4) && !strcmp(st.monitor, "none"))
		title = "none";
	FT_CHECK(!strcmp(st.monitor, title) ||
			 (!strcmp(title, "uffd+hooks") &&
			  !strcmp(st.monitor, "uffd") && !hooked),
		 "FI_OFI_MRRC_MONITOR=%s, HOOKS=%s: %s", name, hooks,
		 st.monitor);
	FT_CHECK(!hooked == !strstr(st.monitor, "hooks"),
		 "%s with %" PRIu64 " hooks", st.monitor, hooked);
	FT_CHECK(!st.hits == !strcmp(st.monitor, "none"),
		 "%s: %" PRIu64 " hits", st.monitor, st.hits);
	ft_pair_close(&pair);
}

static void monitor_auto(void)
{
	check_monitor("auto", "auto", "uffd+hooks");
}

static void monitor_no_hooks(void)
{
	check_monitor("auto", "0", "uffd");
}

static void monitor_manual(void)
{
	check_monitor("manual", "auto", "manual");
}

static void monitor_none(void)
{
	check_monitor("none", "1", "none");
}

static void monitor_wrong(void)
{
	check_monitor("userfaultfd", "auto", "uffd+hooks");
}

static void misspelt(void)
{
	struct fi_info *info;

	setenv("FI_LOG_LEVEL", "warn", 1);
	setenv("FI_OFI_MRRC_CACHE_MAX_COUT", "3", 1);
	FT_CALL(ask(ft_opts.prov, &info));
	fi_freeinfo(info);
}

static void misnamed(void)
{
	struct fi_info *info;

	setenv("FI_LOG_LEVEL", "warn", 1);
	setenv("FI_MRRC_MONITOR", "none", 1);
	FT_CALL(ask(ft_opts.prov, &info));
	fi_freeinfo(info);
}

static void same_file(void)
{
	struct fi_info *info;

	setenv("FI_LOG_LEVEL", "warn", 1);
	setenv("FI_OFI_MRRC_STATS_FILE", "/dev/null", 1);
	setenv("FI_OFI_MRRC_TRACE", "/dev/null", 1);
	FT_CALL(ask(ft_opts.prov, &info));
	fi_freeinfo(info);
}

/* A domain without registrations checks the arguments of calls, too. */
static void invalidate_nothing(void)
{
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fi_info *info;
	int ret;

	setenv("FI_OFI_MRRC_REGISTER", "never", 1);
	if (ft_core("verbs"))
		return; /* without registrations verbs needs FI_MR_LOCAL */
	FT_CALL(ask(ft_opts.prov, &info));
	FT_CALL(fi_fabric(info->fabric_attr, &fabric, NULL));
	FT_CALL(fi_domain(fabric, info, &domain, NULL));
	FT_CALL(fi_mrrc_invalidate(domain, output, sizeof(output)));
	ret = fi_mrrc_invalidate(domain, output, 0);
	FT_CHECK(ret == -FI_EINVAL, "an empty range: %d", ret);
	ret = fi_mrrc_invalidate(domain, NULL, FT_PAGE);
	FT_CHECK(ret == -FI_EINVAL, "no address: %d", ret);
	ret = fi_mrrc_invalidate(domain, output, SIZE_MAX);
	FT_CHECK(ret == -FI_EINVAL, "a range that wraps: %d", ret);
	FT_CALL(fi_close(&domain->fid));
	FT_CALL(fi_close(&fabric->fid));
	fi_freeinfo(info);
}

static void ext_ops(void)
{
	struct fi_mrrc_stats st = { .size = 4 };
	struct ft_attr attr = FT_ATTR;
	struct ft_pair pair;
	void *ops;
	int ret;

	ft_pair_open(&pair, &attr);
	ret = fi_mrrc_stats_read(pair.dom[0].domain, &st);
	FT_CHECK(ret == -FI_EINVAL, "statistics of 4 bytes: %d", ret);
	st.size = offsetof(struct fi_mrrc_stats, hits);
	st.hits = 4242;
	FT_CALL(fi_mrrc_stats_read(pair.dom[0].domain, &st));
	FT_CHECK(st.hits == 4242, "written beyond what was asked for");
	ret = fi_open_ops(&pair.dom[0].domain->fid, "no such ops", 0, &ops,
			  NULL);
	FT_CHECK(ret == -FI_ENOSYS || ret == -FI_EINVAL,
		 "unknown operations: %d", ret);
	ret = fi_open_ops(&pair.dom[0].domain->fid, NULL, 0, &ops, NULL);
	FT_CHECK(ret == -FI_ENOSYS, "ops without a name, of a domain: %d", ret);
	ret = fi_open_ops(&pair.s.ep->fid, NULL, 0, &ops, NULL);
	FT_CHECK(ret == -FI_ENOSYS, "ops without a name, of an endpoint: %d",
		 ret);
	ret = fi_set_ops(&pair.dom[0].domain->fid, NULL, 0, &ops, NULL);
	FT_CHECK(ret == -FI_ENOSYS, "ops set without a name: %d", ret);
	ft_pair_close(&pair);
}

/* Stores the field of struct fi_mrrc_stats that a counter is named after. */
static bool field_of(const struct fi_mrrc_stats *st, const char *name,
		     uint64_t *value)
{
#define FIELD(field)                       \
	do {                               \
		*value = st->field;        \
		if (!strcmp(name, #field)) \
			return true;       \
	} while (0)
	FIELD(lookups);
	FIELD(hits);
	FIELD(misses);
	FIELD(registrations);
	FIELD(deregistrations);
	FIELD(registration_failures);
	FIELD(evictions);
	FIELD(invalidations);
	FIELD(uncached);
	FIELD(posts);
	FIELD(completions);
	FIELD(bounces);
	FIELD(regions);
	FIELD(bytes);
	FIELD(held_regions);
	FIELD(regions_peak);
	FIELD(bytes_peak);
	FIELD(max_regions);
	FIELD(max_bytes);
#undef FIELD
	return false;
}

/* number of fields between the struct's size and its monitor */
#define FIELDS (offsetof(struct fi_mrrc_stats, monitor) / sizeof(uint64_t) - 1)

static void all_counters(void)
{
	struct fi_mrrc_counter c = { .size = sizeof(c) };
	const char *seen[256];
	char *p = ft_map(NULL, 2 * FT_PAGE);
	struct ft_attr attr = FT_ATTR;
	size_t count, fields = 0, i;
	struct fi_mrrc_stats st;
	struct ft_pair pair;
	uint64_t value;
	int ret;

	ft_pair_open(&pair, &attr);
	for (i = 0; i < 5; i++)
		ft_verify_pair(&pair.c, p, p + FT_PAGE, FT_PAGE, i);
	ft_stats(&pair.dom[1], &st);
	for (count = 0;; count++) {
		ret = fi_mrrc_counter_read(pair.dom[1].domain, count, &c);
		if (ret || count == 256)
			break;
		FT_CHECK(c.size == sizeof(c) && *c.name && *c.help &&
				 c.kind <= FI_MRRC_GAUGE &&
				 c.scope <= FI_MRRC_SCOPE_NODE,
			 "%s: %s", c.name, c.help);
		for (i = 0; i < count; i++)
			FT_CHECK(strcmp(c.name, seen[i]), "two %s", c.name);
		seen[count] = c.name;
		if (!field_of(&st, c.name, &value))
			continue;
		fields++;
		FT_CHECK(c.value == value, "%s: %" PRIu64 ", not %" PRIu64,
			 c.name, c.value, value);
	}
	FT_CHECK(ret == -FI_ENOENT, "after %zu counters: %d", count, ret);
	FT_CHECK(fields == FIELDS, "%zu fields, not %zu", fields, FIELDS);
	ret = fi_mrrc_counter_read(pair.dom[1].domain, SIZE_MAX, &c);
	FT_CHECK(ret == -FI_ENOENT, "an absurd index: %d", ret);
	c.size = 4;
	ret = fi_mrrc_counter_read(pair.dom[1].domain, 0, &c);
	FT_CHECK(ret == -FI_EINVAL, "a counter of 4 bytes: %d", ret);
	ft_pair_close(&pair);
	ft_unmap(p, 2 * FT_PAGE);
}

struct test_case {
	const char *name;
	void (*run)(void);
	const char *says; /* text that the child prints, or NULL */
};

static const struct test_case cases[] = {
	{ "named in hints", named_in_hints, NULL },
	{ "FI_MR_LOCAL in hints", mr_local_in_hints, NULL },
	{ "not named", not_named, NULL },
	{ "core named in hints", core_named, NULL },
	{ "core named, no FI_MR_LOCAL", core_without_local, NULL },
	{ "core named in FI_PROVIDER", core_in_environment, NULL },
	{ "named in FI_PROVIDER", in_environment, NULL },
	{ "core alone in hints, FI_PROVIDER", core_of_utility, NULL },
	{ "named in libfabric.conf", named_in_conf, NULL },
	{ "FI_PROVIDER=ofi_mrrc", alone_in_environment, NULL },
	{ "FI_PROVIDER in the wrong order", wrong_order,
	  "ofi_mrrc must come last" },
	{ "FI_PROVIDER=^ofi_mrrc", excluded, NULL },
	{ "unknown core", unknown_core, NULL },
	{ "impossible", impossible, NULL },
	{ "handle in hints", handle_in_hints, NULL },
	{ "unknown values", unknown_values, NULL },
	{ "size in K", size_k, NULL },
	{ "size in M", size_m, NULL },
	{ "size in G", size_g, NULL },
	{ "size in bytes", size_plain, NULL },
	{ "wrong size", size_wrong, "FI_OFI_MRRC_CACHE_MAX_SIZE" },
	{ "monitor: auto", monitor_auto, "memory monitor " },
	{ "monitor: without hooks", monitor_no_hooks, "memory monitor " },
	{ "monitor: manual", monitor_manual, "memory monitor manual" },
	{ "monitor: none", monitor_none, "memory monitor none" },
	{ "monitor: wrong name", monitor_wrong, "FI_OFI_MRRC_MONITOR" },
	{ "misspelt variable", misspelt, "FI_OFI_MRRC_CACHE_MAX_COUNT" },
	{ "misnamed variable", misnamed, "nearest is FI_OFI_MRRC_MONITOR" },
	{ "one file for two", same_file, "are the same file" },
	{ "statistics and other ops", ext_ops, NULL },
	{ "all counters", all_counters, NULL },
	{ "invalidation, nothing registered", invalidate_nothing, NULL },
};

static void run_case(const void *arg)
{
	((const struct test_case *) arg)->run();
}

int main(int argc, char **argv)
{
	const struct test_case *c;

	ft_init(argc, argv);
	ft_rxm_copies_little();
	if (ft_opts.raw)
		ft_skip("nothing to ask of a raw core");
	unsetenv("FI_PROVIDER");
	for (c = cases; c < cases + sizeof(cases) / sizeof(*cases); c++) {
		ft_in_child(c->name, run_case, c, output, sizeof(output));
		FT_CHECK(!c->says || strstr(output, c->says),
			 "%s: nothing said of %s\n%s", c->name, c->says,
			 output);
	}
	return ft_done();
}
