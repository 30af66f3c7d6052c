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

stage_fuzz()
{
	local dir=$BUILD/fuzz log=$LOGS/fuzz.log

	if ! need "$BUILD_PACKAGES clang libclang-rt-dev" ||
		! TARGETS=config.h build fuzz; then
		fail "the build failed"
		return
	fi
	mkdir -p "$dir/corpus"
	check "fuzz_trace builds" logged "clang" "$log" \
		clang -std=gnu11 -D_GNU_SOURCE -DSIM_LIBFUZZER -O1 -g \
		-fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=undefined -I"$dir" -I"$TOP/util" \
		-I"$TOP/prov/mrrc" -o "$dir/fuzz_trace" \
		"$TOP"/util/sim/{libfabric,lines,read,recorded,trace,write}.c \
		"$TOP"/util/sim/trace_{read,write}.c \
		"$TOP"/util/trace/{records,show,show_summary,summary}.c \
		"$TOP"/prov/mrrc/core/{cost/cost,text/trace}.c \
		"$TOP/util/sim/test/fuzz_trace.c" -llzma -ljansson
	check "traces, ${FUZZ_SECONDS:-30} s" logged "fuzzing" "$log" \
		"$dir/fuzz_trace" -max_total_time="${FUZZ_SECONDS:-30}" \
		-artifact_prefix="$dir/" "$dir/corpus" \
		"$TOP/util/sim/test/corpus_trace"
	check "fuzz_cw builds" logged "clang" "$log" \
		clang -std=gnu11 -D_GNU_SOURCE -DMRRC_LIBFUZZER -O1 -g \
		-fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=undefined -I"$TOP/prov/mrrc" \
		-o "$dir/fuzz_cw" "$TOP"/prov/mrrc/core/cw/cw{,_map,_state,_valid,_wire}.c \
		"$TOP/prov/mrrc/test/fuzz/fuzz_cw.c"
	mkdir -p "$dir/corpus_cw"
	check "peers, ${FUZZ_SECONDS:-30} s" logged "fuzzing" "$log" \
		"$dir/fuzz_cw" -max_total_time="${FUZZ_SECONDS:-30}" \
		-artifact_prefix="$dir/" "$dir/corpus_cw" \
		"$TOP/prov/mrrc/test/fuzz/corpus_cw"
	check "fuzz_wire builds" logged "clang" "$log" \
		clang -std=gnu11 -D_GNU_SOURCE -DSERVE_LIBFUZZER -O1 -g \
		-fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=undefined -I"$dir" -I"$TOP/util" \
		-o "$dir/fuzz_wire" "$TOP/util/serve/wire/wire.c" \
		"$TOP/util/serve/test/fuzz_wire.c"
	mkdir -p "$dir/corpus_wire"
	check "file server, ${FUZZ_SECONDS:-30} s" logged "fuzzing" "$log" \
		"$dir/fuzz_wire" -max_total_time="${FUZZ_SECONDS:-30}" \
		-artifact_prefix="$dir/" "$dir/corpus_wire" \
		"$TOP/util/serve/test/corpus_wire"
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
