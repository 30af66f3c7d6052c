#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# analyze.sh: what gcc's and clang's analyzers and cppcheck find in the provider
# and the tools, but for what analyze.known lists, with a reason. Tests are not
# looked at. The last line is "N passed, N failed".

set -u
export LC_ALL=C
ME=${0##*/}
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
cd -- "$TOP" || exit 2
readonly KNOWN=util/sh/analyze.known

usage()
{
	cat <<-EOT
	Usage: $ME [-j N] BUILD [TOOL]...

	BUILD: a folder that was configured. TOOL: gcc, clang or cppcheck
	(default: all). N: processes at a time.
	EOT
}

# With faults, of which each tool has to see one.
canary()
{
	cat >"$BUILD/analyze/canary.c" <<-EOT
	#include <stdlib.h>
	char canary(char *p);
	char canary(char *p)
	{
		char two[2];
		two[2] = *p;
		free(p);
		return *p + two[2];
	}
	EOT
}

sources()
{
	echo "$BUILD/analyze/canary.c"
	find prov/mrrc/core prov/mrrc/sys prov/mrrc/fi util -name test -prune \
		-o -name '*.c' -print
}

# on_sources N COMMAND...: runs COMMAND on N source files at a time, and prints
# the output of each run whole: lines of programs that run side by side can mix.
on_sources()
{
	local n=$1 out=$BUILD/analyze/out

	shift
	rm -rf "$out" && mkdir "$out" || return
	# shellcheck disable=SC2016 # expanded there
	sources | xargs -P "$JOBS" -n "$n" \
		sh -c 'exec "$@" >>"$0/$$" 2>&1' "$out" "$@"
	cat "$out"/*
}

# Leaks: pointers that are stored in what others free, as fi_info, count as lost;
# stage asan finds leaks as they happen.
find_gcc()
{
	on_sources 1 gcc "${FLAGS[@]}" -O1 -fanalyzer \
		-Wno-analyzer-malloc-leak -S -o /dev/null
}

# Not all paths through all calls: that takes ten times as long.
find_clang()
{
	on_sources 4 clang --analyze --analyzer-output text \
		-Xclang -analyzer-config -Xclang mode=shallow "${FLAGS[@]}" -w
}

# It knows the loops of libbsd's lists, and of other system headers nothing.
find_cppcheck()
{
	ln -sfn /usr/include/bsd "$BUILD/analyze/bsd"
	sources >"$BUILD/analyze/sources"
	cppcheck -q -j "$JOBS" --std=c11 --enable=warning,portability \
		--library=posix,gnu,bsd --inline-suppr -D__x86_64__ \
		--template='{file}:{line}:{column}: warning: {message} [{id}]' \
		"${FLAGS[@]:1}" -I"$BUILD/analyze" \
		--file-list="$BUILD/analyze/sources" 2>&1
}

# Each finding, and those that are not known as "TOOL FILE RULE: line".
unknown()
{
	awk -v tool="$1" '
		NR == FNR {
			if ($1 == tool)
				known[$2, $3]
			next
		}
		match($0, /^[^: ]+:[0-9]+:[0-9]+: (warning|error): /) {
			file = $0
			sub(/:.*/, "", file)
			rule = $0
			sub(/\]$/, "", rule)
			sub(/.*\[/, "", rule)
			sub(/^-Wanalyzer-/, "", rule)
			if (!((file, rule) in known))
				print tool, file, rule ": " $0
		}' "$KNOWN" -
}

JOBS=$(nproc)
while getopts j:h option; do
	case $option in
	j) JOBS=$OPTARG ;;
	h) usage; exit 0 ;;
	*) usage >&2; exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { usage >&2; exit 2; }
BUILD=$1
shift
[ -f "$BUILD/config.h" ] || { echo "$ME: $BUILD has no config.h" >&2; exit 2; }
[ $# -gt 0 ] || set -- gcc clang cppcheck
FLAGS=(-std=gnu11 -D_GNU_SOURCE -DHAVE_CONFIG_H -DNDEBUG "-I$BUILD" -Iinclude
	-Iprov/mrrc -Iutil '-DSTAT_PROVDIR="/"')
mkdir -p "$BUILD/analyze" && canary || exit 2
passed=0 failed=0
for tool in "$@"; do
	found=$("find_$tool" | sort -u)
	new=$(unknown "$tool" <<<"$found" | grep -v '/canary.c ')
	if ! grep -q '/canary\.c:.*warning: ' <<<"$found"; then
		tail -n 5 <<<"$found"
		echo "FAIL $tool: does not see the fault that is there for it"
		failed=$((failed + 1))
	elif [ -n "$new" ]; then
		printf '%s\n' "$new"
		echo "FAIL $tool: to be mended, or with a reason in $KNOWN"
		failed=$((failed + 1))
	else
		echo "PASS $tool"
		passed=$((passed + 1))
	fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
