# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# picture.awk: an SVG of the lines that demo_race and demo_save printed: which
# writes were stale, and what a write takes.  After names.awk.

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

# One way of replacing pages: a bar for each cache
function race_row(i, y,   k, x, share)
{
	text(LEFT - 8, y + 22, "end", 12, way[i])
	for (k = 1; k <= 3; k++) {
		x = stale[i, k]
		share = x == "hangs" || x == "fails" ? 0 : x / of[i, k]
		if (x == "") {
			continue
		}
		rect(LEFT, y + 11 * (k - 1), share * WIDE + 1, 9, colour[k])
		text(LEFT + share * WIDE + 6, y + 11 * k - 2, "start", 10,
			x ~ /^[0-9]+$/ ? x " of " of[i, k] : x)
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

# One kind of buffer: a bar for each way, register-each is FULL wide
function save_row(i, y,   k, share)
{
	text(LEFT - 8, y + 22, "end", 12, row[i])
	for (k = 1; k <= 3; k++) {
		if (us[i, k] == "-")
			continue
		share = us[i, k] / us[i, 1]
		if (share > 1.5)
			share = 1.5
		rect(LEFT, y + 11 * (k - 1), share * WIDE / 1.5, 9,
			mark[i] ? "url(#stripes" k ")" : hue[k])
		text(LEFT + share * WIDE / 1.5 + 6, y + 11 * k - 2, "start", 10,
			sprintf(us[i, k] < 99.95 ? "%.1f us%s" : "%.0f us%s", \
				us[i, k], k > 1 ? mark[i] : ""))
	}
}

BEGIN {
	LEFT = 200
	WIDE = 460
	split("libfabric libfabric-uffd ofi_mrrc", cache)
	split("#d95f02 #e6ab02 #1b7837", colour)
	split("#7f7f7f #d95f02 #1b7837", hue)
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

$1 == "save" && $2 != "given" {
	row[++rows] = named($2) ", " size_of($3)
	us[rows, 1] = $5
	us[rows, 2] = $10
	us[rows, 3] = $15
	mark[rows] = agree($20, $21) ? "" : " ~"
}

END {
	height = 40 + (ways ? 60 + 40 * ways : 0) + (rows ? 60 + 40 * rows : 0)
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" " \
		"width=\"760\" height=\"%d\" viewBox=\"0 0 760 %d\" " \
		"font-family=\"sans-serif\">\n", height, height
	print "<title>ofi_mrrc beside libfabric's own cache</title>"
	print "<desc>Bars: writes with stale data while the buffer's" \
		" pages are replaced, and microseconds of a write.</desc>"
	for (k = 1; k <= 3; k++)
		stripes(k)
	rect(0, 0, 760, height, "#ffffff")
	y = 30
	if (ways) {
		text(10, y, "start", 15, "Writes with stale data, while the" \
			" buffer's pages are replaced")
		legend(10, y + 24, colour[1], "libfabric's cache (default)")
		legend(210, y + 24, colour[2], "libfabric's, userfaultfd")
		legend(400, y + 24, colour[3], "ofi_mrrc")
		y += 40
		for (i = 1; i <= ways; i++) {
			race_row(i, y)
			y += 40
		}
		y += 20
	}
	if (rows) {
		text(10, y, "start", 15, "Elapsed time of a write," \
			" registering each time = full length" \
			" (~ and stripes: turns disagree)")
		legend(10, y + 24, hue[1], "registered each time")
		if (us[1, 2] != "-")
			legend(210, y + 24, hue[2], "libfabric's cache")
		legend(400, y + 24, hue[3], "ofi_mrrc")
		y += 40
		for (i = 1; i <= rows; i++) {
			save_row(i, y)
			y += 40
		}
	}
	print "</svg>"
}
