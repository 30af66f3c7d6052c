/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads files of a domain past the page cache (O_DIRECT), by io_uring: one
 * thread has the domain's ring.
 *
 * When a request ends, and after a ring is closed, the kernel interrupts system
 * calls of the threads that opened the ring or submitted a request: an
 * epoll_wait(2) of the application would fail with EINTR. So one thread makes
 * all io_uring calls, and other threads queue reads.
 *
 * All calls except open and close: any thread that holds no lock of rank LEAF.
 */
#ifndef MRRC_RING_H
#define MRRC_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <bsd/sys/queue.h>

struct mrrc_ring;

/* A read's arguments, and its state in the ring. */
struct mrrc_ring_read {
	/* constant until the read has ended */
	int fd;	  /* open with O_DIRECT */
	int slot; /* slot of buf, from mrrc_ring_pin(); or -1 */
	char *buf;
	size_t len; /* buf, len and offset: aligned as O_DIRECT requires */
	/* bytes of len that are needed: the file may end behind them */
	size_t need;
	uint64_t offset; /* offset in the file */
	/* the ring's lock */
	size_t asked;	 /* bytes that the kernel was asked for */
	unsigned flight; /* requests under way */
	bool missing;	 /* fewer than need bytes came, or an error */
	bool queued;
	TAILQ_ENTRY(mrrc_ring_read) link;
};

/*
 * -EOPNOTSUPP: built without liburing; -ELIBACC: liburing cannot be loaded;
 * -ENOSYS, -EPERM: the kernel or seccomp refuses; or another error.
 */
int mrrc_ring_open(struct mrrc_ring **ring);

/* Closes the ring; nothing is being read. */
void mrrc_ring_close(struct mrrc_ring *ring);

/*
 * Registers memory with the ring once, so that reads need not register it:
 * returns a slot, or -1. The memory stays pinned until mrrc_ring_unpin(), which
 * may be called when no read uses the memory.
 */
int mrrc_ring_pin(struct mrrc_ring *ring, void *addr, size_t len);
void mrrc_ring_unpin(struct mrrc_ring *ring, int slot);

void mrrc_ring_start(struct mrrc_ring *ring, struct mrrc_ring_read *read);

/*
 * Waits until the read has ended. false: fewer than need bytes were read, for
 * any reason, and the caller has to read the bytes in another way.
 */
bool mrrc_ring_wait(struct mrrc_ring *ring, struct mrrc_ring_read *read);

/* Waits until the kernel no longer writes to buf. */
void mrrc_ring_cancel(struct mrrc_ring *ring, struct mrrc_ring_read *read);

/*
 * Opens the file behind fd for mrrc_ring_start(); *align: offsets and addresses
 * have to be multiples of this number. -EOPNOTSUPP: the file system cannot read
 * past the page cache.
 */
int mrrc_ring_file(int fd, size_t *align, int *direct_fd);

#endif /* MRRC_RING_H */
