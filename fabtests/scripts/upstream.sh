#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# upstream.sh: run upstream's own fabtests over our stack and compare with
# what the core provider passes alone.  Nothing of upstream is copied: its
# installed runfabtests.sh, fi_ubertest and test_configs are used in place.
#
# Flow: the script starts itself again in a private process (and network)
# namespace, as runfabtests.sh ends with kill -9 on every fi_* process ->
# catalogue (runfabtests.sh with everything excluded) -> run -> list, one line
# a test, "PASS|FAIL|NOTRUN|EXCLUDED TEST" -> compare with the raw list in
# ../baseline -> retry what differs, raw and stacked in turn -> verdict.

set -u
umask 022
export LC_ALL=C

readonly ME=${0##*/}
HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
readonly HERE
readonly BASELINES=$HERE/../baseline

readonly SETS=unit,functional,short
readonly MAX_RETRY=20	# more differences than this are not chance
readonly IDLE_LIMIT=60	# seconds of silence after which fi_ubertest hangs
readonly RC_CANNOT=2

usage()
{
	cat <<-EOT
	Usage: $ME [OPTION]... FABTESTS_PREFIX CORE

	Runs upstream's fabtests installed in FABTESTS_PREFIX over the provider
	"CORE;ofi_mrrc" and reports the tests that CORE (tcp, udp or verbs)
	passes alone and that do not pass over it.  Sets: $SETS;
	and fi_pingpong.

	  --raw           run CORE alone instead
	  --ubertest      fi_ubertest with CORE's own cases instead
	  --ep LIST       endpoint types that count, of msg,dgram,rdm
	                  (default msg,dgram; tests of no type always count)
	  --provider P    the stack under test (default CORE;ofi_mrrc)
	  --env           name the stack in FI_PROVIDER too
	  --baseline F    compare with the list F
	  --record        with --raw: write the list as the baseline
	  --retries N     runs more of a test that differs (default 2)
	  -a ADDRESS      address (default 127.0.0.1, verbs: the device's)
	  -T SECONDS      limit for each test (default 120)
	  -k DIR          keep logs and lists in DIR
	  -h, --help      this text

	Without a baseline for this libfabric, CORE is run first.  Root is not
	needed where user namespaces are allowed.

	Exit status: 0 as good as the core, 1 not, $RC_CANNOT could not run.
	EOT
}

say()
{
	printf '%s\n' "$*"
}

die()
{
	printf '%s: %s\n' "$ME" "$*" >&2
	exit $RC_CANNOT
}

usage_error()
{
	printf '%s: %s\n' "$ME" "$*" >&2
	usage >&2
	exit $RC_CANNOT
}

# ---- the machine ---------------------------------------------------------

# The address of the first RDMA device's network interface.
verbs_address()
{
	local dev

	dev=$(rdma link show 2>/dev/null |
		sed -n 's/.* ACTIVE .*netdev \([^ ]*\).*/\1/p' | head -n 1)
	[ -n "$dev" ] && ip -4 -o addr show dev "$dev" |
		sed -n 's/.* inet \([0-9.]*\).*/\1/p' | head -n 1
}

libfabric_version()
{
	fi_info --version 2>/dev/null | sed -n 's/^libfabric: //p'
}

# Installed fabtests say their version nowhere: it is the folder's, if at all.
fabtests_version()
{
	[[ ${PREFIX##*/} =~ [0-9]+(\.[0-9]+)+ ]] || { echo unknown; return; }
	echo "${BASH_REMATCH[0]}"
}

# One word that tells one version of upstream's script from another.
suite_id()
{
	sha256sum "$RUN" | cut -c1-12
}

# Starts this script again where it can do no harm, and cleans up after it.
isolate()
{
	local inner flags=(--mount --pid --fork --mount-proc --kill-child)

	[ "$CORE" = verbs ] || flags+=(--net)
	[ "$(id -u)" -eq 0 ] || flags+=(--user --map-root-user)
	unshare "${flags[@]}" true 2>/dev/null ||
		die "cannot make a private namespace (root?)"
	WORK=$(mktemp -d "${TMPDIR:-/tmp}/ofi_mrrc-upstream.XXXXXX") ||
		die "cannot make a temporary folder"
	trap 'rm -rf "$WORK"' EXIT
	MRRC_UPSTREAM_WORK=$WORK unshare "${flags[@]}" \
		"$BASH" "$HERE/$ME" "$@" &
	inner=$!
	# unshare ignores the polite ones; with it goes all of the namespace
	trap 'kill -9 $inner 2>/dev/null; exit 130' INT
	trap 'kill -9 $inner 2>/dev/null; exit 143' HUP TERM
	wait $inner
	exit
}

# ---- names ---------------------------------------------------------------

# Endpoint type of a test: what its name says, or fabtests' default (rdm).
ep_of()
{
	case $1 in
	*"-e msg"*|*FI_EP_MSG*) echo msg ;;
	*"-e dgram"*|*FI_EP_DGRAM*) echo dgram ;;
	*"-e rdm"*|*FI_EP_RDM*) echo rdm ;;
	# fi_msg_inject is named for the message calls: it takes the default
	fi_rdm*|fi_av_*|fi_msg_inject*|fi_poll*|fi_shared_ctx*) echo rdm ;;
	fi_scalable_ep*) echo rdm ;;
	fi_msg*|fi_cm_data*) echo msg ;;
	fi_dgram*) echo dgram ;;
	*) echo any ;;
	esac
}

counts()
{
	local ep

	ep=$(ep_of "$1")
	[ "$ep" = any ] || [[ ,$EPS, == *,"$ep",* ]]
}

# Keeps the lines (tests) that count.
only_counting()
{
	local test

	while read -r test; do
		counts "$test" && printf '%s\n' "$test"
	done
}

# What identifies a test: all of its line, but of fi_ubertest's only the number
key_of()
{
	case $1 in
	"fi_ubertest "*) cut -d' ' -f1,2 <<<"$1" ;;
	*) printf '%s\n' "$1" ;;
	esac
}

# status_of TEST LIST: the status of TEST, or MISSING.
status_of()
{
	awk -v key="$(key_of "$1")" '
		{ status = $1; $1 = ""; test = substr($0, 2) }
		test ~ /^fi_ubertest / {
			split(test, word, " ")
			test = word[1] " " word[2]
		}
		test == key { found = status }
		END { print found ? found : "MISSING" }' "$2"
}

with_status()
{
	sed -n "s/^$1 //p" "$2"
}

# ---- runfabtests.sh ------------------------------------------------------

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

# runfabtests PROVIDER LOG OPTION...: in WORK, as it writes where it stands.
runfabtests()
{
	local prov=$1 log=$2 env=()

	shift 2
	[ "$FILTER" = yes ] && env=(FI_PROVIDER="$prov")
	(cd "$WORK" && env -u FI_PROVIDER "${env[@]}" "$RUN" -vvv \
		-p "$PREFIX/bin" -s "$ADDR" -c "$ADDR" -t "$SETS" -T "$LIMIT" \
		"$@" "$prov") >"$log" 2>&1 </dev/null
}

# Every test that runfabtests.sh knows; runs none.
catalogue()
{
	runfabtests "$CORE" "$WORK/catalogue.log" -e .
	parse_report "$WORK/catalogue.log" | sed 's/^[^ ]* //' |
		sort -u >"$WORK/catalogue"
	[ -s "$WORK/catalogue" ] || die "$RUN lists no tests"
}

# Reads tests, writes a pattern for each that matches it alone.
as_patterns()
{
	sed 's/ADDR/[^ ]+/g; s/^/^/; s/$/$/'
}

# fi_pingpong is libfabric's own client, and the only one of upstream's that
# asks for what verbs' DGRAM wants (FI_MSG_PREFIX for receives only).
pingpong_tests()
{
	local ep

	for ep in msg dgram; do
		echo "fi_pingpong -e $ep -c -I 20 -S 512"
		echo "fi_pingpong -e $ep -c -I 5 -S all"
	done
}

pingpong()
{
	local prov=$1 test=$2 log=$3 server rc src env=()

	[ "$FILTER" = yes ] && env=(FI_PROVIDER="$prov")
	# shellcheck disable=SC2206 # the test is a command line
	local cmd=(env -u FI_PROVIDER "${env[@]}" timeout "$LIMIT"
		$test -p "$prov")
	printf -- '- name:   %s -p "%s"\n' "$test" "$prov" >>"$log"
	"${cmd[@]}" >"$WORK/server.out" 2>&1 </dev/null &
	server=$!
	sleep 1
	"${cmd[@]}" "$ADDR" >"$WORK/client.out" 2>&1 </dev/null
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

# suite_run PROVIDER NAME WANT: run the tests in the file WANT, leave
# NAME.log and NAME.list in WORK.  The list has the other tests as EXCLUDED.
suite_run()
{
	local prov=$1 log=$WORK/$2.log list=$WORK/$2.list want=$3 test
	local excl=$WORK/$2.exclude

	grep -v '^[[:space:]]*\(#\|$\)' "$CORE_EXCLUDES" >"$excl"
	sort "$want" | comm -23 "$WORK/catalogue" - | as_patterns >>"$excl"
	runfabtests "$prov" "$log" -f "$excl"
	while read -r test; do
		pingpong "$prov" "$test" "$log"
	done < <(grep '^fi_pingpong ' "$want")
	parse_report "$log" | sort -k2 >"$list"
}

suite_all()
{
	cat "$WORK/catalogue"
	pingpong_tests
}

# ---- fi_ubertest ---------------------------------------------------------

# The cases of CORE alone in upstream's configuration, over PROVIDER, with
# few iterations in all: an emulated device would take hours for the rest.
uber_config()
{
	awk -v core="$CORE" -v prov="$1" \
		-v quick='test_flags: FT_FLAG_QUICKTEST,\n\t' '
		function flush_block() {
			if (mine && block !~ /test_flags:/)
				sub(/prov_name:/, quick "&", block)
			if (mine)
				printf "%s", block
			block = ""
			mine = 0
		}
		/^[ \t]*#/ { next }
		/^\{/ { block = ""; mine = 0 }
		/^[ \t]*prov_name:/ {
			name = $2
			sub(/,.*/, "", name)
			if (name == core) {
				mine = 1
				sub(name, prov)
			}
		}
		{ block = block $0 "\n" }
		/^\}/ { flush_block() }' "$UBER_CONFIG"
}

# Turns the client's output into a list.  A case that began and did not end
# failed: its process died or hung.
uber_parse()
{
	awk '
		function done(   line) {
			if (test == "")
				return
			line = status " fi_ubertest " test
			print desc == "" ? line : line " " desc
			test = desc = ""
		}
		/^Starting test / || /^Skipping test / {
			done()
			test = $3
			status = $1 == "Skipping" ? "NOTRUN" : "FAIL"
		}
		/^\[[^ ]*, [a-z]*, / && test != "" {
			# type, call, endpoint, waits, format: these come from
			# the configuration, the rest from the provider
			match($0, /FI_CQ_FORMAT_[A-Z]*/)
			format = substr($0, RSTART, RLENGTH)
			split($0, field, /, ?/)
			desc = field[2] " " field[3] " " field[4] " " \
				field[6] " " field[7] " " format
		}
		/^Ending test / {
			sub(/.*result: /, "")
			if ($0 == "Success")
				status = "PASS"
			else if ($0 == "No data available" ||
				 $0 == "Function not implemented")
				status = "NOTRUN"
			else
				status = "FAIL"
		}
		END { done() }' "$1"
}

# Ends the client when it says nothing for too long.
uber_watch()
{
	local client=$1 out=$2 size last='' idle=0

	while kill -0 "$client" 2>/dev/null; do
		sleep 1
		size=$(stat -c %s "$out")
		if [ "$size" = "$last" ]; then
			idle=$((idle + 1))
		else
			idle=0
		fi
		last=$size
		[ $idle -lt $IDLE_LIMIT ] || kill -9 "$client" 2>/dev/null
	done
}

# uber_session PROVIDER FROM TO OUT: one server, one client.
uber_session()
{
	local prov=$1 out=$4 server client i env=() range=(-y "$2")
	local bin=$PREFIX/bin/fi_ubertest

	[ -z "$3" ] || range+=(-z "$3")
	[ "$FILTER" = yes ] && env=(FI_PROVIDER="$prov")
	: >"$out"
	env -u FI_PROVIDER "${env[@]}" stdbuf -oL "$bin" -x \
		>"$out.server" 2>&1 </dev/null &
	server=$!
	sleep 1
	env -u FI_PROVIDER "${env[@]}" stdbuf -oL "$bin" "${range[@]}" \
		-u "$WORK/uber.test" "$ADDR" >"$out" 2>&1 </dev/null &
	client=$!
	uber_watch $client "$out"
	wait $client 2>/dev/null
	for ((i = 0; i < 20; i++)); do
		kill -0 $server 2>/dev/null || break
		sleep 0.1
	done
	kill -9 $server 2>/dev/null
	wait $server 2>/dev/null
}

# uber_run PROVIDER NAME WANT: as suite_run.  A server that gives up takes the
# rest of a session with it: go on after the case that it died of.
uber_run()
{
	local prov=$1 list=$WORK/$2.list log=$WORK/$2.log out=$WORK/$2.out
	local first=1 total='' last test

	uber_config "$prov" >"$WORK/uber.test"
	[ -s "$WORK/uber.test" ] || die "$UBER_CONFIG has no cases for $CORE"
	: >"$log"
	: >"$list"
	if [ -n "$3" ]; then
		while read -r _ test _; do
			uber_session "$prov" "$test" "$test" "$out"
			cat "$out" "$out.server" >>"$log"
			uber_parse "$out" >>"$list"
		done <"$3"
		return
	fi
	while [ -z "$total" ] || [ "$first" -le "$total" ]; do
		uber_session "$prov" "$first" '' "$out"
		cat "$out" "$out.server" >>"$log"
		[ -n "$total" ] || total=$(sed -n \
			's/^Test configurations loaded: //p' "$out")
		[ -n "$total" ] || die "fi_ubertest: $(tail -n 1 "$out")"
		# a failed case, then the server gone: the next ones say no more
		last=$(uber_dead "$out" "$first")
		uber_parse "$out" | awk -v last="$last" '$3 <= last' >>"$list"
		first=$((last + 1))
	done
}

# The last case of a session that the server took part in.
uber_dead()
{
	local n

	n=$(sed -n 's/^Starting test \([0-9]*\):.*/\1/p' "$1.server" |
		sort -n | tail -n 1)
	# skipped cases never reach the server
	n=${n:-0}
	[ "$n" -ge "$2" ] || n=$2
	awk -v n="$n" '
		/^Starting test / && $3 > n { exit }
		/^Skipping test / && $3 > n { n = $3 }
		END { print n }' "$1"
}

# ---- both ----------------------------------------------------------------

# Drops what fails over the core: it proves nothing, and may harm (fi_cq_test
# takes all of a small machine's memory over verbs).
not_hopeless()
{
	if [ -n "$RAW" ]; then
		grep -vxF -f <(with_status FAIL "$RAW")
	else
		cat
	fi
}

# run_tests PROVIDER NAME [WANT]
run_tests()
{
	local start=$SECONDS

	case $MODE in
	ubertest)
		uber_run "$1" "$2" "${3-}"
		;;
	*)
		if [ -z "${3-}" ]; then
			suite_all | only_counting | not_hopeless \
				>"$WORK/$2.want"
			set -- "$1" "$2" "$WORK/$2.want"
		fi
		suite_run "$@"
		;;
	esac
	say "# $1: $(wc -l <"$WORK/$2.list") tests in $((SECONDS - start)) s"
}

# The report on one test, out of a log.
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

write_baseline()
{
	local file=$1 list=$2 set="runfabtests.sh, sets $SETS"

	[ "$MODE" = ubertest ] && set="fi_ubertest, test_configs/$CORE/all.test"
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
		cat "$list"
	} >"$file" && say "# written: ${file##*/}"
}

# Sets RAW, the list to compare with.
get_baseline()
{
	local id

	if [ ! -f "$BASELINE" ]; then
		say "# no baseline ${BASELINE##*/}: running $CORE alone first"
		run_tests "$CORE" raw
		RAW=$WORK/raw.list
		return
	fi
	id=$(sed -n 's/^# suite id: //p' "$BASELINE")
	[ -z "$id" ] || [ "$id" = "$(suite_id)" ] ||
		say "# warning: the baseline is of another fabtests version"
	RAW=$WORK/baseline.list
	grep -v '^#' "$BASELINE" >"$RAW"
}

# Writes to $1 the tests that count, pass in RAW and do not in list $2.
differing()
{
	local test

	with_status PASS "$RAW" | only_counting | while read -r test; do
		[ "$(status_of "$test" "$2")" = PASS ] || printf '%s\n' "$test"
	done >"$1"
}

# Removes from the file $1 what chance explains: a test that passes now over
# the stack, or that fails over the core as well.
retry()
{
	local left=$1 round=$2 test raw stack

	run_tests "$CORE" "raw.$round" "$left" >/dev/null
	run_tests "$PROV" "stack.$round" "$left" >/dev/null
	while read -r test <&3; do
		raw=$(status_of "$test" "$WORK/raw.$round.list")
		stack=$(status_of "$test" "$WORK/stack.$round.list")
		if [ "$stack" = PASS ]; then
			say "UNSTEADY $test (passed on retry $round)"
		elif [ "$raw" != PASS ]; then
			say "UNSTEADY $test (on retry $round $raw raw too)"
			printf '%s\n' "$test" >>"$WORK/skipped"
		else
			printf '%s\n' "$test"
		fi
	done 3<"$left" >"$left.new"
	grep '^UNSTEADY ' "$left.new"
	grep -v '^UNSTEADY ' "$left.new" >"$left"
}

verdict()
{
	local failed passed total skipped test

	while read -r test; do
		say "FAIL $test: passes over $CORE, over $PROV" \
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
	run_tests "$PROV" stack
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

record()
{
	EPS=msg,dgram,rdm
	run_tests "$CORE" raw
	summary "$WORK/raw.list"
	grep -q '^PASS ' "$WORK/raw.list" || die "nothing passes over $CORE"
	write_baseline "$BASELINE" "$WORK/raw.list"
	with_status FAIL "$WORK/raw.list" | sed 's/^/FAIL /'
}

# ---- main ----------------------------------------------------------------

parse_options()
{
	while [ $# -gt 0 ]; do
		case $1 in
		--raw) RAWRUN=yes ;;
		--ubertest) MODE=ubertest ;;
		--env) FILTER=yes ;;
		--record) RECORD=yes ;;
		-h|--help) usage; exit ;;
		--ep|--provider|--baseline|--retries|-a|-T|-k)
			[ $# -ge 2 ] || usage_error "$1 wants a value"
			case $1 in
			--ep) EPS=$2 ;;
			--provider) PROV=$2 ;;
			--baseline) BASELINE=$2 ;;
			--retries) RETRIES=$2 ;;
			-a) ADDR=$2 ;;
			-T) LIMIT=$2 ;;
			-k) KEEP=$2 ;;
			esac
			shift
			;;
		-*) usage_error "unknown option $1" ;;
		*) break ;;
		esac
		shift
	done
	[ $# -eq 2 ] || usage_error "wants FABTESTS_PREFIX and CORE"
	PREFIX=$1
	CORE=$2
}

check_options()
{
	local file tool

	[[ ,$EPS, =~ ^,((msg|dgram|rdm),)+$ ]] || usage_error "wrong --ep $EPS"
	[[ $RETRIES$LIMIT =~ ^[0-9]+$ ]] || usage_error "wrong number"
	[ $RECORD = no ] || [ $RAWRUN = yes ] ||
		usage_error "--record wants --raw"
	case $CORE in
	tcp|udp|verbs) ;;
	*) usage_error "unknown core $CORE" ;;
	esac
	PREFIX=$(cd -- "$PREFIX" 2>/dev/null && pwd) ||
		die "no such folder: $PREFIX"
	RUN=$PREFIX/bin/runfabtests.sh
	CORE_EXCLUDES=$PREFIX/share/fabtests/test_configs/$CORE/$CORE.exclude
	UBER_CONFIG=$PREFIX/share/fabtests/test_configs/$CORE/all.test
	for file in "$RUN" "$CORE_EXCLUDES" "$UBER_CONFIG"; do
		[ -r "$file" ] || die "no fabtests there: $file is missing"
	done
	for tool in comm fi_info fi_pingpong ip ps python3 sha256sum stdbuf \
		timeout unshare; do
		command -v $tool >/dev/null || die "$tool is missing"
	done
	if [ $RAWRUN = yes ]; then
		PROV=$CORE
	elif [ -z "$PROV" ]; then
		PROV="$CORE;ofi_mrrc"
	fi
}

# The rest, in the namespace.
inside()
{
	local suffix='' rc

	# as process 1 of the namespace, signals without a handler do nothing
	trap 'exit 130' INT
	trap 'exit 143' TERM
	ip link set lo up 2>/dev/null
	[ -n "$ADDR" ] || case $CORE in
	verbs) ADDR=$(verbs_address) ;;
	*) ADDR=127.0.0.1 ;;
	esac
	[ -n "$ADDR" ] || die "no RDMA device with an IPv4 address"
	unset FI_PROVIDER
	VERSION=$(libfabric_version)
	[ -n "$VERSION" ] || die "cannot tell libfabric's version"
	[ $MODE = suite ] || suffix=-$MODE
	[ -n "$BASELINE" ] || BASELINE=$BASELINES/$CORE-$VERSION$suffix.txt
	fi_info -p "$PROV" >/dev/null 2>&1 ||
		die "libfabric $VERSION has no provider $PROV" \
			"(FI_PROVIDER_PATH?)"
	say "# libfabric $VERSION, provider $PROV, address $ADDR"
	[ $MODE = ubertest ] || catalogue
	if [ $RECORD = yes ]; then
		record
	else
		compare
	fi
	rc=$?
	[ -z "$KEEP" ] || { mkdir -p "$KEEP" && cp -r "$WORK/." "$KEEP/"; }
	return $rc
}

main()
{
	parse_options "$@"
	check_options
	WORK=${MRRC_UPSTREAM_WORK-}
	[ -n "$WORK" ] || isolate "$@"
	unset MRRC_UPSTREAM_WORK
	inside
}

MODE=suite EPS=msg,dgram PROV='' FILTER=no BASELINE='' RAWRUN=no RECORD=no
RETRIES=2 ADDR='' LIMIT=120 KEEP='' RAW=''
main "$@"; exit
