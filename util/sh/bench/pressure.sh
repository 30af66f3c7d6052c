# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh pressure: writes from more memory than stays registered, by
# pressure_bench in the guest.

readonly PRESSURE_GOAL=1.05	# of libfabric's cache, in any row
readonly PRESSED_GOAL=0.9	# beyond the limit
PRESSURE_LIMITS=()
smoking && PRESSURE_LIMITS=(-b 8M -n 8)

# Its lines, of which others may be in the file.
pressure_lines()
{
	awk 'NF == 18 && $3 ~ /^(even|zipf)$/' "$1"
}

# Of the ratio in column N: the worst row, and the geometric mean beyond the
# limit; and what that would be if no write had to be registered or copied for:
# the write alone is that of libfabric's cache where half of the limit is used.
pressure_sums()
{
	pressure_lines "$1" | awk -v n="$2" '
		{
			if ($n > worst)
				worst = $n
			if ($2 == "0.5" && $3 == "even")
				alone[$1] = $5
			if ($2 <= 1)
				next
			sum += log($n)
			count++
			if ($1 == "mixed")
				next
			least += log(alone[$1] / $5)
			each += log($n)
			same++
		}
		END {
			if (count && same)
				printf "%.3f %.3f %.3f %.3f\n", worst,
					exp(sum / count), exp(each / same),
					exp(least / same)
		}'
}

bench_pressure()
{
	local out=$DATA/pressure/out worst pressed same least cold unit met=no

	prepare
	program fabtests/benchmarks/pressure_bench
	unit="1000 instructions"
	smoking && unit=microseconds
	# shellcheck disable=SC2034 # bench.sh's
	GUEST_OPTIONS=(-i -c 1)
	in_guest 1200 "$out" "the three in turn" "$PROGRAM" -c "$CORE" \
		"${PRESSURE_LIMITS[@]}"
	say
	say "Set-up: $(setup_line), Soft-RoCE in an emulated guest of one"
	say "processor; $unit of user code and kernel, all threads, each"
	say "RMA write, one at a time: registering each time, over libfabric's"
	say "cache, and null descriptors over ofi_mrrc. Limits of 64 regions and"
	say "32 MiB; the set is so many times that. Steady: after writes until"
	say "nothing changes; whole: from the first on, in new domains."
	say
	printf '  %-5s %4s %-4s %26s%8s %18s\n' '' '' '' steady '' whole
	printf '  %-5s %4s %-4s %8s %8s %8s %7s %8s %8s %7s\n' size set draw \
		each cache null ratio cache null ratio
	table 44 "* N * N N N N N N N" < <(pressure_lines "$out" | awk '{
		printf "  %-5s %4s %-4s %8.1f %8.1f %8.1f %7.3f %8.1f %8.1f %7.3f\n",
			$1, $2, $3, $4, $5, $6, $7, $8, $9, $10
	}')
	say
	say "How many were registered by libfabric's cache and by ofi_mrrc, and"
	say "copied by the latter: in the whole run, and of 100 steady writes."
	say "Between them so many writes until nothing changed (+: it still did)."
	say
	printf '  %-5s %4s %-4s %6s %6s %6s %6s %7s %6s %6s %6s\n' size set draw \
		writes cache null copies between cache null copies
	table 44 "* N * N Z Z Z * Z Z Z" < <(pressure_lines "$out" | awk '{
		printf "  %-5s %4s %-4s %6s %6s %6s %6s %7s %6s %6s %6s\n", $1,
			$2, $3, $11, $12, $13, $14, $15, $16, $17, $18
	}')
	read -r worst pressed same least < <(pressure_sums "$out" 7)
	read -r cold _ < <(pressure_sums "$out" 10)
	say
	say "Beyond the limit, steady: $pressed of libfabric's cache (geometric"
	say "mean); $same without mixed sizes, where it would be $least if no"
	say "write needed a registration or a copy."
	at_most "$worst" $PRESSURE_GOAL && at_most "$cold" $PRESSURE_GOAL &&
		at_most "$pressed" $PRESSED_GOAL && met=yes
	result "worst row $worst steady, $cold whole; beyond the limit $pressed of libfabric's cache" \
		"rows <= $PRESSURE_GOAL, beyond the limit <= $PRESSED_GOAL" $met
}
