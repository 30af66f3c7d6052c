# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh rendezvous: large messages over ofi_rxm, by rndv_bench in the guest.

readonly RNDV_GOAL=0.98
RNDV_ROUNDS=3 RNDV_COUNT=20
smoking && RNDV_ROUNDS=1 RNDV_COUNT=2

# In the guest: each stack in turn, so that what changes there hits all.
# rndv_guest CORE ROUNDS PROGRAM...
rndv_guest()
{
	local under=$1 rounds=$2 round

	shift 2
	set -eo pipefail
	for ((round = 0; round < rounds; round++)); do
		"$@" -p "$under;ofi_rxm" | sed 's/^/raw /'
		FI_HOOK=mrrc "$@" -p "$under;ofi_rxm" | sed 's/^/hook /'
		"$@" -p "$under;ofi_rxm;ofi_mrrc" | sed 's/^/over /'
	done
	FI_HOOK=mrrc FI_LOG_LEVEL=info FI_LOG_PROV=ofi_mrrc \
		"$@" -p "$under;ofi_rxm" 2>&1 |
		sed -n "s/.*> $under: \([0-9]* lookups, [0-9]* hits\).*/counted \1/p"
}

# rndv_median NAME FILE
rndv_median()
{
	sed -n "s/^$1 median //p" "$2" | sort -n |
		awk '{ t[NR] = $1 } END { print t[int((NR + 1) / 2)] }'
}

ratio()
{
	awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f", a / b }'
}

bench_rendezvous()
{
	local out=$DATA/rendezvous/out raw hook over counted met=no
	local unit="1000 instr."

	smoking && unit=us

	prepare
	program fabtests/benchmarks/rndv_bench
	# shellcheck disable=SC2034 # bench.sh's
	GUEST_OPTIONS=(-i -c 1)
	in_guest 1200 "$out" "raw and both forms in turn" bash -c \
		"$(declare -f rndv_guest); rndv_guest \"\$@\"" rndv "$CORE" \
		"$RNDV_ROUNDS" "$PROGRAM" -I "$RNDV_COUNT"
	raw=$(rndv_median raw "$out")
	hook=$(rndv_median hook "$out")
	over=$(rndv_median over "$out")
	if [ -z "$raw" ] || [ -z "$hook" ] || [ -z "$over" ]; then
		broken "nothing was measured of a stack"
	fi

	counted=$(sed -n 's/^counted //p' "$out" | paste -sd+)
	say
	say "Set-up: $(setup_line), Soft-RoCE in an emulated guest"
	say "of one processor, whose clock counts instructions;"
	say "1 MiB from plain buffers, both ends in one thread, medians of"
	say "$RNDV_ROUNDS runs of each, interleaved. Raw has libfabric's cache."
	say
	printf '  %-28s %14s %10s\n' stack "$unit/message" "raw / it"
	printf '  %-28s %14s\n' "$CORE;ofi_rxm" "$raw"
	table 2 "... N N" < <(
		printf '  %-28s %14s %10.3f\n' "the same, FI_HOOK=mrrc" \
			"$hook" "$(ratio "$raw" "$hook")" \
			"$CORE;ofi_rxm;ofi_mrrc" "$over" \
			"$(ratio "$raw" "$over")")
	say "  ofi_rxm's registrations with the hook: ${counted:-none seen}"
	say
	if [ -n "$counted" ] &&
	   at_most $RNDV_GOAL "$(ratio "$raw" "$hook")" &&
	   at_most $RNDV_GOAL "$(ratio "$raw" "$over")"; then
		met=yes
	fi
	result "hook $(ratio "$raw" "$hook"), over ofi_mrrc $(ratio "$raw" "$over")" \
		"both >= $RNDV_GOAL of raw" $met
}
