#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# policies.sh: makes the figures of docs/policies.md and their tables:
# figures 9 to 12 of ou2009, and the comparison of policies.

# shellcheck source=util/plot/doc.sh
. "$(dirname -- "$0")/doc.sh"
readonly MPI_TRACES=$TOP/fabtests/traces
readonly SIZES=4M,8M,16M,32M,64M,128M MIB="4 8 16 32 64 128"
readonly SPLIT=lru:pieces=4:batch=16
readonly POLICIES=lru,$SPLIT,fmrd,mre-text,mre-fig4,gdsf,gdl,offline
readonly MODELS=ou2009,ou2009-nobatch,ucx
readonly LONG=131073

usage()
{
	cat <<-EOT
	Usage: $ME [-b BINDIR] [-m | -t TRACES]

	Writes docs/figures/ou2009-*.svg, policies.svg, and of docs/results
	ou2009.txt, policies.txt and mpi_policies.txt, with fi_mrrc_sim from BINDIR (default: PATH), gnuplot,
	and the traces of MPI programs in fabtests/traces. TRACES: the folder of
	the other recorded traces; without it their tables stay as they are. -m:
	only the tables of MPI programs.
	EOT
}

SIM=fi_mrrc_sim TRACES='' MPI_ONLY=no
while getopts b:mt:h option; do
	case $option in
	b) SIM=$OPTARG/fi_mrrc_sim ;;
	m) MPI_ONLY=yes ;;
	t) TRACES=$OPTARG ;;
	h) usage; exit 0 ;;
	*) usage >&2; exit 2 ;;
	esac
done
need "$SIM" awk
[ $MPI_ONLY = yes ] || need gnuplot
open_results

# plot NAME TITLE COMMANDS [WIDTH]: two panels, mostly of cello and httpd.
plot()
{
	gnuplot <<-EOT
	$(canvas "$1" "${4-760},360" "$2")
	set multiplot layout 1,2 title "$2"
	$3
	EOT
}

# ---- figure 9: sizes of requests ---------------------------------------------

request_sizes()
{
	local trace=$1

	"$SIM" -w - "gen:$trace" | awk -F, '
		/^[0-9]/ {
			first = int($2 / 4096)
			pages = int(($2 + $3 - 1) / 4096) - first + 1
			for (size = 1; size * 2 <= pages; size *= 2)
				;
			count[size]++
			all++
		}
		END {
			for (size = 1; size <= 64; size *= 2) {
				sum += count[size]
				printf "%d %.4f %.4f\n", size,
					100 * count[size] / all, 100 * sum / all
			}
		}' >"$DIR/sizes.$trace"
}

figure_9()
{
	request_sizes cello
	request_sizes httpd
	plot ou2009-9 "Figure 9: sizes of requests (synthetic traces)" "
	set logscale x 2
	set yrange [0:105]
	set xlabel 'pages'
	set ylabel 'requests of at most that size, %'
	set title 'cello'
	plot '$DIR/sizes.cello' using 1:3 with linespoints notitle
	set title 'httpd'
	plot '$DIR/sizes.httpd' using 1:3 with linespoints notitle"
}

# ---- figures 10 to 12: hit ratios and costs by the size of the cache ---------

# column TRACE POLICY NAME: "MiB value" lines.
column()
{
	awk -F, -v trace="gen:$1" -v policy="$2" -v name="$3" '
		NR == 1 { for (i = 1; i <= NF; i++) col[$i] = i; next }
		$col["trace"] == trace && $col["policy"] == policy {
			print $col["max_bytes"] / 1048576, $col[name]
		}' "$DIR/sizes.csv"
}

# Of one trace: MiB, hits of lru and mre-text, totals of those two and of none.
series()
{
	paste -d' ' <(column "$1" lru hit_ratio) \
		<(column "$1" mre-text hit_ratio | cut -d' ' -f2) \
		<(column "$1" lru total_ms | cut -d' ' -f2) \
		<(column "$1" mre-text total_ms | cut -d' ' -f2) \
		<(column "$1" none total_ms | cut -d' ' -f2) \
		<(column "$1" gdl hit_ratio | cut -d' ' -f2) \
		<(column "$1" gdl total_ms | cut -d' ' -f2) >"$DIR/series.$1"
}

panels()
{
	local name=$1 title=$2 label=$3 body=$4 trace text=

	for trace in cello httpd; do
		text+="
	set title '$trace'
	file = '$DIR/series.$trace'
	unit = $(awk '$1 == 32 { print $5 }' "$DIR/series.$trace")
	$body"
	done
	plot "$name" "$title" "
	set logscale x 2
	set xlabel 'size of the cache'
	$(sizes x)
	set xtics 4194304,4
	set ylabel '$label'
	$text"
}

figures_10_to_12()
{
	"$SIM" -q -f csv -s $SIZES -p none,lru,mre-text,gdl gen:cello \
		gen:httpd >"$DIR/sizes.csv"
	series cello
	series httpd
	panels ou2009-10 "Figure 10: hit ratio" "requests that hit, %" "
	plot file using (1048576*\$1):(100*\$2) with linespoints title 'pin-down', \
	     '' using (1048576*\$1):(100*\$3) with linespoints title 'MRRC (MRE)', \
	     '' using (1048576*\$1):(100*\$7) with linespoints title 'gdl'"
	panels ou2009-11 "Figure 11: cost of registering and deregistering" \
		"times MRE with 32 MiB" "
	plot file using (1048576*\$1):(\$4/unit) with linespoints title 'pin-down', \
	     '' using (1048576*\$1):(\$5/unit) with linespoints title 'MRRC (MRE)', \
	     '' using (1048576*\$1):(\$8/unit) with linespoints title 'gdl'"
	panels ou2009-12 "Figure 12: saved of the cost without a cache" "saved, %" "
	plot file using (1048576*\$1):(100*(1-\$5/\$6)) with linespoints title 'MRRC (MRE)', \
	     '' using (1048576*\$1):(100*(1-\$8/\$6)) with linespoints title 'gdl'"
}

# Those figures' numbers.
table_10()
{
	local trace

	for trace in cello httpd; do
		echo
		echo "| $trace, MiB | ${MIB// / | } |"
		echo "|---|---|---|---|---|---|---|"
		awk '{
			a = a sprintf(" %.1f |", 100 * $2)
			b = b sprintf(" %.1f |", 100 * $3)
			g = g sprintf(" %.1f |", 100 * $7)
			c = c sprintf(" %.3f |", $5 / $4)
			d = d sprintf(" %.0f |", 100 * (1 - $5 / $6))
			h = h sprintf(" %.3f |", $8 / $4)
		}
		END {
			print "| pin-down, hits % |" a
			print "| MRE, hits % |" b
			print "| gdl, hits % |" g
			print "| MRE, cost of pin-down |" c
			print "| gdl, cost of pin-down |" h
			print "| MRE, saved of no cache, % |" d
		}' "$DIR/series.$trace"
	done
}

# ---- the policies ------------------------------------------------------------

# compare NAME MODELS POLICIES TRACE...: to $DIR/NAME.csv
compare()
{
	local name=$1 models=$2 policies=$3

	shift 3
	"$SIM" -q -f csv -m "$models" -p "$policies" "$@" >"$DIR/$name.csv"
}

# The means, from policies.awk.
means()
{
	awk -F, -v lru4=$SPLIT -f "$TOP/util/plot/policies.awk" "$DIR/$1.csv"
}

table_means()
{
	means "$1" | awk '
		/^model/ {
			print "\n**" $0 "**\n"
			print "| policy | pin-down | better MRE | worst cell against split LRU | offline |"
			print "|---|---|---|---|---|"
			next
		}
		NF == 5 && $1 != "policy" {
			print "| " $1 " | " $2 " | " $3 " | " $4 " | " $5 " |"
		}'
}

# table_traces NAME MODEL: each trace, the mean of its limits.
table_traces()
{
	awk -F, -v want="$2" '
		NR == 1 { for (i = 1; i <= NF; i++) col[$i] = i; next }
		$col["model"] != want { next }
		{
			trace = $col["trace"]
			policy = $col["policy"]
			cell = trace $col["percent"]
			if (!(cell in pin))
				pin[cell] = $col["total_ms"]
			if ($col["total_ms"] <= 0)
				none[trace, policy] = 1
			else
				sum[trace, policy] += \
					log($col["total_ms"] / pin[cell])
			n[trace, policy]++
			if (!(trace in seen)) {
				seen[trace] = ++traces
				name[traces] = trace
			}
			if (!(policy in known)) {
				known[policy] = ++policies
				is[policies] = policy
			}
		}
		END {
			printf "\n**model %s, of pin-down**\n\n| trace |", want
			for (p = 2; p <= policies; p++)
				printf " %s |", is[p]
			printf "\n|---|"
			for (p = 2; p <= policies; p++)
				printf "---|"
			for (t = 1; t <= traces; t++) {
				printf "\n| %s |", name[t]
				for (p = 2; p <= policies; p++) {
					k = name[t] SUBSEP is[p]
					if (k in none)
						printf " 0 |"
					else
						printf " %.3f |", \
							exp(sum[k] / n[k])
				}
			}
			print ""
		}' "$DIR/$1.csv"
}

# The worst cells of the default policy against LRU that splits.
table_worst()
{
	echo
	echo "| trace | limit | model | of split LRU | offline of split LRU |"
	echo "|---|---|---|---|---|"
	awk -F, -v split_lru=$SPLIT '
		NR == 1 { for (i = 1; i <= NF; i++) col[$i] = i; next }
		$col["model"] != "ou2009-nobatch" {
			cell = $col["trace"] " | " $col["max_bytes"] / 1024 \
				" KiB (" $col["percent"] " %) | " $col["model"]
			ms[cell, $col["policy"]] = $col["total_ms"]
			cells[cell]
		}
		END {
			for (cell in cells)
				printf "| %s | %.3f | %.3f |\n", cell,
					ms[cell, "gdl"] / ms[cell, split_lru],
					ms[cell, "offline"] / ms[cell, split_lru]
		}' "$DIR/$1.csv" | sort -t'|' -k5,5nr | awk -F'|' '$5 > 1.02'
}

# bars NAME MODEL: "policy of-pin-down", of what is drawn
bars()
{
	means "$1" | awk -v want="$2" '
		/^model/ { model = $2; sub(/:.*/, "", model); next }
		model == want && NF == 5 && $1 != "policy" && $1 != "lru" {
			name = $1
			sub(/^lru:pieces.*/, "split lru", name)
			print "\"" name "\"", $2
		}' >"$DIR/bars.$1.$2"
}

# compared NAME TITLE: a panel
compared()
{
	bars "$1" ou2009
	bars "$1" ucx
	echo "
	set title '$2'
	plot '$DIR/bars.$1.ou2009' using 2:xtic(1) lc rgb '#4477aa' \
			title 'costs of ou2009', \
	     '$DIR/bars.$1.ucx' using 2 lc rgb '#ee7733' \
			title 'costs of ucx'"
}

figure_policies()
{
	plot policies "Cost of policies, geometric means" "
	set style data histograms
	set style fill solid 0.8 noborder
	set boxwidth 0.9
	set yrange [0:1.25]
	set ylabel 'times pin-down'
	set xtics nomirror scale 0 font ',9'
	$(compared policies "block, web and synthetic traces")
	$(compared mpi "MPI programs")" 1000
}

# whatever is sent often enough, a bound has registered for nothing
compare mpi ou2009,ucx $POLICIES "$MPI_TRACES"/*.csv.xz
{
	echo "Simulated: 14 MPI programs, each with limits of 5, 10 and 20 % of its"
	echo "footprint; geometric means of the total cost, all messages."
	table_means mpi
	table_traces mpi ou2009
	table_traces mpi ucx
} >"$DIR/mpi"

# what ofi_rxm copies over verbs is never registered
long=()
for trace in "$MPI_TRACES"/*.csv.xz; do
	! "$SIM" -q --min-len=$LONG -w "$DIR/long" "$trace" 2>/dev/null ||
		long+=("$trace")
done
compare long ou2009,ucx $POLICIES --min-len=$LONG "${long[@]}"
{
	cat "$DIR/mpi"
	echo
	echo "The messages above 128 KiB alone, which ofi_rxm does not copy:"
	table_means long
	echo
	echo "Cells of all messages in which gdl costs over 2 % more than split LRU"
	echo "with batches:"
	table_worst mpi
} | aligned >"$RESULTS/mpi_policies.txt"
if [ $MPI_ONLY = yes ]; then
	close_results
	exit
fi

figure_9
figures_10_to_12
{
	echo "Figures 10 to 12: simulated, synthetic traces, the costs of ou2009."
	table_10
} | aligned >"$RESULTS/ou2009.txt"
if [ -n "$TRACES" ]; then
	compare policies $MODELS $POLICIES,bound "$TRACES"/*.csv* gen:cello \
		gen:httpd gen:nas gen:kv
	{
		echo "Simulated: 8 traces, each with limits of 5, 10 and 20 % of its"
		echo "footprint; geometric means of the total cost."
		table_means policies
		table_traces policies ou2009
		table_traces policies ucx
	} | aligned >"$RESULTS/policies.txt"
	figure_policies
else
	echo "$ME: no -t: the tables of the block and web traces stay" >&2
fi
close_results
