/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_fork: tests children that begin and end while connections are up. The
 * children make no calls on the parent's fabric; they write to and unmap their
 * memory, end in every way, or live on, or open a fabric of their own; the
 * parent's transfers stay right, and the provider still sees the parent's
 * unmaps.
 */
#include "ft_mrrc.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#define LEN (40 * FT_PAGE) /* more than ofi_rxm copies over verbs */

enum ending {
	END_EXIT,
	END_SCRIBBLE,
	END_UNMAP,
	END_CHURN,
	END_KILLED,
	END_EXEC,
	ENDS
};

static struct ft_pair pair;
static char *out, *in;
static uint64_t seed;

static void transfer(void)
{
	ft_verify_pair(&pair.c, out, in, LEN, ++seed);
	ft_verify_pair(&pair.s, in, out, LEN, ++seed);
	ft_release_pair(&pair);
}

static void child(enum ending ending)
{
	int i;

	memset(out, 0xc1, LEN);
	memset(in, 0xc2, LEN);
	switch (ending) {
	case END_UNMAP:
		munmap(out, LEN);
		munmap(in, LEN);
		break;
	case END_CHURN:
		/* the child continues alone, with libc's unmaps still hooked */
		for (i = 0; i < 20; i++)
			free(malloc(300 * 1024));
		madvise(out, LEN, MADV_DONTNEED);
		break;
	case END_KILLED:
		raise(SIGKILL);
		break;
	case END_EXEC:
		execlp("true", "true", (char *) NULL);
		_exit(3);
	default:
		break;
	}
	_exit(0);
}

static pid_t start(enum ending ending)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (!pid)
		child(ending);
	return pid;
}

static void reap(pid_t pid, enum ending ending)
{
	int status;

	FT_CHECK(waitpid(pid, &status, 0) == pid, "waitpid: %s",
		 strerror(errno));
	if (ending == END_KILLED)
		FT_CHECK(WIFSIGNALED(status), "status 0x%x", status);
	else
		FT_CHECK(WIFEXITED(status) && !WEXITSTATUS(status),
			 "child %d ended with 0x%x", ending, status);
}

/* A receive is posted before the fork, and a send after it. */
static void in_flight(enum ending ending)
{
	void *sd = ft_desc(&pair.dom[1], out, LEN);
	void *rd = ft_desc(&pair.dom[0], in, LEN);
	pid_t pid;

	ft_fill(out, LEN, ++seed);
	memset(in, 0, LEN);
	FT_POST(&pair.c, fi_recv(pair.s.ep, in, LEN, rd, FT_ANY, in));
	pid = start(ending);
	FT_POST(&pair.c, fi_send(pair.c.ep, out, LEN, sd, pair.c.to, out));
	ft_wait_ctx(&pair.s, FT_RX, in, FI_RECV);
	ft_wait_ctx(&pair.c, FT_TX, out, FI_SEND);
	FT_CHECK_BUF(in, LEN, seed, "received across a fork");
	ft_release_pair(&pair);
	reap(pid, ending);
	transfer();
}

/* The child sleeps until the pipe closes; the parent unmaps meanwhile. */
static void beside_a_child(unsigned rounds)
{
	struct fi_mrrc_stats before, after;
	int pipefd[2];
	unsigned i;
	pid_t pid;
	char byte;
	char *p;

	ft_stage("beside a living child");
	FT_CHECK(!pipe(pipefd), "pipe");
	fflush(stdout);
	pid = fork();
	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		close(pipefd[1]);
		memset(out, 0xcc, LEN);
		_exit(read(pipefd[0], &byte, 1) != 0);
	}
	close(pipefd[0]);
	ft_stats(&pair.dom[1], &before);
	for (i = 0; i < rounds; i++) {
		p = ft_map(NULL, LEN);
		ft_verify_pair(&pair.c, p, in, LEN, ++seed);
		/* mapped in place: another thread could map into a hole */
		ft_map(p, LEN);
		ft_verify_pair(&pair.c, p, in, LEN, ++seed);
		ft_unmap(p, LEN);
		transfer();
	}
	if (ft_caches(&pair.dom[1])) {
		ft_stats(&pair.dom[1], &after);
		FT_CHECK(after.invalidations - before.invalidations >=
				 2 * rounds,
			 "%" PRIu64 " invalidations of %u",
			 after.invalidations - before.invalidations,
			 2 * rounds);
	}
	close(pipefd[1]);
	reap(pid, END_EXIT);
	transfer();
}

/* The child of a vfork() runs in the parent's memory, and unmaps some of it. */
static void by_vfork(void)
{
	char *volatile p = ft_map_apart(LEN);
	volatile pid_t pid;
	int status;

	ft_stage("vfork");
	ft_verify_pair(&pair.c, p, in, LEN, ++seed);
	ft_release_pair(&pair);
	pid = vfork();
	FT_CHECK(pid >= 0, "vfork: %s", strerror(errno));
	if (!pid) {
		munmap(p, LEN);
		execlp("true", "true", (char *) NULL);
		_exit(3);
	}
	FT_CHECK(waitpid(pid, &status, 0) == pid && !status,
		 "vfork: status 0x%x", status);
	FT_CHECK(ft_map_hole(p, LEN), "the child did not unmap it");
	ft_verify_pair(&pair.c, p, in, LEN, ++seed);
	ft_release_pair(&pair);
	ft_unmap(p, LEN);
}

static void by_spawn(void)
{
	char *argv[] = { (char *) "true", NULL };
	int ret, status;
	pid_t pid;

	ft_stage("posix_spawn");
	ret = posix_spawnp(&pid, "true", NULL, NULL, argv, environ);
	FT_CHECK(!ret, "posix_spawn: %s", strerror(ret));
	FT_CHECK(waitpid(pid, &status, 0) == pid && !status,
		 "posix_spawn: status 0x%x", status);
	transfer();
}

static void by_library(void)
{
	char line[32] = "";
	FILE *file;
	int status;

	ft_stage("system() and popen()");
	status = system("true");
	FT_CHECK(!status, "system: 0x%x", status);
	transfer();
	file = popen("echo hello", "r");
	FT_CHECK(file && fgets(line, sizeof(line), file), "popen");
	transfer();
	FT_CHECK(!pclose(file) && !strcmp(line, "hello\n"), "popen: %s", line);
	transfer();
}

/* exit() in a child runs libfabric's own cleanup in the child. */
static void plain_exit(void)
{
	pid_t pid;

	ft_stage("exit() in a child");
	fflush(stdout);
	pid = fork();
	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (!pid)
		exit(0);
	reap(pid, END_EXIT);
	transfer();
}

/*
 * A child shares pages that the parent has registered. When the parent writes
 * to shared pages, the parent must keep the pages that the device knows.
 */
static void neighbours(void)
{
	char *page = ft_map(NULL, FT_PAGE);
	pid_t pid;
	unsigned i;

	ft_stage("neighbours on one page");
	for (i = 0; i < 20; i++) {
		ft_verify_pair(&pair.c, page + 100, in, 1000, ++seed);
		ft_fill(page + 2000, 1000, i);
		pid = start(END_SCRIBBLE);
		ft_verify_pair(&pair.c, page + 100, in, 1000, ++seed);
		ft_verify_pair(&pair.s, in, page + 100, 1000, ++seed);
		FT_CHECK_BUF(page + 2000, 1000, i, "neighbour");
		reap(pid, END_SCRIBBLE);
		ft_release_pair(&pair);
	}
	ft_unmap(page, FT_PAGE);
}

/* The child opens its own fabric, next to the fabric that it inherited. */
static void own_fabric(void)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	struct ft_pair own;
	unsigned i;

	/* a child does not inherit the alarm */
	alarm((unsigned) ft_opts.timeout);
	ft_pair_open(&own, &attr);
	for (i = 0; i < 3; i++) {
		ft_verify_pair(&own.c, out, in, LEN, ++seed);
		ft_verify_pair(&own.s, in, out, LEN, ++seed);
		ft_release_pair(&own);
	}
	ft_map(out, LEN);
	ft_verify_pair(&own.c, out, in, LEN, ++seed);
	if (ft_caches(&own.dom[1])) {
		ft_stats(&own.dom[1], &st);
		FT_CHECK(st.hits && st.invalidations,
			 "%" PRIu64 " hits, %" PRIu64
			 " invalidations in a child",
			 st.hits, st.invalidations);
	}
	ft_release_pair(&own);
	ft_pair_close(&own);
	_exit(0);
}

static void by_own_fabric(void)
{
	pid_t pid;

	ft_stage("a fabric of the child's own");
	fflush(stdout);
	pid = fork();
	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (!pid)
		own_fabric();
	transfer();
	reap(pid, END_EXIT);
	transfer();
}

/*
 * A child cannot allocate from a domain of the parent's, whether or not the
 * parent has allocated before.
 */
static void no_memory(void)
{
	struct fid_domain *domain = pair.dom[0].domain;
	struct fid_mr_heap *heap;
	int ret, round;
	void *buf;
	pid_t pid;

	ft_stage("fi_mr_alloc() in a child");
	for (round = 0; round < 2; round++) {
		fflush(stdout);
		pid = fork();
		FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
		if (!pid) {
			ret = fi_mr_alloc(domain, 100, 0, 0, &buf, NULL);
			FT_CHECK(ret == -FI_EOPNOTSUPP, "allocated: %d", ret);
			ret = fi_mr_heap_open(domain, NULL, &heap, NULL);
			FT_CHECK(ret == -FI_EOPNOTSUPP, "a heap: %d", ret);
			FT_CALL(fi_mr_free(domain, out));
			FT_CALL(fi_mr_trim(domain));
			_exit(0);
		}
		reap(pid, END_EXIT);
		FT_CALL(fi_mr_alloc(domain, 100, 0, 0, &buf, NULL));
		FT_CALL(fi_mr_free(domain, buf));
	}
	FT_CALL(fi_mr_trim(domain));
	transfer();
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	unsigned i, rounds;

	ft_init(argc, argv);
	rounds = ft_iters(ft_core("verbs") ? 5 : ft_rxm() ? 10 : 50);
	ft_pair_open(&pair, &attr);
	out = ft_map(NULL, LEN);
	in = ft_map(NULL, LEN);
	transfer();
	for (i = 0; i < rounds * ENDS; i++) {
		ft_stage("fork %u", i);
		in_flight(i % ENDS);
	}
	beside_a_child(rounds);
	for (i = 0; i < rounds; i++) {
		by_vfork();
		by_spawn();
	}
	by_library();
	plain_exit();
	if (fi_mrrc_feature(&pair.dom[0].domain->fid, "alloc") == 1)
		no_memory();
	/* over verbs a fabric of a child's own would test forks of librdmacm */
	for (i = 0; i < rounds && !ft_core("verbs"); i++)
		by_own_fabric();
	neighbours();
	ft_unmap(out, LEN);
	ft_unmap(in, LEN);
	ft_pair_close(&pair);
	return ft_done();
}
