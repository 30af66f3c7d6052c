#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# record.sh: what MPI programs ask of a registration cache, recorded with
# FI_OFI_MRRC_TRACE: NAS benchmarks and OSU's under Open MPI, Intel's under
# Intel MPI, over tcp;ofi_rxm;ofi_mrrc. The traces in fabtests/traces are its
# output. With -p, other programs for predictions, on which times matter: NAS
# benchmarks and four programs of Debian under Open MPI, with own_time.c.
#
# Flow: build the benchmarks in a folder of our own -> run each in namespaces
# (clients.sh) -> a file of each rank -> one CSV, cut and compressed -> when all
# are there, they and their README.md go to the folder asked for.

set -u
umask 022
export LC_ALL=C

readonly ME=${0##*/}
HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
readonly HERE
# shellcheck source=util/sh/words.sh
. "$HERE/../../util/sh/words.sh"
# shellcheck source=fabtests/scripts/record_own.sh
. "$HERE/record_own.sh"
readonly CLIENTS=$HERE/clients.sh
readonly STACK="tcp;ofi_rxm;ofi_mrrc"
readonly PACKAGES="gfortran make util-linux xz-utils"
readonly RC_CANNOT=2
readonly LIMIT=900	# seconds, of a program

readonly NPB_FROM=https://www.nas.nasa.gov/software/npb.html
readonly OSU_FROM=https://mvapich.cse.ohio-state.edu/benchmarks/

usage()
{
	cat <<-EOT
	Usage: $ME [OPTION]... FOLDER
	       $ME [-p] --setup | [-p] --packages | -h

	Records MPI programs over $STACK, which FI_PROVIDER_PATH
	names, and writes a compressed trace of each to FOLDER, and what each is
	to FOLDER/README.md. Programs whose sources are not given are left out.

	  -n DIR       NAS Parallel Benchmarks 3.3 or later, the folder for MPI,
	               of $NPB_FROM
	  -o DIR       OSU's benchmarks, sources or installed,
	               of $OSU_FROM
	  -i           Intel's benchmarks, which --setup installs
	  -b BINDIR    where fi_mrrc_trace is (default: PATH)
	  -p           programs for predictions: the times are processor times
	               of the ranks (fabtests/clients/own_time.c), messages of
	               16 KiB and more; with -n, and with those programs of
	               Debian that --setup -p installs
	  -s           as -p with -n, in a virtual machine whose clock counts
	               instructions (guest.sh -i), so that nothing disturbs the
	               times; BT, LU and SP make fewer steps
	  -m COUNT     most requests of a trace; the first (default $MOST)
	  --setup      install MPI libraries, Intel's benchmarks and a Fortran
	               compiler, and stop
	  --packages   print the Debian packages that --setup installs
	  -h, --help   this text

	It takes about two minutes, with -p ten to twenty, with -s half an hour. Exit
	status: 0; 1 if a program failed, $RC_CANNOT if something is missing: then
	FOLDER is as it was.
	EOT
}

failed()
{
	local log=$1

	shift
	tail -n 20 "$log" | sed 's/^/  | /' >&2
	printf '%s: %s\n' "$ME" "$*" >&2
	exit 1
}

packages()
{
	[ "$PREDICT" = no ] || printf '%s ' "$PREDICT_PACKAGES"
	echo "$PACKAGES"
}

setup()
{
	local pkg want=()

	"$CLIENTS" --setup || exit $RC_CANNOT
	for pkg in $(packages); do
		dpkg-query -W -f '${Status}' "$pkg" 2>/dev/null |
			grep -q 'ok installed' || want+=("$pkg")
	done
	[ ${#want[@]} -gt 0 ] || return 0
	[ "$(id -u)" -eq 0 ] || die "as root: apt-get install ${want[*]}"
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
		--no-install-recommends "${want[@]}" >/dev/null ||
		die "cannot install ${want[*]}"
}

# ---- the programs ----------------------------------------------------------

programs_npb()
{
	if [ "$STEADY" = yes ]; then
		tr ' ' '\n' <<<"$STEADY_NPB"
	elif [ "$PREDICT" = yes ]; then
		tr ' ' '\n' <<<"$PREDICT_NPB"
	else
		printf '%s\n' cg.W.4 ft.W.4 is.W.4 lu.W.4
	fi
}

# Copies the sources: nothing is written where they are.
build_npb()
{
	local name class ranks dir=$WORK/npb log=$WORK/npb.log

	[ -f "$NPB/config/make.def.template" ] ||
		die "$NPB is no folder of the NAS benchmarks for MPI"
	if ! cp -r "$NPB" "$dir" || ! mkdir -p "$dir/bin"; then
		die "cannot copy $NPB"
	fi
	rm -f "$dir"/bin/*
	# older Fortran than the compiler takes by itself; both spellings, as
	# 3.4 has others than 3.3
	cat >"$dir/config/make.def" <<-EOT
	MPIF77 = mpif77.openmpi
	MPIFC = mpif90.openmpi
	FLINK = mpif77.openmpi
	FFLAGS = -O2 -fallow-argument-mismatch -fallow-invalid-boz
	FLINKFLAGS = -O2
	MPICC = mpicc.openmpi
	CLINK = mpicc.openmpi
	CFLAGS = -O2
	CLINKFLAGS = -O2
	CC = cc
	BINDIR = ../bin
	RAND = randi8
	EOT
	while IFS=. read -r name class ranks; do
		{
			make -C "$dir" "$name" "CLASS=$class" "NPROCS=$ranks" &&
				# 3.4 names no number
				{ [ -x "$dir/bin/$name.$class.$ranks" ] ||
				mv "$dir/bin/$name.$class.x" \
					"$dir/bin/$name.$class.$ranks"; }
		} >>"$log" 2>&1 || failed "$log" "$name does not build"
	done < <(programs_npb)
}

find_osu()
{
	local log=$WORK/osu.log

	[ -d "$OSU" ] || die "there is no $OSU"
	OSU_BIN=$(installed_osu "$OSU")
	[ -z "$OSU_BIN" ] || return 0
	[ -x "$OSU/configure" ] ||
		die "$OSU has neither osu_latency nor configure"
	{
		cp -r "$OSU" "$WORK/osu" && cd "$WORK/osu" &&
			./configure --prefix="$WORK/osu-installed" \
				CC=mpicc.openmpi CXX=mpicxx.openmpi &&
			make && make install
	} >"$log" 2>&1 || failed "$log" "OSU's benchmarks do not build"
	OSU_BIN=$(installed_osu "$WORK/osu-installed")
}

# Finds the folder above pt2pt and collective; libtool's scripts in the sources
# do not count.
installed_osu()
{
	local file

	file=$(find "$1" -path '*/libexec/*/pt2pt/osu_latency' -perm -u+x |
		head -n 1)
	[ -z "$file" ] || dirname "$(dirname "$file")"
}

# ---- recording -------------------------------------------------------------

# Makes one CSV of all ranks: times from 0, threads numbered. Left out: fields
# of a request that a replay does not need; and requests that the same call
# repeated because ofi_rxm was still connecting and had refused the operation. A
# refused one ends at once, before the next begins. Requests of less than $1
# bytes are left out, too.
slim()
{
	awk -F, -v most="$MOST" -v least="$1" '
	NR == 1 {
		for (i = 1; i <= NF; i++)
			at[$i] = i
		print "time_us,addr,len,proc,access,result,end_ns,thread," \
			"op,peer,site"
		next
	}
	function col(name) { return $at[name] }
	# from the first request on; 0: it had not ended
	function end() {
		if (col("end_ns") + 0 < col("begin_ns") + 0)
			return 0
		return sprintf("%.0f", col("end_ns") - 1000 * start)
	}
	col("len") + 0 < least {
		next
	}
	{
		begin = col("begin_ns")
		thread = col("proc") "," col("thread")
		call = col("op") "," col("peer") "," col("addr") "," \
			col("len") "," col("site")
		again = col("op") ~ /send$/ && call == last[thread] &&
			ended[thread] >= began[thread] &&
			ended[thread] - began[thread] < quick &&
			begin >= ended[thread] &&
			begin - ended[thread] < quick
		last[thread] = call
		began[thread] = begin
		ended[thread] = col("end_ns")
		if (again || ++kept > most)
			next
		if (kept == 1)
			start = col("time_us")
		if (!(thread in number))
			number[thread] = threads++
		print col("time_us") - start "," col("addr") "," col("len") \
			"," col("proc") "," col("access") "," col("result") \
			"," end() "," number[thread] "," col("op") "," \
			col("peer") "," col("site")
	}
	END {
		if (kept > most)
			print kept >"/dev/stderr"
	}' quick=20000
}

# record NAME PROGRAM CLIENT RANKS COMMAND...: writes $WORK/out/NAME.csv.xz, and
# a line for README.md, which PROGRAM is for.
record()
{
	local name=$1 program=$2 client=$3 ranks=$4 files csv all note log
	local least=0 own=() guest=()

	shift 4
	[ "$STEADY" = no ] ||
		guest=("$HERE/guest.sh" -i -c 1 -t "$((2 * LIMIT))" -w "$WORK")
	if [ "$PREDICT" = yes ]; then
		least=$LEAST
		own=(env LD_PRELOAD="$WORK/own_time.so" OMP_NUM_THREADS=1)
	fi
	log=$WORK/$name.log
	echo "$name"
	FI_OFI_MRRC_TRACE=$WORK/$name.%p.btr "${guest[@]}" "$CLIENTS" -w "$WORK/run" \
		-T "$LIMIT" --run "$client" "$STACK" "$ranks" setarch "$(uname -m)" -R \
		"${own[@]}" "$@" >"$log" 2>&1 || failed "$log" "$name failed"
	# the NAS benchmarks check their results, where they know them
	grep -qi 'no reference values' "$log" ||
		! grep -qi 'verification.*unsuccessful' "$log" ||
		failed "$log" "$name has wrong results"
	mapfile -t files < <(find "$WORK" -maxdepth 1 -name "$name.*.btr" |
		sort -V)
	[ ${#files[@]} -eq "$ranks" ] ||
		failed "$log" "$name: ${#files[@]} of $ranks ranks are recorded"
	csv=$WORK/out/$name.csv
	"${BIN}fi_mrrc_trace" -f csv -o "$WORK/$name.csv" "${files[@]}" ||
		failed "$log" "$name cannot be converted"
	{
		echo "# $program, $ranks ranks, $(mpi_of "$client")," \
			"libfabric $LIBFABRIC, $DATE"
		slim "$least" <"$WORK/$name.csv"
	} >"$csv" 2>"$WORK/$name.all"
	"${BIN}fi_mrrc_trace" -s "$csv" >"$WORK/$name.summary" ||
		failed "$WORK/$name.all" "$name cannot be read again"
	all=$(cat "$WORK/$name.all") note=
	[ -z "$all" ] || note=", the first of $all"
	# shellcheck disable=SC2016 # Markdown
	printf '| %s | %s | %s | %s | `%s` | %s%s | %s |\n' "$name" "$program" \
		"$(mpi_of "$client")" "$ranks" "$(shown "$@")" \
		"$(grep -cE '^[0-9]' "$csv")" "$note" \
		"$(sed -n 's/^.*buffers, on \(.*\) of pages$/\1/p' \
			"$WORK/$name.summary")" >>"$WORK/table"
	xz -9e "$csv" || failed "$log" "$name cannot be compressed"
	rm -f "${files[@]}" "$WORK/$name.csv"
}

# Prints the command as a user would type it.
shown()
{
	local program=${1##*/}

	shift
	echo "$program${*:+ $*}"
}

mpi_of()
{
	case $1 in
	openmpi) echo "$OPENMPI" ;;
	impi) echo "$IMPI" ;;
	esac
}

record_npb()
{
	local name class ranks version stem=nas_

	version=$(sed -n '1,5s/.*NPB \([0-9.]*\).*/\1/p' "$NPB/README" |
		head -n 1)
	[ "$PREDICT" = no ] || stem=''
	[ "$STEADY" = no ] || cd "$INPUTS" || exit
	while IFS=. read -r name class ranks; do
		record "$stem$name" "NAS ${name^^} ${version:-?}, class $class" \
			openmpi "$ranks" "$WORK/npb/bin/$name.$class.$ranks"
	done < <(programs_npb)
}

record_osu()
{
	local version

	version=$("$CLIENTS" --run openmpi "$STACK" 2 \
		"$OSU_BIN/pt2pt/osu_latency" -m 1 -i 1 -x 0 2>/dev/null |
		sed -n 's/^# OSU.* v\([0-9.]*\).*/\1/p')
	[ -n "$version" ] || die "$OSU_BIN/pt2pt/osu_latency does not run"
	record osu_latency "OSU $version" openmpi 2 \
		"$OSU_BIN/pt2pt/osu_latency" -m 1:1048576 -i 20 -x 5
	record osu_bw "OSU $version" openmpi 2 \
		"$OSU_BIN/pt2pt/osu_bw" -m 1:1048576 -i 2 -x 1
	for name in alltoall allreduce allgather; do
		record "osu_$name" "OSU $version" openmpi 4 \
			"$OSU_BIN/collective/osu_$name" -m 1:1048576 -i 10 -x 2
	done
}

# -off_cache: other memory for each message
record_imb()
{
	local dir=$CACHE/impi/bin version
	local common=(-iter 10 -time 0.3)

	version=$("$CLIENTS" --run impi "$STACK" 2 "$dir/IMB-MPI1" -iter 1 \
		-msglog 0:1 PingPong 2>/dev/null |
		sed -n 's/.*MPI Benchmarks \([0-9.]*\).*/\1/p' | head -n 1)
	[ -n "$version" ] || die "$dir/IMB-MPI1 does not run"
	record imb_cold "IMB $version, PingPong" impi 2 "$dir/IMB-MPI1" \
		-iter 40 -time 0.3 -msglog 10:20 -off_cache 8,64 PingPong
	record imb_put "IMB $version, Unidir_put" impi 2 "$dir/IMB-RMA" \
		"${common[@]}" -msglog 0:20 Unidir_put
	for name in Exchange Alltoall Allreduce; do
		record "imb_${name,,}" "IMB $version, $name" impi 4 \
			"$dir/IMB-MPI1" -npmin 4 "${common[@]}" -msglog 0:20 \
			"$name"
	done
}

# ---- main ------------------------------------------------------------------

readme()
{
	cat <<-EOT
	# Requests of MPI programs for registered memory

	Recorded by \`fabtests/scripts/record.sh\`, which makes them again, on $DATE:
	Linux $(uname -r | cut -d- -f1), libfabric $LIBFABRIC, over \`$STACK\` and
	loopback, where \`FI_OFI_MRRC_REGISTER=always\` makes each message that is not
	injected a request; ranks are the column \`proc\`. CSV as fi_mrrc_trace(1) and
	fi_mrrc_sim(1) read it, compressed by xz, without the columns that replaying
	does not need. Addresses are not randomised.
	$(own_times)

	Sources: NAS Parallel Benchmarks from <$NPB_FROM>,
	OSU's from <$OSU_FROM>; Intel's come with
	Intel MPI's package at PyPI.

	| trace | program | library | ranks | command | requests | pages touched |
	|---|---|---|---|---|---|---|
	EOT
	cat "$WORK/table"
}

parse()
{
	while [ $# -gt 0 ]; do
		case $1 in
		-i) WITH_IMB=yes ;;
		-p) PREDICT=yes ;;
		-s) PREDICT=yes STEADY=yes ;;
		--setup) setup; exit ;;
		--packages)
			echo "$("$CLIENTS" --packages) $(packages)"
			exit
			;;
		-h|--help) usage; exit ;;
		-n|-o|-b|-m)
			[ $# -ge 2 ] || die "$1 wants a value"
			case $1 in
			-n) NPB=$2 ;;
			-o) OSU=$2 ;;
			-b) BIN=$(realpath -- "$2")/ ;;
			-m) MOST=$2 ;;
			esac
			shift
			;;
		-*) usage >&2; die "unknown option $1" ;;
		*)
			[ -z "$FOLDER" ] || die "one folder, not $FOLDER and $1"
			FOLDER=$(realpath -m -- "$1")
			;;
		esac
		shift
	done
	[[ $MOST =~ ^[1-9][0-9]*$ ]] || die "wrong count $MOST"
	[ -n "$FOLDER" ] || { usage >&2; die "where to?"; }
	[ -z "$OSU$WITH_IMB" ] || [ "$PREDICT" = no ] ||
		die "-p records neither -o nor -i"
	[ -n "$NPB" ] || [ "$STEADY" = no ] || die "-s records -n alone"
	[ -n "$NPB$OSU$WITH_IMB" ] || [ "$PREDICT" = yes ] ||
		die "none of -n, -o, -i and -p: nothing to record"
}

main()
{
	local tool file

	CACHE=${OFI_MRRC_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ofi_mrrc}
	NPB='' OSU='' WITH_IMB='' PREDICT=no STEADY=no BIN='' MOST=10000 FOLDER=''
	parse "$@"
	for tool in mpirun.openmpi mpicc.openmpi setarch xz awk make \
		"${BIN}fi_mrrc_trace"; do
		command -v "$tool" >/dev/null ||
			die "$tool is missing; to install: $0 --setup"
	done
	[ -z "$NPB" ] || command -v gfortran >/dev/null ||
		die "gfortran is missing; to install: $0 --setup"
	[ -f "${FI_PROVIDER_PATH-}/libmrrc-fi.so" ] ||
		die "FI_PROVIDER_PATH names no folder with our provider"
	FI_PROVIDER_PATH=$(realpath -- "$FI_PROVIDER_PATH")
	export FI_PROVIDER_PATH
	[ -z "$WITH_IMB" ] || [ -x "$CACHE/impi/bin/IMB-MPI1" ] ||
		die "Intel's benchmarks are missing; to install: $0 --setup"
	WORK=$(mktemp -d "${TMPDIR:-/tmp}/ofi_mrrc-record.XXXXXX") ||
		die "cannot make a temporary folder"
	trap 'rm -rf "$WORK"' EXIT
	trap 'exit 130' INT TERM
	mkdir -p "$WORK/out"
	DATE=$(date +%Y-%m-%d)
	LIBFABRIC=$(fi_info --version | sed -n 's/^libfabric: //p')
	OPENMPI="Open MPI $(mpirun.openmpi --version | sed -n '1s/.* //p')"
	IMPI=$("$CACHE/impi/bin/mpiexec.hydra" --version 2>/dev/null |
		sed -n 's/.*Version \([0-9.]*\).*/Intel MPI \1/p' | head -n 1)
	[ "$PREDICT" = no ] || cc -O2 -shared -fPIC -o "$WORK/own_time.so" \
		"$HERE/../clients/own_time.c" || die "own_time.c does not compile"
	if [ -n "$NPB" ]; then
		build_npb
		record_npb
	fi
	if [ -n "$OSU" ]; then
		find_osu
		record_osu
	fi
	[ -z "$WITH_IMB" ] || record_imb
	[ "$PREDICT$STEADY" != yesno ] || record_debian
	readme >"$WORK/out/README.md"
	mkdir -p "$FOLDER" || die "cannot make $FOLDER"
	for file in "$WORK"/out/*; do
		if ! cp "$file" "$FOLDER/.${file##*/}.new" ||
		   ! mv "$FOLDER/.${file##*/}.new" "$FOLDER/${file##*/}"; then
			die "cannot write $FOLDER"
		fi
	done
	du -sh "$FOLDER"
}

MOST=10000
# one line: nothing is read from this file once main() has begun
main "$@"; exit
