# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh policies: the default policy against others, simulated.

SYNTHETIC="gen:cello gen:httpd gen:nas gen:kv"
smoking && SYNTHETIC=gen:kv:requests=2000
readonly SPLIT=lru:pieces=4:batch=16
readonly PIN_GOAL=0.75 MRE_GOAL=0.92 WORST_GOAL=1.02 OFFLINE_GOAL=1.40

# judge_policies DIR TRACE...: prints tables and ends with the result
judge_policies()
{
	local dir=$1 met=yes model pin mre worst offline values=()

	shift
	mkdir -p "$dir"
	rm -f "$dir/csv" "$dir/table"
	program prefix/bin/fi_mrrc_sim
	measured "simulating $# traces" "$dir/csv" "$PROGRAM" -q -f csv \
		-m ou2009,ou2009-nobatch,ucx \
		-p "lru,$SPLIT,mre-text,mre-fig4,gdsf,gdl,offline" "$@"
	say
	say "Set-up: fi_mrrc_sim, limits of 5, 10 and 20 % of the footprint."
	say "Totals on and off the path; \"pin-down\" is lru, \"worst\" the"
	say "worst cell against $SPLIT. gen: is synthetic."
	awk -F, -v subject=gdl -v lru4=$SPLIT \
		-f "$TOP/util/plot/policies.awk" "$dir/csv" >"$dir/table"
	table 21 "* N N N N" < <(grep -v '^RESULT' "$dir/table")
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
	result "$(printf '%s\n' "${values[@]}" | paste -sd';' | sed 's/;/; /g')" \
		"each <= $PIN_GOAL/$MRE_GOAL/$WORST_GOAL/$OFFLINE_GOAL of pin-down/MRE/worst/offline" \
		$met
}

bench_policies()
{
	local traces=()

	prepare
	# shellcheck disable=SC2153 # common.sh's
	if ! smoking && compgen -G "$TRACES/*.csv*" >/dev/null; then
		traces=("$TRACES"/*.csv*)
	else
		say "no recorded traces in $TRACES: synthetic ones only"
	fi
	# shellcheck disable=SC2086 # several words
	judge_policies "$DATA/policies" "${traces[@]}" $SYNTHETIC
}
