#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# check_examples.sh: the whole programs in the manual pages compile without a
# warning, run over tcp where the provider built here can be loaded, and say
# clearly that the provider is absent where it is.  Part of make check.

set -u
export LC_ALL=C

top=${srcdir:-$(dirname -- "$0")/..}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0 found=0

fail()
{
	echo "FAIL: $*"
	failed=1
}

# The blocks of a page that have a main().
examples()
{
	awk -v to="$2" '
		/^```c$/ { inside = 1; text = ""; next }
		/^```$/ {
			if (inside && text ~ /int main\(/) {
				file = to "-" ++n ".c"
				printf "%s", text >file
				print file
			}
			inside = 0
		}
		inside { text = text $0 "\n" }' "$1"
}

# compile COMPILER FILE OUTPUT OPTION...
compile()
{
	local compiler=$1 file=$2 out=$3

	shift 3
	# shellcheck disable=SC2086 # several words, or none
	$compiler "$@" -Wall -Wextra -Werror -I"$top/include" \
		${EXAMPLE_CFLAGS-} -o "$out" "$file" \
		${EXAMPLE_LIBS--lfabric}
}

# The provider is not found: the program has to say so, and end.
absent()
{
	local rc

	FI_PROVIDER_PATH=$dir FI_PROVIDER='' "$1" >"$dir/log" 2>&1
	rc=$?
	[ $rc -eq 1 ] && grep -q '^fi_getinfo: ' "$dir/log"
}

# With the provider of this build, if libfabric can load it.
runs()
{
	env -u FI_PROVIDER FI_PROVIDER_PATH="$PWD/.libs" \
		timeout 600 "$1" >"$dir/log" 2>&1
}

loads=no
if FI_PROVIDER_PATH=$PWD/.libs fi_info -p "tcp;ofi_mrrc" >/dev/null 2>&1; then
	loads=yes
else
	echo "note: without the provider: the examples do not run"
fi

for page in "$top"/man/*.3.md; do
	while read -r file; do
		found=$((found + 1))
		name=${page##*/}
		compile "${CC:-cc}" "$file" "$dir/program" -std=c99 -pedantic || {
			fail "$name: an example does not compile"
			continue
		}
		absent "$dir/program" || {
			fail "$name: an example without the provider:"
			cat "$dir/log"
		}
		[ $loads = no ] || runs "$dir/program" || {
			fail "$name: an example does not run:"
			cat "$dir/log"
		}
	done < <(examples "$page" "$dir/$(basename "$page" .md)")
done
[ $found -gt 0 ] || fail "no example found"

if command -v "${CXX:-g++}" >/dev/null; then
	echo '#include <rdma/fi_ext_mrrc.h>' >"$dir/header.cc"
	echo 'int main() { return 0; }' >>"$dir/header.cc"
	for std in c++11 c++14 c++17 c++20; do
		compile "${CXX:-g++}" "$dir/header.cc" "$dir/program" \
			-std=$std -pedantic -Wextra -Wshadow ||
			fail "the header does not compile as $std"
	done
fi

[ $failed = 0 ] && echo "PASS: $found examples"
exit $failed
