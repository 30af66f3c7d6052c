/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A gate that its owner, one thread, passes for the price of two plain stores,
 * and that others shut for the price of a system call: what belongs to a
 * thread and is taken from it now and then.
 *
 * The owner says that it is inside and then looks whether the gate is shut;
 * others shut it, make every running thread pass a barrier (membarrier(2)),
 * and wait until the owner is outside. Where there is no membarrier the gate
 * never opens: its owner does without what is behind it.
 *
 * Others serialise shutting. Whoever shuts holds nothing that the owner takes
 * while it is inside.
 */
#ifndef MRRC_GATE_H
#define MRRC_GATE_H

#include <stdatomic.h>
#include <stdbool.h>

struct mrrc_gate {
	atomic_int inside;
	atomic_int shut;
	bool works;
};

/* One that nobody gets through. */
#define MRRC_GATE_SHUT		{ .shut = 1 }

/* Before the first gate is made, and in a forked child. */
void mrrc_gate_setup(void);

/* works: else its owner never gets in. */
void mrrc_gate_init(struct mrrc_gate *gate, bool works);

/* false: shut, do without. The owner, and not inside already. */
static inline bool mrrc_gate_enter(struct mrrc_gate *gate)
{
#ifdef __SANITIZE_THREAD__
	/* it knows nothing of membarrier: a lock in its place */
	int out = 0;

	if (!gate->works)
		return false;
	return atomic_compare_exchange_strong(&gate->inside, &out, 1);
#else
	atomic_store_explicit(&gate->inside, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(!atomic_load_explicit(&gate->shut,
						   memory_order_acquire), 1))
		return true;
	atomic_store_explicit(&gate->inside, 0, memory_order_release);
	return false;
#endif
}

static inline void mrrc_gate_leave(struct mrrc_gate *gate)
{
	atomic_store_explicit(&gate->inside, 0, memory_order_release);
}

/* From now to open what is behind the gate belongs to the caller. */
void mrrc_gate_shut(struct mrrc_gate *gate);
void mrrc_gate_open(struct mrrc_gate *gate);

/*
 * To wait for those who are inside without shutting it: one barrier, then each
 * gate. Whoever enters after the barrier sees what was written before it.
 */
void mrrc_gate_barrier(void);
void mrrc_gate_wait(struct mrrc_gate *gate);

#endif /* MRRC_GATE_H */
