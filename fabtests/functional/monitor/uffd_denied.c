/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_uffd_denied: tests that where userfaultfd is denied, as in many
 * containers, all transfers work, the monitor in use is reported as "none", no
 * buffer is cached, and one line tells the user what to do. The test then does
 * the same without any privilege. With FI_OFI_MRRC_MONITOR=uffd no domain is
 * opened, and a cache of size 0 keeps nothing.
 */
#include "ft_mrrc.h"
#include "ft_priv.h"

#include <sys/syscall.h>

#define LEN (8 * FT_PAGE)

static void use(struct ft_pair *pair, unsigned rounds)
{
	char *p, *q = malloc(LEN), on_stack[2000];
	unsigned i;

	FT_CHECK(q, "malloc");
	p = ft_map(NULL, LEN);
	for (i = 0; i < rounds; i++) {
		ft_verify_pair(&pair->c, p, q, LEN, i);
		ft_verify_pair(&pair->s, q, p, 1 + ft_rand() % LEN, ~i);
		ft_verify_pair(&pair->c, on_stack, q, sizeof(on_stack), i);
		ft_release_pair(pair);
		if (i % 2)
			ft_map(p, LEN);
	}
	ft_unmap(p, LEN);
	free(q);
}

/*
 * Opens two domains of this process, at libfabric's default level of messages.
 */
static void open_pair(struct ft_pair *pair, bool denied)
{
	struct ft_attr attr = FT_ATTR;
	FILE *said = tmpfile();
	unsigned lines = 0;
	char line[512];
	int old = dup(2);

	FT_CHECK(said && old >= 0 && dup2(fileno(said), 2) == 2, "tmpfile: %s",
		 strerror(errno));
	ft_pair_open(pair, &attr);
	FT_CHECK(dup2(old, 2) == 2, "dup2: %s", strerror(errno));
	close(old);
	rewind(said);
	while (fgets(line, sizeof(line), said)) {
		fputs(line, stderr);
		lines += strstr(line, "never kept: userfaultfd is forbidden") &&
			 strstr(line, "seccomp profile") &&
			 strstr(line, "/dev/userfaultfd");
	}
	fclose(said);
	if (denied && !ft_opts.raw && syscall(SYS_userfaultfd, 0) < 0 &&
	    errno == EPERM)
		FT_CHECK(lines == 1, "%u warnings of a process", lines);
}

static void session(bool denied)
{
	struct fi_mrrc_stats st;
	struct ft_pair pair;

	open_pair(&pair, denied);
	use(&pair, ft_iters(200));
	ft_check_idle(&pair.dom[1], "idle");
	if (!ft_stats(&pair.dom[1], &st)) {
		ft_pair_close(&pair);
		return;
	}
	ft_log("monitor %s, %" PRIu64 " hits", st.monitor, st.hits);
	if (denied) {
		FT_CHECK(!strcmp(st.monitor, "none"), "monitor %s", st.monitor);
		FT_CHECK(!st.hits && !st.regions && !st.bytes,
			 "%" PRIu64 " hits, %" PRIu64 " regions without a "
			 "monitor",
			 st.hits, st.regions);
		FT_CHECK(st.uncached == st.misses &&
				 st.registrations ==
					 st.deregistrations +
						 st.registration_failures,
			 "%" PRIu64 " uncached of %" PRIu64, st.uncached,
			 st.misses);
	} else if (!strcmp(st.monitor, "none")) {
		printf("note: no userfaultfd without privileges here\n");
	}
	ft_pair_close(&pair);
}

/*
 * With the monitor "uffd" no domain is opened; getinfo and fabrics work as
 * before.
 */
static void insist(void)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_info *info;
	struct fid_domain *domain;
	struct fid_fabric *fabric;
	int ret = 0;
	unsigned i;

	setenv("FI_OFI_MRRC_MONITOR", "uffd", 1);
	info = ft_getinfo(&attr);
	FT_CALL(fi_fabric(info->fabric_attr, &fabric, NULL));
	for (i = 0; i < ft_iters(200); i++) {
		ret = fi_domain(fabric, info, &domain, NULL);
		FT_CHECK(ft_opts.raw || ret < 0,
			 "a domain without the monitor asked for: %d", ret);
		if (!ret)
			FT_CALL(fi_close(&domain->fid));
	}
	ft_log("fi_domain: %s", fi_strerror(-ret));
	FT_CALL(fi_close(&fabric->fid));
	fi_freeinfo(info);
}

static void nothing_kept(void)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	struct ft_pair pair;

	setenv("FI_OFI_MRRC_CACHE_MAX_SIZE", "0", 1);
	ft_pair_open(&pair, &attr);
	use(&pair, ft_iters(200));
	ft_check_idle(&pair.dom[1], "idle");
	if (ft_stats(&pair.dom[1], &st))
		FT_CHECK(!st.hits && !st.regions && st.misses &&
				 st.uncached == st.misses,
			 "%" PRIu64 " hits, %" PRIu64 " regions, %" PRIu64
			 " of %" PRIu64 " uncached",
			 st.hits, st.regions, st.uncached, st.misses);
	ft_pair_close(&pair);
}

struct part {
	bool deny, drop;
	void (*run)(void);
};

static void run_part(const void *arg)
{
	const struct part *part = arg;

	if (part->drop)
		ft_drop_caps();
	if (part->deny)
		ft_deny_uffd();
	if (part->run)
		part->run();
	else
		session(part->deny);
}

static void in_child(const char *name, bool deny, bool drop, void (*run)(void))
{
	const struct part part = { deny, drop, run };

	ft_in_child(name, run_part, &part, NULL, 0);
}

int main(int argc, char **argv)
{
	unsetenv("FI_LOG_LEVEL");
	ft_init(argc, argv);
	in_child("userfaultfd denied", true, false, NULL);
	in_child("without privileges", false, true, NULL);
	in_child("both", true, true, NULL);
	in_child("userfaultfd insisted on", true, false, insist);
	in_child("a cache of no size", false, false, nothing_kept);
	return ft_done();
}
