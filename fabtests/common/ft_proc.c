/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Functions for tests of two processes: a child runs with an environment of its
 * own; or this program starts itself again, and both processes exchange names;
 * one process is killed, and the other checks how its operations end.
 */
#include "ft_mrrc.h"

#include <signal.h>
#include <sys/wait.h>

static void read_output(int fd, char *output, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len < size - 1 &&
	       (n = read(fd, output + len, size - 1 - len)) > 0)
		len += (size_t) n;
	output[len] = '\0';
	close(fd);
}

void ft_in_child(const char *what, void (*run)(const void *arg),
		 const void *arg, char *output, size_t size)
{
	int fds[2], status;
	pid_t pid;

	ft_stage("%s", what);
	FT_CHECK(!output || !pipe(fds), "pipe");
	fflush(stdout);
	pid = fork();
	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		if (output) {
			dup2(fds[1], STDERR_FILENO);
			dup2(fds[1], STDOUT_FILENO);
			close(fds[0]);
		}
		run(arg);
		fflush(stdout);
		_exit(0);
	}
	if (output) {
		close(fds[1]);
		read_output(fds[0], output, size);
	}
	FT_CHECK(waitpid(pid, &status, 0) == pid, "waitpid: %s",
		 strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == FT_SKIP_RC) {
		if (output)
			fputs(output, stdout);
		fflush(stdout);
		_exit(FT_SKIP_RC);
	}
	FT_CHECK(WIFEXITED(status) && !WEXITSTATUS(status),
		 "%s: status 0x%x\n%s", what, status, output ? output : "");
}

void ft_name_hex(struct fid *fid, char *hex)
{
	size_t len = FT_NAME_MAX, i;
	unsigned char name[FT_NAME_MAX];

	FT_CALL(fi_getname(fid, name, &len));
	for (i = 0; i < len; i++)
		sprintf(hex + 2 * i, "%02x", name[i]);
}

size_t ft_hex_name(const char *hex, void *name)
{
	size_t len = strlen(hex) / 2, i;
	unsigned char *to = name;
	unsigned byte;

	FT_CHECK(len && len <= FT_NAME_MAX, "no name: %s", hex);
	for (i = 0; i < len; i++) {
		FT_CHECK(sscanf(hex + 2 * i, "%2x", &byte) == 1, "no name: %s",
			 hex);
		to[i] = byte;
	}
	return len;
}

pid_t ft_again(char **argv, int out)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	FT_CHECK(pid >= 0, "fork");
	if (!pid) {
		dup2(out, STDOUT_FILENO);
		execv("/proc/self/exe", argv);
		_exit(1);
	}
	return pid;
}

void ft_cw_victim(struct ft_ep *ep, fi_addr_t to, void *out, size_t out_len,
		  void *in, size_t in_len)
{
	struct ft_comp comp;
	uint64_t tag = 0;

	for (;;) {
		if (ft_rand() % 2)
			fi_cwrite(ep->cw, out, 1 + ft_rand() % out_len, NULL,
				  to, 1 + tag++, NULL);
		else
			fi_cwtag(ep->cw, in, in_len, NULL, to,
				 1 + ft_rand() % 1000, NULL);
		ft_poll(ep);
		while (ft_take(ep, FT_TX, &comp) || ft_take(ep, FT_RX, &comp))
			;
	}
}

static void wait_killed(pid_t pid)
{
	int status;

	FT_CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
			 WTERMSIG(status) == SIGKILL,
		 "the victim: %#x", status);
}

void ft_cw_survivor(struct ft_ep *ep, fi_addr_t to, void *out, size_t out_len,
		    void *in, size_t in_len, pid_t pid,
		    void (*progress)(struct ft_ep *ep))
{
	const uint64_t kill_at = ft_now_us() + ft_rand() % 60000;
	const uint64_t end = ft_deadline();
	uint64_t posted = 0, ended = 0, tag = 0;
	bool killed = false, over = false;
	struct ft_comp comp;
	ssize_t ret = 0;

	while (!over || ended < posted) {
		if (!killed && ft_now_us() > kill_at) {
			kill(pid, SIGKILL);
			killed = true;
		}
		/*
		 * datagrams can still be posted to a dead peer, without limit
		 */
		if (!killed || !ft_rdm()) {
			ret = fi_cwtag(ep->cw, in, in_len, NULL, to, 1 + tag++,
				       NULL);
			posted += !ret;
			ret = fi_cwrite(ep->cw, out, 1 + ft_rand() % out_len,
					NULL, to, 1 + ft_rand() % 1000, NULL);
			posted += !ret;
		}
		over = ft_rdm() ? killed : ret == -FI_ENOTCONN;
		progress(ep);
		while (ft_take(ep, FT_TX, &comp) || ft_take(ep, FT_RX, &comp)) {
			FT_CHECK(!comp.err || comp.err == FI_ECONNABORTED ||
					 comp.err == FI_ETRUNC,
				 "error %d", comp.err);
			ended++;
		}
		FT_CHECK(ft_limit_us() < end,
			 "%" PRIu64 " of %" PRIu64 " ended", ended, posted);
	}
	FT_CHECK(killed, "ended before");
	wait_killed(pid);
}
