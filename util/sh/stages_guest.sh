# shellcheck shell=bash disable=SC2153 # common.sh sets BUILD
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Stages of test.sh in the virtual machine: parts of one script, for one boot.
# Sourced, after stages.sh.

# over verbs: what hardly depends on the device; slow in the guest
GUEST_ONCE=fi_info,soak,node,uffd_denied,core_cache,untouched,kinds,signals,random
readonly GUEST_ONCE+=,parts,split,domains,bind,cxx,unwind,ahead,bounce,manual
# skip themselves there, after seconds: of tcp alone, or of a newer kernel
GUEST_NONE=hints,loud,sequences,versions,keys,mappings,footprint,objects,half_write
GUEST_NONE+=,cw_modes,cw_again,cw_listen,cw_enable,cw_fork,claims,lengths,realtime
readonly GUEST_NONE+=,files_ahead,files_direct,files_stopped
# over verbs of one kind of endpoint
readonly OF_MSG=hook_keys,cw_cm,cw_eq
OF_RDM=tagged,av,peek,multi_recv,buffered,copied,cancel,shared_ep,auto_progress
readonly OF_RDM+=,cw_av,cw_rdm,cw_hostile,cw_takeover
# suites of test_sys that ask the kernel for what kernels do in different ways
readonly KERNEL=threads,vm,pages,own_file,mon,mon_event,uffd_event,mon_child,uffd,huge,prepare
readonly KERNEL_MORE=hooks,hooks_call,hooks_event,hooks_rely,hooks_late,hooks_signal,notifier,ring,lease,cache_uffd,cache_hooked
# over verbs ofi_rxm (1.17) dies in them raw as well, using an endpoint that it
# has freed: rxm_close_conn()
readonly RXM_DIES=close,atomic,multi_recv
# what registers: the rest is the core's own
readonly HOOKED=msg,rma,mr,readonly,unmap,close,threads,alloc
# what else may depend on the processor
readonly ARM=info,completions,atomic,copied,fork,cwrite,cw_enable,cw_end
# parts of files: over verbs without a copy from Linux 6.2 on
readonly FILES=files,files_ahead,files_direct,files_change,files_stopped

PARTS=()

# part NAME COMMAND...: adds COMMAND to the guest's script, TIMES times. The last
# line of its output, "N passed, N failed", is counted.
part()
{
	local part=$1 i name

	shift
	wanted "$part" || return 0
	for ((i = 0; i < TIMES; i++)); do
		name=$part.$i
		PARTS+=("$name")
		{
			printf 'if [ ! -e %q ]; then\necho %q\n' \
				"$GUEST_DIR/$name.status" "$name"
			printf '%q ' "$@"
			printf '>%q 2>&1\necho $? >%q\nfi\n' \
				"$GUEST_DIR/$name.log" "$GUEST_DIR/$name.status"
		} >>"$GUEST_DIR/parts.sh"
	done
}

# begin_parts [GUEST-OPTION...]: a folder that the guest may write to.
begin_parts()
{
	need_guest "$@" || {
		fail "the guest cannot be set up"
		return 1
	}
	GUEST_DIR=$LOGS/$STAGE
	rm -rf "$GUEST_DIR"
	mkdir -p "$GUEST_DIR"
	# libfabric's verbs provider looks through all of it, twice in each
	# process, for functions that none of these kernels has
	echo "mount --bind /dev/null /proc/kallsyms" >"$GUEST_DIR/parts.sh"
}

# boot_parts SECONDS [GUEST-OPTION...]: those without a result.
boot_parts()
{
	local limit=$1

	shift
	logged "in the guest" "$GUEST_DIR/guest.log" "$GUEST" -t "$limit" \
		-w "$GUEST_DIR" -e "FT_PERCENT=${FT_PERCENT-$FEW_PERCENT}" \
		"${SELECTED[@]}" "$@" -- bash "$GUEST_DIR/parts.sh" && return
	ENDED=$(tail -n 3 "$GUEST_DIR/guest.log" | cut -c 1-200 | paste -s -d' ')
	say "   the guest: $ENDED"
	return 1
}

# run_parts SECONDS [GUEST-OPTION...]: an emulated machine may end by itself:
# what it had not done then is done once more.
run_parts()
{
	local name ENDED

	[ ${#PARTS[@]} -gt 0 ] || return 0
	boot_parts "$@" || boot_parts "$@" || fail "the guest: $ENDED"
	for name in "${PARTS[@]}"; do
		say "   $name"
		count_summary "$(cat "$GUEST_DIR/$name.status" 2>/dev/null)" \
			"$GUEST_DIR/$name.log" "${name%.*}, in the guest" \
			"${name%.*}"
	done
}

stage_verbs()
{
	local bin=$BUILD/unit/prefix/bin tests=$BUILD/unit/prov/mrrc/test

	if ! need_build unit || ! begin_parts; then
		return
	fi
	part fabtests "$RUNFABTESTS" -b "$bin" \
		-x "$GUEST_ONCE,$GUEST_NONE,$OF_RDM" "verbs;ofi_mrrc"
	part fabtests-hook "$RUNFABTESTS" -b "$bin" -H -t "$HOOKED" \
		"verbs;ofi_mrrc"
	part test_serve env SERVE_ADDRESS=10.0.0.1 "$SCRIPTS/test_serve.sh" \
		-b "$bin" -t "$SERVE_VERBS" "verbs;ofi_mrrc"
	# on another kernel than ours
	part units "$SCRIPTS/units.sh" "$tests/test_sys:$KERNEL"
	run_parts 3600 -e "$(provider_path unit)"
}

stage_verbs_rdm()
{
	local bin=$BUILD/unit/prefix/bin tests=$BUILD/unit/prov/mrrc/test

	if ! need_build unit || ! begin_parts; then
		return
	fi
	part fabtests "$RUNFABTESTS" -b "$bin" \
		-x "$ONCE,$GUEST_ONCE,$GUEST_NONE,$OF_MSG,$RXM_DIES" \
		"verbs;ofi_rxm;ofi_mrrc"
	# in strangers ofi_rxm dies; an emulated device takes what stuck sends
	part test_serve env SERVE_ADDRESS=10.0.0.1 \
		"$SCRIPTS/test_serve.sh" -b "$bin" -t "$SERVE_VERBS,dead" \
		"verbs;ofi_rxm;ofi_mrrc"
	part fabtests-once "$RUNFABTESTS" -b "$bin" -t "$GUEST_ONCE" \
		"verbs;ofi_mrrc"
	part fabtests-bounce "$RUNFABTESTS" -b "$bin" -t bounce \
		"verbs;ofi_rxm;ofi_mrrc"
	part units "$SCRIPTS/units.sh" "$tests/test_sys:$KERNEL_MORE" \
		"$tests/race_mon"
	part test_sim "$SCRIPTS/test_sim.sh" -b "$bin" "verbs;ofi_mrrc"
	part test_prof "$SCRIPTS/test_prof.sh" -b "$bin" "verbs;ofi_mrrc"
	part race bash -c "$BUILD/unit/fabtests/benchmarks/demo_race -o -n 20 &&
		echo '1 passed, 0 failed'"
	run_parts 3600 -e "$(provider_path unit)"
}

# What a newer kernel does in another way, on its disk, too.
stage_verbs13()
{
	local bin=$BUILD/unit/prefix/bin tests=$BUILD/unit/prov/mrrc/test

	need_trixie || {
		fail "the folder of Debian 13 cannot be set up"
		return
	}
	if ! need_build unit || ! begin_parts -k trixie; then
		return
	fi
	part fabtests "$RUNFABTESTS" -b "$bin" -t "$FILES,$HOOKED" \
		"verbs;ofi_mrrc"
	part fabtests-rdm "$RUNFABTESTS" -b "$bin" -t "$FILES" \
		"verbs;ofi_rxm;ofi_mrrc"
	part test_serve env SERVE_ADDRESS=10.0.0.1 "$SCRIPTS/test_serve.sh" \
		-b "$bin" -t "$SERVE_VERBS,truncated,writers" \
		"verbs;ofi_mrrc"
	part units "$SCRIPTS/units.sh" "$tests/test_sys" "$tests/race_mon"
	part race bash -c "$BUILD/unit/fabtests/benchmarks/demo_race -o -n 20 &&
		echo '1 passed, 0 failed'"
	run_parts 3600 -k trixie -d 1G -e "$(provider_path unit)"
}

# Cross-compiled against the guest's root, which is a Debian 13 for arm64.
stage_arm64()
{
	local bin=$BUILD/arm64/prefix/bin tests=$BUILD/arm64/prov/mrrc/test
	local root

	if ! need_trixie || ! need gcc-aarch64-linux-gnu ||
	   ! begin_parts --arch arm64; then
		fail "the guest cannot be set up"
		return
	fi
	root=$("$GUEST" --arch arm64 --setup 2>/dev/null)
	need_build arm64 --host=aarch64-linux-gnu CXX=no \
		"CC=aarch64-linux-gnu-gcc --sysroot=$root" \
		"PKG_CONFIG_SYSROOT_DIR=$root" \
		"PKG_CONFIG_LIBDIR=$root/usr/lib/aarch64-linux-gnu/pkgconfig" ||
		return
	# hits need no system call there
	part check bash -c "$bin/fi_mrrc_stat --check | tee /dev/stderr |
		grep -q '^ok *lookups' && echo '1 passed, 0 failed'"
	# without test_core, which is the same everywhere and slow there
	part units "$SCRIPTS/units.sh" "$tests"/race_{mon,node} \
		"$tests"/test_{attr,below,code,node,patch} \
		"$tests/test_sys:$KERNEL,$KERNEL_MORE" \
		"$tests/test_prove:prove,copy,lost,rent,way"
	# the last line has the lookups, and the stale ones
	part race bash -c "$tests/race_bench 20000 | tee /dev/stderr |
		grep -q '^RESULT [0-9]* 0 [1-9]' && echo '1 passed, 0 failed'"
	part fabtests "$RUNFABTESTS" -b "$bin" -t "$HOOKED,$ARM" "tcp;ofi_mrrc"
	part fabtests-verbs "$RUNFABTESTS" -b "$bin" -t "$HOOKED" \
		"verbs;ofi_mrrc"
	run_parts 5400 --arch arm64 -w "$BUILD/arm64" -e "$(provider_path arm64)"
}

# Two hosts in the guest: the kernel's connection manager has to work in
# namespaces.
stage_cable()
{
	local bin=$BUILD/unit/prefix/bin prov

	if ! need_build unit || ! begin_parts -k trixie-backports; then
		return
	fi
	for prov in verbs tcp; do
		part "test_cable-$prov" "$SCRIPTS/test_cable.sh" -b "$bin" \
			"$prov;ofi_mrrc"
	done
	run_parts 1800 -k trixie-backports -l veth -l sch_netem \
		-e "$(provider_path unit)"
}

stage_guest()
{
	need_guest || {
		fail "the guest cannot be set up"
		return
	}
	script "guest.sh's own test" test_guest "$SCRIPTS/test_guest.sh"
}
