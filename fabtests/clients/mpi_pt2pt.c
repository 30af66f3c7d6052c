/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mpi_check: messages from rank to rank, by all of MPI's ways to send messages.
 */
#include "mpi_check.h"

#define WINDOW 12
#define ROUNDS 4

/* Each rank sends in turn round the ring, from addresses of all alignments. */
static void test_blocking(void)
{
	struct mc_buf in, out;
	size_t i, len, count = mc_size_count();
	uint64_t s_out, s_in;

	for (i = 0; i < count; i++) {
		len = mc_size(i);
		s_out = mc_seed(mc.rank, i);
		s_in = mc_seed(mc.prev, i);
		mc_buf_get(&out, len, i % 8);
		mc_buf_get(&in, len, (3 * i) % 8);
		mc_fill(out.data, len, s_out);
		mc_ring(out.data, len, s_out, in.data, len, s_in, "message");
		mc_buf_put(&out);
		mc_buf_put(&in);
	}
}

/* Pairs of ranks send messages back and forth in the same buffer. */
static void test_pingpong(void)
{
	int peer = mc.rank ^ 1, round;
	size_t i, len, count = mc_size_count();
	struct mc_buf buf;
	MPI_Status status;

	if (peer >= mc.ranks)
		return;
	for (i = 0; i < count; i++) {
		len = mc_size(i);
		mc_buf_get(&buf, len, 1);
		for (round = 0; round < ROUNDS; round++) {
			if ((round ^ mc.rank) & 1) {
				MPI_Recv(buf.data, (int) len, MPI_BYTE, peer,
					 round, MPI_COMM_WORLD, &status);
				mc_check_status(&status, peer, round, len);
				mc_check(buf.data, len, mc_seed(round, i),
					 "message");
			} else {
				mc_fill(buf.data, len, mc_seed(round, i));
				MPI_Send(buf.data, (int) len, MPI_BYTE, peer,
					 round, MPI_COMM_WORLD);
			}
		}
		mc_buf_put(&buf);
	}
}

typedef int (*mc_send_fn)(const void *, int, MPI_Datatype, int, int, MPI_Comm);

/*
 * Synchronous, buffered and ready sends meet receives that were posted before.
 */
static void test_modes(void)
{
	static const mc_send_fn sends[] = { MPI_Ssend, MPI_Bsend, MPI_Rsend };
	size_t i, len, mode, count = mc_size_count();
	size_t room = mc.max_size + MPI_BSEND_OVERHEAD;
	void *buffer = malloc(room);
	struct mc_buf in, out;
	MPI_Request req;
	MPI_Status status;
	int size;

	MPI_Buffer_attach(buffer, (int) room);
	for (i = 0; i < count; i++) {
		len = mc_size(i);
		for (mode = 0; mode < MC_ARRAY_SIZE(sends); mode++) {
			mc_buf_get(&out, len, 0);
			mc_buf_get(&in, len, 5);
			MPI_Irecv(in.data, (int) len, MPI_BYTE, mc.prev, 1,
				  MPI_COMM_WORLD, &req);
			/* a ready send needs a posted receive */
			MPI_Barrier(MPI_COMM_WORLD);
			mc_fill(out.data, len, mc_seed(mc.rank, i));
			sends[mode](out.data, (int) len, MPI_BYTE, mc.next, 1,
				    MPI_COMM_WORLD);
			MPI_Wait(&req, &status);
			mc_check_status(&status, mc.prev, 1, len);
			mc_check(in.data, len, mc_seed(mc.prev, i), "message");
			mc_buf_put(&out);
			mc_buf_put(&in);
		}
	}
	MPI_Buffer_detach(&buffer, &size);
	free(buffer);
}

static size_t window_size(int round, int i)
{
	size_t n = mc_size_count();

	/* the largest size is too large for twelve messages */
	while (n && mc_size(n - 1) > MC_MIB(1))
		n--;
	return mc_size((size_t) (round * 5 + i * 7) % n);
}

/*
 * Sends messages of all sizes at once, and completes the requests, one by one
 * in any order if one_by_one is set.
 */
static void window(int round, bool one_by_one)
{
	struct mc_buf in[WINDOW], out[WINDOW];
	MPI_Request req[2 * WINDOW];
	MPI_Status status;
	size_t len;
	int i, k, which;

	for (i = 0; i < WINDOW; i++) {
		len = window_size(round, i);
		mc_buf_get(&in[i], len, (size_t) i % 4);
		mc_buf_get(&out[i], len, (size_t) i % 3);
		mc_fill(out[i].data, len, mc_seed(mc.rank, (uint64_t) i));
		MPI_Irecv(in[i].data, (int) len, MPI_BYTE, mc.prev, i,
			  MPI_COMM_WORLD, &req[i]);
	}
	for (k = 0; k < WINDOW; k++) {
		/* complete from the last request to the first in odd rounds */
		i = round & 1 ? WINDOW - 1 - k : k;
		MPI_Isend(out[i].data, (int) out[i].len, MPI_BYTE, mc.next, i,
			  MPI_COMM_WORLD, &req[WINDOW + i]);
	}
	if (!one_by_one)
		MPI_Waitall(2 * WINDOW, req, MPI_STATUSES_IGNORE);
	for (k = 0; one_by_one && k < 2 * WINDOW; k++) {
		MPI_Waitany(2 * WINDOW, req, &which, &status);
		if (which >= 0 && which < WINDOW)
			mc_check_status(&status, mc.prev, which, in[which].len);
	}
	for (i = 0; i < WINDOW; i++) {
		mc_check(in[i].data, in[i].len, mc_seed(mc.prev, (uint64_t) i),
			 "message");
		mc_buf_put(&in[i]);
		mc_buf_put(&out[i]);
	}
}

static void test_nonblocking(void)
{
	int round;

	for (round = 0; round < ROUNDS; round++)
		window(round, round >= 2);
}

/* A rank sends to itself; messages to itself go through the provider, too. */
static void test_self(void)
{
	size_t i, len, count = mc_size_count();
	struct mc_buf in, out;
	MPI_Request req[2];

	for (i = 0; i < count; i++) {
		len = mc_size(i);
		mc_buf_get(&out, len, 0);
		mc_buf_get(&in, len, 2);
		mc_fill(out.data, len, mc_seed(mc.rank, i));
		/* the receiver expects the message, then does not */
		if (i & 1) {
			MPI_Irecv(in.data, (int) len, MPI_BYTE, mc.rank, 1,
				  MPI_COMM_WORLD, &req[0]);
			MPI_Isend(out.data, (int) len, MPI_BYTE, mc.rank, 1,
				  MPI_COMM_WORLD, &req[1]);
		} else {
			MPI_Isend(out.data, (int) len, MPI_BYTE, mc.rank, 1,
				  MPI_COMM_WORLD, &req[1]);
			MPI_Irecv(in.data, (int) len, MPI_BYTE, mc.rank, 1,
				  MPI_COMM_WORLD, &req[0]);
		}
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		mc_check(in.data, len, mc_seed(mc.rank, i), "own message");
		mc_buf_put(&out);
		mc_buf_put(&in);
	}
}

/* The same persistent requests are started again, each time with other data. */
static void test_persistent(void)
{
	static const size_t lens[] = { 1, 5000, 20000, 150000, MC_MIB(1) };
	MPI_Request req[2 * MC_ARRAY_SIZE(lens)];
	struct mc_buf in[MC_ARRAY_SIZE(lens)], out[MC_ARRAY_SIZE(lens)];
	int i, n = MC_ARRAY_SIZE(lens), round;
	uint64_t number;

	while (n > 1 && lens[n - 1] > mc.max_size)
		n--;
	for (i = 0; i < n; i++) {
		mc_buf_get(&in[i], lens[i], (size_t) i);
		mc_buf_get(&out[i], lens[i], 0);
		MPI_Recv_init(in[i].data, (int) lens[i], MPI_BYTE, mc.prev, i,
			      MPI_COMM_WORLD, &req[i]);
		MPI_Send_init(out[i].data, (int) lens[i], MPI_BYTE, mc.next, i,
			      MPI_COMM_WORLD, &req[n + i]);
	}
	for (round = 0; round < 10; round++) {
		for (i = 0; i < n; i++) {
			number = (uint64_t) (round * n + i);
			mc_fill(out[i].data, lens[i], mc_seed(mc.rank, number));
		}
		MPI_Startall(2 * n, req);
		MPI_Waitall(2 * n, req, MPI_STATUSES_IGNORE);
		for (i = 0; i < n; i++) {
			number = (uint64_t) (round * n + i);
			mc_check(in[i].data, lens[i], mc_seed(mc.prev, number),
				 "message");
		}
	}
	for (i = 0; i < 2 * n; i++)
		MPI_Request_free(&req[i]);
	for (i = 0; i < n; i++) {
		mc_buf_put(&in[i]);
		mc_buf_put(&out[i]);
	}
}

/* A message shorter than the receive buffer leaves the rest of it untouched. */
static void test_short(void)
{
	size_t i, len, room, count = mc_size_count();
	struct mc_buf in, out;
	MPI_Request req;
	MPI_Status status;

	for (i = 0; i < count; i++) {
		len = mc_size(i);
		room = len + 1 + len / 2;
		mc_buf_get(&out, len, 0);
		mc_buf_get(&in, room, 1);
		mc_fill(out.data, len, mc_seed(mc.rank, i));
		MPI_Irecv(in.data, (int) room, MPI_BYTE, mc.prev, 3,
			  MPI_COMM_WORLD, &req);
		MPI_Send(out.data, (int) len, MPI_BYTE, mc.next, 3,
			 MPI_COMM_WORLD);
		MPI_Wait(&req, &status);
		mc_check_status(&status, mc.prev, 3, len);
		mc_check(in.data, len, mc_seed(mc.prev, i), "message");
		mc_check_byte(in.data + len, room - len, MC_POISON,
			      "the rest of a receive");
		mc_buf_put(&out);
		mc_buf_put(&in);
	}
}

const struct mc_test mc_pt2pt_tests[] = {
	{ .name = "blocking", .run = test_blocking },
	{ .name = "pingpong", .run = test_pingpong },
	{ .name = "modes", .run = test_modes },
	{ .name = "nonblocking", .run = test_nonblocking },
	{ .name = "self", .run = test_self, .local = true },
	{ .name = "persistent", .run = test_persistent },
	{ .name = "short", .run = test_short },
	{ .name = NULL },
};
