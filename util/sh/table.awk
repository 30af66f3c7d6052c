# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# table.awk: counts the lines that have a format, given with -v format. It has
# a word for each column: N a number above 0, Z any number, * anything, else an
# expression. "..." in front of it stands for words that do not matter.

function number(word)
{
	sub(/^\(/, "", word)
	sub(/[)%,]+$/, "", word)
	return word ~ /^-?[0-9]+(\.[0-9]+)?$/ ? word : "none"
}

function fits(word, want)
{
	if (want == "*")
		return 1
	if (want == "N")
		return number(word) != "none" && number(word) + 0 > 0
	if (want == "Z")
		return number(word) != "none"
	return word ~ ("^(" want ")$")
}

BEGIN {
	any = sub(/^\.\.\. /, "", format)
	n = split(format, want, " ")
}

{
	gsub(/ %/, "%")
	skip = NF - n
	if (skip < 0 || (skip && !any))
		next
	for (i = 1; i <= n && fits($(skip + i), want[i]); i++)
		;
	rows += i > n
}

END { print rows + 0 }
