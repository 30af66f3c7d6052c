/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mrrc_signals: tests signal handlers and other threads that unmap and
 * discard registered memory, at any moment of calls of the provider. Nothing
 * hangs, and data is right. The handlers never unmap the buffers of a transfer
 * under way, but other buffers that were used before.
 */
#include "ft_mrrc.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>

#define LEN	(6 * FT_PAGE)
#define VICTIMS 8

static struct ft_pair pair;
static char *_Atomic victim[VICTIMS];
static atomic_uint handled, thrown;

/*
 * Unmaps or discards a victim in one of several ways: async-signal-safe calls
 * only.
 */
static void throw_away(unsigned i)
{
	char *p = atomic_exchange(&victim[i % VICTIMS], NULL);

	if (!p)
		return;
	atomic_fetch_add(&thrown, 1);
	switch (i / VICTIMS % 4) {
	case 0:
		syscall(SYS_munmap, p, LEN);
		break;
	case 1:
		madvise(p, LEN / 2, MADV_DONTNEED);
		munmap(p, LEN);
		break;
	case 2:
		mmap(p, LEN, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		munmap(p + FT_PAGE, FT_PAGE);
		/* another thread's mapping may be in the hole by now */
		munmap(p, FT_PAGE);
		munmap(p + 2 * FT_PAGE, LEN - 2 * FT_PAGE);
		break;
	default:
		munmap(p, LEN);
	}
}

static void on_alarm(int sig)
{
	static atomic_uint turn;
	int error = errno;

	throw_away(atomic_fetch_add(&turn, 1));
	atomic_fetch_add(&handled, 1);
	errno = error;
}

static void *other_thread(void *arg)
{
	atomic_bool *stop = arg;
	sigset_t alrm;

	sigemptyset(&alrm);
	sigaddset(&alrm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alrm, NULL);
	while (!atomic_load(stop)) {
		throw_away((unsigned) ft_rand());
		usleep(500);
	}
	return NULL;
}

/* Uses memory, so that it is registered; then a handler may drop the memory. */
static void refill(char *other, uint64_t seed)
{
	unsigned i = (unsigned) ft_rand() % VICTIMS;
	char *p;

	if (atomic_load(&victim[i]))
		return;
	p = ft_map(NULL, LEN);
	ft_verify_pair(&pair.c, p, other, LEN, seed);
	ft_release_pair(&pair);
	atomic_store(&victim[i], p);
}

int main(int argc, char **argv)
{
	struct ft_attr attr = FT_ATTR;
	struct itimerval timer = { { 0, 700 }, { 0, 700 } };
	struct sigaction action = { .sa_handler = on_alarm,
				    .sa_flags = SA_RESTART };
	atomic_bool stop = false;
	unsigned i, rounds;
	pthread_t thread;
	char *a, *b;

	ft_init(argc, argv);
	rounds = ft_iters(ft_core("verbs") ? 300 : 4000);
	ft_pair_open(&pair, &attr);
	a = ft_map(NULL, LEN);
	b = ft_map(NULL, LEN);
	FT_CHECK(!pthread_create(&thread, NULL, other_thread, &stop),
		 "pthread_create");
	FT_CHECK(!sigaction(SIGALRM, &action, NULL) &&
			 !setitimer(ITIMER_REAL, &timer, NULL),
		 "no timer: %s", strerror(errno));
	for (i = 0; i < rounds; i++) {
		ft_stage("round %u, %u signals", i, atomic_load(&handled));
		refill(b, i);
		ft_verify_pair(&pair.c, a, b, 1 + ft_rand() % LEN, i);
		ft_verify_pair(&pair.s, b, a, 1 + ft_rand() % LEN, ~i);
		ft_release_pair(&pair);
	}
	timer = (struct itimerval){ 0 };
	setitimer(ITIMER_REAL, &timer, NULL);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	ft_log("%u signals, %u buffers thrown away", atomic_load(&handled),
	       atomic_load(&thrown));
	FT_CHECK(atomic_load(&handled) && atomic_load(&thrown),
		 "%u signals, %u buffers thrown away: nothing was tested",
		 atomic_load(&handled), atomic_load(&thrown));
	ft_check_idle(&pair.dom[0], "at the end");
	ft_check_idle(&pair.dom[1], "at the end");
	for (i = 0; i < VICTIMS; i++)
		throw_away(i);
	ft_unmap(a, LEN);
	ft_unmap(b, LEN);
	ft_pair_close(&pair);
	return ft_done();
}
