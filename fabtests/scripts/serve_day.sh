#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# serve_day.sh: a day in the life of fi_mrrc_serve.  It is started and ended, and
# started again, while clients of three hosts come and go: one host's connect and
# say nothing, another's request without end, and the third's fetch files.  These
# get theirs, whole; and whenever all have gone, the server has its places and
# descriptors back, and not more memory than before.
#
# Flow: a network namespace for the server, with three for the hosts -> for each
# life of the server: rounds of all clients at once, with a sample after each ->
# an end in the middle of the last round.  Ends with "N passed, N failed".

# shellcheck source=fabtests/scripts/testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"

LIVES=2
PLACES=64
# Clients that say nothing, that request without end, and that fetch files.
# The server gives one host at most four fifths of the free places: of 8, 6.
SILENT=32
GREEDY=24
HONEST=8
ADDRESS=10.77.0.1
PORT=7473
LENGTH=60
# Rounds of a life at least. In the first two the heap gets its size.
ROUNDS=3
# KiB by which memory without clients may grow from then on, of some 36 MB: all of a
# round had 4480 and more, as a client has 80, and calls come and go.
GROWTH=16384

usage()
{
	cat <<-EOT
	Usage: $ME [-b BINDIR] [-s SECONDS] [PROVIDER]

	Runs fi_mrrc_serve over PROVIDER (default: tcp;ofi_mrrc) for SECONDS
	(default: $LENGTH) or a little more; an hour is 3600. BINDIR: where the
	programs are (default: PATH). Makes network namespaces; where that is
	not allowed it is skipped.
	EOT
}

# ---- hosts -------------------------------------------------------------------

HOSTS=() LOOPS=() FETCHES=() SERVER=''

# host N: a namespace with a link to the server's, as long as its process lives
host()
{
	local pid ns=10.77.$1

	unshare -n sleep infinity &
	pid=$!
	HOSTS[$1]=$pid
	until_so apart $pid &&
		ip link add "day$1" type veth peer name eth0 netns $pid &&
		ip addr add "$ns.1/24" dev "day$1" &&
		ip link set "day$1" up || return 1
	at "$1" ip link set lo up &&
		at "$1" ip addr add "$ns.2/24" dev eth0 &&
		at "$1" ip link set eth0 up &&
		at "$1" ip route add "$ADDRESS/32" via "$ns.1"
}

apart()
{
	[ "$(readlink /proc/self/ns/net)" != "$(readlink "/proc/$1/ns/net")" ]
}

# at N COMMAND...: on this host
at()
{
	local pid=${HOSTS[$1]}

	shift
	nsenter -t "$pid" -n "$@"
}

# ---- clients: each until the round is over -----------------------------------

# again N COMMAND...: on host N, one after the other. A signal ends the one that
# runs: at once, as libinfinipath, which libfabric may load, has a handler of
# SIGTERM that calls exit(3) and may wait there for what was interrupted.
again()
{
	local host=$1 pid=''

	shift
	trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null' TERM
	while [ -e "$DIR/round" ]; do
		nsenter -t "${HOSTS[$host]}" -n "$@" </dev/null >/dev/null 2>&1 &
		pid=$!
		wait "$pid"
		pid=''
		sleep 0.2
	done
}

# fetch N: files, again and again; DIR/fetched has a line for each call that was
# served, and DIR/wrong one for each that should have been.
fetch()
{
	local dst=$DIR/dst.$1 before rc

	while [ -e "$DIR/round" ]; do
		before=$(cat "$DIR/life")
		rm -rf "$dst"
		mkdir "$dst"
		at 3 "${BIN}fi_mrrc_get" -q -C "$dst" "$ADDRESS:" \
			>"$dst.err" 2>&1
		rc=$?
		if [ $rc -eq 0 ] && diff -r "$DIR/src" "$dst" >>"$DIR/wrong"; then
			echo "$1" >>"$DIR/fetched"
		elif grep -q 'has enough clients of this host' "$dst.err"; then
			echo "$1" >>"$DIR/refused"
			sleep 0.2
		elif [ -e "$DIR/round" ] && [ ! -e "$DIR/ending" ] &&
		     [ "$before" = "$(cat "$DIR/life")" ]; then
			echo "client $1: status $rc: $(cat "$dst.err")" \
				>>"$DIR/wrong"
		fi
	done
}

begin_round()
{
	local i

	: >"$DIR/round"
	LOOPS=() FETCHES=()
	for ((i = 0; i < SILENT; i++)); do
		SERVE_ADDRESS=$ADDRESS again 1 "${BIN}fi_mrrc_serve_hostile" \
			"$PORT" silent 2>/dev/null &
		LOOPS+=($!)
	done
	SERVE_ADDRESS=$ADDRESS again 2 "${BIN}fi_mrrc_serve_crowd" "$PORT" \
		"$GREEDY" 0 2>/dev/null &
	LOOPS+=($!)
	for ((i = 0; i < HONEST; i++)); do
		fetch "$i" &
		FETCHES+=($!)
	done
}

# Honest clients end by themselves, others are ended.
end_round()
{
	rm -f "$DIR/round"
	until_so gone || { ps f >&2; fail "clients do not end"; return 1; }
	wait "${LOOPS[@]}" "${FETCHES[@]}"
	LOOPS=() FETCHES=()
	: # how they fared is in DIR/wrong
}

gone()
{
	local pid

	[ ${#LOOPS[@]} -eq 0 ] || kill "${LOOPS[@]}" 2>/dev/null
	for pid in "${LOOPS[@]}" "${FETCHES[@]}"; do
		! kill -0 "$pid" 2>/dev/null || return 1
	done
}

# ---- the server --------------------------------------------------------------

began()
{
	grep -qs ': serving ' "$DIR/serve.out" || ! kill -0 "$SERVER" 2>/dev/null
}

# glibc keeps freed memory: the server's heap had 38 MB, of which 0.9 MB were in use.
# With these settings glibc returns most of it, so resident memory shows a leak.
begin_life()
{
	kill_server
	rm -f "$DIR/serve.out" "$DIR/ending"
	env MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=16384 \
		MALLOC_TRIM_THRESHOLD_=0 "${BIN}fi_mrrc_serve" --root \
		-a "$ADDRESS" -p "$PORT" -n "$PLACES" "$DIR/src" \
		>"$DIR/serve.out" 2>"$DIR/serve.err" &
	SERVER=$!
	until_so began && kill -0 "$SERVER" 2>/dev/null && return 0
	cat "$DIR/serve.err"
	fail "the server does not begin"
}

kill_server()
{
	[ -n "$SERVER" ] || return 0
	kill -9 "$SERVER" 2>/dev/null
	wait "$SERVER" 2>/dev/null
}

end_life()
{
	local rc

	: >"$DIR/ending" # who calls from now on is refused
	echo "$(($(cat "$DIR/life") + 1))" >"$DIR/life"
	kill -TERM "$SERVER"
	wait "$SERVER"
	rc=$?
	SERVER=
	[ $rc -eq 0 ] || { cat "$DIR/serve.err"; fail "the server: status $rc"; }
}

# reported: the last number of clients that it says it has
reported()
{
	kill -USR1 "$SERVER"
	sed -n 's/.*: \([0-9]*\) of [0-9]* clients, .*/\1/p' "$DIR/serve.out" |
		tail -n 1
}

crowded()
{
	local count

	count=$(reported)
	[ "${count:-0}" -gt $((SILENT + GREEDY)) ]
}

empty()
{
	kill -USR1 "$SERVER"
	tail -n 1 "$DIR/serve.out" | grep -q ': 0 of [0-9]* clients, 0 KiB'
}

lines()
{
	local count=0

	[ ! -e "$1" ] || count=$(wc -l <"$1")
	echo "$count"
}

# sample: sets RSS (KiB) and FDS
sample()
{
	RSS=$(awk '/^VmRSS:/ { print $2 }' "/proc/$SERVER/status")
	FDS=$(find "/proc/$SERVER/fd" -mindepth 1 | wc -l)
}

as_before()
{
	sample
	[ "$FDS" -le "$FIRST_FDS" ] && [ "$RSS" -le $((FIRST_RSS + GROWTH)) ]
}

# one_round LIFE: all come, three of the honest at least are served, all go.
one_round()
{
	local had served peak fds rc=0

	had=$(lines "$DIR/fetched")
	begin_round
	until_so crowded || { fail "not all clients are there"; return 1; }
	until_so served_more "$had" || { fail "the third host has nothing"; return 1; }
	sleep "$ROUND"
	sample
	peak=$RSS
	fds=$FDS
	end_round || return 1
	until_so empty ||
		{ tail -n 3 "$DIR/serve.out"; fail "places are not free"; return 1; }
	served=$(($(lines "$DIR/fetched") - had))
	rounds=$((rounds + 1))
	if [ "$rounds" -le 2 ]; then
		sample
		FIRST_RSS=$((RSS > FIRST_RSS ? RSS : FIRST_RSS))
	fi
	[ "$rounds" -gt 1 ] || FIRST_FDS=$FDS
	until_so as_before || rc=1
	echo "  life $1: $served calls of host 3 served," \
		"$(lines "$DIR/refused") refused; with all clients $peak KiB," \
		"$fds descriptors; without $RSS KiB, $FDS descriptors"
	[ $rc -eq 0 ] ||
		fail "it had $FIRST_RSS KiB and $FIRST_FDS descriptors at first"
}

served_more()
{
	[ "$(lines "$DIR/fetched")" -ge $(($1 + 3)) ]
}

# test_life N: rounds for its part of the time, and then an end that comes while
# all clients are there
test_life()
{
	local end=$((SECONDS + LENGTH / LIVES)) rounds=0

	FIRST_RSS=0
	begin_life || return 1
	while [ $rounds -lt $ROUNDS ] || [ "$SECONDS" -lt "$end" ]; do
		one_round "$1" || return 1
	done
	begin_round
	until_so crowded || { fail "not all clients are there"; return 1; }
	end_life && end_round || return 1
	[ ! -s "$DIR/wrong" ] || { head "$DIR/wrong"; fail "the third host"; }
}

# ---- all ---------------------------------------------------------------------

kill_all()
{
	rm -f "$DIR/round"
	kill_server
	until_so gone
	[ ${#HOSTS[@]} -eq 0 ] || kill "${HOSTS[@]}" 2>/dev/null
	rm -rf "$DIR"
}

make_files()
{
	umask 022
	chmod 755 "$DIR"
	mkdir -p "$DIR/src/dir" || return 1
	head -c 4000000 /dev/urandom >"$DIR/src/file"
	head -c 300000 /dev/urandom >"$DIR/src/dir/other"
	head -c 100 /dev/urandom >"$DIR/src/dir/small"
	echo 0 >"$DIR/life"
}

if [ "${1-}" != --apart ]; then
	if ! unshare -n true 2>/dev/null || ! command -v ip >/dev/null; then
		echo "SKIP day: network namespaces cannot be made here"
		echo "0 passed, 0 failed"
		exit 0
	fi
	exec unshare -n -- "${BASH_SOURCE[0]}" --apart "$@"
fi
shift
ARGS=()
while [ $# -gt 0 ]; do
	case $1 in
	-s) LENGTH=${2:?}; shift 2 ;;
	-b) ARGS+=("$1" "${2:?}"); shift 2 ;;
	*) ARGS+=("$1"); shift ;;
	esac
done
test_options "${ARGS[@]}"
ROUND=$((LENGTH < 600 ? 4 : 60))
trap kill_all EXIT
export FI_PROVIDER=$PROVIDER
make_files && ip link set lo up && ip addr add "$ADDRESS/32" dev lo || exit 2
for i in 1 2 3; do
	host $i || { fail "no host $i"; exit 2; }
done
TESTS=()
for ((i = 1; i <= LIVES; i++)); do
	TESTS+=("life $i")
done
run_tests "${TESTS[@]}"
