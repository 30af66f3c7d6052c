#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_sim.sh: the simulator counts what the provider counts: the requests of
# fi_mrrc_split, recorded, are replayed under the same policy and limits.
# Ends with "N passed, N failed".

# shellcheck source=fabtests/scripts/testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"

readonly SIZE=1M COUNT=64
# as many pieces as a core takes buffers in one call, at most: it may be 4
readonly POLICIES="lru lru:pieces=4 lru:merge=1 lru:batch=16
	lru:pieces=3:batch=5 mre-text:pieces=4
	mre-fig4:pieces=4:resort=100:evict=20 gdl gdl:duel=0 gdl:pieces=1
	gdl:pieces=2:batch=1"
readonly COST=reg_page=770:reg=7420:dereg_page=220:dereg=1100:batch=1
readonly COLUMNS="requests,hits,registrations,deregistrations,evictions,splits,merges"

usage()
{
	cat <<-EOT
	Usage: $ME [-b BINDIR] [PROVIDER]

	Compares the counters of the provider and of fi_mrrc_sim, over PROVIDER
	(default: tcp;ofi_mrrc). BINDIR: where the programs are (default: PATH).
	EOT
}

# Replays with both, under one policy.
test_policy()
{
	local policy=$1 provider simulator

	# the simulator's default model, and no thread besides
	if ! FI_OFI_MRRC_COST=$COST FI_OFI_MRRC_HELPER=never \
		FI_OFI_MRRC_POLICY=$policy \
		FI_OFI_MRRC_CACHE_MAX_SIZE=$SIZE \
		FI_OFI_MRRC_CACHE_MAX_COUNT=$COUNT "${BIN}fi_mrrc_split" \
		-p "$PROVIDER" -w "$DIR/trace.csv" >"$DIR/out" 2>&1; then
		cat "$DIR/out"
		return 1
	fi
	provider=$(sed -n 's/^counters: //p' "$DIR/out")
	simulator=$("${BIN}fi_mrrc_sim" -q -f csv -p "$policy" -s $SIZE \
		--counts=$COUNT "$DIR/trace.csv" | columns "$COLUMNS")
	[ -n "$provider" ] && [ "$provider" = "$simulator" ] && return 0
	echo "  $COLUMNS"
	echo "  provider:  ${provider:-nothing}"
	echo "  simulator: ${simulator:-nothing}"
	return 1
}

test_options "$@"
TESTS=()
for policy in $POLICIES; do
	TESTS+=("policy $policy")
done
run_tests "${TESTS[@]}"
