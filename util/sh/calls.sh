#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# calls.sh: what a write without a descriptor runs through in the provider: a
# hit, and a steady miss, whose lookup finds nothing, registers and inserts.

set -eu
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
DIR=${OFI_MRRC_BUILD:-build}/calls
ALL=no
OPS=100

usage()
{
	cat <<-EOT
	Usage: ${0##*/} [-b DIR] [-l]

	Counts the calls of a hit and of a steady miss (tcp), and the functions,
	files, locks taken and descents of the index among them; inlined
	functions count, those of libraries do not. Counts the instructions of
	both, too, where valgrind is installed; as it does not know
	userfaultfd, nothing is watched then.

	  -b DIR       build in DIR ($DIR), once with and once without calls
	               that are reported
	  -l           list the calls of the miss
	  -h, --help   this text
	EOT
}

while [ $# -gt 0 ]; do
	case $1 in
	-b) DIR=$2; shift ;;
	-l) ALL=yes ;;
	-h|--help) usage; exit 0 ;;
	*) usage >&2; exit 2 ;;
	esac
	shift
done
mkdir -p "$DIR"
DIR=$(cd -- "$DIR" && pwd)

# build NAME CFLAGS TARGET...
build()
{
	local name=$1 cflags=$2

	shift 2
	mkdir -p "$DIR/$name"
	(
		cd -- "$DIR/$name"
		[ -f Makefile ] ||
			"$TOP/configure" CFLAGS="$cflags" CONFIG_SHELL=/bin/sh
		make -j2 "$@"
	) >"$DIR/$name.log" 2>&1 || {
		tail -n 20 "$DIR/$name.log" >&2
		exit 1
	}
}

# operation MODE BUILD COMMAND...: of a cache of 16 regions
operation()
{
	local build=$2
	local -a mode=(-m "$1")

	[ "$1" = miss ] || mode+=(-N)
	shift 2
	env FI_OFI_MRRC_REGISTER=always FI_OFI_MRRC_CACHE_MAX_COUNT=16 \
		FI_PROVIDER_PATH="$DIR/$build/.libs" "$@" \
		"$DIR/plain/fabtests/benchmarks/layer_bench" \
		-p "tcp;ofi_mrrc" -I $OPS "${mode[@]}" >"$DIR/out" 2>&1 || {
		tail -n 20 "$DIR/out" >&2
		exit 1
	}
}

# names MODE: the calls of the median operation, each with its depth and file
names()
{
	local lib=$DIR/traced/.libs/libmrrc-fi.so

	# each function once, in one run of addr2line
	cut -d' ' -f2 "$DIR/$1.trace" | sort -u >"$DIR/offsets"
	addr2line -a -f -e "$lib" <"$DIR/offsets" | paste - - - |
		sed 's/^0x0*/0x/' >"$DIR/functions"
	awk '
		NR == FNR {
			sub(/:.*/, "", $3)
			sub(/.*\/prov\/mrrc\//, "", $3)
			name[$1] = $2
			file[$1] = $3
			next
		}
		$1 == 0 {
			whole = name[$2] == "mrrc_write"
			ops += whole
		}
		whole { line[ops, count[ops]++] = $1 " " name[$2] " " file[$2] }
		END {
			for (i = ops - '$OPS' + 1; i <= ops; i++)
				print count[i], i | "sort -n >'"$DIR"'/order"
			close("sort -n >'"$DIR"'/order")
			for (i = 0; i <= '$OPS' / 2; i++)
				getline median <"'"$DIR"'/order"
			split(median, field)
			for (i = 0; i < field[1]; i++)
				print line[field[2], i]
		}' "$DIR/functions" "$DIR/$1.trace"
}

count()
{
	awk '
		{ calls++ }
		!functions[$2 $3]++ { function_count++ }
		!files[$3]++ { file_count++ }
		$3 ~ /sys\/base\/lock/ &&
			$2 ~ /^mrrc_(lock_acquire|lock_try|mutex_lock|mutex_try)$/ {
			locks++
		}
		# not the steps from one region to the next
		$3 ~ /core\/index\/index/ &&
			$2 ~ /_(find|from|RB_INSERT)$/ {
			descents++
		}
		END {
			printf "%5d %9d %5d %5d %8d", calls, function_count,
				file_count, locks, descents
		}' "$1"
}

instructions()
{
	operation "$1" plain FI_OFI_MRRC_MONITOR=manual valgrind --tool=callgrind \
		--toggle-collect=layer_write \
		--callgrind-out-file="$DIR/callgrind"
	awk -v ops=$OPS '/^summary:/ { printf "%d", $2 / ops }' "$DIR/callgrind"
}

build traced "-g -O0 -finstrument-functions" libmrrc-fi.la
build plain "-g -O2" libmrrc-fi.la fabtests/benchmarks/layer_bench
cc -O2 -shared -fPIC -o "$DIR/call_trace.so" \
	"$TOP/fabtests/clients/call_trace.c"
printf '%-5s %5s %9s %5s %5s %8s %12s\n' "" calls functions files locks \
	descents instructions
for mode in write miss; do
	operation $mode traced LD_PRELOAD="$DIR/call_trace.so" \
		CALL_TRACE="$DIR/$mode.trace"
	names $mode >"$DIR/$mode.calls"
	name=$mode ir=-
	[ $mode = miss ] || name=hit
	! command -v valgrind >/dev/null || ir=$(instructions $mode)
	printf '%-5s %s %12s\n' $name "$(count "$DIR/$mode.calls")" "$ir"
done
[ $ALL = no ] ||
	awk '{ printf "%*s%s  %s\n", 2 * $1, "", $2, $3 }' "$DIR/miss.calls"
