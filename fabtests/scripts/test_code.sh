#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_code.sh: code of libraries that MPI, Python and storage processes load
# lets lookups go without a system call, as fi_mrrc_stat --code tells. The last
# line is "N passed, N failed, N skipped".

set -u
export LC_ALL=C
readonly ME=${0##*/}

readonly LIBRARIES="libc.so.6 ld-linux-x86-64.so.2 libm.so.6 libstdc++.so.6
	libgcc_s.so.1 libgomp.so.1 libgfortran.so.5 libquadmath.so.0 libz.so.1
	libzstd.so.1 liblz4.so.1 liblzma.so.5 libbz2.so.1.0 libcrypto.so.3
	libssl.so.3 libcurl.so.4 libgnutls.so.30 libgcrypt.so.20 libffi.so.8
	libpython3.11.so.1.0 libopenblas.so.0 libblas.so.3 liblapack.so.3
	libhdf5_serial.so.103 libnetcdf.so.19 libmpi.so.40 libopen-pal.so.40
	libopen-rte.so.40 libpmix.so.2 libhwloc.so.15 libevent-2.1.so.7
	libmpich.so.12 libfabric.so.1 libibverbs.so.1 libmlx5.so.1 librdmacm.so.1
	libefa.so.1 libpsm2.so.2 libucp.so.0 libucs.so.0 libuct.so.0 libucm.so.0
	libjemalloc.so.2 libtcmalloc.so.4 libtcmalloc_minimal.so.4
	libmimalloc.so.2.0 libnuma.so.1 libunwind.so.8 liburing.so.2 libaio.so.1
	librados.so.2 librbd.so.1 libcephfs.so.2 libprotobuf.so.32 libgrpc.so.29
	libsqlite3.so.0 libxml2.so.2 libsystemd.so.0 libnl-3.so.200"
readonly WHEELS="numpy scipy pandas h5py mpi4py pyarrow pyzmq psutil pillow
	lxml cryptography grpcio"

# what lookups ask for, by the begin of its name, and why that is so
known()
{
	case $1 in
	liburing.so.*)
		echo "makes rings, which can discard any memory" ;;
	libavif-*.so.*)
		echo "has code in no function, with an indirect jump" ;;
	*) return 1 ;;
	esac
}

usage()
{
	cat <<-EOT
	Usage: $ME [-b BINDIR] [-w] [FILE...]

	Each FILE, or libraries of this machine; skips those that are not
	installed.

	  -b BINDIR    where fi_mrrc_stat is (default: PATH)
	  -w           wheels of Python, too, downloaded by pip: ${WHEELS//[$'\n\t']/ }
	EOT
}

# judge NAME FILE...: each place that is told of is in a file on the list
judge()
{
	local name=$1 line why bad=0 said=''

	shift
	"$STAT" --code "$@" >"$DIR/out" 2>"$DIR/err"
	if ! grep -q '^[0-9]* files, ' "$DIR/out"; then
		echo "FAIL $name: $(tail -n 1 "$DIR/err")"
		FAILED=$((FAILED + 1))
		return
	fi
	while read -r line; do
		[[ ! $line =~ ^[0-9]+\ files,\  ]] || continue
		if why=$(known "$line"); then
			said=" (${line%%[+:]*} $why)"
		else
			bad=1
			echo "  $line"
		fi
	done <"$DIR/out"
	if [ $bad -eq 0 ]; then
		echo "PASS $name$said"
		PASSED=$((PASSED + 1))
	else
		echo "FAIL $name: lookups ask"
		FAILED=$((FAILED + 1))
	fi
}

skip()
{
	echo "SKIP $1: $2"
	SKIPPED=$((SKIPPED + 1))
}

library()
{
	local path

	path=$(/sbin/ldconfig -p | awk -v name="$1" '
		$1 == name && /x86-64/ { print $NF; exit }')
	if [ -n "$path" ]; then
		judge "$1" "$path"
	else
		skip "$1" "not installed"
	fi
}

wheel()
{
	local files=()

	if ! pip download -q --no-deps --only-binary :all: -d "$DIR/$1" "$1" \
		>/dev/null 2>&1 ||
	   ! python3 -m zipfile -e "$DIR/$1"/*.whl "$DIR/$1"; then
		skip "$1" "it cannot be downloaded"
		return
	fi
	mapfile -t files < <(find "$DIR/$1" -type f -name '*.so*')
	judge "$1, ${#files[@]} files" "${files[@]}"
	rm -rf "${DIR:?}/$1"
}

main()
{
	local name wheels=''

	STAT=fi_mrrc_stat
	while [ $# -gt 0 ]; do
		case $1 in
		-h|--help) usage; exit 0 ;;
		-b) STAT=${2:?}/fi_mrrc_stat; shift 2 ;;
		-w) wheels=$WHEELS; shift ;;
		-*) usage >&2; exit 2 ;;
		*) break ;;
		esac
	done
	PASSED=0 FAILED=0 SKIPPED=0
	DIR=$(mktemp -d "${TMPDIR:-/tmp}/test_code.XXXXXX") || exit 2
	trap 'rm -rf "$DIR"' EXIT
	for name in "$@"; do
		judge "${name##*/}" "$name"
	done
	[ $# -gt 0 ] || for name in $LIBRARIES; do
		library "$name"
	done
	for name in $wheels; do
		wheel "$name"
	done
	echo "$PASSED passed, $FAILED failed, $SKIPPED skipped"
	[ $FAILED -eq 0 ]
}

main "$@"
