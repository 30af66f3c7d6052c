#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_code.sh: fi_mrrc_stat --code, on files and on a process. Part of make
# check.

set -u
export LC_ALL=C

STAT=$(realpath "${STAT:-util/fi_mrrc_stat}")
PROVIDER=${PROVIDER:-.libs/libmrrc-fi.so}
RAW=${RAW:-prov/mrrc/test/.libs/raw_site.so}
BRK=${BRK:-prov/mrrc/test/.libs/raw_brk.so}
DIR=$(mktemp -d "${TMPDIR:-/tmp}/test_code.XXXXXX") || exit 1
trap 'rm -rf "$DIR"; [ -z "$SLEEPS" ] || kill "$SLEEPS"' EXIT
SLEEPS=
failed=0

# says STATUS TEXT ARGUMENT...: on standard output or the other
says()
{
	local want=$1 text=$2 rc

	shift 2
	"$STAT" --code "$@" >"$DIR/out" 2>&1 </dev/null
	rc=$?
	[ $rc -eq "$want" ] && grep -q -e "$text" "$DIR/out" && return
	echo "FAIL: $*: status $rc, not $want, or not \"$text\""
	sed 's/^/  | /' "$DIR/out" | head -n 12
	failed=1
}

says 2 "which file or PID"
says 1 "/nonexistent: No such file" /nonexistent
says 1 "not a file of 64-bit code" "$0"
says 1 "999999999: there is no such process" 999999999
says 1 "4294967297: there is no such process" 4294967297

if ! "$STAT" --code /bin/sleep >"$DIR/out" 2>&1; then
	echo "SKIP: the code of this machine's libc is not known:" \
		"$(head -n 1 "$DIR/out")"
	exit $failed
fi
says 0 "^[3-9] files, .*: lookups make no system call" /bin/sleep
# a file of this folder, not of the loader's
cp /bin/sleep "$DIR/own_sleep"
(cd "$DIR" && says 0 "lookups make no system call" own_sleep
	exit $failed) || failed=1
sleep 1000 &
SLEEPS=$!
# it has loaded what it is made of
until grep -qx sleep "/proc/$SLEEPS/comm" &&
	grep -q '^State:.S' "/proc/$SLEEPS/status"; do
	sleep 0.1
done
says 0 "lookups make no system call" "$SLEEPS"
# the provider's own call is known
if [ -e "$PROVIDER" ] && "$STAT" --code "$PROVIDER" 2>&1 |
	grep "^${PROVIDER##*/}"; then
	echo "FAIL: the provider would have lookups ask"
	failed=1
fi
if [ -e "$RAW" ]; then
	says 1 "^raw_site.so+0x[0-9a-f]*: system call [0-9]* is not hooked" \
		"$RAW"
	once=$(grep -c ^raw_site "$DIR/out")
	says 1 "lookups ask the kernel" /bin/sleep "$RAW" "$RAW"
	[ "$(grep -c ^raw_site "$DIR/out")" -eq "$once" ] || {
		echo "FAIL: a file is looked at more than once"
		failed=1
	}
	# a name that clears the terminal
	cp "$RAW" "$DIR/"$'\033[2J.so'
	LD_PRELOAD=$DIR/$'\033[2J.so' sleep 1000 &
	CLEARS=$!
	until grep -qx sleep "/proc/$CLEARS/comm" &&
		grep -q '^State:.S' "/proc/$CLEARS/status"; do
		sleep 0.1
	done
	if grep -q '2J.so' "/proc/$CLEARS/maps"; then
		says 1 '^?\[2J.so+0x[0-9a-f]*: ' "$CLEARS"
	else
		echo "SKIP: sleep loads no $RAW"
	fi
	kill "$CLEARS"
fi
# UCX's library may, by its name
if [ -e "$BRK" ] && [ "$(uname -m)" = x86_64 ]; then
	says 1 "system call 12 is not hooked" "$BRK"
	cp "$BRK" "$DIR/libucm.so.0"
	grep -q 'lib[a-z]*san\.so' "$BRK" ||
		says 0 "lookups make no system call" "$DIR/libucm.so.0"
fi
[ $failed -ne 0 ] || echo "PASS: fi_mrrc_stat --code"
exit $failed
