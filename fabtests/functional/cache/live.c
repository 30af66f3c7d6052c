/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_live: tests the counters of an open domain as other processes see the
 * counters. The test reads the counters through its own descriptors; the
 * counters are no file, and not writable.
 *
 * With -w the counters are printed, and the process goes on until its standard
 * input ends: scripts/test_stat.sh looks at the process with fi_mrrc_stat(1).
 * With -x the process then exits without closing anything, and so does a child;
 * without -x the counters are printed once more. With -q the counters are
 * printed only after a line of the standard input: until then no thread has
 * asked for the counters. With -d userfaultfd is denied to the process. With -i
 * the process only opens domains, and waits. With -n nothing is flushed before
 * the domains are closed.
 */
#include "ft_mrrc.h"
#include "ft_priv.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define LEN  (4 * FT_PAGE)
#define LINK "/memfd:ofi_mrrc (deleted)"

static void transfer(struct ft_pair *pair, char *to, char *from, unsigned i)
{
	void *d0 = ft_desc(&pair->dom[0], to, LEN);
	void *d1 = ft_desc(&pair->dom[1], from, LEN);

	ft_stage("message %u", i);
	ft_fill(from, LEN, i);
	FT_POST(&pair->s, fi_recv(pair->s.ep, to, LEN, d0, FT_ANY, to));
	FT_POST(&pair->c, fi_send(pair->c.ep, from, LEN, d1, pair->c.to, from));
	ft_wait_ctx(&pair->c, FT_TX, from, FI_MSG | FI_SEND);
	ft_wait_ctx(&pair->s, FT_RX, to, FI_MSG | FI_RECV);
	FT_CHECK_BUF(to, LEN, i, "received");
	ft_release_pair(pair);
}

static bool is_segment(const char *path)
{
	char link[sizeof(LINK)];
	const ssize_t len = readlink(path, link, sizeof(link));

	return len == sizeof(LINK) - 1 && !memcmp(link, LINK, len);
}

/* Counts this process's segments; no segment can be written to or shrunk. */
static unsigned segments(void)
{
	unsigned count = 0;
	char path[64];
	int i, fd;

	for (i = 0; i < 1024; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", i);
		if (!is_segment(path))
			continue;
		count++;
		fd = open(path, O_RDWR);
		FT_CHECK(fd >= 0, "%s: %s", path, strerror(errno));
		FT_CHECK(write(fd, "x", 1) < 0 && ftruncate(fd, 0) < 0,
			 "%s can be written to", path);
		close(fd);
	}
	return count;
}

static void print_counters(struct ft_dom *dom, const char *who)
{
	struct fi_mrrc_stats st;

	ft_stats(dom, &st);
	printf("%s lookups %" PRIu64 " hits %" PRIu64 " misses %" PRIu64
	       " registrations %" PRIu64 " deregistrations %" PRIu64
	       " registration_failures %" PRIu64 " evictions %" PRIu64
	       " invalidations %" PRIu64 " regions %" PRIu64 " bytes %" PRIu64
	       " regions_peak %" PRIu64 " bytes_peak %" PRIu64
	       " splits %" PRIu64 " merges %" PRIu64 " max_regions %" PRIu64
	       " max_bytes %" PRIu64 "\n",
	       who, st.lookups, st.hits, st.misses, st.registrations,
	       st.deregistrations, st.registration_failures, st.evictions,
	       st.invalidations, st.regions, st.bytes, st.regions_peak,
	       st.bytes_peak, ft_counter(dom, "splits"),
	       ft_counter(dom, "merges"), st.max_regions, st.max_bytes);
}

static void print_both(struct ft_pair *pair)
{
	print_counters(&pair->dom[0], "server");
	print_counters(&pair->dom[1], "client");
}

static void say_ready(void)
{
	printf("ready\n");
	fflush(stdout);
	ft_stage("standard input");
}

static void wait_for_end(struct ft_pair *pair, bool quiet)
{
	int c = 0;

	if (quiet) {
		say_ready();
		while (c != '\n' && c != EOF)
			c = getchar();
	}
	print_both(pair);
	say_ready();
	while (getchar() != EOF)
		;
}

/* Flushes both caches, as closing the pair would do. */
static void flush(struct ft_pair *pair)
{
	FT_CALL(fi_mrrc_flush(pair->dom[0].domain));
	FT_CALL(fi_mrrc_flush(pair->dom[1].domain));
}

/* Exits as the test does, from a child that has nothing open. */
static void end_child(void)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (!pid)
		exit(0);
	FT_CHECK(waitpid(pid, &status, 0) == pid && !status,
		 "the child's status: %#x", status);
}

int main(int argc, char **argv)
{
	bool wait = false, leave = false, quiet = false, idle = false,
	     flushes = true;
	struct ft_attr attr = FT_ATTR;
	struct ft_pair pair;
	char *to, *from;
	unsigned i;
	int op;

	while ((op = getopt(argc, argv, FT_OPTS "dinqwx")) != -1) {
		if (op == 'w')
			wait = true;
		else if (op == 'd')
			ft_deny_uffd();
		else if (op == 'i')
			idle = true;
		else if (op == 'n')
			flushes = false;
		else if (op == 'q')
			quiet = true;
		else if (op == 'x')
			leave = true;
		else
			ft_parse_opt(argv[0], op, optarg);
	}
	ft_start(argv[0]);
	ft_pair_open(&pair, &attr);
	if (idle) {
		say_ready();
		while (getchar() != EOF)
			;
		ft_pair_close(&pair);
		return ft_done();
	}
	to = ft_map(NULL, LEN);
	from = ft_map(NULL, LEN);
	for (i = 0; i < ft_iters(20); i++)
		transfer(&pair, to, from, i);
	if (!ft_opts.raw)
		FT_CHECK(segments() == 2, "%u segments of two domains",
			 segments());
	if (wait && !ft_opts.raw)
		wait_for_end(&pair, quiet);
	if (leave) {
		end_child();
		return ft_done();
	}
	if (wait && !ft_opts.raw) {
		flush(&pair);
		print_both(&pair);
	}
	if (!flushes)
		ft_opts.raw = true; /* closing the pair checks nothing */
	/* the segments stay mapped until here: the counters stay as printed */
	ft_pair_close(&pair);
	ft_unmap(to, LEN);
	ft_unmap(from, LEN);
	if (!ft_opts.raw)
		FT_CHECK(!segments(), "%u segments are left", segments());
	return ft_done();
}
