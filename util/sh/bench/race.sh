# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh race: lookups against pages being replaced, and prices, by
# race_bench; and the same with a helper that predicts uses, by race_ahead.

# lookups and seconds to make; of what userfaultfd alone adds to an unmap, what
# hooks may add in percent: ending a watch goes through the pages, which leaves
# some; the sleep that they save is short where processors are idle
RACE_LOOKUPS=10000000 RACE_SECONDS=150
readonly RACE_AHEAD=1000000 # lookups with a helper
smoking && RACE_LOOKUPS=20000 RACE_SECONDS=30

bench_race()
{
	local dir=$DATA/race met=no line lookups stale blind added helped ahead

	prepare
	program prov/mrrc/test/race_ahead
	measured "lookups beside a helper" "$dir/ahead" "$PROGRAM" $RACE_AHEAD
	program prov/mrrc/test/race_bench
	measured "prices, lookups with and without protection" "$dir/out" \
		"$PROGRAM" $RACE_LOOKUPS $RACE_SECONDS
	line=$(sed -n 's/^RESULT //p' "$dir/out")
	# shellcheck disable=SC2086 # numbers
	set -- $line
	[ $# -eq 15 ] || broken "the result has $# numbers"
	lookups=$1 stale=$2 blind=$3
	# of munmap: without a monitor, userfaultfd alone, with hooks
	added=$(awk -v plain="$7" -v uffd="$8" -v hooks="$9" 'BEGIN {
		if (uffd > plain)
			printf "%.0f", 100 * (hooks - plain) / (uffd - plain)
		}')
	say
	say "Set-up: $(setup_line); the monitor, hooks and probe are the defaults."
	say "Medians of 15 rounds in turn, 100 samples each; malloc's threshold"
	say "is fixed, so that each block is mapped. A stale hit: a registration"
	say "of older pages, in a lookup that began when the new ones were there."
	say "What goes past all hooks comes while it runs: no hit asked before,"
	say "and each does after (else there is no table)."
	say
	# io_uring may be missing
	table 4 "... N N N" 28 "... N Z N N Z" < <(grep -v '^RESULT' "$dir/out")
	say
	[ -z "$added" ] || say "munmap of what is cached: hooks add $added% of" \
		"what userfaultfd adds."
	say
	say "In bursts at regular times beside a helper that predicts them:"
	say "regions that it deregistered between two bursts, and registered ahead"
	say "of one."
	say
	table 15 "... N Z Z Z" < <(grep -v '^RESULT' "$dir/ahead")
	read -r _ _ helped _ ahead < <(grep '^RESULT' "$dir/ahead")
	say
	if [ "$lookups" -ge $RACE_LOOKUPS ] && [ "$stale" -eq 0 ] &&
	   [ "$blind" -gt 0 ] && [ "$helped" -eq 0 ] && [ "$ahead" -gt 0 ]; then
		met=yes
	fi
	result "$stale stale of $lookups lookups, $blind unprotected, $helped of $RACE_AHEAD beside a helper" \
		"0 of >= $RACE_LOOKUPS, > 0 unprotected, 0" $met
}
