# shellcheck shell=bash disable=SC2153 # common.sh sets BUILD
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Stages of test.sh that look for faults by change, chance and time: mutations,
# fuzzing, analyzers, benchmarks for seconds, long runs.  Sourced, after stages.sh.

stage_mutations()
{
	need rsync || {
		fail "the copies cannot be made"
		return
	}
	need_build unit || return
	# shellcheck disable=SC2046 # options
	script "protections removed one by one" mutate \
		"$SCRIPTS/mutate.sh" -w "$BUILD/mutations" -b "$BUILD/unit" \
		$(mutate_options) ${TEST:+"$TEST"}
}

stage_smoke()
{
	need_build unit || return
	script "benchmarks, seconds each" smoke "$TOP/bench.sh" --smoke -b unit \
		${TEST:+"$TEST"}
}

# The tests again and again, beside one process that runs all the time.
stage_soak()
{
	local minutes=${SOAK_MINUTES:-60} round=0 before pid

	need_build soak --enable-debug || return
	env "$(provider_path soak)" FT_SECONDS=$((60 * minutes)) \
		"$RUNFABTESTS" -v -t soak \
		-b "$BUILD/soak/prefix/bin" -T $((60 * minutes + 600)) \
		>"$LOGS/soak-process.log" 2>&1 &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		round=$((round + 1))
		before=$FAILED
		say "   round $round"
		FT_SEED=$round run_fabtests soak "tcp;ofi_mrrc" -x "$SLOW,soak"
		run_test_alloc soak 60
		HEAP_OPERATIONS=2000000 check_in soak
		[ "$FAILED" -eq "$before" ] || break
	done
	check "nothing grows in $minutes minutes" wait "$pid"
	sed 's/^/   /' "$LOGS/soak-process.log"
}

# Some minutes of processor time: provider and tools, without their tests.
stage_analyze()
{
	if ! need "$BUILD_PACKAGES clang cppcheck" ||
		! TARGETS=config.h build analyze; then
		fail "the build failed"
		return
	fi
	one_of gcc clang cppcheck
	script "what ${WAYS[*]} find" analyze \
		"$TOP/util/sh/analyze.sh" "$BUILD/analyze" "${TEST:-${WAYS[@]}}"
}

# fuzz NAME WHAT CORPUS ARGUMENT...: fuzz_NAME of these sources, for some time,
# from the inputs in CORPUS on.
fuzz()
{
	local name=$1 what=$2 corpus=$3 dir=$BUILD/fuzz log=$LOGS/fuzz.log

	shift 3
	mkdir -p "$dir/corpus_$name"
	check "fuzz_$name builds" logged "clang" "$log" \
		clang -std=gnu11 -D_GNU_SOURCE -O1 -g \
		-fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=undefined -I"$dir" -I"$TOP/util" \
		-I"$TOP/prov/mrrc" -o "$dir/fuzz_$name" "$@"
	check "$what, ${FUZZ_SECONDS:-30} s" logged "fuzzing" "$log" \
		"$dir/fuzz_$name" -max_total_time="${FUZZ_SECONDS:-30}" \
		-artifact_prefix="$dir/" "$dir/corpus_$name" "$corpus"
}

stage_fuzz()
{
	local core=$TOP/prov/mrrc/core sim=$TOP/util/sim
	local serve=$TOP/util/serve fuzz=$TOP/prov/mrrc/test/fuzz

	if ! need "$BUILD_PACKAGES clang libclang-rt-dev" ||
		! TARGETS=config.h build fuzz; then
		fail "the build failed"
		return
	fi
	fuzz trace "traces" "$sim/test/corpus_trace" \
		"$sim"/{libfabric,lines,read,recorded,trace,write}.c \
		"$sim"/trace_{read,write}.c "$sim/test/fuzz_trace.c" \
		"$TOP"/util/trace/{records,show,show_summary,summary}.c \
		"$core"/{cost/cost,text/text,text/trace}.c -llzma -ljansson
	fuzz cw "peers" "$fuzz/corpus_cw" \
		"$core"/cw/cw{,_map,_state,_valid,_wire}.c "$fuzz/fuzz_cw.c"
	fuzz wire "file server" "$serve/test/corpus_wire" \
		"$serve/wire/wire.c" "$serve/test/fuzz_wire.c"
}

# Recorded bytes, changed, to the file server, its client and an application.
stage_wire()
{
	local limit=(-s "${WIRE_SECONDS:-90}")

	if ! need "binutils iproute2 python3" || ! need_build unit; then
		fail "python3 or binutils is missing, or the build failed"
		return
	fi
	need_asan || return
	[ -z "${WIRE_CONNECTIONS-}" ] || limit=(-n "$WIRE_CONNECTIONS")
	script "what strangers may send, seed ${FT_SEED:-1}" wire \
		"$SCRIPTS/test_wire.sh" "${limit[@]}" "$BUILD/unit" "$BUILD/asan"
}
