# shellcheck shell=bash disable=SC2034 # the tests look at failed
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What the tests of a tool's command line share: util/*/test/test_cli.sh.
# Sourced, with TOOL set to the program.  Sets DIR, a folder that ends with the
# script; out and err in it are what the program printed last.

set -u
export LC_ALL=C

DIR=$(mktemp -d "${TMPDIR:-/tmp}/test_cli.XXXXXX") || exit 1
trap 'rm -rf "$DIR"' EXIT
failed=0

fail()
{
	echo "FAIL: $*"
	sed 's/^/  | /' "$DIR/out" "$DIR/err" | head -n 12
	failed=1
}

# run STATUS ARGUMENT...
run()
{
	local want=$1 rc

	shift
	"$TOOL" "$@" >"$DIR/out" 2>"$DIR/err" </dev/null
	rc=$?
	[ $rc -eq "$want" ] || fail "$*: status $rc, not $want"
}

# refuses STATUS TEXT ARGUMENT...: says so, and nothing on standard output
refuses()
{
	local want=$1 text=$2

	shift 2
	run "$want" "$@"
	grep -qF -- "$text" "$DIR/err" || fail "$*: does not say '$text'"
	[ ! -s "$DIR/out" ] || fail "$*: prints a result"
}

# says TEXT ARGUMENT...
says()
{
	local text=$1

	shift
	run 0 "$@"
	grep -qE -- "$text" "$DIR/out" || fail "$*: does not print '$text'"
}
