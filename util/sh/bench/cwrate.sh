# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh cwrate: streams of small transactions, by cwrate_bench.

readonly CWRATE_GOAL=1.5

bench_cwrate()
{
	local out=$BUILD/bench/cwrate both writer rest met=no

	need "$BUILD_PACKAGES" || cannot "packages are missing"
	build_installed bench || cannot "the build failed"
	logged "both ways in turn" "$out" \
		env FI_PROVIDER_PATH="$BUILD/bench/prefix/lib/libfabric" \
		"$BUILD/bench/fabtests/benchmarks/cwrate_bench" \
		-p "tcp;ofi_mrrc" -t 600 || cannot "the benchmark failed"
	say
	say "Set-up: $(setup_line); both sides are threads of one process that"
	say "look at their queues so many us apart, medians of 7 rounds of each."
	say
	cat "$out"
	say
	read -r both writer rest < <(awk '
		$1 == 16 && $2 == 4096 && $4 { ratio = ratio " " $7 }
		END { print ratio }' "$out")
	[ -n "$rest" ] || cannot "no result for depth 16 and 4 KiB"
	at_most $CWRATE_GOAL "$writer" && met=yes
	result "$writer times where the writer computes 1 ms, $rest where 5 ms, $both where both 100 us" \
		">= $CWRATE_GOAL, 1 ms" $met
}
