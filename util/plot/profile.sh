#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# profile.sh: makes the figures of docs/figures.md and their tables: figures
# 2 to 5 and tables 1 and 3 of mietke2006.

# shellcheck source=util/plot/doc.sh
. "$(dirname -- "$0")/doc.sh"
readonly AWK=$TOP/util/plot/profile.awk

usage()
{
	cat <<-EOT
	Usage: $ME -b BINDIR | -d DATA

	Writes docs/figures/mietke2006-*.svg and docs/results/profile.txt, with
	gnuplot. BINDIR: measure in the virtual machine, with fi_mrrc_prof
	from there; DATA: what ./bench.sh profile measured
	(build/bench/profile/out).
	EOT
}

BIN='' DATA=''
while getopts b:d:h option; do
	case $option in
	b) BIN=$(cd -- "$OPTARG" && pwd) ;;
	d) DATA=$OPTARG ;;
	h) usage; exit 0 ;;
	*) usage >&2; exit 2 ;;
	esac
done
[ -n "$BIN$DATA" ] || { usage >&2; exit 2; }
need gnuplot awk
open_results
if [ -z "$DATA" ]; then
	DATA=$DIR/data
	"$TOP/fabtests/scripts/guest.sh" -t 900 -- \
		"$TOP/util/plot/profile_run.sh" "$BIN" >"$DATA"
fi

# table NAME TITLE
table()
{
	printf '\n%s\n\n' "$2"
	awk -F, -v table="$1" -v md=1 -f "$AWK" "$DATA"
}

# plot NAME STATE TITLE
plot()
{
	awk -F, -v table="plot-$2" -f "$AWK" "$DATA" >"$DIR/$2"
	[ -s "$DIR/$2" ] || { echo "$ME: $DATA has no traced times" >&2; exit 1; }
	gnuplot <<-EOT
	$(canvas "$1" 640,400 "$3")
	set title "$3"
	set logscale x 2
	set logscale y
	$(sizes x)
	$(counts y)
	set xlabel 'size'
	set ylabel 'us'
	plot '$DIR/$2' using (1024*\$1):2 with linespoints title 'registration', \
	     '' using (1024*\$1):3 with linespoints title 'pin', \
	     '' using (1024*\$1):4 with linespoints title 'translate', \
	     '' using (1024*\$1):5 with linespoints title 'tell the device'
	EOT
}

plot mietke2006-2 touched "Figure 2: registering, pages present"
plot mietke2006-4 absent "Figure 4: registering, pages not present"
{
	echo "Registrations by fi_mrrc_prof over verbs on Soft-RoCE, in an emulated"
	echo "guest. The model:"
	echo
	sed -n '/^== model/,/^== /{/^==/d;s/^/  /;p}' "$DATA"
	table touched "Figures 2 and 3: pages present"
	table absent "Figures 4 and 5: pages not present"
	table bandwidth "Table 1: one message at a time"
	table pages "Table 3: pages not present, by kind; thp and 2m with mmap"
} | aligned >"$RESULTS/profile.txt"
close_results
