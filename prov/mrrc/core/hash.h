/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The hash of a page's number.
 */
#ifndef MRRC_HASH_H
#define MRRC_HASH_H

#include <stdint.h>

/* Every bit of the key moves every other: splitmix64's finaliser. */
static inline uint64_t mrrc_hash(uint64_t key)
{
	key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9;
	key = (key ^ (key >> 27)) * 0x94d049bb133111eb;
	return key ^ (key >> 31);
}

#endif /* MRRC_HASH_H */
