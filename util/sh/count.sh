# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Adds up the results of test.sh's tests: its own checks, make check, and
# scripts that print a summary. Sourced, beside common.sh, with STAGE set to
# what is running.

PASSED=0 FAILED=0 SKIPPED=0
REASONS=()

count()
{
	PASSED=$((PASSED + $1))
	FAILED=$((FAILED + $2))
	SKIPPED=$((SKIPPED + $3))
	say "   $1 passed, $2 failed, $3 skipped"
}

# Counts one failure for tests that could not start.
fail()
{
	say "   FAIL: $*"
	REASONS+=("$STAGE: $*")
	FAILED=$((FAILED + 1))
}

check()
{
	local what=$1

	shift
	if "$@"; then
		PASSED=$((PASSED + 1))
		say "   ok: $what"
	else
		fail "$what"
	fi
}

# failures LOG: prints what failed, each with the first line that says why.
# Their output, which may be far from the end of the log, goes to standard error.
failures()
{
	grep -aA3 '^FAIL' "$1" | head -n 40 | sed 's/^/   | /' >&2
	awk '
	sub(/^FAIL:? +/, "") {
		gsub(/ +/, " ")
		printf "%s %s", failed++ ? ";" : "", $0
		told = 0
	}
	failed && !told && sub(/^ +\| .*FAIL: /, "") {
		printf " (%s)", $0
		told = 1
	}' "$1" | cut -c -600
}

# count_summary STATUS LOG WHAT: adds a script's own last line.
count_summary()
{
	local rc=$1 log=$2 what=$3 line p f s

	line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)
	if [[ ! $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)? ]]; then
		fail "$what ended without a result (status $rc)"
		return
	fi
	p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]} s=${BASH_REMATCH[4]:-0}
	count "$p" "$f" "$s"
	[ "$f" -eq 0 ] ||
		REASONS+=("$STAGE: $what: $f failed:$(failures "$log")")
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

# count_check DIR STATUS: adds the results of `make check`; a program that
# uses Check counts as its checks.
count_check()
{
	local dir=$1 rc=$2 trs result log p=0 f=0 s=0 n m

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
			REASONS+=("$STAGE: $(basename "${trs%.trs}"): $result $(
				reasons "$log")")
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
	local dir=$BUILD/$1 name=$1 what=check

	shift
	[[ $* != *TESTS=* ]] || what=check-TESTS
	locked "$name" run_check "$dir" "$what" "$@"
}

run_check()
{
	local dir=$1 rc

	shift
	: >"$dir/check-start"
	# for the file system's clock
	sleep 0.1
	logged "make check ($name)" "$LOGS/check-$STAGE.log" \
		"${IN[@]}" make -C "$dir" -j "$JOBS" -k "$@"
	rc=$?
	count_check "$dir" $rc
}

# script WHAT LOG COMMAND...: adds what a script of tests counts itself.
script()
{
	local what=$1 log=$LOGS/$STAGE-$2.log rc

	shift 2
	logged "$what" "$log" "$@"
	rc=$?
	count_summary $rc "$log" "$what"
}

# Ends the script with the sums.
verdict()
{
	say
	say "All of it: $(minutes $SECONDS)"
	[ ${#REASONS[@]} -eq 0 ] || printf 'FAIL %s\n' "${REASONS[@]}"
	say "$PASSED passed, $FAILED failed, $SKIPPED skipped"
	[ "$FAILED" -eq 0 ]
}
