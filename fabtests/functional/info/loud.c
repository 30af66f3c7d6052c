/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_loud: tests that without FI_LOG_LEVEL the provider writes one line to
 * standard error for each setting that has no effect, and for a cache that can
 * keep hardly any buffer; the provider writes nothing if all settings are
 * right.
 */
#include "ft_mrrc.h"
#include "ft_priv.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static char output[65536];
static char path[] = "/tmp/fi_mrrc_loud.XXXXXX";

/* Makes libfabric read the environment. */
static void load(void)
{
	struct fi_info *info = NULL;

	FT_CALL(fi_getinfo(FT_FIVERSION, NULL, NULL, 0, NULL, &info));
	fi_freeinfo(info);
}

static void open_pair(void)
{
	struct ft_attr attr = FT_ATTR;
	struct ft_pair pair;

	ft_pair_open(&pair, &attr);
	ft_pair_close(&pair);
}

static void lock_at_most(size_t bytes)
{
	struct rlimit limit = { bytes, bytes };

	FT_CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit), "setrlimit: %s",
		 strerror(errno));
	ft_drop_caps();
	open_pair();
}

static void locked_64k(void)
{
	lock_at_most(64 << 10);
}

static void locked_2m(void)
{
	lock_at_most(2 << 20);
}

/* The counters of a domain also tell what the domain lacks. */
static void locked_lacks(void)
{
	char text[4096] = "";
	int fd;

	setenv("FI_OFI_MRRC_STATS_FILE", path, 1);
	locked_64k();
	fd = open(path, O_RDONLY);
	FT_CHECK(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0, "%s", path);
	close(fd);
	FT_CHECK(strstr(text, "never kept: ulimit -l"), "lacks: %s", text);
}

/* The process may write no files; the signal of such a write would end it. */
static void no_files(void)
{
	const struct rlimit none = { 0, 0 };

	FT_CHECK(!setrlimit(RLIMIT_FSIZE, &none), "RLIMIT_FSIZE");
	setenv("FI_OFI_MRRC_STATS_FILE", path, 1);
	open_pair();
}

/* Two processes record a trace in one file. */
static void one_trace(void)
{
	int ready[2], end[2];
	char byte;
	pid_t pid;

	setenv("FI_OFI_MRRC_TRACE", path, 1);
	setenv("FI_OFI_MRRC_STATS_FILE", "/dev/null", 1);
	FT_CHECK(!pipe(ready) && !pipe(end), "pipe");
	pid = fork();
	FT_CHECK(pid >= 0, "fork");
	if (!pid) {
		struct ft_attr attr = FT_ATTR;
		struct ft_pair pair;

		close(end[1]);
		ft_pair_open(&pair, &attr);
		if (write(ready[1], "", 1) == 1 && read(end[0], &byte, 1) < 0)
			_exit(1);
		_exit(0);
	}
	FT_CHECK(read(ready[0], &byte, 1) == 1, "the first does not record");
	open_pair();
	close(end[1]);
	FT_CHECK(waitpid(pid, NULL, 0) == pid, "waitpid");
	/* the trace and the counters have a lock each at fork(2) */
	pid = fork();
	if (!pid)
		_exit(0);
	FT_CHECK(waitpid(pid, NULL, 0) == pid, "waitpid");
}

static void all_right(void)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	struct ft_pair pair;

	setenv("OFI_MRRC_BUILD", "here", 1);
	setenv("OFI_MRRC_DOCS", "there", 1);
	setenv("FI_OFI_RXM_USE_SRX", "1", 1);
	setenv("FI_MR_CACHE_MAX_SIZE", "4Q", 1);
	setenv("FI_OFI_MRRC_POLICY", "lru", 1);
	setenv("FI_OFI_MRRC_STATS_FILE", path, 1);
	ft_pair_open(&pair, &attr);
	ft_stats(&pair.dom[0], &st);
	FT_CHECK(st.max_bytes == 1 << 30, "%" PRIu64 " bytes", st.max_bytes);
	ft_pair_close(&pair);
}

#define OURS	"FI_OFI_MRRC_"
#define NEAREST "has no effect; the nearest is " OURS

static const struct loud {
	const char *variable, *value;
	const char *says; /* text in the only line; NULL: there is no line */
	void (*run)(void);
} cases[] = {
	{ OURS "CACHE_MAX_SIZE", "4Q", "\"4Q\" is not understood", load },
	{ OURS "CACHE_MAX_SIZE", "", "\"\" is not understood", load },
	{ OURS "POLICY", "foo", OURS "POLICY: \"foo\"", load },
	{ OURS "REGISTER", "yes", OURS "REGISTER: \"yes\"", load },
	{ OURS "MONITOR", "ufd", OURS "MONITOR: \"ufd\"", load },
	{ OURS "COST", "file:/nonexistent", "No such file", load },
	{ OURS "TRACE", "/nonexistent/t", "not recorded in /nonexis",
	  open_pair },
	{ OURS "STATS_FILE", "/nonexistent/s", "not written to /nonexis",
	  open_pair },
	{ OURS "POLICY", "lru", "not written to", no_files },
	{ OURS "TRACE_SIZE", "1M", "put %p, the process", one_trace },
	{ OURS "POLICY", "lru", "above 48 KiB are never kept", locked_lacks },
	{ OURS "MAX_SIZE", "1G", OURS "MAX_SIZE is not", load },
	{ OURS "MAX_SIZE", "1G", NEAREST "CACHE_MAX_SIZE", load },
	{ OURS "X", "1", OURS "X is not a parameter and has no effect\n",
	  load },
	{ "FI_OFI_MRCC_POLICY", "lru", NEAREST "POLICY", load },
	{ "FI_MRRC_MONITOR", "none", NEAREST "MONITOR", load },
	{ "OFI_MRRC_CACHE_MAX_SIZE", "1G", NEAREST "CACHE_MAX_SIZE", load },
	{ OURS "DEBUG", "trace_size=1M,polici=lru,probe=always",
	  "DEBUG: \"polici\" has no effect; the nearest is NAME=VALUE with "
	  "policy",
	  load },
	{ OURS "DEBUG", "probe", "\"probe\" has no effect", load },
	{ OURS "DEBUG", "xyz=1", "\"xyz\" has no effect\n", load },
	{ OURS "DEBUG", "policy=lru,POLICY=foo", OURS "POLICY: \"foo\"", load },
	{ OURS "DEBUG", "policy=lru,cache_max_size=512K", NULL, locked_64k },
	{ OURS "CACHE_MAX_SIZE", "512K", NULL, locked_64k },
	{ OURS "CACHE_MAX_COUNT", "0", NULL, open_pair },
	{ OURS "POLICY", "lru", NULL, locked_2m },
	{ OURS "CACHE_MAX_SIZE", "1GiB", NULL, all_right },
	{ OURS "CACHE_MAX_SIZE", "1GB", NULL, all_right },
};

static void run_case(const void *arg)
{
	const struct loud *loud = arg;

	unlink(path);
	setenv(loud->variable, loud->value, 1);
	loud->run();
}

static unsigned lines(const char *text)
{
	unsigned n = 0;

	while ((text = strstr(text, "ofi_mrrc: "))) {
		n++;
		text += strlen("ofi_mrrc: ");
	}
	return n;
}

int main(int argc, char **argv)
{
	const struct loud *c;
	int fd;

	unsetenv("FI_LOG_LEVEL");
	ft_init(argc, argv);
	if (ft_opts.raw || !ft_core("tcp"))
		ft_skip("it says the same over any core");
	setenv("FI_OFI_MRRC_MONITOR", "manual", 1);
	fd = mkstemp(path);
	FT_CHECK(fd >= 0, "%s: %s", path, strerror(errno));
	close(fd);
	for (c = cases; c < cases + sizeof(cases) / sizeof(*cases); c++) {
		ft_in_child(c->variable, run_case, c, output, sizeof(output));
		FT_CHECK(lines(output) == !!c->says &&
				 (!c->says || strstr(output, c->says)),
			 "%s=%s: not one line of \"%s\"\n%s", c->variable,
			 c->value, c->says ? c->says : "", output);
	}
	unlink(path);
	return ft_done();
}
