/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Linked in place of the other files of this folder if configure was called
 * with --disable-files: opens no io_uring.
 */
#include "config.h"
#include "sys/file/ring.h"

int mrrc_ring_pin(struct mrrc_ring *ring, void *addr, size_t len)
{
	return -1;
}

void mrrc_ring_unpin(struct mrrc_ring *ring, int slot)
{
}
