#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh: measure one thing.  The last line is "NAME: VALUE (goal GOAL)".
# How NAME is measured is in util/sh/bench/NAME.sh, as bench_NAME.

# shellcheck disable=SC2317 # the benchmarks call what is here
set -u
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
ME=${0##*/}
# shellcheck source=util/sh/common.sh
. "$TOP/util/sh/common.sh"

readonly RC_MISSED=1 RC_CANNOT=2 RC_BROKEN=3
# a program's own: it cannot run here; of guest.sh: no guest
readonly RC_SKIP=77 RC_NO_GUEST=125

# Set: the build that --smoke tries, for seconds, on this machine alone.
SMOKE=${OFI_MRRC_SMOKE-}
readonly SMOKE_LIMIT=1800	# seconds, which only end one that hangs

# Else libinfinipath, which comes with libfabric, makes a signal status 1.
export IPATH_NO_BACKTRACE=1

# For the benchmarks: the build, where what they measure is kept, and the
# provider of those that run in the guest.
BENCH=${SMOKE:-bench} DATA=$BUILD/${SMOKE:+smoke/}bench CORE=verbs
[ -z "$SMOKE" ] || CORE=tcp

# name, which is that of its file, and what it measures
readonly BENCHMARKS="policies  the default policy against pin-down, MRE and the future (simulated)
mpi_policies  the same, on what MPI programs asked for (fabtests/traces)
predict  bytes that stay registered with a helper thread that predicts uses, li2011 (simulated)
helper  a helper thread that predicts uses: registered bytes over time, a limit of locked memory, what a call costs, li2011 (verbs, in the guest)
replay  registered bytes over time of recorded MPI programs beside that helper, li2011 (verbs, in the guest)
sim  how fast the simulator is: a million requests x 20 cells
layer  instructions and time that our layer adds to calls with a descriptor (tcp)
footprint  what domains change in their process: time, threads, descriptors, addresses (tcp)
hit  a hit in the cache and its release, against a mutex and a tree
code  what looking at code for system calls decides, of libraries of this machine
node  processes that share a budget of registered bytes, against fixed parts; and helper threads in several processes, li2011 (tcp; verbs, in the guest)
race  11 million lookups against pages being replaced, one of them beside a helper that predicts; prices of a hit and an unmap
cwrate  streams of small transactions: conditional writes against messages and writes (tcp)
files  parts of files written to a peer: registered before, copied, mapped (tcp; verbs, in the guest)
serve  fi_mrrc_serve and fi_mrrc_get against nginx, http.server and rsync, with their clients (tcp)
nfs  fi_mrrc_serve and fi_mrrc_get against NFS over RDMA, and ib_write_bw (verbs, in the guest)
late  buffers shown later than the data is ready: conditional writes, rendezvous, clear to send, messages (tcp; verbs, in the guest)
frrwp  transactions: what conditional writes save (tcp; verbs, in the guest)
alloc  fi_mr_alloc and fi_mr_free against malloc and free: glibc's, jemalloc, mimalloc
levy  figures 1 to 6 of levy2020: registering, fi_mr_alloc against malloc and registering (verbs, in the guest)
pages  blocks of fi_mr_alloc in pages of 4 KiB and 2 MiB, mietke2006 table 3 (verbs, in the guest)
fragmentation  bytes registered for what real programs allocate
kokkos  figure 7 of levy2020: Views in registered memory, or not (verbs, in the guest)
apps  whole MPI programs of Debian: registrations, bytes and instructions over each cache (verbs, in the guest)
mpi_alloc  memory of MPI_Alloc_mem with and without libmrrc_mpi.so (verbs, in the guest)
pressure  writes from more memory than stays registered (verbs, in the guest)
odp  on-demand paging beside registered pages: reused, replaced, fresh and forked memory (verbs, in the guest)
shapes  how programs use memory for transfers: reused, adjacent, tables, fresh, readable (verbs, in the guest)
pipeline  a cold buffer registered and written part by part, or whole (verbs, in the guest)
profile  what registration is spent on: mietke2006's figures 2 to 5, tables 1 and 3 (verbs, in the guest)
recorder  what recording every request costs a loop of writes without a descriptor, and MPI
rendezvous  1 MiB messages over ofi_rxm, raw against both forms (verbs, in the guest)"

usage()
{
	cat <<-EOT
	Usage: $ME [NAME]
	       $ME --smoke [-b BUILD] [NAME]...

	Runs the benchmark NAME and compares with its goal. Without NAME, lists
	them:

	EOT
	list
	cat <<-EOT

	With --smoke, runs all of them, or those named, for seconds each and
	without the guest, to see that they still measure: a crash, an empty
	table, a missing column or number fails; goals are not compared. The
	last line is "N passed, N failed, N skipped".

	  -b BUILD     with --smoke: try \${OFI_MRRC_BUILD:-build}/BUILD, which is
	               built and installed, and build nothing
	  -h, --help   this text

	Builds and logs go to \${OFI_MRRC_BUILD:-build}.
	Exit status: 0 goal met, $RC_MISSED missed, $RC_CANNOT could not run, as the set-up lacks
	something, $RC_BROKEN failed: a crash, or a table that is not complete. With
	--smoke: 0 if none failed, else $RC_MISSED.
	EOT
}

list()
{
	printf '%s\n' "$BENCHMARKS"
}

cannot()
{
	warn "$*"
	say "$NAME: could not run ($*)"
	exit $RC_CANNOT
}

# The benchmark itself is at fault.
broken()
{
	warn "$*"
	say "$NAME: FAILED ($*)"
	exit $RC_BROKEN
}

# result VALUE GOAL MET: the last line and the exit status. A number that is
# missing leaves a gap.
result()
{
	local gap='(^|[ /])([ ,;/]|$)|(^|[^a-z])(nan|inf)([^a-z]|$)'

	[ "$TABLES" -gt 0 ] || broken "no table was printed"
	[[ $1 = *[0-9]* && ! $1 =~ $gap ]] || broken "a number is missing: $1"
	say "$NAME: $1 (goal $2)"
	[ "$3" = yes ] || smoking || exit "$RC_MISSED"
	exit 0
}

smoking()
{
	[ -n "$SMOKE" ]
}

# ---- what several of them need -----------------------------------------------

at_most()
{
	awk -v a="$1" -v b="$2" 'BEGIN { exit !(a <= b) }'
}

# prepare [PACKAGE...]: builds, sets the provider, installs the packages.
prepare()
{
	smoking || set -- "$BUILD_PACKAGES" "$@"
	need "$*" || cannot "packages are missing"
	smoking || build_installed "$BENCH" || broken "the build failed"
	use_provider "$BENCH" || broken "no provider was built"
	mkdir -p "$DATA"
}

# program PATH: sets PROGRAM, that of the build.
program()
{
	PROGRAM=$BUILD/$BENCH/$1
	[ -x "$PROGRAM" ] || broken "no ${1##*/} was built"
}

# measured TITLE LOG COMMAND...: runs a measurement, with its output in LOG.
measured()
{
	logged "$@" || ended $? "$1" "$2"
}

# ended STATUS TITLE [LOG]: ends the script.
ended()
{
	local signal

	case $1 in
	"$RC_SKIP") cannot "$2: $(tail -n 1 "$3")" ;;
	"$RC_NO_GUEST") cannot "$2: no guest" ;;
	esac
	if [ "$1" -gt 128 ] && signal=$(kill -l "$1" 2>/dev/null); then
		broken "signal $(($1 - 128)), SIG$signal: $2"
	fi
	broken "status $1: $2"
}

# in_guest SECONDS OUT TITLE COMMAND...: measured there, over $CORE.
GUEST_OPTIONS=()
in_guest()
{
	local seconds=$1 out=$2 title=$3

	shift 3
	if smoking; then
		measured "$title, over $CORE" "$out" "$@"
		return
	fi
	need_guest "${GUEST_OPTIONS[@]}" || cannot "the guest cannot be set up"
	measured "$title, in the guest" "$out" "$GUEST" -t "$seconds" \
		"${GUEST_OPTIONS[@]}" -e IPATH_NO_BACKTRACE=1 -- "$@"
}

# table ROWS FORMAT [ROWS FORMAT]...: prints the table that comes in, which has
# so many rows of a format (util/sh/table.awk).
table()
{
	local text

	text=$(cat)
	say "$text"
	complete "$@" <<<"$text"
}

# complete ROWS FORMAT...: the same without printing it.
TABLES=0
complete()
{
	local text rows

	text=$(cat)
	while [ $# -gt 0 ]; do
		rows=$(awk -v format="$2" -f "$TOP/util/sh/table.awk" \
			<<<"$text")
		[ "${rows:-0}" -ge "$1" ] ||
			broken "${rows:-0} rows, not $1, in a table of \"$2\""
		shift 2
	done
	TABLES=$((TABLES + 1))
}

# The set-up of measurements of user code and kernel code.
levy_setup()
{
	say "Set-up: $(setup_line), Soft-RoCE in an emulated guest,"
	say "which slows user code ten times and the kernel's four times."
}

# ---- --smoke -----------------------------------------------------------------

# smoke NAME...: runs each in a process of its own, and prints the results.
smoke()
{
	local name log rc start verdict passed=0 failed=0 skipped=0

	for name in "$@"; do
		start=$SECONDS log=$LOGS/smoke-$name.log
		set -m
		OFI_MRRC_SMOKE=$BENCH timeout $SMOKE_LIMIT \
			"$TOP/bench.sh" "$name" >"$log" 2>&1 </dev/null &
		CHILD=$!
		set +m
		wait "$CHILD"
		rc=$?
		CHILD=
		case $rc in
		0) verdict=PASS passed=$((passed + 1)) ;;
		"$RC_CANNOT") verdict=SKIP skipped=$((skipped + 1)) ;;
		*) verdict=FAIL failed=$((failed + 1)) ;;
		esac
		printf '%s %-14s %3d s  %s\n' $verdict "$name" \
			$((SECONDS - start)) "$(came_to $rc "$name" "$log")"
		[ $verdict != FAIL ] || tail -n 20 "$log" | sed 's/^/   | /'
	done
	say "$passed passed, $failed failed, $skipped skipped"
	[ $failed -eq 0 ] || exit $RC_MISSED
}

# came_to STATUS NAME LOG: why it did not pass.
came_to()
{
	case $1 in
	0) ;;
	"$RC_CANNOT"|"$RC_BROKEN") sed -n "s/^$2: //p" "$3" | tail -n 1 ;;
	124) echo "took more than $SMOKE_LIMIT s" ;;
	*) echo "status $1" ;;
	esac
}

smoke_main()
{
	local name built=no

	NAME=smoke
	if [ "${1-}" = -b ]; then
		[ $# -ge 2 ] || usage_error "-b wants a build"
		BENCH=$2 built=yes
		shift 2
	fi
	# shellcheck disable=SC2046 # a list
	[ $# -gt 0 ] || set -- $(list | sed 's/  .*//')
	for name in "$@"; do
		known "$name" || usage_error "no benchmark $name"
	done
	mkdir -p "$LOGS"
	[ $built = yes ] || prepare
	smoke "$@"
}

# ---- main --------------------------------------------------------------------

known()
{
	grep -q "^$1  " <<<"$BENCHMARKS"
}

usage_error()
{
	warn "$*"
	usage >&2
	exit $RC_CANNOT
}

main()
{
	# a program that dies in a pipe is seen
	set -o pipefail
	case ${1-} in
	'') list; exit 0 ;;
	-h|--help) usage; exit 0 ;;
	--smoke) shift; smoke_main "$@"; exit ;;
	esac
	[ $# -eq 1 ] || usage_error "one benchmark at a time"
	known "$1" || usage_error "no benchmark $1"
	NAME=$1
	# shellcheck source=/dev/null
	. "$TOP/util/sh/bench/$NAME.sh"
	"bench_$NAME"
	broken "it has no result"
}

main "$@"; exit
