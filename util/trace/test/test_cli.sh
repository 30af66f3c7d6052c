#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_cli.sh: fi_mrrc_trace as people call it: what it prints, filters and
# converts, what it refuses and how. Part of make check.

TRACE=${TRACE:-util/fi_mrrc_trace}
SIM=${SIM:-util/fi_mrrc_sim}
TOOL=$TRACE
# shellcheck source=util/sh/cli.sh
. "${srcdir:-$(dirname -- "$0")/../../..}/util/sh/cli.sh"

# keeps COUNT ARGUMENT...: so many requests of a.csv
keeps()
{
	local want=$1

	shift
	run 0 -f json "$@" "$DIR/a.csv"
	[ "$(wc -l <"$DIR/out")" -eq "$want" ] ||
		fail "$*: not $want requests"
}

# same FILE FILE: but for what only one of them can hold
same()
{
	cmp -s "$1" "$2" || {
		diff "$1" "$2" >"$DIR/out"
		fail "$1 is not $2"
	}
}

cat >"$DIR/a.csv" <<-'EOT'
time_us,addr,len,proc,access,result,begin_ns,end_ns,thread,op,peer,cost_ns,site,previous
1,0x10000,4096,0,r,miss,1100,9000,7,write,ep1,700,0x400,0x0
2,0x10000,4096,0,r,hit,2200,9001,7,write,ep1,0,0x404,0x400
3,0x10800,8192,0,w,miss,3300,0,8,recv,,900,0x500,0x0
4,0x90000,100,1,w+r,core,4400,4500,7,reg,,50,0x600,0x404
5,0x0,18446744073709551615,1,w,failed,5500,0,7,read,3,9,0x600,0x600
1000006,0x10000,4096,0,r,hit,1000006600,0,7,tsend,3,0,0x600,0x600
EOT

says 'Usage: ' --help
says 'FI_OFI_MRRC_TRACE=' --help
says '^  tsend +a tagged message' --list
says '^ +0\.000 +7\.900 +0 +7 write +ep1 +0x10000 +4096 r +miss +700 ' \
	"$DIR/a.csv"

# histograms and counts
says '^6 requests in 1\.000006 s, .*50\.0 % hits' -s "$DIR/a.csv"
says '^write +1 +1 +0 +0 +0$' -s "$DIR/a.csv"
says '^reg +0 +0 +1 +0 +0$' -s "$DIR/a.csv"
says '^  first time +3 ' -s "$DIR/a.csv"
says '^ +0 +1 ' -s "$DIR/a.csv"
says '^  from    2 +1 ' -s "$DIR/a.csv"
says '^  up to 50 % +1 ' -s "$DIR/a.csv"
says '^  all +2 ' -s "$DIR/a.csv"
says '"first_time": 3' -s -f json "$DIR/a.csv"

# filters
keeps 6
keeps 2 --op=write
keeps 3 --op=write,reg
keeps 2 --result=hit
keeps 2 --result=core,failed
keeps 1 --thread=8
keeps 6 --thread=7,8
keeps 2 --peer=3
keeps 2 --peer=ep1
keeps 2 --proc=1
keeps 1 --size=100
keeps 4 --size=4K-8K
keeps 2 --size=8K-
keeps 1 --size=-4095
keeps 5 --time=0-0.9
keeps 1 --time=1-
keeps 0 --op=trecv
# to people it says why there is nothing
[ ! -s "$DIR/err" ] || fail "has words for programs"
run 0 --op=trecv "$DIR/a.csv"
grep -q "none of the 6 requests passes the filters" "$DIR/err" ||
	fail "does not say why nothing is shown"
run 0 "$DIR/a.csv"
[ ! -s "$DIR/err" ] || fail "says why nothing is shown, and it is not so"
says '^ofi_mrrc [0-9]' --version

# there and back: all is there, and it is the same
run 0 -f csv -o "$DIR/b.csv" "$DIR/a.csv"
same "$DIR/a.csv" "$DIR/b.csv"
run 0 -f raw -o "$DIR/a.trace" "$DIR/a.csv"
run 0 -f csv -o "$DIR/c.csv" "$DIR/a.trace"
same "$DIR/a.csv" "$DIR/c.csv"
files="a.csv a.trace"
if command -v xz >/dev/null; then
	files="$files a.trace.xz"
	xz -k "$DIR/a.trace"
	run 0 -f csv -o "$DIR/c.csv" "$DIR/a.trace.xz"
	same "$DIR/a.csv" "$DIR/c.csv"
fi
"$TRACE" -f csv - <"$DIR/a.trace" >"$DIR/c.csv"
same "$DIR/a.csv" "$DIR/c.csv"
# many threads take no longer than many requests of one
awk -v OFS=, 'NR == 1 { print; next }
	NR == 2 { for (i = 1; i <= 200000; i++) { $1 = i; $7 = 1000 * i
		$8 = 0; $9 = i; print } }' FS=, "$DIR/a.csv" >"$DIR/many.csv"
run 0 -f raw -o "$DIR/many.trace" "$DIR/many.csv"
(ulimit -t 6; run 0 -s "$DIR/many.trace"; exit $failed) || failed=1
rm "$DIR/many.csv" "$DIR/many.trace"
# in two parts, put together
run 0 -f raw -o "$DIR/w.trace" --op=write "$DIR/a.csv"
run 0 -f raw -o "$DIR/r.trace" --op=recv "$DIR/a.csv"
run 0 -f csv "$DIR/r.trace" "$DIR/w.trace"
cut -d, -f 4,10 "$DIR/out" | tail -n +2 | tr '\n' ' ' >"$DIR/procs"
[ "$(cat "$DIR/procs")" = "2,write 2,write 0,recv " ] ||
	fail "two files: $(cat "$DIR/procs")"

# without requests, too
run 0 -f csv -o "$DIR/none.csv" --op=trecv "$DIR/a.csv"
run 0 -f csv -o "$DIR/c.csv" "$DIR/none.csv"
same "$DIR/none.csv" "$DIR/c.csv"
run 0 "$DIR/none.csv"
grep -q ": no requests$" "$DIR/err" || fail "does not say why nothing is shown"
: >"$DIR/empty"
refuses 1 "no requests in it" "$DIR/empty"

# two programs ran side by side, as they do in the CSV file of both
printf 'time_us,addr,len\n1,0x1000,4096\n1000001,0x1000,4096\n' >"$DIR/1.csv"
run 0 -f raw -o "$DIR/two.trace" "$DIR/1.csv" "$DIR/1.csv"
run 0 -f csv -o "$DIR/two.csv" "$DIR/1.csv" "$DIR/1.csv"
# of one PID, in two containers
run 0 -f raw -o "$DIR/1.trace" "$DIR/1.csv"
printf '\7' | dd of="$DIR/1.trace" bs=1 seek=24 conv=notrunc 2>/dev/null
run 0 -f raw -o "$DIR/pid.trace" "$DIR/1.trace" "$DIR/1.trace"
for file in two.csv two.trace pid.trace; do
	"$SIM" -q --gain "$DIR/$file" >"$DIR/out" 2>"$DIR/err"
	grep -q ': 4 requests of 2 processes in 1\.000 s' "$DIR/out" ||
		fail "fi_mrrc_sim --gain $file: not two programs"
done

# the simulator reads all of these, and leaves out what no cache saw
for file in $files; do
	"$SIM" -q -f csv -p lru -s 1M "$DIR/$file" >"$DIR/out" 2>"$DIR/err" ||
		fail "fi_mrrc_sim $file"
	[ "$(tail -n 1 "$DIR/out" | cut -d, -f 8,9)" = "4,2" ] ||
		fail "fi_mrrc_sim $file: not 4 requests, 2 hits"
done

# damage
head -c 5000 "$DIR/a.trace" >"$DIR/cut.trace"
says 'tsend|write' "$DIR/cut.trace"
head -c 4000 "$DIR/a.trace" >"$DIR/short.trace"
refuses 1 "short.trace: truncated header" "$DIR/short.trace"
{ printf mrrctrac; tail -c +9 "$DIR/a.trace" | tr '\001' '\002'; } \
	>"$DIR/new.trace"
refuses 1 "another version" "$DIR/new.trace"
# the operation of the second record
{ head -c 4222 "$DIR/a.trace"; printf '\377'; tail -c +4224 "$DIR/a.trace"; } \
	>"$DIR/op.trace"
refuses 1 "op.trace: part 1: unknown operation" "$DIR/op.trace"

# The name of the program in a hostile recording clears the terminal.
cp "$DIR/a.trace" "$DIR/clears.trace"
printf '\033[2Jclears' | dd of="$DIR/clears.trace" bs=1 seek=64 \
	conv=notrunc 2>/dev/null
says '^proc 0: \?\[2Jclears ' -s "$DIR/clears.trace"

refuses 2 "a TRACE is missing"
refuses 2 "'jump' is none" --op=jump "$DIR/a.csv"
refuses 2 "'luck' is none" --result=luck "$DIR/a.csv"
refuses 2 "no number" --thread=x "$DIR/a.csv"
refuses 2 "no number" --peer=ep "$DIR/a.csv"
refuses 2 "no number of bytes" --size=1X "$DIR/a.csv"
refuses 2 "is more than" --size=2K-1K "$DIR/a.csv"
refuses 2 "a number is missing" --time=- "$DIR/a.csv"
refuses 2 "no number of seconds" --time=soon "$DIR/a.csv"
refuses 2 "not text, csv, json or raw" -f xml "$DIR/a.csv"
refuses 2 "text or json" -s -f csv "$DIR/a.csv"
refuses 1 "No such file" "$DIR/none"
refuses 1 "none/x: No such file" -f csv -o "$DIR/none/x" "$DIR/a.csv"
printf 'time_us,addr,len,op\n1,0,4096,jump\n' >"$DIR/bad.csv"
# what the simulator refuses is no trace, and both say the same of it
both_refuse()
{
	local line=$1 text=$2

	printf 'time_us,addr,len,result\n1,0x1000,64,miss\n%s\n' "$line" \
		>"$DIR/same.csv"
	refuses 1 "same.csv:3: $text" "$DIR/same.csv"
	cp "$DIR/err" "$DIR/said"
	"$SIM" -q "$DIR/same.csv" >"$DIR/out" 2>"$DIR/err"
	[ "$(sed 's/^[^:]*://' "$DIR/err")" = \
	  "$(sed 's/^[^:]*://' "$DIR/said")" ] ||
		fail "fi_mrrc_sim does not say of $line: $text"
}
both_refuse 2,0x1000,0,hit "len of 0"
both_refuse 2,0x1000,0,miss "len of 0"
both_refuse 0,0x1000,64,hit "time runs backwards: 0 after 1"
# a core may register what no process has
printf 'time_us,addr,len,result\n1,0x1000,%s,miss\n' 18446744073709551615 \
	>"$DIR/same.csv"
says '"requests": 1' -s -f json "$DIR/same.csv"
# where the cache had no part anything may have been asked for
printf 'time_us,addr,len,result\n1,0x1000,64,miss\n2,0,0,failed\n' \
	>"$DIR/same.csv"
says '"requests": 2' -s -f json "$DIR/same.csv"
"$SIM" -q "$DIR/same.csv" >"$DIR/out" 2>"$DIR/err" ||
	fail "fi_mrrc_sim refuses what failed"

echo before >"$DIR/kept"
refuses 1 "bad.csv:2: op 'jump': not known" -o "$DIR/kept" "$DIR/bad.csv"
[ "$(cat "$DIR/kept")" = before ] || fail "what was there is gone"
# more than files may be long: a signal
(ulimit -f 0; exec "$TRACE" -f csv -o "$DIR/kept" "$DIR/a.csv") \
	>/dev/null 2>&1 && fail "a file that cannot be written is no success"
[ "$(cat "$DIR/kept")" = before ] || fail "what was there is gone"
[ -z "$(find "$DIR" -name '*.tmp')" ] || fail "a temporary file is left"

# a file that is replaced keeps its mode, and a new one has the user's
chmod 640 "$DIR/kept"
run 0 -f csv -o "$DIR/kept" "$DIR/a.csv"
(umask 022; run 0 -f csv -o "$DIR/new" "$DIR/a.csv"; exit $failed) || failed=1
[ "$(stat -c %a "$DIR/kept" "$DIR/new" | xargs)" = "640 644" ] ||
	fail "the mode of a file is not kept"

# what is in a file to which the shell led standard output stays
for name in - /dev/stdout /dev/fd/1 /proc/self/fd/1; do
	echo before >"$DIR/log"
	"$TRACE" -f csv -o $name "$DIR/a.csv" >>"$DIR/log" 2>"$DIR/err"
	{ echo before; cat "$DIR/a.csv"; } >"$DIR/c.csv"
	same "$DIR/log" "$DIR/c.csv"
done

# what leads to a pipe is no file, and stays
ln -s /proc/self/fd/1 "$DIR/link"
"$TRACE" -f csv -o "$DIR/link" "$DIR/a.csv" 2>"$DIR/err" | cat >"$DIR/c.csv"
same "$DIR/a.csv" "$DIR/c.csv"
[ -L "$DIR/link" ] || fail "a link to a pipe was replaced"

# a full disk is an error
if [ -w /dev/full ]; then
	for format in table csv json raw; do
		"$TRACE" -f $format "$DIR/a.csv" >/dev/full 2>"$DIR/err" &&
			fail "$format that could not be written is no success"
	done
	for option in --list --help; do
		"$TRACE" $option >/dev/full 2>"$DIR/err" &&
			fail "$option that could not be written is no success"
	done
fi

[ $failed -eq 0 ] && echo "PASS: fi_mrrc_trace's command line"
exit $failed
