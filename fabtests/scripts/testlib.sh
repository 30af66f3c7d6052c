# shellcheck shell=bash disable=SC2034 # the tests use what is set here
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What the tests of the tools share (test_sim.sh, test_stat.sh, test_trace.sh,
# test_prof.sh): options, a folder, and a line for each test. Sourced by scripts
# that have a usage().

set -u
export LC_ALL=C
ME=${0##*/}

fail()
{
	echo "  $*"
	return 1
}

# test_options ARGUMENT...: sets BIN (a prefix for programs), PROVIDER, and DIR,
# which is removed when the script ends. -t TEST: as FT_ONLY.
test_options()
{
	BIN='' PROVIDER='tcp;ofi_mrrc'
	while [ $# -gt 0 ]; do
		case $1 in
		-b) BIN=${2:?}/; shift 2 ;;
		-t) FT_ONLY=${2:?}; shift 2 ;;
		-h|--help) usage; exit 0 ;;
		-*) usage >&2; exit 2 ;;
		*) PROVIDER=$1; shift ;;
		esac
	done
	DIR=$(mktemp -d "${TMPDIR:-/tmp}/${ME%.sh}.XXXXXX") || exit 2
	trap 'rm -rf "$DIR"' EXIT
	# tcp needs no registration by itself
	[[ $PROVIDER == *verbs* ]] || export FI_OFI_MRRC_REGISTER=always
	export FI_OFI_MRRC_CODE_FILE=0
	unset "${!FI_OFI_MRRC_TRACE@}" FI_OFI_MRRC_STATS_FILE FI_OFI_MRRC_COST
}

# run_tests TEST...: calls test_TEST for each, which may have arguments, and
# before it before_test, if there is one; the last call of a script.  FT_ONLY
# names one of them.
run_tests()
{
	local name passed=0 failed=0

	for name in "$@"; do
		[ -z "${FT_ONLY-}" ] || [ "$name" = "$FT_ONLY" ] || continue
		if declare -F before_test >/dev/null; then
			before_test
		fi
		# shellcheck disable=SC2086 # arguments of the test
		if test_$name; then
			echo "PASS $name"
			passed=$((passed + 1))
		else
			echo "FAIL $name"
			failed=$((failed + 1))
		fi
	done
	echo "$passed passed, $failed failed"
	[ $failed -eq 0 ]
}

# refused STATUS TEXT COMMAND...: its error message has TEXT, and it prints
# nothing else
refused()
{
	local want=$1 text=$2 rc

	shift 2
	"$@" >"$DIR/table" 2>"$DIR/err"
	rc=$?
	[ $rc -eq "$want" ] || { fail "$*: status $rc, not $want"; return 1; }
	grep -q -- "$text" "$DIR/err" ||
		{ cat "$DIR/err"; fail "does not say '$text'"; return 1; }
	[ ! -s "$DIR/table" ] || fail "$*: prints something"
}

# is_json FILE [OPTION...]: checks FILE with python3 -m json.tool OPTION...
# Python 3.13 accepts --json-lines for standard input only.
is_json()
{
	local file=$1

	shift
	command -v python3 >/dev/null || return 0
	python3 -m json.tool "$@" <"$file" >/dev/null ||
		fail "$file is not JSON"
}

# columns LIST: of a CSV report with a head and one row, as words.
columns()
{
	awk -F, -v want="$1" '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
		NR == 2 {
			n = split(want, name, ",")
			for (i = 1; i <= n; i++)
				printf "%s%d", (i > 1 ? " " : ""), $at[name[i]]
			print ""
		}'
}

# until_so COMMAND...: repeats it until it succeeds, for a minute at most
until_so()
{
	local tries

	for ((tries = 0; tries < 600; tries++)); do
		"$@" && return 0
		sleep 0.1
	done
	return 1
}

# live [OPTION...]: fi_mrrc_live in the background, as $APP, until its counters
# are printed in $DIR/out. Its standard input is a FIFO that descriptor 9 keeps
# open.
live()
{
	local tries

	# it would be found ready by what the one before said
	rm -f "$DIR/in" "$DIR/out" "$DIR/err"
	mkfifo "$DIR/in"
	"${BIN}fi_mrrc_live" -p "$PROVIDER" -w "$@" \
		<"$DIR/in" >"$DIR/out" 2>"$DIR/err" &
	APP=$!
	exec 9>"$DIR/in"
	for ((tries = 0; tries < 600; tries++)); do
		grep -qs '^ready' "$DIR/out" && return 0
		kill -0 "$APP" 2>/dev/null || break
		sleep 0.1
	done
	cat "$DIR/out" "$DIR/err"
	live_end
	fail "the application does not run"
}

live_end()
{
	exec 9>&-
	wait "$APP"
}
