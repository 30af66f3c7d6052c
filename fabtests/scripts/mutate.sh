#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# mutate.sh: remove one protection of the provider at a time, and see that the
# test named for it fails.  One line for each mutation, and at the end
# "N passed, N failed".
#
# Flow: lists -> a copy of the sources for each worker, built once -> for each file:
# the tests of its mutations pass unchanged -> for each mutation: change a line,
# make, run its test, and all of its case if that did not see it.

set -u
export LC_ALL=C
unset FT_ONLY # names a mutation where one is run again
readonly ME=${0##*/}
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=util/sh/words.sh
. "$TOP/util/sh/words.sh"
readonly LISTS=$TOP/prov/mrrc/test/mutations
# seconds for a test: one that hangs has seen the mutation, too
readonly LIMIT=60
readonly NEVER=$((1 << 31))
# of a build, in its sources
readonly DIR=build/unit

usage()
{
	cat <<-EOT
	Usage: $ME [OPTION]... [NAME]...

	Runs the mutations of prov/mrrc/test/mutations, or those that are named;
	NAME may be a list, as "core", or a pattern, as "cw-*".

	  -w DIR       where the copies are built (default: build/mutations)
	  -b BUILD     copy this build, if it is in build/ of the sources and was
	               configured with a relative path, instead of making one
	  -j N         so many at a time (default: one for each processor)
	  -t SECONDS   begin no mutation after so long, and count those that did
	               not run apart; files are in an order that the commit's
	               hash decides
	  -r COMMITS   of five files four first that so many last commits changed
	  -l           list them, with their tests
	  -c           only check that their lines are in the sources
	  -h, --help   this text

	A list has entries as this, separated by empty lines:

	  NAME: what the mutation takes away
	  file prov/mrrc/sys/monitor/mon.h
	                           (absent: that of the entry before)
	  at TEXT                  (where LINE is there more than once: the
	                           first one after TEXT)
	  - LINE                   of the source, blanks at its ends apart
	  + LINE                   in its place (may be absent)
	  test PROGRAM CASE TEST   of prov/mrrc/test, or with its folder: CASE,
	                           where TEST is the test for it, has to report
	                           a failure
	  fabtest TEST [PROVIDER]  of runfabtests.sh: has to fail, over
	                           "tcp;ofi_mrrc"
	  script NAME TEST         of fabtests/scripts/test_NAME.sh: has to fail

	Exit status: 0 each one was seen, 1 some were not, 2 could not run.
	EOT
}

# ---- lists -------------------------------------------------------------------

# Sets NAMES and, by name, WHAT, FILE, AT, OLD, NEW, TEST and LIST.
read_lists()
{
	local path list line file name=''

	NAMES=()
	declare -gA WHAT FILE AT OLD NEW TEST LIST
	for path in "$LISTS"/*.txt; do
		list=$(basename "$path" .txt) name='' file=''
		while IFS= read -r line || [ -n "$line" ]; do
			case $line in
			'#'*) ;;
			'') name='' ;;
			'file '*) file=${line#file } FILE[$name]=$file ;;
			'at '*) AT[$name]=${line#at } ;;
			'- '*) OLD[$name]=${line#- } ;;
			'+ '*) NEW[$name]=${line#+ } ;;
			'test '*|'fabtest '*|'script '*) TEST[$name]=$line ;;
			*': '*)
				[ -z "$name" ] || die "$path: not understood: $line"
				name=${line%%: *}
				[ -z "${WHAT[$name]-}" ] ||
					die "$path: $name is there twice"
				WHAT[$name]=${line#*: } LIST[$name]=$list
				FILE[$name]=$file
				NAMES+=("$name")
				;;
			*) die "$path: not understood: $line" ;;
			esac
		done <"$path"
	done
	for name in "${NAMES[@]}"; do
		[ -f "$TOP/${FILE[$name]-}" ] || die "$name: no file"
		[ -n "${OLD[$name]-}" ] || die "$name: no line"
		[ -n "${TEST[$name]-}" ] || die "$name: no test"
	done
}

# Sets NAMES to the mutations that a pattern or a list's name stands for.
choose()
{
	local all=("${NAMES[@]}") name pattern

	NAMES=()
	for name in "${all[@]}"; do
		for pattern in "$@"; do
			# shellcheck disable=SC2053 # a pattern
			if [[ $name == $pattern || ${LIST[$name]} == "$pattern" ]]
			then
				NAMES+=("$name")
				break
			fi
		done
	done
	[ ${#NAMES[@]} -gt 0 ] || die "no mutation is named $*"
}

# ---- copies ------------------------------------------------------------------

# copy_sources DIR: copies the sources, with what autoreconf made. A file that has
# changed since the last copy gets the present time, so that make sees it; a
# mutation that was left in DIR goes.
copy_sources()
{
	local how=-a

	[ ! -d "$1/src" ] || how=-rlpc
	mkdir -p "$1/src" && rsync $how --delete --exclude='/build*' \
		--exclude=/.git --exclude=/autom4te.cache "$TOP/" "$1/src/"
}

# copy_build FROM TO: what tests leave there may vanish meanwhile.
copy_build()
{
	rsync -a --exclude=/prefix --exclude='*.log' --exclude='*.trs' \
		"$1/" "$2/" || [ $? -eq 24 ]
}

# prepare: each worker has sources, and in them a build that finds these by a
# relative path: a copy of $BUILT, or one that is made here.
prepare()
{
	local i src

	for ((i = 1; i <= JOBS; i++)); do
		src=$WORK/$i/src
		copy_sources "$WORK/$i" || return 1
		[ -f "$src/configure" ] ||
			(cd "$src" && mkdir -p m4 && autoreconf -fi) || return 1
		if [ ! -d "$src/$DIR" ]; then
			mkdir -p "$src/$DIR" || return 1
			if [ -z "$BUILT" ] && [ $i -eq 1 ]; then
				(cd "$src/$DIR" && ../../configure \
					ac_cv_prog_PANDOC=) || return 1
			else
				copy_build "${BUILT:-$WORK/1/src/$DIR}" \
					"$src/$DIR" || return 1
			fi
		fi
		(cd "$src/$DIR" && made -j "$(nproc)" all &&
			made -j "$(nproc)" check TESTS= CHECK_TREE=:) || return 1
	done
}

# Less optimized, and whatever gcc warns of.
made()
{
	make CFLAGS="-O1 -Wno-error" "$@"
}

# ---- one mutation ------------------------------------------------------------

# change FROM TO NAME: writes TO; fails where the line is not found.
change()
{
	at=${AT[$3]-} old=${OLD[$3]} new=${NEW[$3]-} awk '
		function trim(s) {
			gsub(/^[ \t]+|[ \t]+$/, "", s)
			return s
		}
		BEGIN { old = trim(ENVIRON["old"]); here = ENVIRON["at"] == "" }
		here && !done && trim($0) == old {
			done = 1
			print ENVIRON["new"]
			next
		}
		index($0, ENVIRON["at"]) { here = 1 }
		{ print }
		END { exit !done }' "$1" >"$2"
}

# Checks, without running anything, that each line is where its entry says, and
# that a unit test has the name.
check_lines()
{
	local name words failed=0

	words=" $(find "$TOP"/prov/mrrc/test "$TOP"/util/*/test -name '*.c' \
		-exec cat {} + | tr -cs '[:alnum:]_' '\n' | sort -u | tr '\n' ' ')"
	for name in "${NAMES[@]}"; do
		[[ ${TEST[$name]%% *} != test || $words == *" ${TEST[$name]##* } "* ]] || {
			echo "FAIL $name: there is no ${TEST[$name]}"
			failed=$((failed + 1))
		}
		change "$TOP/${FILE[$name]}" /dev/null "$name" || {
			echo "FAIL $name: its line is not in ${FILE[$name]}"
			failed=$((failed + 1))
		}
	done
	echo "$((${#NAMES[@]} - failed)) passed, $failed failed"
	[ $failed -eq 0 ]
}

# The programs that scripts run, by their folders in a build.
SCRIPTED="util/fi_mrrc_get util/fi_mrrc_serve"
SCRIPTED="$SCRIPTED fabtests/fi_mrrc_serve_crowd"
SCRIPTED="$SCRIPTED fabtests/fi_mrrc_serve_endless"
SCRIPTED="$SCRIPTED fabtests/fi_mrrc_serve_hostile"
SCRIPTED="$SCRIPTED fabtests/fi_mrrc_serve_late"
SCRIPTED="$SCRIPTED fabtests/fi_mrrc_serve_writer"
SCRIPTED="$SCRIPTED util/fi_mrrc_trace fabtests/fi_mrrc_completions"
readonly SCRIPTED="$SCRIPTED util/fi_mrrc_stat fabtests/fi_mrrc_live fabtests/deny_uffd"

unit_program()
{
	case $1 in
	*/*) echo "$1" ;;
	*) echo "prov/mrrc/test/$1" ;;
	esac
}

# Prints what make has to make for a test.
targets()
{
	case $1 in
	test) unit_program "$2" ;;
	fabtest) echo "libmrrc-fi.la libhook_mrrc-fi.la fabtests/fi_mrrc_$2" ;;
	script) echo "libmrrc-fi.la $SCRIPTED" ;;
	esac
}

# The file with the seconds that a test may take.
limit_file()
{
	echo "$WORK/limit/${1//\//+}.${2-}"
}

# run TEST...: runs a test, written as in a list, in a build; without the word
# TEST all of its case.
run()
{
	local limit=$LIMIT

	read -r limit 2>/dev/null <"$(limit_file "$2" "${3-}")"
	case $1 in
	test)
		# shellcheck disable=SC2097,SC2098 # for the program
		CK_RUN_CASE=${3-} MRRC_TEST=${4-} CK_VERBOSITY=normal \
			timeout -k 5 "$limit" "$(unit_program "$2")"
		;;
	fabtest)
		FI_PROVIDER_PATH=$PWD/.libs timeout -k 5 "$limit" \
			"$TOP/fabtests/scripts/runfabtests.sh" \
			-b "$PWD/fabtests" -T $((3 * LIMIT / 2)) -t "$2" \
			"${3-tcp;ofi_mrrc}"
		;;
	script)
		mkdir -p bin
		# shellcheck disable=SC2046,SC2086 # a list
		(cd bin && ln -sf $(printf '../%s ' $SCRIPTED) .)
		FI_PROVIDER_PATH=$PWD/.libs timeout -k 5 "$limit" \
			"$TOP/fabtests/scripts/test_$2.sh" -b "$PWD/bin" -t "$3"
		;;
	esac </dev/null
}

# seen STATUS LOG TEST...: true if the log is of that test, and it failed.
seen()
{
	local rc=$1 log=$2

	shift 2
	[ "$rc" -ne 0 ] || return 1
	# a signal or no end are as good as a failed assertion
	[ "$rc" -lt 124 ] || return 0
	case $1 in
	test)
		# and so is Check's own end (2), when threads fail at once; S is
		# a failure in what sets the test up
		[ $# -lt 3 ] || [ "$rc" -eq 2 ] ||
			grep -qE ":[FES]:$3:" "$log"
		;;
	fabtest)
		grep -q "^FAIL $2 " "$log"
		;;
	script)
		grep -q "^FAIL $3\$" "$log"
		;;
	esac
}

# The tests that failed in a unit program's log, or how it died.
names_seen()
{
	local names

	names=$(sed -nE 's/^[^ ]*:[0-9]+:[FES]:[^:]*:([^:]*):.*/\1/p' "$2" |
		sort -u | head -n 3 | tr '\n' ' ')
	echo "${names:-status $1}"
}

# Prints how a run of a test ended, if it did not end as it should have.
reason()
{
	if [ "$1" -eq 0 ]; then
		echo "not seen by"
	else
		echo "status $1, which is not a failure of"
	fi
}

# mutate NAME: tries a mutation in this worker's build, the current directory.
mutate()
{
	local name=$1 source=../../${FILE[$1]} log=$WORK/log/$1.log rc
	local start=$SECONDS test

	read -r -a test <<<"${TEST[$name]}"
	cp -p "$source" "$WORK/log/$name.orig" || return 1
	if ! change "$WORK/log/$name.orig" "$source" "$name"; then
		rc="FAIL $name: its line is not in ${FILE[$name]}"
	elif ! eval "made $(targets "${test[@]}")" >"$log" 2>&1; then
		rc="FAIL $name: does not compile, see $log"
	else
		run "${test[@]}" >>"$log" 2>&1
		rc=$?
		# where threads race, another test of the case may see it
		if [ "${test[0]}" = test ] && ! seen $rc "$log" "${test[@]}"
		then
			run "${test[@]:0:3}" >>"$log" 2>&1
			rc=$?
		fi
		if seen $rc "$log" "${test[@]}"; then
			rc="PASS $name: $(names_seen $rc "$log")"
		else
			rc="FAIL $name: $(reason $rc)"
		fi
	fi
	cat "$WORK/log/$name.orig" >"$source"
	rm -f "$WORK/log/$name.orig"
	printf '%s, by %s (%s s)\n' "$rc" "${test[*]:1:2}" $((SECONDS - start))
}

# unchanged TEST...: once in a run, checks that a case passes without a mutation;
# otherwise a failure with one means nothing. A case that takes five times as
# long later, and some seconds, hangs; a script, which has limits itself, is
# given more.
unchanged()
{
	local words="$*" log start=$SECONDS limit

	words=${words//[\/ ;]/+}
	mkdir "$WORK/tried/$words" 2>/dev/null || return 0
	echo $((10 * LIMIT)) >"$(limit_file "$2" "${3-}")"
	log=$WORK/log/unchanged.$words.log
	if ! eval "made $(targets "$@")" >"$log" 2>&1 </dev/null ||
		! run "$@" >>"$log" 2>&1; then
		echo "FAIL: without a mutation: ${*:2}"
		sed 's/^/  | /' "$log"
	fi
	limit=$((15 + 5 * (SECONDS - start)))
	if [ "$1" != test ]; then
		limit=$((limit + 2 * LIMIT))
	elif [ $limit -gt $LIMIT ]; then
		limit=$LIMIT
	fi
	echo $limit >"$(limit_file "$2" "${3-}")"
}

# worker I: takes the FILES that no other worker has taken, with all mutations of
# each, which saves compiling it again and again.
worker()
{
	local name file n=0

	cd "$WORK/$1/src/$DIR" || exit 2
	for file in "${FILES[@]}"; do
		[ $SECONDS -lt "$END" ] || return 0
		mkdir "$WORK/taken/$((n++))" 2>/dev/null || continue
		while read -r -a test; do
			unchanged "${test[@]}"
		done < <(for name in "${NAMES[@]}"; do
			# the name of a test within a case says what to look for
			[ "${FILE[$name]}" != "$file" ] ||
				cut -d' ' -f1-3 <<<"${TEST[$name]}"
		done | sort -u)
		for name in "${NAMES[@]}"; do
			[ "${FILE[$name]}" = "$file" ] || continue
			[ $SECONDS -lt "$END" ] || return 0
			mutate "$name"
		done
	done
}

# arrange COMMITS: sets FILES to the files of NAMES. Where time is limited four of
# five are files that the last COMMITS commits changed, as long as there are some.
arrange()
{
	local commits=$1 file hash recent=() rest=() changed

	mapfile -t FILES < <(for name in "${NAMES[@]}"; do
		echo "${FILE[$name]}"
	done | awk '!seen[$0]++')
	[ "$END" -lt $NEVER ] || return 0
	hash=$(git -C "$TOP" rev-parse HEAD 2>/dev/null || echo 0)
	changed=$(git -C "$TOP" log "-$commits" --name-only --format= 2>/dev/null |
		sort -u)
	while read -r file; do
		if grep -qxF "$file" <<<"$changed"; then
			recent+=("$file")
		else
			rest+=("$file")
		fi
	done < <(printf '%s\n' "${FILES[@]}" |
		shuf --random-source=<(yes "$hash" 2>/dev/null))
	FILES=()
	while [ ${#recent[@]} -gt 0 ] || [ ${#rest[@]} -gt 0 ]; do
		FILES+=("${recent[@]:0:4}" "${rest[@]:0:1}")
		recent=("${recent[@]:4}") rest=("${rest[@]:1}")
	done
}

# ---- main --------------------------------------------------------------------

main()
{
	local i n opt only='' out commits=0 left

	WORK=${OFI_MRRC_BUILD:-$TOP/build}/mutations JOBS=$(nproc) END=$NEVER
	BUILT=
	while getopts :w:b:j:t:r:clh-: opt; do
		case $opt in
		b) ! grep -qsx 'srcdir = \.\./\.\.' "$OPTARG/Makefile" ||
			BUILT=$OPTARG ;;
		t) END=$OPTARG ;;
		r) commits=$OPTARG ;;
		w) WORK=$OPTARG ;;
		j) JOBS=$OPTARG ;;
		c|l) only=$opt ;;
		h|-) usage; exit 0 ;;
		*) usage >&2; exit 2 ;;
		esac
	done
	shift $((OPTIND - 1))
	read_lists
	[ $# -eq 0 ] || choose "$@"
	if [ "$only" = c ]; then
		check_lines
		exit
	fi
	if [ "$only" = l ]; then
		for i in "${NAMES[@]}"; do
			printf '%-6s %-32s %s\n' "${LIST[$i]}" "$i" "${TEST[$i]}"
		done
		exit 0
	fi

	mkdir -p "$WORK/log" && WORK=$(cd "$WORK" && pwd) || exit 2
	rm -rf "$WORK"/{taken,tried,limit} &&
		mkdir "$WORK"/{taken,tried,limit} || exit 2
	arrange "$commits"
	prepare >"$WORK/log/build.log" 2>&1 || {
		tail -n 20 "$WORK/log/build.log"
		die "the copies cannot be built: $WORK/log/build.log"
	}
	unset FI_PROVIDER FI_HOOK FI_PROVIDER_PATH
	# as test.sh without --all: that is to see them
	export FT_PERCENT=20 FT_HANGS=10 HEAP_OPERATIONS=20000 MRRC_RACE_MS=100
	out=$WORK/log/results
	{
		for ((i = 1; i <= JOBS; i++)); do
			worker $i &
		done
		wait
	} | tee "$out"
	i=$(grep -c '^PASS' "$out")
	n=$(grep -c '^FAIL' "$out")
	left=$((${#NAMES[@]} - i - $(grep -c '^FAIL ' "$out")))
	if [ "$END" -lt $NEVER ]; then
		echo "$left more: no time"
	else
		n=$((n + left))
	fi
	echo "$i passed, $n failed"
	[ "$n" -eq 0 ]
}

# one line: nothing is read from this file once main() has begun
main "$@"; exit
