#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# demo.sh: writes what ./demo.sh prints in the virtual machine to
# docs/results/demo.txt, and its picture to docs/figures/demo.svg.

# shellcheck source=util/plot/doc.sh
. "$(dirname -- "$0")/doc.sh"
export LC_ALL=C

usage()
{
	cat <<-EOT
	Usage: $ME

	Runs ./demo.sh --guest, some 10 minutes.
	EOT
}

[ $# -eq 0 ] || { usage >&2; exit 2; }
open_results
BUILD=${OFI_MRRC_BUILD:-$TOP/build}
"$TOP/demo.sh" -y --guest >"$DIR/demo.txt" || { cat "$DIR/demo.txt"; exit 1; }
{
	# shellcheck disable=SC2016 # as typed
	printf '$ ./demo.sh --guest\n\n'
	sed -n '/^== verbs/,/^   Picture/p' "$DIR/demo.txt" | sed '$d; s/ *$//'
} >"$RESULTS/demo.txt"
cp "$BUILD/demo.svg" "$FIGURES/demo.svg"
close_results
