/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * alloc_mem: an MPI program that gets new memory by MPI_Alloc_mem for each
 * exchange, with or without libmrrc_mpi.so.
 *
 * usage: alloc_mem ROUNDS SIZE		two processes exchange SIZE bytes, and
 *					check them, unless ROUNDS is negative
 *	  alloc_mem MISTAKE		what MPI answers
 *
 * Rank 0 prints "alloc_mem US REGISTRATIONS": the microseconds and the number
 * of registrations of an average round. Without reg_count.c preloaded the
 * number of registrations is 0.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((weak)) uint64_t reg_count(void);

static int rank;

static char *get(MPI_Aint size)
{
	char *buf = NULL;

	if (MPI_Alloc_mem(size, MPI_INFO_NULL, &buf) || !buf)
		MPI_Abort(MPI_COMM_WORLD, 2);
	return buf;
}

static char pattern(int of, int round, int i)
{
	return (char) (of * 101 + round * 31 + i * 7 + i / 4096);
}

static void exchange(int round, int size, int check)
{
	char *out = get(size), *in = get(size);
	int i;

	out[0] = in[0] = 1;
	for (i = 0; check && i < size; i++) {
		out[i] = pattern(rank, round, i);
		in[i] = 0;
	}
	MPI_Sendrecv(out, size, MPI_CHAR, !rank, 1, in, size, MPI_CHAR, !rank,
		     1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (i = 0; check && i < size; i++) {
		if (in[i] != pattern(!rank, round, i)) {
			fprintf(stderr, "round %d: byte %d is wrong\n", round,
				i);
			MPI_Abort(MPI_COMM_WORLD, 3);
		}
	}
	MPI_Free_mem(out);
	MPI_Free_mem(in);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "100";
	int rounds = atoi(what), size = argc > 2 ? atoi(argv[2]) : 1 << 20;
	char *buf = NULL;
	uint64_t count;
	double start;
	int i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!strcmp(what, "zero")) {
		i = MPI_Alloc_mem(0, MPI_INFO_NULL, &buf);
		printf("zero: %d, %s; ", i, buf ? "memory" : "none");
		printf("freed: %d\n", MPI_Free_mem(buf));
	} else if (!strcmp(what, "foreign")) {
		printf("freed: %d\n", MPI_Free_mem(malloc(1 << 20)));
	} else if (!strcmp(what, "twice")) {
		buf = get(1 << 20);
		MPI_Free_mem(buf);
		MPI_Free_mem(buf);
	} else if (!strcmp(what, "kept")) {
		buf = get(1 << 20);
		memset(buf, 'k', 1 << 20);
	}
	/* not in the first round, which connects and registers the buffers */
	for (i = 0; rounds && i < 2; i++)
		exchange(i, size, 1);
	count = reg_count ? reg_count() : 0;
	start = MPI_Wtime();
	for (i = 0; i < abs(rounds); i++)
		exchange(i, size, rounds > 0);
	if (rounds && !rank)
		printf("alloc_mem %.2f %.2f\n",
		       (MPI_Wtime() - start) * 1e6 / abs(rounds),
		       (double) (reg_count ? reg_count() - count : 0) /
			       abs(rounds));
	MPI_Finalize();
	/* memory that was not freed keeps its contents, as with malloc() */
	if (buf && !strcmp(what, "kept"))
		printf("kept: %c\n", buf[4096]);
	if (!strcmp(what, "late"))
		get(1 << 20);
	return 0;
}
