/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Gates (gate.h).
 */
#include "config.h"
#include "sys/gate.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/membarrier.h>

#include "sys/pause.h"

#define GATES_LATER_NS	10000000

static bool gates_work;		/* set before there are any */
static atomic_bool gates_lost;	/* the call was forbidden since */

static bool gate_call(int command)
{
	return !syscall(SYS_membarrier, command, 0, 0);
}

void mrrc_gate_setup(void)
{
	gates_work = gate_call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
		     gate_call(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

void mrrc_gate_init(struct mrrc_gate *gate, bool works)
{
	gate->works = works && gates_work;
	atomic_init(&gate->inside, 0);
	atomic_init(&gate->shut, !gate->works);
}

void mrrc_gate_shut(struct mrrc_gate *gate)
{
#ifdef __SANITIZE_THREAD__
	unsigned tries = 0;
	int out = 0;

	while (!atomic_compare_exchange_strong(&gate->inside, &out, 1)) {
		out = 0;
		mrrc_pause(&tries);
	}
#else
	atomic_store(&gate->shut, 1);
	if (gate->works)
		mrrc_gate_barrier();
	mrrc_gate_wait(gate);
#endif
}

void mrrc_gate_open(struct mrrc_gate *gate)
{
#ifdef __SANITIZE_THREAD__
	atomic_store(&gate->inside, 0);
#else
	if (atomic_load(&gates_lost))
		gate->works = false;
	atomic_store_explicit(&gate->shut, !gate->works, memory_order_release);
#endif
}

/*
 * Where the call is forbidden later on (seccomp) a wait takes its place: within
 * that time each processor's stores have become visible. As it is long, gates
 * that are shut from then on stay shut.
 */
void mrrc_gate_barrier(void)
{
	const struct timespec later = { .tv_nsec = GATES_LATER_NS };

	if (!gates_work || gate_call(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		return;
	atomic_store(&gates_lost, true);
	nanosleep(&later, NULL);
}

void mrrc_gate_wait(struct mrrc_gate *gate)
{
#ifdef __SANITIZE_THREAD__
	mrrc_gate_shut(gate);
	mrrc_gate_open(gate);
#else
	unsigned tries = 0;

	while (atomic_load_explicit(&gate->inside, memory_order_acquire))
		mrrc_pause(&tries);
#endif
}
