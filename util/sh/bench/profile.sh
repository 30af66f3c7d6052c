# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh profile: what registration is spent on, by fi_mrrc_prof in the
# guest.

# R^2 of both lines, and the percent of all time that is accounted for
readonly PROFILE_R2=0.98 PROFILE_SHARES=90
# a row of the kernel's functions, which are traced over verbs
PROFILE_TRACED="N * N N N N Z Z Z Z"
smoking && PROFILE_TRACED="N * 0.0 0.0 0.0 0.0 - - - -"

profile_awk()
{
	awk -F, -v table="$1" -f "$TOP/util/plot/profile.awk" \
		"$DATA/profile/out"
}

bench_profile()
{
	local dir=$DATA/profile met=no r2 r2_dereg shares least where

	prepare
	program prefix/bin/fi_mrrc_prof
	in_guest 900 "$dir/out" "fi_mrrc_prof" \
		"$TOP/util/plot/profile_run.sh" "${PROGRAM%/*}" "$CORE"
	say
	say "Set-up: $(setup_line), Soft-RoCE in an emulated guest"
	say "($(sed -n '/^== setup/{n;p;}' "$dir/out")). Of the kernel's"
	say "functions, one registration of each size, the least disturbed; else"
	say "medians. \"sum\": pin, translate and device; the rest is spent in"
	say "libraries and on the way into the kernel, ten times as slow here."
	say
	say "Figures 2 and 3: registration, pages present"
	table 5 "$PROFILE_TRACED" < <(profile_awk touched)
	say
	say "Figures 4 and 5: registration, pages not present"
	table 5 "$PROFILE_TRACED" < <(profile_awk absent)
	say
	say "Table 1: bandwidth where each message registers its buffers"
	table 2 "N * N N N N" < <(profile_awk bandwidth)
	say
	say "Table 3: registration of absent pages by kind (with mmap: thp, 2m)"
	table 2 "N * N N (-|[0-9.]+) (-|[-0-9]+%) N N N" < <(profile_awk pages)
	say
	sed -n '/^== model/,/^== /{/^==/d;p;}' "$dir/out"
	say
	read -r r2 r2_dereg shares least where < <(profile_awk result)
	if [ -z "$where" ]; then
		smoking && result "0 functions traced over $CORE" "none" no
		cannot "the kernel's functions were not traced"
	fi
	say "Accounted for least: $least % of $where."
	if at_most $PROFILE_R2 "$r2" && at_most $PROFILE_R2 "$r2_dereg" &&
	   at_most $PROFILE_SHARES "$shares"; then
		met=yes
	fi
	result "R^2 $r2 and $r2_dereg, shares add up to $shares%" \
		"R^2 >= $PROFILE_R2, shares >= $PROFILE_SHARES%" $met
}
