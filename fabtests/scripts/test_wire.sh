#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_wire.sh: no process dies of what a peer may send, over each core: wire.py
# for the file server and for an application, all at once.  Ends with "N passed,
# N failed".

# shellcheck source=fabtests/scripts/testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
SCRIPTS=$(dirname -- "$(realpath "$0")")
readonly CORES="tcp rxm net"

usage()
{
	cat <<-EOT
	Usage: $ME [-s SECONDS | -n CONNECTIONS] BUILD...

	BUILD: folders of builds that are installed in BUILD/prefix.
	SECONDS: for each test, side by side (default 90). CONNECTIONS: of all
	of them. FT_SEED sets the seed (1).
	EOT
}

# One of them is over another's.
provider()
{
	case $1 in
	rxm) echo "tcp;ofi_rxm;ofi_mrrc" ;;
	*) echo "$1;ofi_mrrc" ;;
	esac
}

# wire BUILD CORE WHAT: runs wire.py, in new network and mount namespaces where the
# kernel allows it. /proc/kallsyms is empty there: libfabric's verbs provider reads
# all of it at each start, which takes seconds.
wire()
{
	local build app=() apart=()

	build=$(realpath "$1")
	[ "$3" = server ] || app=(-a)
	# shellcheck disable=SC2016 # for that shell
	! unshare -rmn true 2>/dev/null || apart=(unshare -rmn bash -c
		'ip link set lo up; mount --bind /dev/null /proc/kallsyms
		exec "$@"' bash)
	FI_PROVIDER_PATH=$build/prefix/lib/libfabric "${apart[@]}" \
		"$SCRIPTS/wire.py" "${app[@]}" -S "${FT_SEED:-1}" "${LIMIT[@]}" \
		-k "$SCRIPTS/../suppressions/wire.supp" \
		-b "$build/prefix/bin" \
		-l "$build/fabtests/.libs/wire_shim.so" "$(provider "$2")"
}

main()
{
	local build core what name passed=0 failed=0
	local -A pids=()

	for build in "$@"; do
		for core in $CORES; do
			for what in server app; do
				name=${build##*/}-$core-$what
				[ "${FT_ONLY:-$name}" = "$name" ] || continue
				wire "$build" "$core" $what \
					>"$DIR/$name" 2>&1 &
				pids[$name]=$!
			done
		done
	done
	for name in "${!pids[@]}"; do
		if wait "${pids[$name]}"; then
			echo "PASS $name"
			passed=$((passed + 1))
		else
			echo "FAIL $name"
			failed=$((failed + 1))
		fi
		sed 's/^/  | /' "$DIR/$name"
	done
	echo "$passed passed, $failed failed"
	[ $failed -eq 0 ]
}

LIMIT=(-s 90)
case ${1-} in
-s) LIMIT=(-s "${2:?}"); shift 2 ;;
-n) LIMIT=(-s 86400 -n $((${2:?} / 6 / ($# - 2)))); shift 2 ;;
-*) usage >&2; exit 2 ;;
esac
DIR=$(mktemp -d "${TMPDIR:-/tmp}/${ME%.sh}.XXXXXX") || exit 2
trap 'rm -rf "$DIR"' EXIT
main "$@"
