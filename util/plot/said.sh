#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# said.sh: tables of a page of docs/ as the benchmarks printed them.

set -eu
ME=${0##*/}
TOP=$(cd -- "$(dirname -- "$0")/../.." && pwd)
# shellcheck source=util/plot/doc.sh
. "$TOP/util/plot/doc.sh"

usage()
{
	cat <<-EOT
	Usage: $ME [-b FOLDER] PAGE NAME...

	Writes FOLDER/NAME.said, from its set-up on, into docs/PAGE. FOLDER
	(default: \${OFI_MRRC_BUILD:-build}/bench) is where figures.sh leaves what
	benchmarks say.
	EOT
}

bench_option "$@"
shift $((OPTIND - 1))
[ $# -ge 2 ] || { usage >&2; exit 2; }
need awk
page=$1
shift
for name in "$@"; do
	grep -qs '^Set-up: ' "$BENCH/$name.said" || {
		echo "$ME: nothing in $BENCH/$name.said: run ./figures.sh" >&2
		exit 1
	}
done
open_page "$page"
for name in "$@"; do
	{
		echo '```'
		sed -n '/^Set-up: /,$p' "$BENCH/$name.said"
		echo '```'
	} >"$DIR/said"
	replace "$name" "$DIR/said"
done
close_page
