/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests with any bytes that the decoder of fi_mrrc_serve and fi_mrrc_get either
 * refuses the bytes, or makes a message whose fields are within their limits,
 * and which is encoded to the same bytes.
 */
#include "config.h"
#include "serve/wire/wire.h"
#include "test/fuzz/fuzz.h"

const char fuzz_corpus[] = "util/serve/test/corpus_wire";
const bool fuzz_each_byte = true;

static void check_entries(const struct serve_msg *msg)
{
	const uint8_t *at = msg->entries;
	struct serve_entry entry;
	size_t len = msg->entries_len;
	uint8_t buf[SERVE_MSG_MAX];
	size_t made = 0;
	int ret;

	while (!(ret = serve_entry_next(&at, &len, &entry))) {
		must(serve_name_valid(entry.name, entry.name_len));
		must(!serve_entry_add(&entry, buf, &made));
	}
	must(ret == -ENOENT && made == msg->entries_len);
	must(!made || !memcmp(buf, msg->entries, made));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t buf[SERVE_ANSWER_MAX];
	struct serve_msg msg;
	int ret;

	ret = serve_decode(data, size, &msg);
	must(!ret || ret == -EPROTO || ret == -EPROTONOSUPPORT);
	if (ret)
		return 0;
	must(msg.slot < SERVE_SLOTS && msg.len <= SERVE_PART_MAX);
	must(msg.part <= SERVE_PART_MAX && msg.pipes <= SERVE_PIPES_MAX);
	must(msg.off <= INT64_MAX && msg.ident.size <= INT64_MAX);
	must(msg.cursor <= INT64_MAX && msg.id <= SERVE_ID_MAX);
	if (msg.path)
		must(serve_path_valid(msg.path, msg.path_len));
	if (msg.entries)
		check_entries(&msg);
	must(!msg.data_len ||
	     (msg.type == SERVE_DATA && msg.data_len == msg.len));
	must(msg.data_len <= SERVE_INLINE_MAX);
	must(msg.type != SERVE_OPEN || msg.len <= SERVE_INLINE_MAX);
	if (msg.name_len)
		must(serve_named_valid(msg.name, msg.name_len,
				       msg.type == SERVE_WELCOME));
	must(!msg.nonce || msg.type == SERVE_HELLO ||
	     (msg.type == SERVE_WELCOME && !msg.status && msg.proof));
	must(msg.type != SERVE_PROVE || msg.proof);
	must(serve_encode(&msg, buf) == size && !memcmp(buf, data, size));
	return 0;
}
