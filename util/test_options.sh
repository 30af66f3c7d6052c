#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_options.sh: an option letter and a long name mean the same in all tools,
# and each option that --help lists is in the manual page. Part of make check.

set -u
export LC_ALL=C ARGP_HELP_FMT=

top=${srcdir:-$(dirname -- "$0")/..}
dir=$(mktemp -d "${TMPDIR:-/tmp}/test_options.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0

fail()
{
	echo "FAIL: $*"
	failed=1
}

# options TOOL: a line for each: letter or "-", name or "-", argument or "-"
options()
{
	awk '/^  +-/ {
		letter = name = arg = "-"
		line = $0
		sub(/^ +/, "", line)
		sub(/  .*/, "", line)
		n = split(line, part, /, */)
		for (i = 1; i <= n; i++) {
			if (part[i] ~ /^--/) {
				name = substr(part[i], 3)
				if (match(name, /\[?=/)) {
					arg = substr(name, RSTART)
					name = substr(name, 1, RSTART - 1)
					gsub(/[][=]/, "", arg)
				}
			} else {
				letter = substr(part[i], 2, 1)
			}
		}
		print letter, name, arg
	}' "$dir/$1.help"
}

for tool in get prof serve sim stat trace; do
	program=util/fi_mrrc_$tool
	"$program" --help >"$dir/$tool.help" || fail "$tool --help: status $?"
	"$program" -h | cmp -s - "$dir/$tool.help" || fail "$tool: -h is not --help"
	"$program" -V | grep -q '^ofi_mrrc [0-9]' || fail "$tool: -V"
	options $tool >"$dir/$tool"
	[ "$(wc -l <"$dir/$tool")" -ge 10 ] || fail "$tool: options are not found"
	while read -r letter name arg; do
		echo "$tool $letter $name $arg" >>"$dir/all"
		[ "$letter" = - ] ||
			grep -qE "\*-[$letter](\*|,)" "$top/man/fi_mrrc_$tool.1.md" ||
			fail "$tool: -$letter is not in its manual page"
		[ "$name" = - ] ||
			grep -qE -- "-$name(\*|=|\$)" \
				"$top/man/fi_mrrc_$tool.1.md" ||
			fail "$tool: --$name is not in its manual page"
	done <"$dir/$tool"
done

# the first to have a letter or a name determines the rest
awk '
	function same(what, key, value) {
		if (!(what SUBSEP key in first)) {
			first[what, key] = value
			tool[what, key] = $1
		} else if (first[what, key] != value) {
			printf "FAIL: %s of %s is %s, of %s %s\n", key, $1, \
				value, tool[what, key], first[what, key]
			bad = 1
		}
	}
	$2 != "-" { same("letter", "-" $2, $3) }
	$3 != "-" { same("name", "--" $3, $2 " " $4) }
	$3 == "format" { format[$1] = 1 }
	$3 == "json" { json[$1] = 1 }
	END {
		for (one in format)
			if (!json[one]) {
				print "FAIL: " one ": --format, and no --json"
				bad = 1
			}
		exit bad
	}' "$dir/all" || failed=1

for tool in get prof sim stat trace; do
	"util/fi_mrrc_$tool" -f xml >"$dir/out" 2>"$dir/err"
	[ $? -eq 2 ] || fail "$tool -f xml: not refused"
	grep -q "text.* json" "$dir/err" || fail "$tool -f xml: $(cat "$dir/err")"
done

# what was accepted before still is
for old in 'stat -j -l' 'sim -f table -l' 'trace -f table -l' 'prof -f table -p tcp --list'; do
	# shellcheck disable=SC2086 # words
	set -- $old
	"util/fi_mrrc_$1" "${@:2}" >/dev/null 2>"$dir/err" ||
		fail "fi_mrrc_$old: $(cat "$dir/err")"
done

[ $failed -eq 0 ] && echo "PASS: $(wc -l <"$dir/all") options"
exit $failed
