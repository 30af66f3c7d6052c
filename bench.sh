#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh: measure one thing.  The last line is "NAME: VALUE (goal GOAL)".

set -u
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
ME=${0##*/}
# shellcheck source=util/sh/common.sh
. "$TOP/util/sh/common.sh"

readonly RC_MISSED=1 RC_CANNOT=2

# name and what it measures
readonly BENCHMARKS="policies  the default policy against pin-down, MRE and the future (simulated)
sim  how fast the simulator is: a million requests x 20 cells
layer  instructions and time that our layer adds to calls with a descriptor (tcp)
hit  a hit in the cache and its release, against a mutex and a tree
race  10 million lookups against pages being replaced; prices of a hit and an unmap
cwrate  streams of small transactions: conditional writes against messages and writes (tcp)
alloc  fi_mr_alloc and fi_mr_free against malloc and free: glibc's, jemalloc, mimalloc
pressure  writes from more memory than stays registered (verbs, in the guest)
recorder  what recording every request costs a loop of writes without a descriptor, and MPI
rendezvous  1 MiB messages over ofi_rxm, raw against both forms (verbs, in the guest)"

usage()
{
	cat <<-EOT
	Usage: $ME [NAME]

	Runs the benchmark NAME and compares with its goal. Without NAME, lists
	them:

	EOT
	list
	cat <<-EOT

	Builds and logs go to \${OFI_MRRC_BUILD:-build}.
	Exit status: 0 goal met, $RC_MISSED missed, $RC_CANNOT could not run.
	EOT
}

list()
{
	printf '%s\n' "$BENCHMARKS"
}

cannot()
{
	warn "$*"
	say "$NAME: could not run ($*)"
	exit $RC_CANNOT
}

# result VALUE GOAL MET: the last line and the exit status.
result()
{
	say "$NAME: $1 (goal $2)"
	[ "$3" = yes ] && exit 0
	exit $RC_MISSED
}

# ---- layer -------------------------------------------------------------------

readonly LAYER_OPS=1000
readonly POST_GOAL=20 COMPLETION_GOAL=40 RATE_GOAL=97

# Instructions in our library, and in what it calls that is not the core:
# of a callgrind profile, for each of so many operations.
layer_own()
{
	awk -v ops=$LAYER_OPS '
		# names are written once, then referred to as (number)
		function name(line,   id, text) {
			sub(/^[a-z]*=/, "", line)
			id = line
			sub(/\).*/, ")", id)
			text = substr(line, length(id) + 2)
			if (text != "")
				names[id] = text
			return names[id]
		}
		function ours(object) { return object ~ /libmrrc/ }
		/^ob=/ { object = name($0) }
		/^cob=/ { callee = name($0) }
		/^calls=/ {
			if (callee == "")
				callee = object
			getline
			if (ours(object) && !ours(callee) &&
			    callee !~ /libfabric/)
				sum += $2
			callee = ""
			next
		}
		/^[0-9+*-]/ && ours(object) { sum += $2 }
		END { printf "%.1f", sum / ops }' "$1"
}

layer_total()
{
	awk -v ops=$LAYER_OPS '/^summary:/ { printf "%.1f", $2 / ops }' "$1"
}

# layer_profile PROVIDER OPERATION FUNCTION FILE
layer_profile()
{
	rm -f "$4"
	valgrind --tool=callgrind --toggle-collect="layer_$3" \
		--callgrind-out-file="$4" \
		"$LAYER_BENCH" -p "$1" -m "$2" -I $LAYER_OPS >"$4.log" 2>&1 &&
		[ -s "$4" ] && return 0
	tail -n 20 "$4.log" >&2
	return 1
}

larger()
{
	awk -v a="$1" -v b="$2" 'BEGIN { print (a > b ? a : b) }'
}

halve()
{
	awk -v x="$1" 'BEGIN { print x / 2 }'
}

at_most()
{
	awk -v a="$1" -v b="$2" 'BEGIN { exit !(a <= b) }'
}

# Prints the table and sets POST and COMPLETION, the dearest of each.
layer_instructions()
{
	local dir=$1 name op fn raw stack own

	say "Instructions for each call (callgrind, $LAYER_OPS calls)"
	printf '  %-26s %10s %10s %10s\n' call "raw, all" "stack, all" \
		"our layer"
	while read -r name op fn; do
		if ! layer_profile tcp "$op" "$fn" "$dir/raw" ||
		   ! layer_profile "tcp;ofi_mrrc" "$op" "$fn" "$dir/stack"; then
			cannot "callgrind failed for $op"
		fi
		raw=$(layer_total "$dir/raw")
		stack=$(layer_total "$dir/stack")
		own=$(layer_own "$dir/stack")
		# nothing of ours at all means that nothing was measured
		at_most "$own" 0 && cannot "our layer was not in the profile"
		if [ "$op-$fn" = send-completion ]; then
			# one transmitted and one received for each operation
			raw=$(halve "$raw")
			stack=$(halve "$stack")
			own=$(halve "$own")
		fi
		printf '  %-26s %10.0f %10.0f %10.1f\n' "${name//_/ }" "$raw" \
			"$stack" "$own"
		case $fn in
		completion) COMPLETION=$(larger "$COMPLETION" "$own") ;;
		*) POST=$(larger "$POST" "$own") ;;
		esac
	done <<-EOT
	send send send
	receive send recv
	write write write
	completion_send/receive send completion
	completion_write write completion
	EOT
}

# Prints the table and sets RATE and LATENCY, raw over stack in percent.
layer_times()
{
	local table=$1

	logged "rate and latency, raw and stacked in turn" "$table" \
		"$LAYER_BENCH" || cannot "layer_bench failed"
	say
	printf '  %-26s %10s %10s %10s\n' "microseconds per message" raw \
		stack "raw/stack"
	awk '/^(rate|latency) / {
		printf "  %-26s %10.3f %10.3f %9.1f%%\n", \
			$1 == "rate" ? "windows of 50" : "ping-pong", $2, $3, $4
	}' "$table"
	RATE=$(awk '/^rate / { print $4 }' "$table")
	LATENCY=$(awk '/^latency / { print $4 }' "$table")
	[ -n "$RATE$LATENCY" ] || cannot "layer_bench said nothing"
}

bench_layer()
{
	local dir=$BUILD/bench/layer met=no

	need "$BUILD_PACKAGES valgrind" || cannot "packages are missing"
	build_installed bench || cannot "the build failed"
	use_provider bench || cannot "no provider"
	LAYER_BENCH=$BUILD/bench/fabtests/benchmarks/layer_bench
	[ -x "$LAYER_BENCH" ] || cannot "no layer_bench was built"
	export FI_OFI_MRRC_REGISTER=always
	mkdir -p "$dir"
	POST=0 COMPLETION=0 RATE=0 LATENCY=0

	say
	say "Set-up: $(setup_line)"
	say "tcp over loopback, 8-byte messages, both ends in one thread;"
	say "descriptors given, on endpoints that have resolved null descriptors."
	say
	layer_instructions "$dir"
	say
	layer_times "$dir/times"
	say
	if at_most "$POST" $POST_GOAL &&
	   at_most "$COMPLETION" $COMPLETION_GOAL &&
	   at_most $RATE_GOAL "$RATE" && at_most $RATE_GOAL "$LATENCY"; then
		met=yes
	fi
	# as exact as the comparison: no rounding up to the goal
	result "post $POST, completion $COMPLETION, rate $RATE%, latency $LATENCY%" \
		"post <= $POST_GOAL, completion <= $COMPLETION_GOAL, rate and latency >= $RATE_GOAL%" \
		$met
}

# ---- race --------------------------------------------------------------------

# lookups and seconds to make; of what userfaultfd alone adds to an unmap, what
# hooks may add in percent: ending a watch goes through the pages, which leaves
# some; the sleep that they save is short where processors are idle
readonly RACE_LOOKUPS=10000000 RACE_SECONDS=150

bench_race()
{
	local dir=$BUILD/bench/race met=no line lookups stale blind added

	need "$BUILD_PACKAGES" || cannot "packages are missing"
	build bench "--prefix=$BUILD/bench/prefix" || cannot "the build failed"
	mkdir -p "$dir"
	logged "make race_bench" "$dir/make" make -C "$BUILD/bench" \
		prov/mrrc/test/race_bench || cannot "race_bench was not built"
	logged "prices, lookups with and without protection" "$dir/out" \
		"$BUILD/bench/prov/mrrc/test/race_bench" $RACE_LOOKUPS \
		$RACE_SECONDS || cannot "userfaultfd or the hooks do not work here"
	line=$(sed -n 's/^RESULT //p' "$dir/out")
	# shellcheck disable=SC2086 # numbers
	set -- $line
	[ $# -eq 15 ] || cannot "race_bench said nothing"
	lookups=$1 stale=$2 blind=$3
	# of munmap: without a monitor, userfaultfd alone, with hooks
	added=$(awk -v plain="$7" -v uffd="$8" -v hooks="$9" 'BEGIN {
		if (uffd > plain)
			printf "%.0f", 100 * (hooks - plain) / (uffd - plain)
		}')
	say
	say "Set-up: $(setup_line); probe, userfaultfd and hooks are the default."
	say "Medians of 15 rounds in turn, 100 samples each; malloc's threshold"
	say "is fixed, so that each block is mapped. A stale hit: a registration"
	say "of older pages, in a lookup that began when the new ones were there."
	say
	grep -v '^RESULT' "$dir/out"
	say
	[ -z "$added" ] || say "munmap of what is cached: hooks add $added% of" \
		"what userfaultfd adds."
	if [ "$lookups" -ge $RACE_LOOKUPS ] && [ "$stale" -eq 0 ] &&
	   [ "$blind" -gt 0 ]; then
		met=yes
	fi
	result "$stale stale of $lookups lookups, $blind unprotected" \
		"0 of >= $RACE_LOOKUPS, > 0 unprotected" $met
}

# ---- cwrate ------------------------------------------------------------------

readonly CWRATE_GOAL=1.5

bench_cwrate()
{
	local out=$BUILD/bench/cwrate value

	need "$BUILD_PACKAGES" || cannot "packages are missing"
	build_installed bench || cannot "the build failed"
	logged "both ways in turn" "$out" \
		env FI_PROVIDER_PATH="$BUILD/bench/prefix/lib/libfabric" \
		"$BUILD/bench/fabtests/benchmarks/cwrate_bench" \
		-p "tcp;ofi_mrrc" -t 600 || cannot "the benchmark failed"
	say
	say "Set-up: $(setup_line); both sides are threads of one process that"
	say "look at their queues so many us apart, medians of 7 rounds of each."
	say "Over tcp each message of conditional writes is a system call, where"
	say "messages that tell of many places at once need fewer."
	say
	cat "$out"
	say
	value=$(awk '$1 == 16 && $2 == 4096 && $3 > 0 { print $6 }' "$out")
	[ -n "$value" ] || cannot "no result for depth 16 and 4 KiB"
	if at_most $CWRATE_GOAL "$value"; then
		result "$value times" ">= $CWRATE_GOAL" yes
	fi
	result "$value times" ">= $CWRATE_GOAL" no
}

# ---- alloc -------------------------------------------------------------------

readonly ALLOC_GOAL=1 ALLOC_LARGE=65536 ALLOC_LARGE_GOAL=3

# alloc_preloaded LIBRARY OUT: the same pairs by another malloc.
alloc_preloaded()
{
	local lib

	lib=$(ldconfig -p | awk -v name="$1" 'index($1, name) == 1 {
		print $NF; exit }')
	[ -n "$lib" ] || cannot "no $1"
	logged "malloc of $1" "$2" env LD_PRELOAD="$lib" "$ALLOC_BENCH" -m ||
		cannot "alloc_bench failed with $1"
}

bench_alloc()
{
	local dir=$BUILD/bench/alloc worst large where met=no

	need "$BUILD_PACKAGES libjemalloc2 libmimalloc2.0" ||
		cannot "packages are missing"
	build_installed bench || cannot "the build failed"
	use_provider bench || cannot "no provider"
	ALLOC_BENCH=$BUILD/bench/fabtests/benchmarks/alloc_bench
	[ -x "$ALLOC_BENCH" ] || cannot "no alloc_bench was built"
	mkdir -p "$dir"
	logged "fi_mr_alloc and malloc in turn" "$dir/both" "$ALLOC_BENCH" ||
		cannot "alloc_bench failed"
	alloc_preloaded libjemalloc.so "$dir/jemalloc"
	alloc_preloaded libmimalloc.so "$dir/mimalloc"

	say
	say "Set-up: $(setup_line)"
	say "Nanoseconds for an allocation and its free, medians of rounds that"
	say "alternate. reuse: one at a time; batch: 16 live; remote: 16 at a"
	say "time, freed by another thread. jemalloc and mimalloc in processes"
	say "of their own."
	say
	paste -d' ' "$dir/both" "$dir/jemalloc" "$dir/mimalloc" | sort -s -k1,2 |
		awk '
		$1 " " $2 != last {
			printf "%s, %d thread%s\n", $1, $2, ($2 > 1 ? "s" : "")
			printf "  %8s %10s %11s %8s %10s %10s\n", "bytes",
				"glibc", "fi_mr_alloc", "glibc/it",
				"jemalloc", "mimalloc"
			last = $1 " " $2
		}
		NF == 13 {
			printf "  %8d %10.1f %11.1f %8.2f %10.1f %10.1f\n",
				$3, $4, $5, $4 / $5, $9, $13
		}'
	read -r worst where large < <(awk -v from=$ALLOC_LARGE '
		{ r = $4 / $5 }
		!n++ || r < worst { worst = r; where = $1 "/" $2 "/" $3 }
		$3 >= from && (!m++ || r < large) { large = r }
		END { if (m) printf "%.2f %s %.2f\n", worst, where, large }' \
		"$dir/both")
	[ -n "$large" ] || cannot "alloc_bench said nothing"
	say
	if at_most $ALLOC_GOAL "$worst" &&
	   at_most $ALLOC_LARGE_GOAL "$large"; then
		met=yes
	fi
	result "glibc/it at least $worst ($where), from 64 KiB on $large" \
		">= $ALLOC_GOAL, from 64 KiB on >= $ALLOC_LARGE_GOAL" $met
}

# ---- rendezvous --------------------------------------------------------------

readonly RNDV_ROUNDS=9 RNDV_GOAL=0.98

# In the guest: each stack in turn, so that what changes there hits all.
rndv_guest()
{
	local round

	for ((round = 0; round < RNDV_ROUNDS; round++)); do
		echo "raw $("$1" -p "verbs;ofi_rxm")"
		echo "hook $(FI_HOOK=mrrc "$1" -p "verbs;ofi_rxm")"
		echo "over $("$1" -p "verbs;ofi_rxm;ofi_mrrc")"
	done
	FI_HOOK=mrrc FI_LOG_LEVEL=info FI_LOG_PROV=ofi_mrrc \
		"$1" -p "verbs;ofi_rxm" 2>&1 |
		sed -n 's/.*> verbs: \([0-9]* lookups, [0-9]* hits\).*/counted \1/p'
}

# rndv_median NAME FILE
rndv_median()
{
	sed -n "s/^$1 median //p" "$2" | sort -n |
		awk '{ t[NR] = $1 } END { print t[int((NR + 1) / 2)] }'
}

bench_rendezvous()
{
	local dir=$BUILD/bench/rendezvous out raw hook over counted met=no

	need "$BUILD_PACKAGES" || cannot "packages are missing"
	build_installed bench || cannot "the build failed"
	need_guest || cannot "the guest cannot be set up"
	mkdir -p "$dir"
	out=$dir/out
	logged "raw and both forms in turn, in the guest" "$out" \
		"$GUEST" -t 1200 -e FI_UNIVERSE_SIZE=16 \
		-e FI_PROVIDER_PATH="$BUILD/bench/prefix/lib/libfabric" -- \
		bash -c "RNDV_ROUNDS=$RNDV_ROUNDS; $(declare -f rndv_guest)
		rndv_guest $BUILD/bench/fabtests/benchmarks/rndv_bench" ||
		cannot "the guest failed"
	raw=$(rndv_median raw "$out")
	hook=$(rndv_median hook "$out")
	over=$(rndv_median over "$out")
	if [ -z "$raw" ] || [ -z "$hook" ] || [ -z "$over" ]; then
		cannot "the guest said nothing"
	fi

	counted=$(sed -n 's/^counted //p' "$out" | paste -sd+)
	say
	say "Set-up: $(setup_line), Soft-RoCE in an emulated guest;"
	say "1 MiB from plain buffers, both ends in one thread, medians of"
	say "$RNDV_ROUNDS runs of each, interleaved. Raw has libfabric's cache."
	say
	printf '  %-28s %14s %10s\n' stack "us a message" "raw / it"
	printf '  %-28s %14s %10s\n' "verbs;ofi_rxm" "$raw" ""
	printf '  %-28s %14s %10.3f\n' "the same, FI_HOOK=mrrc" "$hook" \
		"$(ratio "$raw" "$hook")"
	printf '  %-28s %14s %10.3f\n' "verbs;ofi_rxm;ofi_mrrc" "$over" \
		"$(ratio "$raw" "$over")"
	say "  ofi_rxm's registrations with the hook: ${counted:-none seen}"
	say
	if [ -n "$counted" ] &&
	   at_most $RNDV_GOAL "$(ratio "$raw" "$hook")" &&
	   at_most $RNDV_GOAL "$(ratio "$raw" "$over")"; then
		met=yes
	fi
	result "hook $(ratio "$raw" "$hook"), over ofi_mrrc $(ratio "$raw" "$over")" \
		"both >= $RNDV_GOAL of raw" $met
}

ratio()
{
	awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f", a / b }'
}

# ---- hit ---------------------------------------------------------------------

readonly HIT_NS=10 HIT_CALLS=1.7 HIT_ONE=10 HIT_TWO=13

bench_hit()
{
	local table=$BUILD/bench/hit met=no program ns calls one two hone htwo

	need "$BUILD_PACKAGES" || cannot "packages are missing"
	build_installed bench || cannot "the build failed"
	program=$BUILD/bench/prov/mrrc/test/bench_hit
	[ -x "$program" ] || cannot "no bench_hit was built"
	logged "both sides in turn" "$table" "$program" ||
		cannot "userfaultfd is not to be had, or bench_hit failed"

	say
	say "Set-up: $(setup_line); regions of 16 KiB, each looked up and"
	say "released in turn, nanoseconds of both together; medians of 15"
	say "rounds. \"tree\": a mutex, a red-black tree and a list of those not"
	say "in use, as in libfabric. A process with one thread asks the kernel"
	say "nothing; with more, each lookup asks whether memory is quiet, which"
	say "is a system call (\"probe\") and counted in null ones, unless hooks"
	say "are relied on (FI_OFI_MRRC_PROBE=hooked)."
	say
	awk '
		BEGIN {
			printf "  %7s %-12s %-6s %8s %8s %8s %6s %6s\n", \
				"regions", "threads", "writer", "tree", "ours", \
				"tree/us", "probe", "nulls"
		}
		/^case/ {
			printf "  %7d %-12s %-6s %8.1f %8.1f %8.1f %6s %6s\n", \
				$2, $3 ? $3 : "1, alone", $4, $5, $6, $5 / $6, \
				$7, $7 == "yes" ? sprintf("%.2f", $6 / $8) : "-"
		}' "$table"
	say
	read -r ns calls one two hone htwo < <(awk '
		$2 != 100 || $4 == "yes" { next }
		$3 == 0 { ns = $6 }
		$3 == 1 && $7 == "yes" { calls = $6 / $8 }
		{ times[$3 $7] = $5 / $6 }
		END {
			printf "%.1f %.2f %.2f %.2f %.2f %.2f\n", ns, calls, \
				times["1yes"], times["2yes"], \
				times["1hooked"], times["2hooked"]
		}' "$table")
	if at_most "$ns" $HIT_NS && at_most "$calls" $HIT_CALLS &&
	   at_most $HIT_ONE "$one" && at_most $HIT_TWO "$two"; then
		met=yes
	fi
	say "  With hooks relied on, which is not the default, a hit is $hone times"
	say "  as fast as the tree with one thread, and $htwo times with two."
	say
	result "alone $ns ns; with a probe $calls null calls, 1 thread $one times, 2 threads $two times as fast" \
		"<= $HIT_NS ns; <= $HIT_CALLS, >= $HIT_ONE, >= $HIT_TWO" $met
}

# ---- pressure ----------------------------------------------------------------

readonly PRESSURE_GOAL=1.05	# of libfabric's cache, in any row

bench_pressure()
{
	local dir=$BUILD/bench/pressure out worst pressed each met=no

	need "$BUILD_PACKAGES" || cannot "packages are missing"
	build_installed bench || cannot "the build failed"
	need_guest || cannot "the guest cannot be set up"
	mkdir -p "$dir"
	out=$dir/out
	logged "the three in turn, in the guest" "$out" \
		"$GUEST" -t 1200 \
		-e FI_PROVIDER_PATH="$BUILD/bench/prefix/lib/libfabric" -- \
		"$BUILD/bench/fabtests/benchmarks/pressure_bench" \
		-s 10.0.0.1 || cannot "the guest failed"
	say
	say "Set-up: $(setup_line), Soft-RoCE in an emulated guest;"
	say "RMA writes, one at a time, microseconds each: registering each"
	say "time, over libfabric's cache, and null descriptors over ofi_mrrc."
	say "Limits of 64 regions and 32 MiB; the set is so many times that."
	say
	printf '  %-6s %4s %-5s %11s %11s %11s %11s\n' size set draw each \
		cache null null/cache
	awk 'NF == 7 && $3 ~ /^(even|zipf)$/ {
		printf "  %-6s %4s %-5s %11.1f %11.1f %11.1f %11.3f\n", \
			$1, $2, $3, $4, $5, $6, $7
	}' "$out"
	# worst row; geometric means beyond the limit, of cache and of each
	read -r worst pressed each < <(awk 'NF == 7 && $3 ~ /^(even|zipf)$/ {
			if ($7 > worst)
				worst = $7
			if ($2 > 1) {
				sum += log($7)
				each += log($6 / $4)
				n++
			}
		}
		END {
			if (n)
				printf "%.3f %.3f %.3f\n", worst,
					exp(sum / n), exp(each / n)
		}' "$out")
	[ -n "${each-}" ] || cannot "the guest said nothing"
	say
	say "Beyond the limit: $pressed of libfabric's cache, $each of"
	say "registering each time (geometric means)."
	at_most "$worst" $PRESSURE_GOAL && at_most "$pressed" 1 && met=yes
	result "worst row $worst, beyond the limit $pressed of libfabric's cache" \
		"worst <= $PRESSURE_GOAL, beyond the limit <= 1" $met
}

# ---- recorder ----------------------------------------------------------------

readonly RECORDER_ROUNDS=15 RECORDER_GOAL=3

# recorder_run OUT SIDE COMMAND...: SIDE is "on" or "off"
recorder_run()
{
	local out=$1 side=$2

	shift 2
	if [ "$side" = on ]; then
		export FI_OFI_MRRC_TRACE=$out.%p.trace
	else
		unset FI_OFI_MRRC_TRACE
	fi
	"$@" | sed "s/^/$side /"
	rm -f "$out".*.trace
}

# Both sides in turn; who goes first changes.
recorder_rounds()
{
	local out=$1 round first second

	shift
	for ((round = 0; round < RECORDER_ROUNDS; round++)); do
		first=off second=on
		[ $((round % 2)) -eq 0 ] || first=on second=off
		recorder_run "$out" $first "$@" || return 1
		recorder_run "$out" $second "$@" || return 1
	done
}

# recorder_median FILE SIDE WHAT: of "SIDE WHAT VALUE"
recorder_median()
{
	sed -n "s/^$2 $3 //p" "$1" | sort -n |
		awk '{ t[NR] = $1 } END { print t[int((NR + 1) / 2)] }'
}

# recorder_row FILE WHAT TITLE: prints both, sets SLOWER, in percent: the
# median of the rounds
recorder_row()
{
	local off on

	off=$(recorder_median "$1" off "$2")
	on=$(recorder_median "$1" on "$2")
	if [ -z "$off" ] || [ -z "$on" ]; then
		cannot "nothing was measured of $2"
	fi
	# of each round on its own, as what else runs here changes
	SLOWER=$(paste <(sed -n "s/^off $2 //p" "$1") \
		<(sed -n "s/^on $2 //p" "$1") | awk '{ print $2 / $1 }' |
		sort -n | awk '{ t[NR] = $1 }
			END { printf "%.1f", 100 * (t[int((NR + 1) / 2)] - 1) }')
	printf '  %-34s %10s %10s %8s%%\n' "$3" "$off" "$on" "$SLOWER"
}

# One ping-pong of Open MPI through the hooking form; "mpi US".
recorder_mpi()
{
	mpirun --allow-run-as-root --oversubscribe -n 2 --mca pml cm \
		--mca mtl ofi --mca mtl_ofi_provider_include "tcp;ofi_rxm" \
		--mca btl self "$1" | sed -n 's/^pingpong /mpi /p'
}

bench_recorder()
{
	local dir=$BUILD/bench/recorder met=no one window mpi="not run"

	need "$BUILD_PACKAGES" || cannot "packages are missing"
	build_installed bench || cannot "the build failed"
	use_provider bench || cannot "no provider"
	LAYER_BENCH=$BUILD/bench/fabtests/benchmarks/layer_bench
	[ -x "$LAYER_BENCH" ] || cannot "no layer_bench was built"
	export FI_OFI_MRRC_REGISTER=always
	mkdir -p "$dir"
	logged "writes, recorded and not in turn" "$dir/write" \
		recorder_rounds "$dir/t" "$LAYER_BENCH" -N -I 100 ||
		cannot "layer_bench failed"
	say
	say "Set-up: $(setup_line); tcp over loopback, both ends in one"
	say "thread, writes of 8 bytes without a descriptor from 64 buffers,"
	say "all hits; medians of $RECORDER_ROUNDS runs of each, interleaved."
	say "The file lies in $dir."
	say
	printf '  %-34s %10s %10s %9s\n' "microseconds" "off" "recorded" \
		slower
	recorder_row "$dir/write" "write 1" "each write, one by one"
	one=$SLOWER
	recorder_row "$dir/write" "write 50" "each write, in windows of 50"
	window=$SLOWER
	if recorder_build_mpi "$dir"; then
		logged "MPI, recorded and not in turn" "$dir/mpi" \
			env FI_HOOK=mrrc bash -c \
			"RECORDER_ROUNDS=5; $(declare -f recorder_run \
			recorder_rounds recorder_mpi)
			recorder_rounds $dir/t recorder_mpi $dir/pingpong" ||
			cannot "the ping-pong failed"
		recorder_row "$dir/mpi" mpi "MPI ping-pong of 64 KiB, hooked"
		mpi=$SLOWER%
	else
		say "  (no Open MPI here: its ping-pong is left out)"
	fi
	say
	at_most "$one" $RECORDER_GOAL && met=yes
	[ "$mpi" = "not run" ] || at_most "${mpi%%%}" $RECORDER_GOAL || met=no
	result "writes $one% slower (in windows $window%), MPI $mpi" \
		"<= $RECORDER_GOAL% one by one and for MPI" $met
}

# The program, where there is what builds it.
recorder_build_mpi()
{
	command -v mpicc >/dev/null && command -v mpirun >/dev/null &&
		mpicc -O2 -o "$1/pingpong" \
			"$TOP/fabtests/benchmarks/mpi_pingpong.c" 2>/dev/null
}

# ---- policies ----------------------------------------------------------------

# Recorded traces (CSV, or xz) lie here; those of Debian's packages are none.
TRACES=${TRACES:-$TOP/../shared/traces}
readonly SYNTHETIC="gen:cello gen:httpd gen:nas gen:kv"
readonly SPLIT=lru:pieces=4:batch=16
readonly PIN_GOAL=0.75 MRE_GOAL=0.92 WORST_GOAL=1.02 OFFLINE_GOAL=1.40

build_sim()
{
	need "$BUILD_PACKAGES" || cannot "packages are missing"
	build_installed bench || cannot "the build failed"
	SIM=$BUILD/bench/prefix/bin/fi_mrrc_sim
	[ -x "$SIM" ] || cannot "no fi_mrrc_sim was built"
}

bench_policies()
{
	local dir=$BUILD/bench/policies met=yes model pin mre worst offline
	local traces=() values=()

	build_sim
	mkdir -p "$dir"
	if compgen -G "$TRACES/*.csv*" >/dev/null; then
		traces=("$TRACES"/*.csv*)
	else
		say "no recorded traces in $TRACES: synthetic ones only"
	fi
	# shellcheck disable=SC2086 # several words
	logged "simulating ${#traces[@]} recorded and 4 synthetic traces" \
		"$dir/csv" "$SIM" -q -f csv -m ou2009,ou2009-nobatch,ucx \
		-p "lru,$SPLIT,mre-text,mre-fig4,gdsf,gdl,offline" \
		"${traces[@]}" $SYNTHETIC || cannot "fi_mrrc_sim failed"
	say
	say "Set-up: fi_mrrc_sim, limits of 5, 10 and 20 % of the footprint."
	say "Totals on and off the path; \"pin-down\" is lru, \"worst\" the"
	say "worst cell against $SPLIT. gen: is synthetic."
	awk -F, -v subject=gdl -v lru4=$SPLIT \
		-f "$TOP/util/plot/policies.awk" "$dir/csv" >"$dir/table"
	grep -v '^RESULT' "$dir/table"
	while read -r _ model pin mre worst offline; do
		values+=("$model $pin/$mre/$worst/$offline")
		# without batches the same times, for comparison only
		[ "$model" = ou2009-nobatch ] && continue
		if ! at_most "$pin" $PIN_GOAL || ! at_most "$mre" $MRE_GOAL ||
		   ! at_most "$worst" $WORST_GOAL ||
		   ! at_most "$offline" $OFFLINE_GOAL; then
			met=no
		fi
	done < <(grep '^RESULT' "$dir/table")
	[ ${#values[@]} -gt 0 ] || cannot "the report was empty"
	result "$(printf '%s; ' "${values[@]}")" \
		"each <= $PIN_GOAL/$MRE_GOAL/$WORST_GOAL/$OFFLINE_GOAL of pin-down/MRE/worst/offline" \
		$met
}

# ---- sim ---------------------------------------------------------------------

readonly SIM_GOAL=12

bench_sim()
{
	local dir=$BUILD/bench/sim start seconds met=no i times=()

	build_sim
	mkdir -p "$dir"
	"$SIM" -w "$dir/trace.csv" gen:httpd:requests=1000000 ||
		cannot "fi_mrrc_sim failed"
	say "Set-up: $(setup_line); a million requests like"
	say "a web server's, 5 policies x 4 limits; the median of 3 runs."
	for i in 1 2 3; do
		start=$(date +%s%N)
		"$SIM" -q -s 5%,10%,20%,40% \
			-p lru,fmrd,mre-text,mre-fig4,gdl "$dir/trace.csv" \
			>"$dir/table" || cannot "fi_mrrc_sim failed"
		times+=("$((($(date +%s%N) - start) / 1000000))")
		say "  run $i: ${times[-1]} ms"
	done
	seconds=$(printf '%s\n' "${times[@]}" | sort -n |
		awk 'NR == 2 { printf "%.1f", $1 / 1000 }')
	at_most "$seconds" $SIM_GOAL && met=yes
	result "$seconds s" "<= $SIM_GOAL s" $met
}

# ---- main --------------------------------------------------------------------

case ${1-} in
'') list; exit 0 ;;
-h|--help) usage; exit 0 ;;
esac
NAME=$1
if [ $# -ne 1 ] || ! grep -q "^$NAME " <<<"$BENCHMARKS"; then
	usage >&2
	exit $RC_CANNOT
fi
"bench_$NAME"
