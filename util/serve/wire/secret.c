/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Implements secrets and proofs (serve/wire/secret.h) by libsodium's BLAKE2b
 * with a key, libsodium's comparison, and libsodium's random numbers.
 */
#include "config.h"
#include "serve/wire/secret.h"

#ifdef HAVE_SODIUM

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "serve/wire/peer.h"

_Static_assert(SERVE_PROOF == crypto_generichash_BYTES &&
		       SECRET_KEY == crypto_generichash_KEYBYTES,
	       "sizes of libsodium's hash");

/* ---- the file ------------------------------------------------------------ */

static const char *check_file(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "it is not a regular file";
	if (st->st_mode & 077)
		return "others may read or change it: chmod 600";
	return NULL;
}

/*
 * Reads a file up to the buffer's length, even if the file grows meanwhile.
 */
static size_t read_all(int fd, uint8_t *buf, size_t max)
{
	size_t len = 0;
	ssize_t ret;

	do {
		ret = read(fd, buf + len, max - len);
		len += ret > 0 ? (size_t) ret : 0;
	} while (ret > 0 && len < max);
	return ret < 0 ? 0 : len;
}

const char *secret_read(const char *path, struct secret *secret)
{
	uint8_t buf[SECRET_MAX + 1];
	const char *why;
	struct stat st;
	size_t len;
	int fd;

	if (sodium_init() < 0)
		return "libsodium does not work on this machine";
	/* opening a FIFO must not wait */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return strerror(errno);
	why = fstat(fd, &st) ? strerror(errno) : check_file(&st);
	len = why ? 0 : read_all(fd, buf, sizeof(buf));
	close(fd);
	if (!why && (len < SECRET_MIN || len > SECRET_MAX))
		why = "it has fewer than 16 bytes, or more than 4096: "
		      "head -c 32 /dev/urandom makes a good one";
	if (!why) {
		crypto_generichash(secret->key, sizeof(secret->key), buf, len,
				   NULL, 0);
		secret->set = true;
	}
	sodium_memzero(buf, sizeof(buf));
	return why;
}

/* ---- proofs -------------------------------------------------------------- */

int secret_nonce(uint8_t nonce[SERVE_NONCE])
{
	if (sodium_init() < 0)
		return -EIO;
	randombytes_buf(nonce, SERVE_NONCE);
	return 0;
}

/*
 * Adds a message to the hash as the message is sent, with zeroes in place of
 * its proof. The first field of a message is its length, so that the boundary
 * of two messages cannot be moved.
 */
static void add_message(crypto_generichash_state *state,
			const struct serve_msg *msg)
{
	static const uint8_t none[SERVE_PROOF];
	struct serve_msg copy = *msg;
	uint8_t buf[SERVE_MSG_MAX];

	copy.proof = none;
	crypto_generichash_update(state, buf, serve_encode(&copy, buf));
}

void secret_prove(const struct secret *secret, const struct secret_about *about,
		  enum secret_side side, uint8_t proof[SERVE_PROOF])
{
	const uint8_t kind[2] = { side, about->rdm };
	const uint64_t session = htole64(about->session);
	crypto_generichash_state state;
	struct peer at;

	peer_host(about->at, about->at_len, &at);
	crypto_generichash_init(&state, secret->key, sizeof(secret->key),
				SERVE_PROOF);
	crypto_generichash_update(&state, kind, sizeof(kind));
	crypto_generichash_update(&state, at.host.s6_addr, sizeof(at.host));
	crypto_generichash_update(&state, (const uint8_t *) &at.port,
				  sizeof(at.port));
	crypto_generichash_update(&state, (const uint8_t *) &session,
				  sizeof(session));
	add_message(&state, about->hello);
	add_message(&state, about->welcome);
	crypto_generichash_final(&state, proof, SERVE_PROOF);
}

bool secret_same(const uint8_t *proof, const uint8_t *other)
{
	return !sodium_memcmp(proof, other, SERVE_PROOF);
}

#else /* !HAVE_SODIUM */

#include <errno.h>

const char *secret_read(const char *path, struct secret *secret)
{
	return "this program was built without libsodium: install it (Debian: "
	       "libsodium-dev), and configure without --without-sodium";
}

int secret_nonce(uint8_t nonce[SERVE_NONCE])
{
	return -ENOSYS;
}

void secret_prove(const struct secret *secret, const struct secret_about *about,
		  enum secret_side side, uint8_t proof[SERVE_PROOF])
{
}

bool secret_same(const uint8_t *proof, const uint8_t *other)
{
	return false;
}

#endif /* HAVE_SODIUM */

const char *secret_check(const struct secret *secret,
			 const struct secret_about *about)
{
	uint8_t proof[SERVE_PROOF];

	if (!secret->set)
		return about->welcome->nonce ? "an invalid welcome" : NULL;
	if (!about->welcome->nonce)
		return "the server has no secret: begin it with --secret";
	secret_prove(secret, about, SECRET_SERVER, proof);
	return secret_same(proof, about->welcome->proof) ?
		       NULL :
		       "the server does not prove that it has this secret, or "
		       "it has another address than the one that was reached";
}
