#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Which folder of fi may use which: fails when a file includes a header of
# another one, or an object file needs a symbol of another one. init.c, which
# puts them together, is free.
#
# usage: folders.sh [BUILDDIR]	(default .)

build=${1:-.}
source=${srcdir:-.}
nm=${NM:-nm}

# FOLDER: what it may use; fi is what lies in no folder
uses='fi:
record: fi
alloc: fi record
data: fi record alloc
obj: fi record alloc data
hook: fi record alloc obj
cw: fi record data obj
file: fi record alloc data obj cw'

# Lines of "WHAT FROM TO NAME" become complaints.
judge()
{
	awk -v uses="$uses" '
	BEGIN {
		n = split(uses, line, "\n")
		for (i = 1; i <= n; i++) {
			m = split(line[i], to, /:? /)
			sub(/:$/, "", to[1])
			known[to[1]]
			for (j = 2; j <= m; j++)
				may[to[1], to[j]]
		}
	}
	!($2 in known) { print $2 ": a folder that folders.sh lacks" }
	$2 != $3 && !(($2, $3) in may) {
		print $1 " of fi/" $2 " uses fi/" $3 ": " $4
	}' | sort -u
}

# "include FROM TO FILE" of each header of fi that a file there includes.
includes()
{
	find "$1" -name '*.[ch]' ! -name init.c | while read -r file; do
		from=${file#"$1"/}
		case $from in
		*/*) from=${from%%/*} ;;
		*) from="fi" ;;
		esac
		sed -n 's|^#include "fi/\([^"]*\)".*|\1|p' "$file" |
		while read -r header; do
			case $header in
			*/*) to=${header%%/*} ;;
			*) to="fi" ;;
			esac
			echo "include $from $to $file"
		done
	done
}

# "call FROM TO SYMBOL" of each symbol that one object has and another needs:
# calls BUILD SOURCE.
calls()
{
	find "$1" -path '*/.libs/*.o' ! -name '*-init.o' |
	while read -r file; do
		from=${file#"$1"/}
		case $from in
		.libs/*) from="fi" place=. ;;
		*) from=${from%%/*} place=$from ;;
		esac
		# not what is left of an earlier build
		name=${file##*-}
		[ -f "$2/$place/${name%.o}.c" ] || continue
		$nm "$file" | awk -v from="$from" 'NF >= 2 {
			print from, $(NF - 1), $NF }'
	done | awk '
	$2 ~ /^[TDBRVC]$/ { of[$3] = $1 }
	$2 == "U" { n++; user[n] = $1; name[n] = $3 }
	END {
		for (i = 1; i <= n; i++)
			if (name[i] in of)
				print "call", user[i], of[name[i]], name[i]
	}'
}

# It must trip on an offender.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/obj"
echo '#include "fi/cw/cw.h"' >"$dir/obj/ep.c"
if [ -z "$(includes "$dir" | judge)" ]; then
	echo "folders: an include that may not be does not trip" >&2
	exit 1
fi
if [ -z "$(includes "$source/prov/mrrc/fi")" ]; then
	echo "folders: no sources in $source/prov/mrrc/fi" >&2
	exit 1
fi
calls "$build/prov/mrrc/fi" "$source/prov/mrrc/fi" >"$dir/calls"
# objects for link-time optimization alone have none
[ -s "$dir/calls" ] || echo "folders: no symbols: calls are not looked at"
bad=$({
	includes "$source/prov/mrrc/fi"
	cat "$dir/calls"
} | judge)
[ -n "$bad" ] || exit 0
echo "$bad" >&2
exit 1
