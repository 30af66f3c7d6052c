#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# units.sh PROGRAM[:SUITE,...]...: runs unit tests where make check does not
# reach, as in the virtual machine: all suites of the program, or these. Ends with
# "N passed, N failed".

set -u
passed=0 failed=0
log=$(mktemp "${TMPDIR:-/tmp}/units.XXXXXX") || exit 2
trap 'rm -f "$log"' EXIT

# count PROGRAM STATUS: what is in the log
count()
{
	local program=$1 rc=$2 sum checks failures errors bad

	cat "$log"
	sum=$(sed -nE 's/.*Checks: ([0-9]+), Failures: ([0-9]+), Errors: ([0-9]+).*/\1 \2 \3/p' "$log")
	read -r checks failures errors <<<"${sum:-1 1 0}"
	# a suite that there is not counts as failed
	[ "$rc" -eq 0 ] && [ "$checks" -gt 0 ] ||
		[ $((failures + errors)) -gt 0 ] || checks=1 failures=1
	bad=$((failures + errors))
	# as MRRC_TEST names a test
	sed -nE 's/.*\.c:[0-9]+:[EF]:[^:]*:([^:]*):/FAIL \1: '"${program##*/}"':/p' "$log"
	[ "$rc" -eq 0 ] || [ -n "$sum" ] || echo "FAIL: ${program##*/}: status $rc"
	passed=$((passed + checks - bad)) failed=$((failed + bad))
}

for program in "$@"; do
	suites=${program#*:}
	[ "$suites" != "$program" ] || suites=
	program=${program%%:*}
	# one empty word: all of them
	IFS=, read -r -a list <<<"$suites,"
	for suite in "${list[@]}"; do
		env ${suite:+"CK_RUN_SUITE=$suite"} "$program" >"$log" 2>&1
		count "$program" $?
	done
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
