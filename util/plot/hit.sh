#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# hit.sh: the curve of hits against threads and regions in docs/figures.md, and
# its table, from what ./bench.sh hit has measured.

# shellcheck source=util/plot/doc.sh
. "$(dirname -- "$0")/doc.sh"

usage()
{
	cat <<-EOT
	Usage: $ME [-b FOLDER]

	Writes docs/figures/hit.svg and docs/results/hit.txt, with gnuplot, from FOLDER/hit (default: \${OFI_MRRC_BUILD:-build}/bench),
	which bench.sh leaves there.
	EOT
}

bench_option "$@"
need gnuplot awk
grep -qs '^case ' "$BENCH/hit" || {
	echo "$ME: nothing in $BENCH/hit: run ./bench.sh hit" >&2
	exit 1
}
open_results

# Without a writer: "regions ours tree asking tree", ns, for each number of
# threads; 0 is a process that has one only. Each with the tree of its rounds.
awk -v dir="$DIR" '
	$1 != "case" || $4 != "no" { next }
	{
		key = $3 SUBSEP $2
		load[key] = $3 ? "-" : $9
		if (!($2 in seen)) {
			seen[$2] = 1
			size[++sizes] = $2
		}
		if (!($3 in known)) {
			known[$3] = 1
			thread[++threads] = $3
		}
		if ($7 == "yes")
			asking[key] = $6 " " $5
		else
			ours[key] = $6 " " $5
	}
	END {
		for (t = 1; t <= threads; t++) {
			for (s = 1; s <= sizes; s++) {
				key = thread[t] SUBSEP size[s]
				if (!(key in ours) && !(key in asking))
					continue
				line = size[s] " " \
					(key in ours ? ours[key] : "- -") " " \
					(key in asking ? asking[key] : "- -")
				print line >(dir "/threads." thread[t])
				print thread[t], line, load[key] >(dir "/all")
			}
			print thread[t] >(dir "/list")
		}
	}' "$BENCH/hit"
read -ra threads < <(paste -sd' ' "$DIR/list")

panels=
for n in "${threads[@]}"; do
	case $n in
	0) title="one thread, alone" ;;
	1) title="one thread of several" ;;
	*) title="$n threads" ;;
	esac
	panels+="
	set title '$title'
	plot '$DIR/threads.$n' using 1:3 with linespoints lc rgb '#ee7733' \
			title 'mutex and tree', \
	     '' using 1:2 with linespoints lc rgb '#4477aa' title 'ours'"
	# a process with one thread never asks
	grep -q -- ' - -$' "$DIR/threads.$n" || panels+=", \
	     '' using 1:4 with linespoints lc rgb '#228833' \
			title 'ours, asking the kernel'"
done
title="A hit and its release, by threads and regions"
gnuplot <<-EOT
	$(canvas hit 1000,360 "$title")
	set multiplot layout 1,${#threads[@]} title "$title"
	set logscale xy
	set yrange [4:5000]
	set xtics 10,10
	$(counts x)
	$(counts y)
	set xlabel "regions"
	set ylabel "ns"
	set bmargin 7
	set key vertical font ",9"
	$panels
	EOT

{
	echo "A hit and its release, and the same with a mutex around a tree: ns,"
	echo "host. a load: of a cache line for each region, one after the other."
	echo "asking: of the kernel, whether memory is quiet. alone: a process"
	echo "with one thread, which never asks."
	echo
	echo "| threads | regions | tree | ours | tree/ours | a load | asking | tree/asking |"
	echo "|---|---|---|---|---|---|---|---|"
	awk '
		function times(ns, tree)
		{
			if (ns == "-")
				return " - | - |"
			return sprintf(" %.0f | %.1f |", ns, tree / ns)
		}
		{
			tree = $4 == "-" ? $6 : $4
			load = $7 == "-" ? $7 : sprintf("%.0f", $7)
			printf "| %s | %d | %.0f |%s %s |%s\n", \
				$1 ? $1 : "1, alone", $2, tree, \
				times($3, tree), load, times($5, $6)
		}' "$DIR/all"
} | aligned >"$RESULTS/hit.txt"
close_results
