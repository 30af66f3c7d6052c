# shellcheck shell=bash disable=SC2154 # what is set in test_serve.sh is used
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Files, disks and processes that change while a file is fetched: sourced by test_serve.sh.

# ---- files that change -------------------------------------------------------

# It becomes shorter, and is replaced, while it is fetched.
test_truncated()
{
	file file 67108864
	serve || return 1
	begin file || return 1
	# does not wait for the server's lease, but has it given back
	until_so truncate -s 3000000 "$DIR/src/file" 2>/dev/null ||
		{ fail "the file is not given back"; return 1; }
	kill -CONT "$CLIENT"
	wait "$CLIENT" || { cat "$DIR/get.err"; fail "truncated: status $?"; return 1; }
	same || return 1
	file other 67108864
	begin other || return 1
	file new 5000000
	mv "$DIR/src/new" "$DIR/src/other"
	kill -CONT "$CLIENT"
	wait "$CLIENT" || { cat "$DIR/get.err"; fail "replaced: status $?"; return 1; }
	# the version of the begin, or the new one
	[ "$(stat -c %s "$DIR/dst/other")" -eq 67108864 ] || same
}

# on_tmpfs: what is served is on a file system that grants leases.
on_tmpfs()
{
	SHM=$(mktemp -d /dev/shm/test_serve.XXXXXX) ||
		{ echo "  not tried: no /dev/shm"; return 1; }
	chmod 755 "$SHM"
	rmdir "$DIR/src"
	ln -s "$SHM" "$DIR/src"
}

# Large files are sent from their own pages, and no block is allocated for
# them; small ones, and all with --copy, are read into blocks.
test_pages()
{
	on_tmpfs || return 0
	file file 67108864
	file small 1000000
	serve || return 1
	got file && got small && cmp "$DIR/src/small" "$DIR/dst/small" &&
		cmp "$DIR/src/file" "$DIR/dst/file" && serve_end || return 1
	if grep -q verbs <<<"$PROVIDER" && server_has_out ' 0 without a copy'
	then
		echo "  not tried: this kernel registers no shared mapping"
		return 0
	fi
	server_says ' 68108864 bytes, 67108864 without a copy' || return 1
	rm "$DIR/dst/file"
	serve --copy || return 1
	got file && cmp "$DIR/src/file" "$DIR/dst/file" && serve_end &&
		server_says ' 67108864 bytes, 0 without a copy'
}

server_has_out()
{
	grep -q -- "$1" "$DIR/serve.out"
}

# writer HOW [SECONDS]: what is fetched meanwhile is the file of some moment, or
# the client says why not. Where nothing was fetched, the writer is to be longer.
writer()
{
	local holes='' pid fetched=0 failed=0 seconds=${2:-2}

	[ "$1" != punch ] || holes=holes
	"${BIN}fi_mrrc_serve_writer" "$DIR/src/file" "$1" "$seconds" \
		>"$DIR/writer" 2>&1 &
	pid=$!
	until_so grep -q begun "$DIR/writer" || { fail "no writer"; return 1; }
	while kill -0 $pid 2>/dev/null; do
		rm -f "$DIR/dst/file"
		if get --no-sync "$ADDRESS:file"; then
			fetched=$((fetched + 1))
			"${BIN}fi_mrrc_serve_writer" "$DIR/dst/file" check \
				$holes || { kill $pid; return 1; }
		else
			failed=$((failed + 1))
			grep -Eq 'changed|written to|checksum' "$DIR/get.err" ||
				{ cat "$DIR/get.err"; kill $pid; return 1; }
		fi
	done
	wait $pid || { cat "$DIR/writer"; fail "the writer"; return 1; }
	echo "  $1: $(tail -n 1 "$DIR/writer"), $fetched fetched, $failed failed"
	# in peace it is fetched
	got file && same || return 1
	[ $fetched -gt 0 ] || { [ "$seconds" -lt 60 ] && writer "$1" 60; }
}

test_writers()
{
	local how

	on_tmpfs || return 0
	serve || return 1
	for how in overwrite truncate append punch rename; do
		writer $how || { fail "$how"; return 1; }
	done
	serve_end
}

# A partial file that is damaged is not believed.
test_checked()
{
	local part

	file file 30000000
	serve || return 1
	begin file 4194304 || return 1
	kill_client
	part=$(find "$DIR/dst" -name '.fi_mrrc_get.*')
	printf 'other bytes' |
		dd of="$part" bs=1 seek=1000000 conv=notrunc 2>/dev/null
	got file && same || return 1
	grep -Eq '; [1-9][0-9]* bytes were there' "$DIR/get.out" ||
		{ cat "$DIR/get.out"; fail "not resumed"; return 1; }
	# a longer one than the file
	rm "$DIR/dst/file"
	head -c 40000000 "$DIR/src/file" >"$part"
	head -c 10000000 /dev/zero >>"$part"
	got file && same
}

# Offsets of more than 32 bits: of a sparse file all but the end is there.
test_huge()
{
	local part

	truncate -s 5G "$DIR/src/file"
	echo end >>"$DIR/src/file"
	serve || return 1
	begin file 4096 || return 1
	kill_client
	part=$(find "$DIR/dst" -name '.fi_mrrc_get.*')
	truncate -s 0 "$part" && truncate -s 5360000000 "$part" || return 1
	got file || return 1
	grep -q '; 5360000000 bytes were there' "$DIR/get.out" ||
		{ cat "$DIR/get.out"; fail "not resumed"; return 1; }
	[ "$(stat -c %s "$DIR/dst/file")" -eq 5368709124 ] &&
		[ "$(tail -c 4 "$DIR/dst/file")" = end ]
}

# ---- what ends in the middle -------------------------------------------------

# resumed: a call gets the rest, and not what was there.
resumed()
{
	local size there

	size=$(stat -c %s "$(find "$DIR/dst" -name '.fi_mrrc_get.*')")
	got file && same || return 1
	there=$(sed -nE 's/.*; ([0-9]+) bytes were there.*/\1/p' "$DIR/get.out")
	[ "${there:-0}" -eq "$size" ] ||
		{ cat "$DIR/get.out"; fail "$size bytes were there"; }
}

test_resume_client()
{
	file file 67108864
	serve || return 1
	begin file 4194304 || return 1
	kill_client
	resumed
}

test_resume_server()
{
	local rc

	file file 67108864
	serve || return 1
	begin file 4194304 || return 1
	kill -9 "$SERVER"
	wait "$SERVER" 2>/dev/null
	kill -CONT "$CLIENT"
	wait "$CLIENT"
	rc=$?
	[ $rc -eq 1 ] || { fail "status $rc"; return 1; }
	get_says 'connection' && get_says 'run the same command again' || return 1
	serve && resumed
}

test_interrupted()
{
	local rc

	file file 67108864
	serve || return 1
	begin file || return 1
	got 1 file && get_says 'another process fetches it' || return 1
	kill -TERM "$CLIENT"
	kill -CONT "$CLIENT"
	wait "$CLIENT"
	rc=$?
	[ $rc -eq 130 ] || { fail "status $rc"; return 1; }
	resumed
}

# Files that were reported as fetched are there, and the rest when there is
# room.
test_full_disk()
{
	local name result=0

	[ "$(id -u)" -eq 0 ] ||
		{ echo "  not tried: needs root"; return 0; }
	file a 3000000
	file b 3000000
	file c 3000000
	file d 3000000
	mount -t tmpfs -o size=8m none "$DIR/dst" ||
		{ echo "  not tried: no tmpfs can be mounted"; return 0; }
	serve || result=1
	if [ $result -eq 0 ]; then
		get -v "$ADDRESS:"
		[ $? -eq 1 ] || { fail "does not fail"; result=1; }
		get_says 'No space left' && get_says 'are kept' || result=1
		[ "$(grep -c '^[abcd]$' "$DIR/get.out")" -eq 2 ] ||
			{ cat "$DIR/get.out"; fail "not 2 files"; result=1; }
		while read -r name; do
			cmp "$DIR/src/$name" "$DIR/dst/$name" || result=1
		done < <(grep '^[abcd]$' "$DIR/get.out")
		mount -o remount,size=20m "$DIR/dst"
		got "" && same || result=1
		grep -q 'bytes were there; 2 files were there' "$DIR/get.out" ||
			{ cat "$DIR/get.out"; fail "not resumed"; result=1; }
	fi
	umount "$DIR/dst"
	return $result
}
