#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# said.sh: docs/results/NAME.txt, as the benchmarks printed it.

# shellcheck source=util/plot/doc.sh
. "$(dirname -- "$0")/doc.sh"

usage()
{
	cat <<-EOT
	Usage: $ME [-b FOLDER] NAME...

	Writes FOLDER/NAME.said, from its set-up on, to docs/results/NAME.txt.
	FOLDER (default: \${OFI_MRRC_BUILD:-build}/bench) is where figures.sh
	leaves what benchmarks say.
	EOT
}

bench_option "$@"
shift $((OPTIND - 1))
[ $# -ge 1 ] || { usage >&2; exit 2; }
for name in "$@"; do
	grep -qs '^Set-up: ' "$BENCH/$name.said" || {
		echo "$ME: nothing in $BENCH/$name.said: run ./figures.sh" >&2
		exit 1
	}
done
mkdir -p "$DOCS/results"
for name in "$@"; do
	file=$DOCS/results/$name.txt
	sed -n '/^Set-up: /,$p' "$BENCH/$name.said" >"$file.new"
	mv "$file.new" "$file"
	echo "$ME: $file is new"
done
