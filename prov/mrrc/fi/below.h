/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Differences between core providers that fi_getinfo() does not tell. All
 * decisions by a provider's name are in below.c.
 *
 * Threading: any.
 */
#ifndef MRRC_BELOW_H
#define MRRC_BELOW_H

#include <stddef.h>

enum mrrc_below {
	/*
	 * a receive has a completion even if FI_SELECTIVE_COMPLETION asks for
	 * none
	 */
	MRRC_BELOW_RX_ALWAYS = 1 << 0,
	/*
	 * the provider may have a registration cache, which keeps closed
	 * registrations with all their rights; MRRC_MR_NOCACHE bypasses that
	 * cache
	 */
	MRRC_BELOW_CACHES = 1 << 1,
	/* deregistering takes so long that a helper thread is worth it */
	MRRC_BELOW_DEREG_SLOW = 1 << 2,
	/* any thread may deregister, however the domain was opened */
	MRRC_BELOW_DEREG_SAFE = 1 << 3,
	/*
	 * a utility provider over another provider takes a descriptor for a
	 * structure of its own, and reads the structure even if no descriptor
	 * is needed
	 */
	MRRC_BELOW_LAYERED = 1 << 4,
	/* peers read longer messages from the sender's buffer */
	MRRC_BELOW_PEERS_READ = 1 << 5,
	/*
	 * if a peer goes away in a rendezvous, a receive in several buffers
	 * completes once for each buffer (1.17)
	 */
	MRRC_BELOW_RECVV_TWICE = 1 << 6,
	/* connections are TCP sockets of this process */
	MRRC_BELOW_SOCKETS = 1 << 7,
	/*
	 * the processor reads buffers by their addresses when it sends them;
	 * with other providers a device may read pages that the addresses had
	 * before
	 */
	MRRC_BELOW_BY_ADDRESS = 1 << 8,
	/* a received message has the length that the peer claims (1.17),
	 * whatever was posted for it */
	MRRC_BELOW_LEN_CLAIMED = 1 << 9,
};

/* Properties of the provider with this name, as "verbs" or "tcp;ofi_rxm". */
unsigned mrrc_below(const char *name);

/*
 * Returns the longest message that ofi_rxm copies when sending, over a core
 * that requires FI_MR_LOCAL. @buffer, @segmented: ofi_rxm's parameters
 * buffer_size and sar_limit; SIZE_MAX: not set. 0: the length is not known.
 */
size_t mrrc_below_copied(size_t buffer, size_t segmented);

/*
 * Returns the name of the provider of connected endpoints on the same devices,
 * which the caller frees. NULL: no memory.
 */
char *mrrc_below_connected(const char *name);

#endif /* MRRC_BELOW_H */
