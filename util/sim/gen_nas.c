/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * nas: an MPI job whose phases communicate as kernels of the NAS parallel
 * benchmarks do, after li2011.
 *
 * From the paper: messages repeat in the order of an iterative program, with
 * buffers used again each iteration (sections 1 and 3.1) or not at all ("no
 * buffer reuse", section 6.1); three buffers of 5 MB received in turn with
 * computation between them (Fig. 1 and its text); communication phases
 * separated by long computation in LU, but not in CG and FT, where large
 * collectives take the most memory (section 6.2); nested loops, so that one
 * buffer has several periods (section 3.1, Fig. 4); one task a node and four
 * nodes (section 6.2), hence four processes.
 *
 * Assumed: the messages of each kernel, and their times. The messages have 1
 * KiB to 5 MiB; the paper's MPI library copies messages below 16 KB. The
 * kernels follow each other in one job. Buffers that are used once come from a
 * heap of 64 MiB that wraps around, so the same addresses are used again as
 * parts of other buffers. All processes run the same program with a shift in
 * time. Buffers of receives are read-write, buffers of sends read-only.
 */
#include "config.h"
#include "sim/gen.h"
#include "sim/rng.h"

#include <errno.h>
#include <stdlib.h>

#define NAS_REQUESTS 200000
#define PROCS	     4
#define SLOT	     (UINT64_C(16) << 20) /* room for a buffer */
#define SLOTS	     16			  /* buffers of a message */
#define MESSAGES     8			  /* limit for a kernel */
#define STATIC_BASE  UINT64_C(0x10000000000)
#define HEAP_BASE    UINT64_C(0x7f0000000000)
#define HEAP_BYTES   (UINT64_C(64) << 20)
#define BASE_SHIFT   30 /* processes' bases differ by multiples */
#define MSG_US	     20 /* time of a message, */
#define PAGE_US	     1	/* plus time of each page */
#define KIB	     1024

enum kind {
	FIXED, /* the same buffer in each iteration */
	RING,  /* buffers in turn, one in each iteration */
	ONCE,  /* allocated, used and forgotten */
};

struct message {
	enum kind kind;
	enum sim_access access;
	uint32_t len;
	uint8_t count; /* buffers; all each time unless RING */
	uint8_t every; /* iterations */
	/* repetitions of the message in an iteration; 0 means 1 */
	uint8_t inner;
};

struct kernel {
	uint32_t iterations;
	/* us of computation after each message */
	uint32_t compute_us;
	struct message message[MESSAGES]; /* up to one without a count */
};

static const struct kernel kernels[] = {
	{	/* CG: inner solver steps exchange vectors with one partner */
		.iterations = 15, .compute_us = 2000,
		.message = {
			{ FIXED, SIM_RO, 732 * KIB, 1, 1, 8 },
			{ FIXED, SIM_RW, 732 * KIB, 1, 1, 8 },
			{ FIXED, SIM_RO, 1 * KIB, 2, 1, 4 },
			{ ONCE, SIM_RW, 64 * KIB, 4, 1, 0 },
		},
	},
	{	/* FT: transposes, a block for each process; scratch memory */
		.iterations = 10, .compute_us = 50000,
		.message = {
			{ FIXED, SIM_RO, 4096 * KIB, PROCS, 1, 0 },
			{ FIXED, SIM_RW, 4096 * KIB, PROCS, 1, 0 },
			{ ONCE, SIM_RW, 2048 * KIB, 3, 1, 0 },
			{ FIXED, SIM_RO, 1 * KIB, 1, 1, 0 },
		},
	},
	{	/* LU: pencils of a wavefront, faces, norms now and then */
		.iterations = 20, .compute_us = 400000,
		.message = {
			{ FIXED, SIM_RW, 10 * KIB, 2, 1, 6 },
			{ FIXED, SIM_RO, 10 * KIB, 2, 1, 6 },
			{ FIXED, SIM_RW, 540 * KIB, 4, 1, 0 },
			{ FIXED, SIM_RO, 540 * KIB, 4, 1, 0 },
			{ FIXED, SIM_RO, 2 * KIB, 1, 5, 0 },
			{ ONCE, SIM_RO, 24 * KIB, 3, 1, 0 },
		},
	},
	{	/* IS: bucket sizes, then keys into new memory */
		.iterations = 10, .compute_us = 20000,
		.message = {
			{ FIXED, SIM_RO, 4 * KIB, 1, 1, 0 },
			{ FIXED, SIM_RW, 4 * KIB, 1, 1, 0 },
			{ FIXED, SIM_RO, 1024 * KIB, PROCS, 1, 0 },
			{ ONCE, SIM_RW, 1100 * KIB, PROCS, 1, 0 },
		},
	},
	{	/* Fig. 1: three buffers in turn */
		.iterations = 12, .compute_us = 1000000,
		.message = {
			{ RING, SIM_RW, 5120 * KIB, 3, 1, 0 },
			{ FIXED, SIM_RO, 16 * KIB, 1, 2, 0 },
		},
	},
};

#define KERNEL_CNT (sizeof(kernels) / sizeof(kernels[0]))

/* The position of a process in its program. */
struct proc {
	uint64_t time;
	uint64_t base; /* offset added to static addresses */
	uint64_t heap; /* the next allocation, from the base */
	uint32_t kernel;
	uint32_t iteration;
	uint32_t message;
	uint32_t step; /* step of the message's inner * buffers */
};

struct nas {
	struct sim_rng rng;
	struct proc proc[PROCS];
};

static const struct message *proc_message(const struct proc *proc)
{
	return &kernels[proc->kernel].message[proc->message];
}

static uint32_t message_steps(const struct message *message)
{
	uint32_t inner = message->inner ? message->inner : 1;

	return message->kind == RING ? inner : inner * message->count;
}

static uint64_t proc_addr(struct proc *proc, struct sim_rng *rng)
{
	const struct message *message = proc_message(proc);
	uint64_t addr, slot;

	if (message->kind == ONCE) {
		if (proc->heap + message->len + 16 > HEAP_BYTES)
			proc->heap = 0;
		addr = HEAP_BASE + proc->base + proc->heap;
		/*
		 * leave room for a header, as malloc() does, and for
		 * allocations of other code
		 */
		proc->heap += message->len + SIM_PAGE;
		proc->heap += SIM_PAGE * sim_rng_below(rng, 64);
		return addr + 16;
	}
	slot = message->kind == RING ? proc->iteration : proc->step;
	slot %= message->count;
	slot += (proc->kernel * MESSAGES + proc->message) * SLOTS;
	/* arrays begin where the linker puts them, not on pages */
	return STATIC_BASE + proc->base + slot * SLOT + 64 * (slot % 64);
}

/*
 * Adds time of computation, then starts the next iteration, or the next kernel.
 */
static void proc_compute(struct proc *proc, struct sim_rng *rng)
{
	const struct kernel *kernel = &kernels[proc->kernel];

	/* the time is stable within some percent */
	proc->time += kernel->compute_us;
	proc->time += sim_rng_about(rng, kernel->compute_us / 16);
	proc->message = 0;
	if (++proc->iteration < kernel->iterations)
		return;
	proc->iteration = 0;
	proc->kernel = (proc->kernel + 1) % KERNEL_CNT;
}

/* Moves on to the next message of the iteration. */
static void proc_advance(struct proc *proc, struct sim_rng *rng)
{
	if (++proc->step < message_steps(proc_message(proc)))
		return;
	proc->step = 0;
	do {
		if (++proc->message == MESSAGES || !proc_message(proc)->count)
			proc_compute(proc, rng);
	} while (proc->iteration % proc_message(proc)->every);
}

static int nas_request(struct nas *nas, struct sim_trace *trace)
{
	const struct message *message;
	struct proc *proc = nas->proc;
	struct sim_req req;
	uint32_t i;

	for (i = 1; i < PROCS; i++) {
		if (nas->proc[i].time < proc->time)
			proc = &nas->proc[i];
	}
	message = proc_message(proc);
	req = (struct sim_req){
		.time = proc->time,
		.addr = proc_addr(proc, &nas->rng),
		.len = message->len,
		.proc = proc - nas->proc,
		.access = message->access,
	};
	proc->time += MSG_US + PAGE_US * (message->len / SIM_PAGE);
	proc_advance(proc, &nas->rng);
	return sim_trace_append(trace, &req);
}

static void nas_init(struct nas *nas, uint64_t seed)
{
	uint32_t i;

	sim_rng_init(&nas->rng, seed);
	for (i = 0; i < PROCS; i++) {
		nas->proc[i] = (struct proc){
			.time = sim_rng_below(&nas->rng, 1000),
			.base = sim_rng_below(&nas->rng, 256) << BASE_SHIFT,
		};
	}
}

static int nas_make(uint64_t seed, size_t requests, struct sim_trace *trace)
{
	struct sim_trace out;
	struct nas nas;
	int ret;

	if (!requests)
		requests = NAS_REQUESTS;
	nas_init(&nas, seed);
	ret = sim_trace_init(&out, sim_gen_nas.name);
	if (ret)
		return ret;
	while (!ret && out.count < requests)
		ret = nas_request(&nas, &out);
	if (ret)
		sim_trace_fini(&out);
	else
		*trace = out;
	return ret;
}

const struct sim_gen sim_gen_nas = {
	.name = "nas",
	.help = "MPI job of 4 processes, NAS-like phases (li2011)",
	.requests = NAS_REQUESTS,
	.make = nas_make,
};
