# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# profile.awk: tables of what profile_run.sh printed, beside those of
# mietke2006.
#
# awk -F, -f profile.awk -v table=TABLE [-v md=1] FILE
# TABLE: touched or absent (figures 2 and 3, or 4 and 5), bandwidth (table 1),
# pages (table 3), plot-touched or plot-absent for gnuplot, or result: the
# R^2 of both lines, the percent of a registration's time that is accounted
# for, on average over the sizes, the least, and where that is.

BEGIN {
	split("32 64 128 256 512 1024 2048 4096", kib, " ")
	split("3.22 2.55 2.00 1.74 1.56 1.39 1.33 1.31", factor, " ")
	for (i in kib)
		paper_factor[kib[i] * 1024] = factor[i]
	split("2 4 8 16 32 64", mib, " ")
	split("1.8 3.7 7.4 14.7 28.8 57.9", small, " ")
	split("1.5 2.9 5.7 11.3 22.5 45.0", huge, " ")
	for (i in mib) {
		paper_small[mib[i] * 1048576] = small[i]
		paper_huge[mib[i] * 1048576] = huge[i]
	}
	if (table == "touched" || table == "absent")
		head("bytes,all us,pin us,translate us,device us,pin,translate,device,sum")
	else if (table == "bandwidth")
		head("bytes,MB/s registering,MB/s registered,factor,paper's")
	else if (table == "pages")
		head("bytes,4k us,thp us,2m us,2m saves,paper's 4k ms,paper's 2m ms,saves")
}

function head(names,   n, i, name, rule) {
	n = split(names, name, ",")
	row()
	for (i = 1; i <= n; i++)
		cell(name[i])
	flush()
	for (i = 1; i <= n && md; i++)
		rule = rule "---|"
	if (md)
		print "|" rule
}

function row() { line = md ? "|" : "  "; cells = 0 }
function cell(text) {
	line = line (md ? sprintf(" %s |", text) : \
		sprintf("%*s", cells ? 18 : 8, text))
	cells++
}
function flush() { print line }

function bytes(n) {
	if (n >= 1048576)
		return n / 1048576 " MiB"
	return n / 1024 " KiB"
}
function us(x) {
	return sprintf(x >= 100 ? "%.0f" : x >= 0.1 || !x ? "%.1f" : "%.3f", x)
}
function percent(part, whole) {
	return whole ? sprintf("%.0f %%", 100 * part / whole) : "-"
}

/^== / { section = substr($0, 4); lines = 0; next }
section == "model" && /^# R.2 / {
	split($0, word, " ")
	r2 = word[3]
	r2_dereg = word[5]
	sub(/,/, "", r2_dereg)
}
section != "split" && section != "pages" { next }
!lines++ {
	for (i = 1; i <= NF; i++)
		at[$i] = i
	n = split("pages state bytes register_us traced_us pin_us " \
		"translate_us device_us bandwidth_mbs registering_mbs " \
		"least_register_us map_us", names, " ")
	for (i = 1; i <= n; i++)
		if (!(names[i] in at))
			missing = names[i]
	if (missing) {
		print "profile.awk: no column " missing >"/dev/stderr"
		exit 1
	}
	next
}

section == "split" && $at["traced_us"] != "" {
	sum = $at["pin_us"] + $at["translate_us"] + $at["device_us"]
	accounted += sum / $at["traced_us"]
	traced++
	if (!least || sum / $at["traced_us"] < least) {
		least = sum / $at["traced_us"]
		where = $at["state"] " " bytes($at["bytes"])
	}
}

section == "split" && table == $at["state"] {
	row()
	cell(bytes($at["bytes"]))
	cell(us($at["traced_us"]))
	cell(us($at["pin_us"]))
	cell(us($at["translate_us"]))
	cell(us($at["device_us"]))
	cell(percent($at["pin_us"], $at["traced_us"]))
	cell(percent($at["translate_us"], $at["traced_us"]))
	cell(percent($at["device_us"], $at["traced_us"]))
	cell(percent(sum, $at["traced_us"]))
	flush()
}

section == "split" && table == "plot-" $at["state"] {
	print $at["bytes"] / 1024, $at["traced_us"], $at["pin_us"],
		$at["translate_us"], $at["device_us"], $at["register_us"]
}

section == "split" && table == "bandwidth" && $at["bandwidth_mbs"] != "" {
	row()
	cell(bytes($at["bytes"]))
	cell(us($at["registering_mbs"]))
	cell(us($at["bandwidth_mbs"]))
	cell(sprintf("%.2f", $at["bandwidth_mbs"] / $at["registering_mbs"]))
	cell(paper_factor[$at["bytes"]])
	flush()
}

# like the paper: small pages registered, large ones mapped as well; the least,
# as these take so long that something else always runs meanwhile
section == "pages" && $at["state"] == "absent" {
	took[$at["pages"], $at["bytes"]] = $at["least_register_us"] + \
		($at["pages"] == "4k" ? 0 : $at["map_us"])
	if ($at["pages"] == "4k")
		size[++sizes] = $at["bytes"]
}

function or_none(kind, n) {
	return (kind, n) in took ? us(took[kind, n]) : "-"
}

END {
	if (missing)
		exit 1
	for (i = 1; i <= sizes && table == "pages"; i++) {
		n = size[i]
		row()
		cell(bytes(n))
		cell(us(took["4k", n]))
		cell(or_none("thp", n))
		cell(or_none("2m", n))
		cell(("2m", n) in took ? \
			percent(took["4k", n] - took["2m", n], took["4k", n]) \
			: "-")
		cell(paper_small[n])
		cell(paper_huge[n])
		cell(percent(paper_small[n] - paper_huge[n], paper_small[n]))
		flush()
	}
	if (table == "result" && traced)
		printf "%s %s %.1f %.1f %s\n", r2, r2_dereg,
			100 * accounted / traced, 100 * least, where
}
