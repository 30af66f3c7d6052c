# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh alloc: fi_mr_alloc(3) against malloc and free, by alloc_bench.

readonly ALLOC_GOAL=1 ALLOC_LARGE=65536 ALLOC_LARGE_GOAL=3
ALLOC_ROUNDS=201
smoking && ALLOC_ROUNDS=3

# alloc_preloaded LIBRARY OUT: the same pairs by another malloc.
alloc_preloaded()
{
	local lib

	lib=$(ldconfig -p | awk -v name="$1" 'index($1, name) == 1 {
		print $NF; exit }')
	[ -n "$lib" ] || cannot "no $1"
	measured "malloc of $1" "$2" env LD_PRELOAD="$lib" "$PROGRAM" -m \
		-I $ALLOC_ROUNDS
}

bench_alloc()
{
	local dir=$DATA/alloc worst large where met=no

	prepare libjemalloc2 libmimalloc2.0
	program fabtests/benchmarks/alloc_bench
	measured "fi_mr_alloc and malloc in turn" "$dir/both" "$PROGRAM" \
		-I $ALLOC_ROUNDS
	alloc_preloaded libjemalloc.so "$dir/jemalloc"
	alloc_preloaded libmimalloc.so "$dir/mimalloc"

	say
	say "Set-up: $(setup_line)"
	say "Nanoseconds for an allocation and its free, medians of rounds that"
	say "alternate. reuse: one at a time; batch: 16 live; remote: 16 at a"
	say "time, freed by another thread. jemalloc and mimalloc in processes"
	say "of their own."
	say
	table 80 "N N N N N N" < <(paste -d' ' "$dir/both" "$dir/jemalloc" \
		"$dir/mimalloc" | sort -s -k1,2 | awk '
		$1 " " $2 != last {
			printf "%s, %d thread%s\n", $1, $2, ($2 > 1 ? "s" : "")
			printf "  %8s %10s %11s %8s %10s %10s\n", "bytes",
				"glibc", "fi_mr_alloc", "glibc/it",
				"jemalloc", "mimalloc"
			last = $1 " " $2
		}
		NF == 13 {
			printf "  %8d %10.1f %11.1f %8.2f %10.1f %10.1f\n",
				$3, $4, $5, $4 / $5, $9, $13
		}')
	read -r worst where large < <(awk -v from=$ALLOC_LARGE '
		{ r = $4 / $5 }
		!n++ || r < worst { worst = r; where = $1 "/" $2 "/" $3 }
		$3 >= from && (!m++ || r < large) { large = r }
		END { if (m) printf "%.2f %s %.2f\n", worst, where, large }' \
		"$dir/both")
	say
	if at_most $ALLOC_GOAL "$worst" &&
	   at_most $ALLOC_LARGE_GOAL "$large"; then
		met=yes
	fi
	result "glibc/it at least $worst ($where), from 64 KiB on $large" \
		">= $ALLOC_GOAL, from 64 KiB on >= $ALLOC_LARGE_GOAL" $met
}
