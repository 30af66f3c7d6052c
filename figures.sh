#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# figures.sh: makes the tables and figures of docs/ anew.
#
# Flow: ./bench.sh measures each thing once, and leaves its data in
# $BUILD/bench -> the scripts of util/plot draw them, each into one page, which
# is replaced when all of it is there.

set -u
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
ME=${0##*/}
# shellcheck source=util/sh/common.sh
. "$TOP/util/sh/common.sh"

readonly RC_FAILED=1 RC_USAGE=2 RC_CANNOT=2
readonly PLOT=$TOP/util/plot

# name, what it makes, and where that is
readonly FIGURES="policies  figures 9 to 12 of ou2009, and the policies compared (docs/policies.md)
mpi_policies  of these, the policies on MPI programs (docs/policies.md)
predict  what a helper thread leaves registered, over time (docs/figures.md)
helper  registered bytes over time beside a helper thread, and a limit of locked memory (docs/figures.md); in the guest
replay  registered bytes over time of recorded programs beside a helper thread (docs/figures.md); in the guest
node  processes of a node: one budget, and helper threads (docs/figures.md)
footprint  what domains change in their process (docs/figures.md)
hit  hits against threads and regions (docs/figures.md)
code  what is decided of the code of libraries (docs/figures.md)
odp  on-demand paging beside registered pages (docs/figures.md); in the guest
shapes  how programs use memory for transfers (docs/figures.md); in the guest
pressure  more memory than stays registered, against libfabric's cache (docs/figures.md); in the guest
files  parts of files copied and mapped (docs/figures.md); in the guest
serve  files fetched from fi_mrrc_serve, nginx, http.server and rsync (docs/figures.md)
nfs  files fetched from fi_mrrc_serve and by NFS over RDMA (docs/figures.md); in the guest
allocator  fi_mr_alloc's speed and fragmentation (docs/alloc.md)
registration  figures 1 and 2 of ou2009 (docs/figures.md); in the guest
frrwp  figures 5 to 8 of ou2009 (docs/frrwp.md); in the guest
cwrate  streams of conditional writes (docs/frrwp.md)
late  buffers shown later than the data is ready (docs/frrwp.md); in the guest
profile  figures 2 and 4, tables 1 and 3 of mietke2006 (docs/figures.md); in the guest
levy  figures 1 to 7 of levy2020 (docs/alloc.md); in the guest
apps  whole MPI programs over each cache (docs/figures.md); in the guest
pages  table 3 of mietke2006 with the allocator's blocks (docs/alloc.md); in the guest
mpi_alloc  memory of MPI_Alloc_mem (docs/alloc.md); in the guest"
readonly QUICK="policies predict footprint hit code allocator cwrate"

usage()
{
	cat <<-EOT
	Usage: $ME [OPTION]... NAME...

	Measures with ./bench.sh, and draws with gnuplot. Without NAME, lists
	them:

	EOT
	list
	cat <<-EOT

	all is all of them, about two hours; quick those that need no virtual
	machine, about ten minutes: $QUICK.
	docs/figures.md shows all figures beside what the papers claim,
	docs/results/benchmarks.txt the result of each benchmark.

	  -d           only draw, what was measured last
	  -o FOLDER    write the pages there, not in docs
	  -b BINDIR    with -d: where fi_mrrc_sim is
	  -h, --help   this text

	TRACES is a folder of recorded traces (see docs/policies.md); without it
	their tables stay. Builds and data go to \${OFI_MRRC_BUILD:-build}.
	A page is replaced when all of it is made. Exit status: 0; $RC_FAILED if a
	figure was not made, $RC_USAGE for wrong usage.

	Examples:
	  $ME hit policies
	  $ME -d -o /tmp/docs levy
	EOT
}

list()
{
	printf '%s\n' "$FIGURES"
}

# The benchmarks that a figure is made from.
benches()
{
	case $1 in
	policies) echo policies mpi_policies ;;
	mpi_policies|predict|helper|replay|node|footprint|hit|code|odp|shapes|pressure|files|serve|nfs|frrwp|cwrate|late|profile|pages|mpi_alloc|apps)
		echo "$1" ;;
	allocator) echo alloc fragmentation ;;
	registration) echo levy profile ;;
	levy) echo levy kokkos ;;
	esac
}

draw()
{
	local traces=()

	if compgen -G "$TRACES/*.csv*" >/dev/null; then
		traces=(-t "$TRACES")
	fi
	case $1 in
	policies)
		"$PLOT/policies.sh" -b "${BIN:-$BUILD/bench/prefix/bin}" \
			"${traces[@]}"
		;;
	mpi_policies)
		"$PLOT/policies.sh" -m -b "${BIN:-$BUILD/bench/prefix/bin}"
		;;
	predict) "$PLOT/predict.sh" -b "${BIN:-$BUILD/bench/prefix/bin}" ;;
	helper)
		"$PLOT/helper.sh" -b "$BUILD/bench" &&
			"$PLOT/said.sh" -b "$BUILD/bench" helper
		;;
	replay)
		"$PLOT/replay.sh" -b "$BUILD/bench" &&
			"$PLOT/said.sh" -b "$BUILD/bench" replay
		;;
	node)
		"$PLOT/node.sh" -b "$BUILD/bench" &&
			"$PLOT/said.sh" -b "$BUILD/bench" node
		;;
	hit) "$PLOT/hit.sh" -b "$BUILD/bench" ;;
	footprint|code|odp|shapes|pressure|files|serve|nfs|late)
		"$PLOT/said.sh" -b "$BUILD/bench" "$1"
		;;
	allocator)
		"$PLOT/said.sh" -b "$BUILD/bench" alloc fragmentation
		;;
	registration) "$PLOT/ou2009.sh" -b "$BUILD/bench" ;;
	frrwp) "$PLOT/frrwp.sh" "$BUILD/bench/frrwp" ;;
	cwrate) "$PLOT/said.sh" -b "$BUILD/bench" cwrate ;;
	profile) "$PLOT/profile.sh" -d "$BUILD/bench/profile/out" ;;
	levy) "$PLOT/alloc.sh" -b "$BUILD/bench" ;;
	pages|mpi_alloc|apps) "$PLOT/said.sh" -b "$BUILD/bench" "$1" ;;
	esac
}

# measure BENCHMARK: once; what it says is kept when it has measured.
declare -A MEASURED
measure()
{
	local name=$1 said=$BUILD/bench/$1.said rc

	[ -z "${MEASURED[$name]-}" ] || return "${MEASURED[$name]}"
	say "== ./bench.sh $name"
	mkdir -p "$BUILD/bench"
	"$TOP/bench.sh" "$name" 2>&1 | tee "$said.new"
	rc=${PIPESTATUS[0]}
	if [ "$rc" -ge $RC_CANNOT ]; then
		rm -f "$said.new"
	else
		# a goal that is missed is a result
		rc=0
		mv "$said.new" "$said"
	fi
	MEASURED[$name]=$rc
	return "$rc"
}

make_figure()
{
	local name

	for name in $(benches "$1"); do
		[ $DRAW_ONLY = yes ] || measure "$name" || return 1
	done
	say "== $1"
	draw "$1"
}

parse()
{
	local name

	while [ $# -gt 0 ]; do
		case $1 in
		-d) DRAW_ONLY=yes ;;
		-o|-b)
			[ $# -ge 2 ] || usage_error "$1 wants a folder"
			[ "$1" = -o ] && OUT=$2
			[ "$1" = -b ] && BIN=$2
			shift
			;;
		-h|--help) usage; exit 0 ;;
		all)
			for name in $(list | sed 's/  .*//'); do
				# it is part of policies
				[ "$name" = mpi_policies ] || WANTED+=("$name")
			done
			;;
		quick) read -ra name <<<"$QUICK"; WANTED+=("${name[@]}") ;;
		*)
			list | grep -q "^$1  " || usage_error "no figure $1"
			WANTED+=("$1")
			;;
		esac
		shift
	done
}

usage_error()
{
	warn "$*"
	usage >&2
	exit $RC_USAGE
}

# A copy of the pages, to write to.
copy_docs()
{
	mkdir -p "$OUT" && OUT=$(cd -- "$OUT" && pwd) || exit $RC_FAILED
	[ -e "$OUT/figures.md" ] || cp -r "$TOP/docs/." "$OUT" ||
		exit $RC_FAILED
	chmod -R u+w "$OUT"
	export OFI_MRRC_DOCS=$OUT
}

main()
{
	local name missing=()

	DRAW_ONLY=no OUT='' BIN='' WANTED=()
	parse "$@"
	if [ ${#WANTED[@]} -eq 0 ]; then
		list
		exit 0
	fi
	if [ $DRAW_ONLY = no ]; then
		need "gnuplot-nox" || exit $RC_FAILED
	fi
	[ -z "$OUT" ] || copy_docs
	for name in "${WANTED[@]}"; do
		make_figure "$name" || missing+=("$name")
	done
	if [ $DRAW_ONLY = no ]; then
		"$PLOT/results.sh" -b "$BUILD/bench" || missing+=(results)
	fi
	if [ ${#missing[@]} -gt 0 ]; then
		warn "not made: ${missing[*]}"
		exit $RC_FAILED
	fi
}

main "$@"; exit
