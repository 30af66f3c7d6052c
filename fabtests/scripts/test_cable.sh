#!/bin/bash
# shellcheck disable=SC2317 # run_tests calls each test by its name
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_cable.sh: files between two hosts whose cable loses packets or is cut, and
# whose processes are killed. Each transfer ends with the right data, or says why
# it ended and goes on when it is called again. Ends with "N passed, N failed".
#
# The hosts are network namespaces, joined by a pair of virtual Ethernet devices;
# over verbs each has a Soft-RoCE device. Needs root, the modules veth and
# sch_netem, and for verbs a kernel whose connection manager works in namespaces
# (7.3 does, 6.12 does not). The cable is cut by losing all packets: a device that
# is set down during a transfer leaves Soft-RoCE's queue pair for connections in
# the error state (7.3), and no program connects any more.

# shellcheck source=fabtests/scripts/testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"

readonly SERVER=10.8.0.2
readonly SPEED=60mbit # so that a transfer takes some seconds
readonly BYTES=24000000

usage()
{
	cat <<-EOT
	Usage: $ME [-b BINDIR] [-t TEST] [PROVIDER]

	BINDIR: where the programs are (default: PATH).
	EOT
}

# ---- the hosts -----------------------------------------------------------

# at HOST COMMAND...: runs COMMAND on a host, client or server.
at()
{
	local host=$1

	shift
	ip netns exec "mrrc_$host" "$@"
}

make_host()
{
	local host=$1 address=$2

	ip link set "$host" netns "mrrc_$host" &&
		at "$host" ip link set lo up &&
		at "$host" ip addr add "$address/24" dev "$host" &&
		at "$host" ip link set "$host" up || return 1
	[[ $PROVIDER != *verbs* ]] ||
		at "$host" rdma link add "rxe_$host" type rxe netdev "$host"
}

make_hosts()
{
	ip netns add mrrc_client && ip netns add mrrc_server &&
		ip link add client type veth peer name server &&
		make_host client 10.8.0.1 && make_host server $SERVER
}

end_hosts()
{
	end_server
	rdma link delete rxe_client 2>/dev/null
	rdma link delete rxe_server 2>/dev/null
	ip netns delete mrrc_client 2>/dev/null
	ip netns delete mrrc_server 2>/dev/null
}

# cable [OPTION...]: gives both directions of the cable options of tc-netem(8)
cable()
{
	at client tc qdisc replace dev client root netem rate $SPEED "$@" &&
		at server tc qdisc replace dev server root netem rate $SPEED "$@"
}

cut_cable()
{
	cable loss 100%
}

# ---- the processes -------------------------------------------------------

start_server()
{
	(exec ip netns exec mrrc_server "${BIN}fi_mrrc_serve" --root -a $SERVER \
		-P "$PROVIDER" "$DIR/served" >"$DIR/server.log" 2>&1) &
	SERVING=$!
	until_so grep -qs 'serving' "$DIR/server.log" ||
		{ cat "$DIR/server.log"; fail "no server"; }
}

end_server()
{
	[ -z "${SERVING-}" ] || kill -9 "$SERVING"
	[ -z "${SERVING-}" ] || wait "$SERVING" 2>/dev/null
	SERVING=
}

before_test()
{
	cable
	[ -n "${SERVING-}" ] || start_server
	rm -rf "$DIR/got"
	mkdir "$DIR/got"
}

# get [OPTION...]: runs the client in place of this shell. It waits for a minute at
# most.
get()
{
	exec ip netns exec mrrc_client "${BIN}fi_mrrc_get" -q -C "$DIR/got" \
		-P "$PROVIDER" "$@" $SERVER:file >"$DIR/client.log" 2>&1
}

sent()
{
	at server cat /sys/class/net/server/statistics/tx_bytes
}

some_came()
{
	[ $(($(sent) - BEFORE)) -gt $((BYTES / 8)) ]
}

came_or_ended()
{
	some_came || ! kill -0 "$GETTING" 2>/dev/null
}

# begin_get [OPTION...]: in the background, until some of the data came
begin_get()
{
	BEFORE=$(sent)
	(get "$@") &
	GETTING=$!
	until_so came_or_ended
	some_came || { cat "$DIR/client.log"; fail "nothing came"; }
}

came()
{
	cmp "$DIR/served/file" "$DIR/got/file" ||
		{ cat "$DIR/client.log" "$DIR/server.log"; fail "not the file"; }
}

got()
{
	wait "$GETTING" ||
		{ cat "$DIR/client.log"; fail "the transfer ended: $?"; return 1; }
	came
}

# ended TEXT: the transfer says TEXT, and the next one goes on
ended()
{
	! wait "$GETTING" || { fail "the transfer did not end"; return 1; }
	grep -qF -- "$1" "$DIR/client.log" ||
		{ cat "$DIR/client.log"; fail "does not say '$1'"; return 1; }
	grep -q 'run the same command again' "$DIR/client.log" ||
		fail "does not say how to go on"
}

# The next call fetches the rest of the file, and not all of it again.
goes_on()
{
	local before

	before=$(sent)
	(get) && came || return 1
	[ $(($(sent) - before)) -lt $((BYTES * 15 / 16)) ] ||
		fail "all of the file was sent again"
}

# ---- tests ---------------------------------------------------------------

test_whole()
{
	begin_get && got
}

test_loss()
{
	cable loss 1%
	begin_get && got
}

# cut SECONDS: the transfer waits
test_cut()
{
	begin_get || return 1
	cut_cable
	sleep "$1"
	cable
	got
}

# Longer than the client wants to wait
test_cut_long()
{
	begin_get --timeout=8 || return 1
	cut_cable
	ended "has not answered for 8 s" || return 1
	cable
	goes_on
}

test_server_killed()
{
	begin_get || return 1
	end_server
	ended "the connection to the server is lost" || return 1
	start_server && goes_on
}

# The server serves the next client.
test_client_killed()
{
	begin_get || return 1
	kill -9 "$GETTING"
	wait "$GETTING" 2>/dev/null
	goes_on
}

test_options "$@"
if ! ip netns add mrrc_client 2>/dev/null; then
	echo "SKIP: network namespaces cannot be made here"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
fi
ip netns delete mrrc_client
trap 'end_hosts; rm -rf "$DIR"' EXIT
mkdir "$DIR/served"
chmod a+rx "$DIR" "$DIR/served" # files that all users may read are served
head -c $BYTES /dev/urandom >"$DIR/served/file"
if ! make_hosts || ! cable; then
	echo "$ME: no hosts with a cable" >&2
	exit 2
fi
run_tests whole loss "cut 1" "cut 10" cut_long server_killed client_killed
