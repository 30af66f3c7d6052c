# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# alloc.awk: sums up the trials of levy_bench and kokkos_bench. The last line is
# "RESULT" and what bench.sh compares: new at 128 bytes, the least from 1 MiB
# on, reuse at 4 KiB, the least put to 4 KiB; or, of Kokkos, the least against
# HostSpace to small_to, the least against the better of the others, and where.
# With -v data=1: only numbers, "WHAT SIZE MEAN MEDIAN [MEAN MEDIAN]...", for
# plots.

/^(reg|new|reuse|put|kokkos) / {
	n = ++count[$1, $2]
	columns[$1] = NF - 2
	for (c = 3; c <= NF; c++) {
		us[$1, $2, c - 2, n] = $c
		sum[$1, $2, c - 2] += $c
	}
	if (n == 1)
		size[$1, ++sizes[$1]] = $2
}

function mean(what, len, c)
{
	return sum[what, len, c] / count[what, len]
}

function median(what, len, c,   i, k, x, n, v)
{
	n = count[what, len]
	for (i = 1; i <= n; i++) {
		x = us[what, len, c, i]
		for (k = i - 1; k && v[k] > x; k--)
			v[k + 1] = v[k]
		v[k + 1] = x
	}
	return v[int((n + 1) / 2)]
}

function title(what)
{
	if (what == "reg")
		return "registering and deregistering"
	if (what == "new")
		return "new memory"
	if (what == "reuse")
		return "memory used before"
	return "memory used before, and its contents put to the peer"
}

function us_of(x)
{
	return sprintf(x < 0.1 ? "%.3f" : "%.1f", x)
}

function pair(what, len, c)
{
	return us_of(mean(what, len, c)) " (" us_of(median(what, len, c)) ")"
}

function table(what,   i, len, times, typical)
{
	printf "\n%s\n", title(what)
	if (what == "reg")
		printf "  %8s %22s %22s %12s\n", "bytes", "register", \
			"deregister", "ns a byte"
	else
		printf "  %8s %22s %22s %16s\n", "bytes", "fi_mr_alloc", \
			"malloc, register", "times"
	for (i = 1; i <= sizes[what]; i++) {
		len = size[what, i]
		if (what == "reg") {
			printf "  %8d %22s %22s %12.3f\n", len, \
				pair(what, len, 1), pair(what, len, 2), \
				mean(what, len, 1) / len * 1000
			continue
		}
		times = mean(what, len, 2) / mean(what, len, 1)
		typical = median(what, len, 2) / median(what, len, 1)
		printf "  %8d %22s %22s %8.1f %7.1f\n", len, \
			pair(what, len, 1), pair(what, len, 2), times, typical
		if (what == "new" && len == 128)
			new = times
		if (what == "new" && len >= 1048576 &&
		    (!large || times < large))
			large = times
		if (what == "reuse" && len == 4096)
			reuse = times
		if (what == "put" && len <= 4096 && (!put || times < put))
			put = times
	}
}

function kokkos(   i, len, a, b, c, other, small, worst, where)
{
	printf "  %8s %12s %12s %12s %10s %10s\n", "bytes", "registered", \
		"HostSpace", "serialised", "/ host", "/ serial"
	for (i = 1; i <= sizes["kokkos"]; i++) {
		len = size["kokkos", i]
		a = median("kokkos", len, 1)
		b = median("kokkos", len, 2)
		c = median("kokkos", len, 3)
		printf "  %8d %12.1f %12.1f %12.1f %10.2f %10.2f\n", len, a, \
			b, c, b / a, c / a
		if (len <= small_to && (!small || b / a < small))
			small = b / a
		other = (b < c ? b : c) / a
		if (!worst || other < worst) {
			worst = other
			where = len
		}
	}
	printf "RESULT %.2f %.2f %d bytes\n", small, worst, where
}

function numbers(what,   i, c, len)
{
	for (i = 1; i <= sizes[what]; i++) {
		len = size[what, i]
		printf "%s %d", what, len
		for (c = 1; c <= columns[what]; c++)
			printf " %.4f %.4f", mean(what, len, c), \
				median(what, len, c)
		printf "\n"
	}
}

END {
	split("reg new reuse put kokkos", all)
	for (a = 1; data && a <= 5; a++)
		numbers(all[a])
	if (data)
		exit
	if (sizes["kokkos"]) {
		kokkos()
		exit
	}
	for (a = 1; a <= 4; a++) {
		if (sizes[all[a]])
			table(all[a])
	}
	if (put)
		printf "RESULT %.1f %.2f %.1f %.2f\n", new, large, reuse, put
}
