# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What demo.sh prints of the lines of demo_race, demo_save and frrwp_bench: a
# row of a table for each as soon as it is there, and a summary of all.  The
# lines are also kept in $DATA, for the summary and the picture.
# Sourced, with DATA set.

DEMO=$TOP/util/sh/demo
TABLE=			# whose head was printed last
MONITOR=		# the first that was named
SHOWN=			# the process that shows
declare -A CELL=()	# of the present row of the first table

table_is()
{
	[ "$TABLE" != "$1" ] || return 1
	TABLE=$1
	say
}

# The times that are compared
time_is()
{
	[ "$WHERE" = guest ] && echo "1,000 instructions" || echo "processor time"
}

# What the tables call a word of the programs, and a size.
named()
{
	awk "$(<"$DEMO/names.awk")"' BEGIN { print named(ARGV[1]) }' "$1"
}

size_of()
{
	awk "$(<"$DEMO/names.awk")"' BEGIN { print size_of(ARGV[1]) }' "$1"
}

# race WAY CACHE STALE WRITES REGISTRATIONS
show_race()
{
	if table_is race; then
		say "   RMA writes with stale data, while the buffer's pages are"
		say "   replaced, by functions of libc but for the last two"
		say
		printf '   %-28s%7s %12s %13s %9s\n' "" of "libfabric's" \
			"the same, by" "" "pages replaced by" writes cache \
			userfaultfd ofi_mrrc
	fi
	CELL[$3]=$4
	[ "$3" = ofi_mrrc ] || return 0
	printf '   %-28s%7s %12s %13s %9s\n' "$(named "$2")" "$5" \
		"${CELL[libfabric]--}" "${CELL[libfabric-uffd]--}" "$4"
	CELL=()
}

# save ROW SIZE WRITES, and 5 words for each of the three
show_save()
{
	local turns=${21}

	if table_is save; then
		say "   Microseconds of $(time_is) of an RMA write, from its buffer's"
		say "   registration to its completion (there and back); in brackets"
		say "   elapsed ones, if different: the least of $turns turns."
		say "   Registrations, hits and copies of ofi_mrrc; time saved against"
		say "   registering each time, if four fifths of the turns agree (else ~)."
		say "   fi_mr_alloc: malloc in the other two."
		say
		printf ' %-12s%5s%13s%13s%13s%6s%6s%7s%6s\n' \
			"" "" "register" "libfabric" "" "" "" "" "" \
			buffer size "each" "cache" "ofi_mrrc" regs hits copies saved
	fi
	printf ' %-12s%5s' "$(named "$2")" "$(size_of "$3")"
	shift 3
	awk -v "line=$*" "$(<"$DEMO/names.awk")"'
	function us(n)
	{
		if (n >= 9999.5)
			return sprintf("%.0fk", n / 1000)
		return sprintf(n < 99.95 ? "%.1f" : "%.0f", n)
	}
	function cell(used, elapsed)
	{
		if (used == "-")
			return sprintf("%7s%6s", used, "")
		return sprintf("%7s%6s", us(used), used == elapsed ? "" : \
			"(" (elapsed < 99.5 ? sprintf("%.0f", elapsed) : \
			us(elapsed)) ")")
	}
	BEGIN {
		split(line, w)
		for (i = 2; i < 15; i += 5)
			printf "%13s", cell(w[i], w[i + 1])
		saved = "~"
		if (agree(w[17], w[18]))
			saved = rounded(100 * (1 - w[12] / w[2])) "%"
		printf "%6d%6d%7d%6s\n", w[14], w[15], w[16], saved
	}'
}

# cost SIZE US US NEAR ROUNDS
show_cost()
{
	table_is cost && say "   To register memory of this device, and to" \
		"deregister it, microseconds of" && say "   $(time_is):"
	printf '   %22s %9.1f %9.1f\n' "$(size_of "$2")" "$3" "$4"
}

# start US US N ROUNDS
show_start()
{
	table_is start && say "   Processor time to start and to connect two" \
		"endpoints, microseconds:"
	printf '   %22s %9.0f\n   %22s %9.0f\n' "without ofi_mrrc" "$2" \
		"with ofi_mrrc" "$3"
}

# monitor NAME HOOKS LOST
show_monitor()
{
	MONITOR=$2
	say "   ofi_mrrc watches memory by $2 ($3 functions of libc hooked," \
		"$4 lost)"
	[ "$2" = none ] || return 0
	say
	say "   NO CACHE IS AT WORK HERE: userfaultfd is not to be had, so each"
	say "   buffer is registered and deregistered each time. As root:"
	say "   sysctl vm.unprivileged_userfaultfd=1; in a container allow the"
	say "   system call userfaultfd (docker run --security-opt" \
		"seccomp=PROFILE)."
}

# show_line WORD...: what a program printed
show_line()
{
	case $1 in
	setup) say "   ${*:2}" ;;
	race) show_race "$@" ;;
	save)
		[ "$2" != given ] || return 0
		show_save "$@"
		;;
	cost) show_cost "$@" ;;
	start) show_start "$@" ;;
	monitor) [ -n "$MONITOR" ] || show_monitor "$@" ;;
	esac
}

# True for lines that are data.
is_data()
{
	case $1 in
	setup|race|save|cost|start|monitor|write|sooner) return 0 ;;
	esac
	return 1
}

# Shows what is data of the lines that come in, and keeps it.
show_lines()
{
	local line

	while IFS= read -r line; do
		# shellcheck disable=SC2086 # words
		is_data ${line:-none} || continue
		echo "$line" >>"$DATA"
		# shellcheck disable=SC2086
		show_line $line
	done
}

# The machine's load, which lengthens elapsed times
note_load()
{
	echo "load $(cut -d' ' -f1 /proc/loadavg) $(nproc)" >>"$DATA"
}

# stream WHAT TITLE COMMAND...: runs COMMAND, shows each line when it comes, and
# keeps it.  Like logged(); this shell only waits, since bash (5.2) may not
# understand a trap that runs while it reads a command substitution.
stream()
{
	local title=$2 log=$LOGS/demo-$CORE-$1.log pid rc start=$SECONDS

	shift 2
	mkdir -p "$LOGS"
	: >"$log"
	note_load
	set -m
	"$@" >"$log" 2>&1 </dev/null &
	pid=$!
	set +m
	CHILD=$pid
	(
		trap '' INT TERM HUP
		tail -n +1 -s 0.2 -f --pid=$pid "$log" | show_lines
	) &
	SHOWN=$!
	wait $SHOWN
	wait $pid
	rc=$?
	# shellcheck disable=SC2034 # common.sh's
	CHILD=
	note_load
	if [ $rc -ne 0 ]; then
		say "   $title: FAILED (status $rc) after" \
			"$(minutes $((SECONDS - start)))"
		tail -n 20 "$log" | sed 's/^/   | /'
		say "   | (all of it: $log)"
	fi
	return $rc
}

# How ofi_mrrc watched memory, once that is known.
monitor_used()
{
	awk '$1 == "monitor" { print $2; exit }' "$DATA"
}

# The three answers, of what there is.
summary()
{
	local monitor exact=

	say
	say "== summary${1:+ ($1)}"
	touch "$DATA"
	monitor=$(monitor_used)
	[ "$WHERE" != guest ] || exact=1
	awk -v "verbs=$([ "$CORE" = verbs ] && echo 1)" -v "exact=$exact" \
		-v "monitor=$monitor" -f "$DEMO/names.awk" \
		-f "$DEMO/summary.awk" "$DATA"
	awk -v "exact=$exact" -f "$DEMO/names.awk" -f "$DEMO/picture.awk" \
		"$DATA" >"$PICTURE" &&
		say "   Picture: $PICTURE"
	say "   Lines:   $DATA"
}
