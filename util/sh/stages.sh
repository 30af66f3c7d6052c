# shellcheck shell=bash disable=SC2153 # common.sh sets BUILD
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The stages of test.sh, stage_NAME each.  Sourced, after common.sh and
# count.sh; STAGE is the name of the one that runs.

readonly SCRIPTS=$TOP/fabtests/scripts
readonly RUNFABTESTS=$SCRIPTS/runfabtests.sh
readonly CLIENTS=$SCRIPTS/clients.sh
readonly RECORD=$SCRIPTS/record.sh
# of the functional tests: what moves data, without long loops
readonly MEMCHECKED=info,msg,rma,atomic,selective,srx,mr,cancel,close,alloc
readonly MEMCHECKED_RDM=tagged,peek,multi_recv,av,atomic,rma
# of the functional tests: what does not depend on what is under us
readonly ONCE=fi_info,parts,versions,core_cache,unmap,memlock,uffd_denied,dgram,srx,mappings
# over verbs: what hardly depends on the device, or has nothing to test there;
# slow in the guest
GUEST_ONCE=fi_info,soak,node,uffd_denied,core_cache,untouched,kinds,signals,random
GUEST_ONCE+=,parts,split,versions,domains,bind,cxx,unwind,ahead,bounce,manual
GUEST_ONCE+=,mappings,footprint,objects,hints,loud,keys,tagged,av,peek,multi_recv
readonly GUEST_ONCE+=,buffered,sequences
# suites of test_sys that ask the kernel for what kernels do in different ways
readonly KERNEL=threads,vm,pages,own_file,mon,mon_event,uffd_event,mon_child,uffd,huge,prepare
readonly KERNEL_MORE=hooks,hooks_call,hooks_event,hooks_rely,hooks_late,hooks_signal,notifier,ring,lease,cache_uffd,cache_hooked
# over verbs ofi_rxm (1.17) dies in them raw as well, using an endpoint that it
# has freed: rxm_close_conn()
readonly RXM_DIES=close,atomic,multi_recv
# what registers: the rest is the core's own
readonly HOOKED=msg,rma,mr,readonly,unmap,close,threads,alloc
# what else may depend on the processor
readonly ARM=info,completions,atomic,copied,fork,cwrite,cw_enable,cw_end
# parts of files: over verbs without a copy from Linux 6.2 on
readonly FILES=files,files_ahead,files_direct,files_change,files_stopped
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

# ---- the guest: parts of one script, for one boot ----------------------------

PARTS=()

# part NAME COMMAND...: adds COMMAND to the guest's script, TIMES times. The last
# line of its output, "N passed, N failed", is counted.
part()
{
	local part=$1 i name

	shift
	wanted "$part" || return 0
	for ((i = 0; i < TIMES; i++)); do
		name=$part.$i
		PARTS+=("$name")
		{
			printf 'if [ ! -e %q ]; then\necho %q\n' \
				"$GUEST_DIR/$name.status" "$name"
			printf '%q ' "$@"
			printf '>%q 2>&1\necho $? >%q\nfi\n' \
				"$GUEST_DIR/$name.log" "$GUEST_DIR/$name.status"
		} >>"$GUEST_DIR/parts.sh"
	done
}

# begin_parts [GUEST-OPTION...]: a folder that the guest may write to.
begin_parts()
{
	need_guest "$@" || {
		fail "the guest cannot be set up"
		return 1
	}
	GUEST_DIR=$LOGS/$STAGE
	rm -rf "$GUEST_DIR"
	mkdir -p "$GUEST_DIR"
	# libfabric's verbs provider looks through all of it, twice in each
	# process, for functions that none of these kernels has
	echo "mount --bind /dev/null /proc/kallsyms" >"$GUEST_DIR/parts.sh"
}

# boot_parts SECONDS [GUEST-OPTION...]: those without a result.
boot_parts()
{
	local limit=$1

	shift
	logged "in the guest" "$GUEST_DIR/guest.log" "$GUEST" -t "$limit" \
		-w "$GUEST_DIR" -e "FT_PERCENT=${FT_PERCENT-$FEW_PERCENT}" \
		"${SELECTED[@]}" "$@" -- bash "$GUEST_DIR/parts.sh" && return
	ENDED=$(tail -n 3 "$GUEST_DIR/guest.log" | cut -c 1-200 | paste -s -d' ')
	say "   the guest: $ENDED"
	return 1
}

# run_parts SECONDS [GUEST-OPTION...]: an emulated machine may end by itself:
# what it had not done then is done once more.
run_parts()
{
	local name ENDED

	[ ${#PARTS[@]} -gt 0 ] || return 0
	boot_parts "$@" || boot_parts "$@" || fail "the guest: $ENDED"
	for name in "${PARTS[@]}"; do
		say "   $name"
		count_summary "$(cat "$GUEST_DIR/$name.status" 2>/dev/null)" \
			"$GUEST_DIR/$name.log" "${name%.*}, in the guest" \
			"${name%.*}"
	done
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

stage_hosts()
{
	need_build unit || return
	need "$("$SCRIPTS/test_hosts.sh" --packages)" || {
		fail "packages are missing"
		return
	}
	script "sanitizers, Python, Go and Java" test_hosts \
		env "$(provider_path unit)" "$SCRIPTS/test_hosts.sh"
}

stage_kokkos()
{
	local prov

	need_build unit || return
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
		TESTS="$(printf 'prov/mrrc/test/%s ' test_text test_core \
			test_sys model_heap) $(printf 'util/%s ' \
			sim/test/test_{gen,memory,sim,trace,trace_ops} \
			prof/test/test_prof stat/test/test_{rows,stat})"
	run_fabtests unit "tcp;ofi_mrrc" -T 900 \
		-w "$TOP/util/sh/memcheck.sh" -t "$MEMCHECKED"
	run_fabtests unit "tcp;ofi_rxm;ofi_mrrc" -T 900 \
		-w "$TOP/util/sh/memcheck.sh" -t "$MEMCHECKED_RDM"
	script "tools see fi_mr_alloc's memory" test_tools \
		env "$(provider_path unit)" "$SCRIPTS/test_tools.sh"
}

# one_of WAY...: sets WAYS to all of them, and with --ci to one, by the commit's
# hash.
one_of()
{
	WAYS=("$@")
	[ -z "$CI_LAST" ] || WAYS=("${WAYS[0x$(commit | cut -c8) % $#]}")
}

# A release, in a tree where pandoc is not installed, with clang; and a build as
# distributions build packages, with --ci every second time.
stage_distcheck()
{
	local flags="--enable-werror ac_cv_prog_PANDOC= CC=clang CXX=clang++"

	if ! need clang || ! TARGETS=config.h build dist; then
		fail "the build failed"
		return
	fi
	check "make distcheck" logged "make distcheck" \
		"$LOGS/distcheck.log" \
		env HEAP_OPERATIONS=20000 MRRC_RACE_MS=100 \
		make -C "$BUILD/dist" -j "$JOBS" distcheck \
		DISTCHECK_CONFIGURE_FLAGS="$flags"
	# tar's status is lost
	check "all files are in the release" \
		eval "! grep '^tar: ' '$LOGS/distcheck.log'"
	one_of yes no
	[ "${WAYS[0]}" != no ] || return
	check "link-time optimization" build lto --enable-werror \
		CFLAGS="-O2 -g -flto=auto -ffat-lto-objects"
	# whose calls of libc are replaced
	check_in lto TESTS="$(printf 'prov/mrrc/test/test_%s ' node patch)"
}

# What a new user types, in bare folders of both Debians.
stage_first()
{
	local suite

	one_of bookworm trixie
	need "$("$TRIXIE" --packages)" || {
		fail "packages are missing"
		return
	}
	for suite in "${WAYS[@]}"; do
		script "the first hour on $suite" "test_first-$suite" \
			"$SCRIPTS/test_first.sh" "$suite"
	done
}

# Made from a release, and used in bare folders of both Debians.
stage_packages()
{
	local suite

	need "$("$TRIXIE" --packages)" || {
		fail "packages are missing"
		return
	}
	# a release takes the rendered manual pages, and nothing compiled
	if ! TARGETS=config.h build packages || ! logged "make dist" \
		"$LOGS/dist.log" env XZ_OPT=-1 make -C "$BUILD/packages" dist; then
		fail "there is no release"
		return
	fi
	for suite in bookworm trixie; do
		script "packages on $suite" "test_packages-$suite" \
			"$SCRIPTS/test_packages.sh" \
			"$(echo "$BUILD"/packages/ofi_mrrc-*.tar.xz)" "$suite"
	done
}

# The modules alone, once for each part; the tests are those of stage unit.
stage_switches()
{
	need_build unit || return
	run_test switches "the provider without parts" unit "$BUILD/switches"
}

# Built here for both major versions of libfabric: the headers of 2.x are Debian
# 13's.
stage_wheel()
{
	local dir=$BUILD/wheel

	if ! need python3-venv || ! need_trixie || ! bootstrap; then
		fail "packages are missing"
		return
	fi
	mkdir -p "$dir/libfabric2/include" "$dir/libfabric2/lib"
	# shellcheck disable=SC2016 # expanded there
	if ! "$TRIXIE" -w "$dir/libfabric2" -C "$dir/libfabric2" -- sh -c \
		'cp -r /usr/include/rdma include &&
		cp /usr/lib/*/libfabric.so.1 lib/libfabric.so' ||
		! logged "build.sh" "$LOGS/wheel.log" \
			"$TOP/packaging/wheel/build.sh" "$dir" "$dir/libfabric2"
	then
		fail "there is no wheel"
		return
	fi
	script "the wheel, with MPI libraries from PyPI" test_wheel \
		"$SCRIPTS/test_wheel.sh" "$(echo "$dir"/ofi_mrrc-*.whl)"
}

stage_verbs()
{
	local bin=$BUILD/unit/prefix/bin tests=$BUILD/unit/prov/mrrc/test

	if ! need_build unit || ! begin_parts; then
		return
	fi
	part fabtests "$RUNFABTESTS" -b "$bin" -x "$GUEST_ONCE" "verbs;ofi_mrrc"
	part fabtests-hook "$RUNFABTESTS" -b "$bin" -H -t "$HOOKED" \
		"verbs;ofi_mrrc"
	part test_serve env SERVE_ADDRESS=10.0.0.1 "$SCRIPTS/test_serve.sh" \
		-b "$bin" -t "$SERVE_VERBS" "verbs;ofi_mrrc"
	# on another kernel than ours
	part units "$SCRIPTS/units.sh" "$tests/test_sys:$KERNEL"
	run_parts 3600 -e "$(provider_path unit)"
}

stage_verbs_rdm()
{
	local bin=$BUILD/unit/prefix/bin tests=$BUILD/unit/prov/mrrc/test

	if ! need_build unit || ! begin_parts; then
		return
	fi
	part fabtests "$RUNFABTESTS" -b "$bin" -x "$ONCE,$RXM_DIES" \
		"verbs;ofi_rxm;ofi_mrrc"
	# in strangers ofi_rxm dies; an emulated device takes what stuck sends
	part test_serve env SERVE_ADDRESS=10.0.0.1 \
		"$SCRIPTS/test_serve.sh" -b "$bin" -t "$SERVE_VERBS,dead" \
		"verbs;ofi_rxm;ofi_mrrc"
	part fabtests-once "$RUNFABTESTS" -b "$bin" -t "$GUEST_ONCE" \
		"verbs;ofi_mrrc"
	part units "$SCRIPTS/units.sh" "$tests/test_sys" "$tests/race_mon"
	part test_sim "$SCRIPTS/test_sim.sh" -b "$bin" "verbs;ofi_mrrc"
	part test_prof "$SCRIPTS/test_prof.sh" -b "$bin" "verbs;ofi_mrrc"
	part race bash -c "$BUILD/unit/fabtests/benchmarks/demo_race -o -n 20 &&
		echo '1 passed, 0 failed'"
	run_parts 3600 -e "$(provider_path unit)"
}

# What a newer kernel does in another way, on its disk, too.
stage_verbs13()
{
	local bin=$BUILD/unit/prefix/bin tests=$BUILD/unit/prov/mrrc/test

	need_trixie || {
		fail "the folder of Debian 13 cannot be set up"
		return
	}
	if ! need_build unit || ! begin_parts -k trixie; then
		return
	fi
	part fabtests "$RUNFABTESTS" -b "$bin" -t "$FILES,$HOOKED" \
		"verbs;ofi_mrrc"
	part fabtests-rdm "$RUNFABTESTS" -b "$bin" -t "$FILES" \
		"verbs;ofi_rxm;ofi_mrrc"
	part test_serve env SERVE_ADDRESS=10.0.0.1 "$SCRIPTS/test_serve.sh" \
		-b "$bin" -t "$SERVE_VERBS,truncated,writers" \
		"verbs;ofi_mrrc"
	part units "$SCRIPTS/units.sh" "$tests/test_sys" "$tests/race_mon"
	part race bash -c "$BUILD/unit/fabtests/benchmarks/demo_race -o -n 20 &&
		echo '1 passed, 0 failed'"
	run_parts 3600 -k trixie -d 1G -e "$(provider_path unit)"
}

# Cross-compiled against the guest's root, which is a Debian 13 for arm64.
stage_arm64()
{
	local bin=$BUILD/arm64/prefix/bin tests=$BUILD/arm64/prov/mrrc/test
	local root

	if ! need_trixie || ! need gcc-aarch64-linux-gnu ||
	   ! begin_parts --arch arm64; then
		fail "the guest cannot be set up"
		return
	fi
	root=$("$GUEST" --arch arm64 --setup 2>/dev/null)
	need_build arm64 --host=aarch64-linux-gnu CXX=no \
		"CC=aarch64-linux-gnu-gcc --sysroot=$root" \
		"PKG_CONFIG_SYSROOT_DIR=$root" \
		"PKG_CONFIG_LIBDIR=$root/usr/lib/aarch64-linux-gnu/pkgconfig" ||
		return
	# there is no decoder for its instructions
	part check bash -c "$bin/fi_mrrc_stat --check | tee /dev/stderr |
		grep -q decoder && echo '1 passed, 0 failed'"
	# without test_core, which is the same everywhere and slow there
	part units "$SCRIPTS/units.sh" "$tests"/race_{mon,node} \
		"$tests"/test_{attr,below,code,node,patch,text,version} \
		"$tests/test_sys:$KERNEL,$KERNEL_MORE"
	part fabtests "$RUNFABTESTS" -b "$bin" -t "$HOOKED,$ARM" "tcp;ofi_mrrc"
	part fabtests-verbs "$RUNFABTESTS" -b "$bin" -t "$HOOKED" \
		"verbs;ofi_mrrc"
	run_parts 5400 --arch arm64 -w "$BUILD/arm64" -e "$(provider_path arm64)"
}

# clients WHAT LOG COMMAND...: clients.sh, and what it says of each.
clients()
{
	script "$@"
	grep -E '^(PASS|FAIL) ' "$LOGS/$STAGE-$2.log" | sed 's/^/   | /'
}

# The client that needs no more than Debian's packages.
stage_openmpi()
{
	need_build unit || return
	need "$("$CLIENTS" --packages)" || {
		fail "Open MPI cannot be installed"
		return
	}
	IN=()
	clients "Open MPI over tcp" tcp env "$(provider_path unit)" \
		"$CLIENTS" -w "$BUILD/openmpi" openmpi
}

# MPICH's wheel brings a libfabric 2.x, the others use this machine's.
stage_clients()
{
	local dir=$BUILD/clients IN=() two=()
	local path

	path=$(provider_path unit)
	need_build unit || return
	if ! need "$("$CLIENTS" --packages)" || ! logged \
		"MPI libraries from PyPI" "$LOGS/clients-setup.log" \
		"$CLIENTS" --setup; then
		fail "the clients cannot be installed"
		return
	fi
	use_trixie
	if need_trixie && build_installed libfabric2 --enable-werror; then
		two=(-2 "$BUILD/libfabric2/prefix/lib/libfabric")
		keep_libs libfabric2
	else
		fail "no provider for libfabric 2.x: MPICH cannot be tested"
	fi
	IN=()
	clients "MPI over tcp" tcp \
		env "$path" "LD_LIBRARY_PATH=$BUILD/libfabric2/libs" \
		"$CLIENTS" -w "$dir" "${two[@]}"
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

# What the patches for libfabric's own cache change, and the provider as a part
# of the same source.
stage_upstream_tree()
{
	local check=$TOP/packaging/upstream/check.sh

	if ! need "$("$check" --packages)" || ! need_guest || ! bootstrap; then
		fail "packages are missing"
		return
	fi
	script "libfabric's own cache, before and after" check \
		"$check" "$BUILD/upstream_tree"
	rm -rf "$BUILD/upstream_import"
	script "the provider in libfabric's tree" check_import \
		"${check%.sh}_import.sh" "$BUILD/upstream_tree/old" \
		"$BUILD/upstream_import"
}

stage_guest()
{
	need_guest || {
		fail "the guest cannot be set up"
		return
	}
	script "guest.sh's own test" test_guest "$SCRIPTS/test_guest.sh"
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
	need_build unit || return
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
