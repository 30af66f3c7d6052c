# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh pages: blocks of fi_mr_alloc(3) by kind of page, by levy_bench in
# the guest.

readonly PAGES_GOAL=0.85	# of 4 KiB; the paper: 0.75 to 0.85
PAGES_TRIALS=9
smoking && PAGES_TRIALS=1

# In the guest, as root: enough huge pages for the largest block.
pages_guest()
{
	echo 40 >/proc/sys/vm/nr_hugepages
	"$@"
}

bench_pages()
{
	local dir=$DATA/pages worst small met=no
	local run=(-p "$CORE;ofi_mrrc" -n "$PAGES_TRIALS" -o pages)

	prepare
	program fabtests/benchmarks/levy_bench
	run=("$PROGRAM" "${run[@]}")
	smoking || run=(bash -c "$(declare -f pages_guest); pages_guest \"\$@\"" \
		pages "${run[@]}")
	in_guest 900 "$dir/out" "each kind in turn" "${run[@]}"
	say
	levy_setup
	say "Mapping and registering a new block of fi_mr_alloc"
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
		function ms(x)
		{
			return sprintf(x < 0.1 ? "%.3f" : "%.2f", x)
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
				printf "  %8d %9s %9s (%.2f) %9s (%.2f)   %s %s %s\n", \
					k / 1024, ms(a), ms(b), b / a, ms(c), \
					c / a, ms(of("undo", k, "4K")), \
					ms(of("undo", k, "THP")), \
					ms(of("undo", k, "2M"))
				sum += log(c / a)
			}
			printf "RESULT %.3f %d\n", exp(sum / m), small
		}' "$dir/out" >"$dir/table"
	table 6 "N N N Z N Z N N N" < <(grep -v '^RESULT' "$dir/table")
	read -r worst small < <(sed -n 's/^RESULT //p' "$dir/table")
	[ "$small" = 0 ] || smoking || cannot "the guest has no huge pages"
	say
	at_most "$worst" $PAGES_GOAL && met=yes
	result "2 MiB pages $worst of 4 KiB (geometric mean)" "<= $PAGES_GOAL" \
		$met
}
