# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# frrwp.awk: what frrwp_bench says of one core, as bench.sh and
# docs/results/frrwp.txt show it.
#
# A transaction cannot do without one message and the writer's registration;
# "needed" is what those take, in the same process. "over" is what there is
# beyond until the core gets the write, "cut" what fi_cwrite() saves of that.

function over(process, left)
{
	left = at[process, "posted"] - need
	return left > 0 ? left : 0
}

# Of the transactions that register.
function note(cut,   i)
{
	if (mem != "cold")
		return
	for (i = ++cuts; i > 1 && sorted[i - 1] > cut; i--)
		sorted[i] = sorted[i - 1]
	sorted[i] = cut
}

# typical, fast and crw of one kind are there.
function row(   typical, cut, text)
{
	need = at["typical", "wregd"] - at["typical", "wreg"] + \
		at["typical", "heard"]
	if (op == "read")
		need -= at["typical", "tregd"]
	typical = over("typical")
	# less than a microsecond is nothing
	text = "-"
	if (typical >= 1) {
		cut = sprintf("%.0f", 100 * (1 - over("crw") / typical)) + 0
		note(cut)
		text = cut
	}
	printf form, op, mem, bytes, need,
		at["typical", "posted"], at["fast", "posted"],
		at["crw", "posted"],
		at["typical", "free"], at["crw", "free"],
		at["typical", "told"], at["fast", "told"], at["crw", "told"],
		text
}

BEGIN {
	head = "  %-5s %-4s %7s %8s | %8s %8s %8s | %8s %8s " \
		"| %8s %8s %8s | %5s\n"
	form = head
	gsub(/%8s/, "%8.0f", form)
	printf head, "", "", "bytes", "needed", "typical", "fast", "crw",
		"typical", "crw", "typical", "fast", "crw", "cut %"
}

$1 == "op" {
	for (i = 5; i <= NF; i++)
		name[i] = $i
	next
}

$4 ~ /^(typical|fast|crw)$/ {
	for (i = 5; i <= NF; i++)
		at[$4, name[i]] = $i == "-" ? 0 : $i
	op = $1
	mem = $2
	bytes = $3
	if ($4 == "crw")
		row()
}

END {
	if (cuts)
		printf "RESULT %.0f\n", (sorted[int((cuts + 1) / 2)] + \
			sorted[int(cuts / 2) + 1]) / 2
}
