#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_guest.sh: checks guest.sh itself, with about eight boots of a guest.

set -u

GUEST=$(dirname "$(realpath "$0")")/guest.sh
WORK=$(mktemp -d "${TMPDIR:-/tmp}/test_guest.XXXXXX") || exit 1
trap 'rm -rf "$WORK"' EXIT
# where guest.sh keeps its temporary files: other guests use another folder
export TMPDIR=$WORK/tmp
mkdir "$TMPDIR"
passed=0
failed=0

check()
{
	local name=$1

	shift
	if "$@"; then
		echo "ok: $name"
		passed=$((passed + 1))
	else
		echo "FAILED: $name"
		failed=$((failed + 1))
		sed 's/^/  | /' "$WORK/err"
	fi
}

# Runs a guest; leaves rc, and the output in $WORK/out and $WORK/err.
guest()
{
	"$GUEST" "$@" >"$WORK/out" 2>"$WORK/err"
	rc=$?
}

qemu_pid()
{
	sed -n 's/.*up after .*(process \([0-9]*\)).*/\1/p' "$WORK/err"
}

qemu_gone()
{
	[ -n "$1" ] && ! grep -q '^State:	[^Z]' "/proc/$1/status" 2>/dev/null
}

nothing_left()
{
	[ -z "$(ls -A "$TMPDIR")" ]
}

# A server and a client in one guest; the client retries until it is there.
# shellcheck disable=SC2016 # for the guest's shell
readonly PINGPONG='
	fi_pingpong -p verbs -e msg -I 50 -S 4096 -c &
	for i in 1 2 3 4 5 6 7 8 9 10; do
		sleep 1
		fi_pingpong -p verbs -e msg -I 50 -S 4096 -c 10.0.0.1 &&
			wait $! && exit 42
	done
	exit 1'

# ---- without a guest

guest
check "no command is refused" [ $rc -eq 2 ]
guest -t 0 -- true
check "a wrong limit is refused" [ $rc -eq 2 ]
guest -k sid true
check "an unknown kernel is refused" [ $rc -eq 2 ]
guest --arch vax true
check "an unknown processor is refused" [ $rc -eq 2 ]
OFI_MRRC_CACHE=$WORK/nothing guest -- true
check "an empty cache gives 125" [ $rc -eq 125 ]
check "an empty cache: --setup is named" grep -q -e '--setup$' "$WORK/err"

# ---- arguments, output, environment, files; twice in a row

# shellcheck disable=SC1003,SC2016 # meant as they are
args=('a b' '' "it's" '"q"' $'new\nline' '$HOME `x` \' '*' -t -- 'caffè')
mkdir "$WORK/rw dir,1"
# shellcheck disable=SC2016 # for the guest's shell
script='printf "%s\0" "$@"; echo "to err" >&2; echo again >/dev/stderr
	printf "%s" "$V" >"$RW/v"; echo lost >"$LOST"; pwd >"$RW/cwd"
	head -c 3000000 "$BIG"; exit 0'
head -c 3000000 /dev/urandom >"$WORK/big"
{
	printf '%s\0' "${args[@]}"
	cat "$WORK/big"
} >"$WORK/want"
for run in first second; do
	guest -t 120 -w "$WORK/rw dir,1" -e "RW=$WORK/rw dir,1" \
		-e "V=x 'y' \"z\"" -e "LOST=$WORK/lost" -e "BIG=$WORK/big" \
		-C "$WORK" -- bash -c "$script" bash "${args[@]}"
	check "$run run: exit status 0" [ $rc -eq 0 ]
	check "$run run: arguments and output are exact" \
		cmp "$WORK/want" "$WORK/out"
	check "$run run: no temporary files left" nothing_left
done
check "standard error arrives" \
	[ "$(grep -v '^guest: ' "$WORK/err")" = $'to err\nagain' ]
check "-e and -w" [ "$(cat "$WORK/rw dir,1/v")" = "x 'y' \"z\"" ]
check "-C" [ "$(cat "$WORK/rw dir,1/cwd")" = "$WORK" ]
check "other files are thrown away" [ ! -e "$WORK/lost" ]

# ---- verbs

guest -t 120 -- bash -c 'ibv_devinfo -d rxe0; fi_info -p verbs -t FI_EP_MSG
	'"$PINGPONG"
check "exit status 42 after a ping-pong over verbs" [ $rc -eq 42 ]
check "rxe0 is active" grep -q PORT_ACTIVE "$WORK/out"
check "fi_info: verbs, FI_EP_MSG" grep -q 'type: FI_EP_MSG' "$WORK/out"
check "ping-pong figures" grep -q '^4k ' "$WORK/out"

# ---- another kernel, and a disk

"$GUEST" -k trixie --setup >"$WORK/err" 2>&1
# shellcheck disable=SC2016 # for the guest's shell
guest -k trixie -d 64M -l nfsd -l rpcrdma -t 120 -- sh -c '
	uname -r; stat -f -c %T "$TMPDIR"; cut -d" " -f1 /proc/modules
	head -c 20000000 /dev/urandom >"$TMPDIR/file" &&
		ibv_devinfo -d rxe0 | grep PORT_ACTIVE'
check "-k trixie: Linux 6.12" grep -q '^6\.12\.' "$WORK/out"
check "-k trixie: rxe0 is active" [ $rc -eq 0 ]
check "-l: both are loaded" [ "$(grep -cxE 'nfsd|rpcrdma' "$WORK/out")" -eq 2 ]
check "-d: TMPDIR is on ext4" grep -qx 'ext2/ext3' "$WORK/out"

# ---- another processor

"$GUEST" --arch arm64 --setup >"$WORK/err" 2>&1
# shellcheck disable=SC2016 # for the guest's shell
guest --arch arm64 -w "$WORK/rw dir,1" -C / -t 120 -- sh -c '
	uname -m; touch "$0/arm" "$1"; ibv_devinfo -d rxe0 | grep PORT_ACTIVE' \
	"$WORK/rw dir,1" "$GUEST"
check "--arch arm64: rxe0 is active" [ $rc -eq 0 ]
check "--arch arm64: aarch64" grep -qx aarch64 "$WORK/out"
check "--arch arm64: the sources cannot be written to" \
	grep -q 'touch.*guest\.sh' "$WORK/err"
check "--arch arm64: -w" [ -e "$WORK/rw dir,1/arm" ]

# ---- a clock of instructions

# shellcheck disable=SC2016 # for the guest's shell
guest -i -t 100 -- bash -c 'for k in {1..9}; do
		from=${EPOCHREALTIME/./}
		for ((i = 0; i < 10000; i++)); do :; done
		echo $((${EPOCHREALTIME/./} - from))
	done'
# shellcheck disable=SC2016 # awk's
check "-i: what is repeated takes as long, whatever else runs" \
	awk '{ t[NR] = $1 } END { exit !(NR == 9 && t[8] > 1000 &&
		t[9] > .97 * t[8] && t[9] < 1.03 * t[8]) }' "$WORK/out"

# ---- time limit

guest -t 3 -- bash -c 'echo early; sleep 100; echo late'
pid=$(qemu_pid)
check "the limit gives 124" [ $rc -eq 124 ]
check "the limit: what was written before arrives" \
	[ "$(cat "$WORK/out")" = early ]
check "the limit: no qemu left" qemu_gone "$pid"
check "the limit: no temporary files left" nothing_left

# ---- a second guest at the same time, and SIGTERM

: >"$WORK/first"
"$GUEST" -- sh -c 'echo up; sleep 100' >"$WORK/first" 2>"$WORK/err" &
first=$!
for ((i = 0; i < 3000; i++)); do
	grep -q up "$WORK/first" && break
	kill -0 $first 2>/dev/null || break
	sleep 0.1
done
pid=$(qemu_pid)
"$GUEST" -n -- true 2>"$WORK/refused"
rc=$?
check "-n refuses beside another guest" [ $rc -eq 125 ]
check "-n names the other" grep -q "process $first)" "$WORK/refused"
kill -TERM $first
wait $first
rc=$?
check "SIGTERM gives 143" [ $rc -eq 143 ]
check "SIGTERM: no qemu left" qemu_gone "$pid"
check "SIGTERM: no temporary files left" nothing_left

# ---- a command that fails plainly

guest -- false
check "exit status 1" [ $rc -eq 1 ]

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
