#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_tools.sh: valgrind and AddressSanitizer find a program's wrong uses of
# memory of fi_mr_alloc, as they would with malloc's, and report no right use.
# The provider is the one that FI_PROVIDER_PATH names, and is not built for it.

set -u
export LC_ALL=C
top=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0

# verdict WHAT STATUS LOG
verdict()
{
	if [ "$2" -eq 0 ]; then
		echo "PASS $1"
		passed=$((passed + 1))
	else
		echo "FAIL $1"
		sed 's/^/  | /' "$3"
		failed=$((failed + 1))
	fi
}

# compile OUTPUT OPTION...
compile()
{
	local out=$1

	shift
	"${CC:-cc}" -g -O0 "$@" -I"$top/include" -o "$out" \
		"$top/fabtests/functional/alloc/alloc_bug.c" -lfabric
}

# finds TOOL BUG PATTERN COMMAND...
finds()
{
	local what="$1 finds: $2" pattern=$3

	shift 3
	"$@" >"$dir/log" 2>&1
	grep -qE "$pattern" "$dir/log"
	verdict "$what" $? "$dir/log"
}

# silent TOOL COMMAND...
silent()
{
	local what="$1 finds nothing"

	shift
	"$@" >"$dir/log" 2>&1
	verdict "$what" $? "$dir/log"
}

compile "$dir/plain" && compile "$dir/asan" -fsanitize=address || exit 1

memcheck=(valgrind -q --leak-check=full --error-exitcode=9
	--errors-for-leak-kinds=none
	--suppressions="$top/fabtests/suppressions/valgrind.supp")
silent valgrind "${memcheck[@]}" "$dir/plain" none
finds valgrind overflow "0 bytes after a block of size 100 alloc'd" \
	"${memcheck[@]}" "$dir/plain" overflow
finds valgrind freed "5 bytes inside a block of size 100 free'd" \
	"${memcheck[@]}" "$dir/plain" freed
finds valgrind unset "depends on uninitialised value" \
	"${memcheck[@]}" "$dir/plain" unset
finds valgrind leak "777 bytes in 1 blocks are definitely lost" \
	"${memcheck[@]}" "$dir/plain" leak

export ASAN_OPTIONS=detect_leaks=0
silent AddressSanitizer "$dir/asan" none
finds AddressSanitizer overflow "use-after-poison" "$dir/asan" overflow
finds AddressSanitizer freed "use-after-poison" "$dir/asan" freed

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
