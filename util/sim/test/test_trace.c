/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sim/trace: accepted traces, refused traces and the messages, written traces.
 */
#include "config.h"
#include "test/case.h"
#include "sim/trace.h"

#include <fcntl.h>
#include <lzma.h>
#include <sys/stat.h>

/* omitted fields are 0 */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define H   "time_us,addr,len\n"
#define P63 "9223372036854775808" /* 2^63 */

static char err[SIM_ERR_MAX];

static int read_mem(const void *data, size_t len, struct sim_trace *trace)
{
	FILE *file = fmemopen((void *) data, len, "rb");
	int ret;

	ck_assert_ptr_nonnull(file);
	err[0] = '\0';
	ret = sim_trace_read_file(file, "dir/t.csv.xz", err, sizeof(err),
				  trace);
	fclose(file);
	return ret;
}

/* Compresses data by xz into a buffer to be freed. */
static uint8_t *compress(const void *data, size_t len, size_t *out_len)
{
	size_t max = lzma_stream_buffer_bound(len), pos = 0;
	uint8_t *out = malloc(max);

	ck_assert_ptr_nonnull(out);
	ck_assert_int_eq(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL,
						 data, len, out, &pos, max),
			 LZMA_OK);
	*out_len = pos;
	return out;
}

/* ---- what is read -------------------------------------------------------- */

static const struct {
	const char *text;
	struct sim_req req[3]; /* a request without a length ends the list */
	uint32_t procs;
} good[] = {
	{ H "1,4096,10\n", { { 1, 4096, 10, 0, 1 } }, 1 },
	{ H "1,4096,10", { { 1, 4096, 10, 0, 1 } }, 1 },
	{ "1,4096,10\n1,0,5\n",
	  { { 1, 4096, 10, 0, 1 }, { 1, 0, 5, 0, 1 } },
	  1 },
	{ "time_us,addr,len\r\n1,2,3\r\n\r\n4,5,6\r\n",
	  { { 1, 2, 3, 0, 1 }, { 4, 5, 6, 0, 1 } },
	  1 },
	{ "\xef\xbb\xbf" H "1,2,3\n", { { 1, 2, 3, 0, 1 } }, 1 },
	{ "# made by hand\n\n \t\n" H " # another\n1,2,3\n#\n",
	  { { 1, 2, 3, 0, 1 } },
	  1 },
	{ H " 1 ,\t2, 3 \n", { { 1, 2, 3, 0, 1 } }, 1 },
	{ H "0x10,0xaB,0XfF\n", { { 16, 171, 255, 0, 1 } }, 1 },
	{ H "0,0,010\n", { { 0, 0, 10, 0, 1 } }, 1 },
	{ "len,op,access,proc,addr,name,time_us\n"
	  "3,put,r,2,1,a b,0\n4,,w,0,5,\x80,6\n9,?,ro,1,8,,7\n",
	  { { 0, 1, 3, 2, 0 }, { 6, 5, 4, 0, 1 }, { 7, 8, 9, 1, 0 } },
	  3 },
	{ "time_us,addr,len,access\n1,2,3,rw\n", { { 1, 2, 3, 0, 1 } }, 1 },
	{ "time_us,addr,len,proc\n1,2,3,65535\n",
	  { { 1, 2, 3, 65535, 1 } },
	  65536 },
	{ H "18446744073709551615,9223372036854775807,1\n",
	  { { UINT64_MAX, INT64_MAX, 1, 0, 1 } },
	  1 },
	{ H "0,0," P63 "\n", { { 0, 0, SIM_ADDR_MAX, 0, 1 } }, 1 },
	/* held for 2 us, for 0 us, and beyond the recording */
	{ "time_us,addr,len,end_ns,thread,site\n0,1,9,2999,7,0x40\n"
	  "2,1,9,2000,4294967295,0\n3,1,9,2999,0,18446744073709551615\n",
	  { { 0, 1, 9, 0, 1, 7, 0x40, 2 },
	    { 2, 1, 9, 0, 1, UINT32_MAX, 0, 0 },
	    { 3, 1, 9, 0, 1, 0, UINT64_MAX, SIM_ENDLESS } },
	  1 },
	{ "time_us,addr,len,end_ns\n0,1,9,0\n0,1,9,1\n",
	  { { 0, 1, 9, 0, 1, 0, 0, SIM_ENDLESS }, { 0, 1, 9, 0, 1 } },
	  1 },
	{ "end_ns,time_us,addr,len\n0,18446744073709551615,1,9\n",
	  { { UINT64_MAX, 1, 9, 0, 1, 0, 0, SIM_ENDLESS } },
	  1 },
	{ "end_ns,time_us,addr,len\n18446744073709551615,1,2,3\n",
	  { { 1, 2, 3, 0, 1, 0, 0, 18446744073709550 } },
	  1 },
};

static void check_good(int i, const struct sim_trace *trace)
{
	const struct sim_req *req = good[i].req;
	size_t cnt = 0;

	while (cnt < 3 && req[cnt].len)
		cnt++;
	ck_assert_uint_eq(trace->count, cnt);
	ck_assert_mem_eq(trace->req, req, cnt * sizeof(*req));
	ck_assert_uint_eq(trace->procs, good[i].procs);
	ck_assert_str_eq(trace->name, "t");
	ck_assert(sim_trace_valid(trace));
}

TEST_CASE(read, NULL, NULL);

EACH_TEST(test_good, good)
{
	const char *text = good[_i].text;
	struct sim_trace trace;
	uint8_t *xz;
	size_t len;

	ck_assert_int_eq(read_mem(text, strlen(text), &trace), 0);
	check_good(_i, &trace);
	sim_trace_fini(&trace);
	/* a byte order mark is not looked for in xz */
	if ((uint8_t) *text == 0xef)
		return;
	xz = compress(text, strlen(text), &len);
	ck_assert_int_eq(read_mem(xz, len, &trace), 0);
	check_good(_i, &trace);
	sim_trace_fini(&trace);
	free(xz);
}

/* ---- what is refused ----------------------------------------------------- */

static const struct {
	const char *text;
	const char *cause;
	int ret;
} bad[] = {
	{ "\n", ": no requests in it", -EINVAL },
	{ H "# 1,2,3\n", ": no requests in it", -EINVAL },
	{ "time_us,addr\n1,2\n", ":1: no column len", -EINVAL },
	{ "addr,len,Time_us\n", ":1: no column time_us", -EINVAL },
	{ "hello\n", ":1: no column time_us", -EINVAL },
	{ "time_us,addr,len,addr\n", ":1: two columns of addr", -EINVAL },
	{ H "1,2,0\n", ":2: len of 0", -EINVAL },
	{ H "1,2,3,4\n", ":2: more than the 3 fields of the header", -EINVAL },
	{ "1,2,3,4\n", ":1: more than the 3 fields of the header", -EINVAL },
	{ H "1,2\n", ":2: 2 of 3 fields", -EINVAL },
	{ H "1,2,\n", ":2: len '': not a number", -EINVAL },
	{ H "1,0x,3\n", ":2: addr '0x': not a number", -EINVAL },
	{ H "1,-2,3\n", ":2: addr '-2': not a number", -EINVAL },
	{ H "1.5,2,3\n", ":2: time_us '1.5': not a number", -EINVAL },
	{ H "1,2,3k\n", ":2: len '3k': not a number", -EINVAL },
	{ H "1,a2,3\n", ":2: addr 'a2': not a number", -EINVAL },
	{ H "1,2,\x1b[31m\n", ":2: len '?[31m': not a number", -EINVAL },
	{ H "1,2,0123456789012345678901234567890123456789a\n",
	  ":2: len 01234567890123456789012345678901...: too large", -EINVAL },
	{ H "1,18446744073709551616,3\n",
	  ":2: addr 18446744073709551616: too large", -EINVAL },
	{ H "1,0x10000000000000000,3\n",
	  ":2: addr 0x10000000000000000: too large", -EINVAL },
	{ H "1," P63 ",1\n", ":2: addr + len beyond 2^63", -EINVAL },
	{ H "1,1," P63 "\n", ":2: addr + len beyond 2^63", -EINVAL },
	{ H "1,18446744073709551615,2\n", ":2: addr + len beyond 2^63",
	  -EINVAL },
	{ H "1,2,18446744073709551615\n", ":2: addr + len beyond 2^63",
	  -EINVAL },
	{ H "5,2,3\n#\n5,2,3\n4,2,3\n", ":5: time runs backwards: 4 after 5",
	  -EINVAL },
	{ "time_us,addr,len,proc\n1,2,3,65536\n",
	  ":2: proc 65536: beyond 65535", -E2BIG },
	{ "time_us,addr,len,access\n1,2,3,x\n",
	  ":2: access 'x': not r, ro, w or rw", -EINVAL },
	{ "time_us,addr,len,site\n1,2,3,main\n",
	  ":2: site 'main': not a number", -EINVAL },
	{ "time_us,addr,len,thread\n1,2,3,4294967296\n",
	  ":2: thread: too large", -EINVAL },
	{ "time_us,addr,len,end_ns\n1,2,3,\n", ":2: end_ns '': not a number",
	  -EINVAL },
};

EACH_TEST(test_bad, bad)
{
	const char *text = bad[_i].text;
	struct sim_trace trace = { .count = 77 };

	ck_assert_int_eq(read_mem(text, strlen(text), &trace), bad[_i].ret);
	ck_assert_int_eq(strncmp(err, "dir/t.csv.xz", 12), 0);
	ck_assert_str_eq(err + 12, bad[_i].cause);
	ck_assert_uint_eq(trace.count, 77);
}

TEST(test_long_line)
{
	static char text[2 * SIM_LINE_MAX];
	struct sim_trace trace;
	size_t head = sizeof(H "1,2,3") - 1;

	memcpy(text, H "1,2,3", head);
	/* the last line has 4096 bytes, then one byte more */
	memset(text + head, ' ', sizeof(text) - head);
	head = sizeof(H) - 1;
	ck_assert_int_eq(read_mem(text, head + SIM_LINE_MAX, &trace), 0);
	sim_trace_fini(&trace);
	ck_assert_int_eq(read_mem(text, head + SIM_LINE_MAX + 1, &trace),
			 -EINVAL);
	ck_assert_str_eq(err, "dir/t.csv.xz:2: line longer than 4096 bytes");
}

TEST(test_zero_byte)
{
	static const char text[] = H "1,2,3\0,4\n";
	struct sim_trace trace;

	ck_assert_int_eq(read_mem(text, sizeof(text) - 1, &trace), -EINVAL);
	ck_assert_str_eq(err, "dir/t.csv.xz:2: not text: a byte of 0");
}

TEST(test_bad_xz)
{
	static const char text[] = H "1,2,3\n4,5,6\n7,8,9\n";
	struct sim_trace trace;
	size_t len, cut;
	uint8_t *xz = compress(text, sizeof(text) - 1, &len);
	int ret;

	/* fewer than 6 bytes do not show that it is xz */
	for (cut = 6; cut < len; cut++) {
		ck_assert_int_eq(read_mem(xz, cut, &trace), -EBADMSG);
		ck_assert_ptr_nonnull(strstr(err, "xz: truncated"));
	}
	for (cut = 6; cut < len; cut++) {
		xz[cut] ^= 0x55;
		ret = read_mem(xz, len, &trace);
		ck_assert_msg(ret == -EBADMSG || ret == -ENOMEM ||
				      ret == -EINVAL,
			      "byte %zu: %d", cut, ret);
		xz[cut] ^= 0x55;
	}
	xz[len - 1] ^= 1;
	ck_assert_int_eq(read_mem(xz, len, &trace), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err, "xz: corrupt"));
	free(xz);
}

TEST(test_no_file)
{
	struct sim_trace trace;

	ck_assert_int_eq(sim_trace_read("/nonexistent/t.csv", err, sizeof(err),
					&trace),
			 -ENOENT);
	ck_assert_str_eq(err, "/nonexistent/t.csv: No such file or directory");
	ck_assert_int_eq(sim_trace_read("/", err, sizeof(err), &trace),
			 -EISDIR);
	ck_assert_str_eq(err, "/: Is a directory");
	ck_assert_int_eq(sim_trace_read("/dev/null", err, sizeof(err), &trace),
			 -EINVAL);
	ck_assert_str_eq(err, "/dev/null: no requests in it");
}

/* ---- what is written ----------------------------------------------------- */

static char dir[] = "/tmp/test_trace.XXXXXX";
static char path[64];

static void setup_dir(void)
{
	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/out.csv", dir);
}

/* Checks that nothing else was left in the folder. */
static void teardown_dir(void)
{
	unlink(path);
	ck_assert_int_eq(rmdir(dir), 0);
}

TEST_CASE(write, setup_dir, teardown_dir);

EACH_TEST(test_round_trip, good)
{
	const char *text = good[_i].text;
	struct sim_trace trace, again;

	ck_assert_int_eq(read_mem(text, strlen(text), &trace), 0);
	ck_assert_int_eq(sim_trace_write(&trace, "a comment", path, err,
					 sizeof(err)),
			 0);
	/* over an existing file */
	ck_assert_int_eq(sim_trace_write(&trace, NULL, path, err, sizeof(err)),
			 0);
	ck_assert_int_eq(sim_trace_read(path, err, sizeof(err), &again), 0);
	ck_assert_str_eq(again.name, "out");
	ck_assert_uint_eq(again.count, trace.count);
	ck_assert_mem_eq(again.req, trace.req,
			 trace.count * sizeof(*trace.req));
	ck_assert_uint_eq(again.procs, trace.procs);
	sim_trace_fini(&again);
	sim_trace_fini(&trace);
}

TEST(test_write_fails)
{
	struct sim_trace trace;
	struct stat st;

	ck_assert_int_eq(read_mem("1,2,3", 5, &trace), 0);
	ck_assert_int_eq(sim_trace_write(&trace, NULL, "/dev/full", err,
					 sizeof(err)),
			 -ENOSPC);
	ck_assert_str_eq(err, "/dev/full: No space left on device");
	/* devices stay what they are */
	ck_assert_int_eq(sim_trace_write(&trace, NULL, "/dev/null", err,
					 sizeof(err)),
			 0);
	ck_assert_int_eq(stat("/dev/null", &st), 0);
	ck_assert(S_ISCHR(st.st_mode));
	ck_assert_int_eq(sim_trace_write(&trace, NULL, "/nonexistent/t", err,
					 sizeof(err)),
			 -ENOENT);
	/* a folder */
	ck_assert_int_eq(sim_trace_write(&trace, NULL, dir, err, sizeof(err)),
			 -EISDIR);
	sim_trace_fini(&trace);
}

TEST(test_write_link)
{
	struct sim_trace trace;
	char name[80];
	struct stat st;

	snprintf(name, sizeof(name), "%s/link", dir);
	ck_assert_int_eq(read_mem("1,2,3", 5, &trace), 0);
	ck_assert_int_eq(close(creat(path, 0600)), 0);
	ck_assert_int_eq(symlink("out.csv", name), 0);
	ck_assert_int_eq(sim_trace_write(&trace, NULL, name, err, sizeof(err)),
			 0);
	ck_assert_int_eq(lstat(name, &st), 0);
	ck_assert(S_ISLNK(st.st_mode));
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_gt(st.st_size, 0);
	unlink(name);
	sim_trace_fini(&trace);
}

#define CNT(array) (sizeof(array) / sizeof((array)[0]))
