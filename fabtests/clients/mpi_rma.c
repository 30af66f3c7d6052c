/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mpi_check: tests one-sided communication, with each of MPI's three ways of
 * synchronisation.
 */
#include "mpi_check.h"

#define ROUNDS	   3
#define INCREMENTS 40

/* A window with room for the largest message at two places, both poisoned. */
struct window {
	MPI_Win win;
	uint8_t *base;
	size_t half;
};

static void window_open(struct window *window, bool allocate)
{
	window->half = mc.max_size < MC_MIB(4) ? mc.max_size : MC_MIB(4);
	if (allocate) {
		MPI_Win_allocate((MPI_Aint) (2 * window->half), 1,
				 MPI_INFO_NULL, MPI_COMM_WORLD, &window->base,
				 &window->win);
		memset(window->base, MC_POISON, 2 * window->half);
		return;
	}
	window->base = malloc(2 * window->half);
	if (!window->base)
		MPI_Abort(MPI_COMM_WORLD, 2);
	memset(window->base, MC_POISON, 2 * window->half);
	MPI_Win_create(window->base, (MPI_Aint) (2 * window->half), 1,
		       MPI_INFO_NULL, MPI_COMM_WORLD, &window->win);
}

static void window_close(struct window *window, bool allocated)
{
	MPI_Win_free(&window->win);
	if (!allocated)
		free(window->base);
}

/* Begins and ends an epoch: accesses go to next, and come from prev. */
enum sync { FENCE, LOCK, PSCW, SYNC_CNT };

static void epoch_begin(enum sync sync, MPI_Win win)
{
	MPI_Group world, target, origin;

	/* the other ranks see the local writes to the window */
	MPI_Barrier(MPI_COMM_WORLD);
	switch (sync) {
	case FENCE:
		MPI_Win_fence(0, win);
		return;
	case LOCK:
		MPI_Win_lock(MPI_LOCK_SHARED, mc.next, 0, win);
		return;
	default:
		MPI_Comm_group(MPI_COMM_WORLD, &world);
		MPI_Group_incl(world, 1, &mc.next, &target);
		MPI_Group_incl(world, 1, &mc.prev, &origin);
		MPI_Win_post(origin, 0, win);
		MPI_Win_start(target, 0, win);
		MPI_Group_free(&world);
		MPI_Group_free(&target);
		MPI_Group_free(&origin);
	}
}

static void epoch_end(enum sync sync, MPI_Win win)
{
	switch (sync) {
	case FENCE:
		MPI_Win_fence(0, win);
		break;
	case LOCK:
		MPI_Win_unlock(mc.next, win);
		MPI_Barrier(MPI_COMM_WORLD);
		break;
	default:
		MPI_Win_complete(win);
		MPI_Win_wait(win);
	}
	/* a program reads its own window in a separate epoch */
	MPI_Win_lock(MPI_LOCK_SHARED, mc.rank, 0, win);
	MPI_Win_unlock(mc.rank, win);
}

/* Writes to the next rank's first half, reads from its second half. */
static void put_get(struct window *window, enum sync sync, size_t len,
		    uint64_t number)
{
	uint8_t *second = window->base + window->half;
	struct mc_buf out, in;

	mc_buf_get(&out, len, number % 3);
	mc_buf_get(&in, len, number % 5);
	mc_fill(out.data, len, mc_seed(mc.rank, number));
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, mc.rank, 0, window->win);
	mc_fill(second, len, mc_seed(mc.rank, number + 1));
	MPI_Win_unlock(mc.rank, window->win);
	epoch_begin(sync, window->win);
	MPI_Put(out.data, (int) len, MPI_BYTE, mc.next, 0, (int) len, MPI_BYTE,
		window->win);
	MPI_Get(in.data, (int) len, MPI_BYTE, mc.next, (MPI_Aint) window->half,
		(int) len, MPI_BYTE, window->win);
	epoch_end(sync, window->win);
	mc_check(window->base, len, mc_seed(mc.prev, number), "put");
	mc_check(in.data, len, mc_seed(mc.next, number + 1), "got");
	if (len < window->half)
		mc_check_byte(window->base + len, 1, MC_POISON, "behind a put");
	MPI_Barrier(MPI_COMM_WORLD);
	memset(window->base, MC_POISON, len);
	mc_buf_put(&out);
	mc_buf_put(&in);
}

static void put_get_all(enum sync sync)
{
	size_t i, count = mc_size_count();
	struct window window;
	bool allocate;

	for (allocate = false;; allocate = true) {
		window_open(&window, allocate);
		for (i = 0; i < count; i++) {
			if (mc_size(i) <= window.half)
				put_get(&window, sync, mc_size(i), 10 * i);
		}
		window_close(&window, allocate);
		if (allocate)
			break;
	}
}

static void test_fence(void)
{
	put_get_all(FENCE);
}

static void test_lock(void)
{
	put_get_all(LOCK);
}

static void test_pscw(void)
{
	put_get_all(PSCW);
}

/* All ranks add to all ranks' numbers at the same time. */
static void test_accumulate(void)
{
	static const int counts[] = { 1, 100, 3000, 50000, 200000 };
	int64_t *base, *out, sum = (int64_t) mc.ranks * (mc.ranks + 1) / 2;
	int i, n, r;
	MPI_Win win;
	size_t c;

	for (c = 0; c < MC_ARRAY_SIZE(counts); c++) {
		n = counts[c];
		if ((size_t) n * sizeof(*base) > mc.max_size)
			break;
		base = malloc((size_t) n * sizeof(*base));
		out = malloc((size_t) n * sizeof(*out));
		for (i = 0; i < n; i++) {
			base[i] = i;
			out[i] = mc.rank + 1;
		}
		out[n / 2] = mc_value(out[n / 2]);
		MPI_Win_create(base, (MPI_Aint) n * (MPI_Aint) sizeof(*base),
			       sizeof(*base), MPI_INFO_NULL, MPI_COMM_WORLD,
			       &win);
		MPI_Win_fence(0, win);
		for (r = 0; r < mc.ranks; r++)
			MPI_Accumulate(out, n, MPI_INT64_T, r, 0, n,
				       MPI_INT64_T, MPI_SUM, win);
		MPI_Win_fence(0, win);
		for (i = 0; i < n && base[i] == i + sum; i++)
			;
		if (i < n)
			mc_fail("number %d of %d is wrong", i, n);
		MPI_Win_free(&win);
		free(base);
		free(out);
	}
}

/* Gets the old value and adds to it, under an exclusive lock. */
static void test_get_accumulate(void)
{
	enum { COUNT = 5000 };
	int64_t *base = malloc(COUNT * sizeof(*base));
	int64_t *out = malloc(COUNT * sizeof(*out));
	int64_t *in = malloc(COUNT * sizeof(*in));
	MPI_Win win;
	int i;

	for (i = 0; i < COUNT; i++) {
		base[i] = i * 3;
		out[i] = mc.rank + i;
	}
	out[1] = mc_value(out[1]);
	MPI_Win_create(base, COUNT * sizeof(*base), sizeof(*base),
		       MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, mc.next, 0, win);
	MPI_Get_accumulate(out, COUNT, MPI_INT64_T, in, COUNT, MPI_INT64_T,
			   mc.next, 0, COUNT, MPI_INT64_T, MPI_SUM, win);
	MPI_Win_unlock(mc.next, win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, mc.rank, 0, win);
	for (i = 0; i < COUNT; i++) {
		if (in[i] != i * 3)
			mc_fail("old number %d is wrong", i);
		if (base[i] != i * 4 + mc.prev)
			mc_fail("new number %d is wrong", i);
	}
	MPI_Win_unlock(mc.rank, win);
	MPI_Win_free(&win);
	free(base);
	free(out);
	free(in);
}

/* All ranks increment a counter: each value is returned once. */
static void test_fetch_and_op(void)
{
	int64_t counter = 0, one = mc_value(1), old, last = -1, zero = 0, mine;
	MPI_Win win;
	int i;

	MPI_Win_create(&counter, sizeof(counter), sizeof(counter),
		       MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_lock_all(0, win);
	for (i = 0; i < INCREMENTS; i++) {
		MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 0, MPI_SUM, win);
		MPI_Win_flush(0, win);
		if (old <= last || old >= (int64_t) mc.ranks * INCREMENTS)
			mc_fail("number %d after %d", (int) old, (int) last);
		last = old;
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
	MPI_Fetch_and_op(&zero, &mine, MPI_INT64_T, 0, 0, MPI_NO_OP, win);
	MPI_Win_unlock(0, win);
	if (mine != (int64_t) mc.ranks * INCREMENTS)
		mc_fail("%d increments counted %d", mc.ranks * INCREMENTS,
			(int) mine);
	MPI_Win_free(&win);
}

/*
 * All ranks increment a counter by compare and swap, which each rank repeats
 * until the swap succeeds.
 */
static void test_compare_and_swap(void)
{
	int64_t counter = 0, old, seen, next;
	int64_t step = mc_value(1);
	int i, host = mc.ranks - 1;
	MPI_Win win;

	MPI_Win_create(&counter, sizeof(counter), sizeof(counter),
		       MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_lock_all(0, win);
	for (i = 0, seen = 0; i < INCREMENTS / 2; i++) {
		for (;;) {
			next = seen + step;
			MPI_Compare_and_swap(&next, &seen, &old, MPI_INT64_T,
					     host, 0, win);
			MPI_Win_flush(host, win);
			if (old == seen)
				break;
			seen = old;
		}
		seen = next;
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (mc.rank == host) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, host, 0, win);
		if (counter != (int64_t) mc.ranks * (INCREMENTS / 2))
			mc_fail("%d swaps counted %d",
				mc.ranks * (INCREMENTS / 2), (int) counter);
		MPI_Win_unlock(host, win);
	}
	MPI_Win_free(&win);
}

/*
 * Starts several operations with requests, and completes the operations by a
 * wait or a flush.
 */
static void test_rput(void)
{
	enum { PARTS = 8 };
	size_t part = mc.max_size / PARTS < 40000 ? mc.max_size / PARTS : 40000;
	struct mc_buf out, in;
	struct window window;
	MPI_Request req[PARTS];
	MPI_Aint at;
	int i;

	window_open(&window, true);
	mc_buf_get(&out, PARTS * part, 1);
	mc_buf_get(&in, PARTS * part, 1);
	mc_fill(out.data, out.len, mc_seed(mc.rank, 1));
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, window.win);
	for (i = 0; i < PARTS; i++) {
		at = (MPI_Aint) ((size_t) i * part);
		MPI_Rput(out.data + at, (int) part, MPI_BYTE, mc.next, at,
			 (int) part, MPI_BYTE, window.win, &req[i]);
	}
	MPI_Waitall(PARTS, req, MPI_STATUSES_IGNORE);
	MPI_Win_flush(mc.next, window.win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(window.win);
	mc_check(window.base, in.len, mc_seed(mc.prev, 1), "what came");
	for (i = 0; i < PARTS; i++) {
		at = (MPI_Aint) ((size_t) i * part);
		MPI_Rget(in.data + at, (int) part, MPI_BYTE, mc.next, at,
			 (int) part, MPI_BYTE, window.win, &req[i]);
	}
	MPI_Waitall(PARTS, req, MPI_STATUSES_IGNORE);
	MPI_Win_unlock_all(window.win);
	mc_check(in.data, in.len, mc_seed(mc.rank, 1), "what was put there");
	MPI_Barrier(MPI_COMM_WORLD);
	window_close(&window, true);
	mc_buf_put(&out);
	mc_buf_put(&in);
}

const struct mc_test mc_rma_tests[] = {
	{ .name = "fence", .run = test_fence, .rma = true },
	{ .name = "lock", .run = test_lock, .rma = true },
	{ .name = "pscw", .run = test_pscw, .rma = true },
	{ .name = "accumulate", .run = test_accumulate, .rma = true },
	{ .name = "get_accumulate", .run = test_get_accumulate, .rma = true },
	{ .name = "fetch_and_op", .run = test_fetch_and_op, .rma = true },
	{ .name = "compare_and_swap",
	  .run = test_compare_and_swap,
	  .rma = true },
	{ .name = "rput", .run = test_rput, .rma = true },
	{ .name = NULL },
};
