# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh alloc: fi_mr_alloc(3) against malloc and free, by alloc_bench, and
# under the loads of alloc_load.

readonly ALLOC_GOAL=1 ALLOC_LARGE=65536 ALLOC_LARGE_GOAL=3
readonly ALLOC_LOAD_GOAL=1.1 ALLOC_PEAK_GOAL=1.5
ALLOC_ROUNDS=201 ALLOC_LOADS=11
# an even number: those that pass objects on are pairs
ALLOC_THREADS=$(($(nproc) / 2 * 2))
[ $ALLOC_THREADS -ge 2 ] || ALLOC_THREADS=2
[ $ALLOC_THREADS -le 16 ] || ALLOC_THREADS=16
smoking && ALLOC_ROUNDS=3 ALLOC_LOADS=1

# alloc_lib NAME: its path.
alloc_lib()
{
	ldconfig -p | awk -v name="$1" 'index($1, name) == 1 {
		print $NF; exit }'
}

# alloc_preloaded LIBRARY OUT: the same pairs by another malloc.
alloc_preloaded()
{
	measured "malloc of $1" "$2" env LD_PRELOAD="$(alloc_lib "$1")" \
		"$PROGRAM" -m -j $ALLOC_THREADS -I $ALLOC_ROUNDS
}

# alloc_loads FILE: lines of "LOAD ALLOCATOR ROUND NANOSECONDS KIB", each from
# a process of its own, the allocators in turn.
alloc_loads()
{
	local load by round command out=$DATA/alloc/load
	local options=(-j "$ALLOC_THREADS")

	smoking && options+=(-I 20000)
	for ((round = 1; round <= ALLOC_LOADS; round++)); do
		for load in larson scratch xmalloc mixed sparse; do
			for by in glibc fi_mr_alloc jemalloc mimalloc; do
				command=("$PROGRAM" "${options[@]}" -m "$load")
				case $by in
				fi_mr_alloc)
					command=("$PROGRAM" "${options[@]}"
						"$load") ;;
				*malloc)
					command=(env LD_PRELOAD="$(alloc_lib \
						"lib$by.so")" "${command[@]}")
					;;
				esac
				"${command[@]}" >"$out" 2>&1 ||
					ended $? "$load by $by" "$out"
				echo "$load $by $round $(cat "$out")"
			done
		done
	done >"$1"
}

# alloc_medians FILE: LOAD, four medians of nanoseconds and four of KiB, ours over
# the best of the others, and over glibc's memory, "-" where that is little.
alloc_medians()
{
	awk '
	{ key = $1 " " $2; ns[key, $3] = $4; kib[key, $3] = $5 }
	!($1 in seen) { seen[$1]; load[++loads] = $1 }
	$3 > rounds { rounds = $3 }
	function median(of, key,   i, j, x, v) {
		for (i = 1; i <= rounds; i++) {
			x = of[key, i]
			for (j = i - 1; j >= 1 && v[j] > x; j--)
				v[j + 1] = v[j]
			v[j + 1] = x
		}
		return v[int((rounds + 1) / 2)]
	}
	END {
		n = split("glibc fi_mr_alloc jemalloc mimalloc", by)
		for (i = 1; i <= loads; i++) {
			best = 0
			line = load[i]
			for (j = 1; j <= n; j++) {
				m[j] = median(ns, load[i] " " by[j])
				line = line " " m[j]
				if (j != 2 && (!best || m[j] < best))
					best = m[j]
			}
			best = m[2] / best
			for (j = 1; j <= n; j++) {
				m[j] = median(kib, load[i] " " by[j])
				line = line " " m[j]
			}
			print line, best, m[1] < 1024 ? "-" : m[2] / m[1]
		}
	}' "$1"
}

bench_alloc()
{
	local dir=$DATA/alloc worst large where met=no load peak

	prepare libjemalloc2 libmimalloc2.0
	[ -n "$(alloc_lib libjemalloc.so)" ] || cannot "no jemalloc"
	[ -n "$(alloc_lib libmimalloc.so)" ] || cannot "no mimalloc"
	program fabtests/benchmarks/alloc_bench
	measured "fi_mr_alloc and malloc in turn" "$dir/both" "$PROGRAM" \
		-j $ALLOC_THREADS -I $ALLOC_ROUNDS
	alloc_preloaded libjemalloc.so "$dir/jemalloc"
	alloc_preloaded libmimalloc.so "$dir/mimalloc"
	program fabtests/benchmarks/alloc_load
	alloc_loads "$dir/loads"
	alloc_medians "$dir/loads" >"$dir/load_medians"

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
	say
	say "Loads (alloc_load.c): nanoseconds of processor time for an allocation"
	say "and its free, by $ALLOC_THREADS threads, and MiB at the peak beyond those"
	say "at the start. Medians of $ALLOC_LOADS processes each, in turn. Best: of the"
	say "other three."
	say
	table 5 "* N N N N N Z Z Z Z *" < <(awk '
		BEGIN {
			printf "%8s %29s %30s\n", "", "nanoseconds", "MiB"
			printf "%8s %7s %11s %8s %8s %5s %6s %5s %5s %5s %6s\n",
				"", "glibc", "fi_mr_alloc", "jemalloc",
				"mimalloc", "/best", "glibc", "it", "je", "mi",
				"/glibc"
		}
		{
			printf "%8s %7.1f %11.1f %8.1f %8.1f %5.2f", $1, $2,
				$3, $4, $5, $10
			printf " %6.1f %5.1f %5.1f %5.1f %6s\n", $6 / 1024,
				$7 / 1024, $8 / 1024, $9 / 1024,
				$11 == "-" ? $11 : sprintf("%.2f", $11)
		}' "$dir/load_medians")
	read -r load peak < <(awk '
		$10 > load { load = $10 }
		$11 != "-" && $11 > peak { peak = $11 }
		END { printf "%.2f %.2f\n", load, peak }' "$dir/load_medians")
	read -r worst where large < <(awk -v from=$ALLOC_LARGE '
		{ r = $4 / $5 }
		!n++ || r < worst { worst = r; where = $1 "/" $2 "/" $3 }
		$3 >= from && (!m++ || r < large) { large = r }
		END { if (m) printf "%.2f %s %.2f\n", worst, where, large }' \
		"$dir/both")
	say
	if at_most $ALLOC_GOAL "$worst" &&
	   at_most $ALLOC_LARGE_GOAL "$large" &&
	   at_most "$load" $ALLOC_LOAD_GOAL &&
	   at_most "$peak" $ALLOC_PEAK_GOAL; then
		met=yes
	fi
	result "glibc/it at least $worst ($where), from 64 KiB on $large; loads at most $load of the best, $peak of glibc's memory" \
		">= $ALLOC_GOAL, from 64 KiB on >= $ALLOC_LARGE_GOAL; <= $ALLOC_LOAD_GOAL, <= $ALLOC_PEAK_GOAL" $met
}
