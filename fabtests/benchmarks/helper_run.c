/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Runs with and without a helper, and their registered bytes (helper_run.h). */
#include "helper_run.h"

#include <fcntl.h>
#include <sys/wait.h>

void helper_open(const char *name, enum ft_mode mode, const char *core,
		 const char *helper, struct ft_pair *pair)
{
	struct ft_attr attr = FT_ATTR;

	ft_bench_env(mode, core);
	if (helper)
		setenv("FI_OFI_MRRC_HELPER", helper, 1);
	/* the helper works also while all processors are busy */
	setenv("FI_OFI_MRRC_HELPER_NODE", "aggressive", 0);
	ft_start(name);
	ft_pair_open(pair, &attr);
}

void helper_in_child(void (*what)(void *arg), void *arg)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		what(arg);
		exit(0);
	}
	helper_ended(pid);
}

void helper_ended(pid_t pid)
{
	int status;

	FT_CHECK(waitpid(pid, &status, 0) == pid && !status, "status %#x",
		 status);
}

/*
 * Returns the bytes that the device has locked; over cores that lock no memory,
 * the bytes that ofi_mrrc counts as registered.
 */
static double registered(struct ft_dom *dom)
{
	struct fi_mrrc_stats st;
	char text[4096], *line;
	ssize_t n;
	int fd;

	if (!ft_core("verbs")) {
		ft_stats(dom, &st);
		return (double) st.bytes;
	}
	fd = open("/proc/self/status", O_RDONLY);
	FT_CHECK(fd >= 0, "/proc/self/status: %s", strerror(errno));
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	line = strstr(text, "VmPin:");
	FT_CHECK(line, "no VmPin in /proc/self/status");
	return 1024 * strtod(line + 6, NULL);
}

void helper_bytes_begin(struct helper_bytes *bytes, struct ft_dom *dom)
{
	const double now = ft_time_us();

	*bytes = (struct helper_bytes){
		.dom = dom,
		.base = registered(dom),
		.begin = now,
		.last = now,
	};
}

void helper_bytes_look(struct helper_bytes *bytes)
{
	const double now = ft_time_us();
	const double found = registered(bytes->dom) - bytes->base;

	bytes->area += bytes->now * (now - bytes->last);
	bytes->now = found;
	bytes->last = now;
	if (found > bytes->peak)
		bytes->peak = found;
}

double helper_bytes_mean(const struct helper_bytes *bytes)
{
	return bytes->area / (bytes->last - bytes->begin);
}
