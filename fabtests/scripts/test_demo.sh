#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_demo.sh: tests of demo.sh: what it says where something is missing, its
# answers over tcp, with userfaultfd denied, and after Ctrl-C.  The last line
# is "N passed, N failed".

set -u
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
TOP=${here%/*/*}
passed=0 failed=0

WORK=$(mktemp -d) || exit 2
trap 'rm -rf "$WORK"' EXIT
export OFI_MRRC_BUILD=${OFI_MRRC_BUILD:-$TOP/build}
OUT=$WORK/out

# expect WHAT COMMAND...: COMMAND must succeed.
expect()
{
	local what=$1

	shift
	if "$@"; then
		echo "ok: $what"
		passed=$((passed + 1))
	else
		echo "FAIL: $what"
		failed=$((failed + 1))
		tail -n 30 "$OUT" | sed 's/^/  | /'
	fi
}

says()
{
	grep -qE -- "$1" "$OUT"
}

# ends STATUS TEXT COMMAND...: before it builds anything, and says TEXT.
ends()
{
	local want=$1 text=$2 rc

	shift 2
	"$@" >"$OUT" 2>&1 </dev/null
	rc=$?
	[ $rc -eq "$want" ] && says "$text" && ! says '^== building'
}

# soon COMMAND...: it succeeds, after a minute at most
soon()
{
	local tries

	for ((tries = 0; tries < 600; tries++)); do
		"$@" && return 0
		sleep 0.1
	done
	return 1
}

# has_ended PID: a process without a command line has
has_ended()
{
	! grep -qs . "/proc/$1/cmdline"
}

# ended PROGRAM: none is running
ended()
{
	! pgrep -f "$1" >/dev/null
}

# stub NAME: a program of this name, which standard input is the script of.
stub()
{
	mkdir -p "$WORK/stubs"
	{
		echo "#!/bin/bash"
		cat
	} >"$WORK/stubs/$1"
	chmod +x "$WORK/stubs/$1"
}

# ---- what is missing -------------------------------------------------------

lacks_packages()
{
	# no make, says dpkg
	stub dpkg-query <<-'EOT'
	[ "${*: -1}" != make ] || exit 1
	exec /usr/bin/dpkg-query "$@"
	EOT
}

test_missing()
{
	local demo=("$TOP/demo.sh" --tcp-only --quick) stubs

	expect "a wrong option: one line" \
		ends 2 'no option --fast' "$TOP/demo.sh" --fast
	expect "a wrong option: no more" [ "$(wc -l <"$OUT")" -eq 1 ]
	expect "a build folder with a blank" ends 2 'path with a blank' \
		env OFI_MRRC_BUILD="$WORK/a b" "${demo[@]}"
	ln -s "$TOP" "$WORK/the tree"
	expect "a source tree with a blank" ends 2 'path with a blank' \
		"$WORK/the tree/demo.sh" --tcp-only
	expect "a build folder that cannot be made" ends 2 'cannot write in' \
		env OFI_MRRC_BUILD=/proc/build "${demo[@]}"
	# shellcheck disable=SC2016 # for the other shell
	expect "no disk space" ends 2 'needs [0-9]+ MiB in .* are free' \
		unshare -m bash -c 'mkdir "$1" && mount -t tmpfs -o size=4m \
			tmpfs "$1" && OFI_MRRC_BUILD=$1 exec "${@:2}"' \
		bash "$WORK/small" "${demo[@]}"

	lacks_packages
	stubs=$WORK/stubs:$PATH
	expect "without network" ends 2 'apt-get cannot fetch its lists' \
		unshare -n env PATH="$stubs" "${demo[@]}"
	stub apt-get <<-'EOT'
	echo "E: Certificate verification failed: not trusted"
	exit 100
	EOT
	expect "a proxy's certificate: what apt says" \
		ends 2 'Certificate verification failed' \
		env PATH="$stubs" "${demo[@]}"
	expect "a proxy's certificate: the settings" \
		says 'Acquire::https::CaInfo'
	stub id <<<'echo 1000'
	stub sudo <<<'exit 1'
	expect "neither root nor sudo" \
		ends 2 'As root: apt-get update && apt-get install .*make' \
		env PATH="$stubs" "${demo[@]}"
	rm -rf "$WORK/stubs"
}

# ---- its answers -----------------------------------------------------------

# Of data lines of all kinds; demo.sh prints such for verbs.
test_summary()
{
	local picture=$WORK/picture.svg parts=$TOP/util/sh/demo

	cat >"$WORK/data" <<-'EOT'
	race mremap libfabric 99 100 1
	race mremap libfabric-uffd hangs 12 -
	race mremap ofi_mrrc 0 100 100
	monitor uffd+hooks 8 0
	load 0.50 2
	cost 4096 59.00 18.00 15 15
	cost 65536 100.00 20.00 12 15
	save again 4096 448 200.00 1.00 448 0 0 110.00 2.00 16 432 0 100.00 3.00 16 420 12 7 7
	save malloc 65536 224 50.00 9.00 224 0 0 50.00 9.00 1 223 0 51.00 9.00 1 223 0 4 7
	save given 64 448 40.00 1.00 1 447 0 - - - - - 41.50 1.00 1 0 0 0 7
	write cold 4096 typical 1 2 3 4 5 6 7 8 9 10 11 900
	write cold 4096 crw 1 2 3 4 - - 7 8 9 10 11 600
	sooner 4096 41 41
	start 8000.00 9600.00 0 5
	load 2.50 2
	EOT
	awk -v verbs=1 -v monitor=uffd+hooks \
		-f "$parts/names.awk" -f "$parts/summary.awk" "$WORK/data" >"$OUT"
	expect "stale data of each cache" says 'own cache 99 of 100;'
	expect "a cache that hangs" says 'hung in 1 of 1 cases'
	expect "stale data of ours" says 'ofi_mrrc 0 of 100\.'
	expect "registrations avoided" says '655 of 672 .* \(97 %\)'
	expect "at what they cost" \
		says "At this device's cost of each: 60.0 of 61.4 ms \\(98 %\\)"
	expect "libfabric's cache, too" \
		says "libfabric's cache: 655 avoided \\(97 %\\), 60.0 ms"
	expect "caches that are equal" says 'both are equal in every row'
	expect "the load" says "load was 0.50 to 2.50, with 2 processors. That"
	expect "time that is saved, where turns agree" \
		says 'Processor time of a write: 50 % saved in 1 of 2 rows'
	expect "elapsed time, which is never sure" says 'all writes: ~3\.4 ms'
	expect "a row that is clear" says 'ofi_mrrc +\|#{15} 0\.50$'
	expect "a row that is not is hatched" \
		says 'ofi_mrrc +\|/{30}\+ 1\.02 ~$'
	expect "a conditional write" says 'after 600 us, 900 us without'
	expect "what it costs" says 'cannot help\?  1\.50 us '
	expect "of what" says ': 41\.50 us with ofi_mrrc, 40\.00 us without'
	expect "what a start costs" says 'connect: 9\.6 ms, 8\.0 without'
	sed -i 's/^sooner 4096 41/sooner 4096 30/; s/^\(start.*\) 0 5/\1 2 5/; s/\(^cost .*\) 12 15/\1 8 15/' \
		"$WORK/data"
	awk -v verbs=1 -f "$parts/names.awk" -f "$parts/summary.awk" \
		"$WORK/data" >"$OUT"
	expect "a conditional write whose turns disagree" \
		says 'after ~600 us, ~900 us without'
	expect "a registration whose rounds disagree" \
		says 'One costs ~59\.0 us, and ~18\.0 us to undo'
	expect "all that is computed of it" says 'of each: ~60\.0 of'
	expect "a start whose rounds disagree" \
		says 'connect: ~9\.6 ms, ~8\.0 without'
	awk -v verbs=1 -v exact=1 -f "$parts/names.awk" \
		-f "$parts/summary.awk" "$WORK/data" >"$OUT"
	expect "instructions, where the clock counts them" \
		says 'Instructions of a write: 50 % saved'
	expect "no other time then" eval '! says "Elapsed|Processor"'
	sed -i 's/41.50/39.50/' "$WORK/data"
	awk -f "$parts/names.awk" -f "$parts/summary.awk" "$WORK/data" >"$OUT"
	expect "no cost that is less than nothing" \
		says 'cannot help\?  Nothing to be seen'
	sed -i 's/ 2.00 16 432 / 2.00 238 210 /; s/\(given.*\) 0 7$/\1 3 7/
		s/ 100.00 3.00 16 / 200.40 3.00 16 /' "$WORK/data"
	awk -v verbs=1 -f "$parts/names.awk" -f "$parts/summary.awk" "$WORK/data" >"$OUT"
	expect "caches that are not equal" says 'equal in 1 of 2 rows, not in$'
	expect "no saving that is -0" says 'of a write: 0 % saved in 1 of 2 rows'
	expect "where" says '^ +used again 4K \(47 %, ofi_mrrc 96 %\)\.$'
	expect "a cost whose turns disagree" says 'cannot help\?  Turns disagree'
	awk -f "$parts/names.awk" -f "$parts/picture.awk" "$WORK/data" >"$picture"
	cp "$picture" "$OUT"
	expect "the picture is XML" python3 -c \
		'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' \
		"$picture"
	expect "the picture has the numbers" says '99 of 100'
	expect "the picture marks a row that is not clear" says '51\.0 us ~<'
	expect "the picture has the start" says '9\.60 ms ~<'
	expect "by stripes, too" says 'fill="url\(#stripes3\)"'
	expect "it marks no other" says '>200 us<'
}

test_tcp()
{
	"$TOP/demo.sh" --tcp-only --quick >"$OUT" 2>&1 </dev/null
	expect "over tcp: status 0" [ $? -eq 0 ]
	expect "the monitor is named" says 'watches memory by uffd'
	expect "rows" says 'fi_mr_alloc +256K'
	expect "is it right?" says 'Is it right\? '
	expect "what does it save?" says '[1-9][0-9]* of [0-9]+ registrations'
	expect "what does it cost?" says 'us with ofi_mrrc, ~?[0-9.]+ us without'
	expect "what does a start cost?" says 'To start and to connect: ~?[0-9]'
	expect "a picture" grep -q '</svg>' "$OFI_MRRC_BUILD/demo.svg"
	make -s -C "$OFI_MRRC_BUILD/demo" fabtests/deny_uffd >"$OUT" 2>&1
	"$OFI_MRRC_BUILD/demo/fabtests/deny_uffd" "$TOP/demo.sh" --tcp-only \
		--quick >"$OUT" 2>&1 </dev/null
	expect "userfaultfd denied: status 2" [ $? -eq 2 ]
	expect "userfaultfd denied: no cache" says 'NO CACHE IS AT WORK'
	expect "userfaultfd denied: also in the summary" \
		says 'No cache was at work'
}

# ---- Ctrl-C ----------------------------------------------------------------

# interrupt TEXT BUILD: ends demo.sh by Ctrl-C when it has said TEXT.
interrupt()
{
	local text=$1 build=$2 pid i rc

	# a process group, as of a terminal's command, also where this script
	# ignores SIGINT as a shell's command in the background does; with so
	# many turns that the other rows take far longer than a look at the
	# output, also where others have the processors
	set -m
	env --default-signal=INT OFI_MRRC_BUILD="$build" OFI_MRRC_DEMO_TURNS=99 "$TOP/demo.sh" \
		--tcp-only >"$OUT" 2>&1 </dev/null &
	pid=$!
	set +m
	for ((i = 0; i < 3000; i++)); do
		says "$text" && break
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	kill -INT -- -$pid
	wait $pid
	rc=$?
	[ $rc -eq 130 ] || return 1
	soon ended "$build/demo/fabtests" ||
		{ echo "programs are left" >>"$OUT"; return 1; }
}

# A program that SIGTERM does not end is ended, and leaves nothing.
stuck()
{
	# shellcheck disable=SC2016 # for the other shell
	bash -c 'TOP=$1
		. "$TOP/util/sh/common.sh"
		set -m
		(trap "" TERM; echo $BASHPID >"$2"; sleep 1000; :) &
		CHILD=$!
		until [ -s "$2" ]; do sleep 0.1; done
		end_child' - "$TOP" "$OUT" </dev/null
	soon has_ended "$(<"$OUT")"
}

# Stages that run side by side end with test.sh, and what they run with them.
stages()
{
	local pid

	# shellcheck disable=SC2016 # for the other shell
	bash -c 'TOP=$1
		. "$TOP/util/sh/common.sh"
		LOGS=$2
		. "$TOP/util/sh/count.sh"
		. "$TOP/util/sh/side.sh"
		stage_long()
		{
			logged long "$LOGS/log" \
				bash -c "echo \$\$ >$LOGS/pid; sleep 1000; :"
		}
		side_by_side 1 long' - "$TOP" "$WORK" >"$OUT" 2>&1 </dev/null &
	pid=$!
	until [ -s "$WORK/pid" ]; do
		sleep 0.1
	done
	kill -TERM $pid
	wait $pid
	[ $? -eq 143 ] && soon has_ended "$(<"$WORK/pid")"
}

test_interrupt()
{
	local new=$WORK/build

	expect "what SIGTERM does not end" stuck
	expect "what stages run, when test.sh ends" stages
	mkdir "$new"
	expect "Ctrl-C before configure" interrupt '== building' "$new"
	expect "Ctrl-C in make" interrupt 'configure demo: done' "$new"
	expect "nothing measured, no summary" says '== building'
	expect "Ctrl-C before the first row" \
		interrupt 'watches memory by' "$OFI_MRRC_BUILD"
	expect "Ctrl-C after a row" \
		interrupt 'used again +4K' "$OFI_MRRC_BUILD"
	expect "a summary of what was measured" \
		says '^== summary \(interrupted'
	expect "registrations of these rows" \
		says '[1-9][0-9]* of [0-9]+ registrations'
	expect "what was not measured" says 'cannot help\?  Not measured'
	expect "a picture of what was measured" \
		grep -q '</svg>' "$OFI_MRRC_BUILD/demo.svg"
}

test_missing
test_summary
test_tcp
test_interrupt
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
