/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_memlock: a limit of 64 KiB of locked memory, without privileges.
 * First the raw core proves that the limit is real; then, over ofi_mrrc, what
 * fits works, and works on, and what does not fit gets an error that names
 * the limit.
 */
#include "ft_mrrc.h"
#include "ft_priv.h"

#include <sys/resource.h>
#include <sys/wait.h>

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

/* Exits with 0 when registering 1 MiB fails on the raw core. */
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

/* Both sides are of one process: they share the limit. */
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
		/* elsewhere each time: what was cached has to make room */
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

static void in_child(const char *name, void (*run)(void))
{
	size_t len = 0;
	int fds[2], status;
	ssize_t n;
	pid_t pid;

	ft_stage("%s", name);
	FT_CHECK(!pipe(fds), "pipe");
	fflush(stdout);
	pid = fork();
	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		dup2(fds[1], STDERR_FILENO);
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		restrict_memory();
		run();
		fflush(stdout);
		_exit(0);
	}
	close(fds[1]);
	while (len < sizeof(output) - 1 &&
	       (n = read(fds[0], output + len, sizeof(output) - 1 - len)) > 0)
		len += (size_t) n;
	output[len] = '\0';
	close(fds[0]);
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == FT_SKIP_RC) {
		fputs(output, stdout);
		fflush(stdout);
		_exit(FT_SKIP_RC);
	}
	FT_CHECK(WIFEXITED(status) && !WEXITSTATUS(status),
		 "%s: status 0x%x\n%s", name, status, output);
	if (ft_opts.verbose)
		fputs(output, stdout);
}

int main(int argc, char **argv)
{
	ft_init(argc, argv);
	if (!ft_core("verbs"))
		ft_skip("%s locks no memory", ft_opts.prov);
	in_child("the raw core", raw_fails);
	if (ft_opts.raw)
		return ft_done();
	in_child("over ofi_mrrc", over_us);
	FT_CHECK(strstr(output, "MEMLOCK") || strstr(output, "memlock"),
		 "the error names no limit:\n%s", output);
	return ft_done();
}
