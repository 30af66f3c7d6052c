/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A ping-pong of two MPI processes, for bench.sh recorder: messages of 64 KiB,
 * whose rendezvous registers memory at both ends. Prints "pingpong US", the
 * median time of a message.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define LEN    65536
#define ROUNDS 101
#define BATCH  50
#define BUFS   16 /* number of buffers, used in turn */

static char buf[BUFS][LEN];

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *) a, y = *(const double *) b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	double us[ROUNDS], start;
	int rank, round, i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (round = 0; round < ROUNDS; round++) {
		MPI_Barrier(MPI_COMM_WORLD);
		start = MPI_Wtime();
		for (i = 0; i < BATCH; i++) {
			char *at = buf[i % BUFS];

			if (!rank)
				MPI_Send(at, LEN, MPI_CHAR, 1, 0,
					 MPI_COMM_WORLD);
			MPI_Recv(at, LEN, MPI_CHAR, !rank, 0, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			if (rank)
				MPI_Send(at, LEN, MPI_CHAR, 0, 0,
					 MPI_COMM_WORLD);
		}
		us[round] = (MPI_Wtime() - start) * 1e6 / BATCH / 2;
	}
	qsort(us, ROUNDS, sizeof(*us), by_value);
	if (!rank)
		printf("pingpong %.3f\n", us[ROUNDS / 2]);
	MPI_Finalize();
	return 0;
}
