#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# results.sh: writes the last result of each benchmark, its goal and the day to
# docs/results/benchmarks.txt. Benchmarks that were not run here keep theirs.

# shellcheck source=util/plot/doc.sh
. "$(dirname -- "$0")/doc.sh"

usage()
{
	cat <<-EOT
	Usage: $ME [-b FOLDER]

	Writes docs/results/benchmarks.txt from FOLDER/*.said (default:
	\${OFI_MRRC_BUILD:-build}/bench), which figures.sh leaves there.
	EOT
}

bench_option "$@"
need awk
open_results

# "NAME|VALUE|GOAL|DAY" of a benchmark's last line
for file in "$BENCH"/*.said; do
	[ -s "$file" ] || continue
	tail -n 1 "$file" | sed -nE \
		"s/^([a-z_]+): (.*[^ ;])[ ;]* \(goal (.*)\)$/\1|\2|\3|$(
		date -r "$file" +%Y-%m-%d)/p"
done >"$DIR/rows"
# and of those that stay
awk '
	/^[a-z_]+, [0-9-]+$/ { split($0, head, ", ") }
	/^  result: / { result = substr($0, 11) }
	/^  goal: / { print head[1] "|" result "|" substr($0, 11) "|" head[2] }' \
	"$DOCS/results/benchmarks.txt" >>"$DIR/rows"
{
	echo "The last result of each benchmark, its goal, and the day."
	awk -F'|' '!seen[$1]++' "$DIR/rows" | sort | awk -F'|' '{
		printf "\n%s, %s\n  result: %s\n  goal:   %s\n", $1, $4, $2, $3
	}'
} >"$RESULTS/benchmarks.txt"
close_results
