/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reactions of fi_mrrc_get to a server's answers, which these tests make up.
 */
#include "config.h"
#include "test_serve.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "serve/client/get.h"
#include "serve/wire/path.h"

static const struct get_options options = { .quiet = true, .no_sync = true };
static struct get get;

/* Begins a fetch of a file to this name. */
static struct fetch *begin_as(const char *name)
{
	struct fetch *fetch = &get.fetch[0];

	fetch_begin(&get, fetch, strdup("file"), strdup(name));
	ck_assert_int_eq(local_find(out, name, &fetch->local), 0);
	fetch->state = FETCH_OPEN;
	return fetch;
}

static struct fetch *begin(void)
{
	memset(&get, 0, sizeof(get));
	get.options = &options;
	get.tree.dir = out;
	get.renamed = -1;
	return begin_as("new");
}

/* Makes the answer to a request for len bytes at off. */
static struct asked answered(const struct serve_msg *msg, uint64_t off,
			     uint32_t len)
{
	struct session_pipe *pipe = &get.session.pipe[get.count++];
	static uint8_t bytes[SERVE_PART_MIN];

	pipe->taken = pipe->answered = true;
	pipe->answer = *msg;
	pipe->answer.type = SERVE_DATA;
	pipe->len = len;
	pipe->writes = msg->len;
	pipe->written = msg->len;
	pipe->data = bytes;
	return (struct asked){ pipe, &get.fetch[0], get.fetch[0].phase, off,
			       len };
}

TEST_CASE(fetch, make_files, remove_files);

/* An empty file replaces another file: its answer has no bytes and no hash. */
TEST(empty_in_place)
{
	const struct serve_msg msg = { .len = 0 };
	struct asked asked;
	struct stat st;

	write_file(out, "new", "what is here");
	begin();
	asked = answered(&msg, 0, 0);
	ck_assert_int_eq(fetch_handle(&get, &asked), 0);
	ck_assert_int_eq(get.fetch[0].state, FETCH_NONE);
	ck_assert_uint_eq(get.progress.files, 1);
	ck_assert_int_eq(fstatat(out, "new", &st, 0), 0);
	ck_assert_int_eq(st.st_size, 0);
}

/* An existing file gets the original's permissions, if these are kept. */
LOOP_TEST(same_file_perms, 0, 3)
{
	static const struct get_options dry = { .quiet = true,
						.dry_run = true };
	struct serve_msg msg = { .len = 0, .ident.mode = 0640 };
	struct asked asked;
	struct stat st;

	write_file(out, "new", "what is here");
	ck_assert_int_eq(fchmodat(out, "new", 0600, 0), 0);
	ck_assert_int_eq(fstatat(out, "new", &st, 0), 0);
	begin();
	get.perms.keep = _i > 0;
	if (_i == 2)
		get.options = &dry;
	path_ident(&st, &msg.ident);
	msg.ident.mode = 0640;
	asked = answered(&msg, 0, 0);
	ck_assert_int_eq(fetch_handle(&get, &asked), 0);
	ck_assert_uint_eq(get.progress.same, 1);
	ck_assert_int_eq(fstatat(out, "new", &st, 0), 0);
	ck_assert_int_eq(st.st_mode & 07777, _i == 1 ? 0640 : 0600);
}

/* A directory with several fetched files is synced once. */
TEST(directory_once)
{
	static const struct get_options synced = { .quiet = true };
	const struct serve_msg msg = { .len = 0 };
	struct asked asked;
	unsigned i;

	begin();
	get.options = &synced;
	fsyncs = 0;
	for (i = 0; i < 3; i++) {
		if (i)
			begin_as(i == 1 ? "b" : "c");
		asked = answered(&msg, 0, 0);
		ck_assert_int_eq(fetch_handle(&get, &asked), 0);
		ck_assert_uint_eq(fsyncs, i + 1);
	}
	ck_assert_int_eq(fetch_sync(&get), 0);
	ck_assert_uint_eq(fsyncs, 4);
	ck_assert_int_eq(fetch_sync(&get), 0);
	ck_assert_uint_eq(fsyncs, 4);
}

/* A file ends with the first error; answers that follow are dropped. */
TEST(errors_in_a_row)
{
	const struct serve_msg msg = { .status = SERVE_IO };
	struct fetch *fetch = begin();
	struct asked asked[3];
	unsigned i;

	ck_assert_int_eq(local_begin(&fetch->local), 0);
	fetch->state = FETCH_READ;
	for (i = 0; i < 3; i++)
		asked[i] = answered(&msg, i * SERVE_PART_MIN, SERVE_PART_MIN);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(fetch_handle(&get, &asked[i]), 0);
	ck_assert_uint_eq(get.failed, 1);
}
