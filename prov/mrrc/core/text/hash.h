/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hashes of one 64-bit word: mrrc_hash() for words that no peer chooses, such
 * as a page's number; mrrc_hash_keyed() for words that a peer chooses.
 */
#ifndef MRRC_HASH_H
#define MRRC_HASH_H

#include <stdint.h>

/*
 * splitmix64's finaliser: every bit of the key affects every bit of the hash.
 */
static inline uint64_t mrrc_hash(uint64_t key)
{
	key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9;
	key = (key ^ (key >> 27)) * 0x94d049bb133111eb;
	return key ^ (key >> 31);
}

/* Random bits that no peer knows. */
struct mrrc_secret {
	uint64_t word[2];
};

struct mrrc_sip {
	uint64_t a, b, c, d;
};

static inline uint64_t mrrc_rotl(uint64_t word, unsigned bits)
{
	return word << bits | word >> (64 - bits);
}

static inline void mrrc_sip_round(struct mrrc_sip *sip)
{
	sip->a += sip->b;
	sip->b = mrrc_rotl(sip->b, 13) ^ sip->a;
	sip->a = mrrc_rotl(sip->a, 32);
	sip->c += sip->d;
	sip->d = mrrc_rotl(sip->d, 16) ^ sip->c;
	sip->a += sip->d;
	sip->d = mrrc_rotl(sip->d, 21) ^ sip->a;
	sip->c += sip->b;
	sip->b = mrrc_rotl(sip->b, 17) ^ sip->c;
	sip->c = mrrc_rotl(sip->c, 32);
}

/*
 * SipHash-1-3 of the word's eight bytes: without the secret the hashes look
 * random, and known hashes tell nothing about other hashes. The hash takes some
 * 80 instructions.
 */
static inline uint64_t mrrc_hash_keyed(const struct mrrc_secret *secret,
				       uint64_t key)
{
	const uint64_t len = UINT64_C(8) << 56;
	struct mrrc_sip sip = {
		secret->word[0] ^ 0x736f6d6570736575,
		secret->word[1] ^ 0x646f72616e646f6d,
		secret->word[0] ^ 0x6c7967656e657261,
		secret->word[1] ^ 0x7465646279746573,
	};
	int i;

	sip.d ^= key;
	mrrc_sip_round(&sip);
	sip.a ^= key;
	sip.d ^= len;
	mrrc_sip_round(&sip);
	sip.a ^= len;
	sip.c ^= 0xff;
	for (i = 0; i < 3; i++)
		mrrc_sip_round(&sip);
	return sip.a ^ sip.b ^ sip.c ^ sip.d;
}

#endif /* MRRC_HASH_H */
