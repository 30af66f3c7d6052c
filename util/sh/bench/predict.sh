# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh predict: what a helper thread that predicts uses leaves registered
# (li2011), on what MPI programs asked for, simulated.

readonly PREDICT_TRACES=$TOP/fabtests/traces/own_time
readonly PREDICT_STEADY=$TOP/fabtests/traces/steady
readonly PREDICT_OPTIONS="--min-len=16K -m ou2009"
# of leave-pinned, on average; percent late, and percent predicted within 5 %
readonly PREDICT_MEAN=0.60 PREDICT_LATE=1 PREDICT_WITHIN=94.7

# A row for each trace from the simulator's CSV, then one for all of them: means
# of ratios, requests and predictions together; in RESULT what is judged.
predict_rows()
{
	awk -F, '
	NR == 1 {
		for (i = 1; i <= NF; i++)
			at[$i] = i
		next
	}
	function col(name) { return $at[name] }
	$at["helper"] == "timeout" { timeout = col("mean_ratio") }
	$at["helper"] == "offline" { offline = col("mean_ratio") }
	$at["helper"] == "predict" {
		mean = col("mean_ratio"); peak = col("peak_ratio")
		late = col("late"); again = col("requests") - col("first")
		n = col("predicted")
		w5 = col("within_5") * n; w05 = col("within_05") * n
	}
	$at["helper"] == "offline" {
		row(col("trace"), mean, peak, timeout, offline, late / again,
			w5 / n, w05 / n)
		rows++
		above += mean > timeout
		all_mean += mean; all_peak += peak
		all_timeout += timeout; all_offline += offline
		all_late += late; all_again += again
		all_n += n; all_w5 += w5; all_w05 += w05
	}
	function row(name, mean, peak, timeout, offline, late, w5, w05) {
		printf "  %-14s %8.3f %6.3f %8.3f %8.3f %6.2f%% %6.1f%% %6.1f%%\n",
			name, mean, peak, timeout, offline, 100 * late,
			100 * w5, 100 * w05
	}
	END {
		if (!rows)
			exit
		row("all", all_mean / rows, all_peak / rows,
			all_timeout / rows, all_offline / rows,
			all_late / all_again, all_w5 / all_n, all_w05 / all_n)
		printf "RESULT %.3f %d %.2f %.1f %d\n", all_mean / rows, above,
			100 * all_late / all_again, 100 * all_w5 / all_n, rows
	}' "$1"
}

# predict_simulate TRACES ROWS TITLE
predict_simulate()
{
	local dir=$DATA/predict name=${1##*/}

	# shellcheck disable=SC2086 # words
	measured "simulating helpers" "$dir/$name.csv" "$PROGRAM" \
		--helper=timeout,predict,offline $PREDICT_OPTIONS -f csv \
		"$1"/*.csv.xz
	predict_rows "$dir/$name.csv" >"$dir/$name" ||
		broken "the rows cannot be read"
	say
	say "  $3"
	table "$2" "* N N N Z Z Z Z" < <(grep -v '^RESULT' "$dir/$name")
}

bench_predict()
{
	local dir=$DATA/predict met=no mean above late within rows

	prepare
	program prefix/bin/fi_mrrc_sim
	mkdir -p "$dir"
	say
	say "Set-up: fi_mrrc_sim --helper, messages of 16 KiB and more, the costs"
	say "of ou2009; times are the ranks' processor times, and steady those of"
	say "a clock that counts instructions. Registered bytes of"
	say "those that are left registered: average and peak with the predictor,"
	say "average with an idle timeout that is as late, and if the future were"
	say "known; late requests of those whose memory had been registered;"
	say "predictions within 5 and .5 percent."
	predict_simulate "$PREDICT_TRACES" 12 \
		"trace           average   peak  timeout  offline    late  in 5%  in .5%"
	predict_simulate "$PREDICT_STEADY" 8 \
		"steady          average   peak  timeout  offline    late  in 5%  in .5%"
	read -r _ mean above late _ rows < <(grep '^RESULT' "$dir/own_time")
	read -r _ _ _ _ within _ < <(grep '^RESULT' "$dir/steady")
	if at_most "$mean" $PREDICT_MEAN && [ "$above" -eq 0 ] &&
	   at_most "$late" $PREDICT_LATE &&
	   at_most $PREDICT_WITHIN "$within"; then
		met=yes
	fi
	result "$mean of leave-pinned, $above of $rows above the timeout's, $late % late, $within % within 5 % (steady)" \
		"<= $PREDICT_MEAN, 0, < $PREDICT_LATE %, >= $PREDICT_WITHIN %" \
		$met
}
