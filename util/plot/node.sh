#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# node.sh: registered bytes of four processes over time of ./bench.sh node, as
# figure 8 of li2011 shows them.

# shellcheck source=util/plot/doc.sh
. "$(dirname -- "$0")/doc.sh"

usage()
{
	cat <<-EOT
	Usage: $ME [-b FOLDER]

	Draws docs/figures/li2011-8.svg, with gnuplot, from FOLDER/node.helpers
	(default: \${OFI_MRRC_BUILD:-build}/bench).
	EOT
}

bench_option "$@"
need gnuplot awk
OUT=$BENCH/node.helpers
grep -qs '^bytes ' "$OUT" || {
	echo "$ME: nothing in $OUT: run ./figures.sh" >&2
	exit 1
}
open_results

# A file of seconds and percent for each helper, of the first round.
for name in none conservative aggressive auto; do
	for load in busy idle; do
		awk -v name=$name -v load=$load '
			$1 == "bytes" && !$2 && $3 == load && $4 == name {
				print $5 / 1000, $6
			}' "$OUT" >"$DIR/$name.$load"
	done
done

panels=
for load in busy idle; do
	title="processes that compute"
	[ $load = busy ] || title="processes that wait"
	panels+="
	set title '$title'
	plot '$DIR/none.$load' with steps lc rgb '#bbbbbb' title 'none', \
	     '$DIR/conservative.$load' with steps lc rgb '#ee7733' \
			title 'conservative', \
	     '$DIR/auto.$load' with steps lc rgb '#228833' title 'auto', \
	     '$DIR/aggressive.$load' with steps lc rgb '#4477aa' \
			title 'aggressive'"
done
gnuplot <<-EOT
	$(canvas li2011-8 860,320 "li2011, figure 8: registered bytes of a node over time")
	set multiplot layout 1,2 title "Registered bytes of four processes, percent of their buffers"
	set yrange [0:110]
	set xlabel "seconds"
	set key bottom left samplen 1 font ",8"
	$panels
	EOT
close_results
