#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# results.sh: writes the last result of each benchmark to docs/figures.md, with
# its goal and the day. Benchmarks that were not run here keep their line.

set -eu
ME=${0##*/}
TOP=$(cd -- "$(dirname -- "$0")/../.." && pwd)
# shellcheck source=util/plot/doc.sh
. "$TOP/util/plot/doc.sh"

usage()
{
	cat <<-EOT
	Usage: $ME [-b FOLDER]

	Writes the table of results in docs/figures.md from FOLDER/*.said
	(default: \${OFI_MRRC_BUILD:-build}/bench), which figures.sh leaves there.
	EOT
}

bench_option "$@"
need awk
open_page figures.md

# "| NAME | VALUE | GOAL | DAY |" of a benchmark's last line
for file in "$BENCH"/*.said; do
	[ -s "$file" ] || continue
	tail -n 1 "$file" | sed -nE \
		"s/^([a-z_]+): (.*[^ ;])[ ;]* \(goal (.*)\)$/| \1 | \2 | \3 | $(
		date -r "$file" +%Y-%m-%d) |/p"
done >"$DIR/rows"
sed -n '/^<!-- begin results -->$/,/^<!-- end results -->$/p' "$PAGE" |
	sed -n '/^| [a-z_]* |/p' | grep -v '^| benchmark ' >>"$DIR/rows" || true
{
	echo
	echo "| benchmark | result | goal | measured |"
	echo "|---|---|---|---|"
	awk '!seen[$2]++' "$DIR/rows" | sort
} >"$DIR/table"
replace results "$DIR/table"
close_page
