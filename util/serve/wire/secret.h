/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A secret that server and client share, and the proofs that both have it: a
 * keyed hash over all of HELLO and WELCOME, in which each side has a new random
 * number, and over the address that the client connects to. A proof is valid
 * for one side of one connection, to one server.
 */
#ifndef SERVE_SECRET_H
#define SERVE_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/wire/wire.h"

#define SECRET_KEY 32
#define SECRET_MIN 16 /* limits of the file, in bytes */
#define SECRET_MAX 4096

struct secret {
	bool set; /* false: there is no secret */
	uint8_t key[SECRET_KEY];
};

/* The subject of a proof. */
struct secret_about {
	const struct serve_msg *hello, *welcome;
	const void *at; /* the server's address, as the client reaches it */
	size_t at_len;
	uint64_t session; /* session number over reliable datagrams, else 0 */
	bool rdm;
};

/* The side that makes a proof: a proof is not valid for the other side. */
enum secret_side { SECRET_SERVER, SECRET_CLIENT };

/*
 * Reads a secret from a file; returns NULL, or the reason why the file's bytes
 * are no secret, as text.
 */
const char *secret_read(const char *path, struct secret *secret);

/* Makes a random number for one connection. 0, or a negative error. */
int secret_nonce(uint8_t nonce[SERVE_NONCE]);

void secret_prove(const struct secret *secret, const struct secret_about *about,
		  enum secret_side side, uint8_t proof[SERVE_PROOF]);

/* Compares proofs in a time that does not depend on where they differ. */
bool secret_same(const uint8_t *proof, const uint8_t *other);

/*
 * Called by the client: returns NULL, or the reason why the client rejects this
 * WELCOME.
 */
const char *secret_check(const struct secret *secret,
			 const struct secret_about *about);

#endif /* SERVE_SECRET_H */
