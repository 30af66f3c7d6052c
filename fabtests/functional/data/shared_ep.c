/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_shared_ep: tests several threads that use one pair of endpoints at
 * once: each thread sends and receives messages with a separate tag in both
 * directions, one thread reads the queues for all threads, and buffers are
 * mapped and unmapped.
 */
#include "ft_mrrc.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define THREADS 3
#define MAX	(40 * FT_PAGE) /* more than a core copies */

/*
 * A message under way; the address of a struct note is the context of the
 * message's send and receive.
 */
struct note {
	atomic_int ends; /* number of completions read, of two */
	size_t len;	 /* received */
	uint64_t tag;
};

struct worker {
	pthread_t thread;
	struct ft_dom dom[2]; /* raw mode: own lists of registrations */
	uint64_t tag;
	unsigned rounds;
};

static struct ft_pair pair;
static atomic_bool ended;

/* Posts an operation, again and again while another thread makes progress. */
#define POST(call)                                                       \
	do {                                                             \
		uint64_t end_ = ft_deadline();                           \
		ssize_t rc_;                                             \
                                                                         \
		while ((rc_ = (call)) == -FI_EAGAIN) {                   \
			sched_yield();                                   \
			FT_CHECK(ft_limit_us() < end_, "%s: -FI_EAGAIN", \
				 #call);                                 \
		}                                                        \
		FT_CHECK(!rc_, "%s: %zd", #call, rc_);                   \
	} while (0)

static void read_queue(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry[8];
	struct fi_cq_err_entry err = { 0 };
	struct note *note;
	ssize_t ret, i;

	ret = fi_cq_read(cq, entry, 8);
	if (ret == -FI_EAVAIL) {
		fi_cq_readerr(cq, &err, 0);
		FT_CHECK(0, "error %d, context %p", err.err, err.op_context);
	}
	FT_CHECK(ret > 0 || ret == -FI_EAGAIN, "fi_cq_read: %zd", ret);
	for (i = 0; i < ret; i++) {
		note = entry[i].op_context;
		if (entry[i].flags & FI_RECV) {
			note->len = entry[i].len;
			note->tag = entry[i].tag;
		}
		FT_CHECK(atomic_fetch_add(&note->ends, 1) < 2,
			 "a completion too many");
	}
}

static void *reader_main(void *arg)
{
	while (!atomic_load(&ended)) {
		read_queue(pair.s.cq[FT_TX]);
		read_queue(pair.s.cq[FT_RX]);
		read_queue(pair.c.cq[FT_TX]);
		read_queue(pair.c.cq[FT_RX]);
		sched_yield();
	}
	return NULL;
}

static void one(struct worker *w, struct ft_ep *from, char *out, char *in,
		size_t len, uint64_t seed)
{
	struct ft_ep *to = from->peer;
	void *sd = ft_desc(&w->dom[from == &pair.c], out, len);
	void *rd = ft_desc(&w->dom[to == &pair.c], in, len);
	uint64_t end = ft_deadline();
	struct note note = { 0 };

	ft_fill(out, len, seed);
	memset(in, 0, len);
	if (seed % 2)
		POST(fi_trecv(to->ep, in, len, rd, FT_ANY, w->tag, 0, &note));
	POST(fi_tsend(from->ep, out, len, sd, from->to, w->tag, &note));
	if (!(seed % 2))
		POST(fi_trecv(to->ep, in, len, rd, FT_ANY, w->tag, 0, &note));
	while (atomic_load(&note.ends) < 2) {
		sched_yield();
		FT_CHECK(ft_limit_us() < end,
			 "thread %" PRIu64 ": %d of 2 "
			 "completions",
			 w->tag, atomic_load(&note.ends));
	}
	FT_CHECK(note.len == len && note.tag == w->tag,
		 "%zu bytes with tag %" PRIu64, note.len, note.tag);
	FT_CHECK_BUF(in, len, seed, "of one thread among several");
	ft_release(&w->dom[0]);
	ft_release(&w->dom[1]);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	char *p = NULL, *q = ft_map(NULL, MAX);
	uint64_t seed = w->tag << 32;
	unsigned i;
	size_t len;

	for (i = 0; i < w->rounds; i++) {
		if (!p)
			p = ft_map(NULL, MAX);
		len = ft_rand() % 2 ? 1 + ft_rand() % 5000 :
				      1 + ft_rand() % MAX;
		one(w, ft_rand() % 2 ? &pair.c : &pair.s, p, q, len, ++seed);
		if (ft_rand() % 4 == 0) {
			ft_unmap(p, MAX);
			p = NULL;
		}
	}
	if (p)
		ft_unmap(p, MAX);
	ft_unmap(q, MAX);
	return NULL;
}

int main(int argc, char **argv)
{
	struct worker workers[THREADS];
	struct ft_attr attr = FT_ATTR;
	pthread_t reader;
	unsigned i;

	ft_init(argc, argv);
	if (ft_core("net"))
		ft_skip("net (1.17) lets one thread register at a time");
	attr.caps = FI_MSG | FI_TAGGED;
	attr.format = FI_CQ_FORMAT_TAGGED;
	attr.threading = FI_THREAD_SAFE;
	ft_pair_open(&pair, &attr);
	memset(workers, 0, sizeof(workers));
	ft_stage("%d threads on one endpoint", THREADS);
	FT_CHECK(!pthread_create(&reader, NULL, reader_main, NULL),
		 "pthread_create");
	for (i = 0; i < THREADS; i++) {
		workers[i].tag = i + 1;
		workers[i].rounds = ft_iters(ft_core("verbs") ? 40 : 1000);
		workers[i].dom[0] = pair.dom[0];
		workers[i].dom[1] = pair.dom[1];
		FT_CHECK(!pthread_create(&workers[i].thread, NULL, worker_main,
					 &workers[i]),
			 "pthread_create");
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	atomic_store(&ended, true);
	pthread_join(reader, NULL);
	ft_check_idle(&pair.dom[0], "all threads done");
	ft_check_idle(&pair.dom[1], "all threads done");
	ft_pair_close(&pair);
	return ft_done();
}
