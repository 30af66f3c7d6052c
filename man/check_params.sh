#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# check_params.sh: fi_mrrc_params(7) has the run-time parameters of the provider,
# prov/mrrc/README.md the internal ones, fi_mrrc_sim(1) the policies, no others are
# named in any page, and fi_mrrc_stats_read(3) has every counter of the public
# header.  Part of make check.

set -u
export LC_ALL=C

top=${srcdir:-$(dirname -- "$0")/..}
page=$top/man/fi_mrrc_params.7.md
readme=$top/prov/mrrc/README.md
simulator=$top/man/fi_mrrc_sim.1.md
counters=$top/man/fi_mrrc_stats_read.3.md
source=$top/prov/mrrc/fi/param.c
header=$top/include/rdma/fi_ext_mrrc.h
failed=0

fail()
{
	echo "FAIL: $*"
	failed=1
}

for file in "$page" "$counters" "$source" "$header"; do
	[ -r "$file" ] || fail "cannot read $file"
done
[ $failed = 0 ] || exit 1

# The names in the table, with " internal" behind those that are.
defined()
{
	sed -n '/param_table\[\] = {/,/^};/p' "$source" |
		awk -F '"' '/\.name = / { name = "FI_OFI_MRRC_" toupper($2) }
			/\.internal = true/ { name = name " internal" }
			/\.accepts/ { print name }' | sort -u
}

# Those that the page defines, a term of RUNTIME PARAMETERS, and the README.
documented()
{
	{
		sed -n '/^# RUNTIME PARAMETERS/,/^# [^R]/p' "$page" |
			grep -oE '^\*FI_OFI_MRRC_[A-Z_0-9]+\*' | tr -d '*'
		sed -n '/^## Parameters/,/^## [^P]/p' "$readme" |
			sed -nE 's/^- .([a-z_0-9]+).:.*/FI_OFI_MRRC_\U\1\E internal/p'
	} | sort -u
}

# Fields of struct fi_mrrc_stats, the size apart.
fields()
{
	sed -n '/^struct fi_mrrc_stats {/,/^};/p' "$header" |
		sed 's,/\*.*,,' |
		sed -nE 's/^\t[a-z].*[ *]([a-z_0-9]+)(\[[0-9]+\])?;.*/\1/p' |
		grep -v '^size$'
}

# Of the registry.
policies()
{
	sed -nE 's/^\t&mrrc_policy_([a-z0-9_]+)_ops,$/\1/p' \
		"$top/prov/mrrc/core/policy/policy.c" | tr _ -
}

[ -n "$(policies)" ] || fail "no policy found"
[ -n "$(defined)" ] || fail "no parameter found in $source"
[ -n "$(fields)" ] || fail "no field found in $header"

while read -r name; do
	fail "$name is in param.c and not in the manual page or README"
done < <(comm -23 <(defined) <(documented))
while read -r name; do
	fail "$name is in the manual page or README and not in param.c"
done < <(comm -13 <(defined) <(documented))
while read -r name; do
	fail "counter $name is not in the manual page"
done < <(comm -23 <(fields | sort) \
	<(grep -E '^\*[a-z_0-9]+\*(, \*[a-z_0-9]+\*)*$' "$counters" |
		grep -oE '[a-z_0-9]+' | sort -u))
while read -r name; do
	sed -n '/\.name = "policy"/,/\.otherwise/p' "$source" |
		grep -qwF -- "$name" ||
		fail "policy $name is not among those that param.c accepts"
	grep -qE "^\*.*$name\*" "$simulator" ||
		fail "policy $name is not in the manual page"
done < <(policies)
# a name mentioned elsewhere must exist as well
while read -r name; do
	fail "$name is mentioned, but no parameter"
done < <(comm -13 <({ defined | cut -d ' ' -f 1; echo FI_OFI_MRRC_NAME; } | sort) \
	<(grep -ohE 'FI_OFI_MRRC_[A-Z_0-9]+' "$top"/man/*.md | sort -u))

[ $failed = 0 ] && echo "PASS: $(defined | wc -l) parameters," \
	"$(fields | wc -l) counters"
exit $failed
