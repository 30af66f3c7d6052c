/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads requests (read.h) from lines of comma-separated fields (trace.h has the
 * format, lines.h the lines), or from recorded.c.
 *
 * The first failure ends the reading and writes the only message.
 */
#include "config.h"
#include "sim/read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/tree.h>

#define SHOWN 32 /* characters of a field that a message shows */

enum column {
	COL_TIME,
	COL_ADDR,
	COL_LEN,
	COL_PROC,
	COL_ACCESS,
	COL_RESULT,
	COL_END,
	COL_THREAD,
	COL_SITE,
	/* columns that only full sinks get */
	COL_BEGIN,
	COL_OP,
	COL_PEER,
	COL_COST,
	COL_PREVIOUS,
	COL_CNT,
	COL_REQUIRED = COL_PROC, /* columns before this one are required */
	COL_SIM = COL_BEGIN,
};

static const char *const column_names[COL_CNT] = {
	[COL_TIME] = "time_us",	  [COL_ADDR] = "addr",
	[COL_LEN] = "len",	  [COL_PROC] = "proc",
	[COL_ACCESS] = "access",  [COL_RESULT] = "result",
	[COL_BEGIN] = "begin_ns", [COL_END] = "end_ns",
	[COL_THREAD] = "thread",  [COL_OP] = "op",
	[COL_PEER] = "peer",	  [COL_COST] = "cost_ns",
	[COL_SITE] = "site",	  [COL_PREVIOUS] = "previous",
};

/*
 * names in the order of enum mrrc_access; the part after + is the access of
 * peers
 */
static const char *const access_names[] = {
	"r", "w", "r+r", "w+r", "r+w", "w+w", "r+rw", "w+rw",
};

struct reader {
	struct sim_lines lines;
	const char *path; /* name of the file in messages */
	char *err;
	size_t err_len;
	unsigned int fields; /* number of fields in each line */
	int at[COL_CNT];     /* field number of each column, or -1 */
	bool ends;	     /* the file has the ends of operations */
	uint64_t count;	     /* requests */
	uint64_t last;	     /* time of the previous request */
	const struct sim_sink *sink;
};

const char *sim_access_name(unsigned access)
{
	return access_names[access];
}

/* ---- messages ------------------------------------------------------------ */

__attribute__((format(printf, 3, 4))) static int
fail(struct reader *reader, int ret, const char *format, ...)
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

/* Makes the beginning of a field printable. */
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

/* Cuts the first field off *rest; returns NULL after the last. */
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
		if (__builtin_mul_overflow(sum, (uint64_t) base, &sum) ||
		    __builtin_add_overflow(sum, (uint64_t) digit, &sum))
			return fail(reader, -EINVAL, "%s %s: too large",
				    column_names[col], shown(field, buf));
	}
	*number = sum;
	return 0;

err_number:
	return fail(reader, -EINVAL, "%s '%s': not a number", column_names[col],
		    shown(field, buf));
}

static int parse_access(struct reader *reader, const char *field,
			uint32_t *access)
{
	char buf[SHOWN + 4];
	uint32_t i;

	if (!strcmp(field, "ro"))
		field = "r";
	else if (!strcmp(field, "rw"))
		field = "w";
	for (i = 0; i < sizeof(access_names) / sizeof(*access_names); i++) {
		if (!strcmp(field, access_names[i])) {
			*access = i;
			return 0;
		}
	}
	return fail(reader, -EINVAL, "access '%s': not r, ro, w or rw",
		    shown(field, buf));
}

/* An unknown name is an error only where the meaning of the name is needed. */
static int parse_op(struct reader *reader, const char *field, uint8_t *op)
{
	char buf[SHOWN + 4];
	int i;

	for (i = 1; i < MRRC_TRACE_OP_CNT; i++) {
		if (!strcmp(field, mrrc_trace_op_name(i))) {
			*op = i;
			return 0;
		}
	}
	return fail(reader, -EINVAL, "op '%s': not known", shown(field, buf));
}

static int parse_result(struct reader *reader, const char *field,
			enum mrrc_trace_result *result)
{
	char buf[SHOWN + 4];
	int i;

	for (i = 0; i < MRRC_TRACE_RESULT_CNT; i++) {
		if (!strcmp(field, mrrc_trace_result_name(i))) {
			*result = i;
			return 0;
		}
	}
	return reader->sink->full ?
		       fail(reader, -EINVAL, "result '%s': not known",
			    shown(field, buf)) :
		       0;
}

/* Parses an empty field, a number, or "ep" and a number. */
static int parse_peer(struct reader *reader, const char *field,
		      enum mrrc_trace_peer *kind, uint64_t *peer)
{
	if (!*field)
		return 0;
	*kind = strncmp(field, "ep", 2) ? MRRC_TRACE_ADDR : MRRC_TRACE_EP;
	if (*kind == MRRC_TRACE_EP)
		field += 2;
	return parse_number(reader, COL_PEER, field, peer);
}

/* ---- lines --------------------------------------------------------------- */

static int read_header(struct reader *reader)
{
	const int cnt = reader->sink->full ? COL_CNT : COL_SIM;
	char *rest = reader->lines.line;
	char *field;
	int col;

	while ((field = next_field(&rest))) {
		for (col = 0; col < cnt; col++) {
			if (!strcmp(field, column_names[col]))
				break;
		}
		if (col < cnt && reader->at[col] >= 0)
			return fail(reader, -EINVAL, "two columns of %s",
				    column_names[col]);
		if (col < cnt)
			reader->at[col] = reader->fields;
		reader->fields++;
	}
	for (col = 0; col < COL_REQUIRED; col++) {
		if (reader->at[col] < 0)
			return fail(reader, -EINVAL, "no column %s",
				    column_names[col]);
	}
	reader->ends = reader->at[COL_END] >= 0;
	return 0;
}

/* Reads a field that the simulator does not use. */
static int read_detail(struct reader *reader, enum column col,
		       const char *field, struct sim_rec *rec,
		       enum mrrc_trace_peer *kind)
{
	struct mrrc_trace_rec *to = &rec->rec;
	uint64_t number;
	int ret;

	switch (col) {
	case COL_BEGIN:
		return parse_number(reader, col, field, &to->begin);
	case COL_END:
		return parse_number(reader, col, field, &to->end);
	case COL_COST:
		return parse_number(reader, col, field, &to->cost);
	case COL_SITE:
		return parse_number(reader, col, field, &to->site);
	case COL_PREVIOUS:
		return parse_number(reader, col, field, &rec->previous);
	case COL_OP:
		return parse_op(reader, field, &to->op);
	case COL_PEER:
		return parse_peer(reader, field, kind, &to->peer);
	default:
		ret = parse_number(reader, col, field, &number);
		if (!ret && number > UINT32_MAX)
			return fail(reader, -EINVAL, "thread: too large");
		to->thread = number;
		return ret;
	}
}

static int read_proc(struct reader *reader, const char *field, uint32_t *out)
{
	uint64_t proc;
	int ret;

	ret = parse_number(reader, COL_PROC, field, &proc);
	if (ret)
		return ret;
	if (proc >= SIM_PROCS_MAX)
		return fail(reader, -E2BIG, "proc %" PRIu64 ": beyond %d", proc,
			    SIM_PROCS_MAX - 1);
	*out = proc;
	return 0;
}

/*
 * Checks that the fields of a request fit together. A request in which the
 * cache had no part may have any range; full sinks also get ranges beyond all
 * memory, which are recorded if a core registers them (tcp does).
 */
static int check_request(struct reader *reader, const struct sim_rec *rec,
			 bool served)
{
	const uint64_t len = rec->rec.len;

	if (served && !len)
		return fail(reader, -EINVAL, "len of 0");
	if (!reader->sink->full &&
	    (len > SIM_ADDR_MAX || rec->rec.addr > SIM_ADDR_MAX - len))
		return fail(reader, -EINVAL, "addr + len beyond 2^63");
	if (reader->count && rec->time_us < reader->last)
		return fail(reader, -EINVAL,
			    "time runs backwards: %" PRIu64 " after %" PRIu64,
			    rec->time_us, reader->last);
	return 0;
}

/*
 * Returns the time for which a request holds its buffer; all times of a record
 * have one origin.
 */
static uint64_t held_us(const struct reader *reader, const struct sim_rec *rec)
{
	const uint64_t end = rec->rec.end / 1000;

	if (!reader->ends)
		return 0;
	return rec->rec.end && end >= rec->time_us ? end - rec->time_us :
						     SIM_ENDLESS;
}

/* Passes a request on, unless the cache had no part in the request. */
static int add_request(struct reader *reader, struct sim_rec *rec)
{
	const enum mrrc_trace_result result = mrrc_trace_result(&rec->rec);
	const bool served = result != MRRC_TRACE_CORE &&
			    result != MRRC_TRACE_FAILED;
	const char *cause = NULL;
	int ret;

	if (!reader->sink->full && !served)
		return 0;
	ret = check_request(reader, rec, served);
	if (ret)
		return ret;
	reader->last = rec->time_us;
	reader->count++;
	rec->held_us = held_us(reader, rec);
	ret = reader->sink->add(reader->sink->arg, rec, &cause);
	return ret ? fail(reader, ret, "%s", cause ? cause : strerror(-ret)) :
		     0;
}

static int read_request(struct reader *reader)
{
	enum mrrc_trace_result result = MRRC_TRACE_MISS;
	enum mrrc_trace_peer kind = MRRC_TRACE_NOBODY;
	struct sim_rec rec = { .rec.op = MRRC_TRACE_REG };
	char *rest = reader->lines.line;
	uint32_t access = SIM_RW;
	unsigned int i, col;
	char *field;
	int ret = 0;

	for (i = 0; !ret && (field = next_field(&rest)); i++) {
		if (i == reader->fields)
			return fail(reader, -EINVAL,
				    "more than the %u fields of the header", i);
		for (col = 0; col < COL_CNT; col++) {
			if (reader->at[col] == (int) i)
				break;
		}
		switch (col) {
		case COL_TIME:
			ret = parse_number(reader, col, field, &rec.time_us);
			break;
		case COL_ADDR:
			ret = parse_number(reader, col, field, &rec.rec.addr);
			break;
		case COL_LEN:
			ret = parse_number(reader, col, field, &rec.rec.len);
			break;
		case COL_PROC:
			ret = read_proc(reader, field, &rec.proc);
			break;
		case COL_ACCESS:
			ret = parse_access(reader, field, &access);
			break;
		case COL_RESULT:
			ret = parse_result(reader, field, &result);
			break;
		case COL_CNT:
			break;
		default:
			ret = read_detail(reader, col, field, &rec, &kind);
		}
	}
	if (ret)
		return ret;
	if (i < reader->fields)
		return fail(reader, -EINVAL, "%u of %u fields", i,
			    reader->fields);
	rec.rec.how = mrrc_trace_how(access, result, kind);
	if (reader->sink->full && reader->at[COL_BEGIN] < 0 &&
	    __builtin_mul_overflow(rec.time_us, 1000, &rec.rec.begin))
		return fail(reader, -EINVAL, "time_us: too large");
	if (reader->sink->full && (rec.rec.begin & MRRC_TRACE_OPEN))
		return fail(reader, -EINVAL, "time: too large");
	return add_request(reader, &rec);
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
			return fail(reader, ret, "%s",
				    lines->cause ? lines->cause :
						   strerror(-ret));
		ret = read_line(reader);
		if (ret)
			return ret;
	}
	/* full sinks write a header without requests, too */
	if (!reader->count && !(reader->sink->full && reader->fields)) {
		lines->number = 0;
		return fail(reader, -EINVAL, "no requests in it");
	}
	return 0;
}

/* ---- recorded files --------------------------------------------- */

/* The call site of the previous request of each thread. */
struct thread {
	RB_ENTRY(thread) node;
	uint32_t thread;
	uint64_t site;
};

RB_HEAD(thread_tree, thread);

static int by_thread(struct thread *a, struct thread *b)
{
	return (a->thread > b->thread) - (a->thread < b->thread);
}

#define UNUSED_STATIC __attribute__((unused)) static
RB_PROTOTYPE_INTERNAL(thread_tree, thread, node, by_thread, UNUSED_STATIC)
RB_GENERATE_INTERNAL(thread_tree, thread, node, by_thread, UNUSED_STATIC)

static int swap_site(struct thread_tree *threads,
		     const struct mrrc_trace_rec *rec, uint64_t *previous)
{
	struct thread key = { .thread = rec->thread }, *thread;

	thread = RB_FIND(thread_tree, threads, &key);
	if (!thread) {
		thread = calloc(1, sizeof(*thread));
		if (!thread)
			return -ENOMEM;
		thread->thread = rec->thread;
		RB_INSERT(thread_tree, threads, thread);
	}
	*previous = thread->site;
	thread->site = rec->site;
	return 0;
}

static void free_threads(struct thread_tree *threads)
{
	struct thread *thread;

	while ((thread = RB_ROOT(threads))) {
		RB_REMOVE(thread_tree, threads, thread);
		free(thread);
	}
}

static int add_recorded(struct reader *reader,
			const struct mrrc_trace_rec *recs, size_t count)
{
	struct thread_tree threads = RB_INITIALIZER(&threads);
	struct sim_rec rec;
	int ret = 0;
	size_t i;

	for (i = 0; i < count && !ret; i++) {
		rec.rec = recs[i];
		rec.time_us = recs[i].begin / 1000;
		rec.proc = recs[i].domain;
		rec.previous = 0;
		if (reader->sink->full)
			ret = swap_site(&threads, &recs[i], &rec.previous);
		/*
		 * skip addresses of the kernel, which are the same in every
		 * process
		 */
		if (!reader->sink->full && recs[i].addr >= SIM_ADDR_MAX)
			continue;
		reader->lines.number = i + 1;
		ret = ret ? fail(reader, ret, "%s", strerror(-ret)) :
			    add_request(reader, &rec);
	}
	free_threads(&threads);
	return ret;
}

static int read_recorded(struct reader *reader)
{
	struct mrrc_trace_rec *recs;
	struct mrrc_trace_head head;
	const char *cause;
	uint64_t chunk;
	size_t count;
	int ret;

	ret = sim_recorded(&reader->lines, &head, &recs, &count, &chunk,
			   &cause);
	if (ret && chunk)
		return fail(reader, ret, "part %" PRIu64 ": %s", chunk,
			    cause ? cause : strerror(-ret));
	if (ret)
		return fail(reader, ret, "%s", cause ? cause : strerror(-ret));
	reader->ends = true;
	if (reader->sink->head)
		reader->sink->head(reader->sink->arg, &head);
	ret = add_recorded(reader, recs, count);
	free(recs);
	if (ret)
		return ret;
	reader->lines.number = 0;
	return reader->count || reader->sink->full ?
		       0 :
		       fail(reader, -EINVAL, "no requests in it");
}

/* ---- files --------------------------------------------------------------- */

static int read_all(struct reader *reader, FILE *file)
{
	struct sim_lines *lines = &reader->lines;
	bool recorded = false;
	int ret;

	ret = sim_lines_open(lines, file);
	if (!ret)
		ret = sim_lines_begin(lines, MRRC_TRACE_MAGIC,
				      strlen(MRRC_TRACE_MAGIC), &recorded);
	if (ret)
		ret = fail(reader, ret, "%s",
			   lines->cause ? lines->cause : strerror(-ret));
	else
		ret = recorded ? read_recorded(reader) : read_lines(reader);
	sim_lines_close(lines);
	return ret;
}

int sim_read_file(FILE *file, const char *path, char *err, size_t err_len,
		  const struct sim_sink *sink)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	int col, ret;

	if (!reader) {
		snprintf(err, err_len, "%s: %s", path, strerror(ENOMEM));
		return -ENOMEM;
	}
	reader->path = path;
	reader->err = err;
	reader->err_len = err_len;
	reader->sink = sink;
	for (col = 0; col < COL_CNT; col++)
		reader->at[col] = -1;
	ret = read_all(reader, file);
	free(reader);
	return ret;
}

int sim_read(const char *path, char *err, size_t err_len,
	     const struct sim_sink *sink)
{
	FILE *file;
	int ret;

	if (!strcmp(path, "-"))
		return sim_read_file(stdin, "stdin", err, err_len, sink);
	file = fopen(path, "rbe");
	if (!file) {
		ret = -errno;
		snprintf(err, err_len, "%s: %s", path, strerror(-ret));
		return ret;
	}
	ret = sim_read_file(file, path, err, err_len, sink);
	fclose(file);
	return ret;
}
