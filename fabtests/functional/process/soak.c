/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_soak: tests that no resource grows in a process that runs for long.
 * Two threads replace, free, move and transfer buffers all the time, and verify
 * the received data; domains, connections, blocks of fi_mr_alloc, threads and
 * children begin and end. The process's resources are measured again and again:
 * the maximum in the last quarter of the time may not exceed the maximum in the
 * second quarter.
 *
 * FT_SECONDS is the duration in seconds (default 8; 24 over verbs, with fewer
 * buffers, where the machine may be emulated). The test prints the maximum of
 * each quarter.
 */
#include "ft_mrrc.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define BUFS	 256 /* buffers of a worker */
#define BUFS_FEW 16  /* buffers of a worker over verbs */
#define MAX	 (64 * FT_PAGE)
#define WORKERS	 2
#define SECONDS	 8
#define SAMPLES	 200   /* samples in the whole time */
#define VISIT	 40000 /* us from one visit() to the next */

/* ---- resources of the process ---- */

#define QUARTERS 4

enum { MAPPINGS, RESIDENT, DESCRIPTORS, THREADS, REGIONS, BYTES, MEASURES };

static const struct {
	const char *name;
	size_t slack; /* growth allowed, beyond a tenth */
} measures[MEASURES] = {
	/*
	 * slack is the number of ranges that stay watched: a slow machine needs
	 * the whole time to watch as many ranges
	 */
	[MAPPINGS] = { "mappings", 1024 },
	[RESIDENT] = { "resident bytes", 32UL << 20 },
	[DESCRIPTORS] = { "descriptors", 8 },
	[THREADS] = { "threads", 2 },
	[REGIONS] = { "registered regions", 64 },
	[BYTES] = { "registered bytes", 16UL << 20 },
};

static size_t most[QUARTERS][MEASURES];
static struct ft_pair pair;

static size_t thread_count(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	size_t n = 0;

	FT_CHECK(file, "/proc/self/status");
	while (fgets(line, sizeof(line), file) &&
	       sscanf(line, "Threads: %zu", &n) != 1)
		;
	fclose(file);
	return n;
}

static void sample(unsigned quarter)
{
	struct fi_mrrc_stats st;
	size_t now[MEASURES];
	unsigned i;

	ft_stats(&pair.dom[1], &st);
	/* ofi_rxm has freed 130 MB of buffers, of which libc keeps some or all */
	malloc_trim(0);
	now[MAPPINGS] = ft_mappings();
	now[RESIDENT] = ft_rss();
	now[DESCRIPTORS] = ft_fd_count();
	now[THREADS] = thread_count();
	now[REGIONS] = st.regions;
	now[BYTES] = st.bytes;
	for (i = 0; i < MEASURES; i++) {
		if (now[i] > most[quarter][i])
			most[quarter][i] = now[i];
	}
}

static void compare(void)
{
	const size_t *before = most[1], *after = most[QUARTERS - 1];
	bool grows = false;
	unsigned i;

	if (!before[MAPPINGS] || !after[MAPPINGS])
		ft_skip("too slow: nothing to compare");
	for (i = 0; i < MEASURES; i++) {
		printf("%s: %zu, %zu, %zu, %zu\n", measures[i].name, most[0][i],
		       most[1][i], most[2][i], most[3][i]);
		grows |= after[i] >
			 before[i] + before[i] / 10 + measures[i].slack;
	}
	FT_CHECK(!grows, "more and more of something");
}

/* ---- buffers that are replaced and transferred ---- */

struct buf {
	char *p;
	size_t len;
	bool mapped;
};

struct worker {
	pthread_t thread;
	struct buf buf[BUFS];
};

static struct worker workers[WORKERS];
static pthread_mutex_t ep_lock = PTHREAD_MUTEX_INITIALIZER;
static char *in; /* registered, as a target of transfers */
static struct fid_mr *in_mr;
static atomic_uint_fast64_t seeds, transfers;
static pthread_barrier_t begun; /* all workers have all buffers */
static atomic_bool ended;
static unsigned bufs = BUFS;

static void buf_free(struct buf *buf)
{
	if (!buf->p)
		return;
	if (buf->mapped)
		ft_unmap(buf->p, buf->len);
	else
		free(buf->p);
	buf->p = NULL;
}

static void buf_new(struct buf *buf)
{
	buf_free(buf);
	buf->mapped = ft_rand() % 2;
	buf->len = (1 + ft_rand() % (MAX / FT_PAGE)) * FT_PAGE;
	buf->p = buf->mapped ? ft_map(NULL, buf->len) : malloc(buf->len);
	FT_CHECK(buf->p, "malloc of %zu", buf->len);
}

/* Replaces pages at the same place, or moves a buffer. */
static void buf_change(struct buf *buf)
{
	void *p = buf->p;

	if (!buf->mapped)
		return;
	switch (ft_rand() % 3) {
	case 0:
		FT_CHECK(!madvise(p, buf->len, MADV_DONTNEED), "madvise");
		break;
	case 1:
		ft_map(p, buf->len);
		break;
	default:
		p = mremap(p, buf->len, buf->len + FT_PAGE, MREMAP_MAYMOVE);
		FT_CHECK(p != MAP_FAILED, "mremap: %s", strerror(errno));
		buf->p = mremap(p, buf->len + FT_PAGE, buf->len, 0);
	}
}

static void conditional(char *p, size_t len, uint64_t tag)
{
	struct ft_comp comp;

	FT_POST(&pair.c, fi_cwrite(pair.c.cw, p, len, NULL, pair.c.to, tag, p));
	FT_POST(&pair.s,
		fi_cwtag(pair.s.cw, in, len, NULL, pair.s.to, tag, in));
	ft_wait(&pair.c, FT_TX, &comp);
	ft_wait(&pair.s, FT_RX, &comp);
}

static void transfer(const struct buf *from, struct buf *to)
{
	const uint64_t seed = atomic_fetch_add(&seeds, 1);
	struct ft_ep *c = &pair.c;
	size_t len = from->len;

	if (len > to->len)
		len = to->len;
	len = 1 + ft_rand() % len;
	ft_fill(from->p, len, seed);
	switch (ft_rand() % 4) {
	case 0:
		ft_send_recv(c, from->p, to->p, len);
		FT_CHECK_BUF(to->p, len, seed, "sent");
		break;
	case 1:
		FT_POST(c, fi_write(c->ep, from->p, len, NULL, c->to,
				    ft_raddr(&pair.dom[0], in),
				    fi_mr_key(in_mr), from->p));
		ft_wait_ctx(c, FT_TX, from->p, FI_WRITE);
		ft_wait_buf(c, in, len, seed);
		break;
	case 2:
		ft_fill(in, len, seed);
		FT_POST(c, fi_read(c->ep, to->p, len, NULL, c->to,
				   ft_raddr(&pair.dom[0], in), fi_mr_key(in_mr),
				   to->p));
		ft_wait_ctx(c, FT_TX, to->p, FI_READ);
		FT_CHECK_BUF(to->p, len, seed, "read");
		break;
	default:
		conditional(from->p, len, seed);
		FT_CHECK_BUF(in, len, seed, "written");
	}
	atomic_fetch_add(&transfers, 1);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct buf *from, *to;
	unsigned i;

	for (i = 0; i < bufs; i++)
		buf_new(&w->buf[i]);
	/*
	 * reach the usual mappings and memory before measuring, also on a slow
	 * machine
	 */
	for (i = 0; i < 8 * bufs; i++) {
		to = &w->buf[ft_rand() % bufs];
		buf_new(to);
		memset(to->p, 1, to->len);
		buf_change(&w->buf[ft_rand() % bufs]);
	}
	pthread_barrier_wait(&begun);
	while (!atomic_load(&ended)) {
		buf_new(&w->buf[ft_rand() % bufs]);
		buf_change(&w->buf[ft_rand() % bufs]);
		for (i = 0; i < 4; i++) {
			from = &w->buf[ft_rand() % bufs];
			to = &w->buf[ft_rand() % bufs];
			if (from == to)
				continue;
			pthread_mutex_lock(&ep_lock);
			transfer(from, to);
			pthread_mutex_unlock(&ep_lock);
		}
		if (!(ft_rand() % 1000))
			malloc_trim(0);
	}
	for (i = 0; i < bufs; i++)
		buf_free(&w->buf[i]);
	return NULL;
}

/* ---- objects that begin and end ---- */

static void *nothing(void *arg)
{
	return arg;
}

static void blocks(void)
{
	struct fid_domain *domain = pair.dom[1].domain;
	void *block[16];
	unsigned i;

	for (i = 0; i < 16; i++)
		FT_CALL(fi_mr_alloc(domain, 1 + ft_rand() % MAX, 0, 0,
				    &block[i], NULL));
	for (i = 0; i < 16; i++)
		FT_CALL(fi_mr_free(domain, block[i]));
}

static void visit(void)
{
	static struct ft_pair other;
	struct ft_attr attr = FT_ATTR;
	char *from = ft_map(NULL, MAX), *to = ft_map(NULL, MAX);
	pthread_t thread;
	int status;
	pid_t pid;

	ft_pair_open(&other, &attr);
	ft_verify_pair(&other.c, from, to, MAX, atomic_fetch_add(&seeds, 1));
	blocks();
	FT_CALL(pthread_create(&thread, NULL, nothing, NULL));
	pthread_join(thread, NULL);
	pid = fork();
	if (!pid)
		_exit(0);
	FT_CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status,
		 "a child: %d", status);
	ft_unmap(from, MAX);
	ft_pair_close(&other);
	ft_unmap(to, MAX);
}

int main(int argc, char **argv)
{
	const char *text = getenv("FT_SECONDS");
	struct ft_attr attr = FT_ATTR;
	uint64_t begin, now, time = SECONDS, next;
	unsigned i, visits = 0;

	/* otherwise a short run would end before caches are full */
	if (!text)
		setenv("FI_OFI_MRRC_CACHE_MAX_COUNT", "32", 1);
	ft_init(argc, argv);
	if (ft_opts.raw)
		ft_skip("it measures what ofi_mrrc keeps");
	if (ft_core("verbs")) {
		bufs = BUFS_FEW;
		time = 3 * SECONDS;
	}
	time = 1000000 * (text ? strtoull(text, NULL, 10) : time);
	attr.cw = attr.cw_pep = true;
	ft_pair_open(&pair, &attr);
	in = ft_map(NULL, MAX);
	in_mr = ft_reg(&pair.dom[0], in, MAX, FI_REMOTE_READ | FI_REMOTE_WRITE);
	pthread_barrier_init(&begun, NULL, WORKERS + 1);
	for (i = 0; i < WORKERS; i++)
		FT_CALL(pthread_create(&workers[i].thread, NULL, work,
				       &workers[i]));
	pthread_barrier_wait(&begun);
	begin = next = now = ft_now_us();
	for (; now < begin + time; now = ft_now_us()) {
		visit();
		visits++;
		now = ft_now_us();
		if (now >= next && now < begin + time) {
			sample((now - begin) * QUARTERS / time);
			next = now + time / SAMPLES;
		}
		usleep(VISIT);
	}
	atomic_store(&ended, true);
	for (i = 0; i < WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	printf("%" PRIuFAST64 " transfers, %u visits\n",
	       atomic_load(&transfers), visits);
	compare();
	FT_CALL(fi_close(&in_mr->fid));
	ft_check_idle(&pair.dom[0], "at the end");
	ft_check_idle(&pair.dom[1], "at the end");
	ft_pair_close(&pair);
	return ft_done();
}
