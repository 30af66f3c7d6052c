/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_node: tests FI_OFI_MRRC_NODE_MAX_SIZE. A process fills the budget of
 * the node, and gives some of the budget to another process that uses memory.
 * The first process is killed, and its part of the budget becomes free. Memory
 * of fi_mr_alloc() counts towards the budget. Where the segment belongs to
 * another user, or is a link, a process does not share the budget and prints a
 * warning. The budget is shared if only this user can write to the run
 * directory.
 *
 * The test runs in a mount name space with its own /dev/shm, since tests run
 * side by side.
 */
#include "ft_mrrc.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define BUDGET	"4M"
#define BYTES	(4UL << 20)
#define LEN	(64 * FT_PAGE)
#define BUFFERS 24 /* buffers of both sides take three times the budget */
#define NOBODY	65534
#define READY	3 /* file descriptor of a child */

static char segment[64];

static void own_shm(void)
{
	if (unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/dev/shm", "tmpfs", 0, "mode=1777"))
		ft_skip("no name space for mounts: %s", strerror(errno));
	/* a run directory of this user is not used, until a test makes one */
	unsetenv("XDG_RUNTIME_DIR");
	if (!access("/run/user", F_OK))
		FT_CHECK(!mount("none", "/run/user", "tmpfs", 0, NULL),
			 "/run/user: %s", strerror(errno));
	snprintf(segment, sizeof(segment), "/dev/shm/ofi_mrrc-%u.1",
		 (unsigned) geteuid());
}

static pid_t start(const char *what)
{
	char path[4096] = "", c;
	int fds[2];
	pid_t pid;

	FT_CHECK(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0,
		 "/proc/self/exe: %s", strerror(errno));
	FT_CHECK(!pipe(fds), "pipe");
	fflush(stdout);
	pid = fork();
	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		dup2(fds[1], READY);
		execl(path, path, "-p", ft_opts.prov, "-s", ft_opts.addr, "-e",
		      ft_rdm() ? "rdm" : "msg", what, (char *) NULL);
		_exit(5);
	}
	close(fds[1]);
	FT_CHECK(read(fds[0], &c, 1) == 1, "%s: did not come up", what);
	close(fds[0]);
	return pid;
}

static void use(struct ft_pair *pair, char *p, unsigned buffers, unsigned seed)
{
	unsigned i;

	for (i = 0; i < buffers; i++)
		ft_verify_pair(&pair->c, p + 2 * i * LEN, p + (2 * i + 1) * LEN,
			       LEN, seed + i);
}

static uint64_t counter(struct ft_pair *pair, const char *name)
{
	return ft_counter(&pair->dom[0], name);
}

static uint64_t node(struct ft_pair *pair)
{
	const uint64_t budget = counter(pair, "node_budget_bytes"),
		       reserved = counter(pair, "node_reserved_bytes"),
		       own = counter(pair, "node_own_bytes");

	FT_CHECK(budget == BYTES, "budget %" PRIu64, budget);
	FT_CHECK(reserved <= BYTES && own <= BYTES,
		 "%" PRIu64 " of %lu reserved, %" PRIu64 " by this process",
		 reserved, BYTES, own);
	return own;
}

/* Uses buffers until this process has @bytes of the budget. */
static void until_own(struct ft_pair *pair, char *p, uint64_t bytes)
{
	const uint64_t end = ft_deadline();
	unsigned turn = 0;
	uint64_t own;

	do {
		ft_stage("until %" PRIu64 " bytes, turn %u", bytes, turn);
		use(pair, p, BUFFERS, turn++);
		own = node(pair);
		FT_CHECK(ft_limit_us() < end, "%" PRIu64 " bytes, not %" PRIu64,
			 own, bytes);
	} while (own < bytes);
}

/* ---- children ---- */

static void fill(char *p)
{
	struct ft_attr attr = FT_ATTR;
	struct ft_pair pair;

	ft_pair_open(&pair, &attr);
	until_own(&pair, p, BYTES / 8 * 7);
	FT_CHECK(write(READY, "r", 1) == 1, "write");
	for (;;)
		pause();
}

static void alone(char *p)
{
	struct ft_attr attr = FT_ATTR;
	struct ft_pair pair;
	uint64_t budget;

	ft_pair_open(&pair, &attr);
	use(&pair, p, BUFFERS, 7);
	budget = counter(&pair, "node_budget_bytes");
	FT_CHECK(budget <= BYTES && budget >= FT_PAGE, "budget %" PRIu64,
		 budget);
	FT_CHECK(counter(&pair, "node_own_bytes") ==
			 counter(&pair, "node_reserved_bytes"),
		 "shared all the same");
	ft_pair_close(&pair);
	FT_CHECK(write(READY, "r", 1) == 1, "write");
}

/* ---- the test ---- */

static void ends(pid_t pid, bool killed)
{
	int status;

	if (killed)
		kill(pid, SIGKILL);
	FT_CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
	FT_CHECK(killed || !status, "a child ended with %#x", status);
}

/*
 * Memory that one domain's allocator keeps free is available to another domain.
 */
static void kept(struct ft_pair *pair, struct fid_domain *domain)
{
	struct fid_domain *other =
		pair->dom[domain == pair->dom[0].domain].domain;
	const uint64_t end = ft_deadline();
	uint64_t own;
	void *buf;
	int ret;

	ft_stage("what is kept free");
	do
		ret = fi_mr_alloc(domain, BYTES / 4 * 3, 0, 0, &buf, NULL);
	while (ret == -FI_ENOMEM && ft_limit_us() < end);
	FT_CHECK(!ret, "three quarters of the budget: %d", ret);
	FT_CALL(fi_mr_free(domain, buf));
	own = node(pair);
	FT_CHECK(own >= BYTES / 4 * 3, "%" PRIu64 " bytes are kept", own);
	FT_CALL(fi_mr_alloc(other, BYTES / 4 * 3, 0, 0, &buf, NULL));
	node(pair);
	FT_CALL(fi_mr_free(other, buf));
}

/*
 * Allocates in the domain whose cache has less of the budget: the other
 * domain's cache gives a part of the budget back.
 */
static void allocate(struct ft_pair *pair)
{
	const uint64_t end = ft_deadline();
	struct fi_mrrc_stats st, other;
	struct fid_domain *domain;
	uint64_t own;
	void *buf;
	int ret;

	ft_stats(&pair->dom[0], &st);
	ft_stats(&pair->dom[1], &other);
	domain = pair->dom[st.bytes > other.bytes].domain;

	ft_stage("allocations");
	ret = fi_mr_alloc(domain, 2 * BYTES, 0, 0, &buf, NULL);
	FT_CHECK(ret == -FI_ENOMEM, "twice the budget: %d", ret);
	/*
	 * a helper thread may be late to deregister the regions that were
	 * evicted for this allocation
	 */
	do
		ret = fi_mr_alloc(domain, BYTES / 2, 0, 0, &buf, NULL);
	while (ret == -FI_ENOMEM && ft_limit_us() < end);
	FT_CHECK(!ret, "half of the budget: %d", ret);
	own = node(pair);
	FT_CHECK(own >= BYTES / 2, "%" PRIu64 " bytes of a block", own);
	FT_CALL(fi_mr_free(domain, buf));
	kept(pair, domain);
}

static void shared(char *p)
{
	struct ft_attr attr = FT_ATTR;
	struct ft_pair pair;
	pid_t pid, child;

	pid = start("fill");
	ft_pair_open(&pair, &attr);
	if (!ft_caches(&pair.dom[0]))
		ft_skip("nothing is cached here");
	ft_stage("the other one gives");
	until_own(&pair, p, BYTES / 4);
	ft_stage("the other one is stopped");
	kill(pid, SIGSTOP);
	use(&pair, p, BUFFERS, 3);
	/* the child lives on, and has no part of the budget */
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	ft_stage("the other one is killed");
	ends(pid, true);
	until_own(&pair, p, BYTES / 8 * 7);
	ends(child, true);
	allocate(&pair);
	use(&pair, p, BUFFERS, 4);
	ft_check_idle(&pair.dom[0], "all done");
	ft_pair_close(&pair);
}

/* Runs "alone" in a process; does it print that it shares no budget? */
static bool is_alone(void)
{
	int out = dup(STDERR_FILENO), fd;
	char text[4096] = "";

	fd = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);
	FT_CHECK(out >= 0 && fd >= 0, "files: %s", strerror(errno));
	fflush(stderr);
	dup2(fd, STDERR_FILENO);
	ends(start("alone"), false);
	dup2(out, STDERR_FILENO);
	close(out);
	FT_CHECK(pread(fd, text, sizeof(text) - 1, 0) >= 0, "pread");
	close(fd);
	return strstr(text, "no budget is shared with other processes") &&
	       strstr(text, segment) && strstr(text, "XDG_RUNTIME_DIR");
}

static void refused(void)
{
	/* use the default level of messages */
	unsetenv("FI_LOG_LEVEL");
	FT_CHECK(!is_alone(), "alone without a reason");
	ft_stage("a link");
	unlink(segment);
	FT_CHECK(!symlink("/dev/shm/other", segment), "symlink");
	FT_CHECK(is_alone(), "nothing is said");
	FT_CHECK(access("/dev/shm/other", F_OK), "the link was followed");
	unlink(segment);
	if (geteuid())
		return;
	ft_stage("a foreign file");
	close(open(segment, O_CREAT | O_WRONLY, 0600));
	FT_CHECK(!chown(segment, NOBODY, -1), "chown");
	FT_CHECK(is_alone(), "nothing is said");
	ft_stage("a directory of this user alone");
	FT_CHECK(!mkdir("/dev/shm/run", 0700), "mkdir");
	setenv("XDG_RUNTIME_DIR", "/dev/shm/run", 1);
	FT_CHECK(!is_alone(), "the directory is not used");
}

int main(int argc, char **argv)
{
	const char *what;
	char *p;

	setenv("FI_OFI_MRRC_NODE_MAX_SIZE", BUDGET, 1);
	setenv("FI_OFI_MRRC_HELPER", "always", 1);
	setenv("FI_OFI_MRRC_BOUNCE_SIZE", "0", 1);
	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("ofi_mrrc shares the budget");
	what = optind < argc ? argv[optind] : "";
	p = ft_map(NULL, 2 * BUFFERS * LEN);
	if (!strcmp(what, "fill")) {
		fill(p);
	} else if (!strcmp(what, "alone")) {
		alone(p);
		_exit(0);
	} else {
		own_shm();
		shared(p);
		refused();
	}
	return ft_done();
}
