#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Which folder of a layer, of the unit tests, or of the file server may use which:
# fails when a file includes a header of another one, or an object file needs a
# symbol of another one. fi/init.c, which puts folders together, is free. Inside a
# folder the files that call each other form no circle, but for the folders that
# are listed. Tests may include all headers of the layers; fakes include no test.
#
# usage: folders.sh [BUILDDIR]	(default .)

build=${1:-.}
source=${srcdir:-.}
nm=${NM:-nm}

# LAYER FOLDER: what it may use; what lies in no folder has the layer's name
uses='core core:
core text: core cost
core cost: core
core index: core
core policy: core text cost index
core cache: core text cost index policy
core heap: core
core helper: core text cost
core cw: core text
sys base:
sys hooks: base
sys proof: base hooks
sys monitor: base hooks proof
sys observe: base hooks monitor
sys node: base
sys cache: base hooks monitor node
sys predict: base monitor node cache
sys heap: base
sys file: base
fi fi:
fi record: fi
fi alloc: fi record
fi data: fi record alloc
fi obj: fi record alloc data
fi hook: fi record alloc obj
fi cw: fi record data obj
fi file: fi record alloc data obj cw
test test:
test fakes: test
test race: test fakes
test models: test fakes
test bench: test
test fuzz: test
test core: test fakes
test sys: test fakes race
test fi: test fakes
serve wire:
serve server: wire
serve client: wire
serve test: wire server client'

# LAYER/FOLDER with circles
circles='|sys/hooks|sys/proof|sys/monitor|sys/node|sys/cache|sys/heap|fi/fi|
|fi/alloc|fi/data|fi/obj|fi/hook|fi/file|serve/server|serve/client|'

# judge LAYER: lines of "WHAT FROM TO NAME" become complaints.
judge()
{
	awk -v uses="$uses" -v layer="$1" '
	BEGIN {
		n = split(uses, line, "\n")
		for (i = 1; i <= n; i++) {
			m = split(line[i], to, /:? |:$/)
			if (to[1] != layer)
				continue
			known[to[2]]
			for (j = 3; j <= m; j++)
				may[to[2], to[j]]
		}
	}
	!($2 in known) { print $2 ": a folder that folders.sh lacks" }
	$2 != $3 && !(($2, $3) in may) {
		print $1 " of " layer "/" $2 " uses " layer "/" $3 ": " $4
	}' | sort -u
}

# includes LAYER SOURCE: "include FROM TO FILE" of each header of the layer that a
# file there includes.
includes()
{
	find "$2" -name '*.[ch]' ! -path '*/fi/init.c' | while read -r file; do
		from=${file#"$2"/}
		case $from in
		*/*) from=${from%%/*} ;;
		*) from=$1 ;;
		esac
		sed -n "s|^#include \"$1/\([^\"]*\)\".*|\1|p" "$file" |
		while read -r header; do
			case $header in
			*/*) to=${header%%/*} ;;
			*) to=$1 ;;
			esac
			echo "include $from $to $file"
		done
	done
}

# calls LAYER BUILD SOURCE: "call FROM TO SYMBOL FILE FILE" of each symbol that one
# object has and another needs.
calls()
{
	find "$2" -path '*/.libs/*.o' ! -name '*-init.o' |
	while read -r file; do
		from=${file#"$2"/}
		case $from in
		.libs/*) from=$1 place=. ;;
		*) from=${from%%/*} place=$from ;;
		esac
		# not what is left of an earlier build
		name=${file##*-}
		[ -f "$3/$place/${name%.o}.c" ] || continue
		$nm "$file" | awk -v from="$from" -v name="${name%.o}" 'NF >= 2 {
			print from, $(NF - 1), $NF, name }'
	done | awk '
	$2 ~ /^[TDBRVC]$/ { of[$3] = $1; file[$3] = $4 }
	$2 == "U" { n++; user[n] = $1; name[n] = $3; by[n] = $4 }
	END {
		for (i = 1; i <= n; i++)
			if (name[i] in of)
				print "call", user[i], of[name[i]], name[i], \
					by[i], file[name[i]]
	}'
}

# circle LAYER: of lines as from calls, the files of a folder that form a circle.
circle()
{
	awk '$2 == $3 && $5 != $6 { print $2, $5, $6 }' >"$dir/pairs"
	cut -d ' ' -f 1 "$dir/pairs" | sort -u | while read -r folder; do
		case $circles in
		*"|$1/$folder|"*) continue ;;
		esac
		sed -n "s/^$folder //p" "$dir/pairs" | tsort 2>&1 >"$dir/order" |
			sed -n "s|^tsort: \([^-].*\)|$1/$folder: \1.c is in a circle|p"
	done | sort -u
}

# It must trip on an offender.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/obj"
echo '#include "fi/cw/cw.h"' >"$dir/obj/ep.c"
if [ -z "$(includes "fi" "$dir" | judge "fi")" ]; then
	echo "folders: an include that may not be does not trip" >&2
	exit 1
fi
if [ -z "$(printf 'call r r s %s\n' 'a b' 'b c' 'c a' | circle x)" ]; then
	echo "folders: a circle of calls does not trip" >&2
	exit 1
fi
for place in prov/mrrc/core prov/mrrc/sys prov/mrrc/fi prov/mrrc/test \
	util/serve; do
	layer=${place##*/}
	if [ -z "$(includes "$layer" "$source/$place")" ]; then
		echo "folders: no sources in $source/$place" >&2
		exit 1
	fi
	# a test program is linked from all folders
	if [ "$layer" = test ]; then
		: >"$dir/calls"
	else
		calls "$layer" "$build/$place" "$source/$place" >"$dir/calls"
		# objects for link-time optimization alone have none
		[ -s "$dir/calls" ] || echo "folders: no symbols of $layer:" \
			"calls are not looked at"
	fi
	{
		includes "$layer" "$source/$place"
		cat "$dir/calls"
	} | judge "$layer"
	circle "$layer" <"$dir/calls"
done >"$dir/out"
grep '^folders:' "$dir/out"
! grep -v '^folders:' "$dir/out" >&2
