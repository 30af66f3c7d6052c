/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_threads: tests threads with a connection each on one pair of domains,
 * which send, receive, read and write, and map and unmap their own buffers.
 * After one thread unmaps memory, another thread may map memory at the same
 * address. One more thread asks for statistics and flushes. At the end domains
 * open and close, which places and removes the hooks of libc, while threads map
 * and unmap memory.
 */
#include "ft_mrrc.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 4
#define MAX	(24 * FT_PAGE)

struct worker {
	pthread_t thread;
	unsigned id, rounds;
	struct ft_dom dom[2]; /* raw mode: own lists of registrations */
	struct ft_ep s, c;
	char *in; /* registered target of writes and reads */
	struct fid_mr *mr;
};

static struct ft_pair pair;
static atomic_bool ended;

static void rma(struct worker *w, char *p, size_t len, uint64_t seed)
{
	uint64_t addr = ft_raddr(w->s.dom, w->in), key = fi_mr_key(w->mr);
	void *d = ft_desc(w->c.dom, p, len);

	ft_fill(p, len, seed);
	memset(w->in, 0, len);
	FT_POST(&w->c, fi_write(w->c.ep, p, len, d, w->c.to, addr, key, p));
	ft_wait_ctx(&w->c, FT_TX, p, FI_WRITE);
	ft_wait_buf(&w->c, w->in, len, seed);
	memset(p, 0, len);
	FT_POST(&w->c, fi_read(w->c.ep, p, len, d, w->c.to, addr, key, p));
	ft_wait_ctx(&w->c, FT_TX, p, FI_READ);
	FT_CHECK_BUF(p, len, seed, "read");
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	char *p = NULL, *q = ft_map(NULL, MAX);
	uint64_t seed = (uint64_t) w->id << 32;
	size_t len = MAX, mapped = 0;
	unsigned i;

	for (i = 0; i < w->rounds; i++) {
		if (!p) {
			mapped = (1 + ft_rand() % (MAX / FT_PAGE)) * FT_PAGE;
			p = ft_map(NULL, mapped);
		}
		len = 1 + ft_rand() % mapped;
		switch (ft_rand() % 3) {
		case 0:
			ft_verify_pair(&w->c, p, q, len, ++seed);
			break;
		case 1:
			ft_verify_pair(&w->s, q, p, len, ++seed);
			break;
		default:
			rma(w, p, len, ++seed);
		}
		ft_release(&w->dom[0]);
		ft_release(&w->dom[1]);
		if (ft_rand() % 2) {
			ft_unmap(p, mapped);
			p = NULL;
		} else if (ft_rand() % 4 == 0) {
			ft_map(p, mapped); /* MAP_FIXED */
		}
	}
	if (p)
		ft_unmap(p, mapped);
	ft_unmap(q, MAX);
	return NULL;
}

static void *watcher_main(void *arg)
{
	struct fi_mrrc_stats st;
	unsigned i = 0;

	while (!atomic_load(&ended)) {
		if (!ft_stats(&pair.dom[1], &st))
			break;
		FT_CHECK(st.hits + st.misses <= st.lookups + THREADS,
			 "hits and misses beyond lookups");
		if (i++ % 50 == 0)
			FT_CALL(fi_mrrc_flush(pair.dom[1].domain));
		usleep(500);
	}
	return NULL;
}

static void worker_open(struct worker *w, unsigned id, unsigned rounds)
{
	w->id = id;
	w->rounds = rounds;
	ft_connect(&pair, &w->s, &w->c);
	w->dom[0] = pair.dom[0];
	w->dom[1] = pair.dom[1];
	w->s.dom = &w->dom[0];
	w->c.dom = &w->dom[1];
	w->in = ft_map(NULL, MAX);
	w->mr = ft_reg(w->s.dom, w->in, MAX, FI_REMOTE_READ | FI_REMOTE_WRITE);
}

static void worker_close(struct worker *w)
{
	FT_CALL(fi_close(&w->mr->fid));
	ft_ep_close(&w->s);
	ft_ep_close(&w->c);
	ft_unmap(w->in, MAX);
}

/*
 * Maps and unmaps memory without transfers: each call must work as libc
 * documents it.
 */
static void *spinner_main(void *arg)
{
	char *p, *q;

	while (!atomic_load(&ended)) {
		p = ft_map(NULL, 4 * FT_PAGE);
		memset(p, 1, 4 * FT_PAGE);
		FT_CHECK(!madvise(p, FT_PAGE, MADV_DONTNEED) && !p[0] &&
				 p[FT_PAGE] == 1,
			 "madvise: %s", strerror(errno));
		q = mremap(p, 4 * FT_PAGE, 8 * FT_PAGE, MREMAP_MAYMOVE);
		FT_CHECK(q != MAP_FAILED && q[FT_PAGE] == 1, "mremap: %s",
			 strerror(errno));
		ft_unmap(q, 8 * FT_PAGE);
		p = malloc(300 * 1024);
		FT_CHECK(p, "malloc");
		p[0] = 1;
		free(p);
	}
	return NULL;
}

/*
 * Opens and closes domains: the last domain that closes removes the hooks, the
 * next domain places the hooks again.
 */
static void domains(unsigned rounds)
{
	struct ft_attr attr = FT_ATTR;
	struct fi_info *info = ft_getinfo(&attr);
	pthread_t spinner[THREADS];
	struct fid_domain *domain;
	struct fid_fabric *fabric;
	struct fid_mr *mr;
	unsigned i;
	char *p = ft_map(NULL, MAX);

	atomic_store(&ended, false);
	for (i = 0; i < THREADS; i++)
		FT_CHECK(!pthread_create(&spinner[i], NULL, spinner_main, NULL),
			 "pthread_create");
	for (i = 0; i < rounds; i++) {
		ft_stage("domain %u", i);
		FT_CALL(fi_fabric(info->fabric_attr, &fabric, NULL));
		FT_CALL(fi_domain(fabric, info, &domain, NULL));
		FT_CALL(fi_mr_reg(domain, p, MAX, FI_SEND, 0, i, 0, &mr, NULL));
		FT_CALL(fi_close(&mr->fid));
		if (i % 2)
			ft_map(p, MAX);
		FT_CALL(fi_close(&domain->fid));
		FT_CALL(fi_close(&fabric->fid));
	}
	atomic_store(&ended, true);
	for (i = 0; i < THREADS; i++)
		pthread_join(spinner[i], NULL);
	ft_unmap(p, MAX);
	fi_freeinfo(info);
}

int main(int argc, char **argv)
{
	struct worker workers[THREADS];
	struct ft_attr attr = FT_ATTR;
	struct fi_mrrc_stats st;
	pthread_t watcher;
	unsigned i, rounds;

	ft_init(argc, argv);
	if (ft_core("net"))
		ft_skip("net (1.17) lets one thread register at a time");
	rounds = ft_iters(ft_core("verbs") ? 100 : 2000);
	attr.threading = FI_THREAD_SAFE;
	ft_pair_open(&pair, &attr);
	memset(workers, 0, sizeof(workers));
	for (i = 0; i < THREADS; i++)
		worker_open(&workers[i], i, rounds);
	ft_stage("%d threads", THREADS);
	FT_CHECK(!pthread_create(&watcher, NULL, watcher_main, NULL),
		 "pthread_create");
	for (i = 0; i < THREADS; i++)
		FT_CHECK(!pthread_create(&workers[i].thread, NULL, worker_main,
					 &workers[i]),
			 "pthread_create");
	for (i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	atomic_store(&ended, true);
	pthread_join(watcher, NULL);
	for (i = 0; i < THREADS; i++)
		worker_close(&workers[i]);
	if (ft_caches(&pair.dom[1])) {
		ft_stats(&pair.dom[1], &st);
		FT_CHECK(st.hits && st.invalidations,
			 "%" PRIu64 " hits, %" PRIu64 " invalidations", st.hits,
			 st.invalidations);
	}
	ft_pair_close(&pair);
	if (!ft_opts.raw)
		/* ofi_rxm's domains take 40 ms */
		domains(rounds / (ft_rxm() ? 40 : 8));
	return ft_done();
}
