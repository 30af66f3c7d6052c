# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# How test.sh runs stages side by side: each in a process of its own, whose
# lines get the stage's name in front, and whose counts come back by a file.
# Sourced, after count.sh.

# by process: the stage, or part of one, that runs in it
declare -A STAGE_OF=()

# select_test STAGE[:PART[:TEST]]: restricts a stage to one PART, which is a script
# (by its log's name), a part of the guest's script, or a program of make check,
# and to one TEST of that part.  SELECTED
# has the options with which guest.sh and trixie.sh pass this on.
select_test()
{
	local name

	# shellcheck disable=SC2034 # wanted() reads PART
	IFS=: read -r STAGE PART TEST <<<"$1"
	unset FT_ONLY MRRC_TEST
	[ -z "$TEST" ] || export FT_ONLY=$TEST MRRC_TEST=$TEST
	SELECTED=()
	for name in FT_ONLY MRRC_TEST MRRC_TEST_SEED; do
		[ -z "${!name-}" ] || SELECTED+=(-e "$name=${!name}")
	done
}

counts_file()
{
	echo "$LOGS/${1//[^a-z0-9]/_}.counts"
}

# again I: succeeds if a test that has run I times has to run once more (-n).
again()
{
	[ "$1" -gt 0 ] || AGAIN_SINCE=$SECONDS
	[ "$1" -lt "$TIMES" ] && [ $((SECONDS - AGAIN_SINCE)) -lt "$AGAIN_LIMIT" ]
}

# Ends the stages with this script; each ends what it runs.
end_stages()
{
	local pid

	for pid in "${!STAGE_OF[@]}"; do
		kill -TERM -- "-$pid" 2>/dev/null
	done
	wait
}

# stage_alone SPEC FILE: runs a stage, or the part of it that SPEC names, in this
# process, and leaves its counts in FILE.
stage_alone()
{
	local file=$2 start=$SECONDS

	PASSED=0 FAILED=0 SKIPPED=0 FAILURES=()
	select_test "$1"
	end_on_signals end_child
	say "begins"
	"stage_$STAGE"
	times >"$file"
	say "$PASSED passed, $FAILED failed, $SKIPPED skipped in" \
		"$(minutes $((SECONDS - start)));" \
		"$(minutes "$(processor "$file")") of a processor"
	{
		echo "$PASSED $FAILED $SKIPPED"
		[ ${#FAILURES[@]} -eq 0 ] || printf '%s\n' "${FAILURES[@]}"
	} >"$file"
}

# Adds the counts of a stage that has ended.
stage_ended()
{
	local p f s failures

	{ read -r p f s && mapfile -t failures; } 2>/dev/null \
		<"$(counts_file "$1")" || {
		STAGE=${1%%:*}
		fail "ended without a result"
		return
	}
	PASSED=$((PASSED + p)) FAILED=$((FAILED + f)) SKIPPED=$((SKIPPED + s))
	FAILURES+=("${failures[@]}")
}

# Waits for one of the stages that run.
stage_wait()
{
	local pid

	wait -n -p pid "${!STAGE_OF[@]}"
	stage_ended "${STAGE_OF[$pid]}"
	unset "STAGE_OF[$pid]"
}

# side_by_side COUNT SPEC...: so many at a time, in this order.
side_by_side()
{
	local count=$1 spec counts

	shift
	end_on_signals end_stages
	for spec in "$@"; do
		[ ${#STAGE_OF[@]} -lt "$count" ] || stage_wait
		counts=$(counts_file "$spec")
		rm -f "$counts"
		set -m
		# sed ends last: without it a stage would die of its next line,
		# before it has ended what it runs
		(stage_alone "$spec" "$counts" 2>&1 |
			(trap '' TERM && exec sed -u "s/^ */${spec%%:*}: /")) \
			</dev/null &
		set +m
		STAGE_OF[$!]=$spec
	done
	while [ ${#STAGE_OF[@]} -gt 0 ]; do
		stage_wait
	done
	end_on_signals end_child
}
