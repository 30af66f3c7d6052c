#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# frrwp.sh: makes the figures of docs/frrwp.md and their tables: figures 5
# to 8 of ou2009, with the times of ./bench.sh frrwp.

# shellcheck source=util/plot/doc.sh
. "$(dirname -- "$0")/doc.sh"
readonly CORES="tcp verbs"
# what the figures show
readonly MEM=cold BYTES=4096

usage()
{
	cat <<-EOT
	Usage: $ME DIR

	Writes docs/figures/frrwp-*.svg and docs/results/frrwp.txt, with gnuplot, from DIR/tcp and DIR/verbs: what ./bench.sh frrwp leaves in
	build/bench/frrwp.
	EOT
}

case ${1-} in
-h|--help) usage; exit 0 ;;
'') usage >&2; exit 2 ;;
esac
for file in "$1/tcp" "$1/verbs"; do
	grep -qs ' crw ' "$file" || {
		echo "$ME: nothing in $file: run ./bench.sh frrwp" >&2
		exit 1
	}
done
need gnuplot awk
FROM=$1
open_results

# ---- figures 5 and 6: timelines
# -----------------------------------------------

# timeline CORE OP: boxes "from to lane colour" and arrows "x lane dx dlane".
# The client's lane is above the server's, a process above the next.
timeline()
{
	awk -v mem=$MEM -v bytes=$BYTES -v op="$2" -v out="$DIR/$1.$2" '
	function box(from, to, lane, colour)
	{
		if (from >= 0 && to > from)
			print from, to, lane - .28, lane + .28, colour \
				>(out ".boxes")
	}
	function arrow(from, lane, to, lane2)
	{
		if (from >= 0 && to > from)
			print from, lane, to - from, lane2 - lane \
				>(out ".arrows")
	}
	$1 == "op" { for (i = 5; i <= NF; i++) name[i] = $i; next }
	$1 != op || $2 != mem || $3 != bytes { next }
	{
		for (i = 5; i <= NF; i++)
			at[name[i]] = $i == "-" ? -1 : $i
		top = $4 == "typical" ? 8 : $4 == "fast" ? 5 : 2
		client = top
		server = top - 1
		target = op == "read" ? client : server
		writer = op == "read" ? server : client
		asked = op == "read" && $4 == "typical" ? at["tregd"] : 0
		arrow(asked, client, at["heard"], server)
		box(at["treg"], at["tregd"], target, 1)
		box(at["wreg"], at["wregd"], writer, 2)
		box(at["posted"], at["free"], writer, 3)
		if ($4 == "crw")
			arrow(at["treg"], target, at["posted"], writer)
		else
			arrow(at["tregd"], target, at["keyin"], writer)
		arrow(at["posted"], writer, at["told"], target)
		if (at["told"] > last)
			last = at["told"]
		if (at["posted"] > posted)
			posted = at["posted"]
	}
	END {
		# what is told late need not be seen whole
		if (last > 2 * posted)
			last = 2 * posted
		printf "%.1f", last * 1.02 >(out ".last")
	}' "$FROM/$1"
}

# plot NAME TITLE COMMANDS
plot()
{
	gnuplot <<-EOT
	$(canvas "$1" 860,430 "$2")
	set multiplot layout 1,2 title "$2"
	unset grid
	set grid xtics lc rgb "#dddddd"
	set style fill solid 0.8 border lc rgb "#555555"
	set key samplen 1 width -3 font ",9"
	set xlabel offset 0,1
	set xtics font ",8"
	colour(i) = i == 1 ? 0x4477aa : i == 2 ? 0xccbb44 : 0xaa3377
	$3
	EOT
}

figures_5_6()
{
	local core=$1 op text=

	for op in read write; do
		timeline "$core" $op
		text+="
	set title '$op'
	set xrange [0:$(cat "$DIR/$core.$op.last")]
	plot '$DIR/$core.$op.boxes' using 1:(\$3+\$4)/2:1:2:3:4:(colour(\$5)) \
		with boxxyerror lc rgb variable notitle, \
	     '$DIR/$core.$op.arrows' using 1:2:3:4 with vectors \
		filled head lc rgb '#222222' notitle, \
	     NaN with boxes lc rgb 0x4477aa title 'target registers', \
	     NaN with boxes lc rgb 0xccbb44 title 'writer registers', \
	     NaN with boxes lc rgb 0xaa3377 title 'write is posted'"
	done
	plot "frrwp-5-6-$core" \
		"Figures 5 and 6: a transaction over $core, 4 KiB, $MEM" "
	set yrange [.2:8.8]
	set clip two
	set ytics ('typical: client' 8, 'server' 7, 'fast: client' 5, \
		'server' 4, 'crw: client' 2, 'server' 1)
	set xlabel 'us'
	$text"
}

# ---- figures 7 and 8: the writer, from its registration on -------------------

writer()
{
	awk -v mem=$MEM -v bytes=$BYTES -v out="$DIR/$1.writer" '
	function box(from, to, lane, colour)
	{
		if (to > from)
			print from, to, lane - .28, lane + .28, colour \
				>(out ".boxes")
	}
	$1 == "op" { for (i = 5; i <= NF; i++) name[i] = $i; next }
	$1 != "write" || $2 != mem || $3 != bytes { next }
	{
		for (i = 5; i <= NF; i++)
			at[name[i]] = $i == "-" ? -1 : $i
	}
	$4 == "fast" {
		box(at["wreg"], at["wregd"], 3, 2)
		box(at["wregd"], at["keyin"], 3, 4)
		box(at["posted"], at["free"], 3, 3)
	}
	$4 == "crw" {
		box(at["wreg"], at["wregd"], 2, 2)
		box(at["posted"], at["free"], 2, 3)
		box(at["free"], at["posted"], 1, 5)
	}' "$FROM/$1"
}

figure_7_8()
{
	local core text=

	for core in $CORES; do
		writer "$core"
		text+="
	set title '$core'
	plot '$DIR/$core.writer.boxes' \
		using 1:(\$3+\$4)/2:1:2:3:4:(shade(\$5)) \
		with boxxyerror lc rgb variable notitle, \
	     NaN with boxes lc rgb 0xccbb44 title 'registers', \
	     NaN with boxes lc rgb 0xdddddd title 'waits for the key', \
	     NaN with boxes lc rgb 0xaa3377 title 'posts', \
	     NaN with boxes lc rgb 0x88ccee title 'is held'"
	done
	plot frrwp-7-8 "Figures 7 and 8: the writer of a write, 4 KiB, $MEM" "
	shade(i) = i == 4 ? 0xdddddd : i == 5 ? 0x88ccee : colour(i)
	set yrange [.4:3.6]
	set ytics ('fast: application' 3, 'crw: application' 2, \
		'provider' 1)
	set xlabel 'us'
	set xrange [0:*]
	$text"
}

# ---- tables ------------------------------------------------------------------

tables()
{
	local core

	for core in $CORES; do
		echo
		echo "$core"
		awk -f "$TOP/util/plot/frrwp.awk" "$FROM/$core" | grep -v '^RESULT'
	done
}

# Each step of what the figures show.
steps()
{
	local core

	for core in $CORES; do
		echo
		echo "steps over $core"
		awk -v mem=$MEM -v bytes=$BYTES '
		$1 == "op" || ($2 == mem && $3 == bytes) {
			printf " "
			for (i = 1; i <= NF; i++)
				printf i < 4 ? " %-5s" : i == 4 ? " %-7s" : \
					" %7s", $i
			print ""
		}' "$FROM/$core"
	done
}

for core in $CORES; do
	figures_5_6 "$core"
done
figure_7_8
{
	echo "Microseconds from the start of a transaction, the fastest of each kind;"
	echo "docs/frrwp.md explains the columns. First until the write is posted, then"
	echo "until the posting call has returned (free), then until the target knows."
	tables
	steps
} >"$RESULTS/frrwp.txt"
close_results
