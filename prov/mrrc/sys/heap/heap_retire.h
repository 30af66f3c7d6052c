/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Blocks that have ended, and their addresses. */
#ifndef MRRC_HEAP_RETIRE_H
#define MRRC_HEAP_RETIRE_H

#include "sys/heap/heap_priv.h"

void mrrc_heap_retire_open(struct mrrc_heaps *heaps);
/*
 * Retires a block that is deregistered, in no list and not in the map: gives
 * the block's pages back to the system at once, and its addresses at once, or
 * later if peers could reach the block.
 */
void mrrc_heap_retire(struct mrrc_heaps *heaps, struct mrrc_heap_block *block);
/* Gives all retired addresses back. false: no addresses were retired. */
bool mrrc_heap_retired_release(struct mrrc_heaps *heaps);

#endif /* MRRC_HEAP_RETIRE_H */
