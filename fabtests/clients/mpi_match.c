/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mpi_check: tests which message a receive gets, with unexpected messages,
 * wildcards, order, probes, cancelled receives.
 */
#include "mpi_check.h"

#define MANY 40

static const size_t mixed[] = {
	0, 12, 70000, 1, 16384, 300000, 64, 17000, 131073, 5,
};

static size_t mixed_size(size_t i)
{
	size_t len = mixed[i % MC_ARRAY_SIZE(mixed)];

	return len < mc.max_size ? len : mc.max_size;
}

/* Posts receives, in reverse order, after all messages have arrived. */
static void test_unexpected(void)
{
	size_t count = mc_size_count(), i, k, len;
	struct mc_buf out[32], in;
	MPI_Request req[32];
	MPI_Status status;

	if (count > MC_ARRAY_SIZE(out))
		count = MC_ARRAY_SIZE(out);
	for (i = 0; i < count; i++) {
		len = mc_size(i);
		mc_buf_get(&out[i], len, i % 2);
		mc_fill(out[i].data, len, mc_seed(mc.rank, i));
		MPI_Isend(out[i].data, (int) len, MPI_BYTE, mc.next, (int) i,
			  MPI_COMM_WORLD, &req[i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (k = count; k > 0; k--) {
		i = k - 1;
		len = mc_size(i);
		mc_buf_get(&in, len, 1);
		MPI_Recv(in.data, (int) len, MPI_BYTE, mc.prev, (int) i,
			 MPI_COMM_WORLD, &status);
		mc_check_status(&status, mc.prev, (int) i, len);
		mc_check(in.data, len, mc_seed(mc.prev, i), "message");
		mc_buf_put(&in);
	}
	MPI_Waitall((int) count, req, MPI_STATUSES_IGNORE);
	for (i = 0; i < count; i++)
		mc_buf_put(&out[i]);
}

/* Sends MANY messages, each tagged with its number, to the rank @to. */
static void send_many(int to)
{
	struct mc_buf out[MANY];
	MPI_Request req[MANY];
	size_t i, len;

	for (i = 0; i < MANY; i++) {
		len = mixed_size(i);
		mc_buf_get(&out[i], len, 0);
		mc_fill(out[i].data, len, mc_seed(mc.rank, i));
		MPI_Isend(out[i].data, (int) len, MPI_BYTE, to, (int) i,
			  MPI_COMM_WORLD, &req[i]);
	}
	MPI_Waitall(MANY, req, MPI_STATUSES_IGNORE);
	for (i = 0; i < MANY; i++)
		mc_buf_put(&out[i]);
}

/*
 * The last rank receives from any source: messages of one sender must arrive in
 * the order in which they were sent, whatever their sizes.
 */
static void receive_any(bool probe_first)
{
	size_t room = mixed_size(5), len;
	int *seen = calloc((size_t) mc.ranks, sizeof(*seen));
	int i, source, count;
	struct mc_buf in;
	MPI_Status status;

	for (i = 0; i < MANY * (mc.ranks - 1); i++) {
		source = MPI_ANY_SOURCE;
		len = room;
		if (probe_first) {
			MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
				  &status);
			MPI_Get_count(&status, MPI_BYTE, &count);
			source = status.MPI_SOURCE;
			len = (size_t) count;
		}
		mc_buf_get(&in, len, 0);
		MPI_Recv(in.data, (int) len, MPI_BYTE, source, MPI_ANY_TAG,
			 MPI_COMM_WORLD, &status);
		source = status.MPI_SOURCE;
		if (source < 0 || source >= mc.ranks - 1) {
			mc_fail("a message from rank %d", source);
			break;
		}
		len = mixed_size((size_t) seen[source]);
		mc_check_status(&status, source, seen[source], len);
		mc_check(in.data, len, mc_seed(source, (uint64_t) seen[source]),
			 "message");
		seen[source]++;
		mc_buf_put(&in);
	}
	free(seen);
}

static void test_any(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (mc.rank < mc.ranks - 1)
		send_many(mc.ranks - 1);
	else
		receive_any(false);
}

static void test_probe(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (mc.rank < mc.ranks - 1)
		send_many(mc.ranks - 1);
	else
		receive_any(true);
}

/*
 * All messages have the same tag: posted receives are matched in posting order.
 */
static void test_order(void)
{
	struct mc_buf in[MANY], out[MANY];
	MPI_Request req[2 * MANY];
	size_t i, room = mixed_size(5);
	MPI_Status status[2 * MANY];

	for (i = 0; i < MANY; i++) {
		mc_buf_get(&in[i], room, 0);
		mc_buf_get(&out[i], mixed_size(i), 0);
		mc_fill(out[i].data, out[i].len, mc_seed(mc.rank, i));
		/* some receives accept any message, some only this message */
		MPI_Irecv(in[i].data, (int) room, MPI_BYTE,
			  i % 3 ? mc.prev : MPI_ANY_SOURCE,
			  i % 4 ? 9 : MPI_ANY_TAG, MPI_COMM_WORLD, &req[i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < MANY; i++)
		MPI_Isend(out[i].data, (int) out[i].len, MPI_BYTE, mc.next, 9,
			  MPI_COMM_WORLD, &req[MANY + i]);
	MPI_Waitall(2 * MANY, req, status);
	for (i = 0; i < MANY; i++) {
		mc_check_status(&status[i], mc.prev, 9, out[i].len);
		mc_check(in[i].data, out[i].len, mc_seed(mc.prev, i),
			 "message");
		mc_buf_put(&in[i]);
		mc_buf_put(&out[i]);
	}
}

/*
 * Receives a probed message by MPI_Mrecv(): no other receive may get the
 * message.
 */
static void claim(size_t i)
{
	MPI_Message first, second;
	struct mc_buf in[2];
	MPI_Status status;
	MPI_Request req;
	size_t len = mc_size(i);
	int flag = 0;

	mc_buf_get(&in[0], len, 0);
	mc_buf_get(&in[1], len, 1);
	while (!flag)
		MPI_Improbe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &flag, &first,
			    &status);
	mc_check_status(&status, mc.prev, 4, len);
	MPI_Mprobe(mc.prev, MPI_ANY_TAG, MPI_COMM_WORLD, &second, &status);
	mc_check_status(&status, mc.prev, 4, len);
	/* receive the second message first */
	MPI_Imrecv(in[1].data, (int) len, MPI_BYTE, &second, &req);
	MPI_Wait(&req, &status);
	mc_check_status(&status, mc.prev, 4, len);
	MPI_Mrecv(in[0].data, (int) len, MPI_BYTE, &first, &status);
	mc_check_status(&status, mc.prev, 4, len);
	mc_check(in[0].data, len, mc_seed(mc.prev, 2 * i), "first message");
	mc_check(in[1].data, len, mc_seed(mc.prev, 2 * i + 1),
		 "second message");
	mc_buf_put(&in[0]);
	mc_buf_put(&in[1]);
}

static void test_mprobe(void)
{
	size_t i, k, len, count = mc_size_count();
	struct mc_buf out[2];
	MPI_Request req[2];

	for (i = 0; i < count; i++) {
		len = mc_size(i);
		for (k = 0; k < 2; k++) {
			mc_buf_get(&out[k], len, k);
			mc_fill(out[k].data, len, mc_seed(mc.rank, 2 * i + k));
			MPI_Isend(out[k].data, (int) len, MPI_BYTE, mc.next, 4,
				  MPI_COMM_WORLD, &req[k]);
		}
		claim(i);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		mc_buf_put(&out[0]);
		mc_buf_put(&out[1]);
	}
}

/*
 * A cancelled receive gets no message, and its memory can be freed; the next
 * receive gets the message.
 */
static void test_cancel(void)
{
	size_t i, len, count = mc_size_count();
	struct mc_buf gone, in, out;
	MPI_Status status;
	MPI_Request req;
	int flag;

	for (i = 0; i < count; i++) {
		len = mc_size(i);
		mc_buf_get(&gone, len, 0);
		mc_buf_get(&in, len, 0);
		mc_buf_get(&out, len, 0);
		MPI_Irecv(gone.data, (int) len, MPI_BYTE, mc.prev, 11,
			  MPI_COMM_WORLD, &req);
		MPI_Cancel(&req);
		MPI_Wait(&req, &status);
		MPI_Test_cancelled(&status, &flag);
		if (!flag)
			mc_fail("a receive was not cancelled");
		/* send nothing before all receives are cancelled */
		MPI_Barrier(MPI_COMM_WORLD);
		mc_fill(out.data, len, mc_seed(mc.rank, i));
		MPI_Sendrecv(out.data, (int) len, MPI_BYTE, mc.next, 11,
			     in.data, (int) len, MPI_BYTE, mc.prev, 11,
			     MPI_COMM_WORLD, &status);
		mc_check(in.data, len, mc_seed(mc.prev, i), "message");
		mc_check_byte(gone.data, len, MC_POISON, "cancelled receive");
		mc_buf_put(&gone);
		mc_buf_put(&in);
		mc_buf_put(&out);
	}
}

const struct mc_test mc_match_tests[] = {
	{ .name = "unexpected", .run = test_unexpected },
	{ .name = "any", .run = test_any },
	{ .name = "order", .run = test_order },
	{ .name = "probe", .run = test_probe },
	{ .name = "mprobe", .run = test_mprobe },
	{ .name = "cancel", .run = test_cancel },
	{ .name = NULL },
};
