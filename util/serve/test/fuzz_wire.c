/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whatever bytes a peer sends, the decoder of fi_mrrc_serve and fi_mrrc_get says
 * no, or makes a message whose fields are within their limits, and that is
 * encoded to the same bytes.
 *
 * With libFuzzer: clang -fsanitize=fuzzer,address,undefined -DSERVE_LIBFUZZER.
 * Without: a program that reads the files named as arguments, or the corpus,
 * each also with every byte changed in turn.
 */
#include "config.h"
#include "serve/wire/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define must(condition)                                              \
	do {                                                         \
		if (!(condition)) {                                  \
			fprintf(stderr, "not so: %s\n", #condition); \
			abort();                                     \
		}                                                    \
	} while (0)

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

#ifndef SERVE_LIBFUZZER

#include <glob.h>

static void fuzz_file(const char *name)
{
	static uint8_t data[65536];
	FILE *file = fopen(name, "rb");
	uint8_t *exact, byte;
	unsigned value;
	size_t size, i;

	must(file);
	size = fread(data, 1, sizeof(data), file);
	fclose(file);
	/* a copy of this length, so that AddressSanitizer sees its end */
	exact = malloc(size ? size : 1);
	must(exact);
	memcpy(exact, data, size);
	LLVMFuzzerTestOneInput(exact, size);
	for (i = 0; i < size; i++) {
		byte = exact[i];
		for (value = 0; value < 256; value++) {
			exact[i] = (uint8_t) value;
			LLVMFuzzerTestOneInput(exact, size);
		}
		exact[i] = byte;
	}
	free(exact);
}

int main(int argc, char **argv)
{
	const char *src = getenv("srcdir");
	char pattern[4096];
	glob_t found;
	size_t i;

	if (argc > 1) {
		for (i = 1; i < (size_t) argc; i++)
			fuzz_file(argv[i]);
		return EXIT_SUCCESS;
	}
	snprintf(pattern, sizeof(pattern), "%s/util/serve/test/corpus_wire/*",
		 src ? src : ".");
	must(!glob(pattern, 0, NULL, &found));
	for (i = 0; i < found.gl_pathc; i++)
		fuzz_file(found.gl_pathv[i]);
	printf("%zu inputs\n", found.gl_pathc);
	globfree(&found);
	return EXIT_SUCCESS;
}

#endif
