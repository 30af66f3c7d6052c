#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# check_figures.sh: checks that files, figures, benchmarks and commands that the
# pages of docs/ name exist; that recorded traces can be read; and that
# figures.sh makes its quick part, and leaves everything as it was if that
# fails. Part of make check, which sets SIM and TRACE.

set -u
export LC_ALL=C

top=$(cd -- "${srcdir:-$(dirname -- "$0")/../..}" && pwd)
sim=${SIM:-util/fi_mrrc_sim}
trace=${TRACE:-util/fi_mrrc_trace}
dir=$(mktemp -d "${TMPDIR:-/tmp}/check_figures.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
export OFI_MRRC_BUILD=$dir/build
failed=0

fail()
{
	echo "FAIL: $*"
	failed=1
}

# ---- what is named is there --------------------------------------------------

links()
{
	local page link

	for page in "$top"/docs/*.md "$top/README.md" \
		"$top"/fabtests/traces/{,own_time/,steady/}README.md; do
		while read -r link; do
			[ -e "$(dirname "$page")/${link%%#*}" ] ||
				fail "${page##*/}: $link is not there"
		done < <(grep -oE '\]\([^):# ]+[^): ]*\)' "$page" |
			sed 's/^](//; s/)$//')
	done
}

# Every figure is shown on the one page, with a text for those that do not see
# it, complete, white on dark pages, too, without long numbers, and small.
figures()
{
	local file page

	for page in "$top"/docs/*.md; do
		! grep -nE '!\[.{0,39}\]\(figures/' "$page" ||
			fail "${page##*/}: a figure without words"
	done

	for file in "$top"/docs/figures/*.svg; do
		grep -q "(figures/${file##*/})" "$top/docs/figures.md" ||
			fail "figures.md does not show ${file##*/}"
		tail -c 20 "$file" | grep -q '</svg>' ||
			fail "${file##*/} is not complete"
		grep -qE '<rect x="0(\.0)?" y="0(\.0)?".* fill="#ffffff"/>' "$file" ||
			fail "${file##*/} has no white ground"
		! grep -q '<title>Gnuplot' "$file" ||
			fail "${file##*/} has no title"
		! grep -qE '<text>[^<]*[0-9]{5}' "$file" ||
			fail "${file##*/} has long numbers: sizes() or counts()"
		[ "$(wc -c <"$file")" -lt 200000 ] ||
			fail "${file##*/} is large"
	done
}

# Scripts accept the arguments that the pages name.
commands()
{
	local name

	"$top/bench.sh" | sed 's/  .*//' >"$dir/benchmarks"
	"$top/figures.sh" | sed 's/  .*//' >"$dir/figures"
	for name in $(cat "$top"/docs/*.md "$top/README.md" | tr '\n' ' ' |
		grep -oE '\./bench\.sh [a-z_]+' | cut -d' ' -f2 | sort -u); do
		grep -qx "$name" "$dir/benchmarks" ||
			fail "there is no ./bench.sh $name"
	done
	for name in $(cat "$top"/docs/*.md "$top/README.md" | tr '\n' ' ' |
		grep -oE '\./figures\.sh( -d)? [a-z_]+' | sed 's/.* //' |
		sort -u); do
		grep -qxE "$name" "$dir/figures" ||
			[[ " all quick " == *" $name "* ]] ||
			fail "there is no ./figures.sh $name"
	done
	while read -r name; do
		grep -qE "figures\.sh( -d)? ($name|all)|^ *$name\`" \
			"$top/docs/figures.md" ||
			fail "figures.md does not tell of $name"
	done <"$dir/figures"
	# and refuse others
	for name in nonsense -x; do
		"$top/figures.sh" $name >/dev/null 2>&1
		[ $? -eq 2 ] || fail "figures.sh $name is no wrong usage"
	done
}

# Each trace is listed, and both tools can read it.
traces()
{
	local file name folder

	for file in "$top"/fabtests/traces/{,own_time/,steady/}*.csv.xz; do
		name=$(basename "$file" .csv.xz)
		grep -q "^| $name |.*| [0-9]*[, ].*|$" \
			"$(dirname "$file")/README.md" ||
			fail "the README does not tell of $name"
		"$trace" -s "$file" >"$dir/out" 2>&1 ||
			fail "$name: $(cat "$dir/out")"
		"$sim" -q -p lru,gdl -s 10% "$file" >"$dir/out" 2>&1 ||
			fail "$name: $(cat "$dir/out")"
	done
	[ -s "$dir/out" ] || fail "there are no traces"
	# so that a clone stays small
	for folder in "$top"/fabtests/traces{,/own_time,/steady}; do
		[ "$(cat "$folder"/*.xz | wc -c)" -lt 500000 ] ||
			fail "the traces in $folder are large"
	done
}

# ---- the quick part ----------------------------------------------------------

state()
{
	(cd "$dir/docs" && find . -type f -exec cksum {} + | sort -k3)
}

# The steps of a transaction, as the benchmark prints them.
steps()
{
	sed -n "/^steps over $1\$/,/^\$/{/^  /p}" "$top/docs/results/frrwp.txt"
}

# Invented measurements, for which the figures are known.
data()
{
	local bench=$OFI_MRRC_BUILD/bench threads regions core size
	local columns=pages,state,bytes,register_us,traced_us,pin_us

	columns+=,translate_us,device_us,bandwidth_mbs,registering_mbs
	columns+=,least_register_us,map_us
	mkdir -p "$bench/levy" "$bench/kokkos" "$bench/profile" "$bench/frrwp"
	for core in tcp verbs; do
		steps $core >"$bench/frrwp/$core"
	done
	for size in 2048 1048576; do
		printf '%s\n' "new $size 2 300" "reuse $size 1 50"
	done >"$bench/levy/out"
	printf '%s\n' "kokkos 2048 100 200 150" >"$bench/kokkos/out"
	for threads in 0 1 2; do
		for regions in 100 10000; do
			echo "case $regions $threads no 9.0 8.0 trust 9"
			[ $threads -eq 0 ] ||
				echo "case $regions $threads no 400.0 50.0 yes 9"
		done
	done >"$bench/hit"
	printf '%s\n' "reg 1024 50 9" "reg 4096 60 9" "put 1024 25 90" \
		"put 4096 100 160" >>"$bench/levy/out"
	cat >"$bench/profile/out" <<-EOT
	== split
	$columns
	4k,touched,4096,40,40,10,10,20,,,40,
	4k,touched,8192,44,44,14,10,20,,,44,
	4k,absent,4096,80,80,50,10,20,,,80,5
	== model
	a=1,b=2
	== pages
	$columns
	4k,absent,2097152,1000,,,,,,,1000,5
	2m,absent,2097152,600,,,,,,,600,100
	EOT
	mkdir -p "$bench/helper"
	printf 'bytes %s %s 1000.0 50.0\n' each yes cache yes predict yes \
		each no cache no predict no >"$bench/helper/out"
	mkdir -p "$bench/replay"
	printf '%s\n' "bytes bt never 1.0 4096" "bytes bt predict 1.0 2048" \
		"replay bt never 9 1.0 2048 4096 4096 0 1.0" >"$bench/replay/out"
	for name in none conservative aggressive auto; do
		printf 'bytes 0 %s %s 1000.0 50.0\n' busy $name idle $name
	done >"$bench/node.helpers"
	for name in helper replay node footprint hit code alloc fragmentation pages cwrate late; do
		printf '%s\n' "   a sign of life" "Set-up: of a test" \
			"a table of $name" "$name: 9 ns (goal <= 10 ns)" \
			>"$bench/$name.said"
	done
}

quick()
{
	cp -r "$top/docs" "$dir/docs" && chmod -R u+w "$dir/docs"
	data
	state >"$dir/before"
	# what a drawing program does when it fails half-way
	mkdir -p "$dir/bin"
	cat >"$dir/bin/gnuplot" <<-EOT
	#!/bin/sh
	cat >/dev/null
	[ -e "$dir/failing" ] && exit 1
	: >"$dir/failing"
	EOT
	chmod +x "$dir/bin/gnuplot"
	for name in policies predict helper replay node hit registration frrwp profile levy; do
		rm -f "$dir/failing"
		# others fail at their second figure
		case $name in policies|predict|helper|replay|node|hit) : >"$dir/failing" ;; esac
		PATH=$dir/bin:$PATH "$top/figures.sh" -d -o "$dir/docs" \
			-b "$(cd -- "$(dirname -- "$sim")" && pwd)" $name \
			>"$dir/out" 2>&1 &&
			fail "$name is made without gnuplot"
		state | cmp -s - "$dir/before" ||
			fail "$name was left half-made"
	done
	# no data, no change
	OFI_MRRC_BUILD=$dir/nowhere "$top/figures.sh" -d -o "$dir/docs" \
		helper replay node footprint hit code allocator registration frrwp \
		cwrate late profile \
		levy pages >"$dir/out" 2>&1 && fail "figures are made of nothing"
	grep -q 'not made: helper replay node footprint hit code allocator .* frrwp cwrate late profile levy pages' \
		"$dir/out" ||
		fail "does not say what it has not made: $(cat "$dir/out")"
	state | cmp -s - "$dir/before" || fail "made something of nothing"
	command -v gnuplot >/dev/null || {
		echo "no gnuplot: nothing is drawn"
		return
	}
	"$top/figures.sh" -d -o "$dir/docs" \
		-b "$(cd -- "$(dirname -- "$sim")" && pwd)" \
		mpi_policies predict helper replay node footprint hit code \
		allocator registration frrwp cwrate late profile levy pages \
		>"$dir/out" 2>&1 ||
		fail "figures.sh: $(tail -n 5 "$dir/out")"
	# of the data above
	grep -qE '^  2 +10000 +9 +8 +1.1 +- +50 +8.0$' \
		"$dir/docs/results/hit.txt" || fail "hits are not as measured"
	grep -qE '^  4 +2.40 +4.00 +0.60$' "$dir/docs/results/registration.txt" ||
		fail "figure 1 of ou2009 is not as measured"
	grep -qE '^  8 +2.20 +1.00 +0.45$' "$dir/docs/results/registration.txt" ||
		fail "figure 2 of ou2009 is not as measured"
	for file in "$dir"/docs/figures/{hit,li2011-8,li2011-9,li2011-11-verbs,frrwp-7-8,levy2020-4,ou2009-1}.svg \
		"$dir/docs/figures/mietke2006-2.svg"; do
		grep -qE '<rect x="0(\.0)?" y="0(\.0)?".* fill="#ffffff"/>' "$file" ||
			fail "${file##*/} is drawn without a white ground"
		! grep -q '<title>Gnuplot\| kiB' "$file" ||
			fail "${file##*/} is drawn without a title of its own"
	done
	OFI_MRRC_DOCS=$dir/docs "$top/util/plot/results.sh" \
		-b "$OFI_MRRC_BUILD/bench" >"$dir/out" 2>&1
	sed -n '/^hit, 20/,/^$/p' "$dir/docs/results/benchmarks.txt" |
		tr -s ' \n' ' ' | grep -q ' result: 9 ns goal: <= 10 ns' ||
		fail "no result of hit: $(cat "$dir/out")"
	grep -q '^serve, 20' "$dir/docs/results/benchmarks.txt" ||
		fail "results of benchmarks that were not run are lost"
	# the simulator is the same everywhere: the results in the tree are true
	same mpi_policies
	same predict
	[ "$(sed -n '/^steps/,$p' "$dir/docs/results/frrwp.txt")" = \
		"$(sed -n '/^steps/,$p' "$top/docs/results/frrwp.txt")" ] ||
		fail "the steps of frrwp are not as measured"
	# of the data above, too
	grep -qE '^  2 MiB +1000 +- +700 +30 % +1.8 +1.5 +17 %$' \
		"$dir/docs/results/profile.txt" || fail "table 3 is not as measured"
	grep -qE '^ +2048 +2\.0 \(2\.0\) +300\.0 \(300\.0\) +150\.0 ' \
		"$dir/docs/results/levy.txt" ||
		fail "new memory is not as measured"
	for name in helper replay node code alloc fragmentation pages cwrate late; do
		grep -qx "a table of $name" "$dir/docs/results/$name.txt" ||
			fail "the table of $name is not as said"
	done
	! grep -q "sign of life" "$dir"/docs/results/*.txt ||
		fail "results have more than the tables"
}

# same NAME: the results made here, and those in the tree
same()
{
	cmp -s "$dir/docs/results/$1.txt" "$top/docs/results/$1.txt" ||
		fail "docs/results/$1.txt: run ./figures.sh, $1 has changed"
}

links
figures
commands
traces
quick
[ $failed = 0 ] && echo "PASS: pages, traces and figures"
exit $failed
