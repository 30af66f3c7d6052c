#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# clients.sh: MPI libraries as they come, over ofi_mrrc: a program that checks
# its data (fabtests/clients), and the library's own benchmarks.  One line for
# each run, and at the end "N passed, N failed, N skipped".
#
# Flow: for each client: build the program with the client's compiler wrapper
# -> run it on some ranks, in namespaces of its own, so that nothing is left
# and nothing leaves the machine -> add up its tests, and look in the log
# whether the cache was used by every rank.

set -u
umask 022
export LC_ALL=C

readonly ME=${0##*/}
HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
readonly HERE
# shellcheck source=util/sh/words.sh
. "$HERE/../../util/sh/words.sh"
readonly SOURCES=$HERE/../clients

# The packages that --setup installs; no other list names them.
readonly PACKAGES="gcc iproute2 libc6-dev libopenmpi-dev openmpi-bin
	python3-venv util-linux"
readonly IMPI="impi-rt==2021.18.1 impi-devel==2021.18.1"
readonly MPICH="mpich==5.0.2"

readonly CLIENTS="openmpi impi mpich verbs"
readonly RC_CANNOT=2

# Failures of native RDM of libfabric 1.17 (net) under Open MPI, without
# ofi_mrrc as well: large unexpected messages (hangs), FI_CLAIM, one-sided over
# pt2pt.
readonly NET_FAILS_RAW=unexpected,mprobe,rma
# Failures of ofi_rxm 1.17 over verbs, without ofi_mrrc as well: FI_CLAIM of
# more than short messages (dies), mremap of memory that was registered.
readonly VERBS_FAILS_RAW=mprobe,move
# Failures of MPICH 5.0.2 over tcp: mremap. On a busy machine a rank aborts
# (munmap_chunk: invalid pointer), with and without ofi_mrrc.
readonly MPICH_FAILS_RAW=move

usage()
{
	cat <<-EOT
	Usage: $ME [OPTION]... [CLIENT]...
	       $ME [OPTION]... --run CLIENT STACK RANKS COMMAND...
	       $ME --setup | --packages | -h

	Runs MPI programs over ofi_mrrc, which FI_PROVIDER_PATH names.  CLIENT:

	  openmpi  Debian's Open MPI, over tcp;ofi_rxm;ofi_mrrc and net;ofi_mrrc
	  impi     Intel MPI's runtime and benchmarks from PyPI, over
	           tcp;ofi_rxm;ofi_mrrc
	  mpich    MPICH's wheel from PyPI, which brings libfabric 2.x, over
	           tcp;ofi_mrrc; only with -2
	  verbs    Open MPI and Intel MPI over verbs;ofi_rxm;ofi_mrrc; only where
	           there is a device

	Without CLIENT: openmpi impi, and mpich with -2.

	  -2 DIR       folder with a provider built for libfabric 2.x
	  -w DIR       build and log there (default: a temporary folder)
	  -T SECONDS   limit for each run (default 180)
	  -q           less: two ranks, small messages
	  -v           output of all runs
	  --build      build the programs in DIR, and stop
	  --run        run COMMAND as the tests are run, and show what it says
	  --setup      install what is needed, and stop
	  --packages   print the Debian packages that --setup installs
	  -h, --help   this text

	PyPI's packages ($IMPI $MPICH) go to
	\${OFI_MRRC_CACHE:-\${XDG_CACHE_HOME:-~/.cache}/ofi_mrrc}.
	Exit status: 0 no test failed, 1 some did, $RC_CANNOT could not run.
	EOT
}

usage_error()
{
	printf '%s: %s\n' "$ME" "$*" >&2
	usage >&2
	exit $RC_CANNOT
}

# ---- what is needed ------------------------------------------------------

install_packages()
{
	local pkg want=()

	for pkg in $PACKAGES; do
		dpkg-query -W -f '${Status}' "$pkg" 2>/dev/null |
			grep -q 'ok installed' || want+=("$pkg")
	done
	[ ${#want[@]} -eq 0 ] && return 0
	[ "$(id -u)" -eq 0 ] || die "as root: apt-get install ${want[*]}"
	say "installing ${want[*]}"
	apt-get update -qq &&
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
			--no-install-recommends "${want[@]}" >/dev/null
}

# install_python NAME "PACKAGE==VERSION...": in an environment of its own.
install_python()
{
	local dir=$CACHE/$1

	[ "$(cat "$dir/ready" 2>/dev/null)" = "$2" ] && return 0
	say "installing $2 in $dir"
	rm -rf "$dir"
	# shellcheck disable=SC2086 # a list
	python3 -m venv "$dir" && "$dir/bin/pip" install -q \
		--disable-pip-version-check $2 &&
		echo "$2" >"$dir/ready" && return 0
	rm -rf "$dir"
	return 1
}

setup()
{
	mkdir -p "$CACHE" || die "cannot make $CACHE"
	install_packages || die "cannot install packages"
	install_python impi "$IMPI" || die "cannot install $IMPI"
	install_python mpich "$MPICH" || die "cannot install $MPICH"
	say "ready"
}

# ---- results -------------------------------------------------------------

# report WORD CLIENT STACK WHAT...
report()
{
	local word=$1 client=$2 stack=$3

	shift 3
	printf '%-4s %-8s %-24s %s\n' "$word" "$client" "$stack" "$*"
}

# Prints the last lines of a log that are not libfabric's own.
show()
{
	grep -avE '^libfabric:[0-9]+:|^$' "$1" | tail -n "$2" | sed 's/^/  | /'
}

failed()
{
	report FAIL "$@"
	FAILED=$((FAILED + 1))
	show "$LOG" 25
}

passed()
{
	report PASS "$@"
	PASSED=$((PASSED + 1))
}

# Prints how long the run took, and how it ended if it was ended.
ending()
{
	case $RC in
	124|137) echo "no end within $LIMIT s" ;;
	*) echo "status $RC after $TOOK s" ;;
	esac
}

# settle_tests CLIENT STACK WHAT: adds mpi_check's own sums.
settle_tests()
{
	local client=$1 stack=$2 what=$3 sum

	sum=$(grep -aE '^[0-9]+ passed, [0-9]+ failed' "$LOG" | tail -n 1)
	if [[ ! $sum =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+) ]]; then
		failed "$client" "$stack" "$what: $(ending)"
		return 1
	fi
	PASSED=$((PASSED + BASH_REMATCH[1]))
	FAILED=$((FAILED + BASH_REMATCH[2]))
	SKIPPED=$((SKIPPED + BASH_REMATCH[3]))
	if [ "${BASH_REMATCH[2]}" -gt 0 ]; then
		report FAIL "$client" "$stack" "$what: $sum"
		show "$LOG" 40
	elif [ "$RC" -ne 0 ]; then
		failed "$client" "$stack" "$what: $sum, then $(ending)"
	else
		report PASS "$client" "$stack" "$what: $sum in $TOOK s"
	fi
	return 0
}

# settle_counters CLIENT STACK RANKS: checks the counters that each rank's
# domain logged when it was closed. Without them a test of ours would be one of
# the core alone.
settle_counters()
{
	local client=$1 stack=$2 ranks=$3 core=${2%;ofi_mrrc}

	if grep -aoE "<info> $core: [0-9]+ lookups, [0-9]+ hits, .*" "$LOG" |
		awk -v want="$ranks" '
			{
				sub(/.*<info> [^ ]*: /, "")
				n++
				lookups += $1
				hits += $3
				if (!$1 || !$3)
					idle++
			}
			END {
				printf "counters of %d ranks: %d lookups, " \
					"%d hits\n", n, lookups, hits
				exit n < want || idle
			}' >"$WORK/counters"; then
		passed "$client" "$stack" "$(cat "$WORK/counters")"
	else
		failed "$client" "$stack" "$(cat "$WORK/counters")"
	fi
}

# settle_asks CLIENT STACK RANKS: checks the last log line of each rank on
# whether lookups ask the kernel. Lookups that ask because of some code of the
# process are a failure; a rank that ended before all code was checked is none.
settle_asks()
{
	local client=$1 stack=$2 ranks=$3

	if grep -aoE "libfabric:[0-9]+:.*<info> lookups (make|of a process).*" \
		"$LOG" | awk -v ranks="$ranks" '
			{
				split($0, part, ":")
				pid = part[2]
				asks[pid] = ""
				if (sub(/.* ask the kernel: /, ""))
					asks[pid] = $0
			}
			END {
				for (pid in asks) {
					none += asks[pid] == ""
					if (asks[pid] ~ /[+]0x|: code /)
						why = asks[pid]
				}
				printf "of %d ranks, lookups of %d make no " \
					"system call%s\n", ranks, none,
					why ? "; " why : ""
				exit why != ""
			}' >"$WORK/asks"; then
		passed "$client" "$stack" "$(cat "$WORK/asks")"
	else
		failed "$client" "$stack" "$(cat "$WORK/asks")"
	fi
}

# ---- runs ----------------------------------------------------------------

# Runs in the namespaces: a loopback of its own, a name that resolves to it,
# shared memory that goes with it. And an interface that leads nowhere: net
# does not take the loopback for one that reaches other hosts, and Open MPI
# wants such.
# shellcheck disable=SC2016,SC2317 # for the shell in there
readonly INSIDE='
	if [ "$1" = net ]; then
		ip link set lo up && hostname localhost || exit 125
		ip link add mrrc0 type veth peer name mrrc1 &&
			ip addr add 10.0.0.1/24 dev mrrc0 &&
			ip link set mrrc1 up && ip link set mrrc0 up
	fi
	mount -t tmpfs tmpfs /dev/shm || exit 125
	shift
	exec "$@"'

# launch NAME COMMAND...: runs COMMAND in namespaces, which end all its
# processes with them. Sets LOG, RC and TOOK. Over verbs the network is the
# host's: the device is in it.
launch()
{
	local start=$SECONDS flags=(--mount --pid --fork --mount-proc
		--kill-child --ipc --uts) net=none

	LOG=$WORK/$1.log
	shift
	[ "$NETNS" = no ] || { flags+=(--net); net=net; }
	[ "$(id -u)" -eq 0 ] || flags+=(--user --map-root-user)
	# unshare ignores SIGINT and SIGTERM
	TMPDIR=$WORK timeout -s KILL "$LIMIT" unshare "${flags[@]}" \
		bash -c "$INSIDE" inside "$net" "$@" >"$LOG" 2>&1 </dev/null
	RC=$?
	TOOK=$((SECONDS - start))
	[ "$VERBOSE" = no ] || show "$LOG" 1000
}

# The variables of a run over a stack; a raw one has no provider of ours.
stack_env()
{
	local stack=$1 path=${2-$FI_PROVIDER_PATH}

	ENV=(env -u FI_PROVIDER_PATH FI_PROVIDER="$stack")
	[[ $stack == *ofi_mrrc* ]] || return 0
	ENV+=(FI_PROVIDER_PATH="$path" FI_LOG_LEVEL=info FI_LOG_SUBSYS=mr
		FI_OFI_MRRC_PROBE=proven FI_OFI_MRRC_CODE_FILE=0)
	case $stack in
	verbs*) ;;
	*) ENV+=(FI_OFI_MRRC_REGISTER=always) ;;
	esac
}

openmpi_launch()
{
	local name=$1 stack=$2 ranks=$3

	shift 3
	stack_env "$stack"
	launch "$name" "${ENV[@]}" mpirun.openmpi --allow-run-as-root \
		--oversubscribe -n "$ranks" --mca mpi_yield_when_idle 1 \
		--mca pml cm --mca mtl ofi \
		--mca mtl_ofi_provider_include "$stack" \
		--mca btl self --mca osc pt2pt "$@"
}

impi_launch()
{
	local name=$1 stack=$2 ranks=$3 dir=$CACHE/impi

	shift 3
	stack_env "$stack"
	launch "$name" "${ENV[@]}" I_MPI_ROOT="$dir" I_MPI_FABRICS=ofi \
		I_MPI_OFI_LIBRARY_INTERNAL=0 I_MPI_OFI_LIBRARY="$LIBFABRIC" \
		I_MPI_HYDRA_IFACE=lo LD_LIBRARY_PATH="$dir/lib" \
		I_MPI_THREAD_YIELD=2 \
		"$dir/bin/mpiexec.hydra" -n "$ranks" "$@"
}

mpich_launch()
{
	local name=$1 stack=$2 ranks=$3

	shift 3
	stack_env "$stack" "$PROVIDER2"
	launch "$name" "${ENV[@]}" MPIR_CVAR_CH4_NETMOD=ofi \
		MPIR_CVAR_NOLOCAL=1 "$CACHE/mpich/bin/mpiexec" -n "$ranks" "$@"
}

# client_launch CLIENT NAME STACK RANKS COMMAND...
client_launch()
{
	local client=$1

	shift
	case $client in
	openmpi) openmpi_launch "$@" ;;
	impi) impi_launch "$@" ;;
	mpich) mpich_launch "$@" ;;
	esac
}

# check_data CLIENT STACK RANKS [OPTION...]: runs mpi_check, and checks the
# counters.
check_data()
{
	local client=$1 stack=$2 ranks=$3

	shift 3
	[ "$QUICK" = no ] || set -- -m 300000 "$@"
	RUNS=$((RUNS + 1))
	client_launch "$client" "$client-$RUNS" "$stack" "$ranks" \
		"$WORK/mpi_check.$client" -T $((LIMIT - 5)) "$@"
	settle_tests "$client" "$stack" "$ranks ranks${*:+, $*}" || return
	settle_counters "$client" "$stack" "$ranks"
	settle_asks "$client" "$stack" "$ranks"
}

# check_checker CLIENT STACK: checks that mpi_check finds wrong data.
check_checker()
{
	local client=$1 stack=$2 what="one rank sends wrong data" sum

	client_launch "$client" "$client-wrong" "$stack" 2 \
		"$WORK/mpi_check.$client" -b -m 70000 -T $((LIMIT - 5))
	sum=$(grep -aE '^[0-9]+ passed, [0-9]+ failed' "$LOG")
	if [[ $sum =~ ^0\ passed,\ [1-9] ]]; then
		passed "$client" "$stack" "$what: all tests notice it"
	else
		failed "$client" "$stack" "$what: ${sum:-$(ending)}"
	fi
}

# imb STACK RANKS PROGRAM BENCHMARK...: runs Intel's benchmarks, each of which
# has to end.
imb()
{
	local stack=$1 ranks=$2 program=$3 name sizes=0:20

	shift 3
	[ "$QUICK" = no ] || sizes=0:16
	RUNS=$((RUNS + 1))
	impi_launch "imb-$RUNS" "$stack" "$ranks" "$CACHE/impi/bin/$program" \
		-npmin "$ranks" -iter 20 -time 0.5 -msglog $sizes "$@"
	for name in "$@"; do
		if [ "$RC" -eq 0 ] && grep -aq "^# Benchmarking:* $name *$" "$LOG"
		then
			PASSED=$((PASSED + 1))
		else
			failed impi "$stack" "$program $name: $(ending)"
			return
		fi
	done
	report PASS impi "$stack" "$ranks ranks, $program $*: $TOOK s"
	[[ $stack != *ofi_mrrc* ]] ||
		settle_counters impi "$stack" "$ranks"
}

# registrations CORE: of each rank's domain, as it logged them
registrations()
{
	grep -aoE "<info> $1: [0-9]+ lookups, .*" "$LOG" |
		sed -E 's/.* ([0-9]+) registrations.*/\1/'
}

# check_exchange CLIENT STACK CORE SIZE LEAST MOST [VARIABLE]...: two ranks get two
# new buffers by MPI_Alloc_mem for each of 52 exchanges; checks the data, and that
# each rank made from LEAST to MOST registrations.
check_exchange()
{
	local client=$1 stack=$2 core=$3 size=$4 least=$5 most=$6 what counts

	shift 6
	what="MPI_Alloc_mem of $size"
	[[ $* != *LD_PRELOAD=* ]] || what+=", LD_PRELOAD"
	[[ $* != *FI_HOOK=* ]] || what+=", FI_HOOK"
	RUNS=$((RUNS + 1))
	# malloc maps new memory each time, as it does by default for more bytes
	client_launch "$client" "$client-$RUNS" "$stack" 2 env \
		MALLOC_MMAP_THRESHOLD_=65536 "$@" "$WORK/alloc_mem.$client" \
		50 "$size"
	counts=$(registrations "$core" | paste -sd ' ')
	if [ "$RC" -eq 0 ] && grep -aq '^alloc_mem ' "$LOG" &&
		registrations "$core" | awk -v least="$least" -v most="$most" '
			$1 >= least && $1 <= most { n++ }
			END { exit n != 2 || NR != 2 }'; then
		passed "$client" "$stack" "$what: $counts registrations"
	else
		failed "$client" "$stack" \
			"$what: ${counts:-no} registrations, $(ending)"
	fi
}

# check_mistake CLIENT STACK MISTAKE [VARIABLE]...: SAID is what the program prints, or
# "died".
check_mistake()
{
	local client=$1 stack=$2 mistake=$3

	shift 3
	client_launch "$client" "$client-$mistake" "$stack" 1 env "$@" \
		"$WORK/alloc_mem.$client" "$mistake"
	SAID=died
	[ "$RC" -ne 0 ] || SAID=$(grep -aE '^(zero|freed|kept): ' "$LOG")
}

# check_alloc_mem CLIENT STACK [PROVIDER]: MPI_Alloc_mem with and without
# libmrrc_mpi.so, which is beside the provider.
check_alloc_mem()
{
	local client=$1 stack=$2 path=${3-$FI_PROVIDER_PATH} size mistake alone
	local core=${2%;ofi_mrrc}
	local preload=LD_PRELOAD=$path/libmrrc_mpi.so

	check_exchange "$client" "$stack" "$core" 1048576 100 120
	# at most 10 are buffers of MPICH itself
	for size in 1048576 65536; do
		check_exchange "$client" "$stack" "$core" $size 0 10 "$preload"
	done
	[ "$QUICK" = no ] || return
	for mistake in zero foreign kept twice late; do
		check_mistake "$client" "$stack" "$mistake"
		alone=$SAID
		check_mistake "$client" "$stack" "$mistake" "$preload"
		if [ -n "$SAID" ] && [ "$SAID" = "$alone" ]; then
			passed "$client" "$stack" \
				"$mistake as without LD_PRELOAD: $SAID"
		else
			failed "$client" "$stack" \
				"$mistake: $SAID, without LD_PRELOAD $alone"
		fi
	done
}

# ---- clients -------------------------------------------------------------

compile()
{
	local client=$1 compiler

	case $client in
	openmpi|verbs)
		client=openmpi
		compiler=(mpicc.openmpi)
		;;
	impi)
		compiler=(env I_MPI_ROOT="$CACHE/impi" "$CACHE/impi/bin/mpicc")
		;;
	mpich)
		compiler=("$CACHE/mpich/bin/mpicc")
		;;
	esac
	"${compiler[@]}" -std=gnu11 -O2 -Wall -o "$WORK/mpi_check.$client" \
		"$SOURCES"/mpi_*.c -pthread >"$WORK/compile-$client.log" 2>&1 &&
		"${compiler[@]}" -O2 -Wall -o "$WORK/alloc_mem.$client" \
			"$SOURCES/alloc_mem.c" >>"$WORK/compile-$client.log" 2>&1 &&
		return
	LOG=$WORK/compile-$client.log
	failed "$client" "" "a program does not compile"
	return 1
}

client_openmpi()
{
	local stack="tcp;ofi_rxm;ofi_mrrc"

	compile openmpi || return
	check_checker openmpi "$stack"
	check_data openmpi "$stack" 2
	check_data openmpi "$stack" 2 -p
	check_alloc_mem openmpi "$stack"
	# once for each buffer: ofi_rxm registers memory for peers
	check_exchange openmpi "${stack%;ofi_mrrc}" tcp 1048576 1 4 FI_HOOK=mrrc \
		FI_PROVIDER_PATH="$FI_PROVIDER_PATH" FI_LOG_LEVEL=info \
		FI_OFI_MRRC_REGISTER=always \
		LD_PRELOAD="$FI_PROVIDER_PATH/libmrrc_mpi.so"
	[ "$QUICK" = no ] || return
	check_data openmpi "$stack" 4 -m 1048576
	check_data openmpi "$stack" 4 -p
	check_data openmpi "net;ofi_mrrc" 2 -x "$NET_FAILS_RAW"
	check_data openmpi "net;ofi_mrrc" 2 -p
}

client_impi()
{
	local stack="tcp;ofi_rxm;ofi_mrrc" core

	compile impi || return
	check_data impi "$stack" 2
	check_data impi "$stack" 2 -p
	for core in "${stack%;ofi_mrrc}" "$stack"; do
		imb "$core" 2 IMB-MPI1 PingPong Sendrecv Exchange
		imb "$core" 2 IMB-RMA Unidir_put Unidir_get
		[ "$QUICK" = no ] || continue
		imb "$core" 4 IMB-MPI1 Allreduce Alltoall Bcast Reduce_scatter
	done
	[ "$QUICK" = no ] || return
	check_data impi "$stack" 4 -m 1048576
}

client_mpich()
{
	local stack="tcp;ofi_mrrc"

	compile mpich || return
	check_data mpich "$stack" 2 -x "$MPICH_FAILS_RAW"
	check_data mpich "$stack" 2 -p -x "$MPICH_FAILS_RAW"
	check_data mpich "tcp;ofi_rxm;ofi_mrrc" 2 -m 1048576 \
		-x "$MPICH_FAILS_RAW"
	check_alloc_mem mpich "$stack" "$PROVIDER2"
}

# On an emulated device everything is slow. The programs may have been built
# before (--build), on the host, where that is quick.
client_verbs()
{
	local stack="verbs;ofi_rxm;ofi_mrrc"

	NETNS=no
	[ -x "$WORK/mpi_check.openmpi" ] || compile openmpi || return
	imb "${stack%;ofi_mrrc}" 2 IMB-MPI1 PingPong
	imb "$stack" 2 IMB-MPI1 PingPong
	check_data openmpi "$stack" 2 -m 300000 -x "$VERBS_FAILS_RAW"
}

run_client()
{
	case $1 in
	openmpi) client_openmpi ;;
	impi) client_impi ;;
	mpich) client_mpich ;;
	verbs) client_verbs ;;
	esac
}

# run_command CLIENT STACK RANKS COMMAND...: runs a program of the caller's.
run_command()
{
	local client=$1

	shift
	client_launch "$client" run "$@"
	grep -avE '^libfabric:[0-9]+:' "$LOG"
	[ "$RC" -eq 0 ] || die "$client: $(ending)"
	exit 0
}

# ---- main ----------------------------------------------------------------

# The libfabric of this machine, as the loader finds it.
find_libfabric()
{
	ldconfig -p | sed -n 's/.*libfabric\.so\.1 .* => //p' | head -n 1
}

parse()
{
	while [ $# -gt 0 ]; do
		case $1 in
		-q) QUICK=yes ;;
		-v) VERBOSE=yes ;;
		--build) BUILD_ONLY=yes ;;
		--run)
			shift
			[ $# -ge 4 ] || usage_error "--run wants a command"
			[[ " openmpi impi mpich " == *" $1 "* ]] ||
				usage_error "unknown client $1"
			RUN=("$@")
			break
			;;
		--setup) setup; exit ;;
		--packages) tr -s '[:space:]' ' ' <<<"$PACKAGES"; exit ;;
		-h|--help) usage; exit ;;
		-2|-w|-T)
			[ $# -ge 2 ] || usage_error "$1 wants a value"
			case $1 in
			-2) PROVIDER2=$2 ;;
			-w) WORK=$2 ;;
			-T) LIMIT=$2 ;;
			esac
			shift
			;;
		-*) usage_error "unknown option $1" ;;
		*) WANTED+=("$1") ;;
		esac
		shift
	done
	[[ $LIMIT =~ ^[1-9][0-9]*$ ]] || usage_error "wrong limit $LIMIT"
}

check_needs()
{
	local client command wanted=("${WANTED[@]}")

	[ ${#RUN[@]} -eq 0 ] || wanted=("${RUN[0]}")
	for client in "${wanted[@]}"; do
		case $client in
		openmpi) command=mpirun.openmpi ;;
		impi) command=$CACHE/impi/bin/mpiexec.hydra ;;
		*) command=$CACHE/mpich/bin/mpiexec ;;
		esac
		command -v "$command" >/dev/null ||
			die "$command is missing; to install: $0 --setup"
	done
	[ "$BUILD_ONLY" = no ] || return 0
	[ -f "${FI_PROVIDER_PATH-}/libmrrc-fi.so" ] ||
		die "FI_PROVIDER_PATH names no folder with our provider"
	LIBFABRIC=$(find_libfabric)
	[ -n "$LIBFABRIC" ] || die "this machine has no libfabric"
}

main()
{
	local client

	CACHE=${OFI_MRRC_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ofi_mrrc}
	PROVIDER2='' WORK='' LIMIT=180 QUICK=no VERBOSE=no BUILD_ONLY=no
	NETNS=yes PASSED=0 FAILED=0 SKIPPED=0 RUNS=0 WANTED=() RUN=()
	PATH=$PATH:/usr/sbin:/sbin
	parse "$@"
	if [ ${#WANTED[@]} -eq 0 ]; then
		WANTED=(openmpi impi)
		[ -z "$PROVIDER2" ] || WANTED+=(mpich)
	fi
	for client in "${WANTED[@]}"; do
		[[ " $CLIENTS " == *" $client "* ]] ||
			usage_error "unknown client $client"
	done
	check_needs
	if [ -n "$WORK" ]; then
		mkdir -p "$WORK" || die "cannot make $WORK"
		WORK=$(cd -- "$WORK" && pwd)
	else
		WORK=$(mktemp -d "${TMPDIR:-/tmp}/ofi_mrrc-clients.XXXXXX") ||
			die "cannot make a temporary folder"
		trap 'rm -rf "$WORK"' EXIT
	fi
	unset FI_PROVIDER FI_HOOK
	[ ${#RUN[@]} -eq 0 ] || run_command "${RUN[@]}"
	for client in "${WANTED[@]}"; do
		if [ "$BUILD_ONLY" = yes ]; then
			compile "$client"
		else
			run_client "$client"
		fi
	done
	say "$PASSED passed, $FAILED failed, $SKIPPED skipped"
	[ $FAILED -eq 0 ]
}

# one line: nothing is read from this file once main() has begun
main "$@"; exit
