# shellcheck shell=bash disable=SC2153 # common.sh sets BUILD
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The stages of test.sh, stage_NAME each: what several of them run, and those
# with a build of their own.  Sourced, after common.sh and count.sh; STAGE is the
# name of the one that runs.

readonly SCRIPTS=$TOP/fabtests/scripts
readonly RUNFABTESTS=$SCRIPTS/runfabtests.sh
# of the functional tests: what moves data, without long loops
readonly MEMCHECKED=info,msg,rma,atomic,selective,srx,mr,cancel,close,alloc
readonly MEMCHECKED_RDM=tagged,peek,multi_recv,av,atomic,rma
# of the functional tests: what does not depend on what is under us
readonly ONCE=fi_info,parts,versions,core_cache,unmap,memlock,uffd_denied,dgram,srx,mappings
# of the rounds of functional tests, under tools that slow them down
readonly SLOW_PERCENT=10
readonly SUPP=$TOP/fabtests/suppressions
# run on the host and in the guest
readonly SIM="provider and simulator, counter by counter"
readonly PROF="the profiler, and its model in the provider"
readonly SERVE="files, fetched from the server"
# waits for a minute
readonly SLOW=files_stopped
readonly SERVE_VERBS=end,sizes,list,again,pages,status,resume_client,hostile
# tests of the file server that depend on the transport, or in which a peer sends
# bad data; stage tcp runs all of its tests
readonly SERVE_MOST=$SERVE_VERBS,strangers,stuck,dead,secret,tree,many,silent,endless,truncated,checked

# ---- what several stages run -------------------------------------------------

# of a build: where libfabric finds the provider
provider_path()
{
	echo "FI_PROVIDER_PATH=$BUILD/$1/prefix/lib/libfabric"
}

# how many times run_fabtests ran
RUNS=0

# run_fabtests BUILD PROVIDER [OPTION...]: over the provider, on this machine.
# runfabtests.sh forces registration where the core asks for none.
run_fabtests()
{
	local name=$1 prov=$2 how

	shift 2
	# the lists of tests apart
	how=" $*"
	script "tests over $prov${how%% -[Ttwx] *}" "fabtests-$((++RUNS))" \
		env "$(provider_path "$name")" "${IN[@]}" "$RUNFABTESTS" \
		-b "$BUILD/$name/prefix/bin" "$@" "$prov"
}

# run_test NAME WHAT BUILD [ARGUMENT...]: fabtests/scripts/test_NAME.sh.
run_test()
{
	local name=$1 what=$2 build=$3

	shift 3
	script "$what" "test_$name" env "$(provider_path "$build")" \
		"$SCRIPTS/test_$name.sh" -b "$BUILD/$build/prefix/bin" "$@"
}

# need_build NAME [CONFIGURE-OPTION...]: with all warnings as errors, and with
# the unit tests' programs.
need_build()
{
	UNIT_TESTS=yes build_installed "$@" --enable-werror || {
		fail "the build failed"
		return 1
	}
}

# run_test_alloc BUILD SECONDS: each allocator, for so long.
run_test_alloc()
{
	need "$("$SCRIPTS/test_alloc.sh" --packages)" || {
		fail "the allocators cannot be installed"
		return
	}
	run_test alloc "random blocks under each allocator" "$1" \
		-u "$BUILD/$1/prov/mrrc/test" -t "$2"
}

# one_of WAY...: sets WAYS to all of them, and with --ci to one, by the commit's
# hash.
one_of()
{
	WAYS=("$@")
	[ -z "$CI_LAST" ] || WAYS=("${WAYS[0x$(commit | cut -c8) % $#]}")
}

# ---- stages ------------------------------------------------------------------

# Before anything is built: what breaks most often.
stage_tree()
{
	script "the sources" tree "$TOP/util/sh/check_tree.sh"
}

stage_unit()
{
	need_build unit || return
	check_in unit
}

stage_tcp()
{
	need_build unit || return
	run_fabtests unit "tcp;ofi_mrrc"
	run_test sim "$SIM" unit "tcp;ofi_mrrc"
	run_test stat "counters seen from outside" unit
	run_test top "counters on a terminal" unit
	run_test check "what fi_mrrc_stat --check tells" unit
	run_test container "what containers take away" unit
	run_test code "code of this machine's libraries" unit
	run_test trace "recorded requests against counters" unit
	run_test prof "$PROF" unit "tcp;ofi_mrrc"
	run_test serve "$SERVE" unit "tcp;ofi_mrrc"
}

stage_rdm()
{
	need_build unit || return
	run_fabtests unit "tcp;ofi_rxm;ofi_mrrc" -x "$ONCE"
	run_test serve "$SERVE, by datagrams" unit -t "$SERVE_MOST" \
		"tcp;ofi_rxm;ofi_mrrc"
}

stage_net()
{
	need_build unit || return
	run_fabtests unit "net;ofi_mrrc" -x "$ONCE"
	# its passive endpoints read their info until they close
	run_fabtests unit "sockets;ofi_mrrc" -t msg
}

stage_hook()
{
	need_build unit || return
	run_fabtests unit "tcp;ofi_mrrc" -H -x "$ONCE,$SLOW,hook,info"
}

stage_alloc()
{
	need_build unit || return
	run_test_alloc unit 4
}

stage_demo()
{
	need "procps python3" || {
		fail "packages are missing"
		return
	}
	script "demo.sh: what is missing, answers, Ctrl-C" test_demo \
		env "OFI_MRRC_BUILD=$BUILD" "$SCRIPTS/test_demo.sh"
}

# What is built and run from here on is in the folder of Debian 13.
use_trixie()
{
	IN=("$TRIXIE" -w "$BUILD" -e "FT_PERCENT=${FT_PERCENT-100}"
		"${SELECTED[@]}" --)
}

stage_libfabric2()
{
	local IN

	use_trixie
	need_trixie || {
		fail "the folder of Debian 13 cannot be set up"
		return
	}
	script "trixie.sh's own test" test_trixie "$SCRIPTS/test_trixie.sh"
	need_build libfabric2 || return
	# what depends on libc or libfabric
	check_in libfabric2 TESTS="prov/mrrc/test/test_version \
		prov/mrrc/test/test_patch prov/mrrc/test/test_code \
		prov/mrrc/test/test_prove prov/mrrc/test/test_sys"
	run_fabtests libfabric2 "tcp;ofi_mrrc" -x "$SLOW"
	run_fabtests libfabric2 "tcp;ofi_mrrc" -e rdm -x "$ONCE"
	run_fabtests libfabric2 "tcp;ofi_rxm;ofi_mrrc" -x "$ONCE"
	keep_libs libfabric2
	IN=()
	need_build unit || return
	keep_libs unit
	wrong_major unit libfabric2
	use_trixie
	wrong_major libfabric2 unit
}

# keep_libs NAME: the libraries that the build NAME links, for where other
# versions of them are installed, or none: without them the provider is not even
# loaded.
keep_libs()
{
	# shellcheck disable=SC2016 # expanded there
	"${IN[@]}" sh -c 'mkdir -p "$1" &&
		cp /usr/lib/*/libZy*.so.* /usr/lib/*/liburing.so.* "$1"' \
		sh "$BUILD/$1/libs" || warn "$1's libraries could not be copied"
}

# wrong_major NAME OTHER: on the libfabric that NAME was built for, OTHER's
# provider says that it is not for it, and is not missed.
wrong_major()
{
	local log=$LOGS/wrong-major-$1.log
	local run=(env "$(provider_path "$2")" "${IN[@]}"
		env "LD_LIBRARY_PATH=$BUILD/$2/libs")

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

# need_asan: the build, and what its programs heed.
need_asan()
{
	# a small quarantine: tests watch how much memory is in use
	local asan=quarantine_size_mb=8
	local lsan=suppressions=$SUPP/lsan.supp:print_suppressions=0

	# a stack needs lines, no more: a fifth of the build's time
	need_build asan --enable-asan --enable-debug CFLAGS="-O0 -g1" || return
	export ASAN_OPTIONS=$asan LSAN_OPTIONS=$lsan
	export UBSAN_OPTIONS=print_stacktrace=1 FT_PERCENT=$SLOW_PERCENT
}

stage_asan()
{
	local tests

	need_asan || return
	# not scripts, and not what explores states, which has no memory to spoil
	# shellcheck disable=SC2016 # make's
	tests=$(make -s --no-print-directory -C "$BUILD/asan" -f Makefile -f - \
		tests <<<'tests:; @echo $(filter-out %.sh %/explore_cw,$(TESTS))')
	HEAP_OPERATIONS=20000 CK_TIMEOUT_MULTIPLIER=4 \
		check_in asan TESTS="$tests"
	# fi_info itself is not instrumented, and cannot load what is. In a
	# child AddressSanitizer's allocator stays locked if another thread of
	# the parent's had locked it, as those are busy when cw_fork forks.
	run_fabtests asan "tcp;ofi_mrrc" -T 360 -x "fi_info,$SLOW,mappings,cw_fork"
	run_test serve "$SERVE" asan -t "$SERVE_MOST" "tcp;ofi_mrrc"
}

stage_asan_rdm()
{
	need_asan || return
	run_fabtests asan "tcp;ofi_rxm;ofi_mrrc" -T 360 -x "$ONCE,procs,fork,cw_fork"
	run_test serve "$SERVE, by datagrams" asan -t "$SERVE_MOST" \
		"tcp;ofi_rxm;ofi_mrrc"
}

# What has no threads is the same as elsewhere, and not even built.
stage_tsan()
{
	local flat threads="test_sys model_heap race_mon"

	TARGETS=libmrrc_core.la build tsan --enable-tsan --enable-debug \
		--enable-werror --disable-tools || {
		fail "the build failed"
		return
	}
	# gcc 12's runtime stops where the kernel spreads mappings widely
	flat=$(setarch "$(uname -m)" -R true 2>/dev/null &&
		echo "setarch $(uname -m) -R")
	# shellcheck disable=SC2086 # a list
	HEAP_OPERATIONS=2000 TSAN_OPTIONS=suppressions=$SUPP/tsan.supp \
		CK_TIMEOUT_MULTIPLIER=10 \
		check_in tsan LOG_COMPILER="$flat" \
		TESTS="$(printf 'prov/mrrc/test/%s ' $threads)"
}

stage_valgrind()
{
	need_build unit || return
	export FT_PERCENT=$SLOW_PERCENT
	# Not the models, which are long, and fail under AddressSanitizer, too.
	# valgrind does not know userfaultfd: nothing is cached under it.
	HEAP_OPERATIONS=2000 CK_TIMEOUT_MULTIPLIER=20 \
		check_in unit LOG_COMPILER="$TOP/util/sh/memcheck.sh" \
		TESTS="$(printf 'prov/mrrc/test/%s ' test_core test_sys \
			model_heap) $(printf 'util/%s ' prof/test/test_prof \
			sim/test/test_sim stat/test/test_stat)"
	run_fabtests unit "tcp;ofi_mrrc" -T 900 \
		-w "$TOP/util/sh/memcheck.sh" -t "$MEMCHECKED"
	run_fabtests unit "tcp;ofi_rxm;ofi_mrrc" -T 900 \
		-w "$TOP/util/sh/memcheck.sh" -t "$MEMCHECKED_RDM"
	script "tools see fi_mr_alloc's memory" test_tools \
		env "$(provider_path unit)" "$SCRIPTS/test_tools.sh"
}
