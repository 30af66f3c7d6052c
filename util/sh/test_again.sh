#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_again.sh: tests of what test.sh says of a test that failed: whether it
# fails each time, its seed, and the command that runs it again; and of a path in
# which it cannot build.  Part of make check; the stage that fails here is made up.

set -u
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
DIR=$(mktemp -d "${TMPDIR:-/tmp}/test_again.XXXXXX") || exit 2
trap 'rm -rf "$DIR"' EXIT
export OFI_MRRC_BUILD=$DIR/build DIR
export FT_PERCENT=20
readonly FEW_PERCENT=20
# shellcheck source=util/sh/common.sh
. "$TOP/util/sh/common.sh"
# shellcheck source=util/sh/count.sh
. "$TOP/util/sh/count.sh"
# shellcheck source=util/sh/side.sh
. "$TOP/util/sh/side.sh"
# shellcheck source=util/sh/again.sh
. "$TOP/util/sh/again.sh"
# shellcheck disable=SC2034 # again() reads them
TIMES=1 AGAIN_LIMIT=60
mkdir -p "$LOGS"

# A script of tests, of which one fails each time, and one every third time.
cat >"$DIR/tests.sh" <<'END'
. "$1/fabtests/scripts/testlib.sh"
test_good() { :; }
test_always() { false; }
test_third()
{
	echo x >>"$DIR/runs"
	echo "third 0: MRRC_TEST_SEED=$(wc -l <"$DIR/runs")"
	[ $(($(wc -l <"$DIR/runs") % 3)) -ne 1 ]
}
run_tests good always "third of three"
END

# shellcheck disable=SC2317 # side_by_side calls it by its name
stage_fake()
{
	script "some tests" some bash "$DIR/tests.sh" "$TOP"
	check "what cannot run alone" false
}

failed=0
says()
{
	grep -qE -- "$1" "$DIR/out" || {
		echo "FAIL: does not say: $1"
		failed=$((failed + 1))
	}
}

(side_by_side 1 fake; verdict) >"$DIR/out" 2>&1 &&
	echo "FAIL: failures make no status" && failed=1
says '^FAIL fake: some tests: always$'
says '^   always \(6 of 6\); load [0-9.]+; again: \./test\.sh -n 5 fake:some:always$'
says '^   2 of 6: not deterministic; .*: \./test\.sh -n 5 fake:some:third\\ of\\ three$'
says '^FAIL fake: what cannot run alone$'
says '^1 passed, 3 failed, 0 skipped$'
grep -qsx "FAIL third of three" "$LOGS.failed/fake-some.log" ||
	{ echo "FAIL: the first run's log is lost"; failed=1; }

# FAIL PROGRAM:TEST of make check, with its seed
STAGE=fake
printf '%s\n' 'grow 3: MRRC_TEST_SEED=7' 'grow 4: MRRC_TEST_SEED=8' \
	'shrink 0: MRRC_TEST_SEED=9' "x.c:9:F:case:grow:0: no room" \
	>"$DIR/log"
FAILURES=()
checks_failed prov/test_x "$DIR/log"
echo "${FAILURES[*]}" | tr "$SEP" ' ' >"$DIR/out"
says '^fake:prov/test_x:grow MRRC_TEST_SEED=8 [0-9.]+ fake: test_x: x\.c:9:.*no room$'

# the sanitizer that ended a test's child
printf '%s\n' '==7==ERROR: ThreadSanitizer: SEGV on unknown address' \
	'x.c:9:F:case:grow:0: child: status 66' >"$DIR/log"
FAILURES=()
checks_failed prov/test_x "$DIR/log"
echo "${FAILURES[*]}" >"$DIR/out"
says 'child: status 66; ==7==ERROR: ThreadSanitizer: SEGV on unknown address$'

# each instance of a loop's test
(TEST=grow PASSED=0 FAILED=0; count 2 1 0; count 3 0 0) >"$DIR/out"
says '^   0 passed, 1 failed, 0 skipped$'
says '^   1 passed, 0 failed, 0 skipped$'

OFI_MRRC_BUILD="$DIR/a b" "$TOP/test.sh" tree >"$DIR/out" 2>&1
[ $? -eq 2 ] || { echo "FAIL: builds in a path with a blank"; failed=1; }
says '^test\.sh: autotools cannot build in a path with a blank: .*a b'

[ $failed -eq 0 ] || sed 's/^/  | /' "$DIR/out"
exit $failed
