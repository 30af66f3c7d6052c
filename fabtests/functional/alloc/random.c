/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_random: blocks of all sizes from the allocator and from mmap() come
 * and go at random in two threads, which also send parts of the blocks. Each
 * block has different contents, which are verified when the block is freed;
 * each transfer is verified, too.
 *
 * scripts/test_alloc.sh preloads other allocators. FT_SECONDS is the duration
 * of the test. With FT_UCM=before or after, UCX's libucm patches libc before or
 * after the provider does.
 */
#include "ft_mrrc.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

#define BLOCKS 48
#define BIG    (768UL << 10)

struct block {
	char *p;
	size_t len;
	uint64_t seed;
	bool mapped;
};

struct worker {
	pthread_t thread;
	struct ft_ep *ep[2];
	/* lock of the endpoints, shared by both threads */
	pthread_mutex_t *lock;
	struct block block[BLOCKS];
	uint64_t sent;
};

static struct ft_pair pair;
static uint64_t end_us;
static unsigned steps;
static atomic_uint_fast64_t seeds;

/*
 * Returns a random length, from bytes to sizes for which any allocator calls
 * mmap().
 */
static size_t random_len(void)
{
	size_t top = 64UL << ft_rand() % 14;

	return 1 + ft_rand() % (top < BIG ? top : BIG);
}

static void drop(struct block *b)
{
	if (!b->p)
		return;
	FT_CHECK_BUF(b->p, b->len, b->seed, "a block");
	if (b->mapped)
		ft_unmap(b->p, b->len);
	else
		free(b->p);
	b->p = NULL;
}

static void make(struct block *b)
{
	void *aligned;

	drop(b);
	b->len = random_len();
	b->seed = atomic_fetch_add(&seeds, 1);
	b->mapped = !(ft_rand() % 4);
	if (b->mapped) {
		b->p = ft_map(NULL, b->len);
	} else if (ft_rand() % 4) {
		b->p = malloc(b->len);
	} else {
		FT_CHECK(!posix_memalign(&aligned, FT_PAGE, b->len),
			 "posix_memalign");
		b->p = aligned;
	}
	FT_CHECK(b->p, "malloc of %zu", b->len);
	ft_fill(b->p, b->len, b->seed);
}

/*
 * Resizes a block: realloc keeps the contents; then the block is filled again.
 */
static void resize(struct block *b)
{
	size_t len = random_len();
	char *p;

	if (!b->p || b->mapped)
		return;
	p = realloc(b->p, len);
	FT_CHECK(p, "realloc to %zu", len);
	b->p = p;
	/* compare whole words, as ft_fill() writes them */
	FT_CHECK_BUF(p, (len < b->len ? len : b->len) & ~7UL, b->seed,
		     "realloc");
	b->len = len;
	ft_fill(p, len, b->seed);
}

/* Discards or replaces the pages of a block. */
static void discard(struct block *b)
{
	if (!b->p || !b->mapped)
		return;
	if (ft_rand() % 2)
		FT_CHECK(!madvise(b->p, b->len, MADV_DONTNEED), "madvise");
	else
		ft_map(b->p, b->len);
	ft_fill(b->p, b->len, b->seed);
}

static void send_part(struct worker *w)
{
	struct block *from = &w->block[ft_rand() % BLOCKS];
	struct block *to = &w->block[ft_rand() % BLOCKS];
	size_t len;

	if (!from->p || !to->p || from == to)
		return;
	len = from->len < to->len ? from->len : to->len;
	len = 1 + ft_rand() % len;
	pthread_mutex_lock(w->lock);
	ft_send_recv(w->ep[ft_rand() % 2], from->p, to->p, len);
	ft_release_pair(&pair);
	pthread_mutex_unlock(w->lock);
	FT_CHECK(!memcmp(from->p, to->p, len), "%zu bytes differ", len);
	FT_CHECK_BUF(from->p, from->len, from->seed, "the source");
	to->seed = atomic_fetch_add(&seeds, 1);
	ft_fill(to->p, to->len, to->seed);
	w->sent += len;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	unsigned i;

	for (i = 0; end_us ? ft_now_us() < end_us : i < steps; i++) {
		switch (ft_rand() % 8) {
		case 0:
		case 1:
			make(&w->block[ft_rand() % BLOCKS]);
			break;
		case 2:
			drop(&w->block[ft_rand() % BLOCKS]);
			break;
		case 3:
			resize(&w->block[ft_rand() % BLOCKS]);
			break;
		case 4:
			discard(&w->block[ft_rand() % BLOCKS]);
			break;
		default:
			send_part(w);
		}
		if (!(ft_rand() % 500))
			malloc_trim(0);
	}
	for (i = 0; i < BLOCKS; i++)
		drop(&w->block[i]);
	return NULL;
}

static atomic_uint ucm_events;

static void on_ucm(int type, void *event, void *arg)
{
	atomic_fetch_add(&ucm_events, 1);
}

/* Memory mapped and memory unmapped, as in UCX's header. */
#define UCM_EVENTS (1 << 16 | 1 << 17)

static bool patch_ucm(const char *when)
{
	int (*set)(int events, int priority, void (*cb)(int, void *, void *),
		   void *arg);
	const char *want = getenv("FT_UCM");
	int ret;

	if (!want || strcmp(want, when))
		return false;
	/* libucs loads libucm, which patches libc at once */
	if (!dlopen("libucs.so.0", RTLD_NOW | RTLD_GLOBAL))
		ft_skip("%s", dlerror());
	*(void **) &set = dlsym(RTLD_DEFAULT, "ucm_set_event_handler");
	FT_CHECK(set, "no ucm_set_event_handler in libucs.so.0");
	ret = set(UCM_EVENTS, 0, on_ucm, NULL);
	FT_CHECK(!ret, "ucm_set_event_handler: %d", ret);
	return true;
}

int main(int argc, char **argv)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const char *seconds = getenv("FT_SECONDS");
	struct ft_attr attr = FT_ATTR;
	static struct worker worker[2];
	struct fi_mrrc_stats st;
	bool ucm;
	int i;

	ft_init(argc, argv);
	steps = ft_iters(ft_core("verbs") ? 300 : 6000);
	/* with fewer steps, memory may not be used again */
	if (steps < 300)
		steps = 300;
	ucm = patch_ucm("before");
	ft_pair_open(&pair, &attr);
	ucm |= patch_ucm("after");
	if (seconds)
		end_us = ft_now_us() + 1000000 * strtoull(seconds, NULL, 10);
	for (i = 0; i < 2; i++) {
		worker[i].ep[0] = &pair.c;
		worker[i].ep[1] = &pair.s;
		worker[i].lock = &lock;
		FT_CHECK(!pthread_create(&worker[i].thread, NULL, work,
					 &worker[i]),
			 "pthread_create");
	}
	for (i = 0; i < 2; i++)
		pthread_join(worker[i].thread, NULL);
	if (ft_stats(&pair.dom[1], &st) && ft_caches(&pair.dom[1])) {
		FT_CHECK(st.hits && st.invalidations,
			 "%" PRIu64 " hits, %" PRIu64 " invalidations: nothing "
			 "was tested",
			 st.hits, st.invalidations);
		ft_log("%s (%" PRIu64 " hooked, %" PRIu64 " lost), %" PRIu64
		       " announced, %" PRIu64 " lookups, %" PRIu64
		       " hits, %" PRIu64 " invalidations",
		       st.monitor, ft_counter(&pair.dom[1], "hooks"),
		       ft_counter(&pair.dom[1], "hooks_lost"),
		       ft_counter(&pair.dom[1], "announced"), st.lookups,
		       st.hits, st.invalidations);
	}
	if (ucm) {
		ft_log("libucm saw %u events", atomic_load(&ucm_events));
		FT_CHECK(atomic_load(&ucm_events), "libucm saw nothing");
	}
	ft_check_idle(&pair.dom[0], "at the end");
	ft_check_idle(&pair.dom[1], "at the end");
	ft_pair_close(&pair);
	return ft_done();
}
