#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_alloc.sh: random blocks come, go and are sent (fi_mrrc_random) with
# several allocators, and with another library that patches libc; and so does
# the program that looks for stale hits (race_mon). The last line is "N passed,
# N failed, N skipped".

set -u
readonly ME=${0##*/}
readonly RC_SKIP=77

# what is preloaded; what is not installed is skipped
readonly ALLOCATORS="libjemalloc.so.2 libtcmalloc_minimal.so.4
	libmimalloc.so.2.0"
usage()
{
	cat <<-EOT
	Usage: $ME [-b BINDIR] [-u DIR] [-t SECONDS] [PROVIDER]

	Runs fi_mrrc_random over PROVIDER ("tcp;ofi_mrrc") with glibc's
	allocator, and preloaded: $ALLOCATORS;
	with hooks, without, and giving back to the system at once what is
	freed; and beside UCX's libucm, which patches libc before or after.
	race_mon runs with the same preloaded.

	  -b BINDIR    where fi_mrrc_random is (default: PATH)
	  -u DIR       where race_mon is (default: it is skipped)
	  -t SECONDS   of each run (default 4)
	  --packages   what Debian has them in
	EOT
}

# run NAME PRELOAD HOOKS [VARIABLE=VALUE]
run()
{
	local rc

	env ${2:+LD_PRELOAD="$2"} "${@:4}" FI_OFI_MRRC_HOOKS="$3" \
		FI_OFI_MRRC_REGISTER=always FT_SECONDS="$SECONDS_EACH" \
		timeout -k 5 $((SECONDS_EACH * 4 + 120)) \
		"$PROGRAM" -v -p "$PROVIDER" -t $((SECONDS_EACH * 4 + 100)) \
		>"$LOG" 2>&1 </dev/null
	rc=$?
	case $rc in
	0)
		echo "PASS $1, hooks $3: $(sed -n \
			's/^fi_mrrc_random: \(.*announced.*\)/\1/p' \
			"$LOG")"
		PASSED=$((PASSED + 1))
		;;
	"$RC_SKIP")
		echo "SKIP $1: $(tail -n 1 "$LOG")"
		SKIPPED=$((SKIPPED + 1))
		;;
	*)
		echo "FAIL $1, hooks $3: exit status $rc"
		tail -n 20 "$LOG" | sed 's/^/  | /'
		FAILED=$((FAILED + 1))
		;;
	esac
}

# race NAME PRELOAD [VARIABLE=VALUE]: no stale hit with such an allocator.
race()
{
	local rc

	if [ -z "$RACE" ]; then
		skip "$1, race_mon" "no -u"
		return
	fi
	env LD_PRELOAD="$2" "${@:3}" MRRC_RACE_MS=100 timeout -k 5 300 \
		"$RACE" >"$LOG" 2>&1 </dev/null
	rc=$?
	if [ $rc -eq 0 ]; then
		echo "PASS $1, race_mon: $(grep 'Checks:' "$LOG")"
		PASSED=$((PASSED + 1))
	else
		echo "FAIL $1, race_mon: exit status $rc"
		tail -n 20 "$LOG" | sed 's/^/  | /'
		FAILED=$((FAILED + 1))
	fi
}

# Runs with an allocator: with its defaults, and giving all that is freed back
# to the system at once.
allocator()
{
	local now=()

	case $1 in
	libjemalloc*)
		now=("MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0")
		;;
	libtcmalloc*) now=(TCMALLOC_RELEASE_RATE=1000) ;;
	libmimalloc*) now=(MIMALLOC_PAGE_RESET=1 MIMALLOC_RESET_DELAY=0) ;;
	esac
	run "$1" "$1" auto
	run "$1" "$1" 0
	run "$1, at once" "$1" auto "${now[@]}"
	race "$1, at once" "$1" "${now[@]}"
}

# skip WHAT WHY
skip()
{
	echo "SKIP $1: $2"
	SKIPPED=$((SKIPPED + 1))
}

# True if it can be preloaded. If not, the loader prints a message and goes on.
loads()
{
	! LD_PRELOAD=$1 true 2>&1 | grep -q 'cannot be preloaded'
}

main()
{
	local preload

	RACE='' SECONDS_EACH=4 PROGRAM=fi_mrrc_random PROVIDER="tcp;ofi_mrrc"
	while [ $# -gt 0 ]; do
		case $1 in
		-h|--help) usage; exit 0 ;;
		--packages)
			echo "libjemalloc2 libtcmalloc-minimal4" \
				"libmimalloc2.0 libucx0"
			exit 0
			;;
		-b) PROGRAM=${2:?}/fi_mrrc_random; shift 2 ;;
		-u) RACE=${2:?}/race_mon; shift 2 ;;
		-t) SECONDS_EACH=${2:?}; shift 2 ;;
		-*) usage >&2; exit 2 ;;
		*) PROVIDER=$1; shift ;;
		esac
	done
	PASSED=0 FAILED=0 SKIPPED=0
	LOG=$(mktemp "${TMPDIR:-/tmp}/test_alloc.XXXXXX") || exit 2
	trap 'rm -f "$LOG"' EXIT
	run "glibc" "" auto
	run "glibc" "" 0
	for preload in $ALLOCATORS; do
		if loads "$preload"; then
			allocator "$preload"
		else
			skip "$preload" "not installed"
		fi
	done
	# without MREMAP_FIXED, which libucm 1.13 gets wrong
	run "libucm before" "" auto FT_UCM=before
	run "libucm after" "" auto FT_UCM=after
	if loads libucs.so.0; then
		race "libucm" libucs.so.0 MRRC_RACE_NOT=mremap
	else
		skip "libucm, race_mon" "not installed"
	fi
	echo "$PASSED passed, $FAILED failed, $SKIPPED skipped"
	[ "$FAILED" -eq 0 ]
}

# one line: nothing is read from this file once main() has begun
main "$@"; exit
