/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Random numbers from the kernel (secret.h). */
#include "config.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>

#include "fi/secret.h"

/*
 * getrandom(2) fails only where a filter of system calls forbids the call. If
 * it fails, the secret is derived from the 16 random bytes that the kernel gave
 * the process when it started.
 */
void mrrc_secret_make(struct mrrc_secret *secret)
{
	static atomic_uint_fast64_t made;
	struct mrrc_secret start;

	if (getrandom(secret, sizeof(*secret), 0) == sizeof(*secret))
		return;
	memcpy(&start, (void *) getauxval(AT_RANDOM), sizeof(start));
	secret->word[0] = mrrc_hash_keyed(&start, atomic_fetch_add(&made, 1));
	secret->word[1] = mrrc_hash_keyed(&start, atomic_fetch_add(&made, 1));
}
