/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The messages between fi_mrrc_get and fi_mrrc_serve, and the checks of
 * messages from a peer. All functions are pure functions of their arguments,
 * without I/O.
 *
 * A message is one send. All numbers are little-endian:
 *
 *   offset 0  u16  bytes of the message, without a file's bytes behind it
 *          2  u8   version of the protocol
 *          3  u8   type
 *          4  u32  status, 0 in requests
 *          8  u64  id: answers repeat that of the request
 *         16       fields of the type
 *
 * The client sends requests. Each of HELLO, PROVE, OPEN, READ, SUM and LIST is
 * answered by one message: WELCOME to HELLO, PAGE to LIST, DATA to the others.
 * A client exposes a buffer for READ under the tag id, and the server makes one
 * conditional write to this buffer, which is empty if the status is not OK. If
 * a file is so small that a conditional write costs more than the file's bytes,
 * and the client asks for bytes of this length, all bytes of the file follow
 * the answer to OPEN; no bytes of larger files follow the answer to OPEN.
 *
 * A client that gets no place finds a WELCOME, whose status is the reason, in
 * the private data of the rejected connection.
 *
 * With a secret (serve/wire/secret.h) HELLO and WELCOME have a random number
 * each, and WELCOME has the server's proof. The client's proof is in its next
 * request, PROVE; before PROVE the server takes no other request.
 *
 * Over reliable datagrams a message is followed by 8 bytes, the session: a
 * random number that WELCOME gives, 0 in HELLO. HELLO and WELCOME end with the
 * sender's name, fi_getname(3). After WELCOME, the client exposes a buffer
 * under SERVE_TAG_CLIENT, and the server, at the first message in the session,
 * posts a conditional write under SERVE_TAG_SERVER. These two operations are
 * never matched: each ends with an error when the other side ends. A client
 * that has all its answers says BYE, and waits for the server's BYE: a server
 * that disconnects a client sends BYE.
 */
#ifndef SERVE_WIRE_H
#define SERVE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define SERVE_VERSION	6
#define SERVE_MAGIC	0x76725366695f6d6dULL
#define SERVE_MSG_MAX	8192
#define SERVE_HEAD	16
#define SERVE_PATH_MAX	4095 /* bytes */
#define SERVE_NAME_MAX	255
#define SERVE_MODE	0777
#define SERVE_PART_MIN	4096U
#define SERVE_PART_MAX	(64U << 20)
#define SERVE_PIPES_MAX 16
#define SERVE_SLOTS	8 /* files that a client has open at once */
#define SERVE_ID_MAX	(UINT64_MAX >> 1) /* bit 63 of a tag has another use */
#define SERVE_TAIL	8		  /* length of a session */
#define SERVE_NAMED_MAX 28		  /* bytes of a socket's address */
#define SERVE_NONCE	32
#define SERVE_PROOF	32

/* ids of requests for ranges are larger than these */
enum { SERVE_TAG_SERVER = 1, SERVE_TAG_CLIENT };

enum serve_type {
	SERVE_HELLO = 1,
	SERVE_WELCOME,
	SERVE_OPEN,
	SERVE_READ,
	SERVE_SUM,
	SERVE_LIST,
	SERVE_DATA,
	SERVE_PAGE,
	SERVE_BYE,
	SERVE_PROVE,
	SERVE_TYPES
};

enum serve_status {
	SERVE_OK,
	SERVE_NOENT, /* no such file or directory */
	/*
	 * the server's user, or with --others all users, may not read the file
	 */
	SERVE_ACCES,
	SERVE_LINK,	   /* a symbolic link is in the path, or its end */
	SERVE_IS_DIR,	   /* OPEN of a directory */
	SERVE_NOT_DIR,	   /* LIST of a file */
	SERVE_SPECIAL,	   /* neither a file nor a directory */
	SERVE_CHANGED,	   /* the file is not the one that was opened */
	SERVE_BUSY,	   /* the file was changed just now: try again */
	SERVE_IO,	   /* reading failed */
	SERVE_NO_RESOURCE, /* memory or descriptors are short */
	SERVE_ENDING,	   /* the server is about to end */
	SERVE_VERSION_NO,  /* WELCOME: only for the server's version */
	SERVE_FULL,	   /* WELCOME: all places are taken */
	SERVE_SHARE,	   /* WELCOME: the client's host has its share */
	SERVE_DENIED,	   /* WELCOME: the client is not served */
	SERVE_SECRET,	   /* WELCOME: the client has no secret */
	SERVE_STATUSES
};

/* Two reads with the same identity come from the same version of a file. */
struct serve_ident {
	uint64_t dev;
	uint64_t ino;
	uint64_t size;
	int64_t mtime_ns; /* since 1970 */
	int64_t ctime_ns;
	/* permissions, SERVE_MODE at most; with SERVE_IS_DIR the directory's */
	uint16_t mode;
};

/* A decoded message. Text points into the encoded message. */
struct serve_msg {
	enum serve_type type;
	enum serve_status status;
	uint64_t id;
	/* HELLO: what the client asks for; WELCOME: what it gets */
	uint32_t part; /* maximum bytes of a range */
	/* maximum number of requests that wait for an answer */
	uint32_t pipes;
	const uint8_t *name; /* serve_named_valid() */
	size_t name_len;     /* 0 over connections */
	/* SERVE_NONCE bytes, or NULL: the sender has no secret */
	const uint8_t *nonce;
	/* set with nonce in WELCOME, and in PROVE: SERVE_PROOF bytes */
	const uint8_t *proof;
	/* OPEN, READ, SUM, DATA */
	uint32_t slot;
	uint64_t off;
	/*
	 * DATA: number of bytes that the server wrote (answer to READ), hashed
	 * (answer to SUM), or sent behind the message (answer to OPEN)
	 */
	uint32_t len;
	struct serve_ident ident;
	uint64_t hash;	     /* hash of len bytes: XXH3, 64 bits */
	const uint8_t *data; /* DATA that answers OPEN: the bytes that follow */
	/* len, or 0 if no bytes follow the message */
	size_t data_len;
	/*
	 * LIST: position at which to continue, 0 at first; PAGE: the next
	 * position, 0 at the end
	 */
	uint64_t cursor;
	/* OPEN, LIST: relative, "" is the served directory itself */
	const char *path;
	size_t path_len;
	/*
	 * PAGE: read by serve_entry_next(); only the last page may have no
	 * entries
	 */
	const uint8_t *entries;
	size_t entries_len;
};

enum serve_kind {
	SERVE_FILE = 1,
	SERVE_DIR,
	SERVE_OTHER,   /* is not served */
	SERVE_SYMLINK, /* is not served, either */
	SERVE_KINDS
};

struct serve_entry {
	enum serve_kind kind;
	uint64_t size;	  /* size of a file, or permissions of a directory */
	const char *name; /* not terminated */
	size_t name_len;
};

#define SERVE_ENTRY_HEAD 10
#define SERVE_PAGE_HEAD	 (SERVE_HEAD + 8)
#define SERVE_ENTRIES	 (SERVE_MSG_MAX - SERVE_PAGE_HEAD - SERVE_TAIL)
#define SERVE_DATA_HEAD	 (SERVE_HEAD + 64)
/*
 * Maximum number of a file's bytes that may follow DATA, and the maximum length
 * of a message with such bytes
 */
#define SERVE_INLINE_MAX (64U << 10)
#define SERVE_ANSWER_MAX (SERVE_DATA_HEAD + SERVE_INLINE_MAX + SERVE_TAIL)

/*
 * Encodes a message and returns its length. buf has SERVE_MSG_MAX bytes, of
 * which SERVE_TAIL bytes stay free, or room for a file's bytes that follow the
 * message; a file's bytes, or a page's entries, may be in their place in buf
 * already. The message must be one that serve_decode() accepts.
 */
size_t serve_encode(const struct serve_msg *msg, uint8_t *buf);

/*
 * Checks and decodes a whole message. Returns -EPROTO for an invalid message,
 * -EPROTONOSUPPORT for a message of another version, of which only id is set.
 */
int serve_decode(const uint8_t *buf, size_t len, struct serve_msg *msg);

/* Appends the session to a message of len bytes; returns the length of both. */
size_t serve_seal(uint8_t *buf, size_t len, uint64_t session);

/*
 * Removes the session's number from the end of the *len bytes at buf; *len is
 * then the message's length.
 */
int serve_unseal(const uint8_t *buf, size_t *len, uint64_t *session);

/*
 * Appends an entry to a page's entries, *len bytes of buf so far. -ENOSPC: the
 * page has no room.
 */
int serve_entry_add(const struct serve_entry *entry, uint8_t *buf, size_t *len);

/*
 * Reads the first entry, and advances *entries beyond it. Returns -ENOENT at
 * the end, -EPROTO for an invalid entry, which messages that serve_decode()
 * accepts do not have.
 */
int serve_entry_next(const uint8_t **entries, size_t *len,
		     struct serve_entry *entry);

/* A name within a directory: not empty, no "." or "..", no '/' or NUL. */
bool serve_name_valid(const char *name, size_t len);

/* Is the path a sequence of valid names with '/' between them, or ""? */
bool serve_path_valid(const char *path, size_t len);

/*
 * Is the name an address of IPv4 or IPv6 with a port, and, unless it is a
 * server's, with a host?
 */
bool serve_named_valid(const void *name, size_t len, bool server);

/* Do both names have the same host and port? Both names are valid. */
bool serve_named_same(const void *name, const void *other);

/* Gives name the host and port of @to, an address of its family. */
int serve_named_move(void *name, const struct sockaddr *to);

/* The meaning of a status, as text. */
const char *serve_status_text(enum serve_status status);

#endif /* SERVE_WIRE_H */
