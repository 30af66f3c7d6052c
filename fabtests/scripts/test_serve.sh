#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_serve.sh: what fi_mrrc_get fetches from fi_mrrc_serve is what is there,
# whatever happens to files, disks and processes meanwhile, and no client harms
# the server or another client.  Ends with "N passed, N failed".

# shellcheck source=fabtests/scripts/testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"
# shellcheck source=fabtests/scripts/serve_change.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/serve_change.sh"
# shellcheck source=fabtests/scripts/serve_client.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/serve_client.sh"
# shellcheck source=fabtests/scripts/serve_harm.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/serve_harm.sh"

ALL="sizes names named tree many links unreadable private user second_name log list
	exclude json again truncated checked pages writers huge
	resume_client resume_server interrupted full_disk beneath planted
	hostile tagged half mute strangers stuck silent dead idle stopped
	crowd connections refused share allow end end_busy end_waits
	end_twice hung unread status usage version endpoint file_limit endless
	permissions no_perms secret"

usage()
{
	cat <<-EOT
	Usage: $ME [-b BINDIR] [-t LIST] [PROVIDER]

	Serves files of a folder over PROVIDER (default: tcp;ofi_mrrc) to
	clients on this machine, over reliable datagrams if it has ofi_rxm.
	BINDIR: where the programs are (default: PATH).
	LIST: only these tests, separated by commas.
	EOT
}

# ---- server and client -------------------------------------------------------

SERVER='' CLIENT='' SHM=''
# exported to the clients, where it is set
ADDRESS=${SERVE_ADDRESS:-127.0.0.1}

# serve [OPTION]...: starts a server of $DIR/src at $PORT, as $SERVER, under the
# command AS, with as many descriptors as FDS says. No client is late, however slow this machine is: with LATE set, time_passes makes it so.
serve()
{
	local tries server=${BIN}fi_mrrc_serve${LATE:+_late}${ENDLESS:+_endless}

	set -- --timeout=900 --idle=900 "$@"

	for ((tries = 0; tries < 20; tries++)); do
		PORT=$((10000 + RANDOM % 20000))
		# the line of the server before this one is not believed
		rm -f "$DIR/serve.out"
		"${AS[@]}" ${FDS:+prlimit "--nofile=$FDS"} "$server" --root -e "$TYPE" -a "$ADDRESS" -p "$PORT" "$@" \
			"$DIR/src" >"$DIR/serve.out" 2>"$DIR/serve.err" &
		SERVER=$!
		until_so serve_began
		kill -0 "$SERVER" 2>/dev/null && return 0
		wait "$SERVER"
		# of the port; a client on this machine may have it
		grep -q 'in use' "$DIR/serve.err" || break
	done
	cat "$DIR/serve.err"
	fail "the server does not run"
}

# The server's limits of time are over.
time_passes()
{
	kill -USR2 "$SERVER"
}

# passes_until TEXT: after some time, the server complains of it.
passes_until()
{
	until_so passed "$1" || fail "the server does not say '$1'"
}

passed()
{
	server_has "$1" || { time_passes; return 1; }
}

serve_began()
{
	grep -qs ': serving ' "$DIR/serve.out" || ! kill -0 "$SERVER" 2>/dev/null
}

# The server ends when it is told to.
serve_end()
{
	local rc

	kill -TERM "$SERVER"
	wait "$SERVER"
	rc=$?
	SERVER=
	[ $rc -eq 0 ] ||
		{ cat "$DIR/serve.err"; fail "the server: status $rc"; }
}

get()
{
	"${GET[@]}" -p "$PORT" -C "$DIR/dst" "$@" >"$DIR/get.out" \
		2>"$DIR/get.err"
}

# start SOURCE BYTES: starts a slow client, as $CLIENT, and waits until it has so
# much of the file.
start()
{
	"${GET[@]}" -p "$PORT" -C "$DIR/dst" --part=4K --pipes=2 \
		"$ADDRESS:$1" >"$DIR/get.out" 2>"$DIR/get.err" &
	CLIENT=$!
	until_so partial_of "$2"
	kill -0 "$CLIENT" 2>/dev/null
}

# begin SOURCE [BYTES]: starts a slow client, and stops it where it has some of
# the file and not all of it. One that was through before is started again.
begin()
{
	local tries

	for ((tries = 0; tries < 20; tries++)); do
		rm -f "$DIR/dst/$1"
		start "$1" "${2:-1048576}"
		kill -STOP "$CLIENT" 2>/dev/null
		until_so halted
		is_partial "$1" && return 0
		kill -CONT "$CLIENT" 2>/dev/null
		wait "$CLIENT" || break
	done
	cat "$DIR/get.err"
	fail "does not begin"
}

# No thread of the client runs: it is stopped, or has ended.
halted()
{
	! grep -qs '^State:.[RSD]' "/proc/$CLIENT/task"/*/status
}

is_partial()
{
	local size

	size=$(stat -c %s "$DIR"/dst/.fi_mrrc_get.* 2>/dev/null)
	[ "${size:-0}" -gt 0 ] &&
		[ "$size" -lt "$(stat -c %s "$DIR/src/$1")" ]
}

# kill_client: as if its machine had crashed
kill_client()
{
	kill -9 "$CLIENT"
	wait "$CLIENT" 2>/dev/null
}

# got [STATUS] SOURCE: the client has this status (0).
got()
{
	local want=0 rc

	[ $# -eq 1 ] || { want=$1; shift; }
	get "$ADDRESS:$1"
	rc=$?
	[ $rc -eq "$want" ] || {
		cat "$DIR/get.err" "$DIR/serve.err"
		fail "$1: status $rc, not $want"
	}
}

# the error message of the last client, or of the server, has a text
get_says()
{
	grep -qF -- "$1" "$DIR/get.err" ||
		{ cat "$DIR/get.err"; fail "the client does not say '$1'"; }
}

# server_says TEXT: waits until the server's log has TEXT: another thread writes
# the log, perhaps after the client has its answer.
server_says()
{
	until_so grep -qF -- "$1" "$DIR/serve.out" "$DIR/serve.err" || {
		cat "$DIR/serve.out" "$DIR/serve.err"
		fail "the server does not say '$1'"
	}
}

# What was fetched is what is served, and no partial file is left.
same()
{
	diff -r "$DIR/src${1:+/$1}" "$DIR/dst${1:+/$1}" >"$DIR/diff" ||
		{ head "$DIR/diff"; fail "it differs"; return 1; }
	[ -z "$(find "$DIR/dst" -name '.fi_mrrc_get.*')" ] ||
		fail "partial files are left"
}

# partial_of BYTES: there is a partial file that has so many, or the client has
# ended.
partial_of()
{
	local size

	kill -0 "$CLIENT" 2>/dev/null || return 0
	size=$(stat -c %s "$DIR"/dst/.fi_mrrc_get.* 2>/dev/null)
	[ "${size:-0}" -ge "$1" ]
}

# file NAME BYTES
file()
{
	mkdir -p "$(dirname "$DIR/src/$1")"
	head -c "$2" /dev/urandom >"$DIR/src/$1"
}

# ---- what is fetched ---------------------------------------------------------

test_sizes()
{
	local size

	for size in 0 1 4095 4096 4097 8104 8105 65447 65448 65449 65535 65536 65537 524287 524288 524289 2097153 67108864; do
		file "of-$size" $size
	done
	serve || return 1
	got "" && same || return 1
	# ranges that the server grants are smaller than those asked for
	serve_end && serve -m 10000 || return 1
	rm -r "$DIR/dst" && mkdir "$DIR/dst"
	got of-2097153 && cmp "$DIR/src/of-2097153" "$DIR/dst/of-2097153"
}

test_names()
{
	local name

	for name in 'with blank' $'new\nline' $'\033[31mred' '-dash' '*' '..a' \
		'.hidden' $'\xff\xfe' 'back\slash' "quote'\"" \
		"$(printf 'n%.0s' {1..255})"; do
		file "$name" 100
	done
	mkdir "$DIR/src/di r" && file $'di r/\n' 5
	serve || return 1
	got "" && same || return 1
	rm -r "$DIR/dst" && mkdir "$DIR/dst"
	got 'di r/' && same 'di r' && got './/with blank' &&
		same 'with blank' || return 1
	# no control character reaches a terminal
	"${GET[@]}" -p "$PORT" --list "$ADDRESS:" >"$DIR/out" || return 1
	grep -qF 'new\012line' "$DIR/out" || { fail "not shown"; return 1; }
	! grep -q $'\033' "$DIR/out"
}

# Files and directories of one call, several at once; those that get one name
# come one after the other, and the last one stays.
test_named()
{
	local i at=()

	for ((i = 0; i < 40; i++)); do
		file "dir-$((i % 2))/$i" $((i * 10000))
		at+=("$ADDRESS:dir-$((i % 2))/$i")
	done
	for i in 1 2 3; do
		file "$i/large" 5000000
		file "$i/small" 5000
		at+=("$ADDRESS:$i/large" "$ADDRESS:$i/small")
	done
	serve || return 1
	get "${at[@]}" "$ADDRESS:dir-0" "$ADDRESS:dir-1" ||
		{ cat "$DIR/get.err"; fail "status $?"; return 1; }
	same dir-0 && same dir-1 &&
		cmp "$DIR/src/3/large" "$DIR/dst/large" &&
		cmp "$DIR/src/3/small" "$DIR/dst/small" || return 1
	for ((i = 0; i < 40; i++)); do
		cmp "$DIR/src/dir-$((i % 2))/$i" "$DIR/dst/$i" || return 1
	done
}

# Directories until the path is as long as one may be
test_tree()
{
	local path='' part i

	part=$(printf 'p%.0s' {1..200})
	for ((i = 0; i < 15; i++)); do
		path=$path/$part
	done
	mkdir -p "$DIR/src$path" "$DIR/src/empty/empty" || return 1
	(cd "$DIR/src$path" && echo deep >file) || return 1
	# deep, and narrow
	mkdir -p "$DIR/src/$(printf 'a/%.0s' {1..500})"
	serve || return 1
	got "" && same || return 1
	[ -d "$DIR/dst/empty/empty" ] || fail "an empty directory is missing"
}

test_many()
{
	local i

	mkdir "$DIR/src/many"
	for ((i = 0; i < 1000; i++)); do
		echo "this is file $i" >"$DIR/src/many/file-$i"
	done
	serve || return 1
	got many && same many || return 1
	grep -q '^1000 files fetched, ' "$DIR/get.out" ||
		{ cat "$DIR/get.out"; fail "not 1000"; }
}

test_links()
{
	mkdir "$DIR/src/dir"
	echo secret >"$DIR/secret"
	echo plain >"$DIR/src/dir/plain"
	ln -s ../../secret "$DIR/src/dir/link"
	ln -s / "$DIR/src/root"
	ln -s dir "$DIR/src/inner"
	mkfifo "$DIR/src/fifo"
	serve || return 1
	got 1 dir/link && get_says 'symbolic links are not followed' &&
		got 1 root/etc/passwd && get_says 'symbolic links' &&
		got 1 inner/plain && get_says 'symbolic links' &&
		got 1 fifo && get_says 'neither a regular file' &&
		got 1 none && get_says 'no such file' || return 1
	# in directories they are left out, and that is said
	got 3 "" && get_says 'fifo: left out' &&
		get_says 'dir/link: left out: a symbolic link' || return 1
	grep -q '^1 files fetched, .*; 3 links left out; 1 others left out$' \
		"$DIR/get.out" ||
		{ cat "$DIR/get.out"; fail "not 4 left out"; return 1; }
	got 3 dir && get_says 'dir/link: left out' || return 1
	grep -q ' 1 links left out$' "$DIR/get.out" ||
		{ cat "$DIR/get.out"; fail "not left out"; return 1; }
	# what failed counts more
	got 1 none && get "$ADDRESS:" "$ADDRESS:none"
	[ $? -eq 1 ] || { fail "not failed"; return 1; }
	[ "$(find "$DIR/dst" -type f -printf '%P ')" = 'dir/plain ' ] ||
		fail "something else was fetched"
}

# Another user's server, if this one is root's
test_unreadable()
{
	local rc

	file readable 10
	file private 10
	chmod 600 "$DIR/src/private"
	mkdir -m 700 "$DIR/src/closed"
	chmod 755 "$DIR" "$DIR/src"
	if [ "$(id -u)" -ne 0 ]; then
		chmod 0 "$DIR/src/private" "$DIR/src/closed"
	else
		may_run "${BIN}fi_mrrc_serve" || return 0
		AS=("${NOBODY[@]}")
	fi
	serve
	rc=$?
	AS=()
	[ $rc -eq 0 ] && got 1 "" && get_says 'private: the server may not' &&
		get_says 'closed: the server may not' &&
		cmp "$DIR/src/readable" "$DIR/dst/readable" &&
		[ ! -e "$DIR/dst/private" ]
}

# What not all users may read, and what is in a place that they may not enter
test_private()
{
	file readable 10
	file private 10
	chmod 640 "$DIR/src/private"
	file closed/file 10
	chmod 750 "$DIR/src/closed"
	serve || return 1
	got 1 "" && get_says 'private: the server may not' &&
		get_says 'closed: the server may not' &&
		[ "$(find "$DIR/dst" -type f -printf '%P ')" = 'readable ' ] &&
		serve_end && serve --private && got "" && same &&
		serve_end || return 1
	chmod 750 "$DIR"
	refused 1 'not all users may enter it' "${BIN}fi_mrrc_serve" --root \
		"$DIR/src" && serve --private && got ""
}

# user_of NAME: these lines of /proc/PID/status
user_of()
{
	local uid gid

	uid=$(id -u "$1") gid=$(id -g "$1")
	printf 'Uid:\t%s\t%s\t%s\t%s\n' "$uid" "$uid" "$uid" "$uid"
	printf 'Gid:\t%s\t%s\t%s\t%s\n' "$gid" "$gid" "$gid" "$gid"
	printf 'Groups:\t%s \n' "$(id -G "$1")"
	printf 'Cap%s:\t%016d\n' Prm 0 Eff 0
}

# Root begins, and another user serves: in all threads, with its groups.
test_user()
{
	local task

	[ "$(id -u)" -eq 0 ] || { echo "  not tried: not root"; return 0; }
	refused 2 'root would serve files' "${BIN}fi_mrrc_serve" "$DIR/src" ||
		return 1
	file file 100000
	file private 10
	chmod 600 "$DIR/src/private"
	serve --user=nobody || return 1
	for task in "/proc/$SERVER/task"/*; do
		[ "$(awk '/^(Uid|Gid|Groups|CapPrm|CapEff):/' "$task/status")" = \
			"$(user_of nobody)" ] ||
			{ cat "$task/status"; fail "another user"; return 1; }
	done
	got 1 "" && get_says 'private: the server may not' &&
		cmp "$DIR/src/file" "$DIR/dst/file" && serve_end
}

# Each of two names of a user has its own groups.
test_second_name()
{
	local also=64999 ok

	unshare -m true 2>/dev/null ||
		{ echo "  not tried: not root"; return 0; }
	cp /etc/passwd /etc/group "$DIR"
	echo "mrrc2:x:$(id -u nobody):$(id -g nobody)::/:/bin/false" >>"$DIR/passwd"
	echo "mrrc2:x:$also:mrrc2" >>"$DIR/group"
	# shellcheck disable=SC2016 # for that shell
	AS=(unshare -m sh -ec 'mount --bind "$0/passwd" /etc/passwd
		mount --bind "$0/group" /etc/group
		exec "$@"' "$DIR")
	serve --user=mrrc2
	ok=$?
	AS=()
	[ $ok -eq 0 ] || return 1
	grep -qw "^Groups:.*$also" "/proc/$SERVER/status" ||
		{ grep ^Groups: "/proc/$SERVER/status"; fail "other groups"; return 1; }
	serve_end
}

# Who has opened which file, in one line whatever its name is
test_log()
{
	local who='' line

	file file 100000
	file $'new\nline' 10
	file private 10
	chmod 600 "$DIR/src/private"
	serve --log || return 1
	got 1 "" || return 1
	[ "${PROVIDER%%;*}" != tcp ] || who=" user $(id -u)"
	serve_end || return 1
	for line in 'file file, 100000 bytes' 'file new\\012line, 10 bytes' \
		'file private refused: the server may not read it, .*'; do
		grep -Eqx "fi_mrrc_serve: [0-9.]+:[0-9]+$who: $line" \
			"$DIR/serve.out" ||
			{ cat "$DIR/serve.out"; fail "no line: $line"; return 1; }
	done
}

test_list()
{
	local i

	for ((i = 0; i < 600; i++)); do
		: >"$DIR/src/a-name-of-an-entry-$i"
	done
	file seven 7
	mkdir "$DIR/src/dir"
	serve || return 1
	"${GET[@]}" -p "$PORT" --list "$ADDRESS:" >"$DIR/out" || return 1
	[ "$(wc -l <"$DIR/out")" -eq 602 ] || { fail "not 602 lines"; return 1; }
	if ! grep -qx ' *7 seven' "$DIR/out" ||
		! grep -qx ' *- dir/' "$DIR/out"; then
		fail "the entries are not there"
		return 1
	fi
	awk '{ print substr($0, 18) }' "$DIR/out" | sort -c ||
		{ fail "it is not sorted"; return 1; }
	"${GET[@]}" -p "$PORT" --list "$ADDRESS:seven" >"$DIR/out" &&
		grep -qx ' *7 seven' "$DIR/out" || return 1
	refused 1 'no such file' "${GET[@]}" -p "$PORT" --list \
		"$ADDRESS:none" || return 1
	[ -z "$(ls -A "$DIR/dst")" ] || fail "something was written"
}

# --exclude leaves entries out, and --dry-run lists the same files and writes none.
test_exclude()
{
	local without=(--exclude='*.tmp' --exclude=all/two/b)

	mkdir -p "$DIR/src/all"/{one,two,x.tmp}
	touch "$DIR/src/all"/{one,two,x.tmp}/{a,b,c.tmp}
	serve || return 1
	get -n "${without[@]}" "$ADDRESS:all" || return 1
	printf '%s\n' all/one/a all/one/b all/two/a >"$DIR/want"
	grep -v ' files would be fetched, 0 bytes$' "$DIR/get.out" | sort |
		diff "$DIR/want" - || { fail "not these"; return 1; }
	[ -z "$(ls -A "$DIR/dst")" ] || { fail "it wrote"; return 1; }
	get "${without[@]}" "$ADDRESS:all" || return 1
	(cd "$DIR/dst" && find . -type f -printf '%P\n') | sort |
		diff "$DIR/want" - || { fail "not these are there"; return 1; }
	# all is there now
	get -n "${without[@]}" "$ADDRESS:all" || return 1
	grep -q '^0 files would be fetched, 0 bytes; 3 files were there$' \
		"$DIR/get.out" || { cat "$DIR/get.out"; return 1; }
	refused 2 'no pattern' "${GET[@]}" --exclude= "$ADDRESS:all"
}

# has TEXT...: the document of the last client is JSON, and has all of these
has()
{
	local text

	is_json "$DIR/get.out" || return 1
	for text; do
		grep -qF -- "$text" "$DIR/get.out" || {
			cat "$DIR/get.out"
			fail "there is no $text"
			return 1
		}
	done
}

# One JSON document, whatever happens, with integers for counts
test_json()
{
	mkdir "$DIR/src/dir"
	file dir/one 10
	file $'dir/new\nline' 10
	file $'dir/\xff' 0
	ln -s one "$DIR/src/dir/link"
	mkfifo "$DIR/src/dir/fifo"
	serve || return 1
	get --json -v "$ADDRESS:dir"
	[ $? -eq 3 ] || { fail "not left out"; return 1; }
	has '"paths": [' '"dir/new\\012line"' '"files": 3,' '"bytes": 20,' \
		'"links_left_out": 1,' '"others_left_out": 1,' \
		'"path": "dir/link"' '"failed": 0,' '"status": 3' || return 1
	get -f json "$ADDRESS:dir" "$ADDRESS:none"
	has '"files": 0,' '"files_same": 3,' '"path": "none"' '"failed": 1,' \
		'"status": 1' || return 1
	rm -r "$DIR/dst/dir"
	get -f json -n "$ADDRESS:dir"
	has '"dir/one"' '"files": 3,' && get -f json --list "$ADDRESS:dir" \
		"$ADDRESS:" || return 1
	has '"name": "link"' '"type": "link"' '"type": "other"' '"bytes": 10' \
		'"type": "directory"' || return 1
	get --json --list "$ADDRESS:none" && { fail "no error"; return 1; }
	has '"path": "none"' '"status": 1' || return 1
	"${GET[@]}" --json -p 1 "$ADDRESS:" >"$DIR/get.out" 2>"$DIR/get.err"
	has '"error": "' '"status": 1' && get -f text "$ADDRESS:dir/one" &&
		grep -q '^1 files fetched' "$DIR/get.out" &&
		refused 2 "text or json, not 'xml'" "${GET[@]}" -f xml h:a
}

# Files that are there are not fetched again, but for those that differ.
test_again()
{
	file one 100000
	file two 100000
	serve || return 1
	got "" && got "" || return 1
	grep -q '^0 files fetched, .*; 2 files were there$' "$DIR/get.out" ||
		{ cat "$DIR/get.out"; fail "fetched again"; return 1; }
	file one 100000
	got "" && same
}

# ---- the server's end, and what it prints ------------------------------------

test_end()
{
	file file 100
	serve || return 1
	got file && serve_end && server_says 'ending: ' &&
		server_says 'ended: 1 clients, 1 files, 1 ranges, 100 bytes'
}

test_end_busy()
{
	local rc

	# this client is not stopped: the end comes while it requests ranges,
	# hundreds of times as many as it takes to begin
	truncate -s 512M "$DIR/src/file"
	serve || return 1
	start file 1000000 ||
		{ cat "$DIR/get.err"; fail "does not begin"; return 1; }
	serve_end && server_says 'ending: 1 clients' || return 1
	wait "$CLIENT"
	rc=$?
	[ $rc -eq 1 ] || { fail "the client: status $rc"; return 1; }
	get_says 'the server is ending' && get_says 'run the same command again' &&
		serve && resumed
}

# reported N: the server has said N times that its client is busy.
reported()
{
	! kill -USR1 "$SERVER" 2>/dev/null ||
		[ "$(grep -c ', busy$' "$DIR/serve.out")" -ge "$1" ]
}

# The end waits for a range that is on its way, which the client lets in when it
# is told to.
test_end_waits()
{
	local client seen rc

	file file 1000000
	serve --grace=600 --timeout=600 || return 1
	crowd_begin 1 4 late || return 1
	client=$!
	until_so reported 1
	kill -TERM "$SERVER"
	until_so server_has_out ': ending: '
	server_says '1 of them with' || return 1
	# longer than a client is left that requests nothing
	sleep 2
	seen=$(grep -c ', busy$' "$DIR/serve.out")
	until_so reported $((seen + 1))
	exec 8>&-
	wait $client || {
		cat "$DIR/crowd" "$DIR/serve.out" "$DIR/serve.err"
		fail "the client"
		return 1
	}
	wait "$SERVER"
	rc=$?
	SERVER=
	[ $rc -eq 0 ] || { fail "the server: status $rc"; return 1; }
	server_says ' 5 ranges, ' && server_says ' 0 with ranges on their way'
}

# ends STATUS: the server does, with this one
ends()
{
	local rc

	until_so ended || { fail "it goes on"; return 1; }
	wait "$SERVER"
	rc=$?
	SERVER=
	[ $rc -eq "$1" ] || fail "the server: status $rc, not $1"
}

ended()
{
	grep -qs '^State:.Z' "/proc/$SERVER/status" ||
		! kill -0 "$SERVER" 2>/dev/null
}

# A second signal ends it whatever it waits for.
test_end_twice()
{
	file file 1000000
	serve --grace=600 --timeout=600 || return 1
	crowd_begin 1 4 late || return 1
	kill -TERM "$SERVER"
	until_so server_has_out ': ending: '
	kill -TERM "$SERVER"
	# 128 and SIGTERM
	ends 143
	rc=$?
	exec 8>&-
	return $rc
}

# hang: a client that wants a file whose reads never end, as $CLIENT
hang()
{
	"${GET[@]}" -p "$PORT" -C "$DIR/dst" "$ADDRESS:hung" \
		>"$DIR/get.out" 2>"$DIR/get.err" &
	CLIENT=$!
	until_so reports ', busy$' || fail "it does not hang"
}

# A read that hangs keeps no place of a client that has gone, nor the server.
test_hung()
{
	file hung 100000
	file file 100000
	LATE=yes serve -n 1 --threads=2 --grace=1 || return 1
	hang || return 1
	kill_client
	until_so get "$ADDRESS:file" ||
		{ cat "$DIR/serve.err"; fail "the place is not free"; return 1; }
	cmp "$DIR/src/file" "$DIR/dst/file" || return 1
	until_so reports ': 0 of 1 clients' && hang || return 1
	kill -TERM "$SERVER"
	ends 0 || return 1
	wait "$CLIENT" && fail "the client has the file"
	return 0
}

# The server's output is a full pipe. It still serves files, and ends when told.
test_unread()
{
	file file 100000
	mkfifo "$DIR/log"
	exec 7<>"$DIR/log"
	head -c 65536 /dev/zero >&7
	PORT=$((10000 + RANDOM % 20000))
	"${BIN}fi_mrrc_serve" --root -v -e "$TYPE" -a "$ADDRESS" -p "$PORT" \
		"$DIR/src" >&7 2>&7 &
	SERVER=$!
	until_so get "$ADDRESS:file"
	kill -TERM "$SERVER"
	ends 0
	rc=$?
	exec 7>&-
	[ $rc -eq 0 ] && same
}

test_status()
{
	file file 67108864
	serve -m 64K || return 1
	begin file || return 1
	kill -USR1 "$SERVER"
	until_so server_has_out ': 1 files, ' ||
		{ fail "no status"; return 1; }
	kill_client
	server_says ': 1 of 64 clients, ' || return 1
	# messages and two ranges: a client has no more memory than it may
	grep -Eq ', ([1-9]|[1-9][0-9]) KiB(, busy)?$' "$DIR/serve.out" ||
		{ cat "$DIR/serve.out"; fail "its memory"; }
}

test_usage()
{
	local get=${BIN}fi_mrrc_get serve=${BIN}fi_mrrc_serve

	refused 2 'which DIR' "$serve" &&
		refused 2 "one DIR, not also 'y'" "$serve" x y &&
		refused 2 'max-clients' "$serve" -n 0 x &&
		refused 2 'memory' "$serve" -m 1 x &&
		refused 2 'port' "$serve" -p 70000 x &&
		refused 2 "Try \`" "$serve" --none x &&
		refused 2 "msg or rdm, not 'udp'" "$serve" -e udp x &&
		refused 2 "msg or rdm, not 'RDM'" "$get" -e RDM h:a &&
		refused 2 "no network and no user" "$serve" --allow=x/y z &&
		refused 2 "there is no 'nobody-such'" "$serve" -u nobody-such x &&
		refused 1 'No such file' "$serve" --root "$DIR/none" &&
		refused 1 'Not a directory' "$serve" --root /etc/passwd &&
		refused 2 'HOST:PATH' "$get" &&
		refused 2 'is not HOST:PATH' "$get" x &&
		refused 2 'is not HOST:PATH' "$get" :x &&
		refused 2 'is not HOST:PATH' "$get" '[::1]x' &&
		refused 2 'no path beneath' "$get" h:a/../b &&
		refused 2 'one host a call' "$get" h:a i:b &&
		refused 2 'pipes' "$get" --pipes=17 h:a &&
		refused 2 'part' "$get" --part=1 h:a &&
		refused 1 'port 1: ' "$get" -p 1 "$ADDRESS:x" || return 1
	"$serve" --version | grep -qx 'ofi_mrrc [0-9.]*' &&
		"$get" --version | grep -qx 'ofi_mrrc [0-9.]*'
}

# Without the provider both say so.
test_version()
{
	FI_PROVIDER_PATH=$DIR refused 1 'no provider with ofi_mrrc' \
		"${BIN}fi_mrrc_serve" --root -p 9999 "$DIR/src" &&
		FI_PROVIDER_PATH=$DIR refused 1 'no provider with ofi_mrrc' \
			"${BIN}fi_mrrc_get" "$ADDRESS:x"
}

# A client of the other kind of endpoints is told which one the server has.
test_endpoint()
{
	local other=msg says='reliable datagrams: use -e rdm'

	[ "$TYPE" != msg ] ||
		{ other=rdm; says='connected endpoints: use -e msg'; }
	file file 10
	serve || return 1
	# FI_PROVIDER would exclude what the other kind needs
	refused 1 "$says" env -u FI_PROVIDER "${BIN}fi_mrrc_get" -e $other \
		-p "$PORT" "$ADDRESS:file" || return 1
	# and so would --provider
	refused 1 "$says" env -u FI_PROVIDER "${BIN}fi_mrrc_get" -e $other \
		-P "$(other_provider)" -p "$PORT" "$ADDRESS:file" || return 1
	got file && same
}

# The same with ofi_rxm or without
other_provider()
{
	case $PROVIDER in
	*ofi_rxm*) echo "${PROVIDER/ofi_rxm;/}" ;;
	*) echo "${PROVIDER/ofi_mrrc/ofi_rxm;ofi_mrrc}" ;;
	esac
}

# ---- all ---------------------------------------------------------------------

kill_server()
{
	[ -n "$SERVER" ] || return 0
	kill -9 "$SERVER" 2>/dev/null
	wait "$SERVER" 2>/dev/null
	SERVER=
}

# Each test has folders and a server of its own.
before_test()
{
	kill_server
	chmod -R u+rwx "$DIR" 2>/dev/null
	rm -rf "${DIR:?}"/* ${SHM:+"$SHM"}
	SHM=
	# what all users may read is served
	umask 022
	chmod 755 "$DIR"
	mkdir "$DIR/src" "$DIR/dst"
	GET=("${BIN}fi_mrrc_get" -e "$TYPE")
}

AS=() ONLY=$ALL
NOBODY=(setpriv --reuid 65534 --clear-groups)
if [ "${1-}" = -t ]; then
	ONLY=${2//,/ }
	shift 2
elif [ "${3-}" = -t ]; then
	ONLY=${4//,/ }
	set -- "$1" "$2" "${@:5}"
fi
test_options "$@"
trap 'kill_server; rm -rf "$DIR" ${SHM:+"$SHM"}' EXIT
export FI_PROVIDER=$PROVIDER
TYPE=msg
[[ $PROVIDER != *ofi_rxm* ]] || TYPE=rdm
export SERVE_ENDPOINT=$TYPE
# shellcheck disable=SC2086 # a list
run_tests $ONLY
