#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# predict.sh: registered bytes over time with a helper thread in
# docs/figures.md, and their table: fi_mrrc_sim over the traces of ./bench.sh
# predict.

# shellcheck source=util/plot/doc.sh
. "$(dirname -- "$0")/doc.sh"
# shellcheck source=util/sh/bench/predict.sh
. "$TOP/util/sh/bench/predict.sh"

readonly SHOWN="bt lu cp2k qe"

usage()
{
	cat <<-EOT
	Usage: $ME [-b BINDIR]

	Writes docs/figures/li2011-11.svg and docs/results/predict.txt, with
	gnuplot and BINDIR/fi_mrrc_sim (default: that of the build of bench.sh).
	EOT
}

BENCH=
bench_option "$@"
SIM=$BENCH/fi_mrrc_sim
[ -x "$SIM" ] || SIM=$BENCH/prefix/bin/fi_mrrc_sim
need gnuplot awk "$SIM"
open_results

# helpers LIST FORMAT TRACE...
helpers()
{
	local list=$1 format=$2

	shift 2
	# shellcheck disable=SC2086 # words
	"$SIM" --helper="$list" $PREDICT_OPTIONS -f "$format" "$@"
}

# A file of registered MiB for each helper and trace.
for name in $SHOWN; do
	helpers leave,timeout,predict,offline json \
		"$PREDICT_TRACES/$name.csv.xz" |
		awk -F'[ ",:]+' -v stem="$DIR/$name" '
			$2 == "helper" { out = stem "." $3 }
			/\]/ { inside = 0 }
			inside { print ++i / 2, $2 / 1048576 >out }
			$2 == "bytes_over_time" { inside = 1; i = 0 }'
done

panels=
for name in $SHOWN; do
	panels+="
	set title '$name'
	plot '$DIR/$name.leave' with steps lc rgb '#bbbbbb' \
			title 'left registered', \
	     '$DIR/$name.timeout' with steps lc rgb '#ee7733' \
			title 'idle timeout', \
	     '$DIR/$name.predict' with steps lc rgb '#4477aa' \
			title 'predicted', \
	     '$DIR/$name.offline' with steps lc rgb '#228833' \
			title 'future known'"
done
gnuplot <<-EOT
	$(canvas li2011-11 860,560 "li2011, figure 11: registered bytes over time")
	set multiplot layout 2,2 title "Registered MiB over the run"
	set yrange [0:*]
	set xlabel "percent of the run"
	set key top left samplen 1 font ",8"
	$panels
	EOT

{
	echo "Simulated with the costs of ou2009, messages of 16 KiB and more."
	echo "Registered bytes as parts of those left registered: average and peak"
	echo "with the predictor, average with an idle timeout that is as late, and"
	echo "with the future known. Late requests; predictions within 5 and .5 %"
	echo "of the gap. steady: recorded by a clock that counts instructions."
	for traces in "$PREDICT_TRACES" "$PREDICT_STEADY"; do
		helpers timeout,predict,offline csv "$traces"/*.csv.xz \
			>"$DIR/csv"
		echo
		echo "| ${traces##*/} | average | peak | idle timeout | future known | late | within 5 % | within .5 % |"
		echo "|---|---|---|---|---|---|---|---|"
		predict_rows "$DIR/csv" | awk '
			$1 != "RESULT" {
				printf "| %s", $1
				for (i = 2; i <= NF; i++) {
					sub(/%$/, " %", $i)
					printf " | %s", $i
				}
				print " |"
			}'
	done
} | aligned >"$RESULTS/predict.txt"
close_results
