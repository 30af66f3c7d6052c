/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_cw_listen: tests the listener for control endpoints. Over tcp the
 * listener has the application's address, is closed on exec, and closes when no
 * control endpoint is expected. Any number of idle connections without a byte
 * are closed. Neither idle connections nor a full table of descriptors make
 * fi_cq_sread() spin.
 */
#include "ft_mrrc.h"

#include <fcntl.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define LEN    64
#define FDS    1024 /* maximum number of descriptors of this process */
#define SILENT 600  /* number of silent connections at once */
#define KEPT   64   /* number of silent connections kept in the end */

static struct ft_pair pair;
static char buf[2 * LEN];
static atomic_uint *connected; /* number of a child's connections */

static void transfer(uint64_t tag)
{
	struct ft_comp comp;

	ft_fill(buf, LEN, tag);
	FT_CALL(fi_cwrite(pair.c.cw, buf, LEN, NULL, pair.c.to, tag, buf));
	FT_CALL(fi_cwtag(pair.s.cw, buf + LEN, LEN, NULL, pair.s.to, tag, buf));
	ft_wait(&pair.c, FT_TX, &comp);
	ft_wait(&pair.s, FT_RX, &comp);
	FT_CHECK_BUF(buf + LEN, LEN, tag, "conditional write");
}

static bool local(int fd, struct sockaddr_in *at, int *listens)
{
	socklen_t len = sizeof(*at), size = sizeof(*listens);

	return !getsockname(fd, (struct sockaddr *) at, &len) &&
	       at->sin_family == AF_INET &&
	       !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, listens, &size);
}

/* Counts this process's listening sockets that are closed on exec */
static unsigned listeners(uint16_t *port)
{
	struct sockaddr_in at;
	unsigned cnt = 0;
	int fd, listens;

	for (fd = 0; fd < FDS; fd++) {
		if (!local(fd, &at, &listens) || !listens ||
		    !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
			continue;
		FT_CHECK(at.sin_addr.s_addr == inet_addr(ft_opts.addr),
			 "listens at %#x", ntohl(at.sin_addr.s_addr));
		*port = at.sin_port;
		cnt++;
	}
	return cnt;
}

/* Counts the connections accepted at this port */
static unsigned accepted(uint16_t port)
{
	struct sockaddr_in at;
	unsigned cnt = 0;
	int fd, listens;

	for (fd = 0; fd < FDS; fd++)
		cnt += local(fd, &at, &listens) && !listens &&
		       at.sin_port == port;
	return cnt;
}

/* Opens connections in a child, which sends nothing until it is ended. */
static pid_t connect_silently(uint16_t port, unsigned cnt)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = port };
	pid_t pid;
	char byte;
	int fd;

	atomic_store(connected, 0);
	pid = fork();
	FT_CHECK(pid >= 0, "fork: %s", strerror(errno));
	if (pid)
		return pid;
	/* close inherited descriptors: the parent's copies stay */
	for (fd = 3; fd < FDS; fd++)
		close(fd);
	at.sin_addr.s_addr = inet_addr(ft_opts.addr);
	while (cnt--) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (fd < 0 || connect(fd, (struct sockaddr *) &at, sizeof(at)))
			_exit(1);
		atomic_fetch_add(connected, 1);
	}
	/* wait until the last connection, or this child, ends */
	_exit(read(fd, &byte, 1) > 0);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void server_sleeps(int ms)
{
	struct fi_cq_data_entry entry;
	ssize_t ret;

	ret = fi_cq_sread(pair.s.cq[FT_RX], &entry, 1, NULL, ms);
	FT_CHECK(ret == -FI_EAGAIN, "fi_cq_sread: %zd", ret);
}

static void silent(uint16_t port)
{
	uint64_t limit = ft_deadline();
	pid_t pid;

	ft_stage("silent connections");
	pid = connect_silently(port, SILENT);
	do {
		server_sleeps(100);
		FT_CHECK(ft_limit_us() < limit, "%u are kept", accepted(port));
	} while (!accepted(port));
	do {
		server_sleeps(100);
		FT_CHECK(ft_limit_us() < limit, "%u are kept", accepted(port));
	} while (accepted(port) > KEPT + 8);
	transfer(2);
	ft_check_sleeps(server_sleeps);
	end(pid);
}

static void no_descriptors(uint16_t port)
{
	const uint64_t limit = ft_deadline();
	static int dups[FDS];
	unsigned i, cnt = 0;
	pid_t pid;

	ft_stage("no descriptors");
	while (cnt < FDS && (dups[cnt] = dup(2)) >= 0)
		cnt++;
	FT_CHECK(cnt < FDS, "no limit");
	pid = connect_silently(port, 8);
	while (!atomic_load(connected)) {
		usleep(1000);
		FT_CHECK(ft_limit_us() < limit, "nothing connects");
	}
	ft_check_sleeps(server_sleeps);
	for (i = 0; i < cnt; i++)
		close(dups[i]);
	transfer(3);
	end(pid);
}

/* The listener closes once no control endpoint is expected. */
static void check_closes(void)
{
	uint64_t limit = ft_deadline();
	uint16_t port;

	while (listeners(&port)) {
		ft_poll(&pair.s);
		ft_poll(&pair.c);
		usleep(1000);
		FT_CHECK(ft_limit_us() < limit, "it stays open");
	}
}

int main(int argc, char **argv)
{
	struct rlimit fds = { FDS, FDS };
	struct ft_attr attr = FT_ATTR;
	struct sockaddr_in name;
	size_t len = sizeof(name);
	uint16_t port = 0;
	unsigned cnt;

	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("only ofi_mrrc has conditional writes");
	if (ft_core("verbs"))
		ft_skip("of TCP sockets");
	FT_CHECK(!setrlimit(RLIMIT_NOFILE, &fds), "setrlimit");
	connected = mmap(NULL, sizeof(*connected), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	FT_CHECK(connected != MAP_FAILED, "mmap: %s", strerror(errno));
	attr.cw = attr.cw_pep = true;
	attr.wait_obj = FI_WAIT_FD;
	ft_pair_open(&pair, &attr);
	transfer(1);
	cnt = listeners(&port);
	FT_CHECK(cnt == (ft_rdm() ? 2 : 1), "%u listeners", cnt);
	if (ft_rdm()) {
		FT_CALL(fi_getname(&pair.s.ep->fid, &name, &len));
		memcpy(&port, name.sin_zero + 2, sizeof(port));
		silent(port);
		no_descriptors(port);
		ft_check_sleeps(server_sleeps);
	} else if (FI_MAJOR(fi_version()) < 2) {
		check_closes();
	}
	transfer(4);
	ft_pair_close(&pair);
	check_closes();
	return ft_done();
}
