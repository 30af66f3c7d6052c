#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_sim.sh: the simulator counts what the provider counts: the requests of
# fi_mrrc_split, recorded, are replayed under the same policy and limits.
# Ends with "N passed, N failed".

set -u
ME=${0##*/}

readonly SIZE=1M COUNT=64
# as many pieces as a core takes buffers in one call, at most: it may be 4
readonly POLICIES="lru lru:pieces=4 lru:merge=1 fmrd fmrd:pieces=3:batch=5
	mre-text:pieces=4 mre-fig4:pieces=4:resort=100:evict=20 gdsf
	gdsf:history=0 gdsf:pieces=2:batch=1 gdl gdl:duel=0
	gdl:pieces=1"
readonly COLUMNS="requests,hits,registrations,deregistrations,evictions,splits,merges"

usage()
{
	cat <<-EOT
	Usage: $ME [-b BINDIR] [PROVIDER]

	Compares the counters of the provider and of fi_mrrc_sim, over PROVIDER
	(default: tcp;ofi_mrrc). BINDIR: where the programs are (default: PATH).
	EOT
}

# The columns of a CSV report with a head and one row, as words.
columns()
{
	awk -F, -v want="$COLUMNS" '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
		NR == 2 {
			n = split(want, name, ",")
			for (i = 1; i <= n; i++)
				printf "%s%d", (i > 1 ? " " : ""), $at[name[i]]
			print ""
		}'
}

compare()
{
	local policy=$1 provider simulator

	# the simulator's default model, and no thread besides
	if ! FI_OFI_MRRC_COST=ou2009 FI_OFI_MRRC_HELPER=never \
		FI_OFI_MRRC_POLICY=$policy \
		FI_OFI_MRRC_CACHE_MAX_SIZE=$SIZE \
		FI_OFI_MRRC_CACHE_MAX_COUNT=$COUNT "${BIN}fi_mrrc_split" \
		-p "$PROVIDER" -w "$DIR/trace.csv" >"$DIR/out" 2>&1; then
		cat "$DIR/out"
		return 1
	fi
	provider=$(sed -n 's/^counters: //p' "$DIR/out")
	simulator=$("${BIN}fi_mrrc_sim" -q -f csv -p "$policy" -s $SIZE \
		--counts=$COUNT "$DIR/trace.csv" | columns)
	[ -n "$provider" ] && [ "$provider" = "$simulator" ] && return 0
	echo "  $COLUMNS"
	echo "  provider:  ${provider:-nothing}"
	echo "  simulator: ${simulator:-nothing}"
	return 1
}

BIN='' PROVIDER='tcp;ofi_mrrc'
while [ $# -gt 0 ]; do
	case $1 in
	-b) BIN=${2:?}/; shift 2 ;;
	-h|--help) usage; exit 0 ;;
	-*) usage >&2; exit 2 ;;
	*) PROVIDER=$1; shift ;;
	esac
done
DIR=$(mktemp -d "${TMPDIR:-/tmp}/test_sim.XXXXXX") || exit 2
trap 'rm -rf "$DIR"' EXIT
passed=0 failed=0
for policy in $POLICIES; do
	if compare "$policy"; then
		echo "PASS $policy"
		passed=$((passed + 1))
	else
		echo "FAIL $policy"
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
