# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# summary.awk: three answers, of the lines that demo_race, demo_save
# and frrwp_bench printed.  verbs is 1 over verbs, monitor that of
# ofi_mrrc, exact 1 where the clock counts instructions.  A time has a "~" if turns
# disagree, and if it is an elapsed one of another clock.  After names.awk.

# A bar; hatched if turns disagree
function line(who, part, of, mark,   bar)
{
	bar = substr("##############################+", 1,
		part > 1 ? 31 : int(30 * part + .5))
	if (mark)
		gsub(/#/, "/", bar)
	return sprintf("   %-19s %-17s |%s %.2f%s", of, who, bar, part, mark)
}

function range(from, to)
{
	from = rounded(from)
	to = rounded(to)
	return from == to ? to : from " to " to
}

# stale writes of a cache, as words
function stale(cache,   text)
{
	text = sprintf("%d of %d", stale_cnt[cache], writes[cache])
	if (bad[cache])
		text = text sprintf(", and hung in %d of %d cases", bad[cache],
			ways[cache])
	return text
}

# Microseconds to register and deregister so much: between measured sizes
function cost_of(size,   i, part)
{
	for (i = 2; i < costs && at[i] < size; i++)
		;
	if (costs < 2 || size <= at[1])
		return cost[1]
	part = size >= at[i] ? 1 : (size - at[i - 1]) / (at[i] - at[i - 1])
	return cost[i - 1] + part * (cost[i] - cost[i - 1])
}

function percent(part, of)
{
	return sprintf("%.0f %%", of ? 100 * part / of : 0)
}

# What the caches avoid, at this device's cost of each registration
function print_worth(   text)
{
	printf "      At this device's cost of each: %s%.1f of %.1f ms (%s).\n",
		rough, worth / 1000, all_worth / 1000, percent(worth, all_worth)
	if (!(theirs_rows))
		return
	printf "      libfabric's cache: %d avoided (%s), %s%.1f ms (%s);\n",
		theirs, percent(theirs, total), rough, theirs_worth / 1000,
		percent(theirs_worth, all_worth)
	if (equal == theirs_rows)
		print "      both are equal in every row."
	else
		printf "      both are equal in %d of %d rows, not in\n%s.\n",
			equal, theirs_rows, substr(unequal, 3)
}

$1 == "load" {
	if (!loads++ || $2 > high)
		high = $2
	if (loads == 1 || $2 < low)
		low = $2
	processors = $3
}
$1 == "race" {
	ways[$3]++
	if ($4 !~ /^[0-9]+$/) {
		bad[$3]++
	} else {
		stale_cnt[$3] += $4
		writes[$3] += $5
	}
}
$1 == "cost" {
	at[++costs] = $2
	cost[costs] = $3 + $4
}
$1 == "cost" && $5 < 3 * $6 / 4 { rough = "~" }
$1 == "cost" && $2 == 4096 { reg = $3; dereg = $4 }
$1 == "start" { start = $2; our_start = $3; start_mark = agree($4, $5) ? "" : "~" }
$1 == "save" && $2 == "given" {
	plain = $5
	ours = $15
	unsure = !agree($20, $21)
}
$1 == "save" && $2 != "given" {
	total += $4
	registered += $17
	hits += $18
	copies += $19
	all_worth += $4 * cost_of($3)
	worth += ($4 - $17) * cost_of($3)
	if ($12 != "-") {
		theirs_rows++
		theirs += $4 - $12
		theirs_worth += ($4 - $12) * cost_of($3)
		# to a fiftieth
		if ($12 - $17 <= $4 / 50 && $17 - $12 <= $4 / 50)
			equal++
		else
			unequal = unequal ",\n        " named($2) " " size_of($3) " (" \
				percent($4 - $12, $4) ", ofi_mrrc " \
				percent($4 - $17, $4) ")"
	}
	rows++
	row[rows] = named($2) " " size_of($3)
	each[rows] = $5
	cache[rows] = $10
	mine[rows] = $15
	saved = 100 * (1 - $15 / $5)
	all_each += $6 * $4
	all_mine += $16 * $4
	if (!agree($20, $21)) {
		mark[rows] = " ~"
		next
	}
	if (!clear++ || saved > most)
		most = saved
	if (clear == 1 || saved < least)
		least = saved
}
$1 == "write" && $2 == "cold" && $3 == 4096 { told[$4] = $NF }
$1 == "sooner" && $2 == 4096 { late = agree($3, $4) ? "" : "~" }

END {
	used = exact ? "Instructions" : "Processor time"
	print ""
	printf "   Is it right?  "
	if (ways["ofi_mrrc"]) {
		printf "Stale data: libfabric's own cache %s;\n",
			stale("libfabric")
		if (ways["libfabric-uffd"])
			printf "      with userfaultfd %s;\n",
				stale("libfabric-uffd")
		printf "      ofi_mrrc %s.\n", stale("ofi_mrrc")
	} else if (verbs) {
		print "Not measured."
	} else {
		print "tcp reads memory by its address, so no write can be"
		print "      stale: the question needs a device, or the" \
			" virtual machine."
	}

	printf "   What does it save?  "
	if (rows) {
		printf "%d of %d registrations avoided (%.0f %%):\n",
			total - registered, total,
			100 * (total - registered) / total
		printf "      %d hits, %d copies. ", hits, copies
		if (reg)
			printf "One costs %s%.1f us, and %s%.1f us to undo (4 KiB).",
				rough, reg, rough, dereg
		print ""
		if (verbs && costs)
			print_worth()
		if (!verbs)
			print "      Over tcp they cost nothing, so no time can" \
				" be saved."
		else if (clear)
			printf "      %s of a write: %s %% saved in %d of %d rows, ~ in" \
				" the others.\n", used, range(least, most), clear, rows
		else
			printf "      %s of a write: ~ in all rows.\n", used
		if (verbs && !exact)
			printf "      Elapsed time of all writes: ~%.1f ms, and ~%.1f" \
				" when registering each time.\n",
				all_mine / 1000, all_each / 1000
		if (told["typical"] && told["crw"])
			printf "      Data of a conditional write is there after" \
				" %s%.0f us, %s%.0f us without (4 KiB).\n",
				late, told["crw"], late, told["typical"]
	} else {
		print "Not measured."
	}

	printf "   What does it cost where it cannot help?  "
	if (plain) {
		more = unsure ? "Turns disagree" : "Nothing to be seen"
		if (ours > plain && !unsure)
			more = sprintf("%.2f us", ours - plain)
		about = unsure ? "~" : ""
		printf "%s (64 bytes with a\n      descriptor of the" \
			" application's: %s%.2f us with ofi_mrrc, %s%.2f us" \
			" without).\n",
			more, about, ours, about, plain
	} else {
		print "Not measured."
	}
	if (start)
		printf "      To start and to connect: %s%.1f ms, %s%.1f without.\n",
			start_mark, our_start / 1000, start_mark, start / 1000
	if (loads)
		printf "   This machine's load was %s, with %d processors.%s\n",
			low == high ? low : low " to " high, processors,
			(high > processors && !exact ? \
			" That lengthens elapsed\n      times, not counts." : "")
	if (monitor == "none")
		print "   No cache was at work: see what is said of" \
			" userfaultfd."
	if (!rows || !verbs)
		exit
	print ""
	print "   " used " of a write, registering each time is 30 signs long" \
		" (/ and ~:\n   turns disagree):"
	for (i = 1; i <= rows; i++) {
		print line("libfabric's cache", cache[i] / each[i], row[i], mark[i])
		print line("ofi_mrrc", mine[i] / each[i], "", mark[i])
	}
	print ""
}
