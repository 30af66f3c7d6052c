#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_check.sh: each line of fi_mrrc_stat --check, provoked, and what it tells of
# an application.  Over tcp, whatever PROVIDER is.  Ends with "N passed, N failed".

# shellcheck source=fabtests/scripts/testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"

usage()
{
	cat <<-EOT
	Usage: $ME [-b BINDIR]

	BINDIR: where the programs are (default: PATH).
	EOT
}

before_test()
{
	BEFORE=()
	rm -rf "$DIR"/[!.]*
	# no application, no device's provider
	export FI_PROVIDER='tcp;ofi_mrrc' FI_OFI_MRRC_REGISTER=always
}

# check STATUS [ARGUMENT...]: what it prints is in $DIR/out and $DIR/err, and in
# $DIR/one with a line for each finding. BEFORE: a command that runs it.
check()
{
	local want=$1 rc

	shift
	"${BEFORE[@]}" "${BIN}fi_mrrc_stat" --check "$@" \
		>"$DIR/out" 2>"$DIR/err" </dev/null
	rc=$?
	cat "$DIR/out" "$DIR/err" | sed -E ':a; N; $!ba; s/\n {5,}/ /g' \
		>"$DIR/one"
	[ $rc -eq "$want" ] ||
		{ cat "$DIR/one"; fail "$*: status $rc, not $want"; return 1; }
}

# says TEXT...: each is a regular expression of a finding
says()
{
	local text

	for text in "$@"; do
		grep -qE -- "^$text" "$DIR/one" ||
			{ cat "$DIR/one"; fail "no '$text'"; return 1; }
	done
}

# hushes TEXT: no finding begins so
hushes()
{
	! grep -E -- "^$1" "$DIR/one" || fail "there is a '$1'"
}

# the loader's own libfabric
libfabric()
{
	/sbin/ldconfig -p | sed -n 's/^\tlibfabric\.so\.1 .*=> //p' | head -n 1
}

test_works()
{
	check 0 && hushes bad &&
		says "ok +libfabric: [12]\..* loads .*libmrrc-fi.so" \
			"ok +choice: FI_PROVIDER=tcp;ofi_mrrc" \
			"ok +provider: tcp;ofi_mrrc, version [0-9]" \
			"ok +userfaultfd: memory is watched" \
			"[a-z]+ +locked memory: .*ulimit -l" \
			"[a-z]+ +vm.max_map_count: [1-9][0-9]*; .* regions" \
			"[a-z]+ +hooks: " "[a-z]+ +devices: " &&
		[ ! -s "$DIR/err" ]
}

# Lines have 80 columns, unless a word is longer.
test_columns()
{
	check 0 && grep -q . "$DIR/out" &&
		! grep -vE '^.{0,80}$|^ +[^ ]+$' "$DIR/out"
}

test_json()
{
	check 0 --json && is_json "$DIR/out" &&
		grep -q '^{"works": true, "findings": \[{"about": "' "$DIR/out" ||
		return 1
	# what is not UTF-8
	FI_PROVIDER=$'tcp;ofi_mrrc,caf\xe9' check 0 --json &&
		is_json "$DIR/out" &&
		grep -q '"FI_PROVIDER=tcp;ofi_mrrc,caf?"' "$DIR/out" || return 1
	FI_OFI_MRRC_REGISTER=never check 1 --json && is_json "$DIR/out" &&
		grep -q '^{"works": false, .*"state": "bad"' "$DIR/out"
}

test_no_provider()
{
	mkdir "$DIR/none"
	FI_PROVIDER_PATH=$DIR/none check 1 &&
		says "bad +libfabric: .* does not load ofi_mrrc: \
FI_PROVIDER_PATH is $DIR/none cure: .*FI_PROVIDER_PATH=" &&
		hushes "[a-z]+ +(provider|userfaultfd)"
}

# first_copy PATH: the first copy that loads the provider begins with it
first_copy()
{
	grep -m 1 'libfabric: .* loads' "$DIR/one" | grep -q " $1" ||
		{ cat "$DIR/one"; fail "$1 is not first"; }
}

# Each copy is tried once, by whatever name.
test_copies()
{
	local copies

	mkdir -p "$DIR/here" "$DIR/there" "$DIR/py/x.libs"
	cp "$(libfabric)" "$DIR/here/libfabric.so.1" &&
		ln -s ../here/libfabric.so.1 "$DIR/there/libfabric.so.1" &&
		cp "$(libfabric)" "$DIR/py/x.libs/libfabric-0123.so.1" || return 1
	LD_LIBRARY_PATH=$DIR/here:$DIR/there PYTHONPATH=$DIR/py check 0 &&
		says "ok +libfabric: .*$DIR/here/libfabric.so.1, loads" ||
		return 1
	copies=$(grep -c 'libfabric: .* loads' "$DIR/one")
	command -v python3 >/dev/null || return 0
	says "ok +libfabric: .*$DIR/py/x.libs/libfabric-0123" || return 1
	[ "$copies" -eq 3 ] || { fail "$copies copies, not 3"; return 1; }
	# the loader takes such a name for no program that is linked to libfabric.so.1
	LD_LIBRARY_PATH=$DIR/py/x.libs:$DIR/here check 0 &&
		first_copy "$DIR/here/libfabric.so.1" &&
		check 0 --libfabric="$DIR/py/x.libs/libfabric-0123.so.1" &&
		first_copy "$DIR/py/x.libs/libfabric-0123" &&
		check 1 --libfabric="$DIR/none" &&
		says "bad +libfabric: $DIR/none can't be loaded"
}

# The first copy is what programs load; of others a fault is a note.
test_broken_copy()
{
	mkdir -p "$DIR/here" "$DIR/py/x"
	head -c 64 "$(libfabric)" >"$DIR/py/x/libfabric.so"
	# one of 32 bits is no program's of ours
	{ printf '\177ELF\1'; head -c 64 /dev/zero; } >"$DIR/py/x/libfabric-32.so"
	PYTHONPATH=$DIR/py check 0 && hushes ".*libfabric-32" || return 1
	! command -v python3 >/dev/null ||
		says "note +libfabric: .*$DIR/py/x/libfabric.so can't be loaded" ||
		return 1
	cp "$DIR/py/x/libfabric.so" "$DIR/here/libfabric.so.1"
	LD_LIBRARY_PATH=$DIR/here check 1 &&
		says "bad +libfabric: .*$DIR/here/libfabric.so.1 can't be loaded"
}

test_not_chosen()
{
	unset FI_PROVIDER
	check 0 && says "note +choice: .* not set cure: FI_PROVIDER=" || return 1
	FI_PROVIDER=tcp check 0 && says "note +choice: .*FI_PROVIDER is tcp cure" \
		"ok +provider: tcp;ofi_mrrc" || return 1
	FI_PROVIDER=^ofi_mrrc check 0 && says "note +choice" || return 1
	FI_HOOK=mrrc check 0 && says "ok +choice: FI_HOOK=mrrc"
}

test_no_device()
{
	! ls /sys/class/infiniband/* >/dev/null 2>&1 ||
		{ echo "  not tried: there is a device"; return 0; }
	FI_PROVIDER='verbs;ofi_mrrc' check 1 &&
		says "note +devices: there is no .* cure: " \
			"bad +provider: verbs;ofi_mrrc offers nothing here cure:"
}

test_off_over_tcp()
{
	FI_OFI_MRRC_REGISTER=auto check 0 &&
		says "note +registration: off: .* over tcp, which needs none \
cure: FI_OFI_MRRC_REGISTER=always$" "ok +userfaultfd" || return 1
	FI_OFI_MRRC_REGISTER=never check 1 &&
		says "bad +registration: off: .* cure: unset FI_OFI_MRRC_REGISTER"
}

test_uffd_denied()
{
	BEFORE=("${BIN}deny_uffd")
	check 1 && says "bad +userfaultfd: .* nothing is kept .seccomp filter: yes;\
.* cure: .*seccomp profile" && hushes "[a-z]+ +(hooks|lookups|variables)" ||
		return 1
	FI_OFI_MRRC_MONITOR=uffd check 1 &&
		says "bad +provider: tcp;ofi_mrrc opens no domain: fi_domain: "
}

# limited KIB COMMAND...: with a limit of locked memory, which root's rights would
# lift
limited()
(
	ulimit -l "$1" || exit 1
	[ "$(id -u)" -ne 0 ] || BEFORE=(setpriv --bounding-set=-ipc_lock)
	shift
	"$@"
)

test_locked_memory()
{
	limited 64 check 1 && says "bad +locked memory: buffers above 48 KiB \
are never kept: ulimit -l 64 cure: .*LimitMEMLOCK" &&
		hushes "note +variables" || return 1
	limited 8192 check 0 && says "ok +userfaultfd" \
		"note +locked memory: buffers above 6.0 MiB are never kept"
}

test_hooks()
{
	FI_OFI_MRRC_HOOKS=0 check 0 &&
		says "note +hooks: .*FI_OFI_MRRC_HOOKS=0.* cure: unset FI_OFI" ||
		return 1
	FI_OFI_MRRC_MONITOR=manual check 0 && says "note +hooks: none: .* cure:"
}

# Where this machine's code can be proven.
test_lookups()
{
	FI_OFI_MRRC_PROBE=always check 0 || return 1
	grep -q 'monitor uffd+hooks' "$DIR/one" || return 0
	says "note +lookups: .* 400 ns .*: they always are to cure: unset FI_" ||
		return 1
	check 0 && says "(ok +lookups: no code|note +lookups: [^:]*: [^ ]*[:+])"
}

test_variables()
{
	FI_OFI_MRRC_POLICI=lru FI_OFI_MRRC_CACHE_MAX_SIZE=4Q check 0 &&
		says "note +variables: FI_OFI_MRRC_POLICI is not .* FI_OFI_MRRC_POLICY$" \
			"note +variables: FI_OFI_MRRC_CACHE_MAX_SIZE: \"4Q\"" ||
		return 1
	FI_LOG_LEVEL=warn FI_OFI_MRRC_POLICI=lru check 0 &&
		says "note +variables: FI_OFI_MRRC_POLICI is not" || return 1
	FI_OFI_MRRC_TRACE=$DIR/none/%p FI_OFI_MRRC_STATS_FILE=$DIR/none/s \
		check 0 && says "note +variables: FI_OFI_MRRC_TRACE: no file \
can be made in $DIR/none: No such" "note +variables: FI_OFI_MRRC_STATS_FILE: no" ||
		return 1
	FI_OFI_MRRC_TRACE=t FI_OFI_MRRC_STATS_FILE=/s check 0 &&
		hushes "note +variables"
}

# What the user records stays as it is, and nothing is left behind.
test_traceless()
{
	echo mine | tee "$DIR/trace" >"$DIR/stats"
	mkdir "$DIR/tmp"
	TMPDIR=$DIR/tmp FI_OFI_MRRC_TRACE=$DIR/trace \
		FI_OFI_MRRC_STATS_FILE=$DIR/stats check 0 -- \
		env -u FI_OFI_MRRC_TRACE "${BIN}fi_mrrc_live" \
		-p 'tcp;ofi_mrrc' && says "ok +application" &&
		[ "$(cat "$DIR/trace" "$DIR/stats")" = $'mine\nmine' ] &&
		[ -z "$(ls "$DIR/tmp")" ]
}

# sum NAME: what both domains of the application told of it last
sum()
{
	grep -E "^(server|client) " "$DIR/out" | tail -n 2 |
		grep -oE " $1 [0-9]+" |
		awk '{ sum += $2 } END { print sum }'
}

# It is told what the application counted, whose output stays apart.
test_application()
{
	local live=("${BIN}fi_mrrc_live" -p 'tcp;ofi_mrrc' -w)

	check 0 -- "${live[@]}" && grep -q '^ready' "$DIR/out" &&
		! grep -q '^ok ' "$DIR/out" &&
		hushes ".*code is looked at when" &&
		says "ok +application: 2 domains of 1 process over tcp: \
$(sum lookups) lookups, $(sum hits) hits .*, $(sum misses) misses, \
$(sum registrations) registrations, [1-9][0-9]* KiB" || return 1
	check 0 --json -- "${live[@]}" && is_json "$DIR/err" &&
		grep -q "\"application\": {\"status\": 0, \"processes\": 1, \
\"domains\": 2, \"counters\": {\"lookups\": $(sum lookups), " "$DIR/err"
}

test_application_processes()
{
	local two="'${BIN}fi_mrrc_live' -p 'tcp;ofi_mrrc'"

	two="$two & $two && wait"
	check 0 -- sh -c "$two" &&
		says "ok +application: 4 domains of 2 processes over tcp"
}

test_application_uncached()
{
	FI_OFI_MRRC_CACHE_MAX_SIZE=8K \
		check 0 -- "${BIN}fi_mrrc_live" -p 'tcp;ofi_mrrc' &&
		says "note +application: 2 domains.* 0 hits .0.0%" \
			"note +application: [1-9][0-9]* times used once: larger \
than the cache cure: .*CACHE_MAX_SIZE"
}

# A limit beyond 2^63 hides no domain.
test_application_limit()
{
	FI_OFI_MRRC_CACHE_MAX_SIZE=9999999T \
		check 0 -- "${BIN}fi_mrrc_live" -p 'tcp;ofi_mrrc' &&
		says "ok +application: 2 domains of 1 process"
}

# TMPDIR may be no pattern, nor where the application has gone to.
test_application_tmpdir()
{
	local live

	live=$(realpath "$(command -v "${BIN}fi_mrrc_live")") || return 1
	mkdir "$DIR/[tmp]"
	BEFORE=(env -C "$DIR" TMPDIR='[tmp]')
	check 0 -- sh -c "cd / && '$live' -p 'tcp;ofi_mrrc'" &&
		says "ok +application: 2 domains of 1 process" &&
		[ -z "$(ls "$DIR/[tmp]")" ]
}

test_application_status()
{
	check 7 -- sh -c 'exit 7' && check 137 -- sh -c 'kill -9 $$' &&
		check 127 -- /nonexistent/program &&
		grep -q 'fi_mrrc_stat: /nonexistent/program: No such' "$DIR/err" ||
		return 1
	# with standard error closed
	"${BIN}fi_mrrc_stat" --check -- /nonexistent/program 2>&-
	[ $? -eq 127 ] || fail "not 127"
}

test_application_unused()
{
	check 0 -- true && says "note +application: it closed no domain" || return 1
	FI_PROVIDER=tcp check 0 -- true &&
		says "note +application: it did not use ofi_mrrc: .* cure: FI_PRO"
}

test_usage()
{
	refused 2 "either code or check" "${BIN}fi_mrrc_stat" --check --code x &&
		refused 2 "with check only" "${BIN}fi_mrrc_stat" --libfabric=x
}

test_options "$@"
run_tests works columns json no_provider copies broken_copy not_chosen \
	no_device off_over_tcp uffd_denied locked_memory hooks \
	lookups variables traceless application application_processes \
	application_uncached application_limit application_tmpdir \
	application_status application_unused usage
