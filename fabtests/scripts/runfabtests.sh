#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# runfabtests.sh: run the functional tests of ofi_mrrc, over each provider of
# a list.  One line for each test, the output of those that fail, and at the
# end "N passed, N failed, N skipped".

set -u
readonly ME=${0##*/}
readonly RC_SKIP=77
readonly RC_LATE=124	# as timeout(1)

# In the order in which they run: simple ones first.
readonly TESTS="info loud parts hints versions sequences msg av tagged copied peek
	completions multi_recv buffered rma split atomic selective srx bind mr keys
	alloc mr_modes process half_write cxx readonly shared_buf cancel wait sread
	unmap kinds manual signals unwind random soak bounce mappings footprint
	untouched domains objects live hook hook_keys core_cache ahead files
	files_ahead files_direct files_change files_stopped cwrite cw_cancel
	cw_cm cw_enable cw_eq cw_wait cw_end cw_fork cw_many cw_modes cw_again
	cw_av cw_rdm cw_hostile cw_takeover cw_listen close claims lengths
	fork exits threads shared_ep auto_progress realtime dgram procs
	memlock node uffd_denied"

# Seconds for a test if no option sets them: enough on an emulated device.
readonly DEFAULT_TIMEOUT=180

usage()
{
	cat <<-EOT
	Usage: $ME [OPTION]... [PROVIDER]...

	Runs the functional tests over each PROVIDER, as "tcp;ofi_mrrc" (which
	is what runs without any) or "verbs;ofi_mrrc".

	  -p LIST      providers, separated by commas
	  -b BINDIR    where fi_mrrc_* are (default: PATH)
	  -t LIST      only these tests, separated by commas, as msg,rma
	  -x LIST      not these
	  -e TYPE      of endpoints, msg or rdm, where a provider has both
	  -s ADDRESS   of both sides
	  -T SECONDS   limit for each test (default $DEFAULT_TIMEOUT); where more tasks
	               are runnable than there are processors, a second counts
	               as the share of a processor that each task gets
	  -H           the hooking form: over the core that is named, or is below
	               ofi_mrrc, with FI_HOOK=mrrc
	  -w COMMAND   run each test under COMMAND
	  --valgrind   run each test under valgrind, with a longer limit
	  -v           output of all tests
	  -l           list the tests
	  -h, --help   this text

	FT_SEED sets the seed of what is random, FT_PERCENT how many of their
	rounds tests make, FT_HANGS after how many seconds (60), counted as
	for -T, something hangs. FT_ONLY names one test of those that would
	run. Over cores that ask for no registration
	FI_OFI_MRRC_REGISTER=always is set.
	Exit status: 0 no test failed, 1 some did, 2 wrong usage.
	EOT
}

usage_error()
{
	echo "$ME: $*" >&2
	usage >&2
	exit 2
}

# report WORD TEST SECONDS REASON
report()
{
	printf '%-4s %-12s %4s s  %s\n' "$@"
}

wanted()
{
	[[ -z $ONLY || ,$ONLY, == *,$1,* ]] && [[ ,$NOT, != *,$1,* ]] &&
		[[ -z ${FT_ONLY-} || $FT_ONLY == "$1" ]]
}

# Finds a program, in BINDIR or PATH.
program()
{
	if [ -n "$BINDIR" ]; then
		echo "$BINDIR/fi_mrrc_$1"
	else
		command -v "fi_mrrc_$1" || echo "fi_mrrc_$1"
	fi
}

# The reason that a skipped test printed.
skip_reason()
{
	sed -n 's/^SKIP: [^:]*: //p' "$LOG" | tail -n 1
}

# Settles the result of a test that has run.
settle()
{
	local name=$1 rc=$2 took=$3

	case $rc in
	0)
		report PASS "$name" "$took" ""
		PASSED=$((PASSED + 1))
		;;
	"$RC_SKIP")
		report SKIP "$name" "$took" "$(skip_reason)"
		SKIPPED=$((SKIPPED + 1))
		;;
	"$RC_LATE")
		report FAIL "$name" "$took" "no end within $LIMIT s"
		FAILED=$((FAILED + 1))
		;;
	*)
		report FAIL "$name" "$took" "exit status $rc"
		FAILED=$((FAILED + 1))
		;;
	esac
	if [ "$VERBOSE" = yes ] || { [ "$rc" -ne 0 ] &&
		[ "$rc" -ne $RC_SKIP ]; }; then
		sed 's/^/  | /' "$LOG"
	fi
}

# ofi_rxm over verbs (1.17) may use an endpoint after freeing it when it is
# closed, without ofi_mrrc as well. True if that ended a test: the handler that
# the test has installed prints the place, which is in libfabric.
died_in_rxm()
{
	[[ $1 == verbs*ofi_rxm* ]] &&
		grep -A1 'terminated with signal 11' "$LOG" |
		grep -q '/libfabric\.so'
}

# watch GROUP: ends this group of processes when its limit has passed. SIGALRM
# first: a test then prints the step that it was at.
watch()
{
	local left=$((LIMIT * 1000)) cpus tasks

	cpus=$(nproc)
	while [ "$left" -gt 0 ]; do
		sleep 1
		read -r _ _ _ tasks _ </proc/loadavg
		tasks=${tasks%/*}
		left=$((left - 1000 * cpus / (tasks > cpus ? tasks : cpus)))
	done
	touch "$LOG.late"
	kill -ALRM -- "-$1"
	sleep 5
	kill -KILL -- "-$1"
}

# limited COMMAND...: in a process group of its own, as long as the limit
limited()
{
	local rc watch

	rm -f "$LOG.late"
	set -m
	"$@" >"$LOG" 2>&1 </dev/null &
	GROUP=$!
	set +m
	watch "$GROUP" >/dev/null 2>&1 &
	watch=$!
	wait "$GROUP" 2>/dev/null
	rc=$?
	kill "$watch"
	wait "$watch" 2>/dev/null
	# processes that a failed test left running
	kill -KILL -- "-$GROUP" 2>/dev/null
	GROUP=
	[ ! -e "$LOG.late" ] || rc=$RC_LATE
	return $rc
}

run_test()
{
	local prov=$1 name=$2 start=$SECONDS args rc

	if [[ $name == @(cxx|unwind) ]] &&
		! command -v "$(program "$name")" >/dev/null; then
		report SKIP "$name" 0 "built without a C++ compiler"
		SKIPPED=$((SKIPPED + 1))
		return
	fi
	# the test's own deadline, by the clock, is for runs by hand
	args=(-p "$prov" -t "$((LIMIT * 100))" -S "${FT_SEED:-1}")
	[ -z "$ADDRESS" ] || args+=(-s "$ADDRESS")
	[ "$HOOK" = no ] || args+=(-R)
	[ -z "$TYPE" ] || args+=(-e "$TYPE")
	for _ in 1 2 3; do
		limited "${WRAPPER[@]}" "$(program "$name")" "${args[@]}"
		rc=$?
		died_in_rxm "$prov" || break
		echo "note: $name: ofi_rxm's fault at close: once more"
	done
	settle "$name" $rc $((SECONDS - start))
}

# If ofi_mrrc is not asked for by name, fi_info must print the same with and
# without it.
test_fi_info()
{
	local start=$SECONDS rc=0 pid='s,\(fi_sh*m2*\)://[0-9]*,\1://PID,
		/FI_ADDR_STR/,/dest_addrlen/s,addrlen: .*,addrlen: PID,'

	if [ -z "${FI_PROVIDER_PATH-}" ] ||
		! command -v fi_info >/dev/null; then
		echo "SKIP: fi_info: without fi_info or FI_PROVIDER_PATH" >"$LOG"
		settle fi_info $RC_SKIP 0
		return
	fi
	for args in "" "-p tcp" "-p verbs" "-t FI_EP_RDM"; do
		# shellcheck disable=SC2086 # several words
		env -u FI_PROVIDER fi_info -v $args 2>&1 |
			sed "$pid" >"$LOG.with"
		# shellcheck disable=SC2086
		env -u FI_PROVIDER -u FI_PROVIDER_PATH fi_info -v $args 2>&1 |
			sed "$pid" >"$LOG.without"
		diff "$LOG.without" "$LOG.with" || rc=1
	done >"$LOG"
	rm -f "$LOG.with" "$LOG.without"
	settle fi_info $rc $((SECONDS - start))
}

run_provider()
{
	local prov=$1 name

	echo "== $prov${TYPE:+ ($TYPE)}"
	for name in $TESTS; do
		wanted "$name" || continue
		if [ "$VALGRIND" = yes ] &&
			[[ $name == readonly || $name == sequences ]]; then
			echo "SKIP: $name: uses memory that is not there, on" \
				"purpose" >"$LOG"
			settle "$name" $RC_SKIP 0
		else
			run_test "$prov" "$name"
		fi
	done
	wanted fi_info && test_fi_info
}

# Registration is forced where the core does not ask for it.  ofi_rxm posts
# fewer receives for each connection than it does by default, which is most of
# the time of tests that make many.
set_environment()
{
	case $1 in
	*verbs*) unset FI_OFI_MRRC_REGISTER ;;
	*) export FI_OFI_MRRC_REGISTER=always ;;
	esac
	export FI_OFI_MRRC_CODE_FILE=0
	export FI_OFI_RXM_MSG_TX_SIZE="${FI_OFI_RXM_MSG_TX_SIZE:-64}"
	export FI_OFI_RXM_MSG_RX_SIZE="${FI_OFI_RXM_MSG_RX_SIZE:-64}"
}

parse()
{
	local value list

	while [ $# -gt 0 ]; do
		case $1 in
		-h|--help) usage; exit 0 ;;
		-l) echo "$TESTS" fi_info | tr -s '[:space:]' '\n'; exit 0 ;;
		-v) VERBOSE=yes; shift; continue ;;
		-H) HOOK=yes; shift; continue ;;
		--valgrind)
			WRAPPER=(valgrind -q --error-exitcode=9
				--suppressions="$SUPPRESSIONS")
			LIMIT=$((LIMIT * 10))
			VALGRIND=yes
			shift
			continue
			;;
		-[pbtxesTw]) [ $# -ge 2 ] || usage_error "$1 wants a value" ;;
		-*) usage_error "unknown option $1" ;;
		*) PROVIDERS+=("$1"); shift; continue ;;
		esac
		value=$2
		case $1 in
		-p)
			IFS=, read -r -a list <<<"$value"
			PROVIDERS+=("${list[@]}")
			;;
		-b) BINDIR=$value ;;
		-t) ONLY=$value ;;
		-x) NOT=$value ;;
		-e) TYPE=$value ;;
		-s) ADDRESS=$value ;;
		-T) LIMIT=$value ;;
		-w) read -r -a WRAPPER <<<"$value" ;;
		esac
		shift 2
	done
}

main()
{
	# else libinfinipath, which comes with libfabric, makes a signal status 1
	export IPATH_NO_BACKTRACE=1
	local prov

	PROVIDERS=() WRAPPER=() BINDIR='' ONLY='' NOT='' ADDRESS='' TYPE=''
	VERBOSE=no VALGRIND=no HOOK=no GROUP=
	LIMIT=$DEFAULT_TIMEOUT PASSED=0 FAILED=0 SKIPPED=0
	SUPPRESSIONS=$(dirname "$(realpath "$0")")/../suppressions/valgrind.supp
	parse "$@"
	[ ${#PROVIDERS[@]} -gt 0 ] || PROVIDERS=("tcp;ofi_mrrc")
	LOG=$(mktemp "${TMPDIR:-/tmp}/runfabtests.XXXXXX") || exit 2
	trap 'rm -f "$LOG" "$LOG.late"
		[ -z "$GROUP" ] || kill -KILL -- "-$GROUP"' EXIT
	[ "$HOOK" = no ] || export FI_HOOK=mrrc
	for prov in "${PROVIDERS[@]}"; do
		set_environment "$prov"
		run_provider "$prov"
	done
	echo "$PASSED passed, $FAILED failed, $SKIPPED skipped"
	[ "$FAILED" -eq 0 ]
}

# one line: nothing is read from this file once main() has begun
main "$@"; exit
