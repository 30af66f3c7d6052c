/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cwrate_bench: measures streams of small transactions. In each transaction,
 * one buffer is written into memory that its owner has just made free; a fixed
 * number of transactions is under way at once. Two ways alternate:
 *
 *   messages  as an application can build it: the memory is registered once,
 *	       one message tells of all places that are free by then, receives
 *	       are posted ahead, and places are written with remote CQ data
 *   cwrite    fi_cwtag() of each free place; fi_cwrite() is posted ahead, for
 *	       all data that exist: the writer need not know of a place
 *
 * Each side is a thread that computes for a while, then looks at its queues.
 * Prints medians of transactions a second. bench.sh runs cwrate_bench.
 */
#include "ft_bench.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define DEPTH_MAX 128
#define ROUNDS	  7
#define BATCH	  32

enum way { MESSAGES, CWRITE, WAYS };

struct note {
	uint32_t cnt;
	uint32_t slot[DEPTH_MAX];
};

static struct ft_pair pair;
static char *out, *in;
static struct fid_mr *mr;	     /* registration of in */
static struct note *sent, *received; /* for each place two on each side */
static unsigned depth, total;
static size_t len;
static unsigned target_us, writer_us;
static enum way way;
static atomic_uint finished;

static void compute(unsigned us)
{
	uint64_t end = ft_now_us() + us;

	if (!us)
		sched_yield();
	while (us && ft_now_us() < end)
		;
}

static ssize_t take(struct fid_cq *cq, struct fi_cq_tagged_entry *entry)
{
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret = fi_cq_read(cq, entry, BATCH);

	if (ret == -FI_EAGAIN)
		return 0;
	if (ret == -FI_EAVAIL)
		fi_cq_readerr(cq, &err, 0);
	FT_CHECK(ret > 0, "fi_cq_read: %zd, error %d", ret, err.err);
	return ret;
}

#define POST(ep, call)                                          \
	do {                                                    \
		ssize_t rc_;                                    \
		struct fi_cq_tagged_entry none_;                \
		while ((rc_ = (call)) == -FI_EAGAIN)            \
			fi_cq_read((ep)->cq[FT_TX], &none_, 0); \
		FT_CHECK(!rc_, "%s: %zd", #call, rc_);          \
	} while (0)

/* ---- the target's side --------------------------------------------------- */

static void tell(struct note *note)
{
	if (!note->cnt)
		return;
	POST(&pair.s,
	     fi_send(pair.s.ep, note, (1 + note->cnt) * sizeof(uint32_t), NULL,
		     0, note));
}

/* more: another call follows at once */
static void expose(unsigned slot, bool more)
{
	struct iovec iov = { in + slot * len, len };
	struct fi_msg_cw msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.cwtag = slot,
		.context = in + slot * len,
	};

	POST(&pair.s, fi_cwtagmsg(pair.s.cw, &msg,
				  FI_COMPLETION | FI_MRRC_CW_KEEP |
					  (more ? FI_MORE : 0)));
}

static void *target_main(void *arg)
{
	struct fi_cq_tagged_entry entry[BATCH];
	unsigned done = 0, exposed, i, next = 0;
	struct note *note;
	ssize_t n, k;

	note = &sent[next++];
	note->cnt = 0;
	for (i = 0; i < depth; i++) {
		if (way == CWRITE)
			expose(i, i + 1 < depth);
		else
			note->slot[note->cnt++] = i;
	}
	exposed = depth;
	if (way == MESSAGES)
		tell(note);
	while (done < total) {
		compute(target_us);
		if (way == MESSAGES) {
			while (take(pair.s.cq[FT_TX], entry))
				;
			note = &sent[next++ % (2 * DEPTH_MAX)];
			note->cnt = 0;
		}
		while ((n = take(pair.s.cq[FT_RX], entry))) {
			for (k = 0; k < n; k++) {
				i = way == CWRITE ? entry[k].tag :
						    entry[k].data;
				done++;
				if (exposed == total)
					continue;
				exposed++;
				if (way == CWRITE)
					expose(i, k + 1 < n);
				else
					note->slot[note->cnt++] = i;
			}
		}
		if (way == MESSAGES)
			tell(note);
	}
	while (atomic_load(&finished) < total)
		take(pair.s.cq[FT_TX], entry);
	return NULL;
}

/* ---- the writer's side --------------------------------------------------- */

static void write_slot(unsigned slot)
{
	char *from = out + slot * len;

	POST(&pair.c, fi_writedata(pair.c.ep, from, len, NULL, slot, 0,
				   ft_raddr(&pair.dom[0], in) + slot * len,
				   fi_mr_key(mr), from));
}

/* Writes to place n % depth as soon as the owner has exposed it. */
static void write_ahead(unsigned n, char *from, bool more)
{
	struct iovec iov = { from, len };
	struct fi_msg_cw msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.cwtag = n % depth,
		.context = from,
	};

	POST(&pair.c, fi_cwritemsg(pair.c.cw, &msg,
				   FI_COMPLETION | (more ? FI_MORE : 0)));
}

static void listen_for(struct note *note)
{
	FT_CALL(fi_recv(pair.c.ep, note, sizeof(*note), NULL, 0, note));
}

static void writer(void)
{
	struct fi_cq_tagged_entry entry[BATCH];
	unsigned posted = 0, ended = 0, i;
	struct note *note;
	ssize_t n, k;

	for (; way == CWRITE && posted < DEPTH_MAX && posted < total; posted++)
		write_ahead(posted, out + posted * len,
			    posted + 1 < DEPTH_MAX && posted + 1 < total);
	while (ended < total) {
		compute(writer_us);
		while (way == MESSAGES && (n = take(pair.c.cq[FT_RX], entry))) {
			for (k = 0; k < n; k++) {
				note = entry[k].op_context;
				for (i = 0; i < note->cnt; i++)
					write_slot(note->slot[i]);
				listen_for(note);
			}
		}
		while ((n = take(pair.c.cq[FT_TX], entry))) {
			ended += n;
			for (k = 0; way == CWRITE && k < n && posted < total;
			     k++, posted++)
				write_ahead(posted, entry[k].op_context,
					    k + 1 < n && posted + 1 < total);
		}
		atomic_store(&finished, ended);
	}
}

static double run(enum way which)
{
	uint64_t start = ft_now_us();
	pthread_t target;

	way = which;
	atomic_store(&finished, 0);
	FT_CHECK(!pthread_create(&target, NULL, target_main, NULL), "thread");
	writer();
	pthread_join(target, NULL);
	return total * 1e6 / (ft_now_us() - start);
}

static void measure(unsigned d, size_t l)
{
	double rate[WAYS][ROUNDS], value[WAYS];
	unsigned i, w;

	depth = d;
	len = l;
	total = ft_iters(64) * (depth < 16 ? depth : 16);
	if (total < 4 * depth)
		total = 4 * depth;
	ft_stage("depth %u, %zu bytes, %u and %u us apart", depth, len,
		 target_us, writer_us);
	for (i = 0; i < ROUNDS; i++) {
		for (w = 0; w < WAYS; w++)
			rate[w][i] = run((w + i) % 2) * ((w + i) % 2 ? 1 : -1);
		/* bring both rates in order, whichever way came first */
		if (rate[0][i] > 0) {
			double swap = rate[0][i];

			rate[0][i] = rate[1][i];
			rate[1][i] = swap;
		}
		rate[0][i] = -rate[0][i];
	}
	for (w = 0; w < WAYS; w++)
		value[w] = ft_median(rate[w], ROUNDS);
	printf("%6u %6zu %7u %7u %12.0f %12.0f %7.2f\n", depth, len, target_us,
	       writer_us, value[MESSAGES], value[CWRITE],
	       value[CWRITE] / value[MESSAGES]);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const unsigned depths[] = { 1, 4, 16, 64, 128 };
	/*
	 * microseconds between two reads of its queues: by the target, by the
	 * writer
	 */
	static const unsigned us[][2] = {
		{ 0, 0 },
		{ 100, 100 },
		{ 100, 1000 },
		{ 100, 5000 },
	};
	static const size_t lens[] = { 64, 4096 };
	struct ft_attr attr = FT_ATTR;
	unsigned i, k, c;

	ft_init(argc, argv);
	attr.format = FI_CQ_FORMAT_TAGGED;
	attr.cw = attr.cw_pep = true;
	out = ft_map(NULL, DEPTH_MAX * lens[1]);
	in = ft_map(NULL, DEPTH_MAX * lens[1]);
	sent = ft_map(NULL, 2 * DEPTH_MAX * sizeof(*sent));
	received = ft_map(NULL, 2 * DEPTH_MAX * sizeof(*received));
	ft_pair_open(&pair, &attr);
	mr = ft_reg(&pair.dom[0], in, DEPTH_MAX * lens[1], FI_REMOTE_WRITE);
	for (i = 0; i < 2 * DEPTH_MAX; i++)
		listen_for(&received[i]);
	printf("%6s %6s %7s %7s %12s %12s %7s\n", "depth", "bytes", "target",
	       "writer", "messages/s", "cwrite/s", "ratio");
	for (c = 0; c < sizeof(us) / sizeof(*us); c++) {
		target_us = us[c][0];
		writer_us = us[c][1];
		for (k = 0; k < 2; k++)
			for (i = 0; i < sizeof(depths) / sizeof(*depths); i++)
				measure(depths[i], lens[k]);
	}
	return 0;
}
