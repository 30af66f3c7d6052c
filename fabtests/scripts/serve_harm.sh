# shellcheck shell=bash disable=SC2154 # what is set in test_serve.sh is used
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What is in the way of a client, and clients that do harm: sourced by test_serve.sh.

# ---- the client's folder -----------------------------------------------------

# Links in it are not followed.
test_beneath()
{
	file dir/file 100
	file top 100
	mkdir "$DIR/outside"
	echo mine >"$DIR/outside/file"
	ln -s "$DIR/outside" "$DIR/dst/dir"
	ln -s "$DIR/outside/file" "$DIR/dst/top"
	serve || return 1
	got 1 "" && get_says 'a symbolic link is in the way' || return 1
	if [ "$(cat "$DIR/outside/file")" != mine ] ||
		[ "$(ls -A "$DIR/outside")" != file ]; then
		fail "written outside"
		return 1
	fi
	# in the place of a file, it is replaced
	[ ! -L "$DIR/dst/top" ] && cmp "$DIR/src/top" "$DIR/dst/top"
}

test_planted()
{
	local part

	file file 100
	serve || return 1
	got file || return 1
	rm "$DIR/dst/file"
	part=$(part_name)
	[ -n "$part" ] || { fail "no partial file"; return 1; }
	echo mine >"$DIR/mine"
	ln -s "$DIR/mine" "$DIR/dst/$part"
	got 1 file && get_says 'not a regular file' &&
		[ "$(cat "$DIR/mine")" = mine ] || return 1
	rm "$DIR/dst/$part"
	# what looks like a partial file is not fetched
	echo x >"$DIR/src/$part"
	got 3 "" && get_says 'left out: the name of a partial file' || return 1
	[ ! -e "$DIR/dst/$part" ] || { fail "fetched"; return 1; }
	# nor is a directory made in the place of one
	rm "$DIR/src/$part" "$DIR/dst/file"
	mkdir "$DIR/src/$part"
	got 3 "" && get_says 'left out: the name of a partial file' && got file
}

# The name of file's partial file, which stays where a directory is in the way
part_name()
{
	mkdir "$DIR/dst/file" && got 1 file >&2 && rmdir "$DIR/dst/file" &&
		find "$DIR/dst" -name '.fi_mrrc_get.*' -printf '%f' -delete
}

# ---- clients that do harm ----------------------------------------------------

# hostile WHAT [OTHER]: it is disconnected, and others are served.
hostile()
{
	"${BIN}fi_mrrc_serve_hostile" "$PORT" "$@" >"$DIR/out" 2>&1 ||
		{ cat "$DIR/out" "$DIR/serve.err"; fail "hostile: $1"; return 1; }
	rm -f "$DIR/dst/file" && got file &&
		cmp "$DIR/src/file" "$DIR/dst/file"
}

# late WHAT SAID TEXT: a client that does WHAT says SAID when it has, and then
# waits: the server has TEXT of it in its report. When time has passed it is
# disconnected, and others are served. It ends when descriptor 8 is closed.
late()
{
	mkfifo "$DIR/in"
	"${BIN}fi_mrrc_serve_hostile" "$PORT" "$1" <"$DIR/in" >"$DIR/out" 2>&1 &
	CLIENT=$!
	exec 8>"$DIR/in"
	rm "$DIR/in"
	until_so grep -q "$2" "$DIR/out" && until_so reports "$3" &&
		passes_until "$4"
	exec 8>&-
	wait "$CLIENT" ||
		{ cat "$DIR/out" "$DIR/report" "$DIR/serve.err"; fail "late: $1"; return 1; }
	rm -f "$DIR/dst/file"
	got file && cmp "$DIR/src/file" "$DIR/dst/file"
}

test_hostile()
{
	local what

	file file 100000
	echo secret >"$DIR/secret"
	serve || return 1
	for what in garbage late-garbage early twice answer unopened oversize open-long \
		dots; do
		hostile $what || return 1
	done
	server_says 'sends an invalid message' &&
		server_says 'not expected' && server_says 'not open' &&
		server_says 'more bytes than it may' && serve_end
}

# A message of a kind that libfabric's tcp is not ready for
test_tagged()
{
	if [ "${PROVIDER%%;*}" != tcp ] || [ "$TYPE" = rdm ]; then
		echo "  not tried: only over tcp"
		return 0
	fi
	file file 100000
	LATE=yes serve || return 1
	late tagged sent ': 0 files, ' 'says nothing' && serve_end
}

# beside WHAT [OTHER]: a client that does it, and stays; others are served.
beside()
{
	local rc

	mkfifo "$DIR/in"
	"${BIN}fi_mrrc_serve_hostile" "$PORT" "$@" <"$DIR/in" >"$DIR/out" 2>&1 &
	CLIENT=$!
	exec 8>"$DIR/in"
	until_so grep -qs sent "$DIR/out"
	got file && same
	rc=$?
	exec 8>&-
	wait "$CLIENT" || { cat "$DIR/out"; return 1; }
	return $rc
}

only_tcp()
{
	[ "${PROVIDER%%;*}" = tcp ] || { echo "  not tried: only over tcp"; return 1; }
}

# Half of a connection request, and no more
test_half()
{
	only_tcp || return 0
	file file 100000
	serve && beside half && serve_end
}

# More connections that say nothing than it has descriptors
test_mute()
{
	only_tcp || return 0
	file file 100000
	FDS=300 serve && beside many 400 && serve_end
}

# only_rdm: over connections there is nothing to test.
only_rdm()
{
	[ "$TYPE" = rdm ] || { echo "  not tried: only over datagrams"; return 1; }
}

# Who speaks for another client, or for nobody, gets nothing, and ends no other.
test_strangers()
{
	local other

	only_rdm || return 0
	file file 67108864
	LATE=yes serve -v || return 1
	begin file || return 1
	other=$(sed -n 's/.*:\([0-9]*\): connected$/\1/p' "$DIR/serve.out")
	kill -CONT "$CLIENT"
	"${BIN}fi_mrrc_serve_hostile" "$PORT" strange "$other" \
		>"$DIR/out" 2>&1 ||
		{ cat "$DIR/out" "$DIR/serve.err"; fail "strange"; return 1; }
	wait "$CLIENT" ||
		{ cat "$DIR/get.err" "$DIR/serve.err"; fail "the client"; return 1; }
	same || return 1
	# those that it spoke for have not come
	until_so nobody_late ||
		{ cat "$DIR/serve.out"; fail "not freed"; return 1; }
	server_says ': 68 messages of no client' && serve_end
}

# A client that takes no answers is disconnected, and what it was sent stays
# until it is gone; another has its place.
test_stuck()
{
	local i

	only_rdm || return 0
	for ((i = 0; i < 300; i++)); do
		: >"$DIR/src/a-rather-long-name-of-an-empty-file-$i"
	done
	file file 100000
	serve -n 1 || return 1
	"${BIN}fi_mrrc_serve_hostile" "$PORT" slow "$SERVER" >"$DIR/out" 2>&1 &
	CLIENT=$!
	until_so server_has 'disconnected'
	if ! got file || ! cmp "$DIR/src/file" "$DIR/dst/file" ||
		! until_so reports ': 0 of 1 clients, 0 KiB' ||
		! grep -q ' KiB, stuck' "$DIR/report"; then
		cat "$DIR/serve.out" "$DIR/serve.err"
		kill_client
		fail "not stuck"
		return 1
	fi
	kill_client
	until_so nobody && serve_end
}

# reports TEXT: the report of now has it. It is complete when the next one begins.
reports()
{
	local lines i

	lines=$(wc -l <"$DIR/serve.out")
	for i in 1 2; do
		kill -USR1 "$SERVER" 2>/dev/null || return 1
		until_so more_reports "$lines" $i
	done
	tail -n +$((lines + 1)) "$DIR/serve.out" |
		awk '/ of [0-9]* clients, / { n++ } n == 1' >"$DIR/report"
	grep -q -- "$1" "$DIR/report"
}

# more_reports LINES N: succeeds once N reports have begun after line LINES of the
# output, or the server has ended.
more_reports()
{
	kill -0 "$SERVER" 2>/dev/null || return 0
	[ "$(tail -n +$(($1 + 1)) "$DIR/serve.out" |
		grep -c ' of [0-9]* clients, ')" -ge "$2" ]
}

# The server has nothing of any client.
nobody()
{
	reports ': 0 of [0-9]* clients, 0 KiB' &&
		! grep -q ' files, ' "$DIR/report"
}

nobody_late()
{
	time_passes
	nobody
}

# not_freed WHAT: what the server says of it last
not_freed()
{
	cat "$DIR/report" "$DIR/serve.err"
	fail "$1: not freed"
}

# A client that is killed is noticed at once, whether it has requests or not.
test_dead()
{
	file file 67108864
	serve -n 1 --timeout=600 --idle=600 || return 1
	begin file || return 1
	kill_client
	until_so nobody || { not_freed busy; return 1; }
	crowd_begin 1 4 || return 1
	CLIENT=$!
	kill_client
	exec 8>&-
	until_so nobody || { not_freed idle; return 1; }
	got file && same && serve_end
}

# Clients that connect and say nothing, that do not take their data, and that
# read nothing of what they have requested.
test_silent()
{
	local i

	# pages that are full
	for ((i = 0; i < 300; i++)); do
		: >"$DIR/src/a-rather-long-name-of-an-empty-file-$i"
	done
	file file 100000
	LATE=yes serve || return 1
	late silent connected ': 0 files, ' 'says nothing' &&
		late untagged requested ', busy$' 'does not take its data' ||
		return 1
	if [ "$TYPE" = rdm ]; then
		hostile flood </dev/null &&
			server_says 'more requests than it may' && serve_end
		return
	fi
	serve_end && LATE=yes serve || return 1
	late flood full ', busy$' 'does not take its data' && serve_end
}

# A client that has all its answers, and requests nothing more
test_idle()
{
	file file 100000
	LATE=yes serve || return 1
	late idle answered ': 0 files, .* KiB$' 'requests nothing' && serve_end
}

# A client that stops, whether the rest of its data is on the way or not
test_stopped()
{
	local i

	file file 67108864
	file small 1000000
	LATE=yes serve || return 1
	begin file || return 1
	for i in 1 2 3; do
		rm -f "$DIR/dst/small"
		got small || return 1
	done
	passes_until 'disconnected' || return 1
	kill -CONT "$CLIENT"
	wait "$CLIENT" && { fail "it has not failed"; return 1; }
	got file && got small && same && serve_end
}

server_has()
{
	grep -q -- "$1" "$DIR/serve.err"
}

test_crowd()
{
	local i pids=() result=0

	file file 1000000
	serve || return 1
	for ((i = 0; i < 50; i++)); do
		mkdir "$DIR/dst/$i"
		"${GET[@]}" -q -p "$PORT" -C "$DIR/dst/$i" \
			"$ADDRESS:file" >"$DIR/get.$i" 2>&1 &
		pids+=($!)
	done
	for ((i = 0; i < 50; i++)); do
		wait "${pids[i]}" ||
			{ cat "$DIR/get.$i"; fail "client $i"; result=1; }
		cmp "$DIR/src/file" "$DIR/dst/$i/file" || result=1
	done
	serve_end && server_says 'ended: 50 clients, 50 files' || result=1
	return $result
}

# crowd_begin CLIENTS ROUNDS [late]: starts fi_mrrc_serve_crowd, as $!, until
# its rounds are over. It ends when descriptor 8 is closed.
crowd_begin()
{
	# what an earlier one has said is not believed
	rm -f "$DIR/in" "$DIR/crowd"
	mkfifo "$DIR/in"
	# each has an endpoint, for which ofi_rxm would take 40 MB
	FI_OFI_RXM_MSG_RX_SIZE=16 "${BIN}fi_mrrc_serve_crowd" "$PORT" "$@" \
		<"$DIR/in" >"$DIR/crowd" 2>&1 &
	exec 8>"$DIR/in"
	until_so grep -qs 'rounds are over' "$DIR/crowd" ||
		{ cat "$DIR/crowd" "$DIR/serve.err"; fail "$1 clients"; }
}

# The server reports so many clients: others' ends may not have reached it yet.
counts()
{
	kill -USR1 "$SERVER"
	server_has_out ": $1 of 250 clients"
}

# crowd CLIENTS: all are connected at once, and each gets ranges. Sets KIB, what
# the server says that they have.
crowd()
{
	local pid

	crowd_begin "$1" 4
	pid=$!
	until_so counts "$1" ||
		{ cat "$DIR/serve.out"; fail "not $1 clients"; }
	KIB=$(sed -nE "s/.*: $1 of 250 clients, ([0-9]+) KiB.*/\\1/p" \
		"$DIR/serve.out" | tail -n 1)
	exec 8>&-
	wait $pid
}

# A client's memory does not depend on how many there are.
test_connections()
{
	local one

	file file 300000
	# where the processors are busy, 200 need long until all have come
	serve -n 250 --timeout=600 || return 1
	crowd 1 || return 1
	one=$KIB
	crowd 200 || return 1
	[ "$KIB" -eq $((200 * one)) ] ||
		{ fail "one has $one KiB, 200 have $KIB"; return 1; }
	serve_end && server_says 'ended: 201 clients, 201 files, 804 ranges' &&
		server_says '; 0 clients disconnected'
}

test_refused()
{
	file file 67108864
	file small 10
	serve -n 1 || return 1
	begin file || return 1
	got 1 small || return 1
	server_says 'refused: the server is full' || return 1
	get_says 'the server is full: try again' || return 1
	kill_client
	# its place is free once the server has noticed
	until_so get "$ADDRESS:small" || fail "the place is not free"
}

# may_run PROGRAM: another user can, over the provider.
may_run()
{
	if [ "$(id -u)" -eq 0 ] && "${NOBODY[@]}" "$1" --version >/dev/null &&
		"${NOBODY[@]}" test -r "${FI_PROVIDER_PATH-/}"; then
		return 0
	fi
	echo "  not tried: another user cannot run $1"
	return 1
}

# One user does not take all places.
test_share()
{
	local rc

	file file 300000
	serve -n 5 --timeout=600 || return 1
	crowd_begin 4 4 || return 1
	CLIENT=$!
	got 1 file
	rc=$?
	if [ $rc -eq 0 ] && may_run "${BIN}fi_mrrc_get"; then
		chmod 777 "$DIR" "$DIR/dst"
		"${NOBODY[@]}" "${GET[@]}" -p "$PORT" -C "$DIR/dst" \
			"$ADDRESS:file" >"$DIR/get.out" 2>"$DIR/get.err" ||
			{ cat "$DIR/get.err"; rc=1; }
		same || rc=1
	fi
	exec 8>&-
	wait "$CLIENT" || rc=1
	[ $rc -eq 0 ] && server_says 'refused: the server has enough clients' && serve_end
}

# denied OPTION...: a server with these does not serve us, and says so.
denied()
{
	serve "$@" || return 1
	got 1 file && server_says 'does not serve this host or user' &&
		get_says 'does not serve this host or user' && serve_end
}

# Networks and users that are served, and others
test_allow()
{
	local other=1

	file file 300000
	[ "$(id -u)" -ne 1 ] || other=2
	denied --allow=192.0.2.0/24 "--allow=$other" || return 1
	serve --allow=192.0.2.0/24 "--allow=$ADDRESS" || return 1
	got file && same && serve_end || return 1
	only_tcp || return 0
	serve "--allow=$(id -u)" || return 1
	rm "$DIR/dst/file"
	got file && same && serve_end
}
