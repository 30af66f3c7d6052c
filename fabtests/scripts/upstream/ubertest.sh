# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Upstream's fi_ubertest: run the cases of CORE's configuration over the side
# that take_side chose, and turn its output into lists.  Sourced.

readonly IDLE_LIMIT=60	# seconds of silence after which it hangs

# The cases of CORE alone in upstream's configuration, with few iterations in
# all: an emulated device would take hours for the rest.
uber_config()
{
	awk -v core="$CORE" -v prov="$SIDE_NAME" \
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
			# (an atomic call has a comma in it)
			gsub(/ *\([^)]*\)/, "")
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

# Ends the client when it has printed nothing for too long.
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

# uber_session FROM TO OUT: runs one server and one client.
uber_session()
{
	local out=$3 server client i range=(-y "$1")

	[ -z "$2" ] || range+=(-z "$2")
	: >"$out"
	env "${SIDE_ENV[@]}" stdbuf -oL "$UBER" -x >"$out.server" 2>&1 </dev/null &
	server=$!
	sleep 1
	env "${SIDE_ENV[@]}" stdbuf -oL "$UBER" "${range[@]}" -u "$WORK/uber.test" \
		"$ADDR" >"$out" 2>&1 </dev/null &
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

# uber_run NAME WANT: as suite_run. A server that gives up ends its session,
# too: the next session begins after the case that ended it.
uber_run()
{
	local list=$WORK/$1.list log=$WORK/$1.log out=$WORK/$1.out want=$2
	local first=1 total='' last test

	uber_config >"$WORK/uber.test"
	[ -s "$WORK/uber.test" ] || die "$UBER_CONFIG has no cases for $CORE"
	: >"$log"
	: >"$list"
	if [ -n "$want" ]; then
		while read -r _ test _; do
			uber_session "$test" "$test" "$out"
			cat "$out" "$out.server" >>"$log"
			uber_parse "$out" >>"$list"
		done <"$want"
		return
	fi
	while [ -z "$total" ] || [ "$first" -le "$total" ]; do
		uber_session "$first" '' "$out"
		cat "$out" "$out.server" >>"$log"
		[ -n "$total" ] || total=$(sed -n \
			's/^Test configurations loaded: //p' "$out")
		[ -n "$total" ] || die "fi_ubertest: $(tail -n 1 "$out")"
		# a failed case, then the server's end: the next cases prove
		# nothing
		last=$(uber_dead "$out" "$first")
		uber_parse "$out" | awk -v last="$last" '$3 <= last' >>"$list"
		first=$((last + 1))
	done
}

# Prints the last case of a session in which the server took part.
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
