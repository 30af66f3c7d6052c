#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_prof.sh: what fi_mrrc_prof measures adds up, what it saves is what the
# provider then goes by, and what it refuses leaves nothing behind.  Ends with
# "N passed, N failed".

# shellcheck disable=SC2119 # live needs no options
# shellcheck source=fabtests/scripts/testlib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/testlib.sh"

readonly TRACING=/sys/kernel/tracing

usage()
{
	cat <<-EOT
	Usage: $ME [-b BINDIR] [PROVIDER]

	Runs fi_mrrc_prof over what is beneath ofi_mrrc in PROVIDER (default:
	tcp;ofi_mrrc). BINDIR: where the programs are (default: PATH).
	EOT
}

# prof ARGUMENT...: into $DIR/out
prof()
{
	"${BIN}fi_mrrc_prof" -P "$CORE" -q "$@" >"$DIR/out" 2>"$DIR/err" &&
		return 0
	cat "$DIR/err"
	fail "fi_mrrc_prof $*"
}

# is the kernel traced for us? Only verbs' functions are.
traced()
{
	[[ $CORE == verbs* ]] && [ -w $TRACING/current_tracer ]
}

# says TEXT: true if the output has TEXT
says()
{
	grep -q -- "$1" "$DIR/out" ||
		{ cat "$DIR/out"; fail "does not say '$1'"; }
}

test_table()
{
	prof -k 4k -s 4K-256K -t 1 &&
		says "^$CORE, " && says '^  4k    touched      4K' &&
		says '^  4k    absent     256K' && says '^ *32K .*[0-9]$' &&
		says '^  FI_OFI_MRRC_COST=reg_page=' &&
		says '^  FI_OFI_MRRC_BOUNCE_SIZE=[0-9]*K\?$' || return 1
	traced || says 'not traced: .*[a-z]'
}

# Every cell of the table is there, in order, with its columns.
test_csv()
{
	prof -k 4k -s 4K-64K --rounds=5 -t 1 --csv || return 1
	awk -F, '
		NR == 1 {
			for (i = 1; i <= NF; i++)
				at[$i] = i
			next
		}
		NF != length(at) { bad("fields") }
		$at["register_us"] <= 0 || $at["deregister_us"] <= 0 {
			bad("times")
		}
		$at["least_register_us"] > $at["register_us"] { bad("least") }
		$at["rounds"] < 3 || $at["rounds"] > 5 { bad("rounds") }
		$at["state"] == "touched" && $at["copy_us"] <= 0 { bad("copy") }
		($at["map_us"] == "") != ($at["state"] == "touched") {
			bad("map")
		}
		($at["bandwidth_mbs"] > 0 && $at["registering_mbs"] > 0) != \
		($at["state"] == "touched" && $at["bytes"] >= 32768) {
			bad("bandwidth")
		}
		{ bytes[$at["state"]] = bytes[$at["state"]] " " $at["bytes"] }
		function bad(what) {
			print "  " what ": " $0
			failed = 1
			exit 1
		}
		END {
			if (failed)
				exit 1
			want = " 4096 8192 16384 32768 65536"
			if (bytes["touched"] != want || bytes["absent"] != want)
				bad("sizes")
		}' "$DIR/out"
}

test_json()
{
	prof -k 4k -s 4K,64K --rounds=3 -t 1 --json && is_json "$DIR/out" &&
		says '"register_r2"' && says '"FI_OFI_MRRC_COST"' &&
		says '"least_register_us"'
}

# The parts of a registration sum up to most of the whole, and not to more.
test_shares()
{
	if ! traced; then
		echo "  not tried: needs verbs, and root in $TRACING"
		return 0
	fi
	prof -k 4k -s 64K,1M,4M -t 6 --skip=bandwidth --csv || return 1
	awk -F, '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		{
			sum = $at["pin_us"] + $at["translate_us"] + \
				$at["device_us"]
			if (!(sum > .6 * $at["traced_us"] &&
			      sum <= 1.01 * $at["traced_us"]) ||
			    $at["pin_us"] <= 0 || $at["device_us"] <= 0 ||
			    $at["unpin_us"] <= 0) {
				print "  " $0
				failed = 1
			}
			pin[$at["state"] $at["bytes"]] = \
				$at["pin_us"] / $at["traced_us"]
		}
		END {
			# absent pages: making and pinning them is most of the
			# whole
			if (pin["absent4194304"] < .8 ||
			    pin["absent4194304"] <= pin["touched4194304"])
				failed = 1
			exit failed || NR != 7
		}' "$DIR/out" || { fail "shares"; return 1; }
	if [ "$(cat $TRACING/current_tracer)" != nop ] ||
	   grep -q '^[^#]' $TRACING/set_ftrace_filter ||
	   grep -q '^[0-9]' $TRACING/set_ftrace_pid ||
	   [ "$(cat $TRACING/tracing_on)" != 1 ]; then
		fail "the tracer is not as it was"
	fi
}

# A tracer that is in use is not touched.
test_tracer_busy()
{
	if ! traced; then
		echo "  not tried: needs verbs, and root in $TRACING"
		return 0
	fi
	# all functions would stop an emulated machine for minutes
	echo ib_dealloc_pd_user >$TRACING/set_ftrace_filter &&
		echo function >$TRACING/current_tracer || return 1
	prof -k 4k -s 4K,64K -t 1
	result=$?
	[ "$(cat $TRACING/current_tracer)" = function ] ||
		{ fail "it is another one now"; result=1; }
	echo nop >$TRACING/current_tracer
	[ $result -eq 0 ] && says 'not traced: .*it is in use' ||
		result=1
	# a process that traces events sets no tracer
	prof -k 4k -s 4K,64K -t 1 &&
		says 'not traced: .*it is in use' || result=1
	grep -q '^ib_dealloc_pd_user' $TRACING/set_ftrace_filter ||
		{ fail "the filter is another one now"; result=1; }
	echo >$TRACING/set_ftrace_filter
	return $result
}

# as_if COMMAND TEXT [WRAPPER...]: in mounts of its own, changed by COMMAND, it
# says TEXT of why nothing is traced.
as_if()
{
	local change=$1 text=$2

	shift 2
	unshare -m bash -c "$change"' && exec "$@"' as_if "$@" \
		"${BIN}fi_mrrc_prof" -P "$CORE" -q -k 4k -s 4K,8K -t 1 \
		--skip=bandwidth >"$DIR/out" 2>"$DIR/err" ||
		{ cat "$DIR/err"; fail "$change"; return 1; }
	says "not traced: .*$text"
}

# Root without a tracefs reads how to mount one, and not that it has to be root.
test_no_tracefs()
{
	local none="mount -t tmpfs none $TRACING"
	local shut="mount -t tmpfs -o mode=000 none"
	local mount="no tracefs: mount -t tracefs nodev $TRACING"
	local bound=(setpriv "--bounding-set=-dac_override,-dac_read_search")

	if ! unshare -m bash -c "$none && $shut /sys/kernel/debug"; then
		echo "  not tried: needs root that may mount"
		return 0
	fi
	as_if "$none && mount -t tmpfs none /sys/kernel/debug" "$mount" &&
		as_if "$none && $shut /sys/kernel/debug" "$mount" \
			"${bound[@]}" &&
		as_if "$shut $TRACING" "not even root may" "${bound[@]}"
}

# The fitted line agrees with the measured times.
test_fit()
{
	local r2 try

	if [[ $CORE != verbs* ]]; then
		echo "  not tried: $CORE registers in no time"
		return 0
	fi
	# beside other work some of the times are those of that
	for try in 1 2 3 4 5; do
		prof -k 4k -s 4K-16M -t 10 --skip=trace,bandwidth --json ||
			return 1
		r2=$(sed -n 's/.*"register_r2": \([-0-9.]*\).*/\1/p' \
			"$DIR/out" | head -n 1)
		awk -v r2="$r2" 'BEGIN { exit !(r2 > .8) }' && return
		echo "  try $try: R^2 of touched pages is $r2"
	done
	fail "R^2 of touched pages is not above .8 in $try tries"
}

# counter NAME: as fi_mrrc_stat shows it, of the first domain
counter()
{
	sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" "$DIR/json" | head -n 1
}

# goes_by MODEL REG_PAGE REG DEREG_PAGE DEREG COPY_PAGE: checks the numbers of
# the provider's model
goes_by()
{
	local model=$1 name result=0

	shift
	FI_LOG_LEVEL=info FI_LOG_PROV=ofi_mrrc FI_OFI_MRRC_COST=$model live ||
		return 1
	"${BIN}fi_mrrc_stat" --once --json "$APP" | tr , '\n' >"$DIR/json"
	for name in cost_register_page_ns cost_register_ns \
		cost_deregister_page_ns cost_deregister_ns cost_copy_page_ns; do
		[ "$(counter $name)" = "$1" ] ||
			{ fail "$name is $(counter $name), not $1"; result=1; }
		shift
	done
	live_end || result=1
	return $result
}

whole()
{
	awk -v x="$1" 'BEGIN { printf "%d", x + .5 }'
}

# What is saved is loaded, and is other than what is measured there.
test_save()
{
	local a b c d copy

	prof -k 4k -s 4K-64K -t 1 --skip=bandwidth --save="$DIR/model" ||
		return 1
	IFS='=: ' read -r _ a _ b _ c _ d _ copy _ \
		< <(grep -v '^#' "$DIR/model")
	[ -n "$copy" ] || { cat "$DIR/model"; fail "no model"; return 1; }
	says "FI_OFI_MRRC_COST=file:$DIR/model" || return 1
	goes_by "file:$DIR/model" "$(whole "$a")" "$(whole "$b")" \
		"$(whole "$c")" "$(whole "$d")" "$(whole "$copy")" || return 1
	grep -q "cost model: file:$DIR/model" "$DIR/err" ||
		{ cat "$DIR/err"; fail "the log does not name the model"; }
}

test_load()
{
	printf '# by hand\n\nreg_page=123456.6:reg=7:dereg_page=8.25:dereg=987654:copy_page=11\n' \
		>"$DIR/model"
	goes_by "file:$DIR/model" 123457 7 8 987654 11 || return 1
	grep -q "p pages takes 123457 \* p + 7 ns.*by FI_OFI_MRRC_COST" \
		"$DIR/err" || { cat "$DIR/err"; fail "the log has others"; }
}

# not_loaded MODEL TEXT: one warning is logged, and the measured model is used
not_loaded()
{
	FI_LOG_LEVEL=warn FI_OFI_MRRC_COST=$1 live && live_end ||
		return 1
	[ "$(grep -c "FI_OFI_MRRC_COST: .*$2" "$DIR/err")" -eq 1 ] ||
		{ cat "$DIR/err"; fail "$1: does not say once '$2'"; }
}

test_not_loaded()
{
	echo "reg_page=1:reg=2:dereg_page=3" >"$DIR/short"
	printf 'reg_page=1:reg=2:dereg_page=3:dereg=4\n%.0s' 1 2 >"$DIR/two"
	head -c 10000 /dev/zero >"$DIR/long"
	not_loaded "file:$DIR/none" "No such file" &&
		not_loaded "file:$DIR" "Is a directory" &&
		not_loaded "file:$DIR/short" "not understood" &&
		not_loaded "file:$DIR/two" "not understood" &&
		not_loaded "file:$DIR/long" "File too large" &&
		not_loaded "file:" "No such file"
}

test_usage()
{
	local prof=${BIN}fi_mrrc_prof

	refused 2 "what is beneath" "$prof" -P "$PROVIDER" &&
		refused 2 "no size" "$prof" -s 4X &&
		refused 2 "no size" "$prof" -s 0 &&
		refused 2 "is more than" "$prof" -s 1M-4K &&
		refused 2 "none of 4k, thp, 2m and 1g" "$prof" -k 8k &&
		refused 2 "no number from 1" "$prof" --rounds=0 &&
		refused 2 "no number of seconds" "$prof" -t 0 &&
		refused 2 "no number of seconds" "$prof" -t soon &&
		refused 2 "neither trace nor bandwidth" "$prof" --skip=all &&
		refused 2 "not text, csv or json" "$prof" -f xml &&
		refused 2 "two sizes" "$prof" --save=x -s 4K &&
		refused 2 "two sizes" "$prof" --save=x -k thp &&
		refused 2 "Too many arguments" "$prof" tcp
}

test_no_device()
{
	refused 1 "no such device; --list" "${BIN}fi_mrrc_prof" -P nosuch &&
		refused 1 "domain nosuch: no such device; --list" \
			"${BIN}fi_mrrc_prof" -P "$CORE" -d nosuch || return 1
	"${BIN}fi_mrrc_prof" --list >"$DIR/out" 2>&1 || return 1
	says "^$CORE  *[a-z]" || return 1
	! grep ofi_mrrc "$DIR/out" || fail "lists ofi_mrrc"
}

# A source address that is not this machine's is refused before measuring.
test_no_source()
{
	refused 1 "192.0.2.1 is no address of this machine" timeout 100 \
		"${BIN}fi_mrrc_prof" -P "$CORE" -a 192.0.2.1 --rounds=10000 -t 600 ||
		return 1
	[ "$CORE" = tcp ] || return 0
	prof -a 127.0.0.1 -k 4k -s 32K,64K -t 1 && says '^ *32K .*[0-9]$'
}

# Too few pages are an error that names the setting of their kind, or the limit.
test_no_pages()
{
	refused 1 "write 1026 to .*hugepages-1048576kB" "${BIN}fi_mrrc_prof" -q \
		-P "$CORE" -k 1g -s 512G &&
		refused 1 "write 524290 to .*hugepages-2048kB" \
			"${BIN}fi_mrrc_prof" -q -P "$CORE" -k 2m -s 512G &&
		refused 1 "memory that are available" "${BIN}fi_mrrc_prof" \
			-q -P "$CORE" -k 4k -s 1T
}

# Files that were there stay, and no other is left beside them.
test_kept()
{
	echo before >"$DIR/kept"
	refused 1 "none/kept: No such file" "${BIN}fi_mrrc_prof" -q -P "$CORE" \
		-k 4k -s 4K,8K -t 1 --skip=bandwidth,trace \
		--save="$DIR/none/kept" -o "$DIR/kept" &&
		refused 1 "none/x: No such file" "${BIN}fi_mrrc_prof" -q \
			-P "$CORE" -k 4k -s 4K,8K -t 1 \
			--skip=bandwidth,trace -o "$DIR/none/x" || return 1
	if [ -w /dev/full ]; then
		refused 1 "No space left" "${BIN}fi_mrrc_prof" -q -P "$CORE" \
			-k 4k -s 4K,8K -t 1 --skip=bandwidth,trace \
			-o /dev/full || return 1
	fi
	[ "$(cat "$DIR/kept")" = before ] || fail "what was there is gone"
	[ -z "$(find "$DIR" -name none -o -name '*.tmp')" ] ||
		fail "something is left"
}

# True if the process catches SIGTERM.
catches_term()
{
	local mask

	mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status")
	((0x${mask:-0} & 1 << 14))
}

# An interrupted run ends soon with an error, and leaves no file.
test_interrupted()
{
	local pid rc

	"${BIN}fi_mrrc_prof" -q -P "$CORE" -k 4k --rounds=10000 -t 600 \
		-o "$DIR/unfinished" 2>"$DIR/err" &
	pid=$!
	until_so catches_term $pid
	sleep 1		# it measures, most likely
	kill -TERM $pid
	wait $pid
	rc=$?
	[ $rc -eq 130 ] || { cat "$DIR/err"; fail "status $rc"; return 1; }
	grep -q interrupted "$DIR/err" || fail "does not say so" || return 1
	[ -z "$(find "$DIR" -name 'unfinished*')" ] || fail "a file is left"
}

test_options "$@"
CORE=${PROVIDER%;ofi_mrrc}
APP=
run_tests table csv json shares tracer_busy no_tracefs fit save load \
	not_loaded usage no_device no_source no_pages kept interrupted
