# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh mpi_policies: the same as policies, on what MPI programs asked for.

# shellcheck source=util/sh/bench/policies.sh
. "$TOP/util/sh/bench/policies.sh"

readonly MPI_TRACES=$TOP/fabtests/traces

bench_mpi_policies()
{
	prepare
	judge_policies "$DATA/mpi_policies" "$MPI_TRACES"/*.csv.xz
}
