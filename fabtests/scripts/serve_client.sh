# shellcheck shell=bash disable=SC2034,SC2154 # variables of test_serve.sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What a client does not do, whatever it is sent, and what it keeps: sourced by
# test_serve.sh.

# A file that is larger than the limit of the process is an error of this file.
test_file_limit()
{
	local ok

	file large 3000000
	file small 1000
	serve || return 1
	(ulimit -f 2000 && got 1 "") || return 1
	get_says 'large: File too large' && get_says 'ulimit -f' &&
		get_says 'are kept' && [ ! -e "$DIR/dst/large" ] &&
		cmp "$DIR/src/small" "$DIR/dst/small" || return 1
	got "" && same && serve_end || return 1
	# nor does a server end whose files may hardly have any length
	AS=(prlimit --fsize=2048)
	serve
	ok=$?
	AS=()
	[ $ok -eq 0 ] && got "" && same && serve_end
}

# endless KIND LINES TEXT: the client ends, with so many lines at most.
endless()
{
	get --max-entries=20000 "$ADDRESS:$1"
	[ $? -eq 1 ] || { fail "$1: no error"; return 1; }
	get_says 'lists more than 20000 entries' && get_says "$3" || return 1
	[ "$(wc -l <"$DIR/get.err")" -le "$2" ] ||
		{ fail "$1: $(wc -l <"$DIR/get.err") lines"; return 1; }
}

# A server's directories have no end: neither messages nor entries are endless.
test_endless()
{
	mkdir "$DIR/src/links" "$DIR/src/files" "$DIR/src/dirs"
	ENDLESS=yes serve || return 1
	endless links 1004 'left out' &&
		get_says '19000 more messages were not printed' &&
		endless files 1004 'no such file' &&
		endless dirs 1004 'too long' || return 1
	get --list --max-entries=5000 "$ADDRESS:links"
	[ $? -eq 1 ] || { fail "list: no error"; return 1; }
	get_says 'lists more than 5000 entries' &&
		[ "$(wc -l <"$DIR/get.out")" -eq 5000 ]
}

# modes NAME...: those of what was fetched
modes()
{
	(cd "$DIR/dst" && stat -c %a:%n "$@" | xargs)
}

# Permissions as of rsync -p: the original's, whatever umask is, and was there.
test_permissions()
{
	local as=()

	[ "$(id -u)" -ne 0 ] || ! may_run "${BIN}fi_mrrc_get" ||
		as=("${NOBODY[@]}")
	mkdir -p "$DIR/src/dir/closed"
	file private 10
	file dir/program 10
	file dir/closed/file 3000000
	chmod 4755 "$DIR/src/dir/program"
	chmod 600 "$DIR/src/private"
	file replaced 10
	chmod 664 "$DIR/src/replaced"
	# of a sticky directory nothing but permissions is taken
	chmod 1750 "$DIR/src/dir"
	# its owner may not write to it, but has to
	chmod 555 "$DIR/src/dir/closed"
	echo old >"$DIR/dst/replaced"
	chmod 600 "$DIR/dst/replaced"
	chmod 777 "$DIR" "$DIR/dst"
	[ "$(id -u)" -ne 0 ] || chown -R 65534 "$DIR/dst"
	GET=("${as[@]}" "${GET[@]}")
	serve --private || return 1
	local want='750:dir 555:dir/closed 644:dir/closed/file 755:dir/program'
	want+=' 600:private 664:replaced'
	(umask 077 && got "") && same || return 1
	[ "$(modes dir dir/closed{,/file} dir/program private replaced)" = "$want" ] ||
		{ ls -lR "$DIR/dst"; fail "other permissions"; return 1; }
	# what is there already gets them, too
	chmod 666 "$DIR/dst/private" "$DIR/dst/dir/program"
	chmod 1700 "$DIR/dst/dir"
	get -n "$ADDRESS:" || return 1
	[ "$(modes dir)" = 1700:dir ] ||
		{ ls -l "$DIR/dst"; fail "a dry run changes them"; return 1; }
	(umask 022 && got "") || return 1
	grep -q ' 4 files were there$' "$DIR/get.out" ||
		{ cat "$DIR/get.out"; fail "fetched again"; return 1; }
	[ "$(modes dir dir/closed{,/file} dir/program private replaced)" = "1$want" ] ||
		{ ls -lR "$DIR/dst"; fail "they stay"; return 1; }
	# another file of a directory that its owner may not write to
	file dir/closed/file 10
	(umask 022 && got "") && same || return 1
	# a source that is a directory
	rm -r "$DIR/dst/dir"
	(umask 077 && got dir) || return 1
	[ "$(modes dir)" = 750:dir ] || { ls -l "$DIR/dst"; fail "not dir's"; }
}

# Permissions as of cp: a file that is replaced keeps its own.
test_no_perms()
{
	mkdir -m 700 "$DIR/src/dir"
	file private 10
	file dir/program 10
	chmod 4755 "$DIR/src/dir/program"
	chmod 600 "$DIR/src/private"
	file replaced 10
	chmod 644 "$DIR/src/replaced"
	echo old >"$DIR/dst/replaced"
	chmod 600 "$DIR/dst/replaced"
	serve --private || return 1
	GET+=(--no-perms)
	(umask 022 && got "") && same || return 1
	[ "$(modes dir dir/program private replaced)" = '700:dir 755:dir/program 600:private 600:replaced' ] ||
		{ ls -lR "$DIR/dst"; fail "other permissions"; }
}

# denies TEXT GET-OPTION...: the client, with these, has an error, and nothing else
denies()
{
	local text=$1

	shift
	refused 1 "$text" "${GET[@]}" -p "$PORT" -C "$DIR/dst" "$@" \
		"$ADDRESS:" || return 1
	[ -z "$(ls -A "$DIR/dst")" ] || fail "something was fetched"
}

# no_secret TEXT FILE: neither program takes the file.
no_secret()
{
	refused 2 "$1" "${BIN}fi_mrrc_get" "--secret=$2" h:a &&
		refused 2 "$1" "${BIN}fi_mrrc_serve" "--secret=$2" x
}

# Both sides have to have the same secret, and nothing else is served or fetched.
test_secret()
{
	local one=$DIR/one other=$DIR/other what

	head -c 32 /dev/urandom >"$one"
	head -c 32 /dev/urandom >"$other"
	chmod 600 "$one" "$other"
	if "${BIN}fi_mrrc_get" "--secret=$one" 2>&1 | grep -q 'built without'; then
		echo "  not tried: no libsodium"
		return 0
	fi
	file file 1000000
	file small 10
	serve "--secret=$one" || return 1
	denies 'serves only those that prove its secret' &&
		server_says 'refused: the server serves only those' &&
		denies 'does not prove that it has this secret' \
			"--secret=$other" || return 1
	GET+=("--secret=$one")
	for what in early unopened dots garbage; do
		hostile $what || return 1
	done
	got "" && same && "${GET[@]}" -p "$PORT" --list "$ADDRESS:" |
		grep -q ' small$' && serve_end || return 1
	# a server without one is sent no proof
	rm "$DIR/dst"/*
	LATE=yes serve && denies 'the server has no secret' &&
		until_so nobody_late && serve_end && ! server_has 'not expected' || return 1
	# which files are secrets, and where proofs are of use
	chmod 640 "$other"
	no_secret 'chmod 600' "$other" &&
		no_secret 'not a regular file' /dev/zero &&
		no_secret 'No such file' "$DIR/none" || return 1
	head -c 15 "$other" >"$DIR/short"
	chmod 600 "$DIR/short"
	no_secret 'fewer than 16 bytes' "$DIR/short" &&
		refused 1 'name one --address' timeout 20 \
			"${BIN}fi_mrrc_serve" --root -e "$TYPE" -a 0.0.0.0 \
			"--secret=$one" "$DIR/src"
}
