/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The TCP sockets of this process that were accepted at one of its addresses.
 * libfabric's tcp provider keeps a connection that sends nothing for as long as
 * tcp listens, and shows no socket, so the sockets are found among the
 * process's descriptors.
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
 * Lets reads of connections that are accepted at @at from now on not wait.
 * tcp reads connection requests from sockets that block: a request that is cut
 * in two would stop the thread for as long as its sender likes.
 */
void mrrc_sockets_impatient(const struct sockaddr *at);

/*
 * Ends connections accepted at @at that have not sent a byte: connections older
 * than @max_ms, and the oldest of the rest beyond @max_cnt. Returns the number
 * of silent connections left. @spare: a descriptor of the caller's, so that the
 * call works when no other descriptor is free; @spare becomes one of these
 * sockets.
 */
unsigned mrrc_sockets_end_silent(const struct sockaddr *at, unsigned max_ms,
				 unsigned max_cnt, int spare);

/*
 * The number of connections accepted at @at that have sent bytes of which no
 * byte has been read.
 */
unsigned mrrc_sockets_unread(const struct sockaddr *at);

#endif /* MRRC_SOCKETS_H */
