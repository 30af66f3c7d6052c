# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Upstream's runfabtests.sh, and fi_pingpong: run tests over the side that
# take_side chose, and turn the reports into lists.  Sourced.

# Turns runfabtests.sh -vvv's report into a list.
parse_report()
{
	awk -v addr="$ADDR" '
		/^- name: / {
			sub(/^- name: */, "")
			sub(/ -p "[^"]*".*$/, "")
			n = split($0, word, " ")
			name = word[1]
			for (i = 2; i <= n; i++)
				name = name " " \
					(word[i] == addr ? "ADDR" : word[i])
		}
		/^  result: / && name != "" {
			print toupper($2), name
			name = ""
		}' "$1"
}

# runfabtests LOG OPTION...: runs it in WORK, because it writes to the current
# directory.
runfabtests()
{
	local log=$1

	shift
	(cd "$WORK" && env "${SIDE_ENV[@]}" "$RUN" -vvv -p "$PREFIX/bin" \
		-s "$ADDR" -c "$ADDR" -t "$SETS" -T "$LIMIT" \
		"$@" "$SIDE_NAME") >"$log" 2>&1 </dev/null
}

# Lists every test of runfabtests.sh; runs none.
catalogue()
{
	take_side core
	runfabtests "$WORK/catalogue.log" -e .
	parse_report "$WORK/catalogue.log" | sed 's/^[^ ]* //' |
		sort -u >"$WORK/catalogue"
	[ -s "$WORK/catalogue" ] || die "$RUN lists no tests"
}

# Reads tests; writes for each a pattern that matches no other.
as_patterns()
{
	sed 's/ADDR/[^ ]+/g; s/^/^/; s/$/$/'
}

# fi_pingpong is libfabric's own client, and the only one of upstream's that
# asks for what verbs' DGRAM wants (FI_MSG_PREFIX for receives only).
pingpong_tests()
{
	local ep

	for ep in msg dgram rdm; do
		echo "fi_pingpong -e $ep -c -I 20 -S 512"
		echo "fi_pingpong -e $ep -c -I 5 -S all"
	done
}

pingpong()
{
	local test=$1 log=$2 server rc src
	# shellcheck disable=SC2206 # the test is a command line
	local cmd=(timeout "$LIMIT" $test -p "$SIDE_NAME")

	printf -- '- name:   %s -p "%s"\n' "$test" "$SIDE_NAME" >>"$log"
	env "${SIDE_ENV[@]}" "${cmd[@]}" >"$WORK/server.out" 2>&1 </dev/null &
	server=$!
	sleep 1
	env "${SIDE_ENV[@]}" "${cmd[@]}" "$ADDR" >"$WORK/client.out" 2>&1 </dev/null
	rc=$?
	[ $rc -eq 0 ] || kill $server 2>/dev/null
	wait $server
	src=$?
	{
		case $rc:$src in
		0:0) echo "  result: Pass" ;;
		61:*|*:61) echo "  result: Notrun" ;;
		*) echo "  result: Fail" ;;
		esac
		echo "  server_stdout: | (exit $src)"
		sed 's/^/    /' "$WORK/server.out"
		echo "  client_stdout: | (exit $rc)"
		sed 's/^/    /' "$WORK/client.out"
	} >>"$log"
}

# suite_run NAME WANT: run the tests in the file WANT, leave NAME.log and
# NAME.list in WORK.  The list has the other tests as EXCLUDED.
suite_run()
{
	local log=$WORK/$1.log list=$WORK/$1.list excl=$WORK/$1.exclude
	local want=$2 test

	grep -v '^[[:space:]]*\(#\|$\)' "$CORE_EXCLUDES" >"$excl"
	sort "$want" | comm -23 "$WORK/catalogue" - | as_patterns >>"$excl"
	runfabtests "$log" -f "$excl"
	while read -r test; do
		pingpong "$test" "$log"
	done < <(grep '^fi_pingpong ' "$want")
	parse_report "$log" | sort -k2 >"$list"
}

suite_all()
{
	cat "$WORK/catalogue"
	pingpong_tests
}
