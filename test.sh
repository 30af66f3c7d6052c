#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test.sh: build and verify everything, on a bare Debian as root or with sudo.
# The last line is always "N passed, N failed, N skipped".
#
# Flow: for each stage: packages -> build in $BUILD/STAGE -> run -> add up
# what its tests counted.  A stage that cannot run has failed.

set -u
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
ME=${0##*/}
# shellcheck source=util/sh/common.sh
. "$TOP/util/sh/common.sh"
# shellcheck source=util/sh/count.sh
. "$TOP/util/sh/count.sh"

readonly DEFAULT_STAGES="unit tcp kokkos libfabric2 asan tsan valgrind
	distcheck verbs"
readonly SCRIPTS=$TOP/fabtests/scripts
readonly RUNFABTESTS=$SCRIPTS/runfabtests.sh
readonly CLIENTS=$SCRIPTS/clients.sh
readonly RECORD=$SCRIPTS/record.sh
# of the functional tests: what moves data, without long loops
readonly MEMCHECKED=info,msg,rma,atomic,selective,cntr,srx,mr,cancel,close,alloc
readonly MEMCHECKED_RDM=tagged,peek,multi_recv,av,atomic,rma
# of the functional tests: what does not depend on what is under us
readonly ONCE=fi_info,versions,core_cache,unmap,memlock,uffd_denied,dgram,srx
# over verbs ofi_rxm (1.17) dies in them raw as well, using an endpoint that it
# has freed: rxm_close_conn()
readonly RXM_DIES=close,atomic,multi_recv
# what registers: the rest is the core's own
readonly HOOKED=msg,rma,mr,readonly,unmap,limits,close,threads,alloc
readonly SUPP=$TOP/fabtests/suppressions
# run on the host and in the guest
readonly SIM="provider and simulator, counter by counter"
readonly PROF="the profiler, and its model in the provider"

usage()
{
	cat <<-EOT
	Usage: $ME [STAGE...]

	Without STAGE: $DEFAULT_STAGES.

	  unit       build with warnings as errors; unit tests, purity gate,
	             manual page, shellcheck
	  tcp        functional tests over tcp;ofi_mrrc, registration forced;
	             other users of libfabric see no difference; the simulator
	             counts what the provider counts; fi_mrrc_stat shows it,
	             FI_OFI_MRRC_TRACE records it; fi_mrrc_prof measures;
	             other allocators, and another library that patches libc
	  kokkos     Views in registered memory, where Kokkos is installed
	             (Debian: libtrilinos-kokkos-dev)
	  libfabric2 unit tests and functional tests with libfabric 2.x, in a
	             folder of Debian 13; each major says that it is not for
	             the other
	  asan       unit tests and tcp tests under AddressSanitizer and
	             UndefinedBehaviorSanitizer
	  tsan       unit tests under ThreadSanitizer
	  valgrind   unit tests and a tcp test under memcheck; valgrind and
	             AddressSanitizer see fi_mr_alloc's memory as malloc's
	  distcheck  a release builds, tests, installs and uninstalls; it builds
	             with link-time optimization, and with clang
	  verbs      functional tests over verbs;ofi_mrrc, in a virtual machine
	             with Soft-RoCE
	  clients    Open MPI, Intel MPI and MPICH, from packages, over ofi_mrrc:
	             a program that checks its data, and IMB, also recorded; on
	             this machine and over verbs in the virtual machine
	  fuzz       libFuzzer on what reads files, and on what peers say, for
	             FUZZ_SECONDS (60) each
	  soak       the tcp tests again and again for SOAK_MINUTES (60)
	  upstream   upstream's fabtests, installed in FABTESTS=PREFIX, over each
	             core: below ofi_mrrc, and hooked
	  guest      the virtual machine's own script

	Builds and logs go to \${OFI_MRRC_BUILD:-build}.
	Exit status: 0 if nothing failed.
	EOT
}

# ---- what several stages run -------------------------------------------------

# of a build: where libfabric finds the provider
provider_path()
{
	echo "FI_PROVIDER_PATH=$BUILD/$1/prefix/lib/libfabric"
}

# run_fabtests BUILD PROVIDER [OPTION...]: over the provider, on this machine.
# runfabtests.sh forces registration where the core asks for none.
run_fabtests()
{
	local name=$1 prov=$2

	shift 2
	script "tests over $prov" fabtests env "$(provider_path "$name")" \
		"${IN[@]}" "$RUNFABTESTS" -b "$BUILD/$name/prefix/bin" "$@" \
		"$prov"
}

# run_test NAME WHAT BUILD [ARGUMENT...]: fabtests/scripts/test_NAME.sh.
run_test()
{
	local name=$1 what=$2 build=$3

	shift 3
	script "$what" "test_$name" env "$(provider_path "$build")" \
		"$SCRIPTS/test_$name.sh" -b "$BUILD/$build/prefix/bin" "$@"
}

# run_test_alloc BUILD SECONDS: each allocator, for so long.
run_test_alloc()
{
	# it is made where stage unit has not run, too
	logged "make race_mon" "$LOGS/race_mon.log" make -C "$BUILD/$1" \
		prov/mrrc/test/race_mon || {
		fail "race_mon cannot be built"
		return
	}
	need "$("$SCRIPTS/test_alloc.sh" --packages)" || {
		fail "the allocators cannot be installed"
		return
	}
	run_test alloc "random blocks under each allocator" "$1" \
		-u "$BUILD/$1/prov/mrrc/test" -t "$2"
}

# in_guest SECONDS WHAT LOG COMMAND...: a script of tests, there.
in_guest()
{
	local limit=$1 what=$2 log=$3

	shift 3
	script "$what, in the guest" "$log" "$GUEST" -t "$limit" \
		-e "$(provider_path unit)" -- "$@"
}

# ---- stages ------------------------------------------------------------------

stage_unit()
{
	build_installed unit --enable-werror || {
		fail "the build failed"
		return
	}
	check_in unit
	check "shellcheck finds nothing" lint
}

# Every script of the tree; shellcheck says what it dislikes.
lint()
{
	local scripts

	mapfile -t scripts < <(find "$TOP" \( -path "$BUILD" -o \
		-name 'build*' -o -name .git -o -name config -o -name m4 \) \
		-prune -o -name '*.sh' -print)
	shellcheck -x -P "$TOP" "${scripts[@]}" "$TOP/.ci/run"
}

stage_tcp()
{
	build_installed unit --enable-werror || {
		fail "the build failed"
		return
	}
	run_fabtests unit "tcp;ofi_mrrc"
	run_fabtests unit "tcp;ofi_rxm;ofi_mrrc" -x "$ONCE"
	run_fabtests unit "net;ofi_mrrc" -x "$ONCE"
	run_fabtests unit "tcp;ofi_mrrc" -H -x "$ONCE,hook,info"
	run_test sim "$SIM" unit "tcp;ofi_mrrc"
	run_test stat "counters seen from outside" unit
	run_test trace "recorded requests against counters" unit
	run_test prof "$PROF" unit "tcp;ofi_mrrc"
	run_test_alloc unit 4
}

stage_kokkos()
{
	local prov

	build_installed unit --enable-werror || {
		fail "the build failed"
		return
	}
	if ! grep -q "^HAVE_KOKKOS_TRUE=''" "$BUILD/unit/config.log"; then
		say "   SKIP: configured where there was no Kokkos" \
			"(libtrilinos-kokkos-dev)"
		SKIPPED=$((SKIPPED + 1))
		return
	fi
	for prov in "tcp;ofi_mrrc" "tcp;ofi_rxm;ofi_mrrc"; do
		check "Views over $prov" logged "fi_mrrc_kokkos" \
			"$LOGS/kokkos-${prov//;/+}.log" env \
			"$(provider_path unit)" FI_OFI_MRRC_REGISTER=always \
			"$BUILD/unit/prefix/bin/fi_mrrc_kokkos" -p "$prov"
	done
}

stage_libfabric2()
{
	local IN=("$TRIXIE" -w "$BUILD" --)

	need_trixie || {
		fail "the folder of Debian 13 cannot be set up"
		return
	}
	script "trixie.sh's own test" test_trixie "$SCRIPTS/test_trixie.sh"
	build_installed libfabric2 --enable-werror || {
		fail "the build failed"
		return
	}
	check_in libfabric2
	run_fabtests libfabric2 "tcp;ofi_mrrc"
	run_fabtests libfabric2 "tcp;ofi_mrrc" -e rdm -x "$ONCE"
	run_fabtests libfabric2 "tcp;ofi_rxm;ofi_mrrc" -x "$ONCE"
	IN=()
	build_installed unit --enable-werror || {
		fail "the build for this machine's libfabric failed"
		return
	}
	wrong_major unit libfabric2
	IN=("$TRIXIE" -w "$BUILD" --)
	wrong_major libfabric2 unit
}

# wrong_major NAME OTHER: on the libfabric that NAME was built for, OTHER's
# provider says that it is not for it, and is not missed.
wrong_major()
{
	local log=$LOGS/wrong-major-$1.log
	local run=(env "$(provider_path "$2")" "${IN[@]}")

	if [[ $(libfabric_version) != 1.* ]]; then
		say "   SKIP: this machine's libfabric is not a 1.x"
		SKIPPED=$((SKIPPED + 1))
		return
	fi
	check "fi_info works without $2's provider" \
		logged "fi_info" "$log" "${run[@]}" fi_info -p tcp
	check "$2's provider says that it is for another libfabric" \
		grep '^ofi_mrrc: built for libfabric .* loaded it' "$log"
	check "applications work without $2's provider" \
		logged "raw" "$log" "${run[@]}" \
		"$BUILD/$1/prefix/bin/fi_mrrc_msg" -R -p "tcp;ofi_mrrc"
}

stage_asan()
{
	# a small quarantine: tests watch how much memory is in use
	local asan=quarantine_size_mb=8
	local lsan=suppressions=$SUPP/lsan.supp:print_suppressions=0

	build_installed asan --enable-asan --enable-debug --enable-werror || {
		fail "the build failed"
		return
	}
	export ASAN_OPTIONS=$asan LSAN_OPTIONS=$lsan
	export UBSAN_OPTIONS=print_stacktrace=1
	HEAP_OPERATIONS=20000 CK_TIMEOUT_MULTIPLIER=4 check_in asan
	# fi_info itself is not instrumented, and cannot load what is
	run_fabtests asan "tcp;ofi_mrrc" -T 360 -x fi_info
	run_fabtests asan "tcp;ofi_rxm;ofi_mrrc" -T 360 -x "$ONCE,procs,fork"
	unset ASAN_OPTIONS LSAN_OPTIONS UBSAN_OPTIONS
}

stage_tsan()
{
	local flat

	build tsan --enable-tsan --enable-debug --enable-werror || {
		fail "the build failed"
		return
	}
	# gcc 12's runtime stops where the kernel spreads mappings widely
	flat=$(setarch "$(uname -m)" -R true 2>/dev/null &&
		echo "setarch $(uname -m) -R")
	HEAP_OPERATIONS=20000 EXPLORE_CASES=2 \
		TSAN_OPTIONS=suppressions=$SUPP/tsan.supp \
		CK_TIMEOUT_MULTIPLIER=10 check_in tsan LOG_COMPILER="$flat"
}

stage_valgrind()
{
	build_installed valgrind --enable-debug || {
		fail "the build failed"
		return
	}
	# valgrind does not know userfaultfd: nothing is cached under it
	HEAP_OPERATIONS=2000 EXPLORE_CASES=2 CK_TIMEOUT_MULTIPLIER=20 \
		check_in valgrind \
		LOG_COMPILER="$TOP/util/sh/memcheck.sh"
	run_fabtests valgrind "tcp;ofi_mrrc" -T 900 \
		-w "$TOP/util/sh/memcheck.sh" -t "$MEMCHECKED"
	run_fabtests valgrind "tcp;ofi_rxm;ofi_mrrc" -T 900 \
		-w "$TOP/util/sh/memcheck.sh" -t "$MEMCHECKED_RDM"
	# a release build: what debug builds look for is not the point
	build_installed unit --enable-werror || {
		fail "the build failed"
		return
	}
	script "tools see fi_mr_alloc's memory" test_tools \
		env "$(provider_path unit)" "$SCRIPTS/test_tools.sh"
}

# As somebody builds it who has no pandoc.
stage_distcheck()
{
	build dist || {
		fail "the build failed"
		return
	}
	check "make distcheck" logged "make distcheck" \
		"$LOGS/distcheck.log" \
		make -C "$BUILD/dist" -j "$JOBS" distcheck \
		DISTCHECK_CONFIGURE_FLAGS="--enable-werror ac_cv_prog_PANDOC="
	# as distributions build packages
	check "link-time optimization" build lto --enable-werror \
		CFLAGS="-O2 -g -flto -ffat-lto-objects"
	need clang && check "another compiler" build clang --enable-werror \
		CC=clang CXX=clang++
}

stage_verbs()
{
	local bin=$BUILD/unit/prefix/bin

	build_installed unit --enable-werror || {
		fail "the build failed"
		return
	}
	need_guest || {
		fail "the guest cannot be set up"
		return
	}
	in_guest 1500 "tests over verbs;ofi_mrrc" fabtests "$RUNFABTESTS" \
		-b "$bin" "verbs;ofi_mrrc"
	in_guest 1500 "tests over verbs;ofi_rxm;ofi_mrrc" fabtests-rdm \
		"$RUNFABTESTS" -b "$bin" -x "$ONCE,$RXM_DIES" \
		"verbs;ofi_rxm;ofi_mrrc"
	in_guest 900 "tests over verbs with the hook" fabtests-hook \
		"$RUNFABTESTS" -b "$bin" -H -t "$HOOKED" "verbs;ofi_mrrc"
	in_guest 600 "$SIM" test_sim "$SCRIPTS/test_sim.sh" -b "$bin" \
		"verbs;ofi_mrrc"
	in_guest 600 "$PROF" test_prof "$SCRIPTS/test_prof.sh" -b "$bin" \
		"verbs;ofi_mrrc"
	guest_unit test_sys race_mon
}

# guest_unit PROGRAM...: unit tests on another kernel than ours.
guest_unit()
{
	local log=$LOGS/guest-unit.log rc n=0 m=0 checks failures errors

	# they are made where stage unit has not run, too
	logged "make $*" "$log" make -C "$BUILD/unit" \
		"${@/#/prov/mrrc/test/}" || {
		fail "the unit tests cannot be built"
		return
	}
	# shellcheck disable=SC2016 # for the guest's shell
	logged "unit tests on the guest's kernel" "$log" "$GUEST" -t 900 \
		-C "$BUILD/unit/prov/mrrc/test" -- bash -c '
		for test in "$@"; do ./"$test" || rc=1; done; exit ${rc:-0}
		' guest_unit "$@"
	rc=$?
	while read -r checks failures errors; do
		n=$((n + checks)) m=$((m + failures + errors))
	done < <(sed -nE 's/.*Checks: ([0-9]+), Failures: ([0-9]+), Errors: ([0-9]+).*/\1 \2 \3/p' "$log")
	count $((n - m)) $m 0
	[ $n -gt 0 ] || fail "unit tests in the guest ran nothing"
	[ $rc -eq 0 ] || [ $m -gt 0 ] ||
		fail "unit tests in the guest: status $rc"
}

# clients WHAT LOG COMMAND...: clients.sh, and what it says of each.
clients()
{
	script "$@"
	grep -E '^(PASS|FAIL) ' "$LOGS/$STAGE-$2.log" | sed 's/^/   | /'
}

# MPICH's wheel brings a libfabric 2.x, the others use this machine's.
stage_clients()
{
	local dir=$BUILD/clients IN=() two=()
	local path

	path=$(provider_path unit)
	build_installed unit --enable-werror || {
		fail "the build failed"
		return
	}
	if ! need "$("$CLIENTS" --packages)" || ! logged \
		"MPI libraries from PyPI" "$LOGS/clients-setup.log" \
		"$CLIENTS" --setup; then
		fail "the clients cannot be installed"
		return
	fi
	IN=("$TRIXIE" -w "$BUILD" --)
	if need_trixie && build_installed libfabric2 --enable-werror; then
		two=(-2 "$BUILD/libfabric2/prefix/lib/libfabric")
	else
		fail "no provider for libfabric 2.x: MPICH cannot be tested"
	fi
	IN=()
	clients "MPI over tcp" tcp \
		env "$path" "$CLIENTS" -w "$dir" "${two[@]}"
	check "what they ask for can be recorded" logged "record.sh" \
		"$LOGS/record.log" env "$path" "$RECORD" \
		-b "$BUILD/unit/prefix/bin" -i "$dir/traces"
	need_guest || {
		fail "the guest cannot be set up"
		return
	}
	clients "MPI over verbs, in the guest" verbs \
		"$GUEST" -t 900 -e "$path" -- "$CLIENTS" -w "$dir" verbs
}

stage_guest()
{
	need_guest || {
		fail "the guest cannot be set up"
		return
	}
	script "guest.sh's own test" test_guest "$SCRIPTS/test_guest.sh"
}

stage_soak()
{
	local end=$((SECONDS + 60 * ${SOAK_MINUTES:-60})) before round=0

	build_installed soak --enable-debug || {
		fail "the build failed"
		return
	}
	while [ $SECONDS -lt $end ]; do
		round=$((round + 1))
		before=$FAILED
		say "   round $round"
		FT_SEED=$round run_fabtests soak "tcp;ofi_mrrc"
		# a quarter of the time or so
		run_test_alloc soak 60
		HEAP_OPERATIONS=2000000 check_in soak
		[ "$FAILED" -eq "$before" ] || break
	done
}

stage_fuzz()
{
	local dir=$BUILD/fuzz log=$LOGS/fuzz.log

	if ! need "$BUILD_PACKAGES clang" || ! build fuzz --disable-tools; then
		fail "the build failed"
		return
	fi
	mkdir -p "$dir/corpus"
	check "fuzz_trace builds" logged "clang" "$log" \
		clang -std=gnu11 -D_GNU_SOURCE -DSIM_LIBFUZZER -O1 -g \
		-fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=undefined -I"$dir" -I"$TOP/util" \
		-I"$TOP/prov/mrrc" -o "$dir/fuzz_trace" \
		"$TOP"/util/sim/{lines,read,recorded,trace,write}.c \
		"$TOP"/util/sim/trace_{read,write}.c \
		"$TOP"/util/trace/{records,show,show_summary,summary}.c \
		"$TOP"/prov/mrrc/core/{cost,trace}.c \
		"$TOP/util/sim/test/fuzz_trace.c" -llzma -ljansson
	check "traces, ${FUZZ_SECONDS:-60} s" logged "fuzzing" "$log" \
		"$dir/fuzz_trace" -max_total_time="${FUZZ_SECONDS:-60}" \
		-artifact_prefix="$dir/" "$dir/corpus" \
		"$TOP/util/sim/test/corpus_trace"
	check "fuzz_cw builds" logged "clang" "$log" \
		clang -std=gnu11 -D_GNU_SOURCE -DMRRC_LIBFUZZER -O1 -g \
		-fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=undefined -I"$TOP/prov/mrrc" \
		-o "$dir/fuzz_cw" "$TOP"/prov/mrrc/core/cw{,_map,_state,_valid,_wire}.c \
		"$TOP/prov/mrrc/test/fuzz_cw.c"
	mkdir -p "$dir/corpus_cw"
	check "peers, ${FUZZ_SECONDS:-60} s" logged "fuzzing" "$log" \
		"$dir/fuzz_cw" -max_total_time="${FUZZ_SECONDS:-60}" \
		-artifact_prefix="$dir/" "$dir/corpus_cw" \
		"$TOP/prov/mrrc/test/corpus_cw"
}

# upstream CORE FORM SET COMMAND...: one comparison, run by COMMAND.
upstream()
{
	local core=$1 form=$2 set=$3

	shift 3
	# shellcheck disable=SC2086 # options or nothing
	script "upstream's $set $form over $core" "${core//;/+}$form$set" \
		"$@" "$SCRIPTS/upstream.sh" $form ${set#suite} "$FABTESTS" \
		"$core"
}

stage_upstream()
{
	local path core form set

	if [ -z "${FABTESTS-}" ]; then
		say "   SKIP: FABTESTS=PREFIX names no installed fabtests"
		SKIPPED=$((SKIPPED + 1))
		return
	fi
	build_installed unit --enable-werror || {
		fail "the build failed"
		return
	}
	path=$(provider_path unit)
	# tcp has MSG, udp DGRAM, the others RDM; forced registration brings
	# our code into it
	for core in tcp udp net "tcp;ofi_rxm"; do
		for form in '' --hook; do
			for set in suite --ubertest; do
				upstream "$core" "$form" $set env "$path" \
					FI_OFI_MRRC_REGISTER=always
			done
		done
	done
	need_guest || {
		fail "the guest cannot be set up"
		return
	}
	for core in verbs "verbs;ofi_rxm"; do
		for form in '' --hook; do
			for set in suite --ubertest; do
				upstream "$core" "$form" $set \
					"$GUEST" -t 3000 -e "$path" --
			done
		done
	done
}

# ---- main --------------------------------------------------------------------

main()
{
	local stages=("$@") start

	case ${1-} in
	-h|--help) usage; exit 0 ;;
	esac
	# shellcheck disable=SC2206 # a list
	[ ${#stages[@]} -gt 0 ] || stages=($DEFAULT_STAGES)
	for STAGE in "${stages[@]}"; do
		declare -F "stage_$STAGE" >/dev/null || {
			warn "no stage $STAGE"
			usage >&2
			exit 2
		}
	done

	mkdir -p "$LOGS" || exit 2
	unset FI_PROVIDER FI_HOOK FI_PROVIDER_PATH
	STAGE=packages
	need "$BUILD_PACKAGES $TEST_PACKAGES" || {
		fail "packages are missing"
		verdict
		return
	}
	say "Set-up: $(setup_line)"
	for STAGE in "${stages[@]}"; do
		start=$SECONDS
		say "== $STAGE"
		"stage_$STAGE"
		say "== $STAGE: $(minutes $((SECONDS - start)))"
	done
	verdict
}

main "$@"
