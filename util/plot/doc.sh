# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Shared by the scripts that make figures and results of docs/.  Sourced at the
# begin of each.

set -eu
# shellcheck disable=SC2034 # for usage()
ME=${0##*/}
TOP=$(cd -- "$(dirname -- "$0")/../.." && pwd)

# The folder of figures and results; tests set another one.
DOCS=${OFI_MRRC_DOCS:-$TOP/docs}

# bench_option ARGUMENT...: sets BENCH, where the benchmarks left their data, by
# -b FOLDER.  The script has a usage(), and shifts by OPTIND if it has arguments.
# shellcheck disable=SC2034 # the scripts use it
bench_option()
{
	local option

	BENCH=${OFI_MRRC_BUILD:-$TOP/build}/bench
	while getopts b:h option; do
		case $option in
		b) BENCH=$OPTARG ;;
		h) usage; exit 0 ;;
		*) usage >&2; exit 2 ;;
		esac
	done
}

# open_results: FIGURES and RESULTS, in DIR, stand in for docs/figures and
# docs/results until close_results: a failure before that leaves all as they were.
open_results()
{
	DIR=$(mktemp -d "${TMPDIR:-/tmp}/ofi_mrrc-plot.XXXXXX")
	trap 'rm -rf "$DIR"' EXIT
	FIGURES=$DIR/figures RESULTS=$DIR/results
	mkdir "$FIGURES" "$RESULTS"
}

# As much as possible is done before the first file is replaced.
close_results()
{
	local file name

	mkdir -p "$DOCS/figures" "$DOCS/results"
	entitle
	for file in "$FIGURES"/*.svg; do
		[ -e "$file" ] || continue
		tail -c 20 "$file" | grep -q '</svg>' || {
			echo "${0##*/}: ${file##*/} is not complete" >&2
			exit 1
		}
		cp "$file" "$DOCS/figures/.${file##*/}.new"
	done
	for file in "$RESULTS"/*.txt; do
		[ ! -e "$file" ] ||
			cp "$file" "$DOCS/results/.${file##*/}.new"
	done
	for file in "$FIGURES"/*.svg; do
		name=${file##*/}
		[ ! -e "$file" ] ||
			mv "$DOCS/figures/.$name.new" "$DOCS/figures/$name"
	done
	for file in "$RESULTS"/*.txt; do
		name=${file##*/}
		[ ! -e "$file" ] ||
			mv "$DOCS/results/.$name.new" "$DOCS/results/$name"
	done
	echo "${0##*/}: results and figures in $DOCS are new"
}

# canvas NAME WIDTH,HEIGHT TITLE: the commands that a figure begins with.  White,
# as it is also seen on dark pages; TITLE is what the picture is called where it
# cannot be seen.
canvas()
{
	printf '%s\n' "$3" >"$FIGURES/$1.title"
	cat <<-EOT
	set terminal svg size $2 noenhanced font "sans,11" background rgb "white"
	set output "$FIGURES/$1.svg"
	set grid ytics lc rgb "#dddddd"
	set key outside bottom center horizontal samplen 2
	set xlabel offset 0,0.5
	set rmargin 5
	EOT
}

# sizes AXIS: bytes, as 4 KiB; counts AXIS: as 10k and 1M.
sizes()
{
	echo "set format $1 '%.0b %BB'"
}

counts()
{
	echo "set format $1 '%.0s%c'"
}

# A title of its own for each drawn figure, in place of the program's, and sizes
# as they are written elsewhere.
entitle()
{
	local file title

	for file in "$FIGURES"/*.title; do
		[ -s "${file%.title}.svg" ] || continue
		title=$(sed 's/&/\&amp;/g; s/</\&lt;/g; s/[\/&]/\\&/g' "$file")
		sed -i "s/<title>Gnuplot<\/title>/<title>$title<\/title>/
			s/\([0-9]\) kiB</\1 KiB</; s/\([0-9]\)  *B</\1 B</" \
			"${file%.title}.svg"
	done
}

# aligned: Markdown tables of the standard input as columns; other lines stay.
aligned()
{
	awk -F'|' '
		function print_rows(   row, i, text)
		{
			for (row = 1; row <= rows; row++) {
				text = " "
				for (i = 1; i <= columns; i++)
					text = text sprintf(i == 1 ? " %-*s" : \
						"  %*s", width[i], cell[row, i])
				sub(/ +$/, "", text)
				print text
				for (i = 1; i <= columns; i++)
					cell[row, i] = ""
			}
			for (i = 1; i <= columns; i++)
				width[i] = 0
			rows = columns = 0
		}
		/^\|[-| ]*$/ { next }
		/^\|/ {
			rows++
			for (i = 2; i < NF; i++) {
				gsub(/^ +| +$/, "", $i)
				cell[rows, i - 1] = $i
				if (length($i) > width[i - 1])
					width[i - 1] = length($i)
				if (i - 1 > columns)
					columns = i - 1
			}
			next
		}
		{
			print_rows()
			gsub(/\*\*/, "")
			print
		}
		END { print_rows() }'
}

# need TOOL...: or say which is missing, and end
need()
{
	local tool

	for tool in "$@"; do
		command -v "$tool" >/dev/null || {
			echo "${0##*/}: $tool is missing" >&2
			exit 1
		}
	done
}
