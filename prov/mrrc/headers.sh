#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# A function is declared in the header of its file's name: fails for each that
# NAME.h or NAME_priv.h declares and another file than NAME.c defines. The headers
# listed here are for a whole room, or other rooms: in these, such functions lie
# below a comment that begins with the names of the files that define them.

source=${srcdir:-.}

rooms='core/cw/cw.h
sys/cache/cache_hit.h sys/cache/cache_mt.h sys/cache/cache_use.h
sys/heap/heap.h sys/hooks/libc_hooks.h sys/hooks/patch.h sys/monitor/mon.h
sys/node/budget.h sys/proof/code.h sys/proof/prove.h
fi/alloc/alloc.h fi/alloc/alloc_priv.h fi/cw/cw.h fi/cw/group.h fi/cw/link.h
fi/cw/mark.h fi/cw/rdm.h fi/data/tables.h fi/hook/hook.h fi/obj/obj.h'

# judge FILE...: complaints about the headers among these; sources come first.
judge()
{
	awk -v rooms="$rooms" '
	BEGIN { n = split(rooms, at); for (; n; n--) room["./" at[n]] }
	FNR == 1 {
		own = FILENAME
		sub(/(_priv\.h|\.[ch])$/, ".c", own)
		comment = under = name = ""
	}
	/^\/\*/ { comment = " " }
	comment {
		comment = comment " " $0
		if (!/\*\//)
			next
		gsub(/[a-z]+\/|\/?\*\/?|,/, "", comment)
		if (match(comment, /^( +[a-z0-9_]+\.c[.:]?)+ /))
			under = substr(comment, 1, RLENGTH)
		gsub(/[.:] /, " ", under)
		comment = ""
		next
	}
	/^[a-z_]/ && !/^(typedef|static) / && match($0, /mrrc_[a-z0-9_]+\(/) {
		name = substr($0, RSTART, RLENGTH - 1)
	}
	name && /^[{]/ && FILENAME ~ /c$/ { of[name] = of[name] FILENAME " " }
	name && /;([ \t]*\/\*.*\*\/)?$/ && FILENAME ~ /h$/ && name in of {
		# one of several, where they are for different processors
		for (n = split(of[name], at); n; n--) {
			file = at[n]
			sub(/.*\//, "", file)
			if (FILENAME in room && under ? \
			    index(under, " " file " ") : at[n] == own)
				break
		}
		if (!n)
			print FILENAME ": " name "() is in " of[name]
	}
	/^[{]|[;}]([ \t]*\/\*.*\*\/)?$/ { name = "" }' "$@"
}

# It must trip on an offender.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
printf 'int\nmrrc_b(void)\n{\n}\n' >"$dir/b.c"
echo 'int mrrc_b(void); /* b */' | tee "$dir/a.h" >"$dir/b.h"
printf '/* a.c */\nint mrrc_b(void);\n' >"$dir/room.h"
printf '/* b.c: x */\nint mrrc_b(void);\n' >"$dir/good.h"
if [ "$(cd "$dir" && rooms='room.h good.h' &&
	judge ./b.c ./a.h ./b.h ./room.h ./good.h | cut -d: -f1 | tr '\n' ' ')" \
	!= "./a.h ./room.h " ]; then
	echo "headers: a function that another file defines does not trip" >&2
	exit 1
fi
cd "$source/prov/mrrc" || exit 1
# shellcheck disable=SC2046 # no name has a space
! judge $(find ./core ./sys ./fi -name '*.c' ! -name without.c) \
	$(find ./core ./sys ./fi -name '*.h') | grep . >&2
