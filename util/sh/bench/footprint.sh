# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh footprint: what domains change in their process, by footprint_bench,
# which compares with the core alone.

readonly FOOTPRINT_CALL=2 FOOTPRINT_THREADS=1 FOOTPRINT_MIB=16
FOOTPRINT_ROUNDS=11
smoking && FOOTPRINT_ROUNDS=1

# Processes made, threads apart, by all steps.
footprint_children()
{
	local out=$1

	shift
	strace -f -qq -o "$out.strace" -e trace=clone,clone3,fork,vfork \
		env "$@" "$PROGRAM" -1 >"$out.once" 2>&1 ||
		ended $? "a process under strace" "$out.once"
	grep -v CLONE_THREAD "$out.strace" |
		grep -cE '(clone3?|v?fork)\(' || :
}

bench_footprint()
{
	local out=$DATA/footprint met=no call threads mib hooked bare

	prepare strace
	program fabtests/benchmarks/footprint_bench
	measured "the core, ofi_mrrc, ofi_mrrc without hooks, in turn" "$out" \
		"$PROGRAM" -I $FOOTPRINT_ROUNDS -t 900
	hooked=$(footprint_children "$out")
	bare=$(footprint_children "$out" FI_OFI_MRRC_HOOKS=0)

	say
	say "Set-up: $(setup_line); over tcp, every side in a"
	say "new process with one thread; medians of $FOOTPRINT_ROUNDS rounds, sides in turn."
	say "\"raw\": the core alone; \"no-hooks\": ofi_mrrc with FI_OFI_MRRC_HOOKS=0."
	say "\"call\": processor time of the calls, \"others\": that of other threads"
	say "afterwards; both and \"wall\" in ms. \"MiB\": addresses (VmSize). \"RSS\","
	say "\"files\" (file pages of it) and \"huge\" (AnonHugePages of 8 MiB) in KiB."
	say
	table 15 "(raw|ours|no-hooks) * Z Z Z N N N N N N Z" < <(awk '
		BEGIN {
			printf "  %-8s %-9s %6s %6s %6s %7s %4s %5s %7s %6s %6s %6s\n", \
				"side", "after", "call", "wall", "others", \
				"threads", "fds", "maps", "MiB", "RSS", \
				"files", "huge"
		}
		/^(raw|ours|no-hooks) / {
			for (i = 3; i < NF; i += 2)
				v[$i] = $(i + 1)
			printf "  %-8s %-9s %6.2f %6.2f %6.2f %7d %4d %5d %7.1f %6d %6d %6d\n", \
				$1, $2, v["call"] / 1000, v["wall"] / 1000, \
				(v["others"] > 0 ? v["others"] / 1000 : 0), v["threads"], v["fds"], \
				v["mappings"], v["size"] / 1024, v["rss"], \
				v["file"], v["huge"]
		}' "$out")
	say
	say "  Child processes made by all steps: $hooked, without hooks $bare."
	say
	read -r call threads mib < <(awk '
		/^(raw|ours) / {
			for (i = 3; i < NF; i += 2)
				v[$1, $2, $i] = $(i + 1)
		}
		END {
			printf "%.2f %d %.1f\n", v["ours", "domain-1", "call"] / 1000, \
				v["ours", "domain-1", "threads"] - \
				v["raw", "domain-1", "threads"], \
				(v["ours", "domain-1", "size"] - \
				v["raw", "domain-1", "size"]) / 1024
		}' "$out")
	if at_most "$call" $FOOTPRINT_CALL &&
	   at_most "$threads" $FOOTPRINT_THREADS &&
	   at_most "$mib" $FOOTPRINT_MIB; then
		met=yes
	fi
	result "the first domain: $call ms in the call, $threads threads, $mib MiB of addresses" \
		"<= $FOOTPRINT_CALL ms, <= $FOOTPRINT_THREADS, <= $FOOTPRINT_MIB MiB" $met
}
