# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh pages: blocks of fi_mr_alloc(3) by kind of page, by levy_bench in
# the guest.

readonly PAGES_TRIALS=9 PAGES_GOAL=0.85	# of 4 KiB; the paper: 0.75 to 0.85

# In the guest, as root: enough huge pages for the largest block.
pages_guest()
{
	echo 40 >/proc/sys/vm/nr_hugepages
	"$@"
}

bench_pages()
{
	local dir=$BUILD/bench/pages worst met=no
	local program=$BUILD/bench/fabtests/benchmarks/levy_bench

	need "$BUILD_PACKAGES" || cannot "packages are missing"
	build_installed bench || cannot "the build failed"
	mkdir -p "$dir"
	in_guest 900 "$dir/out" "each kind in turn, in the guest" \
		bash -c "$(declare -f pages_guest)
		pages_guest $program -p 'verbs;ofi_mrrc' -s 10.0.0.1 \
			-n $PAGES_TRIALS -o pages"
	say
	levy_setup
	say "Mapping and registering a block of fi_mr_alloc that nobody has"
	say "touched, and its undoing: milliseconds, medians of $PAGES_TRIALS. In"
	say "brackets the part of what 4 KiB take. The paper: 0.75 to 0.85."
	say
	awk '
		# sorts v[1..n]; its middle
		function median(v, n,   i, k, x) {
			for (i = 2; i <= n; i++) {
				x = v[i]
				for (k = i - 1; k && v[k] > x; k--)
					v[k + 1] = v[k]
				v[k + 1] = x
			}
			return v[int((n + 1) / 2)]
		}
		/^pages/ {
			n = ++count[$2, $3]
			us[$2, $3, n] = $5
			undo[$2, $3, n] = $6
			got[$2, $3] = $4
			if (!seen[$2]++)
				sizes[++m] = $2
		}
		function of(what, size, kind,   i, n, v) {
			n = count[size, kind]
			for (i = 1; i <= n; i++)
				v[i] = (what == "us" ? us[size, kind, i] : \
					undo[size, kind, i]) / 1000
			return median(v, n)
		}
		END {
			if (!m)
				exit
			printf "  %8s %9s %16s %16s   %s\n", "KiB", "4 KiB", \
				"THP", "2 MiB", "undoing: 4 KiB, THP, 2 MiB"
			for (s = 1; s <= m; s++) {
				k = sizes[s]
				a = of("us", k, "4K")
				b = of("us", k, "THP")
				c = of("us", k, "2M")
				if (got[k, "2M"] != 2097152)
					small = 1
				printf "  %8d %9.2f %9.2f (%.2f) %9.2f (%.2f)   %.2f %.2f %.2f\n", \
					k / 1024, a, b, b / a, c, c / a, \
					of("undo", k, "4K"), \
					of("undo", k, "THP"), \
					of("undo", k, "2M")
				sum += log(c / a)
			}
			printf "RESULT %s\n", small ? "none" : \
				sprintf("%.3f", exp(sum / m))
		}' "$dir/out" >"$dir/table"
	grep -v '^RESULT' "$dir/table"
	worst=$(sed -n 's/^RESULT //p' "$dir/table")
	case $worst in
	'') cannot "the guest said nothing" ;;
	none) cannot "the guest has no huge pages" ;;
	esac
	say
	at_most "$worst" $PAGES_GOAL && met=yes
	result "2 MiB pages $worst of 4 KiB (geometric mean)" "<= $PAGES_GOAL" \
		$met
}
