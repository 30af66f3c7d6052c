# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh hit: a hit and its release against a mutex and a tree, by bench_hit.

readonly HIT_NS=10 HIT_CALLS=1.7 HIT_ONE=10 HIT_TWO=13
HIT_ROUNDS=15
smoking && HIT_ROUNDS=1

bench_hit()
{
	local out=$DATA/hit met=no rows=26 ns calls one two hone htwo

	smoking && rows=22

	prepare
	program prov/mrrc/test/bench_hit
	measured "both sides in turn" "$out" "$PROGRAM" -n $HIT_ROUNDS

	say
	say "Set-up: $(setup_line); regions of 16 KiB, each looked up and"
	say "released at random, nanoseconds of both together; medians of 15"
	say "rounds. \"tree\": a mutex, a red-black tree and a list of those not"
	say "in use, as in libfabric. A process with one thread asks the kernel"
	say "nothing; with more, each lookup asks whether memory is quiet, which"
	say "is a system call (\"probe\") and counted in null ones, unless hooks"
	say "are relied on (FI_OFI_MRRC_PROBE=hooked)."
	say
	table $rows "N (alone|[0-9]) (yes|no) N N Z * ([0-9.]+|-)" < <(awk '
		BEGIN {
			printf "  %7s %-12s %-6s %8s %8s %8s %6s %6s\n", \
				"regions", "threads", "writer", "tree", "ours", \
				"tree/us", "probe", "nulls"
		}
		/^case/ {
			printf "  %7d %-12s %-6s %8.1f %8.1f %8.1f %6s %6s\n", \
				$2, $3 ? $3 : "alone", $4, $5, $6, $5 / $6, \
				$7, $7 == "yes" ? sprintf("%.2f", $6 / $8) : "-"
		}' "$out")
	say
	read -r ns calls one two hone htwo < <(awk '
		$2 != 100 || $4 == "yes" { next }
		$3 == 0 { ns = $6 }
		$3 == 1 && $7 == "yes" { calls = $6 / $8 }
		{ times[$3 $7] = $5 / $6 }
		END {
			printf "%.1f %.2f %.2f %.2f %.2f %.2f\n", ns, calls, \
				times["1yes"], times["2yes"], \
				times["1hooked"], times["2hooked"]
		}' "$out")
	if at_most "$ns" $HIT_NS && at_most "$calls" $HIT_CALLS &&
	   at_most $HIT_ONE "$one" && at_most $HIT_TWO "$two"; then
		met=yes
	fi
	say "  With hooks relied on, which is not the default, a hit is $hone times"
	say "  as fast as the tree with one thread, and $htwo times with two."
	say
	result "alone $ns ns; with a probe $calls null calls, 1 thread $one times, 2 threads $two times as fast" \
		"<= $HIT_NS ns; <= $HIT_CALLS, >= $HIT_ONE, >= $HIT_TWO" $met
}
