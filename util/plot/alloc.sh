#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# alloc.sh: the figures of docs/alloc.md and their tables, from what ./bench.sh
# levy and kokkos have measured: figures 1 to 7 of levy2020.

# shellcheck source=util/plot/doc.sh
. "$(dirname -- "$0")/doc.sh"
readonly CIRCLES=40
readonly PLACE="Soft-RoCE, emulated guest, Debian 12"

usage()
{
	cat <<-EOT
	Usage: $ME [-b FOLDER]

	Writes docs/figures/levy2020-*.svg and tables, with gnuplot, from FOLDER/levy/out
	and FOLDER/kokkos/out (default: \${OFI_MRRC_BUILD:-build}/bench), which
	bench.sh leaves there; without the latter there is no figure 7. Circles:
	each of the first $CIRCLES trials.
	EOT
}

bench_option "$@"
need gnuplot awk
[ -s "$BENCH/levy/out" ] || {
	echo "$ME: no $BENCH/levy/out: run ./bench.sh levy" >&2
	exit 1
}
open_results
outs=("$BENCH/levy/out")
[ ! -s "$BENCH/kokkos/out" ] || outs+=("$BENCH/kokkos/out")
awk -v data=1 -f "$TOP/util/plot/alloc.awk" "${outs[@]}" >"$DIR/data"
for what in reg new reuse put kokkos; do
	grep "^$what " "$DIR/data" >"$DIR/$what" || true
done
for what in reg new; do
	awk -v what=$what -v most=$CIRCLES '
		$1 == what && n[$2]++ < most' "$BENCH/levy/out" \
		>"$DIR/$what.all"
done

# plot NAME TITLE COMMANDS
plot()
{
	gnuplot <<-EOT
	$(canvas "levy2020-$1" 640,400 "$2")
	set title "$2\n$PLACE"
	set logscale x 2
	set logscale y
	$(sizes x)
	$(counts y)
	set ytics add ('0.1' 0.1)
	set xlabel "size"
	set xtics 128,4
	set xrange [90:3000000]
	set ylabel "us"
	blue = "#4477aa"
	orange = "#ee7733"
	green = "#228833"
	set style fill transparent solid 0.3 noborder
	$3
	EOT
}

# mean NAME TITLE FILE LEFT RIGHT: means and medians of both, and the quotient
# of the medians by the axis on the right
mean()
{
	plot "$1" "$2" "
	set rmargin 12
	set y2label 'times as fast (medians)'
	set y2tics
	set logscale y2
	plot '$DIR/$3' u 2:3 w lp pt 7 lc rgb blue t '$4, mean', \
		'' u 2:4 w lp pt 6 dt 2 lc rgb blue t 'median', \
		'' u 2:5 w lp pt 5 lc rgb orange t '$5, mean', \
		'' u 2:6 w lp pt 4 dt 2 lc rgb orange t 'median', \
		'' u 2:(\$6/\$4) axes x1y2 w l dt 3 lw 2 lc rgb 'black' \
			t 'times as fast'"
}

# circles NAME TITLE FILE LEFT RIGHT
circles()
{
	plot "$1" "$2" "
	plot '$DIR/$3.all' u 2:3 w p pt 7 ps 0.4 lc rgb '#804477aa' t '$4', \
		'' u (\$2*1.15):4 w p pt 7 ps 0.4 lc rgb '#80ee7733' t '$5'"
}

circles 1 "Figure 1: registering memory" reg register deregister
plot 2 "Figure 2: registering, per byte" "
	set format y '%g'
	set ytics auto
	set ylabel 'ns per byte'
	plot '$DIR/reg' u 2:(\$3/\$2*1000) w lp pt 7 lc rgb blue \
			t 'register, mean', \
		'' u 2:(\$4/\$2*1000) w lp pt 6 dt 2 lc rgb blue t 'median', \
		'' u 2:(\$5/\$2*1000) w lp pt 5 lc rgb orange \
			t 'deregister, mean', \
		'' u 2:(\$6/\$2*1000) w lp pt 4 dt 2 lc rgb orange t 'median'"
circles 3 "Figure 3: new registered memory" new fi_mr_alloc "malloc, register"
mean 4 "Figure 4: new registered memory" new fi_mr_alloc "malloc, register"
mean 5 "Figure 5: registered memory used before" reuse fi_mr_alloc \
	"malloc, register"
mean 6 "Figure 6: acquiring memory, and an RDMA put" put fi_mr_alloc \
	"malloc, register"
[ ! -s "$DIR/kokkos" ] || plot 7 "Figure 7: a Kokkos View to a peer" "
	plot '$DIR/kokkos' u 2:4 w lp pt 7 lc rgb blue t 'registered space', \
		'' u 2:6 w lp pt 5 lc rgb orange t 'host space, registered', \
		'' u 2:8 w lp pt 9 lc rgb green t 'serialised'"

# result NAME FILE: writes docs/results/NAME.txt, the table that the benchmark
# printed to FILE
result()
{
	awk -v small_to=2048 -f "$TOP/util/plot/alloc.awk" "$2" |
		grep -v '^RESULT' | sed '/./,$!d' >"$RESULTS/$1.txt"
}

result levy "$BENCH/levy/out"
[ ! -s "$BENCH/kokkos/out" ] || result kokkos "$BENCH/kokkos/out"
close_results
