# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh fragmentation: bytes registered for what programs allocate, by
# frag_bench.

readonly FRAG_GOAL=1.25 FRAG_BLOCKS=1
readonly MALLOC_TRACES=$TOP/fabtests/benchmarks/malloc

# frag_one TRACE BY COMMAND...
frag_one()
{
	local trace=$1 by=$2

	shift 2
	xz -dc "$MALLOC_TRACES/$trace.xz" | "$@" | sed "s/^/$trace $by /"
}

# frag_all JEMALLOC
frag_all()
{
	local trace

	for trace in clang sqlite; do
		frag_one $trace fi_mr_alloc "$PROGRAM" -p "tcp;ofi_mrrc" &&
			frag_one $trace glibc "$PROGRAM" -m &&
			frag_one $trace jemalloc env LD_PRELOAD="$1" \
				"$PROGRAM" -m || return
	done
}

bench_fragmentation()
{
	local dir=$DATA/fragmentation lib worst blocks met=no

	prepare libjemalloc2
	program fabtests/benchmarks/frag_bench
	lib=$(ldconfig -p | awk 'index($1, "libjemalloc.so") == 1 {
		print $NF; exit }')
	[ -n "$lib" ] || cannot "no jemalloc"
	measured "traces replayed" "$dir/out" frag_all "$lib"
	say
	say "Set-up: $(setup_line). What clang had when it"
	say "compiled a C++ file of 170 lines, and sqlite3 with a table of 60000"
	say "rows, replayed. Held: bytes registered; from the system (glibc,"
	say "mallinfo2); resident (jemalloc), less those before. Each page is"
	say "touched. After: all freed, and trimmed (blocks)."
	say
	table 6 "* * N N N Z" < <(awk '
		BEGIN {
			printf "  %-8s %-12s %9s %9s %11s %11s\n", "program", \
				"by", "peak MiB", "held MiB", "held/peak", \
				"after MiB"
		}
		$3 == "peak" && NF == 11 {
			printf "  %-8s %-12s %9.1f %9.1f %11.3f %11.1f\n", $1, \
				$2, $4 / 1048576, $5 / 1048576, $6, $10 / 1048576
		}' "$dir/out")
	read -r worst blocks < <(awk '
		$2 == "fi_mr_alloc" && NF == 11 {
			if ($6 > worst)
				worst = $6
			if ($11 > blocks)
				blocks = $11
			n++
		}
		END { if (n == 2) print worst, blocks + 0 }' "$dir/out")
	say
	if at_most "$worst" $FRAG_GOAL && at_most "$blocks" $FRAG_BLOCKS; then
		met=yes
	fi
	result "at most $worst registered for each byte live at the peak, $blocks blocks after trim" \
		"<= $FRAG_GOAL, <= $FRAG_BLOCKS" $met
}
