/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reading a trace from lines of comma-separated fields (trace.h has the
 * format, lines.h the lines).
 *
 * The first failure ends the reading and writes the one message.
 */
#include "config.h"
#include "sim/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN	32	/* characters of a field that a message shows */

enum column {
	COL_TIME,
	COL_ADDR,
	COL_LEN,
	COL_PROC,
	COL_ACCESS,
	COL_CNT,
	COL_REQUIRED = COL_PROC,	/* those before it */
};

static const char *const column_names[COL_CNT] = {
	[COL_TIME] = "time_us",
	[COL_ADDR] = "addr",
	[COL_LEN] = "len",
	[COL_PROC] = "proc",
	[COL_ACCESS] = "access",
};

struct reader {
	struct sim_lines lines;
	const char *path;	/* as messages name it */
	char *err;
	size_t err_len;
	unsigned int fields;	/* of each line */
	int at[COL_CNT];	/* the field of each column, or -1 */
	struct sim_trace trace;
};

/* ---- messages ------------------------------------------------------------ */

__attribute__((format(printf, 3, 4)))
static int fail(struct reader *reader, int ret, const char *format, ...)
{
	char cause[SIM_ERR_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(cause, sizeof(cause), format, args);
	va_end(args);
	if (reader->lines.number)
		snprintf(reader->err, reader->err_len, "%s:%" PRIu64 ": %s",
			 reader->path, reader->lines.number, cause);
	else
		snprintf(reader->err, reader->err_len, "%s: %s", reader->path,
			 cause);
	return ret;
}

/* The start of a field, as a terminal can show it. */
static const char *shown(const char *field, char buf[SHOWN + 4])
{
	size_t i;

	for (i = 0; field[i] && i < SHOWN; i++)
		buf[i] = field[i] < ' ' || field[i] > '~' ? '?' : field[i];
	strcpy(buf + i, field[i] ? "..." : "");
	return buf;
}

/* ---- fields -------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Cuts the first field off *rest; NULL after the last. */
static char *next_field(char **rest)
{
	char *field = *rest, *end;

	if (!field)
		return NULL;
	end = field + strcspn(field, ",");
	*rest = *end ? end + 1 : NULL;
	*end = '\0';
	while (is_blank(*field))
		field++;
	while (end > field && is_blank(end[-1]))
		*--end = '\0';
	return field;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 'a' ^ 'A';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

static int parse_number(struct reader *reader, enum column col,
			const char *field, uint64_t *number)
{
	const char *text = field;
	char buf[SHOWN + 4];
	uint64_t sum = 0;
	int base = 10, digit;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
	}
	if (!*text)
		goto err_number;
	for (; *text; text++) {
		digit = digit_of(*text);
		if (digit >= base)
			goto err_number;
		if (__builtin_mul_overflow(sum, (uint64_t)base, &sum) ||
		    __builtin_add_overflow(sum, (uint64_t)digit, &sum))
			return fail(reader, -EINVAL, "%s %s: too large",
				    column_names[col], shown(field, buf));
	}
	*number = sum;
	return 0;

err_number:
	return fail(reader, -EINVAL, "%s '%s': not a number",
		    column_names[col], shown(field, buf));
}

static int parse_access(struct reader *reader, const char *field,
			uint32_t *access)
{
	char buf[SHOWN + 4];

	if (!strcmp(field, "r") || !strcmp(field, "ro"))
		*access = SIM_RO;
	else if (!strcmp(field, "w") || !strcmp(field, "rw"))
		*access = SIM_RW;
	else
		return fail(reader, -EINVAL,
			    "access '%s': not r, ro, w or rw",
			    shown(field, buf));
	return 0;
}

/* ---- lines --------------------------------------------------------------- */

static int read_header(struct reader *reader)
{
	char *rest = reader->lines.line;
	char *field;
	int col;

	while ((field = next_field(&rest))) {
		for (col = 0; col < COL_CNT; col++) {
			if (!strcmp(field, column_names[col]))
				break;
		}
		if (col < COL_CNT && reader->at[col] >= 0)
			return fail(reader, -EINVAL, "two columns of %s",
				    column_names[col]);
		if (col < COL_CNT)
			reader->at[col] = reader->fields;
		reader->fields++;
	}
	for (col = 0; col < COL_REQUIRED; col++) {
		if (reader->at[col] < 0)
			return fail(reader, -EINVAL, "no column %s",
				    column_names[col]);
	}
	return 0;
}

static int read_field(struct reader *reader, unsigned int i, const char *field,
		      struct sim_req *req)
{
	uint64_t proc;
	int ret;

	if ((int)i == reader->at[COL_TIME])
		return parse_number(reader, COL_TIME, field, &req->time);
	if ((int)i == reader->at[COL_ADDR])
		return parse_number(reader, COL_ADDR, field, &req->addr);
	if ((int)i == reader->at[COL_LEN])
		return parse_number(reader, COL_LEN, field, &req->len);
	if ((int)i == reader->at[COL_ACCESS])
		return parse_access(reader, field, &req->access);
	if ((int)i != reader->at[COL_PROC])
		return 0;
	ret = parse_number(reader, COL_PROC, field, &proc);
	if (ret)
		return ret;
	if (proc >= SIM_PROCS_MAX)
		return fail(reader, -E2BIG, "proc %" PRIu64 ": beyond %d", proc,
			    SIM_PROCS_MAX - 1);
	req->proc = proc;
	return 0;
}

/* What each field alone cannot tell. */
static int check_request(struct reader *reader, const struct sim_req *req)
{
	const struct sim_trace *trace = &reader->trace;

	if (!req->len)
		return fail(reader, -EINVAL, "len of 0");
	if (req->len > SIM_ADDR_MAX || req->addr > SIM_ADDR_MAX - req->len)
		return fail(reader, -EINVAL, "addr + len beyond 2^63");
	if (trace->count && req->time < trace->req[trace->count - 1].time)
		return fail(reader, -EINVAL,
			    "time runs backwards: %" PRIu64 " after %" PRIu64,
			    req->time, trace->req[trace->count - 1].time);
	return 0;
}

static int read_request(struct reader *reader)
{
	struct sim_req req = { .access = SIM_RW };
	char *rest = reader->lines.line;
	unsigned int i;
	char *field;
	int ret;

	for (i = 0; (field = next_field(&rest)); i++) {
		if (i == reader->fields)
			return fail(reader, -EINVAL,
				    "more than the %u fields of the header", i);
		ret = read_field(reader, i, field, &req);
		if (ret)
			return ret;
	}
	if (i < reader->fields)
		return fail(reader, -EINVAL, "%u of %u fields", i,
			    reader->fields);
	ret = check_request(reader, &req);
	if (ret)
		return ret;
	ret = sim_trace_append(&reader->trace, &req);
	if (ret == -EFBIG)
		return fail(reader, ret, "more than 2^32 requests");
	return ret ? fail(reader, ret, "%s", strerror(-ret)) : 0;
}

static int read_line(struct reader *reader)
{
	char *line = reader->lines.line;
	size_t blank = strspn(line, " \t");

	if (!line[blank] || line[blank] == '#')
		return 0;
	if (reader->fields)
		return read_request(reader);
	if (line[blank] < '0' || line[blank] > '9')
		return read_header(reader);
	for (; reader->fields < COL_REQUIRED; reader->fields++)
		reader->at[reader->fields] = reader->fields;
	return read_request(reader);
}

static int read_lines(struct reader *reader)
{
	struct sim_lines *lines = &reader->lines;
	int ret;

	for (;;) {
		ret = sim_lines_next(lines);
		if (ret == -ENODATA)
			break;
		if (ret)
			return fail(reader, ret, "%s", lines->cause ?
				    lines->cause : strerror(-ret));
		ret = read_line(reader);
		if (ret)
			return ret;
	}
	if (!reader->trace.count) {
		lines->number = 0;
		return fail(reader, -EINVAL, "no requests in it");
	}
	return 0;
}

/* ---- files --------------------------------------------------------------- */

static void cut_suffix(char *name, const char *suffix)
{
	size_t len = strlen(name), cut = strlen(suffix);

	if (len > cut && !strcmp(name + len - cut, suffix))
		name[len - cut] = '\0';
}

static int name_trace(struct reader *reader)
{
	const char *slash = strrchr(reader->path, '/');
	int ret;

	ret = sim_trace_init(&reader->trace, slash ? slash + 1 : reader->path);
	if (ret)
		return fail(reader, ret, "%s", strerror(-ret));
	cut_suffix(reader->trace.name, ".xz");
	cut_suffix(reader->trace.name, ".csv");
	return 0;
}

static int read_all(struct reader *reader, FILE *file)
{
	int ret;

	ret = sim_lines_open(&reader->lines, file);
	if (ret)
		return fail(reader, ret, "%s", reader->lines.cause ?
			    reader->lines.cause : strerror(-ret));
	ret = name_trace(reader);
	if (ret)
		goto out_close;
	ret = read_lines(reader);
	if (ret)
		sim_trace_fini(&reader->trace);
out_close:
	sim_lines_close(&reader->lines);
	return ret;
}

int sim_trace_read_file(FILE *file, const char *path, char *err,
			size_t err_len, struct sim_trace *trace)
{
	struct reader *reader = malloc(sizeof(*reader));
	int col, ret;

	if (!reader) {
		snprintf(err, err_len, "%s: %s", path, strerror(ENOMEM));
		return -ENOMEM;
	}
	reader->path = path;
	reader->err = err;
	reader->err_len = err_len;
	reader->fields = 0;
	for (col = 0; col < COL_CNT; col++)
		reader->at[col] = -1;
	ret = read_all(reader, file);
	if (!ret)
		*trace = reader->trace;
	free(reader);
	return ret;
}

int sim_trace_read(const char *path, char *err, size_t err_len,
		   struct sim_trace *trace)
{
	FILE *file;
	int ret;

	if (!strcmp(path, "-"))
		return sim_trace_read_file(stdin, "stdin", err, err_len, trace);
	file = fopen(path, "rbe");
	if (!file) {
		ret = -errno;
		snprintf(err, err_len, "%s: %s", path, strerror(-ret));
		return ret;
	}
	ret = sim_trace_read_file(file, path, err, err_len, trace);
	fclose(file);
	return ret;
}
