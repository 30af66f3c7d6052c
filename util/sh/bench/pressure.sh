# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh pressure: writes from more memory than stays registered, by
# pressure_bench in the guest.

readonly PRESSURE_GOAL=1.05	# of libfabric's cache, in any row
PRESSURE_LIMITS=()
smoking && PRESSURE_LIMITS=(-b 8M -n 8)

bench_pressure()
{
	local out=$DATA/pressure/out worst pressed each met=no

	prepare
	program fabtests/benchmarks/pressure_bench
	in_guest 1200 "$out" "the three in turn" "$PROGRAM" -c "$CORE" \
		"${PRESSURE_LIMITS[@]}"
	say
	say "Set-up: $(setup_line), Soft-RoCE in an emulated guest;"
	say "RMA writes, one at a time, microseconds each: registering each"
	say "time, over libfabric's cache, and null descriptors over ofi_mrrc."
	say "Limits of 64 regions and 32 MiB; the set is so many times that."
	say
	printf '  %-6s %4s %-5s %11s %11s %11s %11s\n' size set draw each \
		cache null null/cache
	table 44 "* N * N N N N" < <(awk 'NF == 7 && $3 ~ /^(even|zipf)$/ {
		printf "  %-6s %4s %-5s %11.1f %11.1f %11.1f %11.3f\n", \
			$1, $2, $3, $4, $5, $6, $7
	}' "$out")
	# worst row; geometric means beyond the limit, of cache and of each
	read -r worst pressed each < <(awk 'NF == 7 && $3 ~ /^(even|zipf)$/ {
			if ($7 > worst)
				worst = $7
			if ($2 > 1) {
				sum += log($7)
				each += log($6 / $4)
				n++
			}
		}
		END {
			if (n)
				printf "%.3f %.3f %.3f\n", worst,
					exp(sum / n), exp(each / n)
		}' "$out")
	say
	say "Beyond the limit: $pressed of libfabric's cache, $each of"
	say "registering each time (geometric means)."
	at_most "$worst" $PRESSURE_GOAL && at_most "$pressed" 1 && met=yes
	result "worst row $worst, beyond the limit $pressed of libfabric's cache" \
		"worst <= $PRESSURE_GOAL, beyond the limit <= 1" $met
}
