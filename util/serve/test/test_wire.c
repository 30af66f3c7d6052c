/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests messages of fi_mrrc_serve and fi_mrrc_get that are encoded, decoded and
 * damaged, and names and paths of a hostile peer.
 */
#include "config.h"
#include "test_serve.h"

#include <netinet/in.h>

#include "serve/wire/path.h"
#include "serve/wire/wire.h"

static uint8_t page[SERVE_MSG_MAX];

/* IPv4: family, port 258, host 1.2.3.4, and 8 bytes of the provider */
static const uint8_t named[16] = { AF_INET, 0,	 1, 2, 1, 2, 3, 4,
				   'M',	    'W', 5, 6, 7, 8, 9, 10 };
static const uint8_t entry_a[] = { SERVE_FILE, 5, 0, 0, 0, 0, 0, 0, 0, 1, 'a' };
static const uint8_t anywhere[16] = { AF_INET, 0, 1, 2 };

static const struct serve_msg sound[] = {
	{ .type = SERVE_HELLO, .id = 1, .part = 4096, .pipes = 1 },
	{ .type = SERVE_WELCOME,
	  .id = SERVE_ID_MAX,
	  .part = SERVE_PART_MAX,
	  .pipes = SERVE_PIPES_MAX },
	{ .type = SERVE_WELCOME, .status = SERVE_ENDING, .id = 3 },
	{ .type = SERVE_OPEN,
	  .id = 4,
	  .slot = SERVE_SLOTS - 1,
	  .len = 60000,
	  .path = "a/b c/..d",
	  .path_len = 9 },
	{ .type = SERVE_READ,
	  .id = 5,
	  .off = INT64_MAX - SERVE_PART_MAX,
	  .len = SERVE_PART_MAX },
	{ .type = SERVE_SUM, .id = 6, .off = 1, .len = 1 },
	{ .type = SERVE_LIST, .id = 7, .cursor = INT64_MAX, .path = "" },
	{ .type = SERVE_DATA,
	  .id = 8,
	  .slot = 1,
	  .off = 2,
	  .len = 3,
	  .hash = UINT64_MAX,
	  .ident = { 1, 2, INT64_MAX, INT64_MIN, -1, SERVE_MODE } },
	{ .type = SERVE_DATA, .id = 9, .status = SERVE_CHANGED },
	{ .type = SERVE_PAGE,
	  .id = 10,
	  .cursor = 5,
	  .entries = entry_a,
	  .entries_len = sizeof(entry_a) },
	{ .type = SERVE_HELLO,
	  .id = 11,
	  .part = 4096,
	  .pipes = 1,
	  .name = named,
	  .name_len = sizeof(named) },
	{ .type = SERVE_WELCOME,
	  .id = 12,
	  .part = 4096,
	  .pipes = 1,
	  .name = anywhere,
	  .name_len = sizeof(anywhere) },
	{ .type = SERVE_BYE },
	{ .type = SERVE_OPEN,
	  .id = 13,
	  .slot = 1,
	  .len = SERVE_INLINE_MAX,
	  .path = "small",
	  .path_len = 5 },
	{ .type = SERVE_DATA,
	  .id = 14,
	  .len = 3,
	  .hash = 1,
	  .ident.size = 3,
	  .data = (const uint8_t *) "abc",
	  .data_len = 3 },
	{ .type = SERVE_HELLO,
	  .id = 15,
	  .part = 4096,
	  .pipes = 1,
	  .nonce = page },
	{ .type = SERVE_WELCOME,
	  .id = 16,
	  .part = 4096,
	  .pipes = 1,
	  .nonce = page,
	  .proof = page,
	  .name = anywhere,
	  .name_len = sizeof(anywhere) },
	{ .type = SERVE_PROVE, .id = 17, .proof = page },
	{ .type = SERVE_DATA,
	  .id = 18,
	  .status = SERVE_IS_DIR,
	  .ident.mode = 0750 },
};

#define SOUND (sizeof(sound) / sizeof(*sound))

static void check_same(const struct serve_msg *a, const struct serve_msg *b)
{
	ck_assert_int_eq(a->type, b->type);
	ck_assert_int_eq(a->status, b->status);
	ck_assert_uint_eq(a->id, b->id);
	ck_assert_uint_eq(a->part, b->part);
	ck_assert_uint_eq(a->pipes, b->pipes);
	ck_assert_uint_eq(a->slot, b->slot);
	ck_assert_uint_eq(a->off, b->off);
	ck_assert_uint_eq(a->len, b->len);
	ck_assert_uint_eq(a->hash, b->hash);
	ck_assert_uint_eq(a->cursor, b->cursor);
	ck_assert(path_ident_same(&a->ident, &b->ident));
	ck_assert_uint_eq(a->ident.mode, b->ident.mode);
	ck_assert_uint_eq(a->path_len, b->path_len);
	if (a->path_len)
		ck_assert(!memcmp(a->path, b->path, a->path_len));
	ck_assert_uint_eq(a->entries_len, b->entries_len);
	ck_assert_uint_eq(a->data_len, b->data_len);
	if (a->data_len)
		ck_assert(!memcmp(a->data, b->data, a->data_len));
	ck_assert_int_eq(!a->nonce, !b->nonce);
	if (a->nonce)
		ck_assert(!memcmp(a->nonce, b->nonce, SERVE_NONCE));
	ck_assert_int_eq(!a->proof, !b->proof);
	if (a->proof)
		ck_assert(!memcmp(a->proof, b->proof, SERVE_PROOF));
	ck_assert_uint_eq(a->name_len, b->name_len);
	if (a->name_len)
		ck_assert(!memcmp(a->name, b->name, a->name_len));
}

TEST_CASE(wire, NULL, NULL);

LOOP_TEST(there_and_back, 0, SOUND)
{
	const struct serve_msg *msg = &sound[_i];
	uint8_t buf[SERVE_MSG_MAX + 1], cut[SERVE_MSG_MAX];
	struct serve_msg back;
	size_t len = serve_encode(msg, buf), i;

	ck_assert_uint_le(len, SERVE_MSG_MAX);
	ck_assert_int_eq(serve_decode(buf, len, &back), 0);
	check_same(msg, &back);
	/* more bytes than the message's length field says */
	buf[len] = 'x';
	ck_assert_int_eq(serve_decode(buf, len + 1, &back), -EPROTO);
	/* more bytes than the fields */
	if (!msg->path && !msg->entries) {
		buf[0]++;
		ck_assert_int_eq(serve_decode(buf, len + 1, &back), -EPROTO);
		buf[0]--;
	}
	/* a message that is cut */
	for (i = 0; i < len; i++)
		ck_assert_int_eq(serve_decode(buf, i, &back),
				 msg->data_len && i == len - msg->data_len ?
					 0 :
					 -EPROTO);
	/* a smaller length field, too: only paths and pages may be shorter */
	memcpy(cut, buf, len);
	len -= msg->path_len + msg->name_len + msg->data_len;
	for (i = SERVE_HEAD; i < len; i++) {
		cut[0] = (uint8_t) i;
		cut[1] = (uint8_t) (i >> 8);
		ck_assert_int_eq(serve_decode(cut, i, &back), -EPROTO);
	}
}

/* Single bytes that make a message invalid */
static const struct {
	size_t msg, at;
	uint8_t byte;
} broken[] = {
	{ 0, 3, 0 },			/* no type */
	{ 0, 3, SERVE_TYPES },		/* unknown */
	{ 0, 3, SERVE_LIST },		/* the fields of another type */
	{ 0, 4, 1 },			/* a request with a status */
	{ 0, 15, 0x80 },		/* an id that is no tag */
	{ 0, 16, 0 },			/* not this protocol */
	{ 0, 25, 0 },			/* a part of no bytes */
	{ 0, 27, 0x10 },		/* or too many */
	{ 0, 28, 0 },			/* no pipes */
	{ 0, 28, SERVE_PIPES_MAX + 1 }, /* or too many */
	{ 2, 4, SERVE_STATUSES },	/* an unknown status */
	{ 2, 7, 0x80 },			/* another */
	{ 3, 16, SERVE_SLOTS },		/* no such slot */
	{ 3, 18, 1 },			/* a request with permissions */
	{ 7, 19, 2 },			/* more than permissions */
	{ 3, 23, 0x10 },		/* more bytes than a part may have */
	{ 3, 32, '/' },			/* an absolute path */
	{ 3, 34, '/' },			/* an empty name */
	{ 3, 38, 0 },			/* NUL */
	{ 3, 40, '/' },			/* ends with a slash */
	{ 4, 31, 0xff },		/* an offset beyond the last */
	{ 6, 23, 0xff },		/* a cursor beyond the last */
	{ 7, 4, SERVE_IO },		/* data of a failed request */
	{ 7, 63, 0xff },		/* a size beyond the last */
	{ 9, 23, 0xff },		/* a cursor beyond the last */
	{ 10, 36, AF_INET6 },		/* a name of another length */
	{ 10, 36, AF_UNIX },		/* or family */
	{ 12, 4, SERVE_ENDING },	/* a status that has no meaning */
	{ 13, 20, 1 },			/* more than may follow */
	{ 13, 23, 1 },			/* or a part has */
	{ 14, 20, 4 },			/* more bytes than follow */
	{ 14, 20, 2 },			/* or fewer */
	{ 14, 20, 0 },			/* or none */
	{ 14, 4, SERVE_IO },		/* of a failed request */
	{ 14, 3, SERVE_PAGE },		/* of another type */
	{ 14, 56, 2 },			/* more bytes than the file */
	{ 14, 24, 1 },			/* or some behind its end */
	{ 14, 31, 1 },			/* or all */
	{ 15, 32, 2 },			/* an invalid mark of a secret */
	{ 15, 35, 0x80 },
	{ 15, 32, 0 },		 /* its number taken for a name */
	{ 16, 4, SERVE_ENDING }, /* a secret, and no place */
	{ 17, 4, SERVE_ENDING }, /* a request with a status */
	{ 18, 19, 2 },		 /* more than permissions */
};

EACH_TEST(broken_messages, broken)
{
	const struct serve_msg *msg = &sound[broken[_i].msg];
	uint8_t buf[SERVE_MSG_MAX];
	struct serve_msg back = { .id = 77 };
	size_t len = serve_encode(msg, buf);

	ck_assert_uint_lt(broken[_i].at, len);
	buf[broken[_i].at] = broken[_i].byte;
	ck_assert_int_eq(serve_decode(buf, len, &back), -EPROTO);
	ck_assert_uint_eq(back.id, 77);
}

/* A client's name has a host and a port; a server's name has a port. */
TEST(socket_names)
{
	struct serve_msg msg = sound[10], back;
	uint8_t buf[SERVE_MSG_MAX], name[sizeof(named)];

	msg.name = anywhere;
	ck_assert_int_eq(serve_decode(buf, serve_encode(&msg, buf), &back),
			 -EPROTO);
	memcpy(name, named, sizeof(name));
	name[2] = name[3] = 0;
	msg.name = name;
	ck_assert_int_eq(serve_decode(buf, serve_encode(&msg, buf), &back),
			 -EPROTO);
	msg.type = SERVE_WELCOME;
	ck_assert_int_eq(serve_decode(buf, serve_encode(&msg, buf), &back),
			 -EPROTO);
	msg.name = named;
	msg.name_len = sizeof(named) - 1;
	ck_assert_int_eq(serve_decode(buf, serve_encode(&msg, buf), &back),
			 -EPROTO);
	/* a refusal has no name, and no proof */
	msg = (struct serve_msg){ .type = SERVE_WELCOME,
				  .status = SERVE_ENDING,
				  .name = named,
				  .name_len = sizeof(named) };
	ck_assert_int_eq(serve_decode(buf, serve_encode(&msg, buf), &back),
			 -EPROTO);
	msg.name_len = 0;
	msg.nonce = msg.proof = page;
	ck_assert_int_eq(serve_decode(buf, serve_encode(&msg, buf), &back),
			 -EPROTO);
}

/* Only host and port of names are compared, and changed. */
TEST(moved_names)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_addr.s6_addr = { 1 },
				    .sin6_port = 1,
				    .sin6_scope_id = 9 };
	struct sockaddr_in6 to6 = in6;
	uint8_t name[sizeof(named)], to[sizeof(named)];

	memcpy(name, named, sizeof(name));
	name[15]++;
	ck_assert(serve_named_same(name, named));
	name[7]++;
	ck_assert(!serve_named_same(name, named));
	memcpy(to, named, sizeof(to));
	to[3]++;
	ck_assert(!serve_named_same(to, named));
	ck_assert_int_eq(serve_named_move(name, (struct sockaddr *) to), 0);
	ck_assert(serve_named_same(name, to));
	ck_assert(!memcmp(name + 8, named + 8, 7) && name[15] == 11);
	ck_assert_int_eq(serve_named_move(name, (struct sockaddr *) &in6),
			 -EAFNOSUPPORT);
	ck_assert(!serve_named_same(name, &in6));
	to6.sin6_addr.s6_addr[15] = 1;
	ck_assert(!serve_named_same(&in6, &to6));
	ck_assert_int_eq(serve_named_move(&in6, (struct sockaddr *) &to6), 0);
	ck_assert(serve_named_same(&in6, &to6));
	ck_assert_uint_eq(in6.sin6_scope_id, 9);
}

/* The maximum of bytes fits, with a session behind; one more is refused. */
TEST(full_data)
{
	static uint8_t bytes[SERVE_INLINE_MAX + 1];
	static uint8_t buf[SERVE_ANSWER_MAX + 1];
	struct serve_msg msg = { .type = SERVE_DATA,
				 .data = bytes,
				 .ident.size = SERVE_INLINE_MAX + 1 },
			 got;
	size_t len;

	bytes[SERVE_INLINE_MAX - 1] = 1;
	msg.len = msg.data_len = SERVE_INLINE_MAX;
	len = serve_encode(&msg, buf);
	ck_assert_uint_eq(len + SERVE_TAIL, SERVE_ANSWER_MAX);
	ck_assert_int_eq(serve_decode(buf, len, &got), 0);
	check_same(&msg, &got);
	/* the bytes may be in their place already */
	msg.data = buf + SERVE_DATA_HEAD;
	ck_assert_uint_eq(serve_encode(&msg, buf), len);
	ck_assert(!memcmp(msg.data, bytes, SERVE_INLINE_MAX));
	msg.len = ++msg.data_len;
	len = serve_encode(&msg, buf);
	ck_assert_int_eq(serve_decode(buf, len, &got), -EPROTO);
}

/* A full page has no room for another entry; each entry is decoded. */
TEST(full_page)
{
	struct serve_entry entry = { SERVE_FILE, 1, "0123456789", 10 }, back;
	struct serve_msg msg = { .type = SERVE_PAGE, .entries = page }, got;
	uint8_t buf[SERVE_MSG_MAX];
	unsigned added = 0, i;
	size_t len;

	while (!serve_entry_add(&entry, page, &msg.entries_len))
		entry.size = ++added + 1;
	ck_assert_uint_eq(added, SERVE_ENTRIES / 20);
	len = serve_encode(&msg, buf);
	ck_assert_uint_le(len + SERVE_TAIL, SERVE_MSG_MAX);
	ck_assert_int_eq(serve_decode(buf, len, &got), 0);
	for (i = 0; i < added; i++) {
		ck_assert_int_eq(serve_entry_next(&got.entries,
						  &got.entries_len, &back),
				 0);
		ck_assert_uint_eq(back.size, i + 1);
		ck_assert_int_eq(back.kind, SERVE_FILE);
		ck_assert_uint_eq(back.name_len, 10);
		ck_assert(!memcmp(back.name, "0123456789", 10));
	}
	ck_assert_int_eq(serve_entry_next(&got.entries, &got.entries_len,
					  &back),
			 -ENOENT);
}

static const struct serve_entry hostile[] = {
	{ SERVE_FILE, 0, "", 0 },
	{ SERVE_FILE, 0, ".", 1 },
	{ SERVE_DIR, 0, "..", 2 },
	{ SERVE_FILE, 0, "a/b", 3 },
	{ SERVE_FILE, 0, "/", 1 },
	{ SERVE_FILE, 0, "a\0b", 3 },
	{ 0, 0, "a", 1 },
	{ SERVE_KINDS, 0, "a", 1 },
	{ SERVE_DIR, SERVE_MODE + 1, "a", 1 },
};

/* A page with such an entry is refused as a whole, wherever the entry is. */
LOOP_TEST(hostile_entries, 0, 2 * sizeof(hostile) / sizeof(*hostile))
{
	const struct serve_entry good = { SERVE_FILE, 5, "good", 4 };
	struct serve_msg msg = { .type = SERVE_PAGE, .entries = page }, got;
	uint8_t buf[SERVE_MSG_MAX];

	if (_i % 2)
		ck_assert_int_eq(serve_entry_add(&good, page, &msg.entries_len),
				 0);
	ck_assert_int_eq(
		serve_entry_add(&hostile[_i / 2], page, &msg.entries_len), 0);
	ck_assert_int_eq(serve_decode(buf, serve_encode(&msg, buf), &got),
			 -EPROTO);
}

TEST(cut_entries)
{
	const struct serve_entry good = { SERVE_FILE, 5, "good", 4 };
	struct serve_msg msg = { .type = SERVE_PAGE, .entries = page }, got;
	uint8_t buf[SERVE_MSG_MAX];
	size_t len;

	serve_entry_add(&good, page, &msg.entries_len);
	while (--msg.entries_len) {
		len = serve_encode(&msg, buf);
		ck_assert_int_eq(serve_decode(buf, len, &got), -EPROTO);
	}
	/* a page without entries, after which others come */
	msg.cursor = 1;
	len = serve_encode(&msg, buf);
	ck_assert_int_eq(serve_decode(buf, len, &got), -EPROTO);
	msg.cursor = 0;
	/* entries of a page that could not be read */
	msg.entries_len = SERVE_ENTRY_HEAD + 4;
	msg.status = SERVE_IO;
	len = serve_encode(&msg, buf);
	ck_assert_int_eq(serve_decode(buf, len, &got), -EPROTO);
}

TEST(paths)
{
	char longest[SERVE_PATH_MAX + 2], name[SERVE_NAME_MAX + 2];
	size_t i;

	ck_assert(serve_path_valid("", 0));
	ck_assert(serve_path_valid("a", 1));
	ck_assert(serve_path_valid("a/...", 5));
	ck_assert(serve_path_valid(" /\n", 3));
	ck_assert(!serve_path_valid("..", 2));
	ck_assert(!serve_path_valid("a/..", 4));
	ck_assert(!serve_path_valid("../a", 4));
	ck_assert(!serve_path_valid("a/./b", 5));
	ck_assert(!serve_path_valid("/a", 2));
	ck_assert(!serve_path_valid("a/", 2));
	ck_assert(!serve_path_valid("a//b", 4));
	ck_assert(!serve_path_valid("a\0b", 3));
	for (i = 0; i < sizeof(longest); i++)
		longest[i] = i % 2 ? '/' : 'a';
	ck_assert(serve_path_valid(longest, SERVE_PATH_MAX));
	longest[SERVE_PATH_MAX - 1] = longest[SERVE_PATH_MAX] = 'a';
	ck_assert(!serve_path_valid(longest, SERVE_PATH_MAX + 1));
	memset(name, 'n', sizeof(name));
	ck_assert(serve_name_valid(name, SERVE_NAME_MAX));
	ck_assert(!serve_name_valid(name, SERVE_NAME_MAX + 1));
}

/* Names as they are shown on a terminal. */
TEST(shown_names)
{
	static const char *const names[][2] = {
		{ "plain name", "plain name" },
		{ "a\nb\033[2J", "a\\012b\\033[2J" },
		{ "back\\slash", "back\\134slash" },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
		{ "\xc2\x9b", "\\302\\233" }, /* a control character */
		{ "\xe2\x82", "\\342\\202" }, /* cut */
		{ "\xff\xc3(", "\\377\\303(" },
		{ "\x7f", "\\177" },
		{ "\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf",
		  "\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf" },
		/* longer forms of '/', U+07FF, U+FFFF */
		{ "\xc0\xaf", "\\300\\257" },
		{ "\xe0\x9f\xbf", "\\340\\237\\277" },
		{ "\xf0\x8f\xbf\xbf", "\\360\\217\\277\\277" },
		/* surrogates, and beyond the last character */
		{ "\xed\xa0\x80", "\\355\\240\\200" },
		{ "\xed\xbf\xbf", "\\355\\277\\277" },
		{ "\xf4\x90\x80\x80", "\\364\\220\\200\\200" },
		/* right-to-left override, mark, isolate; Arabic letter mark */
		{ "a\xe2\x80\xaegpj.exe", "a\\342\\200\\256gpj.exe" },
		{ "\xe2\x80\x8f", "\\342\\200\\217" },
		{ "\xe2\x81\xa6", "\\342\\201\\246" },
		{ "\xd8\x9c", "\\330\\234" },
		/* a line's end, no width, a tag */
		{ "\xe2\x80\xa8", "\\342\\200\\250" },
		{ "\xef\xbb\xbf", "\\357\\273\\277" },
		{ "\xf3\xa0\x81\xa1", "\\363\\240\\201\\241" },
	};
	unsigned i;
	char *shown;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		shown = path_shown(names[i][0], strlen(names[i][0]));
		ck_assert_str_eq(shown, names[i][1]);
		free(shown);
	}
}
