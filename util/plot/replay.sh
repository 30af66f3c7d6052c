#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# replay.sh: registered bytes over time of ./bench.sh replay, as figure 11 of
# li2011 shows them.

# shellcheck source=util/plot/doc.sh
. "$(dirname -- "$0")/doc.sh"

usage()
{
	cat <<-EOT
	Usage: $ME [-b FOLDER]

	Draws docs/figures/li2011-11-verbs.svg, with gnuplot, from
	FOLDER/replay/out (default: \${OFI_MRRC_BUILD:-build}/bench).
	EOT
}

bench_option "$@"
need gnuplot awk
OUT=$BENCH/replay/out
grep -qs '^bytes ' "$OUT" || {
	echo "$ME: nothing in $OUT: run ./figures.sh" >&2
	exit 1
}
open_results

# A file of seconds and MiB for each trace and way.
awk -v stem="$DIR/" '
	$1 == "bytes" { print $4, $5 / 1024 >(stem $2 "." $3) }' "$OUT"

mapfile -t names < <(awk '$1 == "replay" && $3 == "never" { print $2 }' "$OUT")
panels=
for name in "${names[@]}"; do
	panels+="
	set title '$name'
	plot '$DIR/$name.never' with steps lc rgb '#bbbbbb' \
			title 'left registered', \
	     '$DIR/$name.predict' with steps lc rgb '#4477aa' \
			title 'predicted'"
done
gnuplot <<-EOT
	$(canvas li2011-11-verbs 860,560 "li2011, figure 11: registered bytes over time, over verbs")
	set multiplot layout 2,3 title "Registered MiB, pinned by the device"
	set yrange [0:*]
	set xlabel "seconds"
	set key bottom left samplen 1 font ",8"
	$panels
	EOT
close_results
