#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# example.sh PAGE: prints the whole program of a manual page, man/PAGE.N.md, to
# be installed. Part of make.

set -eu
dir=$(dirname -- "${BASH_SOURCE[0]}")
page=$(basename -- "$dir/$1".[1-9].md)
section=${page%.md}
echo "/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */"
echo "/* Of $1(${section##*.}): cc -o $1 $1.c \$(pkg-config --cflags --libs ofi_mrrc) */"
awk '
	/^```c$/ { inside = 1; text = ""; next }
	/^```$/ {
		if (inside && text ~ /int main\(/) {
			printf "%s", text
			found++
		}
		inside = 0
	}
	inside { text = text $0 "\n" }
	END { exit found != 1 }' "$dir/$page"
