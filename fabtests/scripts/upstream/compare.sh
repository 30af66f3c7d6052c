# shellcheck shell=bash disable=SC2034 # the others use what is set here
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Comparing lists: the baseline of the core provider, what differs over the
# stack, retries, verdict.  Sourced.

readonly MAX_RETRY=20	# more differences than this are not chance

# Drops the tests that fail over the core: they prove nothing, and may harm
# (fi_cq_test takes all of a small machine's memory over verbs).
not_hopeless()
{
	if [ -n "$RAW" ]; then
		grep -vxF -f <(with_status FAIL "$RAW")
	else
		cat
	fi
}

# run_tests core|stack NAME [WANT]: runs those in the file WANT, or all tests
# that count.
run_tests()
{
	local name=$2 want=${3-} start=$SECONDS

	take_side "$1"
	if [ "$MODE" = ubertest ]; then
		uber_run "$name" "$want"
	else
		if [ -z "$want" ]; then
			want=$WORK/$name.want
			suite_all | only_counting | not_hopeless >"$want"
		fi
		suite_run "$name" "$want"
	fi
	say "# $(side_label): $(wc -l <"$WORK/$name.list") tests" \
		"in $((SECONDS - start)) s"
}

# Prints the part of a log that is about one test.
excerpt()
{
	local key

	key=$(key_of "$1")
	if [ "$MODE" = ubertest ]; then
		awk -v n="${key#* }" '
			/^(Starting|Skipping) test / { on = ($3 + 0 == n) }
			on' "$2"
	else
		awk -v key="$key" -v addr="$ADDR" '
			/^- name: / {
				line = $0
				sub(/^- name: */, "", line)
				sub(/ -p ".*/, "", line)
				gsub(addr, "ADDR", line)
				on = (line == key)
			}
			on' "$2"
	fi | tail -n 25 | sed 's/^/    | /'
}

# The baseline of a list: of a suite what neither passes nor is excluded by
# upstream, as the installed suite tells the rest; of fi_ubertest's cases, which
# only a run tells, numbers from one to another of the same status and endpoint.
shorten()
{
	if [ "$MODE" = suite ]; then
		grep -vE '^(PASS|EXCLUDED) ' "$1"
		return
	fi
	awk '
		function flush_range() {
			if (last)
				print status, "fi_ubertest", first "-" last ep
		}
		{
			this = ""
			if (match($0, / FI_EP_[A-Z]*/))
				this = substr($0, RSTART, RLENGTH)
			if ($1 != status || this != ep || $3 != last + 1) {
				flush_range()
				first = $3
			}
			status = $1
			last = $3
			ep = this
		}
		END { flush_range() }' "$1"
}

# The list of a baseline.
lengthen()
{
	local rest

	if [ "$MODE" = suite ]; then
		rest=$(grep -v '^#' "$1")
		suite_all | grep -vxF -e "$(cut -d' ' -f2- <<<"$rest")" |
			sed 's/^/PASS /'
		[ -z "$rest" ] || printf '%s\n' "$rest"
		return
	fi
	awk '!/^#/ {
		split($3, range, "-")
		for (i = range[1]; i <= range[2]; i++)
			print $1, $2, i, $4
	}' "$1"
}

write_baseline()
{
	local file=$1 list=$2 set="runfabtests.sh, sets $SETS"

	[ "$MODE" = ubertest ] &&
		set="fi_ubertest, ${UBER_CONFIG#"$PREFIX/share/fabtests/"}"
	mkdir -p "$(dirname "$file")"
	{
		cat <<-EOT
		# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
		# What upstream's fabtests do over $CORE, without ofi_mrrc.
		# Made by: fabtests/scripts/upstream.sh --raw --record
		# suite: $set
		# suite id: $(suite_id)
		# libfabric: $VERSION
		# fabtests: $(fabtests_version)
		# kernel: $(uname -r | sed 's/-.*//')
		EOT
		shorten "$list"
	} >"$file" && say "# written: ${file##*/}"
}

# Sets RAW, the list to compare with.
get_baseline()
{
	local id=''

	[ ! -f "$BASELINE" ] || id=$(sed -n 's/^# suite id: //p' "$BASELINE")
	if [ "$id" != "$(suite_id)" ]; then
		say "# no baseline ${BASELINE##*/} of these fabtests:" \
			"running $CORE alone first"
		run_tests core raw
		RAW=$WORK/raw.list
		return
	fi
	RAW=$WORK/baseline.list
	lengthen "$BASELINE" >"$RAW"
}

# Writes to $1 the tests that count, pass in RAW and do not in list $2. What
# upstream excludes is excluded from both sides.
differing()
{
	local test

	with_status PASS "$RAW" | only_counting | while read -r test; do
		case $(status_of "$test" "$2") in
		PASS|EXCLUDED) ;;
		*) printf '%s\n' "$test" ;;
		esac
	done >"$1"
}

# retried TEST ROUND: runs TEST alone, over both sides, and prints the two
# results. Alone, because a failed test may leave its other process to the next
# one.
retried()
{
	local side

	printf '%s\n' "$1" >"$WORK/retry"
	for side in core stack; do
		run_tests $side "$side.$2" "$WORK/retry" >/dev/null
		cat "$WORK/$side.$2.log" >>"$WORK/retries.log"
		status_of "$1" "$WORK/$side.$2.list"
	done | paste -sd' ' -
}

# Removes from the file $1 the differences that chance explains: a test that
# passes now over the stack, or that fails over the core as well.
retry()
{
	local left=$1 round=$2 test raw stack

	while read -r test <&3; do
		read -r raw stack < <(retried "$test" "$round")
		if [ "$stack" = PASS ]; then
			say "UNSTEADY $test (passed on retry $round)"
		elif [ "$raw" != PASS ]; then
			say "UNSTEADY $test (on retry $round $raw raw too)"
			printf '%s\n' "$test" >>"$WORK/skipped"
		else
			printf '%s\n' "$test" >>"$left.new"
		fi
	done 3<"$left"
	touch "$left.new"
	mv "$left.new" "$left"
}

verdict()
{
	local failed passed total skipped test

	take_side stack
	while read -r test; do
		say "FAIL $test: passes over $CORE, over $(side_label)" \
			"$(status_of "$test" "$WORK/stack.list")"
		excerpt "$test" "$WORK/stack.log"
	done <"$WORK/left"
	failed=$(wc -l <"$WORK/left")
	total=$(sed 's/^[^ ]* //' "$RAW" "$WORK/stack.list" |
		while read -r test; do key_of "$test"; done | sort -u | wc -l)
	passed=$(with_status PASS "$WORK/stack.list" | only_counting | wc -l)
	# one that passed on a retry only
	passed=$((passed + $(wc -l <"$WORK/first") - failed -
		$(sort -u "$WORK/skipped" | wc -l)))
	skipped=$((total - passed - failed))
	say "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

summary()
{
	local status

	for status in PASS FAIL NOTRUN EXCLUDED; do
		printf '# %s:' "$status"
		with_status "$status" "$1" | while read -r test; do
			ep_of "$test"
		done | sort | uniq -c | awk '{ printf " %s %d", $2, $1 }'
		echo
	done
}

compare()
{
	local round

	: >"$WORK/skipped"
	get_baseline
	run_tests stack stack
	summary "$WORK/stack.list"
	differing "$WORK/left" "$WORK/stack.list"
	cp "$WORK/left" "$WORK/first"
	for ((round = 1; round <= RETRIES; round++)); do
		[ -s "$WORK/left" ] || break
		[ "$(wc -l <"$WORK/left")" -le $MAX_RETRY ] || break
		retry "$WORK/left" "$round"
	done
	verdict
}

# A test that fails over the core and passes when tried again counts as passed
# in the baseline.
second_chance()
{
	local list=$1 test

	while read -r test <&3; do
		printf '%s\n' "$test" >"$WORK/retry"
		run_tests core again "$WORK/retry" >/dev/null
		[ "$(status_of "$test" "$WORK/again.list")" = PASS ] || continue
		say "UNSTEADY $test (passes now and then)"
		awk -v test="FAIL $test" '
			$0 == test { sub(/^FAIL/, "PASS") }
			{ print }' "$list" >"$list.new"
		mv "$list.new" "$list"
	done 3< <(with_status FAIL "$list")
}

record()
{
	EPS=msg,dgram,rdm
	run_tests core raw
	second_chance "$WORK/raw.list"
	summary "$WORK/raw.list"
	grep -q '^PASS ' "$WORK/raw.list" || die "nothing passes over $CORE"
	write_baseline "$BASELINE" "$WORK/raw.list"
	with_status FAIL "$WORK/raw.list" | sed 's/^/FAIL /'
}
