/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mpi_check: how main() asks for the result of a test.
 */
#ifndef MPI_REPORT_H
#define MPI_REPORT_H

#include <stdbool.h>

/* Begins a test; broken: the data that this rank fills shall be wrong. */
void mc_report_begin(bool broken);
/* Ends the test; returns the number of calls of mc_fail() in it. */
int mc_report_end(void);

#endif /* MPI_REPORT_H */
