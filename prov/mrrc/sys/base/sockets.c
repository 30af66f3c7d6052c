/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The TCP sockets of this process (sockets.h).
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sys/base/sockets.h"

#define SOCKETS_FDS 65536 /* descriptors tried if /proc lists none */
/* TCP states: <netinet/tcp.h> names them, but has a shorter struct tcp_info */
#define SOCKETS_STATE_ESTABLISHED 1
#define SOCKETS_STATE_CLOSE_WAIT  8
#define SOCKETS_STATE_LISTEN	  10

/*
 * Does not use atoi(): from glibc 2.38 on atoi() has a new symbol version that
 * older glibc versions lack.
 */
static int sockets_number(const char *text)
{
	int value = 0;

	while (*text)
		value = value * 10 + (*text++ - '0');
	return value;
}

/*
 * Calls fn for each descriptor, even if no descriptor is free for listing them.
 */
static void sockets_each(void (*fn)(int fd, void *arg), void *arg)
{
	DIR *dir = opendir("/proc/self/fd");
	struct rlimit limit;
	struct dirent *entry;
	rlim_t fd;

	if (!dir && !getrlimit(RLIMIT_NOFILE, &limit)) {
		for (fd = 0; fd < limit.rlim_cur && fd < SOCKETS_FDS; fd++)
			fn(fd, arg);
	}
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			fn(sockets_number(entry->d_name), arg);
	}
	if (dir)
		closedir(dir);
}

/*
 * Is addr, the local address of a connection, also an address of the listener?
 */
static bool sockets_here(const struct sockaddr *at, const void *addr)
{
	const struct sockaddr_in *in = addr, *at_in = (const void *) at;
	const struct sockaddr_in6 *in6 = addr, *at_in6 = (const void *) at;

	if (in->sin_family != at->sa_family)
		return false;
	if (at->sa_family == AF_INET)
		return in->sin_port == at_in->sin_port &&
		       (at_in->sin_addr.s_addr == INADDR_ANY ||
			in->sin_addr.s_addr == at_in->sin_addr.s_addr);
	return in6->sin6_port == at_in6->sin6_port &&
	       (IN6_IS_ADDR_UNSPECIFIED(&at_in6->sin6_addr) ||
		IN6_ARE_ADDR_EQUAL(&in6->sin6_addr, &at_in6->sin6_addr));
}

/* Is fd a TCP socket with this local address, and in which state? */
static bool sockets_info(int fd, const struct sockaddr *at,
			 struct tcp_info *info)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);

	if (getsockname(fd, (struct sockaddr *) &addr, &len) ||
	    !sockets_here(at, &addr))
		return false;
	len = sizeof(*info);
	return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len) &&
	       len >= offsetof(struct tcp_info, tcpi_bytes_received) +
			       sizeof(info->tcpi_bytes_received);
}

/* ---- the listener -------------------------------------------------------- */

static void sockets_set_cloexec(int fd, void *arg)
{
	struct tcp_info info;

	if (sockets_info(fd, arg, &info) &&
	    info.tcpi_state == SOCKETS_STATE_LISTEN)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void mrrc_sockets_cloexec(const struct sockaddr *at)
{
	sockets_each(sockets_set_cloexec, (void *) at);
}

/*
 * Sets a timeout for reads on a listener. Accepted sockets inherit the timeout,
 * which has no effect on non-blocking sockets.
 */
static void sockets_set_impatient(int fd, void *arg)
{
	const struct timeval least = { .tv_usec = 1 };
	struct tcp_info info;

	if (sockets_info(fd, arg, &info) &&
	    info.tcpi_state == SOCKETS_STATE_LISTEN)
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &least, sizeof(least));
}

void mrrc_sockets_impatient(const struct sockaddr *at)
{
	sockets_each(sockets_set_impatient, (void *) at);
}

/* ---- silent connections -------------------------------------------------- */

struct sockets_silent {
	const struct sockaddr *at;
	unsigned max_ms, left;
	int spare;
};

/* Another thread may close fd, and open it as another file, at any time. */
static void sockets_end(int fd, void *arg)
{
	struct sockets_silent *silent = arg;
	struct tcp_info info;

	if (fd == silent->spare || !sockets_info(fd, silent->at, &info) ||
	    dup3(fd, silent->spare, O_CLOEXEC) < 0)
		return;
	if (!sockets_info(silent->spare, silent->at, &info) ||
	    info.tcpi_state != SOCKETS_STATE_ESTABLISHED ||
	    info.tcpi_bytes_received)
		return;
	/* without data: the time since the connection was accepted */
	if (info.tcpi_last_data_recv >= silent->max_ms)
		shutdown(silent->spare, SHUT_RDWR);
	else
		silent->left++;
}

unsigned mrrc_sockets_end_silent(const struct sockaddr *at, unsigned max_ms,
				 unsigned max_cnt, int spare)
{
	struct sockets_silent silent = { at, max_ms, 0, spare };
	for (;;) {
		silent.left = 0;
		sockets_each(sockets_end, &silent);
		if (silent.left <= max_cnt || !silent.max_ms)
			return silent.left;
		silent.max_ms /= 2;
	}
}

/* ---- connections with unread bytes --------------------------------------- */

struct sockets_unread {
	const struct sockaddr *at;
	unsigned cnt;
};

static void sockets_count(int fd, void *arg)
{
	struct sockets_unread *unread = arg;
	struct tcp_info info;
	int queued = 0;

	if (!sockets_info(fd, unread->at, &info) ||
	    info.tcpi_state == SOCKETS_STATE_LISTEN ||
	    ioctl(fd, SIOCINQ, &queued))
		return;
	/* the peer's end counts as a byte received */
	if (info.tcpi_state == SOCKETS_STATE_CLOSE_WAIT)
		queued++;
	if (info.tcpi_bytes_received == (uint64_t) queued)
		unread->cnt++;
}

unsigned mrrc_sockets_unread(const struct sockaddr *at)
{
	struct sockets_unread unread = { at, 0 };

	sockets_each(sockets_count, &unread);
	return unread.cnt;
}
