# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh replay: what a helper that predicts uses leaves registered of the
# buffers of recorded MPI programs, by helper_replay in the guest: figure 11 of
# li2011.

readonly REPLAY_TRACES="bt lu ft cg sp"	# those of the figure
# of leave-pinned, on average; percent late
readonly REPLAY_MEAN=0.764 REPLAY_LATE=1
# that messages take longer to come, and how much of a trace is sent
REPLAY_STRETCH=20 REPLAY_SECONDS=2
smoking && REPLAY_STRETCH=2 REPLAY_SECONDS=.3

# A row for each trace from what helper_replay printed, and one of means; in
# RESULT what is judged.
replay_rows()
{
	awk '
	$1 == "replay" && $3 == "never" { mean = $6; peak = $8 }
	$1 == "replay" && $3 == "predict" {
		printf "  %-6s %8d %8.1f %9.1f %9.1f %8.3f %9.1f %9.1f %8.3f %6.2f%% %8.1f\n",
			$2, $4, $5, mean, $6, $6 / mean, peak, $8, $8 / peak,
			100 * $9 / $4, $10
		means += $6 / mean; peaks += $8 / peak
		late += $9; messages += $4
		rows++
	}
	END {
		if (rows)
			printf "RESULT %.3f %.3f %.2f\n", means / rows,
				peaks / rows, 100 * late / messages
	}' "$1"
}

bench_replay()
{
	local dir=$DATA/replay met=no name mean peak late traces=()

	prepare
	program fabtests/benchmarks/helper_replay
	for name in $REPLAY_TRACES; do
		traces+=("$TOP/fabtests/traces/own_time/$name.csv.xz")
	done
	# shellcheck disable=SC2034 # bench.sh's
	GUEST_OPTIONS=(-i -c 1)
	in_guest 1800 "$dir/out" "recorded programs" "$PROGRAM" -p "$CORE" \
		-t 600 $REPLAY_STRETCH $REPLAY_SECONDS "${traces[@]}"
	replay_rows "$dir/out" >"$dir/table" || broken "the rows cannot be read"
	say
	say "Set-up: $(setup_line), Soft-RoCE in an emulated guest of one"
	say "processor, whose clock counts its instructions."
	say
	say "Messages of rank 0 in the first $REPLAY_SECONDS s of a trace, each in its"
	say "buffer and of its length, at its time; all times are $REPLAY_STRETCH times as"
	say "long. KiB that the device holds, on average and at the peak of the"
	say "second half, left registered and predicted, and the ratios; uses that"
	say "found their buffer deregistered; ms that a message was posted after"
	say "its time, at most."
	say
	say "  trace  messages  seconds      left predicted    ratio      peak predicted    ratio    late   behind"
	table ${#traces[@]} "* N N N N N N N N Z Z" < <(grep -v '^RESULT' "$dir/table")
	say
	read -r _ mean peak late < <(grep '^RESULT' "$dir/table")
	if at_most "$mean" $REPLAY_MEAN && at_most "$late" $REPLAY_LATE; then
		met=yes
	fi
	result "$mean of leave-pinned on average, $peak at the peaks of the second half, $late % late" \
		"<= $REPLAY_MEAN; < $REPLAY_LATE %" $met
}
