/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mpi_check: functions by which main() begins and ends a test. */
#ifndef MPI_REPORT_H
#define MPI_REPORT_H

#include <stdbool.h>

/* Begins a test; broken: this rank shall fill wrong data. */
void mc_report_begin(bool broken);
/* Ends the test; returns how often the test called mc_fail(). */
int mc_report_end(void);

#endif /* MPI_REPORT_H */
