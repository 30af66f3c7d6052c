/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * pnetcdf_write: an MPI program that writes an array to a file with PnetCDF,
 * collectively, from new memory in each step, and reads and checks the array.
 *
 * usage: pnetcdf_write FILE STEPS SIDE	an array of SIDE * SIDE in each step, of
 *						which each rank writes every
 *						other block of columns
 *
 * Prints "pnetcdf_write: N of N values right".
 */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int status, const char *what)
{
	if (status == NC_NOERR)
		return;
	fprintf(stderr, "%s: %s\n", what, ncmpi_strerror(status));
	MPI_Abort(MPI_COMM_WORLD, 2);
}

static float value(MPI_Offset step, MPI_Offset row, MPI_Offset column)
{
	return (float) ((step * 31 + row * 7 + column) % 65536);
}

int main(int argc, char **argv)
{
	MPI_Offset start[3] = { 0 }, count[3] = { 1 }, steps, side, i, k;
	int rank, ranks, ncid, dims[3], var;
	long long right = 0, all = 0;
	float *buf;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc != 4)
		MPI_Abort(MPI_COMM_WORLD, 2);
	steps = atoi(argv[2]);
	side = atoi(argv[3]) / ranks * ranks;
	check(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA,
			   MPI_INFO_NULL, &ncid),
	      "create");
	check(ncmpi_def_dim(ncid, "step", steps, &dims[0]), "dim");
	check(ncmpi_def_dim(ncid, "row", side, &dims[1]), "dim");
	check(ncmpi_def_dim(ncid, "column", side, &dims[2]), "dim");
	check(ncmpi_def_var(ncid, "data", NC_FLOAT, 3, dims, &var), "var");
	check(ncmpi_enddef(ncid), "enddef");
	count[1] = side;
	count[2] = side / ranks;
	start[2] = rank * count[2];
	for (start[0] = 0; start[0] < steps; start[0]++) {
		buf = malloc((size_t) (count[1] * count[2]) * sizeof(*buf));
		for (i = 0; i < count[1]; i++)
			for (k = 0; k < count[2]; k++)
				buf[i * count[2] + k] =
					value(start[0], i, start[2] + k);
		check(ncmpi_put_vara_float_all(ncid, var, start, count, buf),
		      "write");
		free(buf);
	}
	/* these columns were written by another rank */
	start[2] = (rank + 1) % ranks * count[2];
	for (start[0] = 0; start[0] < steps; start[0]++) {
		buf = calloc((size_t) (count[1] * count[2]), sizeof(*buf));
		check(ncmpi_get_vara_float_all(ncid, var, start, count, buf),
		      "read");
		for (i = 0; i < count[1]; i++)
			for (k = 0; k < count[2]; k++)
				right += buf[i * count[2] + k] ==
					 value(start[0], i, start[2] + k);
		free(buf);
	}
	check(ncmpi_close(ncid), "close");
	MPI_Reduce(&right, &all, 1, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (!rank)
		printf("pnetcdf_write: %lld of %lld values right\n", all,
		       (long long) (steps * side * side));
	MPI_Finalize();
	return 0;
}
