# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# How test.sh runs stages side by side: each in a process of its own, whose
# lines get the stage's name in front, and whose counts come back by a file.
# Sourced, after count.sh.

# by process: the stage that runs in it
declare -A STAGE_OF=()

# Ends the stages with this script; each ends what it runs.
end_stages()
{
	local pid

	for pid in "${!STAGE_OF[@]}"; do
		kill -TERM -- "-$pid" 2>/dev/null
	done
	wait
}

# Runs the stage $STAGE in this process, and leaves its counts in FILE.
stage_alone()
{
	local file=$1 start=$SECONDS

	PASSED=0 FAILED=0 SKIPPED=0 REASONS=()
	end_on_signals end_child
	say "begins"
	"stage_$STAGE"
	say "$PASSED passed, $FAILED failed, $SKIPPED skipped in" \
		"$(minutes $((SECONDS - start)))"
	{
		echo "$PASSED $FAILED $SKIPPED"
		[ ${#REASONS[@]} -eq 0 ] || printf '%s\n' "${REASONS[@]}"
	} >"$file"
}

# Adds the counts of a stage that has ended.
stage_ended()
{
	local stage=$1 file=$LOGS/$1.counts p f s reasons

	{ read -r p f s && mapfile -t reasons; } 2>/dev/null <"$file" || {
		STAGE=$stage
		fail "ended without a result"
		return
	}
	PASSED=$((PASSED + p)) FAILED=$((FAILED + f)) SKIPPED=$((SKIPPED + s))
	REASONS+=("${reasons[@]}")
}

# Waits for one of the stages that run.
stage_wait()
{
	local pid

	wait -n -p pid "${!STAGE_OF[@]}"
	stage_ended "${STAGE_OF[$pid]}"
	unset "STAGE_OF[$pid]"
}

# side_by_side COUNT STAGE...: so many at a time, in this order.
side_by_side()
{
	local count=$1

	shift
	end_on_signals end_stages
	for STAGE in "$@"; do
		[ ${#STAGE_OF[@]} -lt "$count" ] || stage_wait
		rm -f "$LOGS/$STAGE.counts"
		set -m
		# sed ends last: without it a stage would die of its next line,
		# before it has ended what it runs
		(stage_alone "$LOGS/$STAGE.counts" 2>&1 |
			(trap '' TERM && exec sed -u "s/^ */$STAGE: /")) \
			</dev/null &
		set +m
		STAGE_OF[$!]=$STAGE
	done
	while [ ${#STAGE_OF[@]} -gt 0 ]; do
		stage_wait
	done
	end_on_signals end_child
}
