# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh levy: figures 1 to 6 of levy2020, by levy_bench in the guest.

# The paper's: new memory of 128 bytes, of 1 MiB and more; reuse at 4 KiB; put
# at 4 KiB and less.
readonly LEVY_NEW=134 LEVY_LARGE=0.89 LEVY_REUSE=1000
readonly LEVY_PUT=3
LEVY_TRIALS=300
smoking && LEVY_TRIALS=3

bench_levy()
{
	local dir=$DATA/levy values met=no

	prepare
	program fabtests/benchmarks/levy_bench
	in_guest 1800 "$dir/out" "both sides in turn" \
		"$PROGRAM" -p "$CORE;ofi_mrrc" -n $LEVY_TRIALS \
		-o reg,new,reuse,put
	say
	levy_setup
	say "Microseconds, means of $LEVY_TRIALS trials (fewer where that would be"
	say "too many bytes), and medians in brackets; times: malloc and"
	say "registering over fi_mr_alloc, of means and of medians."
	awk -f "$TOP/util/plot/alloc.awk" "$dir/out" >"$dir/table"
	# registering is quick over tcp
	table 15 "N N N N N Z" 45 "N N N N N Z Z" \
		< <(grep -v '^RESULT' "$dir/table")
	values=$(sed -n 's/^RESULT //p' "$dir/table")
	[ -n "$values" ] || broken "the tables are not complete"
	# shellcheck disable=SC2086 # numbers
	set -- $values
	if at_most $LEVY_NEW "$1" && at_most $LEVY_LARGE "$2" &&
	   at_most $LEVY_REUSE "$3" && at_most $LEVY_PUT "$4"; then
		met=yes
	fi
	say
	result "new 128 B $1, from 1 MiB on $2, reuse 4 KiB $3, put to 4 KiB $4 times as fast" \
		">= $LEVY_NEW, >= $LEVY_LARGE, >= $LEVY_REUSE, >= $LEVY_PUT, of means" \
		$met
}
