#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# policies.sh: makes the tables and figures of docs/policies.md anew: figures
# 9 to 12 of ou2009, and the comparison of policies.

set -eu
ME=${0##*/}
TOP=$(cd -- "$(dirname -- "$0")/../.." && pwd)
DOCS=$TOP/docs
readonly PAGE=$DOCS/policies.md FIGURES=$DOCS/figures
readonly SIZES=4M,8M,16M,32M,64M,128M MIB="4 8 16 32 64 128"
readonly SPLIT=lru:pieces=4:batch=16
readonly POLICIES=lru,$SPLIT,fmrd,mre-text,mre-fig4,gdsf,gdl,offline,bound
readonly MODELS=ou2009,ou2009-nobatch,ucx

usage()
{
	cat <<-EOT
	Usage: $ME [-b BINDIR] [-t TRACES]

	Writes docs/figures/*.svg and the tables of docs/policies.md, with
	fi_mrrc_sim from BINDIR (default: PATH) and gnuplot. TRACES: a folder of
	recorded traces; without it the tables have synthetic ones only.
	EOT
}

SIM=fi_mrrc_sim TRACES=
while getopts b:t:h option; do
	case $option in
	b) SIM=$OPTARG/fi_mrrc_sim ;;
	t) TRACES=$OPTARG ;;
	h) usage; exit 0 ;;
	*) usage >&2; exit 2 ;;
	esac
done
for tool in "$SIM" gnuplot awk; do
	command -v "$tool" >/dev/null || {
		echo "$ME: $tool is missing" >&2
		exit 1
	}
done
DIR=$(mktemp -d "${TMPDIR:-/tmp}/policies.XXXXXX")
trap 'rm -rf "$DIR"' EXIT
mkdir -p "$FIGURES"

# plot NAME TITLE COMMANDS: one panel for each of cello and httpd.
plot()
{
	gnuplot <<-EOT
	set terminal svg size 760,320 noenhanced font "sans,11"
	set output "$FIGURES/$1.svg"
	set multiplot layout 1,2 title "$2"
	set grid ytics lc rgb "#dddddd"
	set key bottom right
	$3
	EOT
}

# ---- figure 9: sizes of requests ---------------------------------------------

sizes()
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
	sizes cello
	sizes httpd
	plot ou2009-9 "Sizes of requests (synthetic traces)" "
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
	set xlabel 'cache, MiB'
	set ylabel '$label'
	$text"
}

figures_10_to_12()
{
	"$SIM" -q -f csv -s $SIZES -p none,lru,mre-text,gdl gen:cello \
		gen:httpd >"$DIR/sizes.csv"
	series cello
	series httpd
	panels ou2009-10 "Hit ratio" "requests that hit, %" "
	plot file using 1:(100*\$2) with linespoints title 'pin-down', \
	     '' using 1:(100*\$3) with linespoints title 'MRRC (MRE)', \
	     '' using 1:(100*\$7) with linespoints title 'gdl'"
	panels ou2009-11 "Registration and deregistration, MRE with 32 MiB = 1" \
		"cost" "
	set key top right
	plot file using 1:(\$4/unit) with linespoints title 'pin-down', \
	     '' using 1:(\$5/unit) with linespoints title 'MRRC (MRE)', \
	     '' using 1:(\$8/unit) with linespoints title 'gdl'"
	panels ou2009-12 "Saved of the cost without a cache" "saved, %" "
	set key bottom right
	plot file using 1:(100*(1-\$5/\$6)) with linespoints title 'MRRC (MRE)', \
	     '' using 1:(100*(1-\$8/\$6)) with linespoints title 'gdl'"
}

# Markdown of those figures' numbers.
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

comparison()
{
	local traces=()

	if [ -n "$TRACES" ]; then
		traces=("$TRACES"/*.csv*)
	fi
	"$SIM" -q -f csv -m $MODELS -p $POLICIES "${traces[@]}" gen:cello \
		gen:httpd gen:nas gen:kv >"$DIR/policies.csv"
}

# The means, from policies.awk.
table_means()
{
	awk -F, -v lru4=$SPLIT -f "$TOP/util/plot/policies.awk" \
		"$DIR/policies.csv" | awk '
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

# Each trace, the mean of its limits, under one model.
table_traces()
{
	awk -F, -v want="$1" '
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
		}' "$DIR/policies.csv"
}

# replace NAME FILE: what stands between the markers of that name.
replace()
{
	awk -v name="$1" -v file="$2" '
		$0 == "<!-- begin " name " -->" {
			print
			while ((getline text <file) > 0)
				print text
			skip = 1
		}
		$0 == "<!-- end " name " -->" { print ""; skip = 0 }
		!skip' "$PAGE" >"$DIR/page"
	cp "$DIR/page" "$PAGE"
}

figure_9
figures_10_to_12
table_10 >"$DIR/table_10"
replace figures "$DIR/table_10"
comparison
table_means >"$DIR/means"
replace means "$DIR/means"
{ table_traces ou2009; table_traces ucx; } >"$DIR/traces"
replace traces "$DIR/traces"
echo "$ME: $PAGE and $FIGURES are new"
