#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test.sh: build and verify everything, on a bare Debian as root or with sudo.
# The last line is always "N passed, N failed, N skipped".
#
# Flow: the sources are checked; then for each stage (util/sh/stages*.sh), side by
# side with others: packages -> build in $BUILD -> run -> add up what its tests
# counted.  A stage that cannot run has failed.  At the end each test that
# failed runs again alone.

set -u
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
ME=${0##*/}
# shellcheck source=util/sh/common.sh
. "$TOP/util/sh/common.sh"
# shellcheck source=util/sh/count.sh
. "$TOP/util/sh/count.sh"
# shellcheck source=util/sh/side.sh
. "$TOP/util/sh/side.sh"
# shellcheck source=util/sh/stages.sh
. "$TOP/util/sh/stages.sh"
# shellcheck source=util/sh/stages_clients.sh
. "$TOP/util/sh/stages_clients.sh"
# shellcheck source=util/sh/stages_guest.sh
. "$TOP/util/sh/stages_guest.sh"
# shellcheck source=util/sh/stages_release.sh
. "$TOP/util/sh/stages_release.sh"
# shellcheck source=util/sh/stages_search.sh
. "$TOP/util/sh/stages_search.sh"
# shellcheck source=util/sh/choose.sh
. "$TOP/util/sh/choose.sh"
# shellcheck source=util/sh/again.sh
. "$TOP/util/sh/again.sh"

# as they begin, side by side: what takes longest goes first
readonly QUICK_STAGES="verbs asan unit valgrind verbs_rdm asan_rdm tcp rdm tsan"
# of the rounds of functional tests: with --all only in the virtual machine
readonly FEW_PERCENT=20

usage()
{
	cat <<-EOT
	Usage: $ME [OPTION]... [STAGE[:PART[:TEST]]...]

	Without STAGE, what finds most, some 20 minutes on two processors:
	$QUICK_STAGES.
	Tests make a fifth of their rounds; FT_PERCENT=100 has them make all.

	  --ci       what .ci/run runs: $CI_STAGES,
	             a third of the other stages, by the commit's hash, but for
	             those whose inputs have not changed since the last tag, and
	             some minutes of mutations
	  --all      all of the stages below, all rounds of their tests (in the
	             virtual machine a fifth)
	  -j N       so many stages at a time (default: one more than processors,
	             since each waits for a part of its time; at most 4)
	  -n N       each test so many times, as of one that is named

	A test that fails runs again $AGAIN times, alone. Its line at the end says
	how often it failed, and the command with which it runs again, as
	$ME -n 5 tcp:fabtests-1:cw_end.

	  tree       what the sources alone show, before anything is built: lists
	             of files, mutations, folders, parameters, layout, shellcheck
	  unit       build with warnings as errors; unit tests, purity gate,
	             manual pages
	  tcp        functional tests over tcp;ofi_mrrc, registration forced;
	             other users of libfabric see no difference; the simulator
	             counts what the provider counts; fi_mrrc_stat shows it,
	             FI_OFI_MRRC_TRACE records it; fi_mrrc_prof measures
	  rdm        functional tests over tcp;ofi_rxm;ofi_mrrc
	  asan       unit tests and tcp tests under AddressSanitizer and
	             UndefinedBehaviorSanitizer
	  asan_rdm   the tests of stage rdm under them
	  tsan       unit tests under ThreadSanitizer
	  valgrind   unit tests and tcp tests under memcheck; valgrind and
	             AddressSanitizer see fi_mr_alloc's memory as malloc's
	  verbs      functional tests over verbs;ofi_mrrc, in a virtual machine
	             with Soft-RoCE; files served; unit tests on its kernel
	  verbs_rdm  there, with ofi_rxm; the simulator, the profiler

	  verbs13    what a newer kernel does in another way: parts of files
	             without a copy, races; as verbs, with Debian 13's kernel
	  libfabric2 unit tests and functional tests with libfabric 2.x, in a
	             folder of Debian 13; each major says that it is not for
	             the other
	  distcheck  a release builds, tests, installs and uninstalls, and what
	             it installs, with clang; a build with link-time
	             optimization, with --ci every second time
	  mutations  each protection of a list is removed, and its test fails
	             (fabtests/scripts/mutate.sh)
	  smoke      each benchmark for seconds: it ends, and has its figures
	  demo       demo.sh: what it says where something is missing, its
	             answers over tcp, without userfaultfd, and after Ctrl-C
	  net        functional tests over net;ofi_mrrc
	  hook       functional tests over the hooking form, over tcp
	  alloc      random blocks under other allocators, and beside another
	             library that patches libc
	  kokkos     Views in registered memory, where Kokkos is installed
	             (Debian: libtrilinos-kokkos-dev)
	  hosts      a program under each sanitizer, and in Python, Go and Java
	  openmpi    Open MPI over ofi_mrrc, on this machine: a program that checks
	             its data, without a system call for a lookup
	  fuzz       libFuzzer on what reads files, and on what peers say, for
	             FUZZ_SECONDS (30) each
	  analyze    what gcc's and clang's analyzers and cppcheck find in
	             provider and tools, but for what util/sh/analyze.known
	             gives a reason for
	  wire       recorded bytes of the file server, its client and an
	             application, changed, to each of them over tcp, ofi_rxm and
	             net, for WIRE_SECONDS (90), or WIRE_CONNECTIONS in all

	By name alone:

	  clients    Open MPI, Intel MPI and MPICH, from packages, over ofi_mrrc:
	             a program that checks its data, and IMB, also recorded; on
	             this machine and over verbs in the virtual machine
	  soak       a process that runs for SOAK_MINUTES (60), in which nothing
	             may grow, and the tcp tests again and again beside it
	  upstream   upstream's fabtests, installed in FABTESTS=PREFIX, over each
	             core: below ofi_mrrc, and hooked
	  first      a new user's commands, in bare folders of Debian 12 and 13:
	             README's, docs/install.md's, the manual pages' programs,
	             uninstalling; as root, and as a user without sudo; with --ci
	             in one of the two
	  packages   packages of Debian and of rpm, in bare folders of Debian 12
	             and 13: made, installed, upgraded, used and purged
	  switches   the provider without each part that configure can leave out,
	             and without all of them: built, used, and measured
	  wheel      a wheel of the provider for libfabric 1.x and 2.x, installed
	             into environments of their own, where mpi4py runs over the
	             wheels of MPICH and Open MPI
	  upstream_tree  packaging/upstream: patches for libfabric's own cache,
	             applied to Debian 13's source; their test over verbs, and
	             what hits cost, before and after; the provider built there
	  arm64      unit tests, races and some functional tests on an emulated
	             64-bit ARM with Debian 13, for which all is cross-compiled
	  cable      files between two hosts in the virtual machine, over verbs and
	             tcp, whose cable loses packets or is cut, and whose processes
	             are killed; with the newest kernel of Debian 13's backports
	  guest      the virtual machine's own script

	Builds and logs go to \${OFI_MRRC_BUILD:-build}.
	Exit status: 0 if nothing failed.
	EOT
}

# ---- main --------------------------------------------------------------------

main()
{
	local stages=() jobs=$((JOBS < 4 ? JOBS + 1 : 4)) all=no chosen='' spec

	TIMES=1 AGAIN_LIMIT=$((1 << 31)) CI_LAST=
	while [ $# -gt 0 ]; do
		case $1 in
		-h|--help) usage; exit 0 ;;
		--all) chosen="$CI_STAGES mutations ${CI_TURNS[*]}" all=yes ;;
		--ci) chosen=$(choose_stages) CI_LAST=$CI_SECONDS ;;
		-j) jobs=${2-}; shift ;;
		-n) TIMES=${2-}; shift ;;
		*) stages+=("$1") ;;
		esac
		shift
	done
	[[ $jobs =~ ^[1-9][0-9]*$ && $TIMES =~ ^[1-9][0-9]*$ ]] ||
		{ usage >&2; exit 2; }
	if [ $all = no ]; then
		export FT_PERCENT=${FT_PERCENT-$FEW_PERCENT}
		export HEAP_OPERATIONS=${HEAP_OPERATIONS-20000}
		export MRRC_RACE_MS=${MRRC_RACE_MS-100}
	fi
	[ ${#stages[@]} -gt 0 ] || chosen=${chosen:-$QUICK_STAGES}
	# shellcheck disable=SC2206 # a list
	[ -z "$chosen" ] || stages=(tree $chosen)
	for spec in "${stages[@]}"; do
		declare -F "stage_${spec%%:*}" >/dev/null || {
			warn "no stage ${spec%%:*}"
			usage >&2
			exit 2
		}
	done

	mkdir -p "$LOGS" || exit 2
	unset FI_PROVIDER FI_HOOK FI_PROVIDER_PATH
	STAGE=packages PART='' TEST=''
	need "$BUILD_PACKAGES $TEST_PACKAGES" || {
		fail "packages are missing"
		verdict
		return
	}
	say "Set-up: $(setup_line)"
	if [ "${stages[0]}" = tree ]; then
		side_by_side 1 tree
		stages=("${stages[@]:1}")
	fi
	[ "$FAILED" -gt 0 ] || side_by_side "$jobs" "${stages[@]}"
	verdict
}

# one line: nothing is read from this file once main() has begun
main "$@"; exit
