# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh frrwp: time that conditional writes save, by frrwp_bench over tcp and
# in the guest.

readonly FRRWP_GOAL=68

# frrwp_table CORE: prints it, and sets CUT
frrwp_table()
{
	local table=$DATA/frrwp/$1.table

	awk -f "$TOP/util/plot/frrwp.awk" "$DATA/frrwp/$1" >"$table"
	say "$1"
	table 16 "* * N N [|] N N N [|] N N [|] N N N [|] *" \
		< <(grep -v '^RESULT' "$table")
	say
	CUT=$(sed -n 's/^RESULT //p' "$table")
}

bench_frrwp()
{
	local dir=$DATA/frrwp met=no tcp verbs CUT

	prepare
	program fabtests/benchmarks/frrwp_bench
	measured "tcp, the three processes in turn" "$dir/tcp" \
		env FI_OFI_MRRC_REGISTER=always \
		"$PROGRAM" -p "tcp;ofi_mrrc" -t 300
	in_guest 900 "$dir/verbs" "the same" "$PROGRAM" -p "$CORE;ofi_mrrc" \
		-t 880
	say
	say "Set-up: $(setup_line); verbs: Soft-RoCE in an"
	say "emulated guest. Client and server are two processes that poll."
	say "Microseconds from the start of a transaction, of the fastest of"
	say "each kind, the three processes in turn: until the core gets the"
	say "write, until the writer's application is free, until the target"
	say "has been told. \"needed\": one message and the writer's"
	say "registration; \"cut\": what conditional writes save of the rest"
	say "before the core gets the write. docs/frrwp.md explains it."
	say
	printf '  %-22s %8s | %-26s | %-17s | %s\n' "" "" "posted" "free" \
		"told"
	frrwp_table tcp
	tcp=$CUT
	frrwp_table verbs
	verbs=$CUT
	say "Medians of what registers (cold). util/plot/frrwp.sh $dir"
	say "draws it."
	say
	if at_most $FRRWP_GOAL "$verbs" && at_most $FRRWP_GOAL "$tcp"; then
		met=yes
	fi
	result "$verbs % on verbs, $tcp % on tcp" ">= $FRRWP_GOAL %" $met
}
