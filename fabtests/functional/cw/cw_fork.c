/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cw_fork: tests children of a process that has conditional writes
 * under way. The children close the inherited objects, whatever the parent's
 * threads do at the moment of the fork. The children end, and the parent's
 * conditional writes go on.
 */
#include "ft_mrrc.h"

#include <signal.h>
#include <sys/wait.h>

#define OPS 16
#define LEN 65536

static struct ft_pair pair;
static char *out, *in;

static void child(bool shutdown)
{
	int ret;

	signal(SIGALRM, SIG_DFL);
	alarm(100);
	if (shutdown && !ft_rdm())
		fi_shutdown(pair.c.ep, 0);
	FT_CALL(fi_close(&pair.c.ep->fid));
	FT_CALL(fi_close(&pair.s.ep->fid));
	FT_CALL(fi_close(&pair.c.cq[FT_TX]->fid));
	/* the provider's own endpoint in the domain is the parent's */
	ret = fi_close(&pair.dom[1].domain->fid);
	FT_CHECK(ret == -FI_EBUSY, "closing the domain: %d", ret);
	_exit(0);
}

static void post(uint64_t tag)
{
	uint64_t i;

	for (i = 0; i < OPS; i++) {
		FT_CALL(fi_cwrite(pair.c.cw, out + i * LEN, LEN, NULL,
				  pair.c.to, tag + i, out));
		FT_CALL(fi_cwtag(pair.s.cw, in + i * LEN, LEN, NULL, pair.s.to,
				 tag + i, in));
	}
}

static void finish(unsigned round)
{
	struct ft_comp comp;
	int i;

	for (i = 0; i < OPS; i++) {
		ft_wait(&pair.c, FT_TX, &comp);
		ft_wait(&pair.s, FT_RX, &comp);
	}
	FT_CHECK_BUF(in, OPS * LEN, round, "conditional writes");
}

static void round_of(unsigned round)
{
	int status;
	pid_t pid;

	ft_stage("round %u", round);
	ft_fill(out, OPS * LEN, round);
	post(round * OPS);
	/*
	 * fork at a random time, while the threads that make progress are busy
	 */
	usleep(ft_rand() % 2000);
	fflush(stdout);
	pid = fork();
	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (!pid)
		child(round % 4 == 3);
	finish(round);
	FT_CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
	FT_CHECK(!status, "the child ends with %#x", status);
}

/*
 * A child closes a domain without endpoints: the domain's listeners still
 * exist, and are the parent's.
 */
static void domain_closes(void)
{
	int i, status;
	pid_t pid;

	ft_stage("a child closes the domain");
	ft_ep_close(&pair.s);
	ft_ep_close(&pair.c);
	fflush(stdout);
	pid = fork();
	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		signal(SIGALRM, SIG_DFL);
		alarm(100);
		/*
		 * in one of the domains the provider listens for control
		 * endpoints
		 */
		for (i = 0; i < 2; i++)
			FT_CHECK(fi_close(&pair.dom[i].domain->fid) ==
					 -FI_EBUSY,
				 "closing the domain");
		_exit(0);
	}
	FT_CHECK(waitpid(pid, &status, 0) == pid && !status,
		 "the child ends with %#x", status);
	ft_check_sleeps(NULL);
	ft_connect(&pair, &pair.s, &pair.c);
	/*
	 * transfer, as tcp (1.17) leaks a connection that closes half accepted
	 */
	ft_fill(out, OPS * LEN, 1);
	post(0);
	finish(1);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	unsigned i, n;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has conditional writes");
	if (!ft_core("tcp"))
		ft_skip("a child may not touch what it inherited");
	/*
	 * when a child closes an endpoint, libfabric 2.x's tcp shuts the
	 * parent's connection down
	 */
	if (FI_MAJOR(fi_version()) > 1)
		ft_skip("a child that closes breaks the parent's connection");
	attr.cw = attr.cw_pep = true;
	out = ft_map(NULL, OPS * LEN);
	in = ft_map(NULL, OPS * LEN);
	ft_pair_open(&pair, &attr);
	n = ft_iters(200);
	for (i = 0; i < n; i++)
		round_of(i);
	domain_closes();
	ft_pair_close(&pair);
	ft_unmap(out, OPS * LEN);
	ft_unmap(in, OPS * LEN);
	return ft_done();
}
