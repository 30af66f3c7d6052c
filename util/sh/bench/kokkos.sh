# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh kokkos: figure 7 of levy2020, by kokkos_bench in the guest.

# The paper: 1.42 to 1.77 times HostSpace to 2 KiB; never behind either.
readonly KOKKOS_SMALL=1.42 KOKKOS_WORST=0.95
KOKKOS_TRIALS=300 KOKKOS=libtrilinos-kokkos-dev
# the build of --smoke is as it is
smoking && KOKKOS_TRIALS=3 KOKKOS=

bench_kokkos()
{
	local dir=$DATA/kokkos small worst where met=no

	# shellcheck disable=SC2086 # or none
	prepare g++ $KOKKOS
	grep -q "^HAVE_KOKKOS_TRUE=''" "$BUILD/$BENCH/config.log" ||
		cannot "configured where there was no Kokkos"
	program fabtests/benchmarks/kokkos_bench
	in_guest 1800 "$dir/out" "the three in turn" \
		"$PROGRAM" -p "$CORE;ofi_mrrc" -n $KOKKOS_TRIALS
	say
	levy_setup
	say "A View is made, registered or copied, and written to the peer:"
	say "microseconds, medians of $KOKKOS_TRIALS trials (fewer where that"
	say "would be too many bytes)."
	say
	awk -v small_to=2048 -f "$TOP/util/plot/alloc.awk" "$dir/out" \
		>"$dir/table"
	table 15 "N N N N N N" < <(grep -v '^RESULT' "$dir/table")
	read -r small worst where < <(sed -n 's/^RESULT //p' "$dir/table")
	say
	if at_most $KOKKOS_SMALL "$small" && at_most $KOKKOS_WORST "$worst"
	then
		met=yes
	fi
	result "to 2 KiB $small times HostSpace, at least $worst times the better other ($where)" \
		">= $KOKKOS_SMALL, >= $KOKKOS_WORST" $met
}
