# shellcheck shell=bash disable=SC2153 # count.sh sets FAILED
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What test.sh says at its end: each test that failed has run again by itself, so
# that its line tells a fault that is always there from one that depends on
# time.  Sourced, after side.sh.

readonly AGAIN=5		# times
readonly AGAIN_LAST=300		# seconds for one test
readonly AGAIN_ALL=900		# and for all of them

# run_alone SPEC SEED: runs a test again, and prints how often it failed.
run_alone()
{
	local counts=$LOGS/again.counts p=0 f=0 failed

	rm -f "$counts"
	(
		# shellcheck disable=SC2034 # again() reads them
		TIMES=$AGAIN AGAIN_LIMIT=$AGAIN_LAST
		[ -z "$2" ] || export "${2?}"
		stage_alone "$1" "$counts"
	) >>"$LOGS/again.log" 2>&1 </dev/null
	{ read -r p f _ <"$counts"; } 2>/dev/null
	failed=$((f + 1))
	if [ $((p + f)) -eq 0 ]; then
		echo "could not run alone"
	elif [ "$p" -eq 0 ]; then
		echo "always ($failed of $failed)"
	else
		echo "$failed of $((p + failed)): not deterministic"
	fi
}

# Prints the failures, and the sums.
verdict()
{
	local began=$SECONDS rounds='' failure spec seed load what how command

	[ "${FT_PERCENT-100}" = "$FEW_PERCENT" ] ||
		rounds="FT_PERCENT=${FT_PERCENT-100} "

	say
	say "All of it: $(minutes $SECONDS)"
	if [ ${#FAILURES[@]} -gt 0 ]; then
		# the repeats write the same files
		rm -rf "$LOGS.failed"
		cp -r "$LOGS" "$LOGS.failed"
		say "The logs of what failed are in $LOGS.failed"
	fi
	: >"$LOGS/again.log"
	for failure in "${FAILURES[@]}"; do
		IFS=$SEP read -r spec seed load what <<<"$failure"
		say "FAIL $what"
		[ -n "$spec" ] || continue
		command="$rounds${seed:+$seed }./test.sh -n $AGAIN $(printf %q "$spec")"
		if [ $((SECONDS - began)) -ge $AGAIN_ALL ]; then
			how="no time to run it again"
		else
			how=$(run_alone "$spec" "$seed")
		fi
		say "   $how; load $load; again: $command"
	done
	say "$PASSED passed, $FAILED failed, $SKIPPED skipped"
	[ "$FAILED" -eq 0 ]
}
