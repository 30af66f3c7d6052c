/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_mrrc_bw: bandwidth of transfers, including the cost of registrations. */
#include "ft_bench.h"
#include "ft_sweep.h"

int main(int argc, char **argv)
{
	return ft_sweep(argc, argv, FT_BW);
}
