#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What is built has what hinders attackers, as the flags that configure found
# (MRRC_HARDEN) say: a stack protector, checked libc functions, relocations that
# are read-only and made at the start, and programs at any address.

set -u
export LC_ALL=C
readonly SKIP=77
readelf=${READELF:-readelf}
failed=0

# said FLAG: it is among the flags.
said()
{
	case " ${MRRC_HARDEN-} " in
	*"$1"*) return 0 ;;
	esac
	return 1
}

# has FILE WHAT TEXT PATTERN: TEXT has a line with PATTERN.
has()
{
	printf '%s\n' "$3" | grep -Eq -- "$4" && return 0
	echo "$1: no $2" >&2
	failed=1
}

# check FILE
check()
{
	if ! dynamic=$($readelf -dW "$1") || ! symbols=$($readelf -sW "$1") ||
		! segments=$($readelf -lW "$1"); then
		failed=1
		return
	fi
	if said -fstack-protector; then
		has "$1" "stack protector" "$symbols" ' __stack_chk_fail'
	fi
	if said -D_FORTIFY_SOURCE; then
		has "$1" "checked functions" "$symbols" ' __[a-z]+_chk(@|$)'
	fi
	if said -z,now; then
		has "$1" "GNU_RELRO" "$segments" ' GNU_RELRO '
		has "$1" "BIND_NOW" "$dynamic" '\(FLAGS_1\).* NOW'
	fi
	case $1 in
	util/*)
		if said -pie; then
			has "$1" "PIE" "$dynamic" '\(FLAGS_1\).* PIE'
		fi
		;;
	esac
}

command -v "$readelf" >/dev/null || exit $SKIP
# as with a sanitizer
said -fstack-protector || exit $SKIP
for name in get prof serve sim stat trace; do
	check "util/fi_mrrc_$name"
done
check .libs/libmrrc-fi.so
# the check itself sees what is not there
if (failed=0 && check /dev/null 2>/dev/null && [ $failed -eq 0 ]); then
	echo "the check sees nothing" >&2
	failed=1
fi
exit $failed
