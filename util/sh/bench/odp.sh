# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh odp: on-demand paging beside registered pages, by odp_bench in a guest
# with a kernel whose Soft-RoCE has it.

# of memory that is registered once with on-demand paging, where it is reused
readonly ODP_GOAL=1.05

# A row of each size and kind; "!" after the time of a way that brought other
# data than the memory had, "-" where the device does not have the way.
odp_rows()
{
	awk '
		BEGIN { n = split("each cache odp-each pinned odp null", way) }
		NF == 6 && $1 ~ /^[0-9]+K$/ {
			row = $1 " " $2
			if (!(row in seen)) {
				seen[row] = 1
				rows[++count] = row
			}
			time[row, $3] = sprintf("%.1f", $4) ($6 > 0 ? "!" : "")
		}
		# the ways have a process each, and come one after the other
		END {
			for (i = 1; i <= count; i++) {
				printf "%s", rows[i]
				for (k = 1; k <= n; k++) {
					value = time[rows[i], way[k]]
					printf " %s", value == "" ? "-" : value
				}
				print ""
			}
		}' "$1"
}

bench_odp()
{
	local out=$DATA/odp/out worst unit met=no

	prepare
	program fabtests/benchmarks/odp_bench
	unit="1000 instructions"
	smoking && unit=microseconds
	# shellcheck disable=SC2034 # bench.sh's
	GUEST_OPTIONS=(-i -c 1 -k trixie-backports)
	in_guest 1200 "$out" "one way after the other" "$PROGRAM" -c "$CORE"
	say
	say "Set-up: $(setup_line), Soft-RoCE in an emulated guest of one"
	say "processor, with the kernel of Debian 13's backports; $unit of a"
	say "write, with mapping and unmapping, but without filling the memory:"
	say "registering each time, over libfabric's cache, registering each"
	say "time with on-demand paging (ODP), all memory registered once, the"
	say "same with ODP, null descriptors over ofi_mrrc. The target is"
	say "registered without ODP. '!': other data arrived."
	say
	printf '  %-6s %-9s %9s %9s %9s %9s %9s %9s\n' size memory each cache \
		odp-each pinned odp null
	table 16 "* * N N * * * N" < <(odp_rows "$out" | awk '{
		printf "  %-6s %-9s %9s %9s %9s %9s %9s %9s\n", $1, $2, $3, $4,
			$5, $6, $7, $8
	}')
	worst=$(odp_rows "$out" | awk '
		$2 ~ /^(reused|forked)$/ && $7 > 0 && $8 / $7 > worst {
			worst = $8 / $7
		}
		END { printf "%.3f\n", worst }')
	at_most "$worst" $ODP_GOAL && met=yes
	result "reused memory $worst of ODP at most" "<= $ODP_GOAL" $met
}
