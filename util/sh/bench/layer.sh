# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh layer: instructions and time that our layer adds to calls with a
# descriptor: callgrind counts, layer_bench takes the times.

LAYER_OPS=1000 LAYER_ROUNDS=801
smoking && LAYER_OPS=20 LAYER_ROUNDS=3
readonly POST_GOAL=20 COMPLETION_GOAL=40 RATE_GOAL=97 HIT_GOAL=110 END_GOAL=50

# Instructions in our library, and in what it calls that is not the core:
# of a callgrind profile, for each of so many operations.
layer_own()
{
	awk -v ops=$LAYER_OPS '
		# names are written once, then referred to as (number)
		function name(line,   id, text) {
			sub(/^[a-z]*=/, "", line)
			id = line
			sub(/\).*/, ")", id)
			text = substr(line, length(id) + 2)
			if (text != "")
				names[id] = text
			return names[id]
		}
		function ours(object) { return object ~ /libmrrc/ }
		/^ob=/ { object = name($0) }
		/^cob=/ { callee = name($0) }
		/^calls=/ {
			if (callee == "")
				callee = object
			getline
			if (ours(object) && !ours(callee) &&
			    callee !~ /libfabric/)
				sum += $2
			callee = ""
			next
		}
		/^[0-9+*-]/ && ours(object) { sum += $2 }
		END { printf "%.1f", sum / ops }' "$1"
}

layer_total()
{
	awk -v ops=$LAYER_OPS '/^summary:/ { printf "%.1f", $2 / ops }' "$1"
}

# layer_profile PROVIDER OPERATION FUNCTION FILE [OPTION...]: or that is the end
layer_profile()
{
	local prov=$1 op=$2 fn=$3 file=$4

	shift 4
	rm -f "$file"
	valgrind --tool=callgrind --toggle-collect="layer_$fn" \
		--callgrind-out-file="$file" \
		"$PROGRAM" -p "$prov" -m "$op" -I $LAYER_OPS "$@" \
		>"$file.log" 2>&1 && return
	set -- $?
	tail -n 20 "$file.log" >&2
	ended "$1" "callgrind: $op" "$file.log"
}

larger()
{
	awk -v a="$1" -v b="$2" 'BEGIN { print (a > b ? a : b) }'
}

halve()
{
	awk -v x="$1" 'BEGIN { print x / 2 }'
}

# Sets ROWS, POST and COMPLETION, the dearest of each.
layer_rows()
{
	local dir=$1 name op fn raw stack own

	while read -r name op fn; do
		layer_profile tcp "$op" "$fn" "$dir/raw"
		layer_profile "tcp;ofi_mrrc" "$op" "$fn" "$dir/stack"
		raw=$(layer_total "$dir/raw")
		stack=$(layer_total "$dir/stack")
		own=$(layer_own "$dir/stack")
		# nothing of ours at all means that nothing was measured
		at_most "$own" 0 && broken "our layer was not in the profile"
		if [ "$op-$fn" = send-completion ]; then
			# one transmitted and one received for each operation
			raw=$(halve "$raw")
			stack=$(halve "$stack")
			own=$(halve "$own")
		fi
		ROWS+=$(printf '  %-26s %10.0f %10.0f %10.1f' "${name//_/ }" \
			"$raw" "$stack" "$own")$'\n'
		case $fn in
		completion) COMPLETION=$(larger "$COMPLETION" "$own") ;;
		*) POST=$(larger "$POST" "$own") ;;
		esac
	done <<-EOT
	send send send
	receive send recv
	write write write
	completion_send/receive send completion
	completion_write write completion
	EOT
}

# What a null descriptor adds to a write and its completion: of a buffer that
# hits, where the kernel need not be asked whether memory is quiet (sets HIT,
# the cost of the write, and END, of the completion), and of one from
# fi_mr_alloc().
layer_hit()
{
	local dir=$1 fn given=0 null=0 born=0 more

	for fn in write completion; do
		layer_profile "tcp;ofi_mrrc" write $fn "$dir/given"
		FI_OFI_MRRC_MONITOR=manual layer_profile "tcp;ofi_mrrc" write \
			$fn "$dir/null" -N
		layer_profile "tcp;ofi_mrrc" write $fn "$dir/born" -A
		given=$(layer_own "$dir/given")
		null=$(layer_own "$dir/null")
		born=$(layer_own "$dir/born")
		more=$(awk -v a="$null" -v b="$given" \
			'BEGIN { printf "%.1f", a - b }')
		case $fn in
		write) HIT=$more ;;
		*) END=$more ;;
		esac
		say "  A null descriptor that hits: $more more" \
			"instructions for each $fn, without a probe."
		more=$(awk -v a="$born" -v b="$given" \
			'BEGIN { printf "%.1f", a - b }')
		say "  A null descriptor of fi_mr_alloc(): $more more."
	done
}

# Prints the table and sets RATE and LATENCY, raw over stack in percent.
layer_times()
{
	local out=$1

	measured "rate and latency, raw and stacked in turn" "$out" \
		"$PROGRAM" -I $LAYER_ROUNDS
	say
	printf '  %-26s %10s %10s %10s\n' "microseconds per message" raw \
		stack "raw/stack"
	table 2 "... N N N" < <(awk '/^(rate|latency) / {
		printf "  %-26s %10.3f %10.3f %9.1f%%\n", \
			$1 == "rate" ? "windows of 50" : "ping-pong", $2, $3, $4
	}' "$out")
	RATE=$(awk '/^rate / { print $4 }' "$out")
	LATENCY=$(awk '/^latency / { print $4 }' "$out")
}

bench_layer()
{
	local dir=$DATA/layer met=no

	prepare valgrind
	program fabtests/benchmarks/layer_bench
	export FI_OFI_MRRC_REGISTER=always
	mkdir -p "$dir"
	ROWS='' POST=0 COMPLETION=0 RATE=0 LATENCY=0 HIT=0 END=0

	say
	say "Set-up: $(setup_line)"
	say "tcp over loopback, 8-byte messages, both ends in one thread;"
	say "descriptors given, on endpoints that have resolved null descriptors."
	say
	say "Instructions for each call (callgrind, $LAYER_OPS calls)"
	printf '  %-26s %10s %10s %10s\n' call "raw, all" "stack, all" \
		"our layer"
	layer_rows "$dir"
	table 5 "... N N N" <<<"$ROWS"
	layer_hit "$dir"
	say
	layer_times "$dir/times"
	say
	if at_most "$POST" $POST_GOAL &&
	   at_most "$COMPLETION" $COMPLETION_GOAL && at_most 1 "$HIT" &&
	   at_most "$HIT" $HIT_GOAL && at_most 1 "$END" &&
	   at_most "$END" $END_GOAL &&
	   at_most $RATE_GOAL "$RATE" && at_most $RATE_GOAL "$LATENCY"; then
		met=yes
	fi
	# as exact as the comparison: no rounding up to the goal
	result "post $POST, completion $COMPLETION, hit $HIT and its end $END, rate $RATE%, latency $LATENCY%" \
		"post <= $POST_GOAL, completion <= $COMPLETION_GOAL, hit <= $HIT_GOAL and its end <= $END_GOAL, rate and latency >= $RATE_GOAL%" \
		$met
}
