#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# layout.sh: compares fi_ext_mrrc.h with layout.txt, which lists the offset, size
# and declaration of each field of a structure, and the value of each constant.
# Programs were compiled with those of the last release, so lines of a release
# stay as they are, and new ones are added:
#
#	prov/mrrc/test/fi/layout.sh --print >prov/mrrc/test/fi/layout.txt

set -u
export LC_ALL=C
top=$(cd -- "$(dirname -- "$0")/../../../.." && pwd)
header=$top/include/rdma/fi_ext_mrrc.h
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

# Prints a C program that, when run, prints the list for the header.
program()
{
	sed -E ':more; /\/\*/{ /\*\//!{ N; b more }; s,/\*([^*]|\*[^/])*\*/,,g }' \
		"$header" | awk '
		BEGIN {
			print "#include <stdio.h>\n#include <rdma/fi_ext_mrrc.h>"
			print "int main(void)\n{"
		}
		/^#define FI_MRRC_[A-Z_0-9]+[ \t]+"/ {
			sub(/^#define /, "")
			gsub(/"/, "\\\"")
			print "puts(\"" $0 "\");"
			next
		}
		/^#define FI_MRRC_[A-Z_0-9]+[ \t]/ && $2 != "FI_MRRC_VERSION" {
			printf "printf(\"%s %%#llx\\n\", (unsigned long long) (%s));\n",
				$2, $2
		}
		/^struct [a-z_]+ \{/ {
			type = "struct " $2
			next
		}
		/^}/ { type = "" }
		type {
			$1 = $1
			text = text (text ? " " : "") $0
			if (text !~ /;$/)
				next
			field = text
			if (!sub(/^[^(]*\(\*/, "", field))
				sub(/(\[.*)?;$/, "", field)
			sub(/\).*/, "", field)
			sub(/.*[ *]/, "", field)
			printf "printf(\"%s %%zu %%zu %s\\n\", offsetof(%s, %s), sizeof(((%s *) 0)->%s));\n",
				type, text, type, field, type, field
			text = ""
		}
		END { print "return 0;\n}" }'
}

program >"$dir/layout.c"
# shellcheck disable=SC2086 # options
${CC:-cc} -I"$top/include" ${EXAMPLE_CFLAGS-} -o "$dir/layout" "$dir/layout.c" &&
	"$dir/layout" >"$dir/layout.txt" || exit 1
[ "${1-}" != --print ] || { cat "$dir/layout.txt"; exit; }
diff -u "${0%.sh}.txt" "$dir/layout.txt"
