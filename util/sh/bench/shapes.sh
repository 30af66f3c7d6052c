# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh shapes: how programs use memory for transfers, by shapes_bench in the
# guest.

readonly SHAPES_GOAL=1.02 # the hook, of libfabric's cache

# A row of each shape: the times of the ways, then their registrations; "-" where
# a way does not fit.
shapes_rows()
{
	awk '
		BEGIN { n = split("each cache hook null once", way) }
		NF == 4 {
			if (!($1 in seen)) {
				seen[$1] = 1
				rows[++count] = $1
			}
			time[$1, $2] = sprintf("%.1f", $3)
			made[$1, $2] = $4
		}
		function or_not(value) { printf " %s", value == "" ? "-" : value }
		# the ways have a process each, and come one after the other
		END {
			for (i = 1; i <= count; i++) {
				printf "%s", rows[i]
				for (k = 1; k <= n; k++)
					or_not(time[rows[i], way[k]])
				for (k = 1; k <= n; k++)
					or_not(made[rows[i], way[k]])
				print ""
			}
		}' "$1"
}

bench_shapes()
{
	local out=$DATA/shapes/out few=() worst unit="1000 instructions" met=no

	prepare
	program fabtests/benchmarks/shapes_bench
	if smoking; then
		unit=microseconds few=(-I 1)
	fi
	# shellcheck disable=SC2034 # bench.sh's
	GUEST_OPTIONS=(-i -c 1)
	in_guest 1500 "$out" "one way after the other" "$PROGRAM" -c "$CORE" \
		"${few[@]}"
	say
	say "Set-up: $(setup_line), Soft-RoCE in an emulated guest of one"
	say "processor; $unit and registrations of a transfer, first uses"
	say "included: registering each time, over libfabric's cache, with"
	say "FI_HOOK=mrrc, null descriptors over ofi_mrrc, all registered once"
	say "(fresh: fi_mr_alloc)."
	say
	printf '  %-11s %8s %8s %8s %8s %8s   %5s %5s %5s %5s %5s\n' shape each \
		cache hook null once each cache hook null once
	table 8 "* N N N * N Z Z Z * Z" < <(shapes_rows "$out" | awk '{
		printf "  %-11s %8s %8s %8s %8s %8s   %5s %5s %5s %5s %5s\n",
			$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11
	}')
	worst=$(shapes_rows "$out" | awk '
		$3 > 0 && $4 / $3 > worst { worst = $4 / $3 }
		END { printf "%.3f\n", worst }')
	at_most "$worst" $SHAPES_GOAL && met=yes
	result "the hook $worst of libfabric's cache at most" \
		"<= $SHAPES_GOAL" $met
}
