/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Measures one way of transferring over several sizes, for fi_mrrc_lat and
 * fi_mrrc_bw.
 */
#ifndef FT_SWEEP_H
#define FT_SWEEP_H

#include "ft_bench.h"

int ft_sweep(int argc, char **argv, enum ft_metric metric);

#endif /* FT_SWEEP_H */
