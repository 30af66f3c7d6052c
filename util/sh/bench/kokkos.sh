# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh kokkos: figure 7 of levy2020, by kokkos_bench in the guest.

# The paper: 1.42 to 1.77 times HostSpace to 2 KiB; never behind either.
readonly KOKKOS_TRIALS=300 KOKKOS_SMALL=1.42 KOKKOS_WORST=0.95

bench_kokkos()
{
	local dir=$BUILD/bench/kokkos small worst where met=no
	local program=$BUILD/bench/fabtests/benchmarks/kokkos_bench

	need "$BUILD_PACKAGES g++ libtrilinos-kokkos-dev" ||
		cannot "packages are missing"
	build_installed bench || cannot "the build failed"
	[ -x "$program" ] || cannot "built without Kokkos (see config.log)"
	mkdir -p "$dir"
	in_guest 1800 "$dir/out" "the three in turn, in the guest" \
		"$program" -p "verbs;ofi_mrrc" -s 10.0.0.1 -n $KOKKOS_TRIALS
	say
	levy_setup
	say "A View is made, registered or copied, and written to the peer:"
	say "microseconds, medians of $KOKKOS_TRIALS trials (fewer where that"
	say "would be too many bytes)."
	say
	awk -v small_to=2048 -f "$TOP/util/plot/alloc.awk" "$dir/out" \
		>"$dir/table"
	grep -v '^RESULT' "$dir/table"
	read -r small worst where < <(sed -n 's/^RESULT //p' "$dir/table")
	[ -n "${where-}" ] || cannot "the guest said nothing"
	say
	if at_most $KOKKOS_SMALL "$small" && at_most $KOKKOS_WORST "$worst"
	then
		met=yes
	fi
	result "to 2 KiB $small times HostSpace, at least $worst times the better other ($where)" \
		">= $KOKKOS_SMALL, >= $KOKKOS_WORST" $met
}
