#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# core is pure: its archive may need nothing but plain C and its own symbols.
# Fails when the archive is missing, when a symbol is not on the list, and
# when the gate itself does not trip.
#
# usage: purity.sh [ARCHIVE]	(default .libs/libmrrc_core.a)

lib=${1:-${MRRC_CORE_LIB:-.libs/libmrrc_core.a}}
nm=${NM:-nm}
cc=${CC:-cc}

names='mrrc_.*|malloc|calloc|free|abort|mem(cpy|set|cmp|move|chr)'
names="$names|str(n?cmp|n?casecmp|n?len|r?chr|str|c?spn)"
names="$names|__mem(cpy|set|move)_chk|__assert_fail|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_"
names="$names|__(asan|ubsan|tsan|gcov|sanitizer|llvm)_.*"

foreign()
{
	$nm -u "$1" | awk 'NF == 2 && $1 == "U" { print $2 }' | sort -u |
		sed 's/@.*//' | grep -Evx "$names"
}

if [ ! -f "$lib" ]; then
	echo "purity: no archive $lib" >&2
	exit 1
fi
if ! $nm --defined-only "$lib" 2>/dev/null | grep -q mrrc_cache_init; then
	echo "purity: $lib is not the core archive" >&2
	exit 1
fi
bad=$(foreign "$lib")
if [ -n "$bad" ]; then
	echo "purity: core reaches outside:" >&2
	echo "$bad" >&2
	exit 1
fi

# Both gates must trip on an offender.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
echo 'int fi_close(void *); int f(void *p) { return fi_close(p); }' \
	> "$dir/a.c"
if ! $cc -c -o "$dir/a.o" "$dir/a.c" || [ -z "$(foreign "$dir/a.o")" ]; then
	echo "purity: the symbol gate does not trip" >&2
	exit 1
fi
pure=${srcdir:-.}/prov/mrrc/core/pure.h
[ -f "$pure" ] || pure=$(dirname "$0")/pure.h
if $cc -include "$pure" -c -o "$dir/b.o" "$dir/a.c" 2>/dev/null; then
	echo "purity: pure.h does not trip" >&2
	exit 1
fi
exit 0
