#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# lines.sh [-w]: compares the lines of source of each room with util/sh/lines.txt,
# so that growth is a decision of the commit that makes it. A room may have as many
# as the table says, and a hundred fewer. -w writes the table, in steps of fifty.

set -u
export LC_ALL=C
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." || exit 2
readonly TABLE=util/sh/lines.txt

# "ROOM LINES": two folders below prov/mrrc, one of its tests and of the others.
rooms()
{
	git ls-files -z include prov util fabtests packaging man |
		grep -zE '\.([ch]|cc|hpp|sh|py)$' |
		xargs -0 awk '
		FNR == 1 {
			n = split(FILENAME, part, "/") - 1
			most = part[1] == "prov" ? 4 : 2
			room = part[1]
			for (i = 2; i <= most && i <= n; i++)
				room = room "/" part[i]
		}
		{ lines[room]++ }
		END { for (room in lines) print room, lines[room] }' | sort
}

case ${1-} in
'')
	awk -v table=$TABLE '
	NR == FNR { if (!/^#/) most[$1] = $2; next }
	{ seen[$1] }
	$2 > most[$1] || $2 < most[$1] - 100 {
		print $1 ": " $2 " lines, not " most[$1] + 0
		bad = 1
	}
	END {
		for (room in most)
			if (!(room in seen)) {
				print room ": no lines"
				bad = 1
			}
		if (bad)
			print table ": if this is meant, util/sh/lines.sh -w writes it"
		exit bad
	}' $TABLE <(rooms)
	;;
-w)
	{
		echo "# Most lines of source in each room: see lines.sh."
		rooms | awk '{ printf "%-30s %6d\n", $1, int(($2 + 49) / 50) * 50 }'
	} >$TABLE.new && mv $TABLE.new $TABLE
	;;
*)
	echo "Usage: ${0##*/} [-w]"
	exit 2
	;;
esac
