#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_trace.sh: what FI_OFI_MRRC_TRACE records of a run is what the provider
# counted, and what fi_mrrc_sim makes of it is what the provider did.  Ends
# with "N passed, N failed".

# shellcheck source=fabtests/scripts/testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"

readonly SIZE=1M COUNT=64
readonly POLICIES="lru lru:pieces=4 mre-fig4:pieces=4 gdl"
readonly COLUMNS="requests,hits,registrations,deregistrations,evictions,splits,merges"

usage()
{
	cat <<-EOT
	Usage: $ME [-b BINDIR] [PROVIDER]

	Records functional tests over PROVIDER (default: tcp;ofi_mrrc). BINDIR:
	where the programs are (default: PATH).
	EOT
}

# recorded PROGRAM ARGUMENT...: runs it with a trace; its output is in $DIR/out,
# its one trace in $FILE.
recorded()
{
	local program=$1 rc

	shift
	rm -f "$DIR"/trace.* "$DIR/stats"
	FI_LOG_LEVEL=warn FI_OFI_MRRC_TRACE=$DIR/trace.%p \
		FI_OFI_MRRC_STATS_FILE=$DIR/stats "${BIN}fi_mrrc_$program" \
		"$@" >"$DIR/out" 2>&1
	rc=$?
	if [ $rc -ne 0 ]; then
		tail -n 5 "$DIR/out"
		return 1
	fi
	FILE=$(find "$DIR" -name 'trace.*')
	[ -s "$FILE" ] || fail "not one file: $FILE"
}

# count OPTION...: prints the number of requests in $FILE
count()
{
	"${BIN}fi_mrrc_trace" -f json "$@" "$FILE" | wc -l
}

# sum NAME: prints the sum of a counter over the domains of the run
sum()
{
	grep -o "\"$1\": [0-9]*" "$DIR/stats" |
		awk '{ sum += $2 } END { print sum + 0 }'
}

same()
{
	[ "$2" = "$3" ] || fail "$1: recorded $2, counted $3"
}

# Prints the number of requests that are not looked up: those for no valid
# range, and the core's own.
nonsense()
{
	"${BIN}fi_mrrc_trace" -f csv --result=failed "$FILE" |
		awk -F, 'NR > 1 && ($2 == "0x0" || $3 == 0 || $3 > 9e18 ||
			(length($2) == 18 && $2 ~ /^0x[89a-f]/) ||
			$5 ~ /[+]/)' | wc -l
}

# Every lookup of every domain is in the trace, with the same result.
counts()
{
	same hits "$(count --result=hit)" "$(sum hits)" &&
		same misses $(($(count --result=miss,failed,copy) - $(nonsense))) \
			"$(sum misses)" || return 1
	[ "$(sum lookups)" -gt 0 ] || fail "nothing was looked up"
}

# ended ALLOWED: all holds have ended, except for at most ALLOWED
ended()
{
	local open

	open=$("${BIN}fi_mrrc_trace" -f csv --result=hit,miss "$FILE" |
		awk -F, 'NR > 1 && $8 < $7' | wc -l)
	[ "$open" -le "$1" ] || fail "$open requests did not end"
}

# The simulator runs on the recorded trace.
test_simulated()
{
	local policy=$1 provider simulator

	# by the costs of this device, which the trace has; the simulator
	# copies only if it is told to
	export FI_OFI_MRRC_BOUNCE_SIZE=0 FI_OFI_MRRC_POLICY=$policy \
		FI_OFI_MRRC_CACHE_MAX_SIZE=$SIZE \
		FI_OFI_MRRC_CACHE_MAX_COUNT=$COUNT
	recorded split -p "$PROVIDER" -w /dev/null && counts && ended 0
	result=$?
	unset FI_OFI_MRRC_BOUNCE_SIZE FI_OFI_MRRC_POLICY \
		FI_OFI_MRRC_CACHE_MAX_SIZE \
		FI_OFI_MRRC_CACHE_MAX_COUNT
	[ $result -eq 0 ] || return 1
	provider=$(sed -n 's/^counters: //p' "$DIR/out")
	"${BIN}fi_mrrc_sim" -q -f csv -p "$policy" -s $SIZE --counts=$COUNT \
		"$FILE" >"$DIR/sim"
	# without a cache each request is a registration
	[ "$("${BIN}fi_mrrc_sim" -q -f csv --gain "$FILE" |
		sed -n 's/.*,none,\([0-9]*\),.*/\1/p')" = \
		"$(sed -n 2p "$DIR/sim" | cut -d, -f 8)" ] ||
		{ fail "--gain counts other requests"; return 1; }
	grep -q ',trace,' "$DIR/sim" ||
		{ fail "not simulated with the trace's costs"; return 1; }
	simulator=$(columns "$COLUMNS" <"$DIR/sim")
	[ -n "$provider" ] && [ "$provider" = "$simulator" ] && return 0
	echo "  $COLUMNS"
	echo "  provider:  ${provider:-nothing}"
	fail "simulator: ${simulator:-nothing}"
}

# Where nothing is recorded, the tool says why.
test_empty()
{
	# over verbs domains register
	[[ $PROVIDER != *verbs* ]] || return 0
	FI_OFI_MRRC_REGISTER=auto recorded live -i -p "$PROVIDER" </dev/null ||
		return 1
	"${BIN}fi_mrrc_trace" -s "$FILE" >/dev/null 2>"$DIR/err" || return 1
	grep -q "registered nothing.*FI_OFI_MRRC_REGISTER=always" "$DIR/err" ||
		{ cat "$DIR/err"; fail "does not say why"; }
}

# counted PROGRAM ARGUMENT...: records any test, and compares the counters
counted()
{
	recorded "$@" && counts
}

# The provider's cost model is in the trace, and the simulator uses it.
test_cost()
{
	local cost=reg_page=1234.5:reg=60000:dereg_page=.25:dereg=8000:copy_page=777

	FI_OFI_MRRC_COST=$cost recorded rma -p "$PROVIDER" || return 1
	"${BIN}fi_mrrc_trace" -s "$FILE" | grep -qF -- \
		"1234 * p + 60000 ns, deregistering 0 * p + 8000, copying 777" ||
		{ fail "not in the summary"; return 1; }
	# kept by a conversion
	"${BIN}fi_mrrc_trace" -f raw -o "$DIR/raw" "$FILE"
	"${BIN}fi_mrrc_trace" -s -f json "$DIR/raw" | grep -qF '"reg_page": 1234.5,' ||
		{ fail "lost"; return 1; }
	echo $cost >"$DIR/model"
	"${BIN}fi_mrrc_sim" -q -f csv -p gdl -s 64K "$FILE" >"$DIR/a" &&
		"${BIN}fi_mrrc_sim" -q -f csv -p gdl -s 64K \
			-m "trace,file:$DIR/model" "$FILE" >"$DIR/b" ||
		return 1
	if [ "$(sed -n 2p "$DIR/a" | cut -d, -f 5-)" != \
		"$(sed -n 3p "$DIR/b" | cut -d, -f 5-)" ] ||
	   ! head -n 2 "$DIR/b" | cmp -s - "$DIR/a"; then
		cat "$DIR/a" "$DIR/b"
		fail "another model"
		return 1
	fi
	# a CSV file has no model
	"${BIN}fi_mrrc_trace" -f csv -o "$DIR/csv" "$FILE"
	"${BIN}fi_mrrc_sim" -q -p gdl -s 64K "$DIR/csv" |
		grep -q 'model ou2009' || { fail "no default"; return 1; }
	refused 1 "no cost model was recorded" \
		"${BIN}fi_mrrc_sim" -m trace "$DIR/csv" &&
		refused 2 "is no model" \
			"${BIN}fi_mrrc_sim" -m "file:$DIR/a" "$DIR/csv" &&
		refused 2 "No such file" \
			"${BIN}fi_mrrc_sim" -m "file:$DIR/none" "$DIR/csv"
}

test_msg() { counted msg -p "$PROVIDER" && ended 1000000; }
# hits among them, one or several to a read
test_completions() { counted completions -p "$PROVIDER" && ended 0; }
test_rma() { counted rma -p "$PROVIDER"; }
test_atomic() { counted atomic -p "${PROVIDER/;/;ofi_rxm;}"; }
test_mr() { counted mr -p "$PROVIDER"; }
test_readonly() { counted readonly -p "$PROVIDER"; }
test_threads() { counted threads -p "$PROVIDER"; }
test_unmap() { counted unmap -p "$PROVIDER"; }

test_hook()
{
	FI_HOOK=mrrc recorded msg -R -p "$PROVIDER" && counts || return 1
	[ "$(count --op=reg)" -eq "$(count)" ] || fail "not registrations only"
}

# Peers and call sites, and those before.
test_callers()
{
	recorded split -p "$PROVIDER" || return 1
	"${BIN}fi_mrrc_trace" -f csv --op=write,read "$FILE" | awk -F, '
		NR == 1 { next }
		{ site[$13]++; peer[$11]++; op[$10]++ }
		NR > 2 && $14 != last { print "  previous is not"; exit 1 }
		{ last = $13 }
		END {
			if (length(site) != 2 || length(peer) != 1 ||
			    length(op) != 2) {
				print "  not two sites, or one peer"
				exit 1
			}
		}'
}

# A forked child has its own file, with %p; without, none, nor does it touch
# its parent's.
test_fork()
{
	rm -f "$DIR"/trace.*
	FI_OFI_MRRC_TRACE=$DIR/trace.%p FI_LOG_LEVEL=warn \
		"${BIN}fi_mrrc_fork" -p "$PROVIDER" >"$DIR/out" 2>&1 ||
		{ cat "$DIR/out"; return 1; }
	for FILE in "$DIR"/trace.*; do
		count >/dev/null || fail "$FILE cannot be read" || return 1
	done
	rm -f "$DIR"/trace.*
	FI_OFI_MRRC_TRACE=$DIR/trace.one FI_LOG_LEVEL=warn \
		"${BIN}fi_mrrc_fork" -p "$PROVIDER" >"$DIR/out" 2>&1 ||
		{ cat "$DIR/out"; return 1; }
	FILE=$DIR/trace.one
	[ "$("${BIN}fi_mrrc_trace" -f csv "$FILE" | tail -n +2 |
		cut -d, -f9 | sort -u | wc -l)" -le 2 ] ||
		fail "others wrote to the parent's file"
}

# warned TEXT: the run went on, and logged TEXT once
warned()
{
	local text=$1

	shift
	env FI_LOG_LEVEL=warn "$@" "${BIN}fi_mrrc_msg" -p "$PROVIDER" \
		>"$DIR/out" 2>&1 || { tail "$DIR/out"; return 1; }
	[ "$(grep -c "$text" "$DIR/out")" -eq 1 ] ||
		{ cat "$DIR/out"; fail "does not say once: $text"; }
}

test_refused()
{
	warned "not recorded in $DIR/none/x: No such file" \
		FI_OFI_MRRC_TRACE="$DIR/none/x" &&
		warned "not recorded in /dev/null: not a regular file" \
			FI_OFI_MRRC_TRACE=/dev/null &&
		warned "FI_OFI_MRRC_TRACE_SIZE: \"much\"" \
			FI_OFI_MRRC_TRACE_SIZE=much
}

# A file that is not the user's own is not touched; a new one is private.
test_others()
{
	local name

	echo precious >"$DIR/precious"
	ln -sf precious "$DIR/link"
	ln -f "$DIR/precious" "$DIR/name"
	warned "not recorded in $DIR/link: a symbolic link" \
		FI_OFI_MRRC_TRACE="$DIR/link" &&
		warned "not recorded in $DIR/name: another user's" \
			FI_OFI_MRRC_TRACE="$DIR/name" &&
		warned "not written to $DIR/link: a symbolic link" \
			FI_OFI_MRRC_STATS_FILE="$DIR/link" || return 1
	[ "$(cat "$DIR/precious")" = precious ] ||
		fail "a file was overwritten" || return 1
	(umask 0 && recorded msg -p "$PROVIDER") || return 1
	for name in "$DIR"/trace.* "$DIR/stats"; do
		[ "$(stat -c %a "$name")" = 600 ] ||
			fail "$name: mode $(stat -c %a "$name")" || return 1
	done
}

# A program with another group's rights writes no file that its caller names.
test_secure()
{
	local group

	group=$(id -G | tr ' ' '\n' | grep -vx "$(id -g)" | head -n 1)
	rm -f "$DIR"/trace.* "$DIR"/{stats,code}
	cp "$(command -v "${BIN}fi_mrrc_msg")" "$DIR/program" || return 1
	if ! chgrp "${group:-65534}" "$DIR/program" 2>/dev/null ||
	   ! chmod g+s "$DIR/program" || ! "$DIR/program" -p "$PROVIDER" \
		>"$DIR/out" 2>&1; then
		echo "  not tried: needs a second group, and no nosuid"
		return 0
	fi
	FI_LOG_LEVEL=warn FI_OFI_MRRC_TRACE=$DIR/trace.%p \
		FI_OFI_MRRC_STATS_FILE=$DIR/stats \
		FI_OFI_MRRC_CODE_FILE=$DIR/code FI_OFI_MRRC_PROBE=proven \
		FI_OFI_MRRC_COST=file:$DIR/precious \
		"$DIR/program" -p "$PROVIDER" >"$DIR/out" 2>&1 ||
		{ cat "$DIR/out"; return 1; }
	[ "$(grep -c 'is ignored: this program has rights' "$DIR/out")" -eq 4 ] ||
		{ cat "$DIR/out"; fail "does not say so"; return 1; }
	[ -z "$(find "$DIR" -name 'trace.*' -o -name stats -o -name code)" ] ||
		fail "a file was written"
}

test_busy()
{
	: >"$DIR/trace.busy"
	(
		flock 8
		warned "another process writes it: put %p" \
			FI_OFI_MRRC_TRACE="$DIR/trace.busy"
	) 8<"$DIR/trace.busy"
}

# The trace has no more entries than allowed; the others are counted.
test_limit()
{
	local dropped

	FT_PERCENT=100 FI_OFI_MRRC_TRACE_SIZE=100K \
		recorded split -p "$PROVIDER" || return 1
	[ "$(stat -c %s "$FILE")" -le 102400 ] || fail "longer than 100K" ||
		return 1
	[ "$(grep -c "TRACE_SIZE is reached" "$DIR/out")" -eq 1 ] ||
		fail "does not say so once" || return 1
	dropped=$("${BIN}fi_mrrc_trace" -s -f json "$FILE" |
		sed -n 's/.*"dropped": \([0-9]*\).*/\1/p')
	same "lookups and what was dropped" \
		$(($(count --result=hit,miss,failed,copy) + dropped)) \
		"$(sum lookups)"
}

FILE=
test_options "$@"
# what is deregistered is counted at once
export FI_OFI_MRRC_HELPER=never
TESTS=()
for policy in $POLICIES; do
	TESTS+=("simulated $policy")
done
run_tests "${TESTS[@]}" cost empty msg completions rma atomic mr readonly threads unmap hook \
	callers fork refused others secure busy limit
