/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Secrets: which files are one, and what a proof is about. Attacks are what a
 * peer without the secret can put together from what it has seen.
 */
#include "config.h"
#include "test_serve.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/secret.h"

#ifdef HAVE_SODIUM

static struct sockaddr_in at = { .sin_family = AF_INET };
static uint8_t client_nonce[SERVE_NONCE], server_nonce[SERVE_NONCE];
static uint8_t server_proof[SERVE_PROOF];
static struct serve_msg hello, welcome;
static struct secret secret = { .set = true, .key = "of both" };
static struct secret_about about;

/* A session of two that have the secret. */
static void begin(void)
{
	at.sin_port = htons(7473);
	at.sin_addr.s_addr = htonl(0x0a000001);
	ck_assert_int_eq(secret_nonce(client_nonce), 0);
	ck_assert_int_eq(secret_nonce(server_nonce), 0);
	hello = (struct serve_msg){ .type = SERVE_HELLO,
				    .id = 1,
				    .part = 8192,
				    .pipes = 2,
				    .nonce = client_nonce };
	welcome = (struct serve_msg){ .type = SERVE_WELCOME,
				      .id = 1,
				      .part = 4096,
				      .pipes = 1,
				      .nonce = server_nonce,
				      .proof = server_proof };
	about = (struct secret_about){ .hello = &hello,
				       .welcome = &welcome,
				       .at = &at,
				       .at_len = sizeof(at) };
	secret_prove(&secret, &about, SECRET_SERVER, server_proof);
}

static bool accepted(void)
{
	return !secret_check(&secret, &about);
}

/* ---- the file ------------------------------------------------------------ */

static const struct {
	size_t len;
	mode_t mode;
	bool taken;
} files[] = {
	{ SECRET_MIN, 0600, true },	 { SECRET_MAX, 0400, true },
	{ SECRET_MIN - 1, 0600, false }, { 0, 0600, false },
	{ SECRET_MAX + 1, 0600, false }, { SECRET_MIN, 0640, false },
	{ SECRET_MIN, 0604, false },	 { SECRET_MIN, 0620, false },
	{ SECRET_MIN, 0602, false },
};

static const char *read_file(const char *name, struct secret *got)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", top, name);
	return secret_read(path, got);
}

static void make_secret(const char *name, size_t len, mode_t mode, char byte)
{
	static char bytes[SECRET_MAX + 2];

	memset(bytes, byte, len);
	bytes[len] = 0;
	write_file(top, name, bytes);
	ck_assert_int_eq(fchmodat(top, name, mode, 0), 0);
}

START_TEST(secret_files)
{
	struct secret got = { 0 };
	const char *why;

	make_files();
	make_secret("secret", files[_i].len, files[_i].mode, 'a');
	why = read_file("secret", &got);
	ck_assert_int_eq(!why, files[_i].taken);
	ck_assert_int_eq(got.set, files[_i].taken);
	remove_files();
}
END_TEST

START_TEST(secrets_differ)
{
	struct secret one = { 0 }, other = { 0 }, longer = { 0 };

	make_files();
	make_secret("one", 16, 0600, 'a');
	make_secret("other", 16, 0600, 'b');
	make_secret("longer", 17, 0600, 'a');
	ck_assert_ptr_null(read_file("one", &one));
	ck_assert_ptr_null(read_file("other", &other));
	ck_assert_ptr_null(read_file("longer", &longer));
	ck_assert(memcmp(one.key, other.key, sizeof(one.key)));
	ck_assert(memcmp(one.key, longer.key, sizeof(one.key)));
	/* nor is any of these one: a FIFO is not waited for */
	ck_assert_ptr_nonnull(read_file("fifo", &one));
	ck_assert_ptr_nonnull(read_file("dir", &one));
	ck_assert_ptr_nonnull(read_file("none", &one));
	ck_assert_ptr_nonnull(secret_read("/dev/zero", &one));
	remove_files();
}
END_TEST

/* ---- proofs -------------------------------------------------------------- */

START_TEST(proven)
{
	uint8_t expect[SERVE_PROOF], proof[SERVE_PROOF];

	begin();
	ck_assert(accepted());
	secret_prove(&secret, &about, SECRET_CLIENT, expect);
	/* what is in WELCOME as the server's proof is no part of it */
	server_proof[0]++;
	secret_prove(&secret, &about, SECRET_CLIENT, proof);
	ck_assert(secret_same(proof, expect));
	ck_assert(!accepted());
}
END_TEST

/* Any bit that both sides see differently is noticed. */
START_TEST(about_all)
{
	struct secret_about other;
	struct serve_msg msg;
	uint8_t proof[SERVE_PROOF];
	unsigned i;

	begin();
	for (i = 0; i < 8 * SERVE_PROOF; i++) {
		memcpy(proof, server_proof, sizeof(proof));
		proof[i / 8] ^= (uint8_t) (1 << i % 8);
		ck_assert(!secret_same(proof, server_proof));
	}
	for (i = 0; i < SERVE_NONCE; i++) {
		client_nonce[i]++;
		ck_assert(!accepted());
		client_nonce[i]--;
		server_nonce[i]++;
		ck_assert(!accepted());
		server_nonce[i]--;
	}
	ck_assert(accepted());
	hello.part++;
	ck_assert(!accepted());
	hello.part--;
	welcome.pipes++;
	ck_assert(!accepted());
	welcome.pipes--;
	at.sin_port++;
	ck_assert(!accepted());
	at.sin_port--;
	at.sin_addr.s_addr++;
	ck_assert(!accepted());
	at.sin_addr.s_addr--;
	ck_assert(accepted());
	other = about;
	other.session = 1;
	ck_assert_ptr_nonnull(secret_check(&secret, &other));
	other = about;
	other.rdm = true;
	ck_assert_ptr_nonnull(secret_check(&secret, &other));
	/* its name, over reliable datagrams */
	msg = welcome;
	msg.name = (const uint8_t *) &at;
	msg.name_len = sizeof(at);
	other = about;
	other.welcome = &msg;
	ck_assert_ptr_nonnull(secret_check(&secret, &other));
	secret.key[0]++;
	ck_assert(!accepted());
	secret.key[0]--;
}
END_TEST

/* One side's proof is not the other's: a server that sends it back has none. */
START_TEST(reflected)
{
	uint8_t proof[SERVE_PROOF];

	begin();
	memcpy(server_nonce, client_nonce, sizeof(server_nonce));
	secret_prove(&secret, &about, SECRET_CLIENT, proof);
	memcpy(server_proof, proof, sizeof(proof));
	ck_assert(!accepted());
}
END_TEST

/* A server that has none: whatever it says, the client does not go on. */
START_TEST(downgraded)
{
	const struct secret none = { 0 };

	begin();
	ck_assert_ptr_nonnull(secret_check(&none, &about));
	welcome.nonce = welcome.proof = NULL;
	ck_assert(!accepted());
	ck_assert_ptr_null(secret_check(&none, &about));
}
END_TEST

void add_secret(Suite *suite)
{
	TCase *tcase = tcase_create("secret");

	tcase_add_loop_test(tcase, secret_files, 0,
			    sizeof(files) / sizeof(*files));
	tcase_add_test(tcase, secrets_differ);
	tcase_add_test(tcase, proven);
	tcase_add_test(tcase, about_all);
	tcase_add_test(tcase, reflected);
	tcase_add_test(tcase, downgraded);
	suite_add_tcase(suite, tcase);
}

#else

/* Without libsodium no file is a secret, and no proof is right. */
START_TEST(without)
{
	uint8_t proof[SERVE_PROOF] = { 0 };
	struct secret secret = { 0 };

	ck_assert_ptr_nonnull(secret_read("/dev/null", &secret));
	ck_assert(!secret.set && !secret_same(proof, proof));
}
END_TEST

void add_secret(Suite *suite)
{
	TCase *tcase = tcase_create("secret");

	tcase_add_test(tcase, without);
	suite_add_tcase(suite, tcase);
}

#endif /* HAVE_SODIUM */
