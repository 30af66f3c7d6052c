#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_stat.sh: what fi_mrrc_stat shows of a running process, and what
# FI_OFI_MRRC_STATS_FILE leaves of one that has ended, is what the process was
# told by fi_mrrc_stats().  Ends with "N passed, N failed".

set -u
export LC_ALL=C
ME=${0##*/}

usage()
{
	cat <<-EOT
	Usage: $ME [-b BINDIR] [PROVIDER]

	Looks at fi_mrrc_live over PROVIDER (default: tcp;ofi_mrrc) from
	outside. BINDIR: where the programs are (default: PATH).
	EOT
}

fail()
{
	echo "  $*"
	return 1
}

# start [OPTION...]: the application, until its counters are printed. Its
# standard input is a FIFO that descriptor 9 keeps open.
start()
{
	local tries

	rm -f "$DIR/in" "$DIR/file".*
	mkfifo "$DIR/in"
	"${BIN}fi_mrrc_live" -p "$PROVIDER" -w "$@" \
		<"$DIR/in" >"$DIR/out" 2>"$DIR/err" &
	APP=$!
	exec 9>"$DIR/in"
	for ((tries = 0; tries < 300; tries++)); do
		grep -qs '^ready' "$DIR/out" && return 0
		kill -0 "$APP" 2>/dev/null || break
		sleep 0.1
	done
	cat "$DIR/out" "$DIR/err"
	stop
	fail "the application does not run"
}

stop()
{
	exec 9>&-
	wait "$APP"
}

is_json()
{
	command -v python3 >/dev/null || return 0
	python3 -m json.tool --json-lines "$1" >/dev/null ||
		fail "$1 is not JSON"
}

# compare FILE: the domains in it, server first, have what was printed last.
compare()
{
	local file=$1 who name value words object i=0

	is_json "$file" || return 1
	mapfile -t objects < <(grep -oE '\{[^{}]*\{[^{}]*\}[^{}]*\}' "$file")
	[ ${#objects[@]} -eq 2 ] ||
		{ fail "${#objects[@]} domains, not 2"; return 1; }
	for who in server client; do
		object=${objects[i++]}
		read -r -a words < <(sed -n "s/^$who //p" "$DIR/out" |
			tail -n 1)
		[ ${#words[@]} -ge 30 ] ||
			{ fail "$who: no counters"; return 1; }
		[[ $object == *"\"pid\": $APP,"* ]] ||
			{ fail "$who: not of process $APP"; return 1; }
		set -- "${words[@]}"
		while [ $# -ge 2 ]; do
			name=$1 value=$2
			shift 2
			[[ $object =~ \"$name\":\ ${value}[,}] ]] || {
				fail "$who: $name is not $value in $object"
				return 1
			}
		done
	done
}

test_once()
{
	start || return 1
	"${BIN}fi_mrrc_stat" --once --json "$APP" >"$DIR/json" 2>"$DIR/err" &&
		compare "$DIR/json"
	result=$?
	"${BIN}fi_mrrc_stat" --once >"$DIR/table" 2>&1
	grep -q "^$APP fi_mrrc_live: " "$DIR/table" ||
		{ fail "not in the table of all"; result=1; }
	stop || result=1
	return $result
}

# watched [--all]: ends with the application, after several samples.
watched()
{
	local pid rc which

	start || return 1
	which=("$APP")
	[ $# -eq 0 ] || which=()
	"${BIN}fi_mrrc_stat" -i 0.05 "${which[@]}" >"$DIR/table" 2>"$DIR/err" \
		9>&- &
	pid=$!
	sleep 1
	kill -0 $pid || { stop; fail "ended before the process"; return 1; }
	stop || { fail "the process failed"; return 1; }
	wait $pid
	rc=$?
	[ $rc -eq 0 ] || { cat "$DIR/err"; fail "status $rc"; return 1; }
	[ "$(grep -c '^lookups' "$DIR/table")" -gt 4 ] ||
		fail "there are not several tables"
}

test_watch()
{
	watched
}

test_watch_all()
{
	watched --all
}

# refused STATUS TEXT COMMAND...
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

test_ended()
{
	local pid

	true &
	pid=$!
	wait $pid
	refused 1 "there is no such process" "${BIN}fi_mrrc_stat" $pid
}

test_other()
{
	refused 1 "no domain of ofi_mrrc is open there" \
		"${BIN}fi_mrrc_stat" $$
}

test_usage()
{
	refused 2 "no number" "${BIN}fi_mrrc_stat" x &&
		refused 2 "interval" "${BIN}fi_mrrc_stat" -i 0 &&
		refused 2 "count" "${BIN}fi_mrrc_stat" -n 0
}

# Another user may not look.
test_denied()
{
	local program result as=(setpriv --reuid 65534 --clear-groups)

	program=$(command -v "${BIN}fi_mrrc_stat")
	if [ "$(id -u)" -ne 0 ] || ! "${as[@]}" "$program" --list >/dev/null
	then
		echo "  not tried: needs root, and a program that all may run"
		return 0
	fi
	start || return 1
	refused 1 "run as the same user" "${as[@]}" "$program" "$APP"
	result=$?
	stop || result=1
	return $result
}

# file_of [OPTION...]: what an ended process has left.
file_of()
{
	local status=0 files

	export FI_OFI_MRRC_STATS_FILE=$DIR/file.%p
	start "$@" && stop
	status=$?
	unset FI_OFI_MRRC_STATS_FILE
	[ $status -eq 0 ] || return 1
	files=("$DIR/file".*)
	[ ${#files[@]} -eq 1 ] || { fail "${#files[@]} files"; return 1; }
	[ "$(wc -l <"$DIR/file.$APP")" -eq 2 ] ||
		{ fail "not two lines"; return 1; }
	compare "$DIR/file.$APP"
}

test_file()
{
	file_of
}

# Domains that nobody closed; a child says nothing about them.
test_file_at_exit()
{
	file_of -x
}

test_file_hook()
{
	rm -f "$DIR/file"
	FI_HOOK=mrrc FI_OFI_MRRC_STATS_FILE=$DIR/file \
		"${BIN}fi_mrrc_live" -p "$PROVIDER" -R >"$DIR/out" 2>&1 ||
		{ cat "$DIR/out"; return 1; }
	is_json "$DIR/file" || return 1
	[ "$(grep -c '^{' "$DIR/file")" -eq 2 ] || fail "not two lines"
}

# Nothing else happens.
test_file_refused()
{
	local status

	FI_LOG_LEVEL=warn FI_OFI_MRRC_STATS_FILE=$DIR/none/x start &&
		stop
	status=$?
	[ $status -eq 0 ] || return 1
	[ "$(grep -c "written to $DIR/none/x:" "$DIR/err")" -eq 1 ] ||
		{ cat "$DIR/err"; fail "there is not one warning"; }
}

main()
{
	local name passed=0 failed=0

	BIN='' PROVIDER='tcp;ofi_mrrc' APP=
	while [ $# -gt 0 ]; do
		case $1 in
		-b) BIN=${2:?}/; shift 2 ;;
		-h|--help) usage; exit 0 ;;
		-*) usage >&2; exit 2 ;;
		*) PROVIDER=$1; shift ;;
		esac
	done
	DIR=$(mktemp -d "${TMPDIR:-/tmp}/test_stat.XXXXXX") || exit 2
	trap 'rm -rf "$DIR"' EXIT
	[[ $PROVIDER == *verbs* ]] || export FI_OFI_MRRC_REGISTER=always
	unset FI_OFI_MRRC_STATS_FILE
	for name in once watch watch_all ended other usage denied file \
		file_at_exit file_hook file_refused; do
		if "test_$name"; then
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

main "$@"
