# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh sim: how fast the simulator is.

readonly SIM_GOAL=12
SIM_REQUESTS=1000000
smoking && SIM_REQUESTS=20000

bench_sim()
{
	local dir=$DATA/sim start seconds met=no i times=()

	prepare
	program prefix/bin/fi_mrrc_sim
	mkdir -p "$dir"
	"$PROGRAM" -w "$dir/trace.csv" gen:httpd:requests=$SIM_REQUESTS ||
		ended $? "fi_mrrc_sim -w"
	say "Set-up: $(setup_line); a million requests like"
	say "a web server's, 5 policies x 4 limits; the median of 3 runs."
	for i in 1 2 3; do
		start=$(date +%s%N)
		"$PROGRAM" -q -s 5%,10%,20%,40% \
			-p lru,fmrd,mre-text,mre-fig4,gdl "$dir/trace.csv" \
			>"$dir/table" || ended $? "fi_mrrc_sim"
		complete 20 "* N * * * * * N" <"$dir/table"
		times+=("$((($(date +%s%N) - start) / 1000000))")
		say "  run $i: ${times[-1]} ms"
	done
	seconds=$(printf '%s\n' "${times[@]}" | sort -n |
		awk 'NR == 2 { printf "%.1f", $1 / 1000 }')
	at_most "$seconds" $SIM_GOAL && met=yes
	result "$seconds s" "<= $SIM_GOAL s" $met
}
