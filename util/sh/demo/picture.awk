# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# picture.awk: an SVG of the lines that demo_race and demo_save printed: which
# writes were stale, what a write takes, and what a start takes.  exact is 1 where
# the clock counts instructions.  After names.awk.

function text(x, y, anchor, size, words)
{
	gsub(/&/, "\\&amp;", words)
	gsub(/</, "\\&lt;", words)
	printf "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\" font-size=\"%d\">" \
		"%s</text>\n", x, y, anchor, size, words
}

function rect(x, y, width, height, colour)
{
	printf "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" " \
		"fill=\"%s\"/>\n", x, y, width, height, colour
}

function legend(x, y, colour, words)
{
	rect(x, y - 10, 11, 11, colour)
	text(x + 16, y, "start", 12, words)
}

# The K-th bar of a row at Y
function bar(y, k, share, colour, words)
{
	rect(LEFT, y + 9 * (k - 1), share * WIDE + 1, 8, colour)
	text(LEFT + share * WIDE + 6, y + 9 * k - 1, "start", 9, words)
}

# One way of replacing pages: a bar for each cache
function race_row(i, y,   k, x)
{
	text(LEFT - 8, y + 18, "end", 12, way[i])
	for (k = 1; k <= 3; k++) {
		x = stale[i, k]
		if (x ~ /^[0-9]+$/)
			bar(y, k, x / of[i, k], race_hue[k], x " of " of[i, k])
		else if (x != "")
			bar(y, k, 0, race_hue[k], x)
	}
}

# Bars of rows whose turns disagree: stripes of the colour
function stripes(k)
{
	printf "<pattern id=\"stripes%d\" width=\"6\" height=\"6\"" \
		" patternUnits=\"userSpaceOnUse\"" \
		" patternTransform=\"rotate(45)\">" \
		"<rect width=\"3\" height=\"6\" fill=\"%s\"/></pattern>\n",
		k, hue[k]
}

function us(n, mark)
{
	return sprintf(n < 99.95 ? "%.1f us%s" : "%.0f us%s", n, mark)
}

# One kind of buffer: a bar for each way, of which the first has two thirds
function save_row(i, y,   k, share)
{
	text(LEFT - 8, y + 18, "end", 12, row[i])
	for (k = 1; k <= 3; k++) {
		if (time[i, k] == "-")
			continue
		share = time[i, k] / time[i, 1] / 1.5
		bar(y, k, share > 1 ? 1 : share,
			mark[i] ? "url(#stripes" k ")" : hue[k],
			us(time[i, k], mark[i]))
	}
}

# What ofi_mrrc costs: without it, and with it
function cost_row(name, plain, ours, unit, mark, y,   most)
{
	most = ours > plain ? ours : plain
	text(LEFT - 8, y + 13, "end", 12, name)
	bar(y, 1, plain / most / 1.5, mark ? "url(#stripes1)" : hue[1],
		sprintf("%.2f %s%s", plain, unit, mark))
	bar(y, 2, ours / most / 1.5, mark ? "url(#stripes3)" : hue[3],
		sprintf("%.2f %s%s", ours, unit, mark))
}

function heading(y, words, colour, first, second)
{
	text(10, y, "start", 15, words)
	legend(10, y + 22, colour[1], first)
	if (second)
		legend(250, y + 22, colour[2], second)
	legend(500, y + 22, colour[3], "ofi_mrrc")
}

BEGIN {
	LEFT = 200
	WIDE = 460
	ROW = 34
	split("libfabric libfabric-uffd ofi_mrrc", cache)
	split("#7f7f7f #d95f02 #1b7837", hue)
	split("#d95f02 #e6ab02 #1b7837", race_hue)
}

$1 == "race" {
	if ($2 != last)
		way[++ways] = named(last = $2)
	for (k = 1; k <= 3; k++) {
		if ($3 != cache[k])
			continue
		stale[ways, k] = $4
		of[ways, k] = $5
	}
}

$1 == "save" {
	about = agree($20, $21) ? "" : " ~"
}

$1 == "save" && $2 == "given" {
	plain = $5
	ours = $15
	given_mark = about
}

$1 == "save" && $2 != "given" {
	row[++rows] = named($2) ", " size_of($3)
	time[rows, 1] = $5
	time[rows, 2] = $10
	time[rows, 3] = $15
	mark[rows] = about
}

$1 == "start" {
	start = $2
	our_start = $3
	start_mark = agree($4, $5) ? "" : " ~"
}

END {
	used = exact ? "Instructions (1 us: 1,000)" : "Processor time"
	costs = (plain != "") + (start != "")
	height = 10 + (ways ? 60 + ROW * ways : 0) + \
		(rows ? 60 + ROW * rows : 0) + (costs ? 60 + ROW * costs : 0)
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" " \
		"width=\"760\" height=\"%d\" viewBox=\"0 0 760 %d\" " \
		"font-family=\"sans-serif\">\n", height, height
	print "<title>ofi_mrrc beside libfabric's own cache</title>"
	print "<desc>Bars: writes with stale data while the buffer's" \
		" pages are replaced, time of a write, and what" \
		" ofi_mrrc costs.</desc>"
	for (k = 1; k <= 3; k++)
		stripes(k)
	rect(0, 0, 760, height, "#ffffff")
	y = 26
	if (ways) {
		heading(y, "Is it right? Writes with stale data, while the" \
			" buffer's pages are replaced", race_hue,
			"libfabric's cache (default)", "libfabric's, userfaultfd")
		y += 34
		for (i = 1; i <= ways; i++) {
			race_row(i, y)
			y += ROW
		}
		y += 26
	}
	if (rows) {
		heading(y, "What does it save? " used " of a write" \
			" (~, stripes: turns disagree)", hue, "registered each time",
			time[1, 2] == "-" ? "" : "libfabric's cache")
		y += 34
		for (i = 1; i <= rows; i++) {
			save_row(i, y)
			y += ROW
		}
		y += 26
	}
	if (costs) {
		heading(y, "What does it cost where it cannot help? " used,
			hue, "without ofi_mrrc")
		y += 34
	}
	if (start != "") {
		cost_row("start and connect", start / 1000, our_start / 1000, "ms",
			start_mark, y)
		y += ROW
	}
	if (plain != "")
		cost_row("registered by application", plain, ours, "us",
			given_mark, y)
	print "</svg>"
}
