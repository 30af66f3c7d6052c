# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh rendezvous: large messages over ofi_rxm, by rndv_bench in the guest.

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

ratio()
{
	awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f", a / b }'
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
