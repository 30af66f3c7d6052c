#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# check_pages.sh: every public function, and the provider, has a manual page of
# its name, and whatis(1) finds each page under all its names, which lexgrog(1)
# reads from it; options keep their signs. Part of make check; skipped where the pages are not rendered.

set -u
export LC_ALL=C

top=${srcdir:-$(dirname -- "$0")/..}
failed=0 found=0

fail()
{
	echo "FAIL: $*"
	failed=1
}

# page NAME SECTION: its file, built here or released
page()
{
	local dir

	for dir in . "$top"; do
		[ -f "$dir/man/man$2/$1.$2" ] || continue
		echo "$dir/man/man$2/$1.$2"
		return
	done
	return 1
}

# target FILE: what it is another name of, or the file
target()
{
	local to

	to=$(sed -n '1s/^\.so man\([1-8]\)\/\(.*\)\.[1-8]$/\2 \1/p' "$1")
	# shellcheck disable=SC2086 # two words
	if [ -n "$to" ]; then page $to; else echo "$1"; fi
}

# names FILE: those that lexgrog reads
names()
{
	lexgrog "$1" | sed -n 's/^[^"]*"\([^ ]*\) - .*/\1/p'
}

# has NAME SECTION
has()
{
	local file real

	file=$(page "$1" "$2") || { fail "no page $1($2)"; return; }
	real=$(target "$file") || { fail "$1($2) leads nowhere"; return; }
	found=$((found + 1))
	[ -z "$lexgrog" ] || names "$real" | grep -qx "$1" ||
		fail "$1($2): whatis does not find it: $(lexgrog "$real" 2>&1)"
}

page fi_mrrc 7 >/dev/null || {
	echo "SKIP: the pages are not rendered"
	exit 77
}
lexgrog=$(command -v lexgrog) || echo "note: without lexgrog (man-db)"
# the short name, if there is one
mapfile -t functions < <(awk '
	/^(static inline |fi_mrrc_mr_)/ && match($0, /fi_[a-z_]+\(/) {
		name[++names] = substr($0, RSTART, RLENGTH - 1)
	}
	$1 == "#define" { short[$3] = $2 }
	END { for (i = 1; i <= names; i++)
		print name[i] in short ? short[name[i]] : name[i] }' \
	"$top/include/rdma/fi_ext_mrrc.h")
[ ${#functions[@]} -gt 20 ] || fail "only ${#functions[@]} functions"
for function in "${functions[@]}"; do
	has "$function" 3
done
has ofi_mrrc 7
for file in "$top"/man/*.md; do
	name=${file##*/}
	name=${name%.md}
	has "${name%.*}" "${name##*.}"
	rendered=$(page "${name%.*}" "${name##*.}")
	# an option's two signs must not become one dash
	! grep -nE '\\\[e[mn]\]|\\\(e[mn]|–|—' "$rendered" ||
		fail "$name has a dash in place of --"
	! grep -nE '^:|f\[R\] : ' "$rendered" ||
		fail "$name: a definition on the line of its term"
	# no name without a page
	while read -r other; do
		page "$other" 3 >/dev/null || page "$other" 7 >/dev/null ||
			page "$other" 1 >/dev/null ||
			fail "$name names $other, which has no page"
	done < <([ -z "$lexgrog" ] || names "$rendered")
done

[ $failed = 0 ] && echo "PASS: $found names"
exit $failed
