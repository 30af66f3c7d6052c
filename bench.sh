#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh: measure one thing.  The last line is "NAME: VALUE (goal GOAL)".
# How NAME is measured is in util/sh/bench/NAME.sh, as bench_NAME.

set -u
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
ME=${0##*/}
# shellcheck source=util/sh/common.sh
. "$TOP/util/sh/common.sh"

readonly RC_MISSED=1 RC_CANNOT=2

# name, which is that of its file, and what it measures
readonly BENCHMARKS="policies  the default policy against pin-down, MRE and the future (simulated)
mpi_policies  the same, on what MPI programs asked for (fabtests/traces)
sim  how fast the simulator is: a million requests x 20 cells
layer  instructions and time that our layer adds to calls with a descriptor (tcp)
hit  a hit in the cache and its release, against a mutex and a tree
race  10 million lookups against pages being replaced; prices of a hit and an unmap
cwrate  streams of small transactions: conditional writes against messages and writes (tcp)
frrwp  transactions: what conditional writes save (tcp; verbs, in the guest)
alloc  fi_mr_alloc and fi_mr_free against malloc and free: glibc's, jemalloc, mimalloc
levy  figures 1 to 6 of levy2020: registering, fi_mr_alloc against malloc and registering (verbs, in the guest)
pages  blocks of fi_mr_alloc in pages of 4 KiB and 2 MiB, mietke2006 table 3 (verbs, in the guest)
fragmentation  bytes registered for what real programs allocate
kokkos  figure 7 of levy2020: Views in registered memory, or not (verbs, in the guest)
pressure  writes from more memory than stays registered (verbs, in the guest)
pipeline  a cold buffer registered and written part by part, or whole (verbs, in the guest)
profile  what registration is spent on: mietke2006's figures 2 to 5, tables 1 and 3 (verbs, in the guest)
recorder  what recording every request costs a loop of writes without a descriptor, and MPI
rendezvous  1 MiB messages over ofi_rxm, raw against both forms (verbs, in the guest)"

usage()
{
	cat <<-EOT
	Usage: $ME [NAME]

	Runs the benchmark NAME and compares with its goal. Without NAME, lists
	them:

	EOT
	list
	cat <<-EOT

	Builds and logs go to \${OFI_MRRC_BUILD:-build}.
	Exit status: 0 goal met, $RC_MISSED missed, $RC_CANNOT could not run.
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

# result VALUE GOAL MET: the last line and the exit status.
result()
{
	say "$NAME: $1 (goal $2)"
	[ "$3" = yes ] && exit 0
	exit $RC_MISSED
}

# ---- what several of them need -----------------------------------------------

at_most()
{
	awk -v a="$1" -v b="$2" 'BEGIN { exit !(a <= b) }'
}

# Sets SIM, the simulator.
build_sim()
{
	need "$BUILD_PACKAGES" || cannot "packages are missing"
	build_installed bench || cannot "the build failed"
	# shellcheck disable=SC2034 # for the benchmarks
	SIM=$BUILD/bench/prefix/bin/fi_mrrc_sim
	[ -x "$SIM" ] || cannot "no fi_mrrc_sim was built"
}

# in_guest SECONDS OUT TITLE COMMAND...
in_guest()
{
	local seconds=$1 out=$2 title=$3

	shift 3
	need_guest || cannot "the guest cannot be set up"
	logged "$title" "$out" "$GUEST" -t "$seconds" \
		-e FI_PROVIDER_PATH="$BUILD/bench/prefix/lib/libfabric" -- \
		"$@" || cannot "the guest failed"
}

# Of what is user code as well as the kernel's.
levy_setup()
{
	say "Set-up: $(setup_line), Soft-RoCE in an emulated guest,"
	say "which slows user code ten times and the kernel's four times."
}

# ---- main --------------------------------------------------------------------

case ${1-} in
'') list; exit 0 ;;
-h|--help) usage; exit 0 ;;
esac
NAME=$1
if [ $# -ne 1 ] || ! grep -q "^$NAME " <<<"$BENCHMARKS"; then
	[ $# -ne 1 ] || warn "no benchmark $NAME"
	usage >&2
	exit $RC_CANNOT
fi
# shellcheck source=/dev/null
. "$TOP/util/sh/bench/$NAME.sh"
"bench_$NAME"
