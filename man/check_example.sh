#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# check_example.sh: the program in fi_frrwp(7) compiles without a warning, and
# the public header does as C and as C++.  Part of make check, which sets CC
# and EXAMPLE_CFLAGS.  With an argument the program is left there, linked.

set -u
top=${srcdir:-$(dirname -- "$0")/..}
out=${1-}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
read -ra cc <<<"${CC:-cc}" # as "ccache gcc"
read -ra cflags <<<"${EXAMPLE_CFLAGS-} -I$top/include -Wall -Wextra -Werror"

fail()
{
	echo "FAIL: $*"
	exit 1
}

sed -n '/^# EXAMPLE/,/^# SEE/p' "$top/man/fi_frrwp.7.md" |
	awk '/^```/ { inside = /c$/; next } inside' >"$dir/example.c"
grep -q fi_cwtag "$dir/example.c" || fail "no example in fi_frrwp.7.md"
echo '#include <rdma/fi_ext_mrrc.h>' >"$dir/header.c"

compile()
{
	"$@" "${cflags[@]}" || fail "$*"
}

compile "${cc[@]}" -std=c11 -c -o "$dir/example.o" "$dir/example.c"
compile "${cc[@]}" -std=c99 -pedantic -Wextra -Wshadow -fsyntax-only \
	"$dir/header.c"
# without short names
"${cc[@]}" "${cflags[@]}" -E -dD -DFI_MRRC_NO_SHORT_NAMES "$dir/header.c" |
	grep -E "$(awk '/^#ifndef FI_MRRC_NO_SHORT_NAMES/ { on = 1; next }
		/^#endif/ { on = 0 }
		on && $1 == "#define" { printf "%s\\<%s\\>", n++ ? "|" : "", $2 }' \
		"$top/include/rdma/fi_ext_mrrc.h")" &&
	fail "short names where none are wanted"
compile "${cc[@]}" -std=c99 -pedantic -Wextra -Wshadow -fsyntax-only \
	-DFI_MRRC_NO_SHORT_NAMES "$dir/header.c"
if command -v c++ >/dev/null; then
	echo '#include <rdma/fi_mrrc.hpp>' >"$dir/header.cc"
	compile c++ -std=c++17 -fsyntax-only -DFI_MRRC_NO_SHORT_NAMES \
		"$dir/header.cc"
	compile c++ -x c++ -fsyntax-only "$dir/header.c"
	compile c++ -x c++ -fpermissive -w -fsyntax-only "$dir/example.c"
fi
if [ -n "$out" ]; then
	"${cc[@]}" "${cflags[@]}" -o "$out" "$dir/example.c" -lfabric ||
		fail "the example does not link"
fi
echo "PASS: the example and the header compile"
