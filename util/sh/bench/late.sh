# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh late: buffers that are shown later than the data is ready, by
# late_bench over tcp and in the guest.

# Times of the best other way without a copy, where the sender polls, and where
# it computes
readonly LATE_POLLS_GOAL=1 LATE_COMPUTES_GOAL=.5
LATE_COUNT=25 LATE_GUEST_COUNT=3
smoking && LATE_COUNT=1 LATE_GUEST_COUNT=1

# late_rows FILE: a row of each cell: microseconds where the sender polls, then
# where it computes.
late_rows()
{
	awk '
		$4 ~ /^[a-z]+$/ && NF == 7 && $1 ~ /^[0-9]+$/ {
			row = sprintf("%7d %8d %3d", $1, $2, $3)
			if (!(row in polls))
				rows[++count] = row
			polls[row] = polls[row] sprintf(" %7.0f", $5)
			computes[row] = computes[row] sprintf(" %7.0f", $6)
		}
		END {
			for (i = 1; i <= count; i++)
				print rows[i], "|" polls[rows[i]], "|" \
					computes[rows[i]]
		}' "$1"
}

# late_free FILE: processor time of the computing sender, buffers 1 ms late.
late_free()
{
	awk '
		$1 == 1000 && NF == 7 {
			row = sprintf("%16d %3d", $2, $3)
			if (!(row in free))
				rows[++count] = row
			free[row] = free[row] sprintf(" %7.0f", $7)
		}
		END {
			for (i = 1; i <= count; i++)
				print rows[i], "|" free[rows[i]]
		}' "$1"
}

# late_ratios FILE: the medians over cells from 4 KiB and 10 us on, polls and
# computes.
late_ratios()
{
	late_rows "$1" | awk '
		function median(a, n,   i, k, t) {
			for (i = 2; i <= n; i++)
				for (k = i; k > 1 && a[k] < a[k - 1]; k--) {
					t = a[k]
					a[k] = a[k - 1]
					a[k - 1] = t
				}
			return n % 2 ? a[(n + 1) / 2] : \
				(a[n / 2] + a[n / 2 + 1]) / 2
		}
		# the first way is cwrite, the last one copied
		function ratio(first,   i, best) {
			best = $(first + 1)
			for (i = 2; i < ways - 1; i++)
				if ($(first + i) < best)
					best = $(first + i)
			return $first / best
		}
		{ ways = (NF - 5) / 2 }
		$1 >= 10 && $2 >= 4096 {
			polls[++n] = ratio(5)
			computes[n] = ratio(6 + ways)
		}
		END {
			printf "%.2f %.2f\n", median(polls, n),
				median(computes, n)
		}'
}

# late_tables CORE CELLS WAY...: prints them, and sets POLLS and COMPUTES. CELLS
# is the number of sizes and numbers of buffers.
late_tables()
{
	local file=$DATA/late/$1 under=$1 cells=$2 any

	shift 2
	# a copied message that came while the receiver could not run takes 0 us
	any=$(printf 'Z %.0s' "$@")
	say "$under"
	printf '%7s %8s %3s |' late bytes n
	printf ' %7s' "$@"
	printf ' |'
	printf ' %7s' "$@"
	say
	table $((5 * cells)) "Z N N [|] ${any}[|] $any" < <(late_rows "$file")
	say
	say "$under: % of a processor that the sender has, 1 ms late"
	table "$cells" "N N [|] $any" < <(late_free "$file")
	say
	read -r POLLS COMPUTES < <(late_ratios "$file")
}

bench_late()
{
	local dir=$DATA/late met=no POLLS COMPUTES polls=() computes=()

	prepare
	program fabtests/benchmarks/late_bench
	measured "tcp, six ways in turn" "$dir/tcp" \
		"$PROGRAM" -p "tcp;ofi_mrrc" -t 600 -I $LATE_COUNT
	in_guest 1800 "$dir/verbs" "without rtr" "$PROGRAM" -p "$CORE;ofi_mrrc" \
		-t 1780 -q -I $LATE_GUEST_COUNT
	say
	say "Set-up: $(setup_line); verbs: Soft-RoCE in an"
	say "emulated guest. Sender and receiver are threads of one process."
	say "The receiver shows n buffers this many us after the data is ready,"
	say "and polls from then on. Medians of the microseconds from the moment"
	say "when both are ready until the receiver has all data, the ways in"
	say "turn. Left: the sender polls its queues; right: it computes, and"
	say "looks at them each ms. cwrite: conditional writes; rtr, read:"
	say "ofi_rxm's rendezvous, the sender writes or the receiver reads (64"
	say "bytes: a message); fifo: clear to send in the sender's memory;"
	say "hand: messages with address and key; copied: messages and copies."
	say
	late_tables tcp 8 cwrite rtr read fifo hand copied
	polls+=("$POLLS") computes+=("$COMPUTES")
	late_tables verbs 7 cwrite read fifo hand copied
	polls+=("$POLLS") computes+=("$COMPUTES")
	if at_most "${polls[0]}" $LATE_POLLS_GOAL &&
	   at_most "${polls[1]}" $LATE_POLLS_GOAL &&
	   at_most "${computes[0]}" $LATE_COMPUTES_GOAL &&
	   at_most "${computes[1]}" $LATE_COMPUTES_GOAL; then
		met=yes
	fi
	result "where the sender polls ${polls[0]} (tcp), ${polls[1]} (verbs) times the best other way without a copy, where it computes ${computes[0]}, ${computes[1]}" \
		"<= $LATE_POLLS_GOAL, <= $LATE_COMPUTES_GOAL" $met
}
