/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Biased locks (biased_lock.h).
 */
#include "config.h"
#include "sys/base/biased_lock.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/membarrier.h>

#include "sys/base/pause.h"

#define BARRIER_LATER_NS 10000000

static bool biased_works;	/* set before the first lock is made */
static atomic_bool biased_lost; /* membarrier(2) is forbidden by now */

static bool biased_barrier_call(int command)
{
	return !syscall(SYS_membarrier, command, 0, 0);
}

void mrrc_biased_renew(void)
{
	biased_works = biased_barrier_call(
			       MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
		       biased_barrier_call(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

void mrrc_biased_setup(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, mrrc_biased_renew);
}

bool mrrc_biased_possible(void)
{
	return biased_works;
}

void mrrc_biased_init(struct mrrc_biased_lock *biased, bool works)
{
	biased->works = works && biased_works;
	atomic_init(&biased->inside, 0);
	atomic_init(&biased->shut, !biased->works);
}

void mrrc_biased_begin(struct mrrc_biased_lock *biased)
{
#ifdef __SANITIZE_THREAD__
	unsigned tries = 0;
	int out = 0;

	while (!atomic_compare_exchange_strong(&biased->inside, &out, 1)) {
		out = 0;
		mrrc_pause(&tries);
	}
#else
	atomic_store(&biased->shut, 1);
#endif
}

void mrrc_biased_end(struct mrrc_biased_lock *biased)
{
#ifndef __SANITIZE_THREAD__
	mrrc_biased_wait(biased);
#endif
}

void mrrc_biased_shut(struct mrrc_biased_lock *biased)
{
	mrrc_biased_begin(biased);
	if (biased->works)
		mrrc_biased_barrier();
	mrrc_biased_end(biased);
}

void mrrc_biased_open(struct mrrc_biased_lock *biased)
{
#ifdef __SANITIZE_THREAD__
	atomic_store(&biased->inside, 0);
#else
	if (atomic_load(&biased_lost))
		biased->works = false;
	atomic_store_explicit(&biased->shut, !biased->works,
			      memory_order_release);
#endif
}

/*
 * If seccomp forbids membarrier(2) later, the thread sleeps instead until each
 * processor's stores are visible. Because this sleep is long, biased locks that
 * are shut after the first such sleep stay shut.
 */
void mrrc_biased_barrier(void)
{
	if (!biased_works ||
	    biased_barrier_call(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		return;
	atomic_store(&biased_lost, true);
	mrrc_pause_for(BARRIER_LATER_NS);
}

void mrrc_biased_wait(struct mrrc_biased_lock *biased)
{
#ifdef __SANITIZE_THREAD__
	mrrc_biased_shut(biased);
	mrrc_biased_open(biased);
#else
	unsigned tries = 0;

	while (atomic_load_explicit(&biased->inside, memory_order_acquire))
		mrrc_pause(&tries);
#endif
}
