# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# bench.sh profile: what registration is spent on, by fi_mrrc_prof in the
# guest.

# R^2 of both lines, and the percent of all time that is accounted for
readonly PROFILE_R2=0.98 PROFILE_SHARES=90

bench_profile()
{
	local dir=$BUILD/bench/profile met=no r2 r2_dereg shares least where
	local table=$TOP/util/plot/profile.awk

	need "$BUILD_PACKAGES" || cannot "packages are missing"
	build_installed bench || cannot "the build failed"
	[ -x "$BUILD/bench/prefix/bin/fi_mrrc_prof" ] ||
		cannot "no fi_mrrc_prof was built"
	need_guest || cannot "the guest cannot be set up"
	mkdir -p "$dir"
	logged "fi_mrrc_prof, in the guest" "$dir/out" "$GUEST" -t 900 -- \
		"$TOP/util/plot/profile_run.sh" "$BUILD/bench/prefix/bin" ||
		cannot "the guest failed"
	say
	say "Set-up: $(setup_line), Soft-RoCE in an emulated guest"
	say "($(sed -n '/^== setup/{n;p;}' "$dir/out")). Of the kernel's"
	say "functions, one registration of each size, the least disturbed; else"
	say "medians. \"sum\": pin, translate and device; the rest is spent in"
	say "libraries and on the way into the kernel, ten times as slow here."
	say
	say "Figures 2 and 3: registration, pages present"
	awk -F, -v table=touched -f "$table" "$dir/out"
	say
	say "Figures 4 and 5: registration, pages not present"
	awk -F, -v table=absent -f "$table" "$dir/out"
	say
	say "Table 1: bandwidth where each message registers its buffers"
	awk -F, -v table=bandwidth -f "$table" "$dir/out"
	say
	say "Table 3: registration of absent pages by kind (with mmap: thp, 2m)"
	awk -F, -v table=pages -f "$table" "$dir/out"
	say
	sed -n '/^== model/,/^== /{/^==/d;p;}' "$dir/out"
	say
	read -r r2 r2_dereg shares least where < <(awk -F, -v table=result \
		-f "$table" "$dir/out")
	[ -n "$where" ] || cannot "the kernel's functions were not traced"
	say "Accounted for least: $least % of $where."
	if at_most $PROFILE_R2 "$r2" && at_most $PROFILE_R2 "$r2_dereg" &&
	   at_most $PROFILE_SHARES "$shares"; then
		met=yes
	fi
	result "R^2 $r2 and $r2_dereg, shares add up to $shares%" \
		"R^2 >= $PROFILE_R2, shares >= $PROFILE_SHARES%" $met
}
