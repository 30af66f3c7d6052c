#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# helper.sh: registered bytes over time of ./bench.sh helper, as figures 2, 9
# and 10 of li2011 show them.

# shellcheck source=util/plot/doc.sh
. "$(dirname -- "$0")/doc.sh"

usage()
{
	cat <<-EOT
	Usage: $ME [-b FOLDER]

	Draws docs/figures/li2011-9.svg, with gnuplot, from FOLDER/helper/out
	(default: \${OFI_MRRC_BUILD:-build}/bench).
	EOT
}

bench_option "$@"
need gnuplot awk
OUT=$BENCH/helper/out
grep -qs '^bytes ' "$OUT" || {
	echo "$ME: nothing in $OUT: run ./figures.sh" >&2
	exit 1
}
open_results

# A file of seconds and percent for each way.
for way in each cache predict; do
	for reuse in yes no; do
		awk -v way=$way -v reuse=$reuse '
			$1 == "bytes" && $2 == way && $3 == reuse {
				print $4 / 1000, $5
			}' "$OUT" >"$DIR/$way.$reuse"
	done
done

panels=
for reuse in yes no; do
	title="the same three buffers"
	[ $reuse = yes ] || title="a new buffer for each message"
	panels+="
	set title '$title'
	plot '$DIR/cache.$reuse' with steps lc rgb '#bbbbbb' \
			title 'left registered', \
	     '$DIR/each.$reuse' with steps lc rgb '#ee7733' \
			title 'registered for each', \
	     '$DIR/predict.$reuse' with steps lc rgb '#4477aa' \
			title 'predicted'"
done
gnuplot <<-EOT
	$(canvas li2011-9 860,320 "li2011, figures 2, 9 and 10: registered bytes over time")
	set multiplot layout 1,2 title "Registered bytes, percent of three buffers of 4 MiB"
	set yrange [0:*]
	set xlabel "seconds"
	set key top left samplen 1 font ",8"
	$panels
	EOT
close_results
