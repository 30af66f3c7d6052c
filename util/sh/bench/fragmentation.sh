# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh fragmentation: bytes registered for what programs allocate, by
# frag_bench.

readonly FRAG_GOAL=1.25 FRAG_BLOCKS=1
readonly MALLOC_TRACES=$TOP/fabtests/benchmarks/malloc

frag_one()
{
	local trace=$1

	shift
	xz -dc "$MALLOC_TRACES/$trace.xz" | "$@"
}

bench_fragmentation()
{
	local dir=$BUILD/bench/fragmentation trace lib worst blocks met=no
	local program=$BUILD/bench/fabtests/benchmarks/frag_bench

	need "$BUILD_PACKAGES libjemalloc2" || cannot "packages are missing"
	build_installed bench || cannot "the build failed"
	use_provider bench || cannot "no provider"
	[ -x "$program" ] || cannot "no frag_bench was built"
	lib=$(ldconfig -p | awk 'index($1, "libjemalloc.so") == 1 {
		print $NF; exit }')
	[ -n "$lib" ] || cannot "no jemalloc"
	mkdir -p "$dir"
	: >"$dir/out"
	for trace in clang sqlite; do
		{
			frag_one $trace "$program" -p "tcp;ofi_mrrc" |
				sed "s/^/$trace fi_mr_alloc /"
			frag_one $trace "$program" -m |
				sed "s/^/$trace glibc /"
			frag_one $trace env LD_PRELOAD="$lib" "$program" -m |
				sed "s/^/$trace jemalloc /"
		} >>"$dir/out" || cannot "frag_bench failed"
	done
	say
	say "Set-up: $(setup_line). What clang had when it"
	say "compiled a C++ file of 170 lines, and sqlite3 with a table of 60000"
	say "rows, replayed. Held: bytes registered; from the system (glibc,"
	say "mallinfo2); resident (jemalloc), less those before. Each page is"
	say "touched. After: all freed, and trimmed (blocks)."
	say
	awk '
		BEGIN {
			printf "  %-8s %-12s %9s %9s %11s %11s\n", "program", \
				"by", "peak MiB", "held MiB", "held/peak", \
				"after MiB"
		}
		$3 == "peak" {
			printf "  %-8s %-12s %9.1f %9.1f %11.3f %11.1f\n", $1, \
				$2, $4 / 1048576, $5 / 1048576, $6, $10 / 1048576
		}' "$dir/out"
	read -r worst blocks < <(awk '
		$2 == "fi_mr_alloc" {
			if ($6 > worst)
				worst = $6
			if ($11 > blocks)
				blocks = $11
			n++
		}
		END { if (n == 2) print worst, blocks + 0 }' "$dir/out")
	[ -n "$worst" ] || cannot "frag_bench said nothing"
	say
	if at_most "$worst" $FRAG_GOAL && at_most "$blocks" $FRAG_BLOCKS; then
		met=yes
	fi
	result "at most $worst registered for each byte live at the peak, $blocks blocks after trim" \
		"<= $FRAG_GOAL, <= $FRAG_BLOCKS" $met
}
