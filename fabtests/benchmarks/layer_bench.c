/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Measures the cost of the provider where the provider has nothing to do:
 * operations with a descriptor, on an endpoint that has resolved null
 * descriptors before.
 *
 * bench.sh and util/sh/calls.sh run layer_bench in several ways. With -m, an
 * operation is repeated so that callgrind can count only the instructions
 * inside the function layer_<op>; the operation "miss" is a write that misses
 * in the cache. With -N alone, writes without a descriptor over PROVIDER are
 * timed in windows and one by one. Without -m and -N, the core provider alone
 * and the stack run in turn, batch by batch in this one process, and medians
 * are printed.
 */
#include "ft_mrrc.h"

#define ROUNDS 801
#define BATCH  500 /* messages between two readings of the clock */
#define MSG    8   /* bytes */
/* number of buffers from which writes go out in turn */
#define BUFS  64
#define APART (2 * FT_PAGE) /* distance between buffers of two misses */
/* number of buffers for misses: more than a monitor keeps watched */
#define MISSES 2048

enum side { RAW, STACK, SIDES };

struct stack {
	struct ft_pair pair;
	char *buf[2]; /* the server's and the client's buffer */
	struct fid_mr *mr[2];
	void *desc[2];
};

static const char *const prov[SIDES] = { "tcp", "tcp;ofi_mrrc" };

/* selects the provider list for the library, through ft_mrrc.c's options */
static void use(enum side side)
{
	ft_opts.prov = prov[side];
	ft_opts.raw = side == RAW;
}

/* ---- what is measured: functions of their own, no tail calls ----------- */

#ifdef __clang__
#define MEASURED static __attribute__((noinline))
#else
#define MEASURED static __attribute__((noipa))
#endif
#define END() __asm__ volatile("" : : : "memory")

MEASURED ssize_t layer_send(struct fid_ep *ep, void *buf, void *desc)
{
	ssize_t ret = fi_send(ep, buf, MSG, desc, 0, buf);

	END();
	return ret;
}

MEASURED ssize_t layer_recv(struct fid_ep *ep, void *buf, void *desc)
{
	ssize_t ret = fi_recv(ep, buf, MSG, desc, 0, buf);

	END();
	return ret;
}

MEASURED ssize_t layer_write(struct fid_ep *ep, void *buf, void *desc,
			     uint64_t addr, uint64_t key)
{
	ssize_t ret = fi_write(ep, buf, MSG, desc, 0, addr, key, buf);

	END();
	return ret;
}

MEASURED ssize_t layer_completion(struct fid_cq *cq,
				  struct fi_cq_data_entry *entry)
{
	ssize_t ret = fi_cq_read(cq, entry, 1);

	END();
	return ret;
}

/* ---- set-up ------------------------------------------------------------ */

static void stack_open(struct stack *st, enum side side)
{
	struct ft_attr attr = FT_ATTR;
	char *buf;
	int i;

	use(side);
	ft_stage("opening %s", prov[side]);
	ft_pair_open(&st->pair, &attr);
	for (i = 0; i < 2; i++) {
		st->buf[i] = ft_map(NULL, FT_PAGE);
		st->mr[i] = ft_reg(&st->pair.dom[i], st->buf[i], FT_PAGE,
				   FI_SEND | FI_RECV | FI_READ | FI_WRITE |
					   FI_REMOTE_READ | FI_REMOTE_WRITE);
		st->desc[i] = fi_mr_desc(st->mr[i]);
		FT_CHECK(st->desc[i], "%s gives no descriptor", prov[side]);
	}
	/*
	 * Transfers without descriptors bring an endpoint over ofi_mrrc into
	 * its general state in both directions, and grow the core's pools.
	 */
	buf = ft_map(NULL, FT_PAGE);
	for (i = 0; i < 16; i++) {
		ft_send_recv(&st->pair.c, buf, buf + 64, MSG);
		ft_send_recv(&st->pair.s, buf, buf + 64, MSG);
	}
	ft_release(&st->pair.dom[0]);
	ft_release(&st->pair.dom[1]);
	ft_unmap(buf, FT_PAGE);
}

static void stack_close(struct stack *st, enum side side)
{
	int i;

	use(side);
	for (i = 0; i < 2; i++) {
		FT_CALL(fi_close(&st->mr[i]->fid));
		ft_unmap(st->buf[i], FT_PAGE);
	}
	ft_pair_close(&st->pair);
}

/*
 * Waits for a completion: a read of 0 entries makes progress and tells whether
 * there is a completion.
 */
static void wait_for(struct fid_cq *cq, struct ft_ep *other)
{
	uint64_t end = ft_now_us() + 30000000;

	while (fi_cq_read(cq, NULL, 0) == -FI_EAGAIN) {
		fi_cq_read(other->cq[FT_TX], NULL, 0);
		fi_cq_read(other->cq[FT_RX], NULL, 0);
		FT_CHECK(ft_now_us() < end, "no completion");
	}
}

static void take(struct fid_cq *cq, struct ft_ep *other)
{
	struct fi_cq_data_entry entry;
	ssize_t ret;

	wait_for(cq, other);
	ret = layer_completion(cq, &entry);
	FT_CHECK(ret == 1, "fi_cq_read: %zd", ret);
}

/* ---- for callgrind ------------------------------------------------------ */

/* @cycle: length of the memory from which writes take their sources in turn. */
static void repeat(struct stack *st, unsigned cnt, bool write, size_t cycle)
{
	struct ft_ep *s = &st->pair.s, *c = &st->pair.c;
	unsigned i;

	for (i = 0; i < cnt; i++) {
		ft_stage("operation %u", i);
		if (write) {
			FT_POST(c, layer_write(c->ep,
					       st->buf[1] + i * APART % cycle,
					       st->desc[1],
					       ft_raddr(&st->pair.dom[0],
							st->buf[0]),
					       fi_mr_key(st->mr[0])));
			take(c->cq[FT_TX], s);
		} else {
			FT_POST(s, layer_recv(s->ep, st->buf[0], st->desc[0]));
			FT_POST(c, layer_send(c->ep, st->buf[1], st->desc[1]));
			take(c->cq[FT_TX], s);
			take(s->cq[FT_RX], c);
		}
	}
	printf("operations %u\n", cnt);
}

/*
 * Makes the first write of the buffer, which registers the buffer and is not
 * measured.
 */
static void first_write(struct stack *st)
{
	struct fi_cq_data_entry entry;
	struct ft_ep *c = &st->pair.c;

	FT_POST(c, fi_write(c->ep, st->buf[1], MSG, st->desc[1], 0,
			    ft_raddr(&st->pair.dom[0], st->buf[0]),
			    fi_mr_key(st->mr[0]), NULL));
	wait_for(c->cq[FT_TX], &st->pair.s);
	FT_CHECK(fi_cq_read(c->cq[FT_TX], &entry, 1) == 1, "fi_cq_read");
}

/*
 * Makes writes whose lookups all miss, if the cache keeps fewer regions than
 * there are buffers. All buffers have been registered before the writes are
 * measured. Each buffer is a separate mapping, so that the monitor watches each
 * by itself.
 */
static void repeat_misses(struct stack *st, unsigned cnt)
{
	char *buf = ft_map(NULL, MISSES * APART);
	void *from = st->buf[1];
	struct ft_ep *c = &st->pair.c;
	unsigned i;

	for (i = 0; i < MISSES; i++) {
		ft_stage("buffer %u", i);
		FT_CHECK(!mprotect(buf + i * APART + FT_PAGE, FT_PAGE,
				   PROT_NONE),
			 "mprotect: %s", strerror(errno));
		FT_POST(c, fi_write(c->ep, buf + i * APART, MSG, NULL, 0,
				    ft_raddr(&st->pair.dom[0], st->buf[0]),
				    fi_mr_key(st->mr[0]), NULL));
		take(c->cq[FT_TX], &st->pair.s);
	}
	st->buf[1] = buf;
	repeat(st, cnt, true, MISSES * APART);
	st->buf[1] = from;
	ft_release(&st->pair.dom[1]);
	ft_unmap(buf, MISSES * APART);
}

/* ---- rate and latency --------------------------------------------------- */

static void reap(struct ft_ep *ep, enum ft_dir dir, unsigned cnt,
		 struct ft_ep *other)
{
	struct fi_cq_data_entry entry[16];
	ssize_t ret;

	while (cnt) {
		ret = fi_cq_read(ep->cq[dir], entry, cnt < 16 ? cnt : 16);
		if (ret == -FI_EAGAIN) {
			fi_cq_read(other->cq[dir], NULL, 0);
			continue;
		}
		FT_CHECK(ret > 0, "fi_cq_read: %zd", ret);
		cnt -= (unsigned) ret;
	}
}

/* Returns microseconds for BATCH messages in windows. */
static uint64_t batch_rate(struct stack *st)
{
	struct ft_ep *s = &st->pair.s, *c = &st->pair.c;
	const unsigned window = 50;
	uint64_t start = ft_now_us();
	unsigned i, done;

	for (done = 0; done < BATCH; done += window) {
		for (i = 0; i < window; i++)
			FT_CALL(fi_recv(s->ep, st->buf[0], MSG, st->desc[0], 0,
					NULL));
		for (i = 0; i < window; i++)
			FT_CALL(fi_send(c->ep, st->buf[1], MSG, st->desc[1], 0,
					NULL));
		reap(c, FT_TX, window, s);
		reap(s, FT_RX, window, c);
	}
	return ft_now_us() - start;
}

static void one_way(struct stack *st, struct ft_ep *from, int i)
{
	struct ft_ep *to = from->peer;

	FT_CALL(fi_recv(to->ep, st->buf[!i], MSG, st->desc[!i], 0, NULL));
	FT_CALL(fi_send(from->ep, st->buf[i], MSG, st->desc[i], 0, NULL));
	reap(from, FT_TX, 1, to);
	reap(to, FT_RX, 1, from);
}

/* Returns microseconds for BATCH / 2 round trips. */
static uint64_t batch_latency(struct stack *st)
{
	uint64_t start = ft_now_us();
	unsigned i;

	for (i = 0; i < BATCH / 2; i++) {
		one_way(st, &st->pair.c, 1);
		one_way(st, &st->pair.s, 0);
	}
	return ft_now_us() - start;
}

/* ---- writes without a descriptor ---- */

/*
 * Returns the microseconds of BATCH writes from buffers in turn, with @window
 * writes under way at a time.
 */
static uint64_t batch_write(struct stack *st, char *buf, unsigned window)
{
	struct ft_ep *s = &st->pair.s, *c = &st->pair.c;
	const uint64_t addr = ft_raddr(&st->pair.dom[0], st->buf[0]);
	const uint64_t key = fi_mr_key(st->mr[0]);
	uint64_t start = ft_now_us();
	unsigned i, done;

	for (done = 0; done < BATCH; done += window) {
		for (i = 0; i < window; i++)
			FT_CALL(fi_write(c->ep,
					 buf + (done + i) % BUFS * FT_PAGE, MSG,
					 NULL, 0, addr, key, NULL));
		reap(c, FT_TX, window, s);
	}
	return ft_now_us() - start;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *) a, y = *(const double *) b;

	return x < y ? -1 : x > y;
}

static double median(double *values, unsigned cnt)
{
	qsort(values, cnt, sizeof(*values), by_value);
	return values[cnt / 2];
}

/* Prints "NAME RAW STACK PERCENT": us of a message, raw over stack. */
static void compare(const char *name, struct stack *st,
		    uint64_t (*batch)(struct stack *))
{
	unsigned rounds = ft_iters(ROUNDS), i, first;
	double *us[SIDES], *ratio;

	us[RAW] = calloc(rounds, sizeof(double));
	us[STACK] = calloc(rounds, sizeof(double));
	ratio = calloc(rounds, sizeof(double));
	FT_CHECK(us[RAW] && us[STACK] && ratio, "calloc");
	for (i = 0; i < rounds + 5; i++) {
		ft_stage("%s, round %u", name, i);
		/*
		 * the sides take turns in going first; the first rounds warm up
		 */
		first = i % 2;
		unsigned at = i < 5 ? 0 : i - 5;

		us[first][at] = (double) batch(&st[first]) / BATCH;
		us[!first][at] = (double) batch(&st[!first]) / BATCH;
		ratio[at] = us[RAW][at] / us[STACK][at];
	}
	printf("%s %.3f %.3f %.1f\n", name, median(us[RAW], rounds),
	       median(us[STACK], rounds), 100 * median(ratio, rounds));
	free(us[RAW]);
	free(us[STACK]);
	free(ratio);
}

/* Prints "write WINDOW MEDIAN": median us of a write. */
static void time_writes(struct stack *st, unsigned window)
{
	const unsigned rounds = ft_iters(ROUNDS / 4), warm = 5;
	char *buf = ft_map(NULL, BUFS * FT_PAGE);
	double *us = calloc(rounds, sizeof(double));
	unsigned i;

	FT_CHECK(us, "calloc");
	for (i = 0; i < rounds + warm; i++) {
		ft_stage("writes, round %u", i);
		us[i < warm ? 0 : i - warm] =
			(double) batch_write(st, buf, window) / BATCH;
	}
	printf("write %u %.4f\n", window, median(us, rounds));
	free(us);
	ft_release(&st->pair.dom[1]);
	ft_unmap(buf, BUFS * FT_PAGE);
}

static void usage(const char *name)
{
	ft_usage(name);
	printf("\n  -m OP        for callgrind: repeat OP (send, write, "
	       "miss) over\n               PROVIDER\n"
	       "  -N           with null descriptors; without -m: time "
	       "writes over PROVIDER\n  -A           with null descriptors of "
	       "fi_mr_alloc()'s memory\n");
}

int main(int argc, char **argv)
{
	struct stack st[SIDES];
	const char *mode = NULL;
	bool null = false, born = false, misses;
	enum side side;
	void *from;
	int op;

	while ((op = getopt(argc, argv, FT_OPTS "Am:N")) != -1) {
		if (op == 'm') {
			mode = optarg;
		} else if (op == 'N') {
			null = true;
		} else if (op == 'A') {
			null = born = true;
		} else if (op == 'h') {
			usage(argv[0]);
			return 0;
		} else {
			ft_parse_opt(argv[0], op, optarg);
		}
	}
	ft_start(argv[0]);
	if (mode) {
		misses = !strcmp(mode, "miss");
		FT_CHECK(misses || !strcmp(mode, "send") ||
				 !strcmp(mode, "write"),
			 "no such operation: %s", mode);
		side = ft_opts.raw ? RAW : STACK;
		stack_open(&st[side], side);
		if (null || misses)
			st[side].desc[0] = st[side].desc[1] = NULL;
		from = st[side].buf[1];
		if (born)
			FT_CALL(fi_mr_alloc(st[side].pair.dom[1].domain, MSG,
					    FI_WRITE, 0,
					    (void **) &st[side].buf[1], NULL));
		if (!strcmp(mode, "write"))
			first_write(&st[side]);
		if (misses)
			repeat_misses(&st[side], ft_iters(1000));
		else
			repeat(&st[side], ft_iters(1000),
			       !strcmp(mode, "write"), 1);
		if (born)
			fi_mr_free(st[side].pair.dom[1].domain,
				   st[side].buf[1]);
		st[side].buf[1] = from;
		stack_close(&st[side], side);
		return ft_done();
	}
	if (null) {
		side = ft_opts.raw ? RAW : STACK;
		FT_CHECK(side == STACK, "-N is for ofi_mrrc");
		stack_open(&st[side], side);
		time_writes(&st[side], 1);
		time_writes(&st[side], 50);
		stack_close(&st[side], side);
		return ft_done();
	}
	stack_open(&st[RAW], RAW);
	stack_open(&st[STACK], STACK);
	compare("rate", st, batch_rate);
	compare("latency", st, batch_latency);
	stack_close(&st[STACK], STACK);
	stack_close(&st[RAW], RAW);
	return ft_done();
}
