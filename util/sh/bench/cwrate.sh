# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh cwrate: streams of small transactions, by cwrate_bench.

readonly CWRATE_GOAL=1.5
CWRATE_COUNT=64
smoking && CWRATE_COUNT=1

bench_cwrate()
{
	local out=$DATA/cwrate both writer rest met=no

	prepare
	program fabtests/benchmarks/cwrate_bench
	measured "both ways in turn" "$out" "$PROGRAM" -p "tcp;ofi_mrrc" \
		-t 600 -I $CWRATE_COUNT
	say
	say "Set-up: $(setup_line); both sides are threads of one process that"
	say "look at their queues so many us apart, medians of 7 rounds of each."
	say
	table 40 "N N Z Z N N N" <"$out"
	say
	read -r both writer rest < <(awk '
		$1 == 16 && $2 == 4096 && $4 { ratio = ratio " " $7 }
		END { print ratio }' "$out")
	at_most $CWRATE_GOAL "$writer" && met=yes
	result "$writer times where the writer computes 1 ms, $rest where 5 ms, $both where both 100 us" \
		">= $CWRATE_GOAL, 1 ms" $met
}
