#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# ou2009.sh: figures 1 and 2 of ou2009 in docs/figures.md, and their tables,
# from what ./bench.sh levy and profile have measured.

# shellcheck source=util/plot/doc.sh
. "$(dirname -- "$0")/doc.sh"
# bytes; the paper's
readonly FROM=1024 TO=131072
readonly PLACE="Soft-RoCE, emulated guest, Debian 12"

usage()
{
	cat <<-EOT
	Usage: $ME [-b FOLDER]

	Writes docs/figures/ou2009-{1,2}.svg and docs/results/registration.txt, with
	gnuplot, from FOLDER/levy/out and FOLDER/profile/out (default:
	\${OFI_MRRC_BUILD:-build}/bench), which bench.sh leaves there.
	EOT
}

bench_option "$@"
need gnuplot awk
for name in levy profile; do
	[ -s "$BENCH/$name/out" ] || {
		echo "$ME: no $BENCH/$name/out: run ./bench.sh $name" >&2
		exit 1
	}
done
open_results

# Figure 1: "KiB registration write", medians, of the write of 1 KiB.
awk -v data=1 -f "$TOP/util/plot/alloc.awk" "$BENCH/levy/out" |
	awk -v from=$FROM -v to=$TO '
		$1 == "reg" { reg[$2] = $4 }
		$1 == "put" { put[$2] = $4 }
		END {
			for (n = from; n <= to; n *= 2)
				if (n in reg && n in put)
					print n / 1024, reg[n] / put[from],
						put[n] / put[from]
		}' >"$DIR/1"

# Figure 2: "KiB user device", of the device's part of 4 KiB.
awk -F, -v table=plot-touched -f "$TOP/util/plot/profile.awk" \
	"$BENCH/profile/out" | awk -v to=$TO '
		$1 * 1024 <= to {
			if (!one)
				one = $5
			if (one)
				print $1, $2 / one, $5 / one
		}' >"$DIR/2"
for name in 1 2; do
	[ -s "$DIR/$name" ] || {
		echo "$ME: nothing of figure $name was measured" >&2
		exit 1
	}
done

# plot NAME TITLE YLABEL COMMANDS
plot()
{
	gnuplot <<-EOT
	$(canvas "ou2009-$1" 640,400 "$2")
	set title "$2\n$PLACE"
	set logscale x 2
	$(sizes x)
	set xlabel "size"
	set ylabel "$3"
	$4
	EOT
}

plot 1 "Figure 1: registering, and an RDMA write" "times a write of 1 KiB" "
	set logscale y
	plot '$DIR/1' using (1024*\$1):2 with linespoints title 'registration', \
	     '' using (1024*\$1):3 with linespoints title 'RDMA write'"
plot 2 "Figure 2: registering, and what the device takes of it" \
	"times the device's part of 4 KiB" "
	set yrange [0:2.5]
	plot '$DIR/2' using (1024*\$1):2 with linespoints \
			title 'registration from user space', \
	     '' using (1024*\$1):3 with linespoints title 'telling the device'"

# table NAME TITLE HEAD LAST: of the plotted numbers, and their quotient
table()
{
	echo "$2"
	echo
	echo "| KiB | $3 |"
	awk -v inverse="$4" '{
		printf "| %d | %.2f | %.2f | %.2f |\n", $1, $2, $3,
			inverse ? $3 / $2 : $2 / $3
	}' "$DIR/$1"
}

{
	table 1 "Figure 1: medians, in times of a write of 1 KiB; $PLACE." \
		"registration | write | registration / write" 0
	echo
	table 2 "Figure 2: in times of the device's part of 4 KiB; $PLACE." \
		"user space | device | device / user space" 1
} | aligned >"$RESULTS/registration.txt"
close_results
