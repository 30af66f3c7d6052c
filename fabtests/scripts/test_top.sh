#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_top.sh: what fi_mrrc_stat shows of all processes on a terminal, and what
# its keys do.  Ends with "N passed, N failed".

HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=fabtests/scripts/testlib.sh
. "$HERE/testlib.sh"

usage()
{
	cat <<-EOT
	Usage: $ME [-b BINDIR] [PROVIDER]

	Looks at processes over PROVIDER (default: tcp;ofi_mrrc) on terminals of
	several sizes. BINDIR: where the programs are (default: PATH).
	EOT
}

# Starts $RANKS processes, of which the nth has 10 n lookups in each domain, and
# runs a command while they wait.
# shellcheck disable=SC2016 # run in another process
readonly AMONG='
mkfifo "$DIR/ranks"
for ((i = 1; i <= RANKS; i++)); do
	"${BIN}fi_mrrc_live" -p "$PROVIDER" -w -I ${i}0 $LIVE <"$DIR/ranks" \
		>"$DIR/rank.$i" 2>&1 &
done
[ "$RANKS" = 0 ] || exec 8>"$DIR/ranks"
for ((i = 1; i <= RANKS; i++)); do
	until grep -qs "^ready" "$DIR/rank.$i"; do
		kill -0 %$i || { cat "$DIR/rank.$i"; exit 1; }
		sleep 0.1
	done
done
"$@"
rc=$?
exec 8>&-
wait
exit $rc'

# among RANKS COMMAND...: in a name space without other processes
among()
{
	local space=(unshare --pid --fork --mount-proc --kill-child)

	[ "$(id -u)" -eq 0 ] || space+=(--user --map-root-user)
	if ! command -v python3 >/dev/null || ! "${space[@]}" true; then
		echo "  not tried: needs python3, and a name space of processes"
		return 0
	fi
	rm -f "$DIR"/rank{s,.*} # "ready" of an earlier call
	RANKS=$1 BIN=$BIN DIR=$DIR PROVIDER=$PROVIDER LIVE=${LIVE-} \
		"${space[@]}" bash -c "$AMONG" among "${@:2}"
}

# top RANKS STEP...: fi_mrrc_stat on a terminal, of 24 x 80 if not told
top()
{
	local options

	read -ra options <<<"${TOP-}"
	among "$1" "$HERE/terminal.py" "${@:2}" -- \
		"${BIN}fi_mrrc_stat" -i 0.1 "${options[@]}"
}

# Eight ranks with two domains each fit, and are sorted as asked for.
test_order()
{
	top 8 'see:^16 domains of 8 processes, sorted by misses$' \
		'see:\A(.*\n){4}( +\d+ fi_mrrc_li +0 .*\n){16}' \
		'press:<' 'see:by hits$' \
		'see:\A(.*\n){4}(.* 98.8 .*\n){2}(.*\n){12}(.* 90.0 .*\n){2}' \
		'press:r' 'see:by hits, reversed$' \
		'see:\A(.*\n){4}(.* 90.0 .*\n){2}(.*\n){12}(.* 98.8 .*\n){2}' \
		'press:\x1b[C>' 'see:by evicted, reversed$' \
		'press:r<<<<<\x1bOD' 'see:by saved$' 'press:>' 'see:by pid$' \
		'see:^q quit.*\Z' press:q end:0
}

# Where there is no place for all, the selected one is visible; its table.
test_select()
{
	TOP='-s pid' top 8 -s 9x50 'see:\A(.*\n){4}.* 90.0 (.*\n){4}q quit.*\Z' \
		"press:$(printf 'j%.0s' {1..20})k\x1b[B" \
		'see: 98.8 .*\n.* 98.8 .*\nq quit' \
		'press:\r' 'see:^lookups +80 ' 'press:kkkkkk' \
		'see:^lookups +50 ' 'press:\x1b' 'see:by pid$' \
		size:24x80 'see:(.* fi_mrrc_li .*\n){16}' \
		size:2x20 'see:\A16 domains of 8 proc\nq quit' press:q end:0
}

# Yellow if the cache lacks something, but not where colours are not wanted.
test_colours()
{
	LIVE=-d top 1 see:fi_mrrc_li press:q end:0 'some:\x1b\[33m' &&
		LIVE=-d top 1 -n 'see:fi_mrrc_li' press:q end:0 \
			'never:\x1b\[3[0-9]' &&
		top 1 see:fi_mrrc_li press:q end:0 'never:\x1b\[3[0-9]'
}

# However it ends, the terminal is as before.
test_signals()
{
	local signal

	for signal in TERM:15 HUP:1; do
		top 1 see:fi_mrrc_li "signal:${signal%:*}" "end:-${signal#*:}" ||
			return 1
	done
	top 1 see:fi_mrrc_li 'press:\x03' end:-2 &&
		top 1 see:fi_mrrc_li 'press:\x1a' stops: size:24x60 signal:CONT \
			see:fi_mrrc_li press:q end:0
}

# fi_mrrc_stat ends when the last process does, and after -n samples.
test_end()
{
	TOP='-n 2' top 1 see:fi_mrrc_li end:0 &&
		top 0 end:1 'some:no domain of ofi_mrrc is open in any process' \
			'never:\x1b'
}

# --wait has a screen before there is a domain.
test_wait()
{
	TOP=--wait top 0 'see:^no domain is open now$' press:q end:0
}

# No sequences where the output is no terminal, or one that knows none.
test_plain()
{
	among 1 "$HERE/terminal.py" end:0 'never:\x1b' \
		-- sh -c "'${BIN}fi_mrrc_stat' -i 0.1 -n 2 | cat" &&
		among 1 "$HERE/terminal.py" end:0 'never:\x1b' \
			-- env TERM=dumb "${BIN}fi_mrrc_stat" -i 0.1 -n 2 &&
		among 1 "$HERE/terminal.py" end:0 'never:\x1b' \
			-- "${BIN}fi_mrrc_stat" --once
}

test_options "$@"
run_tests order select colours signals end wait plain
