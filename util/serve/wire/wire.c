/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages, encoded and decoded (serve/wire/wire.h).
 */
#include "config.h"
#include "serve/wire/wire.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

/* ---- numbers ------------------------------------------------------------- */

/*
 * The position of the next field; @bad is set once a field was beyond the end.
 */
struct cursor {
	const uint8_t *at;
	size_t left;
	bool bad;
};

static void get(struct cursor *cur, void *to, size_t len)
{
	if (cur->left < len) {
		memset(to, 0, len);
		cur->bad = true;
		return;
	}
	memcpy(to, cur->at, len);
	cur->at += len;
	cur->left -= len;
}

static uint16_t get16(struct cursor *cur)
{
	uint16_t value;

	get(cur, &value, sizeof(value));
	return le16toh(value);
}

static uint32_t get32(struct cursor *cur)
{
	uint32_t value;

	get(cur, &value, sizeof(value));
	return le32toh(value);
}

static uint64_t get64(struct cursor *cur)
{
	uint64_t value;

	get(cur, &value, sizeof(value));
	return le64toh(value);
}

static uint8_t *put16(uint8_t *at, uint16_t value)
{
	value = htole16(value);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static uint8_t *put32(uint8_t *at, uint32_t value)
{
	value = htole32(value);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static uint8_t *put64(uint8_t *at, uint64_t value)
{
	value = htole64(value);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

/* ---- names --------------------------------------------------------------- */

bool serve_name_valid(const char *name, size_t len)
{
	if (!len || len > SERVE_NAME_MAX || memchr(name, '/', len) ||
	    memchr(name, 0, len))
		return false;
	return !(len == 1 && name[0] == '.') &&
	       !(len == 2 && name[0] == '.' && name[1] == '.');
}

bool serve_path_valid(const char *path, size_t len)
{
	const char *end = path + len, *slash;

	if (!len)
		return true;
	if (len > SERVE_PATH_MAX)
		return false;
	while ((slash = memchr(path, '/', end - path))) {
		if (!serve_name_valid(path, slash - path))
			return false;
		path = slash + 1;
	}
	return serve_name_valid(path, end - path);
}

/* ---- entries of a page --------------------------------------------------- */

int serve_entry_add(const struct serve_entry *entry, uint8_t *buf, size_t *len)
{
	const size_t need = SERVE_ENTRY_HEAD + entry->name_len;
	uint8_t *at = buf + *len;

	if (need > SERVE_ENTRIES - *len)
		return -ENOSPC;
	*at++ = (uint8_t) entry->kind;
	at = put64(at, entry->size);
	*at++ = (uint8_t) entry->name_len;
	memcpy(at, entry->name, entry->name_len);
	*len += need;
	return 0;
}

int serve_entry_next(const uint8_t **entries, size_t *len,
		     struct serve_entry *entry)
{
	struct cursor cur = { .at = *entries, .left = *len };
	struct serve_entry got = { 0 };
	uint8_t kind, name_len;

	if (!*len)
		return -ENOENT;
	get(&cur, &kind, sizeof(kind));
	got.size = get64(&cur);
	get(&cur, &name_len, sizeof(name_len));
	if (cur.bad || cur.left < name_len || !kind || kind >= SERVE_KINDS ||
	    (kind == SERVE_DIR && got.size > SERVE_MODE))
		return -EPROTO;
	got.kind = kind;
	got.name = (const char *) cur.at;
	got.name_len = name_len;
	if (!serve_name_valid(got.name, got.name_len))
		return -EPROTO;
	*entries = cur.at + name_len;
	*len = cur.left - name_len;
	*entry = got;
	return 0;
}

static bool entries_valid(const uint8_t *entries, size_t len)
{
	struct serve_entry entry;
	int ret;

	while (!(ret = serve_entry_next(&entries, &len, &entry)))
		;
	return ret == -ENOENT;
}

/* ---- messages ------------------------------------------------------------ */

static uint8_t *put_ident(uint8_t *at, const struct serve_ident *ident)
{
	at = put64(at, ident->dev);
	at = put64(at, ident->ino);
	at = put64(at, ident->size);
	at = put64(at, (uint64_t) ident->mtime_ns);
	return put64(at, (uint64_t) ident->ctime_ns);
}

static void get_ident(struct cursor *cur, struct serve_ident *ident)
{
	ident->dev = get64(cur);
	ident->ino = get64(cur);
	ident->size = get64(cur);
	ident->mtime_ns = (int64_t) get64(cur);
	ident->ctime_ns = (int64_t) get64(cur);
}

static uint8_t *put_range(uint8_t *at, const struct serve_msg *msg)
{
	at = put16(at, (uint16_t) msg->slot);
	at = put16(at, msg->ident.mode); /* 0 in requests */
	at = put32(at, msg->len);
	return put64(at, msg->off);
}

static void get_range(struct cursor *cur, struct serve_msg *msg)
{
	msg->slot = get16(cur);
	msg->ident.mode = get16(cur);
	msg->len = get32(cur);
	msg->off = get64(cur);
}

static uint8_t *put_text(uint8_t *at, const void *text, size_t len)
{
	if (len && at != text)
		memcpy(at, text, len);
	return at + len;
}

static uint8_t *put_nonce(uint8_t *at, const struct serve_msg *msg)
{
	at = put32(at, !!msg->nonce);
	if (!msg->nonce)
		return at;
	at = put_text(at, msg->nonce, SERVE_NONCE);
	return msg->type == SERVE_WELCOME ?
		       put_text(at, msg->proof, SERVE_PROOF) :
		       at;
}

size_t serve_encode(const struct serve_msg *msg, uint8_t *buf)
{
	uint8_t *at = buf + SERVE_HEAD;

	switch (msg->type) {
	case SERVE_HELLO:
	case SERVE_WELCOME:
		at = put64(at, SERVE_MAGIC);
		at = put32(at, msg->part);
		at = put32(at, msg->pipes);
		at = put_nonce(at, msg);
		at = put_text(at, msg->name, msg->name_len);
		break;
	case SERVE_OPEN:
		at = put_range(at, msg);
		at = put_text(at, msg->path, msg->path_len);
		break;
	case SERVE_READ:
	case SERVE_SUM:
		at = put_range(at, msg);
		break;
	case SERVE_LIST:
		at = put64(at, msg->cursor);
		at = put_text(at, msg->path, msg->path_len);
		break;
	case SERVE_DATA:
		at = put_range(at, msg);
		at = put64(at, msg->hash);
		at = put_ident(at, &msg->ident);
		break;
	case SERVE_PAGE:
		at = put64(at, msg->cursor);
		at = put_text(at, msg->entries, msg->entries_len);
		break;
	case SERVE_PROVE:
		at = put_text(at, msg->proof, SERVE_PROOF);
		break;
	case SERVE_BYE:
		break;
	default:
		return 0;
	}
	put16(buf, (uint16_t) (at - buf));
	buf[2] = SERVE_VERSION;
	buf[3] = (uint8_t) msg->type;
	put32(buf + 4, msg->status);
	put64(buf + 8, msg->id);
	return (size_t) (put_text(at, msg->data, msg->data_len) - buf);
}

static bool limits_valid(const struct serve_msg *msg)
{
	return msg->part >= SERVE_PART_MIN && msg->part <= SERVE_PART_MAX &&
	       msg->pipes && msg->pipes <= SERVE_PIPES_MAX;
}

static bool range_valid(const struct serve_msg *msg)
{
	return msg->slot < SERVE_SLOTS && msg->len <= SERVE_PART_MAX &&
	       msg->ident.mode <= SERVE_MODE &&
	       msg->off <= INT64_MAX - SERVE_PART_MAX;
}

/* Takes the rest of the message as path. */
static void get_path(struct cursor *cur, struct serve_msg *msg)
{
	msg->path = (const char *) cur->at;
	msg->path_len = cur->left;
	cur->left = 0;
}

static const uint8_t *take(struct cursor *cur, size_t len)
{
	const uint8_t *at = cur->at;

	if (cur->left < len) {
		cur->bad = true;
		return NULL;
	}
	cur->at += len;
	cur->left -= len;
	return at;
}

static void get_nonce(struct cursor *cur, struct serve_msg *msg)
{
	const uint32_t secret = get32(cur);

	cur->bad |= secret > 1;
	if (!secret)
		return;
	msg->nonce = take(cur, SERVE_NONCE);
	if (msg->type == SERVE_WELCOME)
		msg->proof = take(cur, SERVE_PROOF);
}

/* Reads the rest of a message, which is a name or empty. */
static bool get_named(struct cursor *cur, struct serve_msg *msg)
{
	msg->name = cur->at;
	msg->name_len = cur->left;
	cur->left = 0;
	return !msg->name_len || serve_named_valid(msg->name, msg->name_len,
						   msg->type == SERVE_WELCOME);
}

static bool get_request(struct cursor *cur, struct serve_msg *msg)
{
	if (msg->status != SERVE_OK)
		return false;
	if (msg->type == SERVE_HELLO) {
		cur->bad |= get64(cur) != SERVE_MAGIC;
		msg->part = get32(cur);
		msg->pipes = get32(cur);
		get_nonce(cur, msg);
		return get_named(cur, msg) && limits_valid(msg);
	}
	if (msg->type == SERVE_PROVE) {
		msg->proof = take(cur, SERVE_PROOF);
		return true;
	}
	if (msg->type == SERVE_LIST) {
		msg->cursor = get64(cur);
		get_path(cur, msg);
		return msg->cursor <= INT64_MAX &&
		       serve_path_valid(msg->path, msg->path_len);
	}
	get_range(cur, msg);
	if (msg->type == SERVE_OPEN) {
		get_path(cur, msg);
		if (msg->len > SERVE_INLINE_MAX ||
		    !serve_path_valid(msg->path, msg->path_len))
			return false;
	}
	return range_valid(msg) && !msg->ident.mode;
}

/*
 * Does an answer have bytes beyond the end of the file, whose size the answer
 * tells?
 */
static bool beyond_end(const struct serve_msg *msg)
{
	return msg->len && (msg->off > msg->ident.size ||
			    msg->len > msg->ident.size - msg->off);
}

/* Checks that the bytes announced by the message follow it, and no others. */
static bool get_data(const struct cursor *cur, struct serve_msg *msg)
{
	msg->data = cur->at;
	return !msg->data_len ||
	       (msg->data_len == msg->len && msg->len <= SERVE_INLINE_MAX);
}

static bool get_answer(struct cursor *cur, struct serve_msg *msg)
{
	if (msg->type == SERVE_WELCOME) {
		cur->bad |= get64(cur) != SERVE_MAGIC;
		msg->part = get32(cur);
		msg->pipes = get32(cur);
		get_nonce(cur, msg);
		if (!get_named(cur, msg))
			return false;
		return msg->status == SERVE_OK ?
			       limits_valid(msg) :
			       !msg->part && !msg->pipes && !msg->name_len &&
				       !msg->nonce;
	}
	if (msg->type == SERVE_BYE)
		return msg->status == SERVE_OK;
	if (msg->type == SERVE_PAGE) {
		msg->cursor = get64(cur);
		msg->entries = cur->at;
		msg->entries_len = cur->left;
		cur->left = 0;
		return msg->cursor <= INT64_MAX &&
		       msg->entries_len <= SERVE_ENTRIES &&
		       entries_valid(msg->entries, msg->entries_len) &&
		       (msg->status == SERVE_OK || !msg->entries_len) &&
		       (msg->entries_len || !msg->cursor);
	}
	get_range(cur, msg);
	msg->hash = get64(cur);
	get_ident(cur, &msg->ident);
	return get_data(cur, msg) && range_valid(msg) &&
	       (msg->status == SERVE_OK || !msg->len) &&
	       msg->ident.size <= INT64_MAX && !beyond_end(msg);
}

static bool is_request(enum serve_type type)
{
	return type != SERVE_WELCOME && type != SERVE_DATA &&
	       type != SERVE_PAGE && type != SERVE_BYE;
}

int serve_decode(const uint8_t *buf, size_t len, struct serve_msg *msg)
{
	struct cursor cur = { .at = buf, .left = len };
	struct serve_msg got = { 0 };
	uint8_t version, type;
	uint32_t status;
	size_t own;
	bool valid;

	if (len < SERVE_HEAD || len > SERVE_ANSWER_MAX)
		return -EPROTO;
	own = get16(&cur);
	if (own < SERVE_HEAD || own > SERVE_MSG_MAX || own > len)
		return -EPROTO;
	cur.left -= len - own;
	get(&cur, &version, sizeof(version));
	get(&cur, &type, sizeof(type));
	status = get32(&cur);
	got.id = get64(&cur);
	if (version != SERVE_VERSION) {
		*msg = got;
		return -EPROTONOSUPPORT;
	}
	if (!type || type >= SERVE_TYPES || status >= SERVE_STATUSES ||
	    got.id > SERVE_ID_MAX || (own != len && type != SERVE_DATA))
		return -EPROTO;
	got.data_len = len - own;
	got.type = type;
	got.status = status;
	valid = is_request(got.type) ? get_request(&cur, &got) :
				       get_answer(&cur, &got);
	if (!valid || cur.bad || cur.left)
		return -EPROTO;
	*msg = got;
	return 0;
}

/* ---- reliable datagrams -------------------------------------------------- */

size_t serve_seal(uint8_t *buf, size_t len, uint64_t session)
{
	return (size_t) (put64(buf + len, session) - buf);
}

int serve_unseal(const uint8_t *buf, size_t *len, uint64_t *session)
{
	struct cursor cur;

	if (*len < SERVE_TAIL)
		return -EPROTO;
	*len -= SERVE_TAIL;
	cur = (struct cursor){ .at = buf + *len, .left = SERVE_TAIL };
	*session = get64(&cur);
	return 0;
}

/* The host part of an address, without its port: 4 or 16 bytes. */
static void *host_of(struct sockaddr_in6 *addr)
{
	return addr->sin6_family == AF_INET ?
		       (void *) &((struct sockaddr_in *) addr)->sin_addr :
		       &addr->sin6_addr;
}

static size_t host_len(const struct sockaddr_in6 *addr)
{
	return addr->sin6_family == AF_INET ? sizeof(struct in_addr) :
					      sizeof(struct in6_addr);
}

/* Copies a name, as names may lie at any offset in a message. */
static size_t copy_named(const void *name, size_t len, struct sockaddr_in6 *to)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, name, len);
	return to->sin6_family == AF_INET  ? sizeof(struct sockaddr_in) :
	       to->sin6_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
					     0;
}

static size_t named_len(const void *name)
{
	struct sockaddr_in6 addr;

	return copy_named(name, sizeof(struct sockaddr), &addr);
}

bool serve_named_valid(const void *name, size_t len, bool server)
{
	static const struct in6_addr any;
	struct sockaddr_in6 addr;

	if (len < sizeof(struct sockaddr) || len > sizeof(addr) ||
	    copy_named(name, len, &addr) != len || !addr.sin6_port)
		return false;
	return server || memcmp(host_of(&addr), &any, host_len(&addr));
}

bool serve_named_same(const void *name, const void *other)
{
	struct sockaddr_in6 a, b;

	if (copy_named(name, named_len(name), &a) !=
		    copy_named(other, named_len(other), &b) ||
	    a.sin6_port != b.sin6_port)
		return false;
	return !memcmp(host_of(&a), host_of(&b), host_len(&a));
}

int serve_named_move(void *name, const struct sockaddr *to)
{
	struct sockaddr_in6 addr, dest;

	copy_named(name, named_len(name), &addr);
	if (addr.sin6_family != to->sa_family)
		return -EAFNOSUPPORT;
	copy_named(to, named_len(to), &dest);
	addr.sin6_port = dest.sin6_port;
	memcpy(host_of(&addr), host_of(&dest), host_len(&dest));
	memcpy(name, &addr, named_len(name));
	return 0;
}

const char *serve_status_text(enum serve_status status)
{
	static const char *const text[] = {
		[SERVE_OK] = "no error",
		[SERVE_NOENT] = "no such file or directory",
		[SERVE_ACCES] = "the server may not read it, or not all users "
				"may",
		[SERVE_LINK] = "symbolic links are not followed",
		[SERVE_IS_DIR] = "a directory",
		[SERVE_NOT_DIR] = "not a directory",
		[SERVE_SPECIAL] = "neither a regular file nor a directory",
		[SERVE_CHANGED] = "it was changed while it was read",
		[SERVE_BUSY] = "it is being written to",
		[SERVE_IO] = "the server cannot read it",
		[SERVE_NO_RESOURCE] = "the server lacks memory or descriptors",
		[SERVE_ENDING] = "the server is ending",
		[SERVE_VERSION_NO] = "the server is of another version",
		[SERVE_FULL] = "the server is full: try again later",
		[SERVE_SHARE] = "the server has enough clients of this host or "
				"user: try again later",
		[SERVE_DENIED] = "the server does not serve this host or user",
		[SERVE_SECRET] = "the server serves only those that prove its "
				 "secret: see --secret",
	};

	return status < SERVE_STATUSES ? text[status] : "unknown";
}
