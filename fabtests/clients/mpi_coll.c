/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mpi_check: collective operations, each with lengths from nothing to some
 * MiB and with every rank as the root.
 */
#include "mpi_check.h"

/* Elements for each rank. */
static const int counts[] = { 0, 1, 3, 100, 2049, 10000, 70001 };

static int coll_count(size_t i)
{
	size_t most = mc.max_size / sizeof(int64_t) / 4;

	return (size_t) counts[i] < most ? counts[i] : (int) most;
}

/* Element i of a rank's contribution; small, so that sums are exact. */
static int64_t element(int rank, int i)
{
	return (int64_t) (mc_word((uint64_t) rank + 7, (size_t) i) >> 20);
}

static int64_t *elements_new(int n)
{
	int64_t *p = malloc(((size_t) n + 1) * sizeof(*p));

	if (!p)
		MPI_Abort(MPI_COMM_WORLD, 2);
	memset(p, MC_POISON, ((size_t) n + 1) * sizeof(*p));
	return p;
}

/* This rank's contribution: n elements, the first with this number. */
static int64_t *elements_of(int rank, int from, int n)
{
	int64_t *p = elements_new(n);
	int i;

	for (i = 0; i < n; i++)
		p[i] = element(rank, from + i);
	/* some rank has a part, and the last rank is not the root */
	if (n)
		p[n - 1] = mc_value(p[n - 1]);
	return p;
}

/* Checks that these n elements are the rank's, the first with this number. */
static void check_elements(const int64_t *p, int rank, int from, int n,
			   const char *what)
{
	int i;

	for (i = 0; i < n; i++) {
		if (p[i] == element(rank, from + i))
			continue;
		mc_fail("%s: element %d of %d from rank %d is wrong", what, i,
			n, rank);
		return;
	}
}

/* Checks that each is the sum of the elements of ranks first to last. */
static void check_sums(const int64_t *p, int first, int last, int from, int n,
		       const char *what)
{
	int64_t sum;
	int i, r;

	for (i = 0; i < n; i++) {
		sum = 0;
		for (r = first; r <= last; r++)
			sum += element(r, from + i);
		if (p[i] == sum)
			continue;
		mc_fail("%s: sum %d of %d is wrong", what, i, n);
		return;
	}
}

static void test_bcast(void)
{
	int64_t *p;
	int root, n;
	size_t c;

	for (c = 0; c < MC_ARRAY_SIZE(counts); c++) {
		n = coll_count(c);
		for (root = 0; root < mc.ranks; root++) {
			p = mc.rank == root ? elements_of(root, 0, n) :
					      elements_new(n);
			MPI_Bcast(p, n, MPI_INT64_T, root, MPI_COMM_WORLD);
			check_elements(p, root, 0, n, "bcast");
			free(p);
		}
	}
}

static void test_reduce(void)
{
	int64_t *out, *in;
	int root, n;
	size_t c;

	for (c = 0; c < MC_ARRAY_SIZE(counts); c++) {
		n = coll_count(c);
		for (root = 0; root < mc.ranks; root++) {
			out = elements_of(mc.rank, 0, n);
			in = elements_new(n);
			MPI_Reduce(out, in, n, MPI_INT64_T, MPI_SUM, root,
				   MPI_COMM_WORLD);
			if (mc.rank == root)
				check_sums(in, 0, mc.ranks - 1, 0, n, "reduce");
			free(out);
			free(in);
		}
	}
}

static void test_allreduce(void)
{
	int64_t *out, *in;
	size_t c;
	int n;

	for (c = 0; c < MC_ARRAY_SIZE(counts); c++) {
		n = coll_count(c);
		out = elements_of(mc.rank, 0, n);
		in = elements_new(n);
		MPI_Allreduce(out, in, n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
		check_sums(in, 0, mc.ranks - 1, 0, n, "allreduce");
		MPI_Allreduce(MPI_IN_PLACE, out, n, MPI_INT64_T, MPI_SUM,
			      MPI_COMM_WORLD);
		check_sums(out, 0, mc.ranks - 1, 0, n, "allreduce in place");
		free(out);
		free(in);
	}
}

static void test_scan(void)
{
	int64_t *out, *in;
	size_t c;
	int n;

	for (c = 0; c < MC_ARRAY_SIZE(counts); c++) {
		n = coll_count(c);
		out = elements_of(mc.rank, 0, n);
		in = elements_new(n);
		MPI_Scan(out, in, n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
		check_sums(in, 0, mc.rank, 0, n, "scan");
		MPI_Exscan(out, in, n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
		if (mc.rank)
			check_sums(in, 0, mc.rank - 1, 0, n, "exscan");
		/* the last rank's part is in no other's exscan */
		check_elements(out, mc.rank, 0, n, "scanned");
		free(out);
		free(in);
	}
}

static void test_reduce_scatter(void)
{
	int *parts = malloc((size_t) mc.ranks * sizeof(*parts));
	int64_t *out, *in;
	int n, r, all, mine;
	size_t c;

	for (c = 0; c < MC_ARRAY_SIZE(counts); c++) {
		n = coll_count(c) / mc.ranks;
		/* rank r gets n + r */
		for (r = 0, all = 0, mine = 0; r < mc.ranks; r++) {
			if (r == mc.rank)
				mine = all;
			parts[r] = n + r;
			all += parts[r];
		}
		out = elements_of(mc.rank, 0, all);
		in = elements_new(all);
		MPI_Reduce_scatter(out, in, parts, MPI_INT64_T, MPI_SUM,
				   MPI_COMM_WORLD);
		check_sums(in, 0, mc.ranks - 1, mine, parts[mc.rank],
			   "reduce_scatter");
		MPI_Reduce_scatter_block(out, in, n, MPI_INT64_T, MPI_SUM,
					 MPI_COMM_WORLD);
		check_sums(in, 0, mc.ranks - 1, n * mc.rank, n,
			   "reduce_scatter_block");
		free(out);
		free(in);
	}
	free(parts);
}

/* Rank r's part of a "v" operation has r elements more, with a gap behind. */
static void layout(int n, int *parts, int *places)
{
	int r, at;

	for (r = 0, at = 0; r < mc.ranks; r++) {
		parts[r] = n + r;
		places[r] = at;
		at += n + r + 3;
	}
}

static void check_layout(const int64_t *in, const int *parts, const int *places,
			 const char *what)
{
	int r;

	for (r = 0; r < mc.ranks; r++) {
		check_elements(in + places[r], r, 0, parts[r], what);
		if (r + 1 < mc.ranks)
			mc_check_byte(in + places[r] + parts[r],
				      3 * sizeof(*in), MC_POISON,
				      "between parts");
	}
}

static void test_gather(void)
{
	int parts[64], places[64], root, n, room;
	int64_t *out, *in;
	size_t c;

	for (c = 0; c < MC_ARRAY_SIZE(counts); c++) {
		n = coll_count(c) / mc.ranks;
		layout(n, parts, places);
		room = places[mc.ranks - 1] + parts[mc.ranks - 1];
		out = elements_of(mc.rank, 0, parts[mc.rank]);
		for (root = 0; root < mc.ranks; root++) {
			in = elements_new(room);
			MPI_Gatherv(out, parts[mc.rank], MPI_INT64_T, in, parts,
				    places, MPI_INT64_T, root, MPI_COMM_WORLD);
			if (mc.rank == root)
				check_layout(in, parts, places, "gatherv");
			free(in);
		}
		in = elements_new(room);
		MPI_Allgatherv(out, parts[mc.rank], MPI_INT64_T, in, parts,
			       places, MPI_INT64_T, MPI_COMM_WORLD);
		check_layout(in, parts, places, "allgatherv");
		free(in);
		in = elements_new(n * mc.ranks);
		MPI_Allgather(out, n, MPI_INT64_T, in, n, MPI_INT64_T,
			      MPI_COMM_WORLD);
		for (root = 0; root < mc.ranks; root++)
			check_elements(in + root * n, root, 0,
				       n < parts[0] ? n : parts[0],
				       "allgather");
		free(in);
		free(out);
	}
}

static void test_scatter(void)
{
	int parts[64], places[64], root, n, room;
	int64_t *out, *in;
	size_t c;

	for (c = 0; c < MC_ARRAY_SIZE(counts); c++) {
		n = coll_count(c) / mc.ranks;
		layout(n, parts, places);
		room = places[mc.ranks - 1] + parts[mc.ranks - 1];
		for (root = 0; root < mc.ranks; root++) {
			out = elements_of(root, 0, room);
			in = elements_new(parts[mc.rank]);
			MPI_Scatterv(out, parts, places, MPI_INT64_T, in,
				     parts[mc.rank], MPI_INT64_T, root,
				     MPI_COMM_WORLD);
			check_elements(in, root, places[mc.rank],
				       parts[mc.rank], "scatterv");
			MPI_Scatter(out, n, MPI_INT64_T, in, n, MPI_INT64_T,
				    root, MPI_COMM_WORLD);
			check_elements(in, root, n * mc.rank, n, "scatter");
			free(in);
			free(out);
		}
	}
}

static void test_alltoall(void)
{
	int parts[64], places[64], n, r, room;
	int64_t *out, *in;
	size_t c;

	for (c = 0; c < MC_ARRAY_SIZE(counts); c++) {
		n = coll_count(c) / mc.ranks;
		out = elements_of(mc.rank, 0, n * mc.ranks);
		in = elements_new(n * mc.ranks);
		MPI_Alltoall(out, n, MPI_INT64_T, in, n, MPI_INT64_T,
			     MPI_COMM_WORLD);
		for (r = 0; r < mc.ranks; r++)
			check_elements(in + r * n, r, mc.rank * n, n,
				       "alltoall");
		free(out);
		free(in);

		/* rank r gets n + r elements from each rank */
		layout(n, parts, places);
		room = places[mc.ranks - 1] + parts[mc.ranks - 1];
		out = elements_of(mc.rank, 0, room);
		in = elements_new((n + mc.rank) * mc.ranks);
		{
			int want[64], at[64];

			for (r = 0; r < mc.ranks; r++) {
				want[r] = n + mc.rank;
				at[r] = r * want[r];
			}
			MPI_Alltoallv(out, parts, places, MPI_INT64_T, in, want,
				      at, MPI_INT64_T, MPI_COMM_WORLD);
			for (r = 0; r < mc.ranks; r++)
				check_elements(in + at[r], r, places[mc.rank],
					       want[r], "alltoallv");
		}
		free(out);
		free(in);
	}
}

/* Several operations at once, each on a communicator of its own. */
static void test_concurrent(void)
{
	enum { PARALLEL = 4 };
	int64_t *out[PARALLEL], *in[PARALLEL];
	MPI_Comm comms[PARALLEL];
	MPI_Request req[2 * PARALLEL];
	int i, n = coll_count(MC_ARRAY_SIZE(counts) - 1), round;

	for (i = 0; i < PARALLEL; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < PARALLEL; i++) {
			out[i] = elements_of(mc.rank, i, n);
			in[i] = elements_new(n);
			MPI_Iallreduce(out[i], in[i], n, MPI_INT64_T, MPI_SUM,
				       comms[i], &req[i]);
		}
		MPI_Waitall(PARALLEL, req, MPI_STATUSES_IGNORE);
		for (i = 0; i < PARALLEL; i++) {
			check_sums(in[i], 0, mc.ranks - 1, i, n, "iallreduce");
			MPI_Ibcast(in[i], n, MPI_INT64_T, i % mc.ranks,
				   comms[i], &req[i]);
			MPI_Ibarrier(comms[i], &req[PARALLEL + i]);
		}
		MPI_Waitall(2 * PARALLEL, req, MPI_STATUSES_IGNORE);
		for (i = 0; i < PARALLEL; i++) {
			check_sums(in[i], 0, mc.ranks - 1, i, n, "ibcast");
			free(out[i]);
			free(in[i]);
		}
	}
	for (i = 0; i < PARALLEL; i++)
		MPI_Comm_free(&comms[i]);
}

const struct mc_test mc_coll_tests[] = {
	{ .name = "bcast", .run = test_bcast },
	{ .name = "reduce", .run = test_reduce },
	{ .name = "allreduce", .run = test_allreduce },
	{ .name = "scan", .run = test_scan },
	{ .name = "reduce_scatter", .run = test_reduce_scatter },
	{ .name = "gather", .run = test_gather },
	{ .name = "scatter", .run = test_scatter },
	{ .name = "alltoall", .run = test_alltoall },
	{ .name = "concurrent", .run = test_concurrent },
	{ .name = NULL },
};
