/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Differences between the providers below that fi_getinfo() does not tell. All
 * decisions by a provider's name are in below.c.
 *
 * Threading: any.
 */
#ifndef MRRC_BELOW_H
#define MRRC_BELOW_H

#include <stddef.h>

enum mrrc_below {
	/* a receive has a completion, whatever FI_SELECTIVE_COMPLETION asks */
	MRRC_BELOW_RX_ALWAYS = 1 << 0,
	/* may have a cache of its own, which keeps closed registrations with
	 * all their rights; MRRC_MR_NOCACHE bypasses it */
	MRRC_BELOW_CACHES = 1 << 1,
	/* deregistering takes so long that a helper thread is worth it */
	MRRC_BELOW_DEREG_SLOW = 1 << 2,
	/* any thread may deregister, however the domain was opened */
	MRRC_BELOW_DEREG_SAFE = 1 << 3,
	/* a utility provider over another one. It takes descriptors for
	 * structures of its own, and reads them even where none are needed */
	MRRC_BELOW_LAYERED = 1 << 4,
	/* peers read longer messages from the sender's buffer */
	MRRC_BELOW_PEERS_READ = 1 << 5,
	/* if a peer goes away in a rendezvous, the receive in several buffers
	 * completes once for each (1.17) */
	MRRC_BELOW_RECVV_TWICE = 1 << 6,
	/* connections are TCP sockets of this process */
	MRRC_BELOW_SOCKETS = 1 << 7,
	/* buffers are read through their addresses, when it sends them; others
	 * may have a device read pages that were there before */
	MRRC_BELOW_BY_ADDRESS = 1 << 8,
	/* a received message has the length that the peer claims (1.17),
	 * whatever was posted for it */
	MRRC_BELOW_LEN_CLAIMED = 1 << 9,
};

/* Properties of the provider with this name, as "verbs" or "tcp;ofi_rxm". */
unsigned mrrc_below(const char *name);

/*
 * The longest message that ofi_rxm copies when it is sent, over a core that
 * requires FI_MR_LOCAL, by its buffer_size and sar_limit; SIZE_MAX: not set.
 * 0: not known.
 */
size_t mrrc_below_copied(size_t buffer, size_t segmented);

/*
 * The provider of connected endpoints on the same devices, to be freed. NULL:
 * no memory.
 */
char *mrrc_below_connected(const char *name);

#endif /* MRRC_BELOW_H */
