# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Adds up the results of test.sh's tests: its own checks, make check, and
# scripts that print a summary. Sourced, beside common.sh, with STAGE set to
# what is running.

PASSED=0 FAILED=0 SKIPPED=0
# A line for each failure, with SEP between its fields: STAGE:PART:TEST as test.sh
# runs it alone (empty: it cannot), a variable with its seed, the load, and what
# failed.
FAILURES=()
readonly SEP=$'\037'

# count PASSED FAILED SKIPPED: of one run.  A test that runs alone counts once,
# however often it is in its program's loop.
count()
{
	local p=$1 f=$2 s=$3

	if [ -n "$TEST" ] && [ $((p + f)) -gt 0 ]; then
		f=$((f > 0))
		p=$((1 - f))
	fi
	PASSED=$((PASSED + p))
	FAILED=$((FAILED + f))
	SKIPPED=$((SKIPPED + s))
	say "   $p passed, $f failed, $s skipped"
}

# failure TEST SEED WHAT: notes a failure that has been counted.
failure()
{
	local load

	load=$(cut -d' ' -f1 /proc/loadavg)
	FAILURES+=("$1$SEP$2$SEP$load$SEP$STAGE: $3")
}

# seed_of TEST LOG: what sets the seed that a test printed last, if it has one.
seed_of()
{
	grep -aoE "^$1 [0-9]+: MRRC_TEST_SEED=[0-9]+" "$2" | tail -n 1 |
		sed 's/.* //'
}

# Counts one failure for tests that could not start.
fail()
{
	say "   FAIL: $*"
	failure '' '' "$*"
	FAILED=$((FAILED + 1))
}

# Is the part of this stage to be run?
wanted()
{
	[ -z "$PART" ] || [ "$PART" = "$1" ]
}

check()
{
	local what=$1

	shift
	wanted "$what" || return 0
	if "$@"; then
		PASSED=$((PASSED + 1))
		say "   ok: $what"
	else
		fail "$what"
	fi
}

# failures LOG: a line for each test that failed: its name (empty where it
# cannot run alone), SEP, and the first line that says why. Their output, which
# may be far from the end of the log, goes to standard error.
failures()
{
	grep -aA3 '^FAIL' "$1" | head -n 40 | sed 's/^/   | /' >&2
	awk -v sep="$SEP" '
	function tell() {
		if (failed)
			print name sep substr(what, 1, 300)
	}
	/^FAIL/ {
		tell()
		failed = 1
		told = 0
		what = name = $0
		sub(/^FAIL:? +/, "", what)
		gsub(/ +/, " ", what)
		# "FAIL NAME", "FAIL NAME: WHY", "FAIL NAME  9 s  WHY"
		if (!sub(/^FAIL +/, "", name))
			name = ""
		sub(/( +[0-9]+ s .*|:.*)$/, "", name)
	}
	failed && !told && sub(/^ +\| .*FAIL: /, "") {
		what = what " (" $0 ")"
		told = 1
	}
	END { tell() }' "$1"
}

# count_summary STATUS LOG WHAT PART: adds a script's own last line.
count_summary()
{
	local rc=$1 log=$2 what=$3 part=$4 line p f s name why

	line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)
	if [[ ! $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)? ]]; then
		fail "$what ended without a result (status $rc)"
		return
	fi
	p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]} s=${BASH_REMATCH[4]:-0}
	count "$p" "$f" "$s"
	[ "$f" -eq 0 ] || while IFS=$SEP read -r name why; do
		failure "${name:+$STAGE:$part:$name}" \
			"$(seed_of "$name" "$log")" "$what: $why"
	done < <(failures "$log")
	[ "$rc" -eq 0 ] || [ "$f" -gt 0 ] ||
		fail "$what: status $rc though nothing failed"
	[ $((p + f)) -gt 0 ] || fail "$what: ran nothing"
}

# reasons LOG: why a unit test's program failed, on one line: its first failed
# checks, and what sanitizers found, with the test that the stacks name. Else it
# may have died: its last words.
reasons()
{
	awk '
	function tell(what) {
		if (++told <= 3)
			printf "%s%s", (told > 1 ? "; " : ""),
				substr(what, 1, 200)
	}
	/:[EF]:/ || /: runtime error: / { tell($0) }
	# Check has called the function before it: NAME_fn
	/ tcase_run_tfun/ && !test && match(before, /[A-Za-z0-9_]+_fn /) {
		test = substr(before, RSTART, RLENGTH - 4)
	}
	sub(/^SUMMARY: /, "") {
		tell($0 (test ? " (test " test ")" : ""))
		test = ""
	}
	NF { last = before; before = $0 }
	END {
		if (!told)
			tell("ends with: " last " | " before)
	}' "$1"
}

# reports LOG: the log's end, and before it what a sanitizer reported first.
reports()
{
	sed -n '/^WARNING: .*Sanitizer/,/^SUMMARY/p; /^==.*==ERROR/,/^SUMMARY/p' \
		"$1" | head -n 40
	tail -n 30 "$1"
}

# sanitizer LOG: what a sanitizer said first. A child that it ended tells its
# parent's check a status alone.
sanitizer()
{
	grep -am 1 'Sanitizer: ' "$1" | cut -c 1-200
}

# checks_failed PROGRAM LOG: notes the checks that failed, each with the seed
# that it printed; or the program, if it failed in another way.
checks_failed()
{
	local program=$1 log=$2 test any=no said

	said=$(sanitizer "$log")

	while read -r test; do
		any=yes
		failure "$STAGE:$program:$test" "$(seed_of "$test" "$log")" \
			"${program##*/}: $(grep -m 1 ":[EF]:[^:]*:$test:" "$log" |
				cut -c 1-300)${said:+; $said}"
	done < <(sed -nE 's/^[^ ]*:[0-9]+:[EF]:[^:]*:([^:]*):.*/\1/p' "$log" |
		sort -u | head -n 5)
	[ $any = yes ] || failure "$STAGE:$program" '' \
		"${program##*/}: $(reasons "$log")"
}

# count_check DIR STATUS: adds the results of `make check`; a program that
# uses Check counts as its checks.
count_check()
{
	local dir=$1 rc=$2 trs result log program p=0 f=0 s=0 n m

	while read -r trs; do
		result=$(sed -n 's/^:global-test-result: //p' "$trs")
		log=${trs%.trs}.log
		n=0 m=0
		while read -r checks failures errors; do
			n=$((n + checks))
			m=$((m + failures + errors))
		done < <(sed -nE 's/.*Checks: ([0-9]+), Failures: ([0-9]+), Errors: ([0-9]+).*/\1 \2 \3/p' "$log")
		case $result in
		PASS)
			[ $n -gt 0 ] || n=1
			;;
		SKIP)
			s=$((s + 1))
			continue
			;;
		*)
			# it may have died after its last check
			[ $m -gt 0 ] || { n=$((n + 1)); m=1; }
			program=${trs#"$dir"/}
			program=${program%.trs}
			checks_failed "$program" "$log"
			reports "$log" | sed 's/^/   | /'
			;;
		esac
		p=$((p + n - m))
		f=$((f + m))
	done < <(find "$dir" -name '*.trs' -newer "$dir/check-start")
	count $p $f $s
	[ $((p + f)) -gt 0 ] || fail "make check ran nothing"
	[ "$rc" -eq 0 ] || [ $f -gt 0 ] || fail "make check: status $rc"
}

# check_in NAME [MAKE-ARGUMENT...]: make check of a build.  With TESTS=... what
# these need is made, and no more.
check_in()
{
	local dir=$BUILD/$1 name=$1 what=check i=0

	shift
	if [ -n "$PART" ]; then
		[[ $PART == */* ]] || return 0
		set -- "$@" "TESTS=$PART"
	fi
	[[ $* != *TESTS=* ]] || what=check-TESTS
	while again $((i++)); do
		locked "$name" run_check "$dir" "$what" "$@"
	done
}

run_check()
{
	local dir=$1 rc

	shift
	: >"$dir/check-start"
	# for the file system's clock
	sleep 0.1
	logged "make check ($name)" "$LOGS/check-$STAGE.log" \
		"${IN[@]}" make -C "$dir" -j "$JOBS" -k CHECK_TREE=: "$@"
	rc=$?
	count_check "$dir" $rc
}

# script WHAT PART COMMAND...: adds what a script of tests counts itself.
script()
{
	local what=$1 part=$2 log=$LOGS/$STAGE-$2.log rc i=0

	shift 2
	wanted "$part" || return 0
	while again $((i++)); do
		logged "$what" "$log" "$@"
		rc=$?
		count_summary $rc "$log" "$what" "$part"
	done
}
