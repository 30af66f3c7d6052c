/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests secrets: which files are valid, and which messages a proof covers.
 * Attacks are messages that a peer without the secret can make from messages
 * that it has seen.
 */
#include "config.h"
#include "test_serve.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "serve/server/server.h"

TEST_CASE(secret, NULL, NULL);

#ifdef HAVE_SODIUM

static struct sockaddr_in at = { .sin_family = AF_INET };
static uint8_t client_nonce[SERVE_NONCE], server_nonce[SERVE_NONCE];
static uint8_t server_proof[SERVE_PROOF];
static struct serve_msg hello, welcome;
static struct secret secret = { .set = true, .key = "of both" };
static struct secret_about about;

/* Begins a session of two sides that have the secret. */
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

EACH_TEST(secret_files, files)
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

TEST(secrets_differ)
{
	struct secret one = { 0 }, other = { 0 }, longer = { 0 };
	static const char bytes[32];
	int fd, writer;

	make_files();
	make_secret("one", 16, 0600, 'a');
	make_secret("other", 16, 0600, 'b');
	make_secret("longer", 17, 0600, 'a');
	ck_assert_ptr_null(read_file("one", &one));
	ck_assert_ptr_null(read_file("other", &other));
	ck_assert_ptr_null(read_file("longer", &longer));
	ck_assert(memcmp(one.key, other.key, sizeof(one.key)));
	ck_assert(memcmp(one.key, longer.key, sizeof(one.key)));
	/* these are no secrets, either; a FIFO is not waited for, nor read */
	ck_assert_ptr_nonnull(read_file("fifo", &one));
	ck_assert_int_eq(fchmodat(top, "fifo", 0600, 0), 0);
	fd = openat(top, "fifo", O_RDONLY | O_NONBLOCK);
	writer = openat(top, "fifo", O_WRONLY);
	ck_assert_int_eq(write(writer, bytes, sizeof(bytes)), sizeof(bytes));
	close(writer);
	ck_assert_ptr_nonnull(read_file("fifo", &one));
	close(fd);
	ck_assert_ptr_nonnull(read_file("dir", &one));
	ck_assert_ptr_nonnull(read_file("none", &one));
	ck_assert_ptr_nonnull(secret_read("/dev/zero", &one));
	remove_files();
}

/* ---- proofs -------------------------------------------------------------- */

/* A proof fails for any bit in which both sides differ. */
TEST(about_all)
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
	/* the server's name, over reliable datagrams */
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

/* A server cannot send the client's proof back as its own. */
TEST(reflected)
{
	uint8_t proof[SERVE_PROOF];

	begin();
	memcpy(server_nonce, client_nonce, sizeof(server_nonce));
	secret_prove(&secret, &about, SECRET_CLIENT, proof);
	memcpy(server_proof, proof, sizeof(proof));
	ck_assert(!accepted());
}

/* The client refuses a server without a secret, whatever it answers. */
TEST(downgraded)
{
	const struct secret none = { 0 };

	begin();
	ck_assert_ptr_nonnull(secret_check(&none, &about));
	welcome.nonce = welcome.proof = NULL;
	ck_assert(!accepted());
	ck_assert_ptr_null(secret_check(&none, &about));
}

/* ---- the server ---------------------------------------------------------- */

static struct server server;
static struct conn conn;
static struct serve_msg got; /* the last answer */

static ssize_t fake_send(struct fid_ep *ep, const void *buf, size_t len,
			 void *desc, fi_addr_t dest_addr, void *context)
{
	static uint8_t copy[SERVE_MSG_MAX];

	memcpy(copy, buf, len);
	ck_assert_int_eq(serve_decode(copy, len, &got), 0);
	return 0;
}

static ssize_t fake_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,
			 fi_addr_t src_addr, void *context)
{
	return 0;
}

static struct fi_ops_msg msg_ops = { .send = fake_send, .recv = fake_recv };
static struct fid_ep ep = { .msg = &msg_ops };

/* Begins with a connected client. */
static void begin_conn(void)
{
	static uint8_t rx[CONN_RX_MORE + 1][SERVE_MSG_MAX];
	static uint8_t answer[SERVE_MSG_MAX];
	unsigned i;

	memset(&conn, 0, sizeof(conn));
	memset(&got, 0, sizeof(got));
	conn.server = &server;
	conn.state = CONN_UP;
	conn.moved = server_now();
	conn.proven = true;
	conn.link.ep = conn.link.rx = &ep;
	conn.reqs = 1;
	conn.rxs = CONN_RX_MORE;
	conn.req[0].conn = &conn;
	conn.req[0].send = (struct op){ OP_SEND, &conn, 0, false };
	conn.req[0].out = answer;
	for (i = 0; i <= CONN_RX_MORE; i++) {
		conn.rx[i].buf = rx[i];
		conn.rx[i].op = (struct op){ OP_RX, &conn, i, true };
	}
}

static void begin_server(void)
{
	begin();
	memset(&server, 0, sizeof(server));
	server.options.secret = secret;
	server.options.memory = 4096;
	server.options.timeout = 1;
	memcpy(&server.listen.at, &at, sizeof(at));
	ck_assert_int_eq(jobs_open(&server.closers, 0), 0);
	begin_conn();
}

static void come(const struct serve_msg *msg)
{
	struct rx *rx = &conn.rx[0];

	conn_complete(&rx->op, serve_encode(msg, rx->buf), 0);
	if (conn.req[0].send.busy)
		conn_complete(&conn.req[0].send, 0, 0);
}

/* Receives the client's HELLO; @proof: the proof that PROVE has to have. */
static void come_hello(uint8_t proof[SERVE_PROOF])
{
	come(&hello);
	ck_assert_int_eq(got.type, SERVE_WELCOME);
	ck_assert_int_eq(got.status, SERVE_OK);
	ck_assert_int_eq(conn.state, CONN_PROVES);
	about.welcome = &got;
	ck_assert(accepted());
	secret_prove(&secret, &about, SECRET_CLIENT, proof);
}

static void come_prove(const uint8_t *proof)
{
	const struct serve_msg prove = { .type = SERVE_PROVE,
					 .id = 2,
					 .proof = proof };

	come(&prove);
}

TEST(served)
{
	uint8_t proof[SERVE_PROOF];

	begin_server();
	come_hello(proof);
	come_prove(proof);
	ck_assert_int_eq(conn.state, CONN_READY);
	ck_assert_int_eq(got.type, SERVE_DATA);
	ck_assert_int_eq(got.status, SERVE_OK);
	ck_assert_uint_eq(server.total.refused, 0);
	/* a second PROVE is refused */
	come_prove(proof);
	ck_assert_int_eq(conn.state, CONN_CLOSING);
	jobs_close(&server.closers);
}

/* Messages of an attacker without the secret, in place of a proof. */
enum { GUESS, REFLECTED, REPLAYED, ONE_BIT, UNPROVEN, HELLOS, ATTACKS };

LOOP_TEST(attacks, 0, ATTACKS)
{
	const struct serve_msg list = { .type = SERVE_LIST, .id = 3 };
	uint8_t proof[SERVE_PROOF], old[SERVE_PROOF];

	begin_server();
	come_hello(old);
	come_prove(old);
	ck_assert_int_eq(conn.state, CONN_READY);
	/* the same HELLO, unchanged */
	begin_conn();
	come_hello(proof);
	if (_i == GUESS)
		memset(proof, 0, sizeof(proof));
	else if (_i == REFLECTED)
		memcpy(proof, got.proof, sizeof(proof));
	else if (_i == REPLAYED)
		memcpy(proof, old, sizeof(proof));
	else if (_i == ONE_BIT)
		proof[SERVE_PROOF - 1] ^= 0x80;
	got.type = 0;
	if (_i == UNPROVEN)
		come(&list);
	else if (_i == HELLOS)
		come(&hello);
	else
		come_prove(proof);
	ck_assert_int_eq(conn.state, CONN_CLOSING);
	ck_assert_int_eq(got.type, 0);
	ck_assert_uint_eq(server.total.refused, 1);
	jobs_close(&server.closers);
}

/* A client without the secret is told so, and gets no other answer. */
TEST(without_secret)
{
	const struct serve_msg list = { .type = SERVE_LIST, .id = 3 };

	begin_server();
	hello.nonce = NULL;
	come(&hello);
	ck_assert_int_eq(got.status, SERVE_SECRET);
	ck_assert_ptr_null(got.nonce);
	ck_assert_uint_eq(server.total.refused, 1);
	ck_assert_int_eq(conn.state, CONN_UP);
	got.type = 0;
	come(&list);
	ck_assert_int_eq(conn.state, CONN_CLOSING);
	ck_assert_int_eq(got.type, 0);
	jobs_close(&server.closers);
}

/* Messages of a client that has proven nothing yet do not keep its place. */
LOOP_TEST(unproven_time, 0, 3)
{
	uint8_t proof[SERVE_PROOF];

	begin_server();
	conn.moved -= 1001;
	if (_i == 0)
		hello.nonce = NULL;
	come(&hello);
	if (_i == 2) {
		about.welcome = &got;
		secret_prove(&secret, &about, SECRET_CLIENT, proof);
		come_prove(proof);
	}
	conn_tick(&conn, server_now());
	ck_assert_int_eq(conn.state, _i == 2 ? CONN_READY : CONN_CLOSING);
	jobs_close(&server.closers);
}

#else

/* Without libsodium no file is a secret, and no proof is right. */
TEST(without)
{
	uint8_t proof[SERVE_PROOF] = { 0 };
	struct secret secret = { 0 };

	ck_assert_ptr_nonnull(secret_read("/dev/null", &secret));
	ck_assert(!secret.set && !secret_same(proof, proof));
}

#endif /* HAVE_SODIUM */
