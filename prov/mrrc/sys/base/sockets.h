/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Examines the TCP sockets that this process has accepted at one of its
 * addresses. libfabric's tcp provider keeps a connection that sends nothing
 * open until the listener closes, and gives no access to its sockets, so the
 * calls look for the sockets among the process's descriptors.
 *
 * @at: the listener's address, IPv4 or IPv6, with its port; the unspecified
 * address means any. Any thread.
 */
#ifndef MRRC_SOCKETS_H
#define MRRC_SOCKETS_H

#include <sys/socket.h>

/* Makes execve(2) close the socket that listens at @at. */
void mrrc_sockets_cloexec(const struct sockaddr *at);

/*
 * Makes reads on connections accepted at @at from now on return at once. tcp
 * reads connection requests from blocking sockets: a peer that sends half of a
 * request would block the reading thread for any time.
 */
void mrrc_sockets_impatient(const struct sockaddr *at);

/*
 * Ends connections accepted at @at that have not sent a byte: connections older
 * than @max_ms, and the oldest of the rest beyond @max_cnt. Returns the number
 * of silent connections left. @spare: a descriptor of the caller's, which
 * becomes one of the sockets to end, so that the call works when no other
 * descriptor is free.
 */
unsigned mrrc_sockets_end_silent(const struct sockaddr *at, unsigned max_ms,
				 unsigned max_cnt, int spare);

/*
 * The number of connections accepted at @at that have received bytes, all of
 * which are unread.
 */
unsigned mrrc_sockets_unread(const struct sockaddr *at);

#endif /* MRRC_SOCKETS_H */
