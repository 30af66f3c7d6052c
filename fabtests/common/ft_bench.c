/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Times transfers from the client to the server; one thread drives both sides.
 *
 * The buffers are used in turn, so each buffer is used again and again: the
 * case that a registration cache serves. The receive for a send is posted in
 * the timed part, where the receiver also registers its buffer.
 */
#include "ft_bench.h"

#include <sys/wait.h>

const char *const ft_mode_names[FT_MODES] = { "register-each", "core-cache",
					      "ofi_mrrc" };

/* Measures latency: one transfer in flight. */
struct xfer {
	struct fid_mr *local_mr, *remote_mr;
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *) a, y = *(const double *) b;

	return (x > y) - (x < y);
}

double ft_median(double *values, unsigned count)
{
	qsort(values, count, sizeof(*values), by_value);
	return count % 2 ? values[count / 2] :
			   (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* The maximum count of the core's own cache: the library's default, or 0. */
void ft_core_cache(bool on)
{
	setenv("FI_MR_CACHE_MAX_COUNT", on ? "1024" : "0", 1);
}

void ft_bench_env(enum ft_mode mode, const char *core)
{
	char *name;

	FT_CHECK(asprintf(&name, "%s%s", core,
			  mode == FT_NULL_DESC ? ";ofi_mrrc" : "") > 0,
		 "asprintf");
	ft_opts.prov = name;
	ft_opts.raw = mode != FT_NULL_DESC;
	if (ft_opts.raw)
		ft_core_cache(mode == FT_CORE_CACHE);
}

int ft_bench_ways(const char *const *ways, int count, void (*run)(int way))
{
	int way, status, ret = 0;
	pid_t pid;

	for (way = 0; way < count; way++) {
		pid = fork();
		FT_CHECK(pid >= 0, "fork");
		if (!pid)
			run(way);
		FT_CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
		if (status) {
			fprintf(stderr, "%s: status 0x%x\n", ways[way], status);
			ret = 1;
		}
	}
	return ret;
}

void ft_bench_open(struct ft_bench *b, enum ft_mode mode, size_t max,
		   unsigned bufs)
{
	struct ft_attr attr = FT_ATTR;

	memset(b, 0, sizeof(*b));
	b->mode = mode;
	b->max = (max + FT_PAGE - 1) & ~(FT_PAGE - 1);
	b->bufs = bufs;
	ft_pair_open(&b->pair, &attr);
	b->local = ft_map(NULL, b->max * bufs);
	b->remote = ft_map(NULL, b->max * bufs);
	b->target = ft_reg(&b->pair.dom[0], b->remote, b->max * bufs,
			   FI_REMOTE_WRITE);
}

static void post(struct ft_bench *b, const struct ft_task *task, unsigned i,
		 struct xfer *x)
{
	size_t off = i % b->bufs * b->max;
	void *ldesc = NULL, *rdesc = NULL;
	struct ft_ep *c = &b->pair.c, *s = &b->pair.s;

	x->local_mr = x->remote_mr = NULL;
	if (b->mode != FT_NULL_DESC) {
		x->local_mr = ft_reg(c->dom, b->local + off, task->len,
				     task->op == FT_SEND ? FI_SEND : FI_WRITE);
		ldesc = fi_mr_desc(x->local_mr);
	}
	if (task->op == FT_WRITE) {
		FT_POST(c, fi_write(c->ep, b->local + off, task->len, ldesc,
				    c->to, ft_raddr(s->dom, b->remote) + off,
				    fi_mr_key(b->target), NULL));
		return;
	}
	if (b->mode != FT_NULL_DESC) {
		x->remote_mr =
			ft_reg(s->dom, b->remote + off, task->len, FI_RECV);
		rdesc = fi_mr_desc(x->remote_mr);
	}
	FT_POST(c, fi_recv(s->ep, b->remote + off, task->len, rdesc, FT_ANY,
			   NULL));
	FT_POST(c,
		fi_send(c->ep, b->local + off, task->len, ldesc, c->to, NULL));
}

static void finish(struct ft_bench *b, const struct ft_task *task,
		   struct xfer *x)
{
	struct ft_comp comp;

	ft_wait(&b->pair.c, FT_TX, &comp);
	if (task->op == FT_SEND)
		ft_wait(&b->pair.s, FT_RX, &comp);
	if (x->local_mr)
		FT_CALL(fi_close(&x->local_mr->fid));
	if (x->remote_mr)
		FT_CALL(fi_close(&x->remote_mr->fid));
}

static double latency(struct ft_bench *b, const struct ft_task *task)
{
	struct xfer x;
	double start;
	unsigned i;

	if (b->times_cnt < task->iters) {
		b->times = realloc(b->times, task->iters * sizeof(double));
		FT_CHECK(b->times, "realloc");
		b->times_cnt = task->iters;
	}
	for (i = 0; i < task->iters; i++) {
		start = ft_time_us();
		post(b, task, i, &x);
		finish(b, task, &x);
		b->times[i] = ft_time_us() - start;
	}
	return ft_median(b->times, task->iters);
}

/*
 * Measures bandwidth. Transfers are awaited in the order of posting; a
 * transfer's registration ends with the transfer.
 */
static double bandwidth(struct ft_bench *b, const struct ft_task *task)
{
	struct xfer *x = calloc(task->window, sizeof(*x));
	double start = ft_time_us(), took;
	unsigned i;

	FT_CHECK(x, "calloc");
	for (i = 0; i < task->iters + task->window; i++) {
		if (i >= task->window)
			finish(b, task, &x[i % task->window]);
		if (i < task->iters)
			post(b, task, i, &x[i % task->window]);
	}
	took = ft_time_us() - start;
	free(x);
	return (double) task->len * task->iters / took;
}

static void fill(struct ft_bench *b, const struct ft_task *task)
{
	unsigned i;

	b->round++;
	for (i = 0; i < b->bufs; i++) {
		ft_fill(b->local + i * b->max, task->len, b->round * 1000 + i);
		memset(b->remote + i * b->max, 0, task->len);
	}
}

double ft_bench_run(struct ft_bench *b, const struct ft_task *task)
{
	double result;
	unsigned i;

	FT_CHECK(task->len <= b->max && task->iters, "wrong task");
	FT_CHECK(task->metric == FT_LAT ||
			 (task->window && task->window <= b->bufs &&
			  task->window <= task->iters),
		 "a window of %u, with %u buffers and %u transfers",
		 task->window, b->bufs, task->iters);
	ft_stage("%s: %s of %zu bytes", ft_mode_names[b->mode],
		 ft_op_name(task->op), task->len);
	fill(b, task);
	result = task->metric == FT_LAT ? latency(b, task) : bandwidth(b, task);
	for (i = 0; i < b->bufs && i < task->iters; i++)
		ft_wait_buf(&b->pair.c, b->remote + i * b->max, task->len,
			    b->round * 1000 + i);
	return result;
}

void ft_bench_close(struct ft_bench *b)
{
	FT_CALL(fi_close(&b->target->fid));
	ft_pair_close(&b->pair);
	ft_unmap(b->local, b->max * b->bufs);
	ft_unmap(b->remote, b->max * b->bufs);
	free(b->times);
}

unsigned ft_parse_sizes(const char *text, size_t *sizes, unsigned max)
{
	unsigned count = 0;
	char *end;

	while (*text && count < max) {
		sizes[count] = strtoul(text, &end, 0);
		if (end == text)
			break;
		if (*end == 'K' || *end == 'k')
			sizes[count] <<= 10, end++;
		else if (*end == 'M' || *end == 'm')
			sizes[count] <<= 20, end++;
		count += sizes[count] != 0;
		text = *end == ',' ? end + 1 : end;
	}
	if (*text || !count) {
		fprintf(stderr, "no list of sizes: %s\n", text);
		exit(2);
	}
	return count;
}

const char *ft_op_name(enum ft_bench_op op)
{
	return op == FT_WRITE ? "write" : "send";
}

enum ft_bench_op ft_parse_op(const char *name)
{
	if (!strcmp(name, "write"))
		return FT_WRITE;
	if (!strcmp(name, "send"))
		return FT_SEND;
	fprintf(stderr, "the operation is neither write nor send: %s\n", name);
	exit(2);
}
