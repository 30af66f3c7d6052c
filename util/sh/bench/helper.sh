# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh helper: what a helper that predicts uses saves and costs, by
# helper_bench in the guest: figures 2, 3, 9 and 10 of li2011, and section 4.3.

# percent: that a call may take longer, and of leave-pinned on average
readonly HELPER_COST=2 HELPER_MEAN=75
HELPER_TURNS=10
smoking && HELPER_TURNS=1

# Rows of a table from what helper_bench printed.
helper_memory()
{
	awk '
		BEGIN {
			printf "  %-8s %5s %5s %8s %8s %10s %6s\n", "way", \
				"reuse", "KiB", "average", "peak", "message", \
				"late"
		}
		$1 == "memory" {
			printf "  %-8s %5s %5d %8.1f %8.1f %10.1f %6d\n", $2, \
				$3, $4 / 1024, $5, $6, $7, $8
		}' "$1"
}

helper_limit()
{
	awk '
		BEGIN {
			printf "  %-8s %-24s %6s %6s %8s %10s %6s\n", "way", \
				"error", "sent", "of", "peak", "message", "late"
		}
		$1 == "limit" {
			why = $8
			for (i = 9; i <= NF; i++)
				why = why " " $i
			printf "  %-8s %-24s %6d %6d %8.1f %10.1f %6d\n", $2, \
				why, $3, $4, $6, $5, $7
		}' "$1"
}

helper_overhead()
{
	awk '
		BEGIN {
			printf "  %8s %10s %10s %8s\n", "bytes", "never", \
				"predict", "ratio"
		}
		$1 == "overhead" {
			printf "  %8s %10s %10s %8s\n", $2, $3, $4, $5
		}' "$1"
}

# helper_tables OUT
helper_tables()
{
	local unit="1000 instructions"

	smoking && unit=microseconds
	say "Three buffers are sent in turn, 60 ms apart, $HELPER_TURNS times, or each"
	say "message has a new buffer. Registered bytes in percent of three"
	say "buffers, average and peak; $unit of a message,"
	say "median; uses that found their buffer deregistered. each: registered"
	say "for each message; cache: libfabric's own; never and predict: ofi_mrrc"
	say "without and with the helper."
	say
	table 32 "* (yes|no) N Z Z N Z" < <(helper_memory "$1")
	say
	say "Six buffers of 1 MiB in turn, where three and a half may be locked."
	say "kept: the application leaves registered what it has used. Messages"
	say "that were sent, of how many; percent of six buffers at the peak."
	say
	table 4 "... N N Z N Z" < <(helper_limit "$1")
	say
	say "Messages from one buffer, one after the other, without and with the"
	say "helper: $unit, medians of rounds in turn, and the"
	say "median of the ratios of two batches in turn."
	say
	table 3 "N N N N" < <(helper_overhead "$1")
	say
}

# Percent of leave-pinned, percent of a call, messages under the limit without
# and with the helper, and how many there are.
helper_sums()
{
	awk '
		$1 == "memory" && $3 == "yes" && $4 == 4194304 { mean[$2] = $5 }
		$1 == "overhead" && 100 * ($5 - 1) > most {
			most = 100 * ($5 - 1)
		}
		$1 == "limit" { sent[$2] = $3; of = $4 }
		END {
			if (mean["never"])
				printf "%.1f %.2f %d %d %d\n",
					100 * mean["predict"] / mean["never"],
					most, sent["kept"], sent["predict"], of
		}' "$1"
}

bench_helper()
{
	local out=$DATA/helper/out met=no mean cost kept sent of

	prepare
	program fabtests/benchmarks/helper_bench
	# shellcheck disable=SC2034 # bench.sh's
	GUEST_OPTIONS=(-i -c 1)
	in_guest 1800 "$out" "the ways in turn" "$PROGRAM" -p "$CORE" -t 1800 \
		-I $HELPER_TURNS
	say
	say "Set-up: $(setup_line), Soft-RoCE in an emulated guest of one"
	say "processor; instructions are those of user code and kernel, of all"
	say "threads."
	say
	helper_tables "$out"
	read -r mean cost kept sent of < <(helper_sums "$out")
	if at_most "$mean" $HELPER_MEAN && at_most "$cost" $HELPER_COST &&
	   [ "$kept" -lt "$of" ] && [ "$sent" -eq "$of" ]; then
		met=yes
	fi
	result "$mean % of leave-pinned on average, a call $cost % longer; $kept and $sent of $of messages under a limit" \
		"<= $HELPER_MEAN %, <= $HELPER_COST %; fewer, all" $met
}
