#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_trixie.sh: tests of trixie.sh.  The last line is "N passed, N failed".

set -u
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
trixie=$here/trixie.sh
top=${here%/*/*}
passed=0 failed=0

work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# expect WHAT COMMAND...: COMMAND must succeed.
expect()
{
	local what=$1

	shift
	if "$@"; then
		echo "ok: $what"
		passed=$((passed + 1))
	else
		echo "FAIL: $what"
		failed=$((failed + 1))
	fi
}

# True if a process has this argument.
running()
{
	grep -qsxz "$1" /proc/[0-9]*/cmdline
}

gone()
{
	local i

	for ((i = 0; i < 600; i++)); do
		running "$1" || return 0
		sleep 0.1
	done
	return 1
}

# The folder and its first process end with trixie.sh, however that ends.
ends_with()
{
	local signal=$1 seconds=4321$$ pid i

	"$trixie" sh -c "sleep $seconds & sleep $seconds" &
	pid=$!
	for ((i = 0; i < 600; i++)); do
		running $seconds && break
		sleep 0.1
	done
	running $seconds || return 1
	kill "-$signal" $pid
	wait $pid 2>/dev/null
	gone $seconds
}

status()
{
	local want=$1 rc

	shift
	"$trixie" "$@" >/dev/null 2>&1
	rc=$?
	[ $rc -eq "$want" ] || echo "status $rc"
	[ $rc -eq "$want" ]
}

# shellcheck disable=SC2016 # for the folder's shell
main()
{
	expect "it is Debian 13" "$trixie" \
		grep -q '^VERSION_ID="13"' /etc/os-release
	expect "its libfabric is a 2.x" sh -c \
		"'$trixie' fi_info --version | grep -q '^libfabric: 2'"
	expect "a command's status" status 7 sh -c 'exit 7'
	expect "no command" status 2
	expect "an unknown option" status 2 --nonsense
	expect "the tree can be read" status 0 test -f "$top/configure.ac"
	expect "the tree cannot be written to" status 1 \
		touch "$top/configure.ac"
	expect "nothing else is there" status 1 test -e "$work"
	expect "a folder to read" status 0 -r "$work" test -d "$work"
	expect "a folder to write to" status 0 -w "$work" touch "$work/file"
	expect "the file is here" test -O "$work/file"
	expect "a folder with spaces" status 3 -w "$work" -C "$work" \
		-e 'VAR=a  b' sh -c '[ "$VAR" = "a  b" ] && exit 3'
	expect "SIGTERM ends what runs there" ends_with TERM
	expect "SIGKILL ends what runs there" ends_with KILL
	expect "nothing stays mounted" sh -c '! grep -q /trixie/ /proc/mounts'
	echo "$passed passed, $failed failed"
	[ $failed -eq 0 ]
}

main
