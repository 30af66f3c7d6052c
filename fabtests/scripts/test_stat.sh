#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_stat.sh: what fi_mrrc_stat shows of a running process, and what
# FI_OFI_MRRC_STATS_FILE leaves of one that has ended, is what the process was
# told by fi_mrrc_stats_read().  Ends with "N passed, N failed".

# shellcheck source=fabtests/scripts/testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"

usage()
{
	cat <<-EOT
	Usage: $ME [-b BINDIR] [PROVIDER]

	Looks at fi_mrrc_live over PROVIDER (default: tcp;ofi_mrrc) from
	outside. BINDIR: where the programs are (default: PATH).
	EOT
}

# start [OPTION...]: starts fi_mrrc_live, after removing the files of an earlier
# one
start()
{
	rm -f "$DIR/file".*
	live "$@"
}

# compare FILE: the domains in FILE, the server's first, must have the counters
# that were printed last.
compare()
{
	local file=$1 who name value words object i=0

	is_json "$file" --json-lines || return 1
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

# sampled: $DIR/json has the process's counters. One that does not get the
# processor within a tenth of a second is shown as it was: with none.
sampled()
{
	"${BIN}fi_mrrc_stat" --once -f json "$APP" >"$DIR/json" 2>"$DIR/err" &&
		[ "$(grep -oE '"lookups": [1-9]' "$DIR/json" | wc -l)" -eq 2 ]
}

test_once()
{
	start || return 1
	until_so sampled && compare "$DIR/json"
	result=$?
	"${BIN}fi_mrrc_stat" --once >"$DIR/table" 2>&1
	[ "$(grep -cE "^ *$APP fi_mrrc_li " "$DIR/table")" -eq 2 ] ||
		{ cat "$DIR/table"; fail "not two lines of all"; result=1; }
	live_end || result=1
	return $result
}

several_samples()
{
	[ "$(grep -cE '^lookups|, sorted by ' "$DIR/table")" -gt 4 ]
}

# watched [--all]: ends with the application, after several samples; with --all,
# which shows all users' processes, when it is told to.
watched()
{
	local pid rc result which

	start || return 1
	which=("$APP")
	[ $# -eq 0 ] || which=()
	"${BIN}fi_mrrc_stat" -i 0.05 "${which[@]}" >"$DIR/table" 2>"$DIR/err" \
		9>&- &
	pid=$!
	until_so several_samples
	result=$?
	kill -0 $pid || { live_end; fail "ended before the process"; return 1; }
	live_end || { fail "the process failed"; return 1; }
	# it goes on as long as any process has counters
	[ $# -eq 0 ] || kill $pid 2>/dev/null
	wait $pid
	rc=$?
	[ $rc -eq 0 ] || { [ $rc -eq 143 ] && [ $# -gt 0 ]; } || { cat "$DIR/err"; fail "status $rc"; return 1; }
	[ $result -eq 0 ] || fail "there are not several samples"
}

test_watch()
{
	watched
}

test_watch_all()
{
	watched --all
}

# waits ARGUMENT...: fi_mrrc_stat --wait in the background, as $WAITING
waits()
{
	"${BIN}fi_mrrc_stat" --wait -i 0.05 "$@" >"$DIR/json" 2>"$DIR/err" \
		9>&- &
	WAITING=$!
}

# Nothing is printed until a domain is open.
test_wait()
{
	local result=0

	waits --once --json
	start || return 1
	wait $WAITING || { cat "$DIR/err"; fail "status $?"; result=1; }
	is_json "$DIR/json" || result=1
	grep -q '^\[{"pid": ' "$DIR/json" ||
		{ fail "the first sample has no domain"; result=1; }
	live_end || result=1
	return $result
}

# A process that ends without a domain is not waited for.
test_wait_pid()
{
	local pid

	mkfifo "$DIR/cat"
	cat "$DIR/cat" &
	pid=$!
	exec 9>"$DIR/cat"
	waits $pid
	exec 9>&-
	wait $pid
	! wait $WAITING || { fail "status 0"; return 1; }
	grep -q "$pid: there is no such process" "$DIR/err" ||
		{ cat "$DIR/err"; fail "does not say why"; }
}

table_says()
{
	"${BIN}fi_mrrc_stat" --once "$APP" >"$DIR/table" 2>&1 &&
		[ "$(grep -cE "regions, $1\$" "$DIR/table")" -eq 2 ]
}

# The report tells whether lookups ask the kernel, and why, a while after the
# domains were opened.
test_asks()
{
	local result=0

	FI_OFI_MRRC_PROBE=always start || return 1
	until_so table_says "lookups of threads ask the kernel: they always are to" ||
		result=1
	live_end || result=1
	FI_OFI_MRRC_PROBE=proven start || return 1
	until_so table_says "lookups (make no system call|of threads ask the kernel: ([^ ]*[+]0x|[^ ]*: |libc's).*)" ||
		result=1
	# nothing that the provider brings makes them ask
	! grep -q liburing "$DIR/table" || result=1
	# the provider's statement about its code agrees with what the tool
	# finds itself
	if grep -q "no system call" "$DIR/table"; then
		"${BIN}fi_mrrc_stat" --code "$APP" >>"$DIR/table" 2>&1 ||
			result=1
	fi
	live_end || result=1
	[ $result -eq 0 ] || { cat "$DIR/table"; fail "it does not say so"; }
}

says_again()
{
	[ "$(grep -c '^ready' "$DIR/out")" -eq 2 ]
}

# Hits are shown before there are so many that the provider adds them up itself.
test_slow()
{
	local result=0

	start -q || return 1
	until_so sampled || result=1
	echo >&9
	until_so says_again || result=1
	compare "$DIR/json" || result=1
	grep -q '^server lookups [1-9][0-9]* hits [1-9]' "$DIR/out" ||
		{ fail "there were no hits"; result=1; }
	live_end || result=1
	return $result
}

# On a terminal each table takes the place of the one before; elsewhere none
# does.
test_terminal()
{
	local home=$'\033[H\033[J' result=0 stat="${BIN}fi_mrrc_stat -i 0.1"

	start || return 1
	TERM=xterm script -qec "$stat -n 3 $APP" /dev/null </dev/null >"$DIR/table" ||
		result=1
	[ "$(grep -cF "$home" "$DIR/table")" -eq 3 ] ||
		{ cat -v "$DIR/table"; fail "not in place"; result=1; }
	$stat -n 3 "$APP" >"$DIR/table" || result=1
	! grep -qF "$home" "$DIR/table" || { fail "not plain"; result=1; }
	live_end || result=1
	return $result
}

# lacks TEXT [OPTION...]: the tables of both domains have it.
lacks()
{
	local text=$1 result=0

	shift
	start "$@" || return 1
	"${BIN}fi_mrrc_stat" --once "$APP" >"$DIR/table" 2>&1 || result=1
	[ "$(grep -cE "$text" "$DIR/table")" -eq 2 ] ||
		{ cat "$DIR/table"; fail "does not say '$text'"; result=1; }
	live_end || result=1
	return $result
}

test_lacks_monitor()
{
	lacks '^lacks a memory monitor, .*: userfaultfd is forbidden .* seccomp' \
		-d
}

test_lacks_hooks()
{
	FI_OFI_MRRC_HOOKS=0 lacks '^lacks hooks of libc .FI_OFI_MRRC_HOOKS=0.: unmap'
}

test_lacks_nothing()
{
	start || return 1
	"${BIN}fi_mrrc_stat" --once "$APP" >"$DIR/table" 2>&1
	live_end || return 1
	grep -q '^lookups' "$DIR/table" && ! grep '^lacks' "$DIR/table"
}

# With this monitor the provider starts no thread: libc's locks are cheaper in a
# process with one.
test_manual()
{
	local result=0

	FI_OFI_MRRC_MONITOR=manual start || return 1
	"${BIN}fi_mrrc_stat" --once "$APP" >"$DIR/table" 2>&1 || result=1
	grep -q 'monitor manual' "$DIR/table" || result=1
	! grep -qx mrrc-stats /proc/"$APP"/task/*/comm ||
		{ fail "there is a thread"; result=1; }
	live_end || result=1
	FI_OFI_MRRC_MONITOR=auto start || return 1
	grep -qx mrrc-stats /proc/"$APP"/task/*/comm ||
		{ fail "there is none with the others"; result=1; }
	live_end || result=1
	return $result
}

# Over tcp a domain registers nothing by itself.
test_registers_nothing()
{
	if [[ $PROVIDER == *verbs* ]]; then
		FI_OFI_MRRC_REGISTER=never idle \
			'open, but registers nothing: FI_OFI_MRRC_REGISTER=never'
	else
		FI_OFI_MRRC_REGISTER=auto idle "open, but registers nothing \
over [a-z;_]*, which needs none: FI_OFI_MRRC_REGISTER=always"
	fi
}

# idle TEXT: of both domains, and they have no counters.
idle()
{
	local result=0

	mkfifo "$DIR/idle"
	"${BIN}fi_mrrc_live" -p "$PROVIDER" -i <"$DIR/idle" >"$DIR/out" 2>&1 &
	APP=$!
	exec 9>"$DIR/idle"
	until_so grep -qs '^ready' "$DIR/out" || result=1
	"${BIN}fi_mrrc_stat" --once "$APP" >"$DIR/table" 2>&1 || result=1
	[ "$(grep -cE "^$APP fi_mrrc_live: $1\$" "$DIR/table")" -eq 2 ] ||
		result=1
	! grep -q lookups "$DIR/table" || result=1
	[ $result -eq 0 ] || cat "$DIR/out" "$DIR/table"
	live_end || result=1
	return $result
}

# The last line of a domain's log is about its life, not about its end.
test_log()
{
	local lines

	FI_LOG_LEVEL=info FI_LOG_PROV=ofi_mrrc "${BIN}fi_mrrc_live" \
		-n -p "$PROVIDER" >"$DIR/out" 2>&1 ||
		{ cat "$DIR/out"; return 1; }
	lines=$(grep -c ' [1-9][0-9]* registrations, 0 evictions, ' "$DIR/out")
	[ "$lines" -eq 2 ] || { cat "$DIR/out"; fail "$lines lines"; }
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
		refused 2 "count" "${BIN}fi_mrrc_stat" -n 0 &&
		refused 2 "'size' is none of pid, .*, saved" \
			"${BIN}fi_mrrc_stat" -s size &&
		refused 2 "code: as text only" "${BIN}fi_mrrc_stat" --json \
			--code "${BIN}fi_mrrc_stat"
}

# Another user may not read the counters.
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
	live_end || result=1
	return $result
}

# file_of [OPTION...]: compares the file that an ended process has left.
file_of()
{
	local status=0 files

	export FI_OFI_MRRC_STATS_FILE=$DIR/file.%p
	start "$@" && live_end
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

# Domains that were not closed are in the file; a child adds nothing about them.
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
	is_json "$DIR/file" --json-lines || return 1
	[ "$(grep -c '^{' "$DIR/file")" -eq 2 ] || fail "not two lines"
}

# Prints the sum of a counter over all domains in the file.
sum_of()
{
	grep -o "\"$1\": [0-9]*" "$DIR/file" |
		awk '{ sum += $2 } END { print sum + 0 }'
}

# Each conditional write and tag is counted, and has ended when all is closed.
test_file_cwrite()
{
	local name

	rm -f "$DIR/file"
	FI_OFI_MRRC_STATS_FILE=$DIR/file "${BIN}fi_mrrc_cwrite" -p "$PROVIDER" \
		>"$DIR/out" 2>&1 || { cat "$DIR/out"; return 1; }
	is_json "$DIR/file" --json-lines || return 1
	for name in writes tags immediate held messages_sent; do
		[ "$(sum_of "cw_$name")" -gt 0 ] ||
			{ fail "cw_$name is 0"; return 1; }
	done
	for name in writes tags; do
		[ "$(sum_of "cw_$name")" -eq "$(sum_of "cw_${name}_ended")" ] ||
			{ fail "not all $name have ended"; return 1; }
	done
}

# A file that cannot be written gives one warning; the run goes on.
test_file_refused()
{
	local status

	FI_LOG_LEVEL=warn FI_OFI_MRRC_STATS_FILE=$DIR/none/x start &&
		live_end
	status=$?
	[ $status -eq 0 ] || return 1
	[ "$(grep -c "written to $DIR/none/x:" "$DIR/err")" -eq 1 ] ||
		{ cat "$DIR/err"; fail "there is not one warning"; }
}

APP=
test_options "$@"
run_tests once watch watch_all wait wait_pid asks slow terminal lacks_monitor lacks_hooks \
	lacks_nothing manual registers_nothing log ended other usage denied file file_at_exit \
	file_hook file_cwrite file_refused
