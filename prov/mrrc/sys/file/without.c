/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Instead of this folder with --disable-files: nothing opens a ring. */
#include "config.h"
#include "sys/file/ring.h"

int mrrc_ring_pin(struct mrrc_ring *ring, void *addr, size_t len)
{
	return -1;
}

void mrrc_ring_unpin(struct mrrc_ring *ring, int slot)
{
}
