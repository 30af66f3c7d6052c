# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh recorder: the cost of recording, for layer_bench's writes and for
# MPI.

readonly RECORDER_GOAL=3
RECORDER_ROUNDS=15 RECORDER_MPI_ROUNDS=5 RECORDER_COUNT=100
smoking && RECORDER_ROUNDS=1 RECORDER_MPI_ROUNDS=1 RECORDER_COUNT=2

# recorder_run OUT SIDE COMMAND...: SIDE is "on" or "off"
recorder_run()
{
	local out=$1 side=$2 rc

	shift 2
	if [ "$side" = on ]; then
		export FI_OFI_MRRC_TRACE=$out.%p.trace
	else
		unset FI_OFI_MRRC_TRACE
	fi
	"$@" | sed "s/^/$side /"
	rc=$?
	rm -f "$out".*.trace
	return $rc
}

# Both sides in turn; the one that goes first changes.
recorder_rounds()
{
	local out=$1 round first second

	shift
	for ((round = 0; round < RECORDER_ROUNDS; round++)); do
		first=off second=on
		[ $((round % 2)) -eq 0 ] || first=on second=off
		recorder_run "$out" $first "$@" &&
			recorder_run "$out" $second "$@" || return
	done
}

# recorder_median FILE SIDE WHAT: of "SIDE WHAT VALUE"
recorder_median()
{
	sed -n "s/^$2 $3 //p" "$1" | sort -n |
		awk '{ t[NR] = $1 } END { print t[int((NR + 1) / 2)] }'
}

# recorder_row FILE WHAT TITLE: adds both to ROWS, sets SLOWER, in percent: the
# median of the rounds
recorder_row()
{
	local off on

	off=$(recorder_median "$1" off "$2")
	on=$(recorder_median "$1" on "$2")
	if [ -z "$off" ] || [ -z "$on" ]; then
		broken "nothing was measured of $2"
	fi
	# of each round on its own, as what else runs here changes
	SLOWER=$(paste <(sed -n "s/^off $2 //p" "$1") \
		<(sed -n "s/^on $2 //p" "$1") | awk '{ print $2 / $1 }' |
		sort -n | awk '{ t[NR] = $1 }
			END { printf "%.1f", 100 * (t[int((NR + 1) / 2)] - 1) }')
	ROWS+=$(printf '  %-34s %10s %10s %8s%%' "$3" "$off" "$on" \
		"$SLOWER")$'\n'
}

# One ping-pong of Open MPI through the hooking form; "mpi US".
recorder_mpi()
{
	mpirun --allow-run-as-root --oversubscribe -n 2 --mca pml cm \
		--mca mtl ofi --mca mtl_ofi_provider_include "tcp;ofi_rxm" \
		--mca btl self "$1" | sed -n 's/^pingpong /mpi /p'
}

# The program, where there is what builds it.
recorder_build_mpi()
{
	command -v mpicc >/dev/null &&
		[[ $(mpirun --version 2>/dev/null) = *"Open MPI"* ]] &&
		mpicc -O2 -o "$1/pingpong" \
			"$TOP/fabtests/benchmarks/mpi_pingpong.c" 2>/dev/null
}

bench_recorder()
{
	local dir=$DATA/recorder met=no one window mpi="not run" ROWS=

	prepare
	program fabtests/benchmarks/layer_bench
	export FI_OFI_MRRC_REGISTER=always
	measured "writes, recorded and not in turn" "$dir/write" \
		recorder_rounds "$dir/t" "$PROGRAM" -N -I $RECORDER_COUNT
	say
	say "Set-up: $(setup_line); tcp over loopback, both ends in one"
	say "thread, writes of 8 bytes without a descriptor from 64 buffers,"
	say "all hits; medians of $RECORDER_ROUNDS runs of each, interleaved."
	say "The file lies in $dir."
	say
	recorder_row "$dir/write" "write 1" "each write, one by one"
	one=$SLOWER
	recorder_row "$dir/write" "write 50" "each write, in windows of 50"
	window=$SLOWER
	if recorder_build_mpi "$dir"; then
		measured "MPI, recorded and not in turn" "$dir/mpi" \
			env FI_HOOK=mrrc bash -o pipefail -c \
			"RECORDER_ROUNDS=$RECORDER_MPI_ROUNDS
			$(declare -f recorder_run recorder_rounds recorder_mpi)
			recorder_rounds $dir/t recorder_mpi $dir/pingpong"
		recorder_row "$dir/mpi" mpi "MPI ping-pong of 64 KiB, hooked"
		mpi=$SLOWER%
	else
		say "(No Open MPI here: its ping-pong is left out.)"
	fi
	printf '  %-34s %10s %10s %9s\n' "microseconds" "off" "recorded" \
		slower
	table 2 "... N N Z" <<<"$ROWS"
	say
	at_most "$one" $RECORDER_GOAL && met=yes
	[ "$mpi" = "not run" ] || at_most "${mpi%%%}" $RECORDER_GOAL || met=no
	result "writes $one% slower (in windows $window%), MPI $mpi" \
		"<= $RECORDER_GOAL% one by one and for MPI" $met
}
