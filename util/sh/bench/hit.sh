# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh hit: a hit and its release against a mutex and a tree, by bench_hit.

readonly HIT_NS=10 HIT_CALLS=1.7 HIT_ONE=5 HIT_TWO=13
HIT_ROUNDS=15
smoking && HIT_ROUNDS=1

bench_hit()
{
	local out=$DATA/hit met=no rows=26 ns calls aone atwo one two

	smoking && rows=22

	prepare
	program prov/mrrc/test/bench_hit
	measured "both sides in turn" "$out" "$PROGRAM" -n $HIT_ROUNDS

	say
	say "Set-up: $(setup_line); regions of 16 KiB, each looked up and"
	say "released at random, nanoseconds of both together; medians of 15"
	say "rounds. \"tree\": a mutex, a red-black tree and a list of those not"
	say "in use, as in libfabric. A process with one thread asks the kernel"
	say "nothing; nor does one with more, by default, where all code is"
	say "proven or hooked (\"trust\"). Else each lookup asks whether memory is"
	say "quiet: a system call (\"yes\"), counted in null ones. \"load\": one from"
	say "memory, out of a cache line for each region, that waits for the one"
	say "before."
	say
	table $rows "N (alone|[0-9]+) (yes|no) N N Z * ([0-9.]+|-) ([0-9.]+|-)" < <(awk '
		BEGIN {
			printf "  %7s %-12s %-6s %8s %8s %8s %6s %6s %6s\n", \
				"regions", "threads", "writer", "tree", "ours", \
				"tree/us", "probe", "nulls", "load"
		}
		/^case/ {
			printf "  %7d %-12s %-6s %8.1f %8.1f %8.1f %6s %6s %6s\n", \
				$2, $3 ? $3 : "alone", $4, $5, $6, $5 / $6, \
				$7, $7 == "yes" ? sprintf("%.2f", $6 / $8) : "-", \
				$3 ? "-" : sprintf("%.1f", $9)
		}' "$out")
	say
	read -r ns calls aone atwo one two < <(awk '
		$2 != 100 || $4 == "yes" { next }
		$3 == 1 && $7 == "trust" { ns = $6 }
		$3 == 1 && $7 == "yes" { calls = $6 / $8 }
		{ times[$3 $7] = $5 / $6 }
		END {
			printf "%.1f %.2f %.2f %.2f %.2f %.2f\n", ns, calls, \
				times["1yes"], times["2yes"], \
				times["1trust"], times["2trust"]
		}' "$out")
	if at_most "$ns" $HIT_NS && at_most "$calls" $HIT_CALLS &&
	   at_most $HIT_ONE "$one" && at_most $HIT_TWO "$two"; then
		met=yes
	fi
	say "  Where lookups have to ask, a hit is $aone times as fast as the tree"
	say "  with one thread, and $atwo times with two."
	say
	result "with threads $ns ns; 1 thread $one times, 2 threads $two times as fast; asking $calls null calls" \
		"<= $HIT_NS ns; >= $HIT_ONE, >= $HIT_TWO; <= $HIT_CALLS" $met
}
